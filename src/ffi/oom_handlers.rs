//! Out-of-memory handlers.

use super::boundary::{call, null};
use super::types::{luma_oom_fn_t, luma_status_t};
use crate::error::Result;
use crate::pool::oom;
use core::ffi::{c_int, c_void};
use std::sync::Arc;

type OomFunction = unsafe extern "C" fn(bytes: usize, user: *mut c_void) -> c_int;

/// A handler of the user with the pointer that goes with it.
struct OomHandler {
    function: OomFunction,
    user: *mut c_void,
}

// SAFETY: the contract of `luma_add_oom_handler`: it may be called from any thread.
unsafe impl Send for OomHandler {}
// SAFETY: as above.
unsafe impl Sync for OomHandler {}

fn key(handler: luma_oom_fn_t, user: *mut c_void) -> Result<(OomFunction, oom::HandlerKey)> {
    let function = handler.ok_or_else(|| null("handler"))?;
    Ok((function, (function as usize, user as usize)))
}

/// Adds a handler that is called when a request of any pool would fail for want of memory, after
/// those that were added before. It is told the bytes asked for; non-zero means that it freed
/// something and the request should be tried again.
///
/// Each handler is called at most once a request, without any of luma's locks held, on the thread that
/// asks. It may call luma; an allocation made inside it fails without calling handlers.
///
/// Errors: `LUMA_ERROR_INVALID_VALUE` for NULL, or if it is there with the same `user`.
///
/// # Safety
/// `handler` may be called with `user` from any thread until it is removed, and until calls that began
/// before have ended.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn luma_add_oom_handler(
    handler: luma_oom_fn_t,
    user: *mut c_void,
) -> luma_status_t {
    call(|| {
        let (function, key) = key(handler, user)?;
        let handler = OomHandler { function, user };
        oom::add_handler(
            key,
            Arc::new(move |bytes| {
                let handler = &handler;
                // SAFETY: the contract of `luma_add_oom_handler`.
                unsafe { (handler.function)(bytes as usize, handler.user) != 0 }
            }),
        )
    })
}

/// Removes a handler. A call in another thread may still be running.
///
/// Errors: `LUMA_ERROR_INVALID_VALUE` if it is not there with this `user`.
#[unsafe(no_mangle)]
#[must_use]
pub extern "C" fn luma_remove_oom_handler(
    handler: luma_oom_fn_t,
    user: *mut c_void,
) -> luma_status_t {
    call(|| {
        let (_, key) = key(handler, user)?;
        oom::remove_handler(key)
    })
}
