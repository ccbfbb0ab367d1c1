//! Functions of the driver that are asked beside the hooked ones.

use super::driver::Real;
use crate::abi::{DEINITIALIZED, Device, Handle, NOT_INITIALIZED, SUCCESS};
use std::ffi::{CStr, c_int, c_uint};

macro_rules! functions {
    ($($symbol:ident($($arg:ident: $type:ty),*);)*) => {
        $(
            #[allow(non_snake_case)]
            fn $symbol() -> Option<unsafe extern "C" fn($($type),*) -> c_int> {
                static REAL: Real = Real::unknown();
                const SYMBOL: &CStr = match CStr::from_bytes_with_nul(
                    concat!(stringify!($symbol), "\0").as_bytes(),
                ) {
                    Ok(symbol) => symbol,
                    Err(_) => panic!("a name has one NUL, at its end"),
                };
                // SAFETY: the driver's function of the symbol has this documented type. A null pointer is
                // `None`.
                unsafe { std::mem::transmute(REAL.get(SYMBOL)) }
            }
        )*
    };
}

functions! {
    cuStreamGetFlags(stream: Handle, flags: *mut c_uint);
    cuStreamIsCapturing(stream: Handle, status: *mut c_uint);
    cuCtxGetCurrent(context: *mut Handle);
    cuCtxGetDevice(device: *mut Device);
    cuDeviceGetDefaultMemPool(pool: *mut Handle, device: Device);
}

/// What the driver says of a stream: 0, or what is wrong with it.
pub fn about_stream(stream: Handle) -> c_int {
    let mut flags = 0;
    match cuStreamGetFlags() {
        // SAFETY: the out-parameter is valid for writing; the driver knows what is no stream, as far as it can.
        Some(function) => unsafe { function(stream, &mut flags) },
        None => NOT_INITIALIZED,
    }
}

/// Whether the driver has shut down, at the end of the process.
pub fn has_ended() -> bool {
    let mut context = 0;
    cuCtxGetCurrent().is_some_and(|function| {
        // SAFETY: the out-parameter is valid for writing.
        unsafe { function(&mut context) == DEINITIALIZED }
    })
}

/// Whether a stream is in a capture.
pub fn is_capturing(stream: Handle) -> bool {
    let mut status = 0;
    cuStreamIsCapturing().is_some_and(|function| {
        // SAFETY: as above.
        unsafe { function(stream, &mut status) == SUCCESS && status != 0 }
    })
}

/// The driver's own pool of a device.
pub fn default_pool_of(device: Device) -> Option<Handle> {
    let mut pool = 0;
    // SAFETY: the out-parameter is valid for writing.
    let code = unsafe { cuDeviceGetDefaultMemPool()?(&mut pool, device) };
    (code == SUCCESS).then_some(pool)
}

/// That of the current context's device.
fn default_pool() -> Option<Handle> {
    let mut device = 0;
    // SAFETY: the out-parameter is valid for writing.
    let code = unsafe { cuCtxGetDevice()?(&mut device) };
    default_pool_of(device).filter(|_| code == SUCCESS)
}

/// Whether a pool is that.
pub fn is_default_pool(pool: Handle) -> bool {
    pool != 0 && default_pool() == Some(pool)
}
