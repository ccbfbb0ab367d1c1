//! Modules.

use crate::driver;
use crate::entry::{put, put_if};
use crate::exec::wait_context;
use crate::module::Image;
use crate::state::lock;
use crate::status::{Code, Result};
use std::ffi::{CStr, OsStr, c_char, c_void};
use std::os::unix::ffi::OsStrExt;

/// `CU_MODULE_EAGER_LOADING`.
const EAGER: u32 = 1;

/// A name that a program gave.
///
/// # Safety
/// It is null or ends with a zero.
pub unsafe fn name<'a>(name: *const c_char) -> Result<&'a str> {
    if name.is_null() {
        return Err(Code::INVALID_VALUE);
    }
    // SAFETY: the caller promises it.
    let name = unsafe { CStr::from_ptr(name) };
    name.to_str().map_err(|_| Code::NOT_FOUND)
}

/// The bytes of a file that a program named.
///
/// # Safety
/// It is null or ends with a zero.
pub unsafe fn file(path: *const c_char) -> Result<Vec<u8>> {
    if path.is_null() {
        return Err(Code::INVALID_VALUE);
    }
    // SAFETY: the caller promises it.
    let path = unsafe { CStr::from_ptr(path) };
    std::fs::read(OsStr::from_bytes(path.to_bytes())).map_err(|_| Code::FILE_NOT_FOUND)
}

fn load(to: *mut u64, image: impl FnOnce() -> Result<Image>) -> Result {
    if to.is_null() {
        return Err(Code::INVALID_VALUE);
    }
    lock().current()?;
    let image = image()?;
    let mut guard = lock();
    guard.refuse_in_capture()?;
    let module = guard.load_module(image)?;
    // SAFETY: the caller gave a place for it.
    unsafe { put(to, module) }
}

driver! {
    fn cuModuleLoad(module: *mut u64, path: *const c_char) {
        load(module, || Image::of_bytes(&file(path)?))
    }
    fn cuModuleLoadData(module: *mut u64, image: *const c_void) {
        load(module, || Image::read(image))
    }
    fn cuModuleLoadDataEx(
        module: *mut u64, image: *const c_void,
        count: u32, options: *const u32, values: *mut *mut c_void,
    ) {
        super::link::clear_logs(count, options, values)?;
        load(module, || Image::read(image))
    }
    fn cuModuleLoadFatBinary(module: *mut u64, image: *const c_void) {
        load(module, || Image::read(image))
    }
    fn cuModuleUnload(module: u64) {
        let mut guard = lock();
        guard.current()?;
        guard.refuse_in_capture()?;
        let context = guard.module_context(module)?;
        guard = wait_context(guard, context);
        guard.unload_module(module)
    }
    fn cuModuleGetLoadingMode(mode: *mut u32) {
        put(mode, EAGER)
    }
    fn cuModuleGetFunction(function: *mut u64, module: u64, wanted: *const c_char) {
        let mut guard = lock();
        guard.current()?;
        let found = guard.module_function(module, name(wanted)?)?;
        put(function, found)
    }
    fn cuModuleGetFunctionCount(count: *mut u32, module: u64) {
        put(count, lock().module_functions(module)?.len() as u32)
    }
    fn cuModuleEnumerateFunctions(functions: *mut u64, count: u32, module: u64) {
        let found = lock().module_functions(module)?;
        if functions.is_null() {
            return Err(Code::INVALID_VALUE);
        }
        for (index, function) in found.into_iter().take(count as usize).enumerate() {
            functions.add(index).write(function);
        }
        Ok(())
    }
    fn cuModuleGetGlobal_v2(
        address: *mut u64, bytes: *mut usize, module: u64, wanted: *const c_char,
    ) {
        if address.is_null() && bytes.is_null() {
            return Err(Code::INVALID_VALUE);
        }
        let guard = lock();
        guard.current()?;
        let global = guard.module_global(module, name(wanted)?)?;
        put_if(address, global.address);
        put_if(bytes, global.bytes as usize);
        Ok(())
    }
}
