//! Contexts that begin, and the ends of contexts and streams, which take memory along.

use super::retry::with_retry;
use crate::abi::{Device, Handle, SUCCESS};
use crate::pool::ends;
use crate::real::call;
use luma::backend::streams::Stream;
use std::ffi::{c_int, c_uint, c_void};

/// Tells of a call that succeeded.
fn then(code: c_int, tell: impl FnOnce()) -> c_int {
    if code == SUCCESS {
        tell();
    }
    code
}

/// Makes a context.
///
/// # Safety
/// `context` is null, which the driver refuses, or valid for reading after a call that succeeded.
unsafe fn made(context: *mut Handle, driver: impl Fn() -> c_int) -> c_int {
    then(with_retry(driver), || {
        // SAFETY: the driver has written it.
        ends::context_made(unsafe { context.read_unaligned() });
    })
}

/// Makes a context.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuCtxCreate_v2(
    context: *mut Handle,
    flags: c_uint,
    device: Device,
) -> c_int {
    // SAFETY: the caller's contract is the driver's, here and below.
    unsafe { made(context, || call!(cuCtxCreate_v2(context, flags, device))) }
}

/// Makes a context with an affinity.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuCtxCreate_v3(
    context: *mut Handle,
    affinity: *mut c_void,
    count: c_int,
    flags: c_uint,
    device: Device,
) -> c_int {
    // SAFETY: as above.
    unsafe {
        made(context, || {
            call!(cuCtxCreate_v3(context, affinity, count, flags, device))
        })
    }
}

/// Makes a context with parameters.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuCtxCreate_v4(
    context: *mut Handle,
    parameters: *mut c_void,
    flags: c_uint,
    device: Device,
) -> c_int {
    // SAFETY: as above.
    unsafe {
        made(context, || {
            call!(cuCtxCreate_v4(context, parameters, flags, device))
        })
    }
}

/// Ends all that a device's primary context has, before 11.0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuDevicePrimaryCtxReset(device: Device) -> c_int {
    // SAFETY: as above.
    let code = unsafe { call!(cuDevicePrimaryCtxReset(device)) };
    then(code, || ends::primary_reset(device))
}

/// Ends all that a device's primary context has.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuDevicePrimaryCtxReset_v2(device: Device) -> c_int {
    // SAFETY: as above.
    let code = unsafe { call!(cuDevicePrimaryCtxReset_v2(device)) };
    then(code, || ends::primary_reset(device))
}

/// One owner of a primary context more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuDevicePrimaryCtxRetain(context: *mut Handle, device: Device) -> c_int {
    // SAFETY: as above.
    let code = with_retry(|| unsafe { call!(cuDevicePrimaryCtxRetain(context, device)) });
    then(code, || ends::primary_owned(device))
}

/// One owner of a primary context less, before 11.0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuDevicePrimaryCtxRelease(device: Device) -> c_int {
    // SAFETY: as above.
    let code = unsafe { call!(cuDevicePrimaryCtxRelease(device)) };
    then(code, || ends::primary_owned(device))
}

/// One owner of a primary context less; the last one ends it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuDevicePrimaryCtxRelease_v2(device: Device) -> c_int {
    // SAFETY: as above.
    let code = unsafe { call!(cuDevicePrimaryCtxRelease_v2(device)) };
    then(code, || ends::primary_owned(device))
}

/// Ends a context, before 4.0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuCtxDestroy(context: Handle) -> c_int {
    // SAFETY: as above.
    let code = unsafe { call!(cuCtxDestroy(context)) };
    then(code, || ends::context_destroyed(context))
}

/// Ends a context.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuCtxDestroy_v2(context: Handle) -> c_int {
    // SAFETY: as above.
    let code = unsafe { call!(cuCtxDestroy_v2(context)) };
    then(code, || ends::context_destroyed(context))
}

/// One user of a context less; the last one ends it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuCtxDetach(context: Handle) -> c_int {
    // SAFETY: as above.
    let code = unsafe { call!(cuCtxDetach(context)) };
    then(code, ends::context_given_up)
}

/// Ends a stream, and the capture that was begun on it.
fn stream_ends(stream: Handle, driver: impl FnOnce() -> c_int) -> c_int {
    ends::stream_ends(stream);
    // Another thread may make a stream under the handle, and begin a capture on it, before this one is told.
    let has_capture = ends::has_capture(Stream::of(stream));
    then(driver(), || {
        if has_capture {
            ends::capture_ended(Stream::of(stream));
        }
    })
}

/// Ends a stream, before 4.0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuStreamDestroy(stream: Handle) -> c_int {
    // SAFETY: as above.
    stream_ends(stream, || unsafe { call!(cuStreamDestroy(stream)) })
}

/// Ends a stream.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuStreamDestroy_v2(stream: Handle) -> c_int {
    // SAFETY: as above.
    stream_ends(stream, || unsafe { call!(cuStreamDestroy_v2(stream)) })
}
