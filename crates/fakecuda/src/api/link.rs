//! Linking at run time.

use super::module::file;
use crate::driver;
use crate::entry::{put, put_if};
use crate::state::lock;
use crate::status::{Code, Result};
use std::ffi::{CStr, c_char, c_void};
use std::slice;

// Numbers of `CUjit_option`: logs, and how long they are.
const INFO_LOG: u32 = 3;
const INFO_LOG_BYTES: u32 = 4;
const ERROR_LOG: u32 = 5;
const ERROR_LOG_BYTES: u32 = 6;

/// `CU_JIT_INPUT_PTX`.
const INPUT_PTX: u32 = 1;
/// The highest `CUjitInputType`.
const LAST_INPUT: u32 = 5;

/// Says of the logs that a program gave that nothing was written to them.
///
/// # Safety
/// There are as many options with values as the count says, of the documented kinds.
pub unsafe fn clear_logs(count: u32, options: *const u32, values: *mut *mut c_void) -> Result {
    if count == 0 {
        return Ok(());
    }
    if options.is_null() || values.is_null() {
        return Err(Code::INVALID_VALUE);
    }
    // SAFETY: the caller promises it. A size is given in place of a pointer, and told there.
    unsafe {
        let options = slice::from_raw_parts(options, count as usize);
        let values = slice::from_raw_parts_mut(values, count as usize);
        for (log, bytes) in [(INFO_LOG, INFO_LOG_BYTES), (ERROR_LOG, ERROR_LOG_BYTES)] {
            let position = |wanted| options.iter().position(|&option| option == wanted);
            let Some(size) = position(bytes) else {
                continue;
            };
            if let Some(log) = position(log).map(|log| values[log].cast::<u8>()) {
                if !log.is_null() && values[size] as u32 > 0 {
                    log.write(0);
                }
            }
            values[size] = std::ptr::null_mut();
        }
    }
    Ok(())
}

driver! {
    fn cuLinkCreate_v2(
        count: u32, options: *const u32, values: *mut *mut c_void, link: *mut u64,
    ) {
        if link.is_null() {
            return Err(Code::INVALID_VALUE);
        }
        clear_logs(count, options, values)?;
        let mut guard = lock();
        guard.current()?;
        put(link, guard.create_link())
    }
    fn cuLinkAddData_v2(
        link: u64, kind: u32, data: *const c_void, bytes: usize, _name: *const c_char,
        _count: u32, _options: *const u32, _values: *mut *mut c_void,
    ) {
        if data.is_null() || bytes == 0 || bytes > isize::MAX as usize || kind > LAST_INPUT {
            return Err(Code::INVALID_VALUE);
        }
        // The size of a text may be given with the zero at its end, or not.
        let part = slice::from_raw_parts(data.cast::<u8>(), bytes);
        let is_text = kind == INPUT_PTX;
        let text = if is_text { CStr::from_bytes_until_nul(part).ok() } else { None };
        lock().add_to_link(link, text.map_or(part, CStr::to_bytes), is_text)
    }
    fn cuLinkAddFile_v2(
        link: u64, kind: u32, path: *const c_char,
        _count: u32, _options: *const u32, _values: *mut *mut c_void,
    ) {
        if kind > LAST_INPUT {
            return Err(Code::INVALID_VALUE);
        }
        let part = file(path)?;
        lock().add_to_link(link, &part, kind == INPUT_PTX)
    }
    fn cuLinkComplete(link: u64, image: *mut *const c_void, bytes: *mut usize) {
        let mut guard = lock();
        let output = guard.complete_link(link)?;
        put(image, output.as_ptr().cast())?;
        put_if(bytes, output.len());
        Ok(())
    }
    fn cuLinkDestroy(link: u64) {
        lock().destroy_link(link)
    }
}
