//! Page-locked host memory: made here, or the program's own and registered.

use super::region::{Kind, Region};
use super::{PAGE, space};
use crate::context::ContextId;
use crate::state::State;
use crate::status::{Code, Result};

/// `CU_MEMHOSTREGISTER_READ_ONLY`: devices may not write to it.
pub const REGISTERED_READ_ONLY: u32 = 8;

/// Maps fresh pages that the host and, here, every device sees at the same address.
pub(super) fn map_pages(bytes: u64) -> Result<(u64, u64)> {
    let taken = bytes
        .checked_next_multiple_of(PAGE)
        .ok_or(Code::OUT_OF_MEMORY)?;
    // SAFETY: the system chooses the place, so nothing else is in the way.
    let at = unsafe {
        libc::mmap(
            std::ptr::null_mut(),
            usize::try_from(taken).map_err(|_| Code::OUT_OF_MEMORY)?,
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
            -1,
            0,
        )
    };
    if at == libc::MAP_FAILED {
        return Err(Code::OUT_OF_MEMORY);
    }
    // SAFETY: the pages were just mapped.
    unsafe { space::fill_fresh(at as u64, taken) };
    Ok((at as u64, taken))
}

/// Undoes [`map_pages`].
pub(super) fn unmap_pages(at: u64, taken: u64) {
    // SAFETY: the pages are those of a block that was just removed from the table.
    unsafe { libc::munmap(at as *mut _, taken as usize) };
}

/// Whether all pages of a range are mapped.
fn is_mapped(start: u64, bytes: u64) -> bool {
    let mut pages = [0_u8; 1024];
    let end = (start + bytes).next_multiple_of(PAGE);
    let mut at = start / PAGE * PAGE;
    while at < end {
        let length = (end - at).min(PAGE * pages.len() as u64);
        // SAFETY: the vector has a byte for each page; the call tells whether they are mapped.
        if unsafe { libc::mincore(at as *mut _, length as usize, pages.as_mut_ptr()) } != 0 {
            return false;
        }
        at += length;
    }
    true
}

impl State {
    fn insert_host(
        &mut self,
        context: ContextId,
        (start, bytes, taken): (u64, u64, u64),
        kind: Kind,
    ) -> Result {
        let device = self.context(context)?.device;
        let id = self.memory.next_id();
        self.memory.regions.insert(Region {
            start,
            bytes,
            taken,
            id,
            context: Some(context),
            device,
            sync_memops: false,
            kind,
        });
        Ok(())
    }

    /// Makes page-locked host memory.
    pub fn allocate_host(&mut self, context: ContextId, bytes: u64, flags: u32) -> Result<u64> {
        if bytes == 0 {
            return Err(Code::INVALID_VALUE);
        }
        let (start, taken) = map_pages(bytes)?;
        self.insert_host(context, (start, bytes, taken), Kind::Pinned { flags })?;
        Ok(start)
    }

    /// Whether a block of page-locked memory begins at an address.
    pub fn is_host_allocation(&self, start: u64) -> bool {
        let region = self.memory.regions.at(start);
        region.is_some_and(|region| matches!(region.kind, Kind::Pinned { .. }))
    }

    /// Gives page-locked memory back. The caller has waited for all work.
    pub fn free_host(&mut self, start: u64) -> Result {
        if !self.is_host_allocation(start) {
            return Err(Code::INVALID_VALUE);
        }
        if let Some(region) = self.memory.regions.remove(start) {
            unmap_pages(region.start, region.taken);
        }
        Ok(())
    }

    /// Page-locks the program's own memory.
    pub fn register_host(
        &mut self,
        context: ContextId,
        start: u64,
        bytes: u64,
        flags: u32,
    ) -> Result {
        let end = start.checked_add(bytes).ok_or(Code::INVALID_VALUE)?;
        if start == 0 || bytes == 0 || end.checked_next_multiple_of(PAGE).is_none() {
            return Err(Code::INVALID_VALUE);
        }
        if self.memory.regions.overlaps(start, end) {
            return Err(Code::HOST_MEMORY_ALREADY_REGISTERED);
        }
        if space::is_inside(start) || space::is_inside(end - 1) || !is_mapped(start, bytes) {
            return Err(Code::INVALID_VALUE);
        }
        self.insert_host(context, (start, bytes, bytes), Kind::Registered { flags })
    }

    /// Whether registered memory begins at an address.
    pub fn is_registered(&self, start: u64) -> bool {
        let region = self.memory.regions.at(start);
        region.is_some_and(|region| matches!(region.kind, Kind::Registered { .. }))
    }

    /// Makes registered memory the program's own again. The caller has waited for all work.
    pub fn unregister_host(&mut self, start: u64) -> Result {
        if !self.is_registered(start) {
            return Err(Code::HOST_MEMORY_NOT_REGISTERED);
        }
        self.memory.regions.remove(start);
        Ok(())
    }

    /// The device address of page-locked memory that the host knows by an address.
    pub fn host_device_pointer(&self, address: u64) -> Result<u64> {
        match self.memory.regions.containing(address) {
            Some(region) if !region.is_device() => Ok(address),
            _ => Err(Code::INVALID_VALUE),
        }
    }

    /// The flags that page-locked memory was made or registered with.
    pub fn host_flags(&self, address: u64) -> Result<u32> {
        match self
            .memory
            .regions
            .containing(address)
            .map(|region| &region.kind)
        {
            Some(Kind::Pinned { flags } | Kind::Registered { flags }) => Ok(*flags),
            _ => Err(Code::INVALID_VALUE),
        }
    }
}
