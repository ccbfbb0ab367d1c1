//! What is done before the pool exists, and whether the process ends.

use crate::switch;
use luma::pool::hosted::{self, Segments};
use std::ffi::CStr;
use std::sync::Once;
use std::sync::atomic::{AtomicBool, Ordering};

/// Called when luma looks up its first function of the driver: before any pool of device memory exists. It
/// runs once; threads that come at the same time do not wait for it.
///
/// It runs while luma's table of the driver's functions is being made, so it may not call luma for anything
/// that needs the driver, and may not log: whoever hears of it may call luma.
pub fn begin() {
    static BEGUN: AtomicBool = AtomicBool::new(false);
    if !BEGUN.load(Ordering::Relaxed) && !BEGUN.swap(true, Ordering::Relaxed) {
        prepare();
    }
}

#[cold]
fn prepare() {
    if !switch::is_on() {
        return;
    }
    let segments = match switch::variable(c"LUMA_INTERPOSE_IPC").map(CStr::to_bytes) {
        Some(b"own") => Segments::Own,
        _ => Segments::Shared,
    };
    hosted::begin(segments);
}

static IS_EXITING: AtomicBool = AtomicBool::new(false);

/// To be called before the program's first pool is made, with nothing locked.
#[cold]
pub fn begin_process() {
    static BEGUN: Once = Once::new();
    switch::tell_misread();
    luma::ffi::start_process();
    BEGUN.call_once(|| {
        // SAFETY: the handler may run at any exit, and the library is never unloaded. Where it is not set, late
        // frees succeed.
        unsafe { libc::atexit(at_exit) };
    });
}

extern "C" fn at_exit() {
    IS_EXITING.store(true, Ordering::Relaxed);
}

/// Whether the handlers for the process's exit run that were set before the first pool was made, the driver's
/// among them.
#[inline]
pub fn is_exiting() -> bool {
    IS_EXITING.load(Ordering::Relaxed)
}
