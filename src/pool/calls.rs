#![forbid(unsafe_code)]
//! Backend calls: made with the pool's lock released, and waited for by requests that would fail.

use super::{Guard, Pool, Unusable};
use crate::backend::Backend;
use crate::error::Result;
use std::cell::Cell;
use std::sync::PoisonError;
use std::time::Instant;

thread_local! {
    /// Set while this thread is inside a backend call. A callback of the user may call luma again;
    /// such a call must not wait for the call that it is part of.
    static IN_BACKEND: Cell<bool> = const { Cell::new(false) };
}

/// Whether this thread is inside a backend call.
pub(super) fn in_backend() -> bool {
    IN_BACKEND.get()
}

/// A result that comes with the lock, taken again.
pub(super) type Locked<'a, T> = Result<(Guard<'a>, T)>;

impl Pool {
    /// Makes backend calls with the lock released.
    pub(super) fn unlocked<'a, T>(
        &'a self,
        mut guard: Guard<'a>,
        calls: impl FnOnce(&dyn Backend) -> T,
    ) -> Locked<'a, T> {
        guard.in_flight += 1;
        let backend = guard.backend.clone();
        drop(guard);
        let outer = IN_BACKEND.replace(true);
        let result = calls(&*backend);
        IN_BACKEND.set(outer);
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        // Also in a pool that another thread left half changed: somebody may wait for the end of
        // this call. A child that was forked inside the call has forgotten it.
        if let Some(open) = &mut *state {
            open.in_flight = open.in_flight.saturating_sub(1);
            open.calls_ended += 1;
        }
        self.call_ended.notify_all();
        let guard = self.usable(state)?;
        Ok((guard, result))
    }

    /// Waits until a backend call of another thread has ended. `false`: there is none, or time is
    /// up.
    pub(super) fn wait_for_others<'a>(
        &'a self,
        mut guard: Guard<'a>,
        deadline: Instant,
    ) -> Locked<'a, bool> {
        if in_backend() {
            return Ok((guard, false));
        }
        let ended = guard.calls_ended;
        while guard.in_flight > 0 && guard.calls_ended == ended {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok((guard, false));
            }
            let (state, _) = self
                .call_ended
                .wait_timeout(guard.0, left)
                .map_err(|_| Unusable::Poisoned)?;
            if state.is_none() {
                return Err(Unusable::Destroyed.into());
            }
            guard = Guard(state);
        }
        let waited = guard.calls_ended != ended;
        Ok((guard, waited))
    }
}
