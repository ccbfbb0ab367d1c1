//! Memory in no stream's order: `cuMemAlloc`, `cuMemAllocPitch`, `cuMemFree`.

use super::retry::with_retry;
use crate::abi::{Address, SUCCESS};
use crate::pool::memory::{allocate, allocate_rows, free};
use crate::pool::{Answer, guarded};
use crate::real::call;
use std::ffi::{c_int, c_uint};

/// Allocates device memory.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuMemAlloc_v2(address: *mut Address, bytes: usize) -> c_int {
    // SAFETY: the caller's contract is the driver's. C callers may have aligned the result to less.
    unsafe {
        if !address.is_null() {
            match guarded(|| allocate(bytes)) {
                Answer::Served(block) => {
                    address.write_unaligned(block);
                    return SUCCESS;
                }
                Answer::Refused(code) => return code,
                Answer::Driver => {}
            }
        }
        // Pools of other contexts may hold what the device lacks.
        with_retry(|| call!(cuMemAlloc_v2(address, bytes)))
    }
}

/// Allocates device memory in rows.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuMemAllocPitch_v2(
    address: *mut Address,
    pitch: *mut usize,
    width: usize,
    height: usize,
    element: c_uint,
) -> c_int {
    // SAFETY: as above.
    unsafe {
        if !address.is_null() && !pitch.is_null() {
            match guarded(|| allocate_rows(width, height, element)) {
                Answer::Served((block, row)) => {
                    address.write_unaligned(block);
                    pitch.write_unaligned(row);
                    return SUCCESS;
                }
                Answer::Refused(code) => return code,
                Answer::Driver => {}
            }
        }
        with_retry(|| call!(cuMemAllocPitch_v2(address, pitch, width, height, element)))
    }
}

/// Frees device memory.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuMemFree_v2(address: Address) -> c_int {
    match guarded(|| free(address)) {
        Answer::Served(()) => SUCCESS,
        Answer::Refused(code) => code,
        // SAFETY: the caller's contract is the driver's.
        Answer::Driver => unsafe { call!(cuMemFree_v2(address)) },
    }
}
