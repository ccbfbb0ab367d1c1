//! Page-locked host memory.

use super::memory::begin;
use crate::driver;
use crate::entry::put;
use crate::exec;
use crate::state::{Guard, lock};
use crate::status::{Code, Result};
use std::ffi::c_void;

/// `CU_MEMHOSTALLOC_PORTABLE`, `_DEVICEMAP`, `_WRITECOMBINED`.
const ALLOCATION_FLAGS: u32 = 7;
/// `CU_MEMHOSTREGISTER_PORTABLE`, `_DEVICEMAP`, `_READ_ONLY`.
const REGISTRATION_FLAGS: u32 = 1 | 2 | 8;
/// `CU_MEMHOSTREGISTER_IOMEMORY`: there is none here.
const IO_MEMORY: u32 = 4;
/// What `cuMemAllocHost` implies where host memory can be mapped.
const DEVICE_MAP: u32 = 2;

unsafe fn allocate(pointer: *mut *mut c_void, bytes: usize, flags: u32) -> Result {
    let mut state = lock();
    state.current()?;
    if pointer.is_null() || bytes == 0 || flags & !ALLOCATION_FLAGS != 0 {
        return Err(Code::INVALID_VALUE);
    }
    let context = begin(&mut state)?;
    let start = state.allocate_host(context, bytes as u64, flags)?;
    // SAFETY: it is not null, and the caller keeps the driver's contract.
    unsafe { put(pointer, start as *mut c_void) }
}

/// Host memory may be in use in any context.
fn wait_everywhere(mut state: Guard) -> Guard {
    for device in 0..state.devices.len() {
        state = exec::wait_device(state, device);
    }
    state
}

driver! {
    fn cuMemAllocHost_v2(pointer: *mut *mut c_void, bytes: usize) {
        allocate(pointer, bytes, DEVICE_MAP)
    }

    fn cuMemHostAlloc(pointer: *mut *mut c_void, bytes: usize, flags: u32) {
        allocate(pointer, bytes, flags)
    }

    fn cuMemFreeHost(pointer: *mut c_void) {
        let mut state = lock();
        state.current()?;
        if !state.is_host_allocation(pointer as u64) {
            return Err(Code::INVALID_VALUE);
        }
        begin(&mut state)?;
        state = wait_everywhere(state);
        state.free_host(pointer as u64)
    }

    fn cuMemHostRegister_v2(pointer: *mut c_void, bytes: usize, flags: u32) {
        let mut state = lock();
        let context = state.current()?;
        if flags & IO_MEMORY != 0 {
            return Err(Code::NOT_SUPPORTED);
        }
        if flags & !REGISTRATION_FLAGS != 0 {
            return Err(Code::INVALID_VALUE);
        }
        state.register_host(context, pointer as u64, bytes as u64, flags)
    }

    fn cuMemHostUnregister(pointer: *mut c_void) {
        let mut state = lock();
        state.current()?;
        if pointer.is_null() {
            return Err(Code::INVALID_VALUE);
        }
        if !state.is_registered(pointer as u64) {
            return Err(Code::HOST_MEMORY_NOT_REGISTERED);
        }
        state = wait_everywhere(state);
        state.unregister_host(pointer as u64)
    }

    fn cuMemHostGetDevicePointer_v2(device_pointer: *mut u64, pointer: *mut c_void, flags: u32) {
        let state = lock();
        state.current()?;
        if flags != 0 || device_pointer.is_null() {
            return Err(Code::INVALID_VALUE);
        }
        put(device_pointer, state.host_device_pointer(pointer as u64)?)
    }

    fn cuMemHostGetFlags(flags: *mut u32, pointer: *mut c_void) {
        let state = lock();
        state.current()?;
        if flags.is_null() {
            return Err(Code::INVALID_VALUE);
        }
        put(flags, state.host_flags(pointer as u64)?)
    }
}
