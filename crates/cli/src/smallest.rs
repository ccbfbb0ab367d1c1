//! The smallest device on which a trace completes.

use std::ptr;

use anyhow::Result;

use crate::measure::replay;
use crate::pool::{Pool, Setup};
use crate::program::Program;

/// Devices are tried in steps of this many bytes.
pub const RESOLUTION: u64 = 64 << 10;
/// No device is larger. A trace that does not complete here asks for what cannot be had.
const LARGEST: u64 = 1 << 50;

/// The capacity, a multiple of [`RESOLUTION`], at which bisection sees the trace complete and one
/// step below which it does not; `None` where it completes on no device.
///
/// Bisection takes it that what completes on a device completes on a larger one.
pub fn smallest_capacity(program: &Program, setup: &Setup) -> Result<Option<u64>> {
    let completes = |steps: u64| {
        let pool = Pool::create(&Setup {
            capacity: steps * RESOLUTION,
            ..*setup
        })?;
        let mut table = vec![ptr::null_mut(); program.slots];
        anyhow::Ok(replay(program, &pool, &mut table)?.is_ok())
    };

    // No device below the peak can do, whatever the allocator.
    let floor = program.peak_live.div_ceil(RESOLUTION).max(1);
    let most = LARGEST / RESOLUTION;
    if floor > most {
        return Ok(None);
    }
    let mut enough = floor;
    loop {
        if completes(enough)? {
            break;
        }
        if enough == most {
            return Ok(None);
        }
        enough = (enough * 2).min(most);
    }
    let mut too_small = floor - 1;
    while enough - too_small > 1 {
        let middle = too_small + (enough - too_small) / 2;
        if completes(middle)? {
            enough = middle;
        } else {
            too_small = middle;
        }
    }
    Ok(Some(enough * RESOLUTION))
}
