//! A simulated device that writes down which memory a pool holds.

use crate::intervals::{Interval, Intervals};
use luma::backend::simulated::SimulatedBackend;
use luma::backend::streams::{Event, StreamSource};
use luma::backend::{Backend, BackendResult, Memory, Pages, SEGMENT_ALIGN};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard};

/// The device.
#[derive(Debug)]
pub struct Device {
    pub simulated: SimulatedBackend,
    seen: Mutex<Seen>,
}

/// Memory that went, and what of its work was not done when it did.
type Check = Box<dyn FnMut(Interval) -> Option<String> + Send>;

#[derive(Default)]
pub struct Seen {
    /// Segments and ranges.
    pub grants: BTreeMap<u64, u64>,
    /// Of those, the ranges.
    pub ranges: BTreeSet<u64>,
    pub memory: Intervals,
    pub granted: u64,
    pub returned: u64,
    /// The most memory.
    pub most: u64,
    /// Finds a fault with memory that is about to go.
    pub check: Option<Check>,
    pub faults: Vec<String>,
    /// What happens right after the next event is recorded by a call of the device.
    pub after_record: Option<Box<dyn FnOnce() + Send>>,
    /// Memory that went since it was looked at last.
    pub lost: Vec<Interval>,
}

impl std::fmt::Debug for Seen {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:x?}", self.grants)
    }
}

impl Seen {
    /// Of memory that is free for anybody, what can go back: whole pages of ranges, and grants of which
    /// nothing else is left.
    pub fn returnable(&self, free: &Intervals) -> u64 {
        let grants = self.grants.iter().map(|(&base, &span)| {
            let grant = (base, base + span);
            let held = self.memory.within(grant);
            let free = free.within(grant);
            if held == free {
                return held.bytes();
            }
            let pages = free.iter().map(|(from, to)| {
                let first = from.next_multiple_of(SEGMENT_ALIGN);
                (to - to % SEGMENT_ALIGN).saturating_sub(first)
            });
            if self.ranges.contains(&base) {
                pages.sum()
            } else {
                0
            }
        });
        grants.sum()
    }
}

impl Device {
    pub fn new(simulated: SimulatedBackend, has_barriers: bool) -> Self {
        let simulated = simulated.with_streams();
        if !has_barriers {
            simulated.context().end_barriers();
        }
        Self {
            simulated,
            seen: Mutex::default(),
        }
    }

    pub fn seen(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().expect("nothing panics under this lock")
    }

    fn got(&self, addr: u64, bytes: u64) {
        let mut seen = self.seen();
        seen.memory.add((addr, addr + bytes));
        seen.most = seen.most.max(seen.memory.bytes());
    }

    fn losing(&self, addr: u64, bytes: u64) {
        let mut seen = self.seen();
        let fault = seen
            .check
            .as_mut()
            .and_then(|check| check((addr, addr + bytes)));
        seen.faults.extend(fault);
    }

    fn has_recorded(&self) {
        let after = self.seen().after_record.take();
        after.into_iter().for_each(|act| act());
    }

    fn lost(&self, addr: u64, bytes: u64) {
        let mut seen = self.seen();
        seen.memory.remove((addr, addr + bytes));
        seen.lost.push((addr, addr + bytes));
    }
}

impl Backend for Device {
    fn name(&self) -> &'static str {
        self.simulated.name()
    }

    fn is_host_accessible(&self) -> bool {
        false
    }

    fn memory(&self) -> BackendResult<Option<Memory>> {
        self.simulated.memory()
    }

    fn outlives_reset(&self) -> bool {
        true
    }

    fn known_free(&self) -> Option<u64> {
        self.simulated.known_free()
    }

    fn segment_align(&self) -> u64 {
        self.simulated.segment_align()
    }

    fn allocate(&self, bytes: u64) -> BackendResult<u64> {
        let addr = self.simulated.allocate(bytes)?;
        let mut seen = self.seen();
        seen.granted += 1;
        seen.grants.insert(addr, bytes);
        drop(seen);
        self.got(addr, bytes);
        Ok(addr)
    }

    fn release(&self, addr: u64, bytes: u64) -> BackendResult<()> {
        self.losing(addr, bytes);
        self.simulated.release(addr, bytes)?;
        let mut seen = self.seen();
        seen.returned += 1;
        seen.grants.remove(&addr);
        seen.ranges.remove(&addr);
        drop(seen);
        self.lost(addr, bytes);
        Ok(())
    }

    fn pages(&self) -> Option<Pages> {
        self.simulated.pages()
    }

    fn reserve(&self, least: u64) -> BackendResult<(u64, u64)> {
        let (addr, span) = self.simulated.reserve(least)?;
        let mut seen = self.seen();
        seen.granted += 1;
        seen.grants.insert(addr, span);
        seen.ranges.insert(addr);
        Ok((addr, span))
    }

    fn unreserve(&self, addr: u64, span: u64, mapped: u64) -> BackendResult<()> {
        self.losing(addr, span);
        self.simulated.unreserve(addr, span, mapped)?;
        let mut seen = self.seen();
        seen.returned += 1;
        seen.grants.remove(&addr);
        seen.ranges.remove(&addr);
        drop(seen);
        self.lost(addr, span);
        Ok(())
    }

    fn map(&self, addr: u64, bytes: u64) -> BackendResult<()> {
        self.simulated.map(addr, bytes)?;
        self.got(addr, bytes);
        Ok(())
    }

    fn unmap(&self, addr: u64, bytes: u64) -> BackendResult<()> {
        self.losing(addr, bytes);
        self.simulated.unmap(addr, bytes)?;
        self.lost(addr, bytes);
        Ok(())
    }

    fn stream_source(&self) -> StreamSource {
        self.simulated.stream_source()
    }

    fn domain(&self) -> BackendResult<usize> {
        self.simulated.domain()
    }

    fn is_default_idle(&self) -> BackendResult<bool> {
        self.simulated.is_default_idle()
    }

    fn record_default(&self, event: Event) -> BackendResult<()> {
        self.simulated.record_default(event)?;
        self.has_recorded();
        Ok(())
    }

    fn wait_for_default(&self) -> BackendResult<()> {
        self.simulated.wait_for_default()
    }
}
