//! Libraries and their kernels.

use super::module::{file, name};
use crate::driver;
use crate::entry::{put, put_if};
use crate::exec::wait_context;
use crate::module::{Global, Image};
use crate::state::lock;
use crate::status::{Code, Result};
use std::ffi::{c_char, c_void};

/// `CU_LIBRARY_BINARY_IS_PRESERVED`: not for files.
const IS_PRESERVED: u32 = 1;

fn load(to: *mut u64, image: impl FnOnce() -> Result<Image>) -> Result {
    if to.is_null() {
        return Err(Code::INVALID_VALUE);
    }
    let library = lock().load_library(image()?);
    // SAFETY: the caller gave a place for it.
    unsafe { put(to, library) }
}

/// Checks the options of a load.
///
/// # Safety
/// There are as many as the count says.
unsafe fn check(options: *const u32, count: u32, refused: Option<u32>) -> Result {
    if count == 0 {
        return Ok(());
    }
    if options.is_null() {
        return Err(Code::INVALID_VALUE);
    }
    // SAFETY: the caller promises it.
    let options = unsafe { std::slice::from_raw_parts(options, count as usize) };
    if options
        .iter()
        .any(|&option| option > IS_PRESERVED || Some(option) == refused)
    {
        return Err(Code::INVALID_VALUE);
    }
    Ok(())
}

/// Tells where a variable is.
///
/// # Safety
/// Both places are null or may be written to.
unsafe fn tell(
    address: *mut u64,
    bytes: *mut usize,
    find: impl FnOnce() -> Result<Global>,
) -> Result {
    if address.is_null() && bytes.is_null() {
        return Err(Code::INVALID_VALUE);
    }
    let global = find()?;
    // SAFETY: the caller promises it.
    unsafe {
        put_if(address, global.address);
        put_if(bytes, global.bytes as usize);
    }
    Ok(())
}

driver! {
    fn cuLibraryLoadData(
        library: *mut u64, code: *const c_void,
        jit_options: *const u32, jit_values: *mut *mut c_void, jit_count: u32,
        options: *const u32, _values: *const *mut c_void, count: u32,
    ) {
        check(options, count, None)?;
        super::link::clear_logs(jit_count, jit_options, jit_values)?;
        load(library, || Image::read(code))
    }
    fn cuLibraryLoadFromFile(
        library: *mut u64, path: *const c_char,
        jit_options: *const u32, jit_values: *mut *mut c_void, jit_count: u32,
        options: *const u32, _values: *const *mut c_void, count: u32,
    ) {
        check(options, count, Some(IS_PRESERVED))?;
        super::link::clear_logs(jit_count, jit_options, jit_values)?;
        load(library, || Image::of_bytes(&file(path)?))
    }
    fn cuLibraryUnload(library: u64) {
        let mut guard = lock();
        let contexts = guard.library_contexts(library)?;
        guard.refuse_in_capture()?;
        for context in contexts {
            guard = wait_context(guard, context);
        }
        guard.unload_library(library)
    }
    fn cuLibraryGetKernel(kernel: *mut u64, library: u64, wanted: *const c_char) {
        let found = lock().library_kernel(library, name(wanted)?)?;
        put(kernel, found)
    }
    fn cuLibraryGetKernelCount(count: *mut u32, library: u64) {
        put(count, lock().library_kernels(library)?.len() as u32)
    }
    fn cuLibraryEnumerateKernels(kernels: *mut u64, count: u32, library: u64) {
        let found = lock().library_kernels(library)?;
        if kernels.is_null() {
            return Err(Code::INVALID_VALUE);
        }
        for (index, kernel) in found.into_iter().take(count as usize).enumerate() {
            kernels.add(index).write(kernel);
        }
        Ok(())
    }
    fn cuLibraryGetModule(module: *mut u64, library: u64) {
        if module.is_null() {
            return Err(Code::INVALID_VALUE);
        }
        put(module, lock().library_module(library)?)
    }
    fn cuLibraryGetGlobal(
        address: *mut u64, bytes: *mut usize, library: u64, wanted: *const c_char,
    ) {
        tell(address, bytes, || {
            let mut guard = lock();
            let module = guard.library_module(library)?;
            guard.module_global(module, name(wanted)?)
        })
    }
    fn cuLibraryGetManaged(
        address: *mut u64, bytes: *mut usize, library: u64, wanted: *const c_char,
    ) {
        tell(address, bytes, || lock().library_managed(library, name(wanted)?))
    }
    fn cuLibraryGetUnifiedFunction(function: *mut *mut c_void, library: u64, wanted: *const c_char) {
        let guard = lock();
        guard.library_contexts(library)?;
        name(wanted)?;
        if function.is_null() {
            return Err(Code::INVALID_VALUE);
        }
        // There are no host functions in libraries.
        Err(Code::NOT_FOUND)
    }
    fn cuKernelGetFunction(function: *mut u64, kernel: u64) {
        if function.is_null() {
            return Err(Code::INVALID_VALUE);
        }
        put(function, lock().kernel_function(kernel)?)
    }
    fn cuKernelGetLibrary(library: *mut u64, kernel: u64) {
        put(library, lock().kernel_library(kernel)?)
    }
}
