//! Waits for values in memory, and writes of them, as operations of a stream.

use super::{Kind, StreamId};
use crate::environment::environment;
use crate::memory;
use crate::state::{self, State};
use crate::status::{Code, Result};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

/// How wide a value is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Width {
    Bits32,
    Bits64,
}

impl Width {
    fn bytes(self) -> u64 {
        match self {
            Self::Bits32 => 4,
            Self::Bits64 => 8,
        }
    }
}

/// `CUstreamWaitValue_flags` without the flush, which has nothing to do here.
const WAIT_FLUSH: u32 = 1 << 30;
/// `CU_STREAM_WRITE_VALUE_NO_MEMORY_BARRIER`.
const WRITE_NO_BARRIER: u32 = 1;

fn load(address: u64, width: Width) -> u64 {
    let place = memory::host(address);
    // SAFETY: the range was checked when the operation was queued, is aligned, and the program keeps the
    // memory until the operation is done.
    unsafe {
        match width {
            Width::Bits32 => u64::from((*place.cast::<AtomicU32>()).load(Ordering::Acquire)),
            Width::Bits64 => (*place.cast::<AtomicU64>()).load(Ordering::Acquire),
        }
    }
}

fn store(address: u64, width: Width, value: u64) {
    let place = memory::host(address);
    // SAFETY: as for `load`.
    unsafe {
        match width {
            Width::Bits32 => (*place.cast::<AtomicU32>()).store(value as u32, Ordering::Release),
            Width::Bits64 => (*place.cast::<AtomicU64>()).store(value, Ordering::Release),
        }
    }
}

/// Whether a value is what `CUstreamWaitValue_flags` ask for.
fn is_met(condition: u32, width: Width, found: u64, wanted: u64) -> bool {
    match (condition, width) {
        (0, Width::Bits32) => (found as u32).wrapping_sub(wanted as u32) as i32 >= 0,
        (0, Width::Bits64) => found.wrapping_sub(wanted) as i64 >= 0,
        (1, _) => found == wanted,
        (2, _) => found & wanted != 0,
        (_, Width::Bits32) => !((found | wanted) as u32) != 0,
        (_, Width::Bits64) => !(found | wanted) != 0,
    }
}

fn wait_for(address: u64, width: Width, wanted: u64, condition: u32) {
    const PAUSE: Duration = Duration::from_micros(50);
    while !is_met(condition, width, load(address, width), wanted) {
        std::thread::sleep(PAUSE);
        if environment().lazy {
            // Any queued work may be what writes the value.
            state::lock().exec.demand_all();
        }
    }
}

impl State {
    fn check_value(&self, stream: StreamId, address: u64, width: Width) -> Result {
        if address == 0 || address % width.bytes() != 0 {
            return Err(Code::INVALID_VALUE);
        }
        let context = self.stream_context(stream)?;
        // Host memory has to be page-locked.
        self.check_device_access(context, address, width.bytes(), memory::Access::Write)
    }

    /// `cuStreamWaitValue`: what follows waits until memory holds a value.
    pub fn wait_value(
        &mut self,
        stream: StreamId,
        address: u64,
        width: Width,
        value: u64,
        flags: u32,
    ) -> Result {
        let condition = flags & !WAIT_FLUSH;
        if condition > 3 {
            return Err(Code::INVALID_VALUE);
        }
        self.check_value(stream, address, width)?;
        let value = if width == Width::Bits32 {
            u64::from(value as u32)
        } else {
            value
        };
        let work = Arc::new(move || wait_for(address, width, value, condition));
        self.submit_as(stream, Kind::Other, work).map(drop)
    }

    /// `cuStreamWriteValue`.
    pub fn write_value(
        &mut self,
        stream: StreamId,
        address: u64,
        width: Width,
        value: u64,
        flags: u32,
    ) -> Result {
        if flags & !WRITE_NO_BARRIER != 0 {
            return Err(Code::INVALID_VALUE);
        }
        self.check_value(stream, address, width)?;
        let work = Arc::new(move || store(address, width, value));
        self.submit_as(stream, Kind::Other, work).map(drop)
    }
}
