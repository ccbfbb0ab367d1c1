//! Events that other processes see (`CU_EVENT_INTERPROCESS`).
//!
//! A page in a file of memory counts the records of the event, and says up to which one they are
//! complete. A handle says in which file of which process that is; who opens it finds the file by the
//! list of that process's open files, as long as it runs.

use crate::abi::memory::Opaque64;
use crate::status::{Code, Result};
use std::fmt;
use std::fs::{File, OpenOptions};
use std::os::fd::{AsRawFd, FromRawFd};
use std::os::unix::fs::MetadataExt;
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// What a handle starts with.
const MARK: u64 = u64::from_le_bytes(*b"fakeevnt");
/// Bytes of the file.
const LENGTH: usize = 4096;
/// How long a waiting thread sleeps between two looks.
const PAUSE: Duration = Duration::from_micros(50);

/// What the file holds.
struct Page {
    recorded: AtomicU64,
    completed: AtomicU64,
}

/// The part of an event that processes share.
pub struct Shared {
    file: File,
    page: NonNull<Page>,
}

// SAFETY: the page holds atomics only and lives as long as this.
unsafe impl Send for Shared {}
unsafe impl Sync for Shared {}

impl fmt::Debug for Shared {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Shared({})", self.file.as_raw_fd())
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        // SAFETY: it was mapped with that length, and nobody has a reference any more.
        unsafe { libc::munmap(self.page.as_ptr().cast(), LENGTH) };
    }
}

impl Shared {
    /// A new one.
    pub fn new() -> Result<Self> {
        // SAFETY: the name ends with a zero.
        let fd = unsafe { libc::memfd_create(c"fakecuda-event".as_ptr(), libc::MFD_CLOEXEC) };
        if fd < 0 {
            return Err(Code::OUT_OF_MEMORY);
        }
        // SAFETY: the descriptor was just made and is nobody else's.
        let file = unsafe { File::from_raw_fd(fd) };
        file.set_len(LENGTH as u64)
            .map_err(|_| Code::OUT_OF_MEMORY)?;
        Self::map(file)
    }

    fn map(file: File) -> Result<Self> {
        let access = libc::PROT_READ | libc::PROT_WRITE;
        let (flags, fd) = (libc::MAP_SHARED, file.as_raw_fd());
        // SAFETY: a new mapping touches nothing that exists.
        let page = unsafe { libc::mmap(ptr::null_mut(), LENGTH, access, flags, fd, 0) };
        if page == libc::MAP_FAILED {
            return Err(Code::MAP_FAILED);
        }
        let page = NonNull::new(page.cast()).ok_or(Code::MAP_FAILED)?;
        Ok(Self { file, page })
    }

    fn page(&self) -> &Page {
        // SAFETY: the mapping is as long as the page, aligned, and holds zeros or what others stored.
        unsafe { self.page.as_ref() }
    }

    /// Counts a record, and gives its number.
    pub fn record(&self) -> u64 {
        self.page().recorded.fetch_add(1, Ordering::AcqRel) + 1
    }

    /// A record is complete.
    pub fn complete(&self, record: u64) {
        self.page().completed.fetch_max(record, Ordering::AcqRel);
    }

    /// The last record so far, in whatever process.
    pub fn last(&self) -> u64 {
        self.page().recorded.load(Ordering::Acquire)
    }

    /// Whether a record is complete.
    pub fn is_complete(&self, record: u64) -> bool {
        self.page().completed.load(Ordering::Acquire) >= record
    }

    /// Waits until a record is complete.
    pub fn wait(&self, record: u64) {
        while !self.is_complete(record) {
            std::thread::sleep(PAUSE);
        }
    }

    /// A handle for other processes. `device` is that of the event's context.
    pub fn export(&self, device: usize) -> Result<Opaque64> {
        let about = self.file.metadata().map_err(|_| Code::OPERATING_SYSTEM)?;
        let process = u64::from(std::process::id());
        let numbers = [
            MARK,
            process,
            self.file.as_raw_fd() as u64,
            about.dev(),
            about.ino(),
            device as u64,
        ];
        let mut handle = [0; 64];
        for (place, number) in handle.chunks_exact_mut(8).zip(numbers) {
            place.copy_from_slice(&number.to_le_bytes());
        }
        Ok(Opaque64(handle))
    }

    /// Opens a handle that another process made.
    ///
    /// # Errors
    /// `INVALID_VALUE`: not a handle. `INVALID_CONTEXT`: it is of this process. `MAP_FAILED`: the event or
    /// its process is gone.
    pub fn import(handle: &Opaque64) -> Result<Self> {
        let number = |index: usize| {
            let mut bytes = [0; 8];
            bytes.copy_from_slice(&handle.0[index * 8..][..8]);
            u64::from_le_bytes(bytes)
        };
        if number(0) != MARK {
            return Err(Code::INVALID_VALUE);
        }
        if number(1) == u64::from(std::process::id()) {
            return Err(Code::INVALID_CONTEXT);
        }
        let path = format!("/proc/{}/fd/{}", number(1), number(2));
        let file = OpenOptions::new().read(true).write(true).open(path);
        let file = file.map_err(|_| Code::MAP_FAILED)?;
        let about = file.metadata().map_err(|_| Code::MAP_FAILED)?;
        if (about.dev(), about.ino()) != (number(3), number(4)) {
            return Err(Code::MAP_FAILED);
        }
        Self::map(file)
    }
}
