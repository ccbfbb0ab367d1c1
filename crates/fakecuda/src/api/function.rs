//! What programs ask and say about functions and kernels.

use crate::driver;
use crate::entry::{put, put_if};
use crate::module::Parameter;
use crate::state::lock;
use crate::status::{Code, Result};
use std::ffi::c_char;

/// `CU_FUNCTION_LOADING_STATE_LOADED`.
const LOADED: u32 = 1;
/// The highest `CUfunc_cache`.
const LAST_CACHE: u32 = 3;
/// The highest `CUsharedconfig`.
const LAST_SHARED: u32 = 2;

/// The parameters of a function, as far as its image says.
fn parameters(function: u64) -> Result<Vec<Parameter>> {
    if function == 0 {
        return Err(Code::INVALID_VALUE);
    }
    let known = lock().named(function)?.parameters;
    known.ok_or(Code::NOT_SUPPORTED)
}

/// Tells where a parameter lies.
///
/// # Safety
/// The places are null or may be written to.
unsafe fn tell(function: u64, index: usize, offset: *mut usize, bytes: *mut usize) -> Result {
    let parameters = parameters(function)?;
    let parameter = parameters.get(index).ok_or(Code::INVALID_VALUE)?;
    // SAFETY: the caller promises it.
    unsafe {
        put(offset, parameter.offset)?;
        put_if(bytes, parameter.bytes);
    }
    Ok(())
}

/// Tells a name, which stays as long as the function.
///
/// # Safety
/// The place is null or may be written to.
unsafe fn tell_name(to: *mut *const c_char, function: u64) -> Result {
    if function == 0 || to.is_null() {
        return Err(Code::INVALID_VALUE);
    }
    let named = lock().named(function)?;
    // SAFETY: the caller promises it.
    unsafe { put(to, named.name.as_ptr()) }
}

driver! {
    fn cuFuncGetAttribute(value: *mut i32, which: u32, function: u64) {
        let guard = lock();
        let device = guard.current_device()?;
        put(value, guard.function_attribute(function, device, which)?)
    }
    fn cuFuncSetAttribute(function: u64, which: u32, value: i32) {
        let mut guard = lock();
        let device = guard.current_device()?;
        guard.set_function_attribute(function, device, which, value)
    }
    fn cuFuncSetCacheConfig(function: u64, preferred: u32) {
        let guard = lock();
        guard.current()?;
        guard.named(function)?;
        if preferred > LAST_CACHE {
            return Err(Code::INVALID_VALUE);
        }
        Ok(())
    }
    fn cuFuncSetSharedMemConfig(function: u64, preferred: u32) {
        let guard = lock();
        guard.current()?;
        guard.named(function)?;
        if preferred > LAST_SHARED {
            return Err(Code::INVALID_VALUE);
        }
        Ok(())
    }
    fn cuFuncGetModule(module: *mut u64, function: u64) {
        let mut guard = lock();
        let function =
            if guard.is_kernel(function) { guard.kernel_function(function)? } else { function };
        put(module, guard.function_module(function)?)
    }
    fn cuFuncGetName(name: *mut *const c_char, function: u64) {
        tell_name(name, function)
    }
    fn cuFuncGetParamInfo(function: u64, index: usize, offset: *mut usize, bytes: *mut usize) {
        tell(function, index, offset, bytes)
    }
    fn cuFuncGetParamCount(function: u64, count: *mut usize) {
        put(count, parameters(function)?.len())
    }
    fn cuFuncIsLoaded(state: *mut u32, function: u64) {
        lock().named(function)?;
        put(state, LOADED)
    }
    fn cuFuncLoad(function: u64) {
        lock().named(function).map(drop)
    }
    fn cuKernelGetAttribute(value: *mut i32, which: u32, kernel: u64, device: i32) {
        let guard = lock();
        let device = guard.device(device)?;
        put(value, guard.function_attribute(kernel, device, which)?)
    }
    fn cuKernelSetAttribute(which: u32, value: i32, kernel: u64, device: i32) {
        let mut guard = lock();
        let device = guard.device(device)?;
        guard.set_function_attribute(kernel, device, which, value)
    }
    fn cuKernelSetCacheConfig(kernel: u64, preferred: u32, device: i32) {
        let guard = lock();
        guard.device(device)?;
        guard.named(kernel)?;
        if preferred > LAST_CACHE {
            return Err(Code::INVALID_VALUE);
        }
        Ok(())
    }
    fn cuKernelGetName(name: *mut *const c_char, kernel: u64) {
        tell_name(name, kernel)
    }
    fn cuKernelGetParamInfo(kernel: u64, index: usize, offset: *mut usize, bytes: *mut usize) {
        tell(kernel, index, offset, bytes)
    }
    fn cuKernelGetParamCount(kernel: u64, count: *mut usize) {
        put(count, parameters(kernel)?.len())
    }
}
