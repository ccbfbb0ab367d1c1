//! How many blocks of a kernel run at once.

use super::launch::{LARGEST_CLUSTER, PORTABLE_CLUSTER};
use crate::abi::launch::{ATTRIBUTE_CLUSTER_DIMENSION, LaunchConfig};
use crate::driver;
use crate::entry::put;
use crate::launch::occupancy::Occupancy;
use crate::state::lock;
use crate::status::{Code, Result};
use std::slice;

/// `CU_OCCUPANCY_DISABLE_CACHING_OVERRIDE`, the only flag.
const FLAGS: u32 = 1;

/// A function on the current device.
fn occupancy(function: u64) -> Result<Occupancy> {
    let guard = lock();
    let device = guard.current_device()?;
    Ok(Occupancy {
        device,
        limits: guard.limits(function, device)?,
    })
}

/// A number that a program gave, which is not negative.
fn natural(number: i32) -> Result<u64> {
    u64::try_from(number).map_err(|_| Code::INVALID_VALUE)
}

/// Tells how many blocks run on a multiprocessor.
///
/// # Safety
/// The place is null or may be written to.
unsafe fn blocks(to: *mut i32, function: u64, threads: i32, shared: usize, flags: u32) -> Result {
    let threads = natural(threads)?;
    if threads == 0 || flags & !FLAGS != 0 {
        return Err(Code::INVALID_VALUE);
    }
    // SAFETY: the caller promises it.
    unsafe {
        put(
            to,
            occupancy(function)?.blocks(threads, shared as u64) as i32,
        )
    }
}

/// Tells the best size of a block, and how many of them fill the device.
///
/// # Safety
/// The places are null or may be written to, and the function takes a number of threads.
unsafe fn best(
    (grid, block): (*mut i32, *mut i32),
    function: u64,
    shared_of: Option<unsafe extern "C" fn(i32) -> usize>,
    shared: usize,
    limit: i32,
    flags: u32,
) -> Result {
    if flags & !FLAGS != 0 {
        return Err(Code::INVALID_VALUE);
    }
    let occupancy = occupancy(function)?;
    let (threads, blocks) = occupancy.best(natural(limit)?, |threads| match shared_of {
        // SAFETY: the caller promises it.
        Some(shared_of) => unsafe { shared_of(threads as i32) as u64 },
        None => shared as u64,
    });
    // SAFETY: the caller promises it.
    unsafe {
        put(grid, blocks as i32)?;
        put(block, threads as i32)
    }
}

driver! {
    fn cuOccupancyMaxActiveBlocksPerMultiprocessor(
        count: *mut i32, function: u64, threads: i32, shared: usize,
    ) {
        blocks(count, function, threads, shared, 0)
    }
    fn cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
        count: *mut i32, function: u64, threads: i32, shared: usize, flags: u32,
    ) {
        blocks(count, function, threads, shared, flags)
    }
    fn cuOccupancyMaxPotentialBlockSize(
        grid: *mut i32, block: *mut i32, function: u64,
        shared_of: Option<unsafe extern "C" fn(i32) -> usize>, shared: usize, limit: i32,
    ) {
        best((grid, block), function, shared_of, shared, limit, 0)
    }
    fn cuOccupancyMaxPotentialBlockSizeWithFlags(
        grid: *mut i32, block: *mut i32, function: u64,
        shared_of: Option<unsafe extern "C" fn(i32) -> usize>, shared: usize, limit: i32,
        flags: u32,
    ) {
        best((grid, block), function, shared_of, shared, limit, flags)
    }
    fn cuOccupancyAvailableDynamicSMemPerBlock(
        bytes: *mut usize, function: u64, count: i32, threads: i32,
    ) {
        let (count, threads) = (natural(count)?, natural(threads)?);
        let available = occupancy(function)?.available_shared(count, threads);
        put(bytes, available.ok_or(Code::INVALID_VALUE)? as usize)
    }
    fn cuOccupancyMaxPotentialClusterSize(
        size: *mut i32, function: u64, given: *const LaunchConfig,
    ) {
        given.as_ref().ok_or(Code::INVALID_VALUE)?;
        let is_portable = occupancy(function)?.limits.is_portable;
        put(size, if is_portable { PORTABLE_CLUSTER } else { LARGEST_CLUSTER } as i32)
    }
    fn cuOccupancyMaxActiveClusters(count: *mut i32, function: u64, given: *const LaunchConfig) {
        let given = given.as_ref().ok_or(Code::INVALID_VALUE)?;
        let occupancy = occupancy(function)?;
        let attributes = match given.attribute_count {
            0 => &[],
            _ if given.attributes.is_null() => return Err(Code::INVALID_VALUE),
            count => slice::from_raw_parts(given.attributes, count as usize),
        };
        let cluster = attributes.iter().find(|one| one.id == ATTRIBUTE_CLUSTER_DIMENSION);
        let [first, second, ..] = cluster.ok_or(Code::INVALID_CLUSTER_SIZE)?.value;
        let sizes = [first as u32, (first >> 32) as u32, second as u32];
        let blocks: u64 = sizes.iter().map(|&size| u64::from(size)).product();
        let most = if occupancy.limits.is_portable { PORTABLE_CLUSTER } else { LARGEST_CLUSTER };
        if blocks == 0 || blocks > most {
            return Err(Code::INVALID_CLUSTER_SIZE);
        }
        let threads = given.block.iter().map(|&size| u64::from(size)).product();
        let each = occupancy.blocks(threads, given.shared_bytes.into());
        put(count, (each * occupancy.multiprocessors() / blocks) as i32)
    }
}
