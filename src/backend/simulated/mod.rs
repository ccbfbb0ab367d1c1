#![forbid(unsafe_code)]
//! A device without memory: addresses that must not be touched, a capacity, and failures on
//! demand. For tests, for replaying traces, and to ask what a program would need.

mod calls;
mod stream;
mod world;

pub use stream::{
    DefaultStream, SimulatedContext, SimulatedGraph, SimulatedMoment, SimulatedStream,
};
pub use world::StreamCalls;

use super::streams::{Event, StreamSource, Streams};
use super::{Backend, BackendError, BackendResult, Memory, Pages, SEGMENT_ALIGN};
use crate::error::Status;
use crate::size::{GRAIN, round_up};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock};

/// Each device has addresses of its own, as devices of one process have: so many, the first of them
/// here.
const ADDRESSES: u64 = 1 << 48;
const FIRST_ADDRESS: u64 = 1 << 32;

/// Devices made so far. After some 65,000 their addresses begin anew.
static DEVICES: AtomicU64 = AtomicU64::new(0);

fn first_address() -> u64 {
    let device = DEVICES.fetch_add(1, Ordering::Relaxed) % (u64::MAX / ADDRESSES - 1);
    device * ADDRESSES + FIRST_ADDRESS
}

fn pairs(map: &BTreeMap<u64, u64>) -> Vec<(u64, u64)> {
    map.iter().map(|(&addr, &len)| (addr, len)).collect()
}

/// The simulated streams of the process.
pub(super) fn streams() -> &'static dyn Streams {
    &calls::SimulatedStreams
}

/// A simulated device. It never gives an address twice.
#[derive(Debug)]
pub struct SimulatedBackend {
    capacity: u64,
    pages: Option<Pages>,
    knows_free: bool,
    state: Mutex<State>,
    source: StreamSource,
    context: OnceLock<SimulatedContext>,
}

#[derive(Debug)]
struct State {
    next_address: u64,
    used: u64,
    /// Address to length.
    segments: BTreeMap<u64, u64>,
    /// Address to length.
    ranges: BTreeMap<u64, u64>,
    /// Memory in ranges: address to length, adjacent ones joined.
    mapped: BTreeMap<u64, u64>,
    calls: u64,
    /// The call that fails, counted as `calls`, and how.
    failure: Option<(u64, BackendError)>,
    /// What was asked of it that no pool may ask.
    violations: Vec<String>,
}

impl SimulatedBackend {
    /// A device of `capacity` bytes with pages, as the host backend has them.
    pub fn new(capacity: u64) -> Self {
        Self {
            capacity,
            pages: Some(Pages {
                map: GRAIN,
                unmap: SEGMENT_ALIGN,
                finest: SEGMENT_ALIGN,
            }),
            knows_free: true,
            state: Mutex::new(State {
                next_address: first_address(),
                used: 0,
                segments: BTreeMap::new(),
                ranges: BTreeMap::new(),
                mapped: BTreeMap::new(),
                calls: 0,
                failure: None,
                violations: Vec::new(),
            }),
            source: StreamSource::Immediate,
            context: OnceLock::new(),
        }
    }

    /// A device of `capacity` bytes that gives whole segments only.
    pub fn without_pages(capacity: u64) -> Self {
        Self {
            pages: None,
            ..Self::new(capacity)
        }
    }

    /// A device of `capacity` bytes with these pages, as CUDA's virtual memory has them: memory comes
    /// and goes in whole ones only.
    pub fn with_pages(capacity: u64, pages: Pages) -> Self {
        Self {
            pages: Some(pages),
            ..Self::new(capacity)
        }
    }

    /// The same, which others use, too: what it has left is found out by asking for it, as with CUDA's
    /// devices.
    #[must_use]
    pub fn shared(self) -> Self {
        Self {
            knows_free: false,
            ..self
        }
    }

    /// The same, used by simulated streams. Its context becomes the calling thread's current one.
    #[must_use]
    pub fn with_streams(self) -> Self {
        self.context().make_current();
        Self {
            source: StreamSource::Simulated,
            ..self
        }
    }

    /// Its context.
    pub fn context(&self) -> SimulatedContext {
        *self.context.get_or_init(SimulatedContext::create)
    }

    /// Its default stream.
    pub fn default_stream(&self) -> DefaultStream {
        self.context().default_stream()
    }

    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.state
            .lock()
            .unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// Makes the `n`-th call from now on (1: the next one) fail once, changing nothing.
    pub fn fail_call(&self, n: u64, error: BackendError) {
        let mut state = self.state();
        state.failure = Some((state.calls + n, error));
    }

    /// Calls so far, failed ones too.
    pub fn calls(&self) -> u64 {
        self.state().calls
    }

    /// Bytes of memory that it has given and not taken back.
    pub fn used(&self) -> u64 {
        self.state().used
    }

    /// Segments and ranges that it has given and not taken back.
    pub fn grants(&self) -> usize {
        let state = self.state();
        state.segments.len() + state.ranges.len()
    }

    /// The segments that it has given and not taken back: addresses and lengths, ascending.
    pub fn segments(&self) -> Vec<(u64, u64)> {
        pairs(&self.state().segments)
    }

    /// The ranges that it has given and not taken back: addresses and lengths, ascending.
    pub fn ranges(&self) -> Vec<(u64, u64)> {
        pairs(&self.state().ranges)
    }

    /// The parts of ranges that have memory: addresses and lengths, ascending, adjacent ones joined.
    pub fn mapped(&self) -> Vec<(u64, u64)> {
        pairs(&self.state().mapped)
    }

    /// What was asked of it that no pool may ask, in words.
    pub fn violations(&self) -> Vec<String> {
        self.state().violations.clone()
    }
}

impl State {
    fn begin_call(&mut self) -> BackendResult<()> {
        self.calls += 1;
        match self.failure.take_if(|(call, _)| *call == self.calls) {
            Some((_, error)) => Err(error),
            None => Ok(()),
        }
    }

    fn violation<T>(&mut self, what: String) -> BackendResult<T> {
        self.violations.push(what.clone());
        Err(BackendError::failed(Status::Driver, what))
    }

    fn take(&mut self, bytes: u64, capacity: u64) -> BackendResult<()> {
        match self.used.checked_add(bytes) {
            Some(used) if used <= capacity => {
                self.used = used;
                Ok(())
            }
            _ => Err(BackendError::OutOfMemory),
        }
    }

    /// Addresses with a gap behind them, so that no two grants touch.
    fn grant(&mut self, bytes: u64) -> BackendResult<u64> {
        let addr = self.next_address;
        self.next_address = addr
            .checked_add(bytes)
            .and_then(|end| round_up(end, SEGMENT_ALIGN)?.checked_add(SEGMENT_ALIGN))
            .ok_or(BackendError::OutOfMemory)?;
        Ok(addr)
    }

    /// Bytes of `addr..addr + bytes` that have memory.
    fn mapped_in(&self, addr: u64, bytes: u64) -> u64 {
        let end = addr + bytes;
        self.mapped
            .range(..end)
            .rev()
            .map(|(&from, &len)| (from.max(addr), (from + len).min(end)))
            .take_while(|(from, to)| from < to)
            .map(|(from, to)| to - from)
            .sum()
    }

    fn in_range(&self, addr: u64, bytes: u64) -> bool {
        self.ranges
            .range(..=addr)
            .next_back()
            .is_some_and(|(&base, &len)| addr + bytes <= base + len)
    }

    /// Takes the memory from `addr..addr + bytes`, wherever there is some.
    fn clear_mapped(&mut self, addr: u64, bytes: u64) {
        let end = addr + bytes;
        while let Some((&from, &len)) = self.mapped.range(..end).next_back() {
            if from + len <= addr {
                break;
            }
            self.mapped.remove(&from);
            if from < addr {
                self.mapped.insert(from, addr - from);
            }
            if from + len > end {
                self.mapped.insert(end, from + len - end);
            }
            if from <= addr {
                break;
            }
        }
    }
}

impl Backend for SimulatedBackend {
    fn name(&self) -> &'static str {
        "simulated"
    }

    fn is_host_accessible(&self) -> bool {
        false
    }

    fn memory(&self) -> BackendResult<Option<Memory>> {
        let used = self.state().used;
        Ok(Some(Memory {
            free: self.capacity.saturating_sub(used),
            total: self.capacity,
        }))
    }

    fn outlives_reset(&self) -> bool {
        true
    }

    fn device_key(&self) -> Option<u64> {
        // An address of the host, so that no number of another kind of device is the same.
        Some(std::ptr::from_ref(self) as u64)
    }

    fn known_free(&self) -> Option<u64> {
        let used = self.state().used;
        self.knows_free.then(|| self.capacity.saturating_sub(used))
    }

    fn segment_align(&self) -> u64 {
        SEGMENT_ALIGN
    }

    fn allocate(&self, bytes: u64) -> BackendResult<u64> {
        let mut state = self.state();
        state.begin_call()?;
        state.take(bytes, self.capacity)?;
        match state.grant(bytes) {
            Ok(addr) => {
                state.segments.insert(addr, bytes);
                Ok(addr)
            }
            Err(error) => {
                state.used -= bytes;
                Err(error)
            }
        }
    }

    fn release(&self, addr: u64, bytes: u64) -> BackendResult<()> {
        let mut state = self.state();
        state.begin_call()?;
        if state.segments.get(&addr) != Some(&bytes) {
            return state.violation(format!(
                "release of {bytes} bytes at {addr:#x}: no such segment"
            ));
        }
        state.segments.remove(&addr);
        state.used -= bytes;
        Ok(())
    }

    fn pages(&self) -> Option<Pages> {
        self.pages
    }

    fn reserve(&self, least: u64) -> BackendResult<(u64, u64)> {
        let mut state = self.state();
        state.begin_call()?;
        // Plenty of addresses, but few enough for many ranges.
        let span = self
            .capacity
            .saturating_mul(4)
            .clamp(SEGMENT_ALIGN, 1 << 46)
            .max(least);
        let span = round_up(span, SEGMENT_ALIGN).ok_or(BackendError::OutOfMemory)?;
        let addr = state.grant(span)?;
        state.ranges.insert(addr, span);
        Ok((addr, span))
    }

    fn unreserve(&self, addr: u64, span: u64, mapped: u64) -> BackendResult<()> {
        let mut state = self.state();
        state.begin_call()?;
        if state.ranges.get(&addr) != Some(&span) || state.mapped_in(addr, span) != mapped {
            return state.violation(format!(
                "unreserve of {span} bytes at {addr:#x} with {mapped} mapped: no such range"
            ));
        }
        state.clear_mapped(addr, span);
        state.ranges.remove(&addr);
        state.used -= mapped;
        Ok(())
    }

    fn map(&self, addr: u64, bytes: u64) -> BackendResult<()> {
        let mut state = self.state();
        state.begin_call()?;
        let page = self.pages.map_or(GRAIN, |pages| pages.map);
        let is_whole = addr % page == 0 && bytes % page == 0;
        if !is_whole || !state.in_range(addr, bytes) || state.mapped_in(addr, bytes) != 0 {
            return state.violation(format!(
                "map of {bytes} bytes at {addr:#x}: not free addresses, or no whole pages"
            ));
        }
        state.take(bytes, self.capacity)?;
        let before = state
            .mapped
            .range(..addr)
            .next_back()
            .map(|(&from, &len)| (from, len));
        match before {
            Some((from, len)) if from + len == addr => {
                state.mapped.insert(from, len + bytes);
            }
            _ => {
                state.mapped.insert(addr, bytes);
            }
        }
        Ok(())
    }

    fn unmap(&self, addr: u64, bytes: u64) -> BackendResult<()> {
        let mut state = self.state();
        state.begin_call()?;
        let page = self.pages.map_or(GRAIN, |pages| pages.finest);
        let is_whole = addr % page == 0 && bytes % page == 0;
        if !is_whole || state.mapped_in(addr, bytes) != bytes {
            return state.violation(format!(
                "unmap of {bytes} bytes at {addr:#x}: not all mapped, or no whole pages"
            ));
        }
        state.clear_mapped(addr, bytes);
        state.used -= bytes;
        Ok(())
    }

    fn stream_source(&self) -> StreamSource {
        self.source
    }

    fn domain(&self) -> BackendResult<usize> {
        Ok(self.context().domain())
    }

    fn is_default_idle(&self) -> BackendResult<bool> {
        world::world().is_default_idle(self.context().domain())
    }

    fn record_default(&self, event: Event) -> BackendResult<()> {
        world::world().record_default(self.context().domain(), event)
    }

    fn wait_for_default(&self) -> BackendResult<()> {
        world::world().wait_for_default(self.context().domain())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_counted_and_misuse_is_seen() {
        let device = SimulatedBackend::new(8 << 20);
        let (addr, span) = device.reserve(1 << 20).unwrap();
        device.map(addr, 2 << 20).unwrap();
        device.map(addr + (2 << 20), 4 << 20).unwrap();
        device.unmap(addr + (2 << 20), 2 << 20).unwrap();
        assert_eq!(device.used(), 4 << 20);
        assert_eq!(device.violations(), [""; 0]);
        assert!(device.map(addr, 256).is_err());
        assert!(device.map(addr + (2 << 20), 100).is_err());
        assert!(device.unmap(addr + (2 << 20), 2 << 20).is_err());
        assert!(device.unmap(addr + 256, 1 << 20).is_err());
        assert!(device.unreserve(addr, span, 0).is_err());
        assert_eq!(device.violations().len(), 5);
        device.unreserve(addr, span, 4 << 20).unwrap();
        assert_eq!((device.used(), device.grants()), (0, 0));
    }

    #[test]
    fn whole_pages_only_are_mapped_where_the_device_has_them() {
        let page = 2 << 20;
        let device = SimulatedBackend::with_pages(8 << 20, Pages::of(page));
        let (addr, span) = device.reserve(page).unwrap();
        device.map(addr, 2 * page).unwrap();
        assert!(device.map(addr + 2 * page, page / 2).is_err());
        assert!(device.unmap(addr, page / 2).is_err());
        assert_eq!(device.violations().len(), 2);
        device.unmap(addr, page).unwrap();
        device.unreserve(addr, span, page).unwrap();
    }

    #[test]
    fn the_chosen_call_fails_once() {
        let device = SimulatedBackend::without_pages(1 << 20);
        device.fail_call(2, BackendError::OutOfMemory);
        let first = device.allocate(256).unwrap();
        assert_eq!(device.allocate(256), Err(BackendError::OutOfMemory));
        assert!(device.allocate(256).unwrap() > first);
        assert_eq!((device.calls(), device.used()), (3, 512));
    }
}
