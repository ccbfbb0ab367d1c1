//! `cuGetProcAddress`, in both of its forms. It gives itself, too.

use crate::abi::SUCCESS;
use crate::real::call;
use crate::{switch, table};
use std::ffi::{CStr, c_char, c_int, c_void};

/// `CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM`.
const PER_THREAD_DEFAULT_STREAM: u64 = 2;

/// The driver's function of a name at a version. The driver is asked first, and what it refuses is refused.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuGetProcAddress(
    symbol: *const c_char,
    function: *mut *mut c_void,
    version: c_int,
    flags: u64,
) -> c_int {
    // SAFETY: the caller's contract is the driver's, which has written what it found.
    unsafe {
        let code = call!(cuGetProcAddress(symbol, function, version, flags));
        if code == SUCCESS {
            exchange(symbol, function, version, flags);
        }
        code
    }
}

/// The same; the status says why there is none.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuGetProcAddress_v2(
    symbol: *const c_char,
    function: *mut *mut c_void,
    version: c_int,
    flags: u64,
    status: *mut c_int,
) -> c_int {
    // SAFETY: the caller's contract is the driver's, which has written what it found.
    unsafe {
        let code = call!(cuGetProcAddress_v2(
            symbol, function, version, flags, status
        ));
        if code == SUCCESS {
            exchange(symbol, function, version, flags);
        }
        code
    }
}

/// Puts ours in the place of the driver's, if that is hooked.
///
/// # Safety
/// The driver took the arguments: the name is a string, and `function`, if it is not null, may be read and
/// written.
unsafe fn exchange(symbol: *const c_char, function: *mut *mut c_void, version: c_int, flags: u64) {
    if symbol.is_null() || function.is_null() || !switch::is_on() {
        return;
    }
    // SAFETY: the caller's contract. C callers may have aligned it to less.
    unsafe {
        let found = function.read_unaligned();
        if found.is_null() {
            return;
        }
        let per_thread = flags & PER_THREAD_DEFAULT_STREAM != 0;
        if let Some(hook) = table::of_name(CStr::from_ptr(symbol), version, per_thread) {
            hook.real.learn(found);
            hook.count_answer();
            function.write_unaligned(hook.address());
        }
    }
}
