//! Memory for other processes, and what programs set of the driver's pools.

use crate::abi::{Address, Device, Handle, INVALID_VALUE, NOT_SUPPORTED, SUCCESS};
use crate::pool::about::{Place, is_known, place};
use crate::pool::{Answer, give_back, guarded, ordered, share};
use crate::real::{call, extra};
use std::ffi::{c_int, c_void};

/// The driver's allocation that an address lies in: its first address, and its bytes.
fn segment_of(address: Address) -> Option<(Address, usize)> {
    let (mut base, mut bytes) = (0, 0);
    // SAFETY: the out-parameters are valid for writing.
    let code = unsafe {
        call!(cuMemGetAddressRange_v2(
            &raw mut base,
            &raw mut bytes,
            address
        ))
    };
    (code == SUCCESS).then_some((base, bytes))
}

/// Whether the driver's allocation begins at an address, and the program was told of it by a block in it.
pub fn is_known_base(address: Address) -> bool {
    segment_of(address).is_some_and(|(base, bytes)| {
        base == address && is_known(base, base.saturating_add(bytes as u64))
    })
}

/// Whether a handle may be made of what an address lies in.
fn may_export(address: Address) -> Answer<()> {
    match place(address) {
        Place::Foreign => Answer::Served(()),
        // The segment itself, as the program was told of it.
        Place::Nowhere if is_known_base(address) => Answer::Served(()),
        Place::Nowhere => Answer::Refused(INVALID_VALUE),
        // The driver makes no such handles of this kind of memory.
        Place::Block(block) if block.is_ordered() => Answer::Refused(INVALID_VALUE),
        // A handle names a segment. Who opens it gets the segment's first address: the block's, or the program
        // knows how far from it the block is.
        Place::Block(block) if block.is_range_asked() => Answer::Served(()),
        Place::Block(_) if segment_of(address).is_some_and(|(base, _)| base == address) => {
            Answer::Served(())
        }
        Place::Block(_) => {
            share::tell_refused();
            Answer::Refused(NOT_SUPPORTED)
        }
    }
}

/// A handle by which another process opens an allocation: of a block, its segment.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuIpcGetMemHandle(handle: *mut c_void, address: Address) -> c_int {
    if let Answer::Refused(code) = guarded(|| may_export(address)) {
        return code;
    }
    // SAFETY: the caller's contract is the driver's.
    unsafe { call!(cuIpcGetMemHandle(handle, address)) }
}

/// Calls the driver about its own pools. If that succeeds, memory in the order of streams is the driver's from
/// now on.
fn configures(driver: impl FnOnce() -> c_int) -> c_int {
    let code = driver();
    if code == SUCCESS {
        ordered::leave_to_the_driver();
    }
    code
}

/// Sets the pool that a device allocates from in the order of streams.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuDeviceSetMemPool(device: Device, pool: Handle) -> c_int {
    // SAFETY: the caller's contract is the driver's.
    configures(|| unsafe { call!(cuDeviceSetMemPool(device, pool)) })
}

/// Sets the pool of a place and a kind of memory.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuMemSetMemPool(
    location: *mut c_void,
    kind: c_int,
    pool: Handle,
) -> c_int {
    // SAFETY: the caller's contract is the driver's.
    configures(|| unsafe { call!(cuMemSetMemPool(location, kind, pool)) })
}

/// Lets devices use a pool's memory.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuMemPoolSetAccess(
    pool: Handle,
    access: *const c_void,
    count: usize,
) -> c_int {
    // SAFETY: the caller's contract is the driver's.
    configures(|| unsafe { call!(cuMemPoolSetAccess(pool, access, count)) })
}

/// Sets a property of a pool.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuMemPoolSetAttribute(
    pool: Handle,
    attribute: c_int,
    value: *mut c_void,
) -> c_int {
    // SAFETY: the caller's contract is the driver's.
    unsafe { call!(cuMemPoolSetAttribute(pool, attribute, value)) }
}

/// Gives back what a pool keeps unused.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuMemPoolTrimTo(pool: Handle, kept: usize) -> c_int {
    // SAFETY: the caller's contract is the driver's.
    let code = unsafe { call!(cuMemPoolTrimTo(pool, kept)) };
    if code == SUCCESS && kept == 0 && extra::is_default_pool(pool) {
        // The program takes luma's for that pool.
        give_back();
    }
    code
}

/// A handle by which another process opens a pool.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuMemPoolExportToShareableHandle(
    handle: *mut c_void,
    pool: Handle,
    kind: c_int,
    flags: u64,
) -> c_int {
    // SAFETY: the caller's contract is the driver's.
    configures(|| unsafe { call!(cuMemPoolExportToShareableHandle(handle, pool, kind, flags)) })
}

/// Data by which another process finds a pool's allocation.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuMemPoolExportPointer(data: *mut c_void, address: Address) -> c_int {
    // SAFETY: the caller's contract is the driver's.
    configures(|| unsafe { call!(cuMemPoolExportPointer(data, address)) })
}
