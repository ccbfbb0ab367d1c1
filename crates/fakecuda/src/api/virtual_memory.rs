//! Virtual memory management.

use crate::abi::memory::{HANDLE_POSIX_FILE, MemAccessDesc, MemAllocationProp, MemLocation};
use crate::driver;
use crate::entry::put;
use crate::environment::environment;
use crate::exec;
use crate::memory::BLOCK;
use crate::state::{Guard, lock};
use crate::status::{Code, Result};
use std::ffi::c_void;

/// The state, if devices have virtual memory management.
fn begin() -> Result<Guard> {
    if environment().no_virtual_memory {
        return Err(Code::NOT_SUPPORTED);
    }
    Ok(lock())
}

/// Fails unless a value is zero, as the documentation wants it of all flags.
fn no_flags(flags: u64) -> Result {
    if flags == 0 {
        Ok(())
    } else {
        Err(Code::INVALID_VALUE)
    }
}

/// Waits for work that may be on mapped memory, as `cuMemUnmap` and `cuMemSetAccess` do "for most use
/// cases". No program can rely on that: work that runs as late as it may is not waited for, and finds
/// the memory gone.
fn wait_for_users(mut state: Guard, start: u64, bytes: u64) -> Result<Guard> {
    let devices = state.devices_with_access(start, bytes)?;
    if !environment().lazy {
        for device in devices {
            state = exec::wait_device(state, device);
        }
    }
    Ok(state)
}

driver! {
    fn cuMemGetAllocationGranularity(granularity: *mut usize, prop: *const MemAllocationProp, option: u32) {
        let state = begin()?;
        if prop.is_null() || granularity.is_null() || option > 1 {
            return Err(Code::INVALID_VALUE);
        }
        state.checked_prop(&prop.read_unaligned())?;
        put(granularity, BLOCK as usize)
    }

    fn cuMemAddressReserve(pointer: *mut u64, bytes: usize, alignment: usize, wish: u64, flags: u64) {
        let mut state = begin()?;
        no_flags(flags)?;
        if pointer.is_null() {
            return Err(Code::INVALID_VALUE);
        }
        put(pointer, state.reserve(bytes as u64, alignment as u64, wish)?)
    }

    fn cuMemAddressFree(pointer: u64, bytes: usize) {
        begin()?.unreserve(pointer, bytes as u64)
    }

    fn cuMemCreate(handle: *mut u64, bytes: usize, prop: *const MemAllocationProp, flags: u64) {
        let mut state = begin()?;
        no_flags(flags)?;
        if handle.is_null() || prop.is_null() {
            return Err(Code::INVALID_VALUE);
        }
        put(handle, state.create_physical(bytes as u64, &prop.read_unaligned())?)
    }

    fn cuMemRelease(handle: u64) {
        begin()?.release_physical(handle)
    }

    fn cuMemMap(pointer: u64, bytes: usize, offset: usize, handle: u64, flags: u64) {
        let mut state = begin()?;
        no_flags(flags)?;
        state.map(pointer, bytes as u64, offset as u64, handle)
    }

    fn cuMemUnmap(pointer: u64, bytes: usize) {
        let mut state = begin()?;
        state = wait_for_users(state, pointer, bytes as u64)?;
        state.unmap(pointer, bytes as u64)
    }

    fn cuMemSetAccess(pointer: u64, bytes: usize, changes: *const MemAccessDesc, count: usize) {
        let mut state = begin()?;
        if changes.is_null() || count == 0 {
            return Err(Code::INVALID_VALUE);
        }
        let changes = std::slice::from_raw_parts(changes, count);
        state = wait_for_users(state, pointer, bytes as u64)?;
        state.set_access(pointer, bytes as u64, changes)
    }

    fn cuMemGetAccess(flags: *mut u64, place: *const MemLocation, pointer: u64) {
        let state = begin()?;
        if flags.is_null() || place.is_null() {
            return Err(Code::INVALID_VALUE);
        }
        let access = state.get_access(place.read_unaligned(), pointer)?;
        put(flags, u64::from(access))
    }

    fn cuMemExportToShareableHandle(shareable: *mut c_void, handle: u64, kind: u32, flags: u64) {
        let state = begin()?;
        no_flags(flags)?;
        if shareable.is_null() {
            return Err(Code::INVALID_VALUE);
        }
        put(shareable.cast::<i32>(), state.export_physical(handle, kind)?)
    }

    fn cuMemImportFromShareableHandle(handle: *mut u64, shareable: *mut c_void, kind: u32) {
        let mut state = begin()?;
        if handle.is_null() {
            return Err(Code::INVALID_VALUE);
        }
        if kind != HANDLE_POSIX_FILE {
            return Err(Code::NOT_SUPPORTED);
        }
        let file = i32::try_from(shareable as usize).map_err(|_| Code::INVALID_VALUE)?;
        put(handle, state.import_physical(file)?)
    }

    fn cuMemRetainAllocationHandle(handle: *mut u64, address: *mut c_void) {
        let mut state = begin()?;
        if handle.is_null() {
            return Err(Code::INVALID_VALUE);
        }
        put(handle, state.retain_mapped(address as u64)?)
    }

    fn cuMemGetAllocationPropertiesFromHandle(prop: *mut MemAllocationProp, handle: u64) {
        let state = begin()?;
        if prop.is_null() {
            return Err(Code::INVALID_VALUE);
        }
        put(prop, state.physical_prop(handle)?)
    }

    fn cuMemGetHandleForAddressRange(handle: *mut c_void, pointer: u64, bytes: usize, kind: u32, flags: u64) {
        // The attribute for DMA-BUF says that there is none of it.
        let _ = (handle, pointer, bytes, kind, flags);
        Err(Code::NOT_SUPPORTED)
    }
}
