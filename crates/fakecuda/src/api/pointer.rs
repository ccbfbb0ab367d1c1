//! Attributes of pointers.

use crate::driver;
use crate::entry::put;
use crate::memory::pointer::{Value, attribute, unknown};
use crate::state::lock;
use crate::status::{Code, Result};
use std::ffi::c_void;

/// Writes a value.
///
/// # Safety
/// As much as the attribute's documentation says may be written.
unsafe fn write(data: *mut c_void, value: Value) -> Result {
    // SAFETY: the caller promises it.
    unsafe {
        match value {
            Value::Flag(is) => put(data.cast::<u8>(), u8::from(is)),
            Value::Number(number) => put(data.cast::<u32>(), number),
            Value::Ordinal(number) => put(data.cast::<i32>(), number),
            Value::Long(number) => put(data.cast::<u64>(), number),
            Value::Tokens(tokens) => put(data.cast(), tokens),
        }
    }
}

driver! {
    fn cuPointerGetAttribute(data: *mut c_void, which: u32, pointer: u64) {
        let mut state = lock();
        if data.is_null() {
            return Err(Code::INVALID_VALUE);
        }
        write(data, state.pointer_attribute(which, pointer)?)
    }

    fn cuPointerGetAttributes(count: u32, which: *const u32, data: *const *mut c_void, pointer: u64) {
        let mut state = lock();
        if count == 0 || which.is_null() || data.is_null() {
            return Err(Code::INVALID_VALUE);
        }
        for index in 0..count as usize {
            let which = *which.add(index);
            let otherwise = unknown(which).ok_or(Code::INVALID_VALUE)?;
            let value = match state.pointer_attribute(which, pointer) {
                Err(Code::INVALID_VALUE) => otherwise,
                value => value?,
            };
            write(*data.add(index), value)?;
        }
        Ok(())
    }

    fn cuPointerSetAttribute(value: *const c_void, which: u32, pointer: u64) {
        let mut state = lock();
        if value.is_null() || which != attribute::SYNC_MEMOPS {
            return Err(Code::INVALID_VALUE);
        }
        state.set_sync_memops(pointer, value.cast::<u32>().read_unaligned() != 0)
    }
}
