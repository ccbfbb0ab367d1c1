//! Host memory: anonymous private mappings, taken from the system only as they are touched.
//!
//! A device of a fixed capacity is simulated over it, so that programs meet the limits of a real
//! one. Private pages are copied on write after a fork, so parent and child each keep their own.

use super::{Backend, BackendError, BackendResult, Memory, Pages, SEGMENT_ALIGN};
use crate::error::Status;
use crate::size::{GRAIN, round_down, round_up};
use crate::text::text;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// No range of addresses is larger, so that several fit into 47 bits.
const LARGEST_RANGE: u64 = 1 << 45;

/// A simulated device of a fixed capacity. Pools that share it share the capacity.
#[derive(Debug)]
pub struct HostDevice {
    capacity: u64,
    used: AtomicU64,
}

impl HostDevice {
    /// A device of `capacity` bytes.
    pub fn new(capacity: u64) -> Arc<Self> {
        Arc::new(Self {
            capacity,
            used: AtomicU64::new(0),
        })
    }

    // The counter orders nothing but itself, hence relaxed.
    fn take(&self, bytes: u64) -> BackendResult<()> {
        self.used
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |used| {
                used.checked_add(bytes).filter(|&sum| sum <= self.capacity)
            })
            .map(|_| ())
            .map_err(|_| BackendError::OutOfMemory)
    }

    fn put(&self, bytes: u64) {
        self.used.fetch_sub(bytes, Ordering::Relaxed);
    }
}

/// Host memory of one [`HostDevice`].
#[derive(Debug)]
pub struct HostBackend {
    device: Arc<HostDevice>,
    page: u64,
}

impl HostBackend {
    /// The memory of `device`.
    pub fn new(device: Arc<HostDevice>) -> Self {
        // SAFETY: sysconf has no preconditions.
        let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
        Self {
            device,
            page: u64::try_from(page).unwrap_or(4096),
        }
    }

    /// A mapping of `bytes` bytes at a multiple of [`SEGMENT_ALIGN`].
    fn map_aligned(&self, bytes: u64, protection: libc::c_int) -> BackendResult<u64> {
        let bytes = round_up(bytes, self.page).ok_or(BackendError::OutOfMemory)?;
        let padded = bytes
            .checked_add(SEGMENT_ALIGN - self.page)
            .and_then(|padded| usize::try_from(padded).ok())
            .ok_or(BackendError::OutOfMemory)?;
        // SAFETY: a new anonymous mapping at an address of the system's choice replaces nothing.
        let mapping = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                padded,
                protection,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
                -1,
                0,
            )
        };
        if mapping == libc::MAP_FAILED {
            return Err(last_os_error("mmap"));
        }
        let start = mapping as u64;
        let addr = round_up(start, SEGMENT_ALIGN).expect("a mapping ends below 2^64");
        let end = start + padded as u64;
        for (from, to) in [(start, addr), (addr + bytes, end)] {
            if from < to {
                // SAFETY: the padding on this side belongs to the mapping just made and nobody
                // knows its address.
                unsafe { libc::munmap(from as *mut libc::c_void, (to - from) as usize) };
            }
        }
        Ok(addr)
    }

    fn unmap_whole(&self, addr: u64, bytes: u64) -> BackendResult<()> {
        let bytes = round_up(bytes, self.page).expect("it was mapped with this size");
        // SAFETY: the pool gives back what `map_aligned` gave, once, when no block of it is live
        // or its owner has destroyed the pool.
        match unsafe { libc::munmap(addr as *mut libc::c_void, bytes as usize) } {
            0 => Ok(()),
            _ => Err(last_os_error("munmap")),
        }
    }

    /// A range's preferred size: plenty beyond the capacity, since a request under pressure takes
    /// new addresses; a quarter of what a limit on the address space allows.
    fn preferred_range(&self, least: u64) -> u64 {
        let wanted = self
            .device
            .capacity
            .saturating_mul(4)
            .max(least.saturating_mul(2));
        let mut limit = libc::rlimit {
            rlim_cur: libc::RLIM_INFINITY,
            rlim_max: libc::RLIM_INFINITY,
        };
        // SAFETY: `limit` is valid for writing.
        let asked = unsafe { libc::getrlimit(libc::RLIMIT_AS, &mut limit) };
        let allowed = if asked == 0 && limit.rlim_cur != libc::RLIM_INFINITY {
            limit.rlim_cur / 4
        } else {
            LARGEST_RANGE
        };
        wanted.min(allowed.min(LARGEST_RANGE)).max(least)
    }
}

fn last_os_error(call: &str) -> BackendError {
    let error = io::Error::last_os_error();
    if error.raw_os_error() == Some(libc::ENOMEM) {
        return BackendError::OutOfMemory;
    }
    BackendError::failed(Status::Driver, text!("{call}: {error}"))
}

impl Backend for HostBackend {
    fn name(&self) -> &'static str {
        "host"
    }

    fn is_host_accessible(&self) -> bool {
        true
    }

    fn memory(&self) -> BackendResult<Option<Memory>> {
        let used = self.device.used.load(Ordering::Relaxed);
        Ok(Some(Memory {
            free: self.device.capacity.saturating_sub(used),
            total: self.device.capacity,
        }))
    }

    fn outlives_reset(&self) -> bool {
        true
    }

    fn known_free(&self) -> Option<u64> {
        let used = self.device.used.load(Ordering::Relaxed);
        Some(self.device.capacity.saturating_sub(used))
    }

    fn segment_align(&self) -> u64 {
        SEGMENT_ALIGN
    }

    fn largest_align(&self) -> u64 {
        // A process has 47 bits of addresses.
        1 << 46
    }

    fn allocate(&self, bytes: u64) -> BackendResult<u64> {
        self.device.take(bytes)?;
        self.map_aligned(bytes, libc::PROT_READ | libc::PROT_WRITE)
            .inspect_err(|_| self.device.put(bytes))
    }

    fn release(&self, addr: u64, bytes: u64) -> BackendResult<()> {
        self.unmap_whole(addr, bytes)?;
        self.device.put(bytes);
        Ok(())
    }

    fn pages(&self) -> Option<Pages> {
        // Whole pages of the system lie behind any part, so a part may be as small as a grain.
        Some(Pages {
            map: GRAIN,
            unmap: SEGMENT_ALIGN,
            finest: self.page,
        })
    }

    fn reserve(&self, least: u64) -> BackendResult<(u64, u64)> {
        let least = round_up(least, SEGMENT_ALIGN).ok_or(BackendError::OutOfMemory)?;
        let mut span = round_down(self.preferred_range(least), SEGMENT_ALIGN).max(least);
        loop {
            match self.map_aligned(span, libc::PROT_NONE) {
                Ok(addr) => return Ok((addr, span)),
                // Whatever a system or a tool under it calls too much (Valgrind: an invalid argument).
                Err(_) if span > least => {
                    span = round_down(span / 2, SEGMENT_ALIGN).max(least);
                }
                Err(error) => return Err(error),
            }
        }
    }

    fn unreserve(&self, addr: u64, span: u64, mapped: u64) -> BackendResult<()> {
        self.unmap_whole(addr, span)?;
        self.device.put(mapped);
        Ok(())
    }

    fn map(&self, addr: u64, bytes: u64) -> BackendResult<()> {
        self.device.take(bytes)?;
        let from = round_down(addr, self.page);
        let to = round_up(addr + bytes, self.page).expect("a range ends below 2^64");
        // SAFETY: the pages lie in a range that `reserve` gave. Those that hold memory already are
        // readable and writable already, so nothing changes for the blocks in them.
        let done = unsafe {
            libc::mprotect(
                from as *mut libc::c_void,
                (to - from) as usize,
                libc::PROT_READ | libc::PROT_WRITE,
            )
        };
        if done != 0 {
            let error = last_os_error("mprotect");
            self.device.put(bytes);
            return Err(error);
        }
        Ok(())
    }

    fn unmap(&self, addr: u64, bytes: u64) -> BackendResult<()> {
        debug_assert!(addr % self.page == 0 && bytes % self.page == 0);
        // SAFETY: the pages are whole, lie in a range that `reserve` gave, and are free: the pool
        // marked them. Mapping over them drops their memory and keeps their addresses taken.
        let mapping = unsafe {
            libc::mmap(
                addr as *mut libc::c_void,
                bytes as usize,
                libc::PROT_NONE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE | libc::MAP_FIXED,
                -1,
                0,
            )
        };
        if mapping == libc::MAP_FAILED {
            return Err(last_os_error("mmap"));
        }
        self.device.put(bytes);
        Ok(())
    }

    fn fill(&self, addr: u64, bytes: u64, value: u8) {
        // SAFETY: the pool names a block of its own that is free or about to be handed out, so
        // that nobody else may use it, and its memory is mapped.
        unsafe { std::ptr::write_bytes(addr as *mut u8, value, bytes as usize) };
    }

    fn first_changed(&self, addr: u64, bytes: u64, value: u8) -> Option<(u64, u8)> {
        let byte = |at: u64| {
            // SAFETY: the pool names a freed block of its own, whose memory is mapped. A program that
            // writes to it all the same is what is looked for: volatile reads take whatever they find.
            unsafe { std::ptr::read_volatile((addr + at) as *const u8) }
        };
        let is_same = |from: u64, bytes: u64| {
            // SAFETY: as above; both parts of the memory end within the block. That all bytes are the
            // first one is that all are the ones before them.
            byte(from) == value
                && unsafe {
                    let first = (addr + from) as *const libc::c_void;
                    libc::memcmp(first, first.byte_add(1), bytes as usize - 1) == 0
                }
        };
        if is_same(0, bytes) {
            return None;
        }
        let part = (0..bytes)
            .step_by(GRAIN as usize)
            .find(|&from| !is_same(from, GRAIN.min(bytes - from)))?;
        (part..bytes)
            .map(|at| (at, byte(at)))
            .find(|&(_, found)| found != value)
    }

    fn device_key(&self) -> Option<u64> {
        // Addresses of the host, so that no number of another kind of device is the same.
        Some(Arc::as_ptr(&self.device) as u64)
    }
}

#[cfg(all(test, not(miri)))]
mod tests {
    use super::*;

    fn backend(capacity: u64) -> HostBackend {
        HostBackend::new(HostDevice::new(capacity))
    }

    #[test]
    fn a_segment_is_aligned_zeroed_and_counted() {
        let host = backend(10 << 20);
        let addr = host.allocate(5 << 20).unwrap();
        assert_eq!(addr % SEGMENT_ALIGN, 0);
        assert_eq!(host.memory().unwrap().unwrap().free, 5 << 20);
        assert_eq!(
            host.allocate((5 << 20) + 256),
            Err(BackendError::OutOfMemory)
        );
        host.fill(addr, 5 << 20, 1);
        assert_eq!(host.first_changed(addr, 5 << 20, 1), None);
        host.fill(addr + (3 << 20) + 256, 256, 2);
        host.fill(addr + (4 << 20), 256, 3);
        let changed = host.first_changed(addr, 5 << 20, 1);
        assert_eq!(changed, Some(((3 << 20) + 256, 2)));
        host.release(addr, 5 << 20).unwrap();
        assert_eq!(host.memory().unwrap().unwrap().free, 10 << 20);
    }

    #[test]
    fn sizes_beyond_the_address_space_are_refused() {
        let host = backend(u64::MAX);
        for bytes in [!255, 1 << 63, 1 << 48] {
            assert_eq!(host.allocate(bytes), Err(BackendError::OutOfMemory));
            assert_eq!(host.reserve(bytes), Err(BackendError::OutOfMemory));
        }
        assert_eq!(host.memory().unwrap().unwrap().free, u64::MAX);
    }

    #[test]
    fn a_range_gets_and_loses_memory() {
        let host = backend(6 << 20);
        let (addr, span) = host.reserve(8 << 20).unwrap();
        assert!(span >= 8 << 20);
        host.map(addr, 4 << 20).unwrap();
        host.fill(addr, 4 << 20, 7);
        assert_eq!(
            host.map(addr + (4 << 20), 4 << 20),
            Err(BackendError::OutOfMemory)
        );
        host.unmap(addr, 2 << 20).unwrap();
        host.map(addr + (4 << 20), 4 << 20).unwrap();
        host.fill(addr + (2 << 20), 6 << 20, 9);
        assert_eq!(host.memory().unwrap().unwrap().free, 0);
        host.unreserve(addr, span, 6 << 20).unwrap();
        assert_eq!(host.memory().unwrap().unwrap().free, 6 << 20);
    }
}
