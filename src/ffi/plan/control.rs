//! Limits and callbacks, as the planner takes them.

use super::types::{luma_progress_fn_t, luma_progress_t, luma_stopped_t};
use crate::plan::{Progress, Stopped};
use core::ffi::{c_int, c_void};
use std::time::{Duration, Instant};

/// The time limit where none is given.
const DEFAULT_LIMIT: Duration = Duration::from_secs(10);

/// A callback of the user with the pointer that goes with it.
pub(super) struct ProgressCallback {
    function: unsafe extern "C" fn(*const luma_progress_t, *mut c_void) -> c_int,
    user: *mut c_void,
}

// SAFETY: the contract of `luma_progress_fn_t`: threads of the search may call it.
unsafe impl Sync for ProgressCallback {}

impl ProgressCallback {
    /// # Safety
    /// `function` may be called with `user` from any thread for as long as the result is used.
    pub(super) unsafe fn new(function: luma_progress_fn_t, user: *mut c_void) -> Option<Self> {
        function.map(|function| Self { function, user })
    }

    /// Tells the caller; false to stop.
    pub(super) fn tell(&self, progress: Progress) -> bool {
        let progress = luma_progress_t {
            struct_size: size_of::<luma_progress_t>(),
            best: progress.extra_bytes,
            lower_bound: progress.lower_bound,
            work: progress.work,
        };
        // SAFETY: the contract of `new`.
        unsafe { (self.function)(&progress, self.user) == 0 }
    }
}

/// When to stop, of limits as the options have them.
pub(super) fn deadline(time_limit_ms: u64, work_limit: u64) -> Option<Instant> {
    let limit = match (time_limit_ms, work_limit) {
        (u64::MAX, _) => return None,
        (0, 0) => DEFAULT_LIMIT,
        (0, _) => return None,
        (time, _) => Duration::from_millis(time),
    };
    // Beyond what the clock can say there is no limit.
    Instant::now().checked_add(limit)
}

/// A work limit as the options have it.
pub(super) fn work(limit: u64) -> Option<u64> {
    (limit != 0).then_some(limit)
}

pub(super) fn stopped(stopped: Stopped) -> i32 {
    let stopped = match stopped {
        Stopped::Finished => luma_stopped_t::LUMA_STOPPED_FINISHED,
        Stopped::TimeLimit => luma_stopped_t::LUMA_STOPPED_TIME,
        Stopped::Caller => luma_stopped_t::LUMA_STOPPED_CALLER,
        Stopped::Work => luma_stopped_t::LUMA_STOPPED_WORK,
    };
    stopped as i32
}
