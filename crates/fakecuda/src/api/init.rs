//! Starting, the version, and finding functions.

use crate::driver;
use crate::entry::{put, put_if};
use crate::environment::environment;
use crate::lookup::{self, Found};
use crate::process;
use crate::status::{Code, Result};
use std::ffi::{CStr, c_char, c_void};
use std::ptr;

/// `CU_GET_PROC_ADDRESS_*`: how functions are looked up.
const LEGACY_STREAM: u64 = 1;
const PER_THREAD_DEFAULT_STREAM: u64 = 2;

/// `CUdriverProcAddressQueryResult`.
const FOUND: u32 = 0;
const SYMBOL_NOT_FOUND: u32 = 1;
const VERSION_NOT_SUFFICIENT: u32 = 2;

/// Looks a function up.
///
/// # Safety
/// `symbol` is null or a string, `function` is null or may be written to.
unsafe fn find(
    symbol: *const c_char,
    function: *mut *const c_void,
    version: i32,
    flags: u64,
) -> Result<u32> {
    if symbol.is_null()
        || version > environment().version
        || flags > (LEGACY_STREAM | PER_THREAD_DEFAULT_STREAM)
    {
        return Err(Code::INVALID_VALUE);
    }
    // SAFETY: the caller promises it.
    let name = unsafe { CStr::from_ptr(symbol) };
    let per_thread = flags & PER_THREAD_DEFAULT_STREAM != 0;
    let found = name.to_str().map_or(Found::Nothing, |name| {
        lookup::find(name, version, per_thread)
    });
    let (address, status) = match found {
        Found::Function(address) => (address.cast(), FOUND),
        Found::Nothing => (ptr::null(), SYMBOL_NOT_FOUND),
        Found::NewerOnly => (ptr::null(), VERSION_NOT_SUFFICIENT),
    };
    // SAFETY: the caller promises it.
    unsafe { put(function, address) }?;
    Ok(status)
}

driver! {
    fn cuInit: early (flags: u32) {
        if flags != 0 {
            return Err(Code::INVALID_VALUE);
        }
        match environment().init {
            Some(0) => {}
            Some(code) => return Err(Code(code)),
            None if environment().devices == 0 => return Err(Code::NO_DEVICE),
            None => {}
        }
        process::begin()
    }

    fn cuDriverGetVersion: early (version: *mut i32) {
        put(version, environment().version)
    }

    // Programs look up even cuInit with it.
    fn cuGetProcAddress: early (symbol: *const c_char, function: *mut *const c_void, version: i32, flags: u64) {
        match find(symbol, function, version, flags)? {
            FOUND => Ok(()),
            // The first form has no other way to tell.
            _ => Err(Code::NOT_FOUND),
        }
    }

    fn cuGetProcAddress_v2: early (symbol: *const c_char, function: *mut *const c_void, version: i32, flags: u64, status: *mut u32) {
        let found = find(symbol, function, version, flags)?;
        put_if(status, found);
        Ok(())
    }

    // The tables are not part of the public interface.
    fn cuGetExportTable: always (table: *mut *const c_void, _id: *const c_void) {
        put(table, ptr::null())?;
        Err(Code::NOT_FOUND)
    }
}
