//! Memory in no stream's order.

use super::{ALIGNMENT, Answer, allocate_with_retry, current, has_ended, is_limited};
use crate::abi::{Address, INVALID_VALUE, OUT_OF_MEMORY, UNKNOWN};
use crate::report;
use crate::switch::{Mode, mode};
use luma::alloc::Located;
use luma::pool::defaults;
use luma::{Error, Status};
use std::ffi::c_uint;

/// `cuMemAlloc`. Whatever the pool cannot do for another reason than its limit, the driver is asked for.
#[inline]
pub fn allocate(bytes: usize) -> Answer<Address> {
    report::reached();
    if mode() == Mode::Off || bytes == 0 {
        return Answer::Driver;
    }
    let Some(pool) = current() else {
        return Answer::Driver;
    };
    let lacks_memory = |error: &Error| error.status() == Status::OutOfMemory;
    let served = allocate_with_retry(pool, bytes, lacks_memory, || {
        pool.allocate_unordered(bytes as u64, ALIGNMENT)
    });
    match served {
        Ok(Some(address)) => Answer::Served(address),
        Err(error) if lacks_memory(&error) && is_limited(pool) => Answer::Refused(OUT_OF_MEMORY),
        Ok(None) | Err(_) => Answer::Driver,
    }
}

/// `cuMemAllocPitch`: the address, and the bytes from one row to the next.
pub fn allocate_rows(width: usize, height: usize, element: c_uint) -> Answer<(Address, usize)> {
    // What the driver refuses, or does not document, is for the driver to answer.
    if !matches!(element, 4 | 8 | 16) || width == 0 || height == 0 {
        return Answer::Driver;
    }
    let pitch = width.checked_next_multiple_of(ALIGNMENT as usize);
    let Some((pitch, bytes)) = pitch.and_then(|pitch| Some((pitch, pitch.checked_mul(height)?)))
    else {
        return Answer::Driver;
    };
    match allocate(bytes) {
        Answer::Served(address) => Answer::Served((address, pitch)),
        Answer::Refused(code) => Answer::Refused(code),
        Answer::Driver => Answer::Driver,
    }
}

/// `cuMemFree`.
#[inline]
pub fn free(address: Address) -> Answer<()> {
    if address == 0 || mode() == Mode::Off || has_ended() {
        return Answer::Driver;
    }
    let Some(pool) = defaults::of_address(address) else {
        return Answer::Driver;
    };
    if mode() == Mode::Wait && pool.marks(address).is_some() {
        // Where that fails, the block still serves nobody before the work is done.
        let _ = pool.wait_for_work();
    }
    match pool.free_unordered(address) {
        Ok(()) => Answer::Served(()),
        Err(error) if error.status() == Status::InvalidPointer => match pool.locate(address) {
            Located::Foreign => Answer::Driver,
            _ => Answer::Refused(INVALID_VALUE),
        },
        Err(_) => Answer::Refused(UNKNOWN),
    }
}
