//! Events that other processes see (`CU_EVENT_INTERPROCESS`).
//!
//! A page in a file of memory counts the records of the event, and says up to which one they are
//! complete. A handle says in which file of which process that is; who opens it finds the file by the
//! list of that process's open files, as long as it runs.

use crate::abi::memory::Opaque64;
use crate::memory::memory_file;
use crate::status::{Code, Result};
use std::fmt;
use std::fs::{File, OpenOptions};
use std::os::fd::AsRawFd;
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
        let file = memory_file(c"fakecuda-event", LENGTH as u64)?;
        Self::map(file.into())
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
        Ok(Opaque64::of([
            MARK,
            process,
            self.file.as_raw_fd() as u64,
            about.dev(),
            about.ino(),
            device as u64,
            0,
            0,
        ]))
    }

    /// Opens a handle that another process made.
    ///
    /// # Errors
    /// `INVALID_VALUE`: not a handle. `INVALID_CONTEXT`: it is of this process. `MAP_FAILED`: the event or
    /// its process is gone.
    pub fn import(handle: &Opaque64) -> Result<Self> {
        let [mark, process, file, device, inode, ..] = handle.numbers();
        if mark != MARK {
            return Err(Code::INVALID_VALUE);
        }
        if process == u64::from(std::process::id()) {
            return Err(Code::INVALID_CONTEXT);
        }
        let path = format!("/proc/{process}/fd/{file}");
        let file = OpenOptions::new().read(true).write(true).open(path);
        let file = file.map_err(|_| Code::MAP_FAILED)?;
        let about = file.metadata().map_err(|_| Code::MAP_FAILED)?;
        if (about.dev(), about.ino()) != (device, inode) {
            return Err(Code::MAP_FAILED);
        }
        Self::map(file)
    }
}
