//! Errors, log messages and the version.

use super::boundary::call;
use super::last_error;
use super::types::{luma_log_fn_t, luma_status_t};
use crate::error::Status;
use crate::log::{self, Sink};
use core::ffi::{c_char, c_int, c_void};
use std::sync::Arc;

/// A callback of the user with the pointer that goes with it.
struct LogCallback {
    function: unsafe extern "C" fn(level: c_int, message: *const c_char, user: *mut c_void),
    user: *mut c_void,
}

// SAFETY: the contract of `luma_set_log_callback`: it may be called from any thread.
unsafe impl Send for LogCallback {}
// SAFETY: as above.
unsafe impl Sync for LogCallback {}

/// Sends log messages to `callback` from now on, or with NULL to standard error again. `LUMA_LOG` says
/// which; without it a callback gets errors, warnings and information.
///
/// The callback may be called from any thread, several at once, without any of luma's locks held; it
/// may call luma. A call that began before another callback was set may still end in the old one.
/// `level`: 1 error, 2 warning, 3 information, 4 detail. The message is valid during the call.
///
/// # Safety
/// `callback` may be called with `user` from any thread until the process ends.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn luma_set_log_callback(callback: luma_log_fn_t, user: *mut c_void) {
    let status: luma_status_t = call(|| {
        let sink = callback.map(|function| -> Sink {
            let callback = LogCallback { function, user };
            Arc::new(move |level, message: &str| {
                let callback = &callback;
                // Without memory for a copy that ends in NUL there is nothing to be said.
                let mut text = Vec::new();
                if text.try_reserve_exact(message.len() + 1).is_err() {
                    return;
                }
                text.extend(
                    message
                        .bytes()
                        .map(|byte| if byte == 0 { b'?' } else { byte }),
                );
                text.push(0);
                // SAFETY: the contract of `luma_set_log_callback`.
                unsafe { (callback.function)(level as c_int, text.as_ptr().cast(), callback.user) };
            })
        });
        log::set_sink(sink);
        Ok(())
    });
    // The function returns nothing; a failure is in the thread's last status.
    let _ = status;
}

/// The message of this thread's last luma call, empty if it succeeded. Valid until the thread's next
/// luma call other than this one and `luma_last_status`. Never NULL.
#[unsafe(no_mangle)]
#[must_use]
pub extern "C" fn luma_last_error() -> *const c_char {
    last_error::message()
}

/// A few words that say what a status means; of an unknown number, that it is unknown. Never NULL.
#[unsafe(no_mangle)]
#[must_use]
pub extern "C" fn luma_status_string(status: c_int) -> *const c_char {
    let words = match status {
        0 => c"success",
        _ => Status::ALL
            .into_iter()
            .find(|known| *known as c_int == status)
            .map_or(c"unknown status", Status::description),
    };
    words.as_ptr()
}

/// The library's version, as "0.1.0".
#[unsafe(no_mangle)]
#[must_use]
pub extern "C" fn luma_version() -> *const c_char {
    const VERSION: &core::ffi::CStr = match core::ffi::CStr::from_bytes_with_nul(
        concat!(env!("CARGO_PKG_VERSION"), "\0").as_bytes(),
    ) {
        Ok(version) => version,
        Err(_) => panic!("the version has no NUL"),
    };
    VERSION.as_ptr()
}
