//! What programs ask about memory.
//!
//! To the driver a block of the pool's is a part of a segment. What it says of the segment (its kind, its
//! device, its range, its number) holds for the block, and is given on; where no block lives, an address is
//! nobody's.

use super::share::is_known_base;
use crate::abi::{Address, SUCCESS};
use crate::pool::about::{Block, Place, memory, place};
use crate::pool::{Answer, guarded};
use crate::real::{call, extra};
use crate::switch::is_on;
use std::ffi::{c_int, c_uint, c_void};

/// `CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE`.
const IS_LEGACY_IPC_CAPABLE: c_int = 10;
/// `CU_POINTER_ATTRIBUTE_RANGE_START_ADDR`.
const RANGE_START: c_int = 11;
/// `CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE`.
const POOL: c_int = 17;

/// An address that is nobody's.
const NOWHERE: Address = 8;

/// What lies at an address, and the address to ask the driver about.
fn find(address: Address) -> (Place, Address) {
    let found = guarded(|| Answer::Served(place(address)));
    match found {
        // Where a segment begins that the program has asked for, it is asked about the segment.
        Answer::Served(Place::Nowhere) if is_known_base(address) => (Place::Foreign, address),
        Answer::Served(place @ Place::Nowhere) => (place, NOWHERE),
        Answer::Served(place) => (place, address),
        Answer::Refused(_) | Answer::Driver => (Place::Foreign, address),
    }
}

/// Free and all bytes of the current context's device.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuMemGetInfo_v2(free: *mut usize, total: *mut usize) -> c_int {
    // SAFETY: the caller's contract is the driver's, which has taken the pointers. C callers may have aligned
    // them to less.
    unsafe {
        let (mut all_free, mut all) = (0, 0);
        // The driver's answer to the program's own arguments is the code; the figures are asked for apart,
        // since one of the pointers may be null.
        let code = call!(cuMemGetInfo_v2(free, total));
        if code != SUCCESS
            || !is_on()
            || call!(cuMemGetInfo_v2(&raw mut all_free, &raw mut all)) != SUCCESS
        {
            return code;
        }
        if let Answer::Served((for_program, all)) =
            guarded(|| Answer::Served(memory(all_free, all)))
        {
            if !free.is_null() {
                free.write_unaligned(for_program);
            }
            if !total.is_null() {
                total.write_unaligned(all);
            }
        }
        code
    }
}

/// The allocation that an address lies in: of a block, its segment.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuMemGetAddressRange_v2(
    base: *mut Address,
    bytes: *mut usize,
    address: Address,
) -> c_int {
    let (place, asked) = find(address);
    // SAFETY: the caller's contract is the driver's.
    let code = unsafe { call!(cuMemGetAddressRange_v2(base, bytes, asked)) };
    if let (Place::Block(block), SUCCESS, false) = (place, code, base.is_null()) {
        block.note_range_asked();
    }
    code
}

/// What is said of a block otherwise than the driver says it of the segment.
///
/// # Safety
/// `value` is null or valid for writing what the attribute is.
unsafe fn adapt(block: Block, attribute: c_int, value: *mut c_void) {
    if value.is_null() {
        return;
    }
    match attribute {
        RANGE_START => block.note_range_asked(),
        POOL if block.is_ordered() => {
            if let Some(pool) = block.device().and_then(extra::default_pool_of) {
                // SAFETY: the caller's contract: a handle.
                unsafe { value.cast::<usize>().write_unaligned(pool) };
            }
        }
        IS_LEGACY_IPC_CAPABLE if block.is_ordered() => {
            // SAFETY: the caller's contract: a truth value, of one byte.
            unsafe { value.cast::<u8>().write(0) };
        }
        _ => {}
    }
}

/// A property of an address.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuPointerGetAttribute(
    value: *mut c_void,
    attribute: c_int,
    address: Address,
) -> c_int {
    let (place, asked) = find(address);
    // SAFETY: the caller's contract is the driver's, which has taken the pointer.
    unsafe {
        let code = call!(cuPointerGetAttribute(value, attribute, asked));
        if let (Place::Block(block), SUCCESS) = (place, code) {
            adapt(block, attribute, value);
        }
        code
    }
}

/// Properties of an address.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuPointerGetAttributes(
    count: c_uint,
    attributes: *mut c_int,
    values: *mut *mut c_void,
    address: Address,
) -> c_int {
    let (place, asked) = find(address);
    // SAFETY: the caller's contract is the driver's, which has taken the pointers: each list has `count`
    // entries.
    unsafe {
        let code = call!(cuPointerGetAttributes(count, attributes, values, asked));
        if let (Place::Block(block), SUCCESS) = (place, code) {
            for at in 0..count as usize {
                adapt(
                    block,
                    attributes.add(at).read_unaligned(),
                    values.add(at).read_unaligned(),
                );
            }
        }
        code
    }
}
