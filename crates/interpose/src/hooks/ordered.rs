//! Memory in the order of streams: `cuMemAllocAsync`, `cuMemAllocFromPoolAsync`, `cuMemFreeAsync`.

use super::retry::with_retry;
use crate::abi::{Address, Handle, SUCCESS};
use crate::pool::ordered::{allocate, free};
use crate::pool::{Answer, guarded};
use crate::real::{call, extra};
use luma::backend::streams::Stream;
use std::ffi::c_int;

/// The stream that a handle means where the default stream is the thread's own.
pub(super) fn own(stream: Handle) -> Stream {
    match stream {
        0 => Stream::PER_THREAD,
        other => Stream::of(other),
    }
}

/// Serves an allocation, or asks the driver for it. `is_here`: of memory of the current context's device.
///
/// # Safety
/// `address` is null or valid for writing.
unsafe fn serve(
    address: *mut Address,
    bytes: usize,
    stream: Stream,
    is_here: bool,
    driver: impl Fn() -> c_int,
) -> c_int {
    if !address.is_null() {
        match guarded(|| allocate(bytes, stream, is_here)) {
            Answer::Served(block) => {
                // SAFETY: it is not null. C callers may have aligned it to less.
                unsafe { address.write_unaligned(block) };
                return SUCCESS;
            }
            Answer::Refused(code) => return code,
            Answer::Driver => {}
        }
    }
    with_retry(driver)
}

/// Frees what is the pool's, or asks the driver to free it.
fn give(address: Address, stream: Stream, driver: impl Fn() -> c_int) -> c_int {
    let about_stream = || extra::about_stream(stream.0);
    let is_captured = || extra::is_capturing(stream.0);
    match guarded(|| free(address, stream, about_stream, is_captured)) {
        Answer::Served(()) => SUCCESS,
        Answer::Refused(code) => code,
        Answer::Driver => driver(),
    }
}

/// Allocates device memory in the order of a stream.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuMemAllocAsync(
    address: *mut Address,
    bytes: usize,
    stream: Handle,
) -> c_int {
    // SAFETY: the caller's contract is the driver's, here and below.
    unsafe {
        serve(address, bytes, Stream::of(stream), false, || {
            call!(cuMemAllocAsync(address, bytes, stream))
        })
    }
}

/// Allocates device memory in the order of a stream, where the default stream is the thread's own.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuMemAllocAsync_ptsz(
    address: *mut Address,
    bytes: usize,
    stream: Handle,
) -> c_int {
    // SAFETY: as above.
    unsafe {
        serve(address, bytes, own(stream), false, || {
            call!(cuMemAllocAsync_ptsz(address, bytes, stream))
        })
    }
}

/// Allocates device memory of a pool in the order of a stream.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuMemAllocFromPoolAsync(
    address: *mut Address,
    bytes: usize,
    pool: Handle,
    stream: Handle,
) -> c_int {
    // SAFETY: as above.
    unsafe {
        let driver = || call!(cuMemAllocFromPoolAsync(address, bytes, pool, stream));
        if extra::is_default_pool(pool) {
            serve(address, bytes, Stream::of(stream), true, driver)
        } else {
            with_retry(driver)
        }
    }
}

/// Allocates device memory of a pool in the order of a stream, where the default stream is the thread's own.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuMemAllocFromPoolAsync_ptsz(
    address: *mut Address,
    bytes: usize,
    pool: Handle,
    stream: Handle,
) -> c_int {
    // SAFETY: as above.
    unsafe {
        let driver = || call!(cuMemAllocFromPoolAsync_ptsz(address, bytes, pool, stream));
        if extra::is_default_pool(pool) {
            serve(address, bytes, own(stream), true, driver)
        } else {
            with_retry(driver)
        }
    }
}

/// Frees memory in the order of a stream.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuMemFreeAsync(address: Address, stream: Handle) -> c_int {
    // SAFETY: as above.
    give(address, Stream::of(stream), || unsafe {
        call!(cuMemFreeAsync(address, stream))
    })
}

/// Frees memory in the order of a stream, where the default stream is the thread's own.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuMemFreeAsync_ptsz(address: Address, stream: Handle) -> c_int {
    // SAFETY: as above.
    give(address, own(stream), || unsafe {
        call!(cuMemFreeAsync_ptsz(address, stream))
    })
}
