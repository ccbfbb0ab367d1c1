//! A simulated device that writes down what a pool does to it.

use super::intervals::Intervals;
use luma::backend::simulated::SimulatedBackend;
use luma::backend::{Backend, BackendResult, Memory, Pages};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard};

/// The device of a run.
#[derive(Debug)]
pub struct Watched {
    pub device: SimulatedBackend,
    seen: Mutex<Seen>,
}

/// What a pool did.
#[derive(Clone, Debug, Default)]
pub struct Seen {
    /// Segments and ranges that the pool holds: address to length.
    pub grants: BTreeMap<u64, u64>,
    /// Of those, the ranges.
    pub ranges: BTreeSet<u64>,
    /// Memory that the pool holds.
    pub memory: Intervals,
    /// Successful calls of `allocate` and `reserve`.
    pub granted: u64,
    /// Successful calls of `release` and `unreserve`.
    pub returned: u64,
    /// The most memory since [`Watched::begin`] or a reset of the peak.
    pub most: u64,
    /// The largest piece of memory that the pool got since [`Watched::begin`].
    pub largest_step: u64,
    /// Whether memory went since [`Watched::begin`].
    pub gave_back: bool,
    /// Live blocks, as the interpreter knows them.
    pub live: Intervals,
    /// The pool's limit at the moment.
    pub limit: u64,
    /// What no pool may do.
    pub faults: Vec<String>,
}

impl Seen {
    fn got(&mut self, addr: u64, bytes: u64) {
        if self.memory.touches((addr, addr + bytes)) {
            self.faults
                .push(format!("{bytes} bytes at {addr:#x} got memory twice"));
        }
        self.memory.add((addr, addr + bytes));
        self.largest_step = self.largest_step.max(bytes);
        let held = self.memory.bytes();
        self.most = self.most.max(held);
        if held > self.limit {
            let limit = self.limit;
            self.faults
                .push(format!("{held} bytes held with a limit of {limit}"));
        }
    }

    fn lost(&mut self, addr: u64, bytes: u64) {
        if self.live.touches((addr, addr + bytes)) {
            self.faults.push(format!(
                "{bytes} bytes at {addr:#x} given back under a live block"
            ));
        }
        self.memory.remove((addr, addr + bytes));
        self.gave_back = true;
    }
}

impl Watched {
    pub fn new(device: SimulatedBackend, limit: u64) -> Self {
        Self {
            device,
            seen: Mutex::new(Seen {
                limit,
                ..Seen::default()
            }),
        }
    }

    pub fn seen(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().expect("nothing panics under this lock")
    }

    /// Forgets what concerns one operation.
    pub fn begin(&self) {
        let mut seen = self.seen();
        seen.largest_step = 0;
        seen.gave_back = false;
    }
}

impl Backend for Watched {
    fn name(&self) -> &'static str {
        self.device.name()
    }

    fn is_host_accessible(&self) -> bool {
        self.device.is_host_accessible()
    }

    fn memory(&self) -> BackendResult<Option<Memory>> {
        self.device.memory()
    }

    fn known_free(&self) -> Option<u64> {
        self.device.known_free()
    }

    fn segment_align(&self) -> u64 {
        self.device.segment_align()
    }

    fn allocate(&self, bytes: u64) -> BackendResult<u64> {
        let addr = self.device.allocate(bytes)?;
        let mut seen = self.seen();
        seen.granted += 1;
        seen.grants.insert(addr, bytes);
        seen.got(addr, bytes);
        Ok(addr)
    }

    fn release(&self, addr: u64, bytes: u64) -> BackendResult<()> {
        self.device.release(addr, bytes)?;
        let mut seen = self.seen();
        seen.returned += 1;
        seen.grants.remove(&addr);
        seen.lost(addr, bytes);
        Ok(())
    }

    fn pages(&self) -> Option<Pages> {
        self.device.pages()
    }

    fn reserve(&self, least: u64) -> BackendResult<(u64, u64)> {
        let (addr, span) = self.device.reserve(least)?;
        let mut seen = self.seen();
        seen.granted += 1;
        seen.grants.insert(addr, span);
        seen.ranges.insert(addr);
        Ok((addr, span))
    }

    fn unreserve(&self, addr: u64, span: u64, mapped: u64) -> BackendResult<()> {
        self.device.unreserve(addr, span, mapped)?;
        let mut seen = self.seen();
        seen.returned += 1;
        seen.grants.remove(&addr);
        seen.ranges.remove(&addr);
        seen.lost(addr, span);
        Ok(())
    }

    fn map(&self, addr: u64, bytes: u64) -> BackendResult<()> {
        self.device.map(addr, bytes)?;
        self.seen().got(addr, bytes);
        Ok(())
    }

    fn unmap(&self, addr: u64, bytes: u64) -> BackendResult<()> {
        self.device.unmap(addr, bytes)?;
        self.seen().lost(addr, bytes);
        Ok(())
    }
}
