//! Names and texts of codes.

use crate::driver;
use crate::entry::put;
use crate::status::{self, Code};
use std::ffi::{CStr, c_char};
use std::ptr;

driver! {
    fn cuGetErrorName: always (code: u32, name: *mut *const c_char) {
        put(name, status::name(code).map_or(ptr::null(), CStr::as_ptr))?;
        status::name(code).map(|_| ()).ok_or(Code::INVALID_VALUE)
    }

    fn cuGetErrorString: always (code: u32, text: *mut *const c_char) {
        put(text, status::text(code).map_or(ptr::null(), CStr::as_ptr))?;
        status::text(code).map(|_| ()).ok_or(Code::INVALID_VALUE)
    }
}
