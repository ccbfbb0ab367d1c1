//! Ranges of device addresses whose parts get and lose memory.
//!
//! Every page has one physical allocation of its own: a mapping is of a whole allocation, and is
//! undone as a whole. The reference to the allocation is dropped once it is mapped, so that it goes
//! with its mapping and there is nothing else to keep. Which pages are mapped is kept here, since a range
//! is given back only when none is.

use super::context::{Context, relaxed};
use super::driver::{Driver, Physical};
use super::failure::Failure;
use super::structs::{AccessDescription, AllocationProperties};
use crate::backend::{BackendError, BackendResult};
use crate::log::{self, Level};
use crate::size::{GRAIN, round_down, round_up};
use crate::text::text;
use core::ffi::c_int;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

/// `CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED`.
const VIRTUAL_MEMORY_SUPPORTED: u32 = 102;
/// `CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED`.
const RDMA_SUPPORTED: u32 = 110;
/// `CU_MEM_ALLOC_GRANULARITY_MINIMUM`.
const MINIMUM: u32 = 0;
/// Before so many pages get memory one after the other it is asked whether there is enough for all.
const MANY_PAGES: u64 = 16;
/// No range is larger: addresses have 47 bits, several pools share them, and no device has as much.
const LARGEST_RANGE: u64 = 1 << 43;

/// A device's virtual memory.
#[derive(Debug)]
pub(super) struct VirtualMemory {
    driver: &'static Driver,
    device: c_int,
    /// Bytes of a page.
    page: u64,
    /// What a range has room for at least, where that many addresses are to be had.
    preferred: u64,
    /// Whether pages are made for network adapters, too; unset until the first pages show whether the
    /// driver that announces it can do it.
    for_rdma: OnceLock<bool>,
    ranges: Mutex<Ranges>,
}

#[derive(Debug, Default)]
struct Ranges {
    /// Those that the pool uses.
    used: Vec<Range>,
    /// Those that it forgot when the device was reset. They are given back at the next call that
    /// may call the driver.
    orphans: Vec<Range>,
}

#[derive(Debug)]
struct Range {
    base: u64,
    span: u64,
    /// A bit for each page: whether it is mapped.
    mapped: Vec<u64>,
}

impl Ranges {
    /// The range that the pool uses at an address.
    fn at(&mut self, addr: u64) -> Option<&mut Range> {
        self.used.iter_mut().find(|range| range.contains(addr))
    }
}

impl Range {
    fn contains(&self, addr: u64) -> bool {
        addr >= self.base && addr - self.base < self.span
    }

    fn has(&self, page: u64) -> bool {
        self.mapped[(page / 64) as usize] >> (page % 64) & 1 != 0
    }

    fn set(&mut self, page: u64, mapped: bool) {
        let bit = 1 << (page % 64);
        let word = &mut self.mapped[(page / 64) as usize];
        *word = if mapped { *word | bit } else { *word & !bit };
    }
}

impl VirtualMemory {
    /// The virtual memory of a device with `total` bytes; `None`: device or driver have none.
    pub(super) fn of(context: &Context, total: u64) -> Option<Self> {
        let (driver, device) = (context.driver(), context.device());
        let (mut supported, mut page) = (0, 0);
        // SAFETY: the out-parameters are valid for writing, and the properties for reading.
        unsafe {
            driver
                .device_attribute(&mut supported, VIRTUAL_MEMORY_SUPPORTED, device)
                .ok()?;
            let properties = AllocationProperties::of_device(device, false);
            driver.granularity(&mut page, &properties, MINIMUM).ok()?;
        }
        let (mut rdma, for_rdma) = (0, OnceLock::new());
        // SAFETY: the out-parameter is valid for writing.
        let asked = unsafe { driver.device_attribute(&mut rdma, RDMA_SUPPORTED, device) };
        if asked.is_err() || rdma == 0 {
            for_rdma.get_or_init(|| false);
        }
        let page = page as u64;
        let is_usable = supported != 0 && page.is_power_of_two() && page >= GRAIN;
        (is_usable && driver.has_virtual_memory()).then(|| Self {
            driver,
            device,
            page,
            preferred: total.saturating_mul(4).min(LARGEST_RANGE),
            for_rdma,
            ranges: Mutex::default(),
        })
    }

    pub(super) fn page(&self) -> u64 {
        self.page
    }

    fn ranges(&self) -> MutexGuard<'_, Ranges> {
        self.ranges.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn told(&self, failure: Failure) -> BackendError {
        failure.into_backend_error(self.driver)
    }

    /// The pool has forgotten all ranges. No driver call.
    pub(super) fn forget(&self) {
        // In a forked child another thread of the parent may hold the lock for ever; after a reset
        // no call is in progress.
        if let Ok(mut ranges) = self.ranges.try_lock() {
            let Ranges { used, orphans } = &mut *ranges;
            orphans.append(used);
        }
    }

    /// Gives back what was forgotten. Whether a reset took the memory or left it is the driver's
    /// affair: what fails here is gone.
    pub(super) fn bury_orphans(&self) {
        let Ok(mut ranges) = self.ranges.try_lock() else {
            return;
        };
        let orphans = std::mem::take(&mut ranges.orphans);
        drop(ranges);
        for range in orphans {
            for page in 0..range.span / self.page {
                if range.has(page) {
                    let unmapped = self.unmap_page(range.base + page * self.page);
                    if unmapped.is_err_and(Failure::is_useless) {
                        return;
                    }
                }
            }
            let _ = self.free_addresses(range.base, range.span);
        }
    }

    pub(super) fn reserve(&self, least: u64) -> BackendResult<(u64, u64)> {
        let least = round_up(least, self.page).ok_or(BackendError::OutOfMemory)?;
        if least > LARGEST_RANGE {
            return Err(BackendError::OutOfMemory);
        }
        let mut span = round_down(self.preferred.max(least), self.page);
        loop {
            match self.reserve_span(span) {
                // Fewer addresses do as well.
                Err(BackendError::OutOfMemory) if span > least => {
                    span = round_down(span / 2, self.page).max(least);
                }
                Err(error) => return Err(error),
                Ok(base) => return Ok((base, span)),
            }
        }
    }

    fn reserve_span(&self, span: u64) -> BackendResult<u64> {
        let mut mapped = Vec::new();
        let words = (span / self.page).div_ceil(64) as usize;
        mapped
            .try_reserve_exact(words)
            .map_err(|_| BackendError::OutOfMemory)?;
        mapped.resize(words, 0);
        let bytes = usize::try_from(span).map_err(|_| BackendError::OutOfMemory)?;
        let mut base = 0;
        // SAFETY: the out-parameter is valid for writing.
        unsafe {
            self.driver
                .reserve(&mut base, bytes, self.page as usize, 0, 0)
        }
        .map_err(|failure| self.told(failure))?;
        let mut ranges = self.ranges();
        let room = {
            let Ranges { used, orphans } = &mut *ranges;
            // So that forgetting needs no memory.
            used.try_reserve(1)
                .and_then(|()| orphans.try_reserve(used.len() + 1))
        };
        if room.is_err() {
            drop(ranges);
            let _ = self.free_addresses(base, span);
            return Err(BackendError::OutOfMemory);
        }
        ranges.used.push(Range { base, span, mapped });
        Ok(base)
    }

    pub(super) fn unreserve(&self, base: u64, span: u64) -> BackendResult<()> {
        let mut at = base;
        // The range stays in the books until it is gone, so that a failure loses nothing.
        while let Some((from, to)) = self.next_mapped(at, base + span) {
            self.unmap(from, to - from)?;
            at = to;
        }
        match self.free_addresses(base, span) {
            Ok(()) => {}
            Err(failure) if failure.is_the_end() => {}
            Err(failure) => return Err(failure.without_request(self.driver)),
        }
        self.ranges().used.retain(|range| range.base != base);
        Ok(())
    }

    /// The first run of mapped pages from `at` up to `end`.
    fn next_mapped(&self, at: u64, end: u64) -> Option<(u64, u64)> {
        let mut ranges = self.ranges();
        let range = ranges.at(at)?;
        let page = |addr: u64| (addr - range.base) / self.page;
        let first = (page(at)..page(end)).find(|&page| range.has(page))?;
        let last = (first..page(end))
            .take_while(|&page| range.has(page))
            .last()?;
        let addr = |page: u64| range.base + page * self.page;
        Some((addr(first), addr(last + 1)))
    }

    /// Whether so many bytes would be too many to find out about page by page, from so many pages of memory
    /// that others then lack for a moment.
    pub(super) fn is_much(&self, bytes: u64) -> bool {
        bytes / self.page >= MANY_PAGES
    }

    /// Fails where the device cannot give so much, by taking it all at once for a moment.
    pub(super) fn probe(&self, bytes: u64) -> BackendResult<()> {
        let for_rdma = self.for_rdma.get().copied().unwrap_or(false);
        let properties = AllocationProperties::of_device(self.device, for_rdma);
        let mut physical: Physical = 0;
        let bytes = usize::try_from(bytes).map_err(|_| BackendError::OutOfMemory)?;
        // SAFETY: the out-parameter is valid for writing and the properties for reading; what was
        // created is released, and was not mapped.
        unsafe {
            self.driver
                .create(&mut physical, bytes, &properties, 0)
                .and_then(|()| {
                    self.driver
                        .release(physical)
                        .or_else(|_| self.driver.release(physical))
                })
        }
        .map_err(|failure| self.told(failure))
    }

    pub(super) fn map(&self, addr: u64, bytes: u64) -> BackendResult<()> {
        self.map_pages(addr, bytes)
            .map_err(|failure| self.told(failure))?;
        self.note(addr, bytes, true);
        Ok(())
    }

    pub(super) fn unmap(&self, addr: u64, bytes: u64) -> BackendResult<()> {
        for done in (0..bytes).step_by(self.page as usize) {
            if !self.is_mapped(addr + done) {
                // It has lost its memory already.
                continue;
            }
            let Err(failure) = self.unmap_page(addr + done) else {
                continue;
            };
            if failure.is_the_end() {
                break;
            }
            let error = failure.without_request(self.driver);
            // Free pages have no contents to lose: others in their place are as good.
            if done > 0 {
                if let Err(failure) = self.map_pages(addr, done) {
                    self.note(addr, done, false);
                    let second = failure.without_request(self.driver);
                    log::log(Level::Error, || {
                        text!(
                            "{done} bytes at {addr:#x} lost their memory, and using them will fail: {error}; and then {second}"
                        )
                    });
                }
            }
            return Err(error);
        }
        self.note(addr, bytes, false);
        Ok(())
    }

    fn is_mapped(&self, addr: u64) -> bool {
        let mut ranges = self.ranges();
        ranges
            .at(addr)
            .is_some_and(|range| range.has((addr - range.base) / self.page))
    }

    /// Writes down that pages were mapped or unmapped.
    fn note(&self, addr: u64, bytes: u64, mapped: bool) {
        let mut ranges = self.ranges();
        if let Some(range) = ranges.at(addr) {
            let first = (addr - range.base) / self.page;
            for page in first..first + bytes / self.page {
                range.set(page, mapped);
            }
        }
    }

    /// Maps all of the pages or none.
    fn map_pages(&self, addr: u64, bytes: u64) -> Result<(), Failure> {
        if let Some(&for_rdma) = self.for_rdma.get() {
            return self.map_pages_for(addr, bytes, for_rdma);
        }
        match self.map_pages_for(addr, bytes, true) {
            Ok(()) => {
                self.for_rdma.get_or_init(|| true);
                Ok(())
            }
            Err(failure) if failure.is_out_of_memory() || failure.is_useless() => Err(failure),
            // Some systems announce it and then refuse the access.
            Err(_) => {
                self.map_pages_for(addr, bytes, false)?;
                self.for_rdma.get_or_init(|| false);
                Ok(())
            }
        }
    }

    fn map_pages_for(&self, addr: u64, bytes: u64, for_rdma: bool) -> Result<(), Failure> {
        let undo = |to: u64| {
            for at in (addr..to).step_by(self.page as usize) {
                let _ = self.unmap_page(at);
            }
        };
        let end = addr + bytes;
        for at in (addr..end).step_by(self.page as usize) {
            self.map_page(at, for_rdma).inspect_err(|_| undo(at))?;
        }
        let access = AccessDescription::full(self.device);
        // SAFETY: the pages were mapped just now, and the description is valid for reading.
        unsafe { self.driver.set_access(addr, bytes as usize, &access, 1) }
            .inspect_err(|_| undo(end))
    }

    fn map_page(&self, addr: u64, for_rdma: bool) -> Result<(), Failure> {
        let (driver, page) = (self.driver, self.page as usize);
        let properties = AllocationProperties::of_device(self.device, for_rdma);
        let mut physical: Physical = 0;
        // SAFETY: the out-parameter is valid for writing and the properties for reading; the
        // addresses are of a range that `reserve` gave, and nothing is mapped there.
        unsafe {
            driver.create(&mut physical, page, &properties, 0)?;
            let mapped = driver.map(addr, page, 0, physical, 0);
            // From here on the mapping alone keeps the memory; without one it goes now.
            let released = driver.release(physical);
            mapped?;
            released.inspect_err(|_| {
                let _ = driver.unmap(addr, page);
                let _ = driver.release(physical);
            })
        }
    }

    fn unmap_page(&self, addr: u64) -> Result<(), Failure> {
        // SAFETY: the pool has marked the page as free, so that no work uses it.
        unsafe { self.driver.unmap(addr, self.page as usize) }
    }

    fn free_addresses(&self, base: u64, span: u64) -> Result<(), Failure> {
        // SAFETY: nothing is mapped in it any more.
        unsafe { self.driver.unreserve(base, span as usize) }
    }
}

impl Drop for VirtualMemory {
    fn drop(&mut self) {
        // A pool that was destroyed after a reset has not come to it.
        if self.ranges().orphans.is_empty() {
            return;
        }
        let _ = relaxed(self.driver, || {
            self.bury_orphans();
            Ok(())
        });
    }
}
