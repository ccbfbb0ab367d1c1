//! The life of the process: initialised, forked, ending.

use crate::status::{Code, Result};
use std::sync::atomic::{AtomicU8, Ordering};

const FRESH: u8 = 0;
const READY: u8 = 1;
/// A child of a process that was initialised: it has no CUDA.
const FORKED: u8 = 2;
const ENDED: u8 = 3;

static STAGE: AtomicU8 = AtomicU8::new(FRESH);

extern "C" fn at_exit() {
    STAGE.store(ENDED, Ordering::Release);
}

extern "C" fn in_child() {
    if STAGE.load(Ordering::Acquire) == READY {
        STAGE.store(FORKED, Ordering::Release);
    }
}

/// When a function may be called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// From `cuInit` to the end.
    Initialized,
    /// Also before `cuInit`.
    Early,
    /// At any time.
    Always,
}

/// Whether a function may be called now.
pub fn permit(when: When) -> Result {
    match (STAGE.load(Ordering::Acquire), when) {
        (_, When::Always) | (READY, _) | (FRESH | FORKED, When::Early) => Ok(()),
        (ENDED, _) => Err(Code::DEINITIALIZED),
        _ => Err(Code::NOT_INITIALIZED),
    }
}

/// Whether this is a child of a process that was initialised.
pub fn is_forked() -> bool {
    STAGE.load(Ordering::Acquire) == FORKED
}

/// Whether `cuInit` succeeded in this process.
pub fn is_ready() -> bool {
    STAGE.load(Ordering::Acquire) == READY
}

/// From now on functions may be called. The handlers are registered here, as the driver does it: what
/// the program registered before runs after them.
pub fn begin() -> Result {
    if is_forked() {
        return Err(Code::NOT_INITIALIZED);
    }
    if STAGE
        .compare_exchange(FRESH, READY, Ordering::AcqRel, Ordering::Acquire)
        .is_ok()
    {
        // SAFETY: both handlers are functions of this library, which is never unloaded (-z nodelete),
        // and only store a number.
        let failed = unsafe {
            libc::atexit(at_exit) != 0 || libc::pthread_atfork(None, None, Some(in_child)) != 0
        };
        if failed {
            return Err(Code::OPERATING_SYSTEM);
        }
    }
    Ok(())
}
