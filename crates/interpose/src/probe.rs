//! How programs and tests see that they were reached.

use crate::table;
use std::ffi::{CStr, c_char, c_int};

/// How many look-ups of a function of the driver (by `dlsym`, `dlvsym` and `cuGetProcAddress`) were answered with
/// luma's; -1: there is none of this name. The name is the driver's symbol, such as `cuMemAlloc_v2`.
///
/// A program that has this symbol runs under the library.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn luma_interpose_answers(symbol: *const c_char) -> c_int {
    if symbol.is_null() {
        return -1;
    }
    // SAFETY: the caller gives a string.
    let symbol = unsafe { CStr::from_ptr(symbol) };
    table::of_symbol(symbol).map_or(-1, |hook| {
        c_int::try_from(hook.answers()).unwrap_or(c_int::MAX)
    })
}
