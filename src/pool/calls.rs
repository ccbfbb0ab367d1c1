#![forbid(unsafe_code)]
//! Backend calls: made with the pool's lock released, and waited for by requests that would fail.

use super::oom::{Inputs, Steps};
use super::{Guard, Open, Pool, Unusable, registry};
use crate::backend::{Backend, BackendResult};
use crate::config::environment;
use crate::error::Result;
use crate::flag::Raised;
use crate::log::{self, Level};
use crate::text::text;
use std::cell::Cell;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{MutexGuard, PoisonError};
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

/// Until when a request that would fail waits for other threads; `None`: for as long as it takes.
pub(super) fn deadline() -> Option<Instant> {
    Instant::now().checked_add(environment().oom_wait)
}

/// Threads that wait on a pool's condition, counted under its lock. While there are none, the end of a call
/// asks the system for nothing.
#[derive(Debug)]
pub(super) struct Sleepers(AtomicU32);

impl Sleepers {
    pub(super) const fn none() -> Self {
        Self(AtomicU32::new(0))
    }

    // The pool's lock orders these; the counter needs no order of its own.
    pub(super) fn begin(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn end(&self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }

    fn any(&self) -> bool {
        self.0.load(Ordering::Relaxed) > 0
    }
}

/// A call in the pool's books. Dropped only by a panic.
struct InFlight<'a> {
    pool: &'a Pool,
    /// Whether its end may be what requests wait for.
    is_awaited: bool,
}

impl<'a> InFlight<'a> {
    /// Ends it, and gives the lock under which its outcome must be told to the engine: whoever
    /// finds no call in progress relies on that.
    fn end(self) -> MutexGuard<'a, Option<Open>> {
        let (pool, is_awaited) = (self.pool, self.is_awaited);
        std::mem::forget(self);
        pool.end_call(is_awaited)
    }
}

impl Drop for InFlight<'_> {
    fn drop(&mut self) {
        let mut state = self.pool.end_call(true);
        // The backend panicked: nobody knows what it has done. What the pool holds is neither used
        // nor given back any more.
        self.pool.broken.store(true, Ordering::Relaxed);
        self.pool.abandon_caches();
        std::mem::forget(state.take());
    }
}

/// Logs a backend call. Gives its outcome on.
pub(super) fn told<T>(
    backend: &dyn Backend,
    call: &str,
    bytes: u64,
    outcome: BackendResult<T>,
) -> BackendResult<T> {
    log::log(Level::Debug, || match &outcome {
        Ok(_) => text!("{} backend: {call} of {bytes} bytes", backend.name()),
        Err(error) => text!(
            "{} backend: {call} of {bytes} bytes: {error}",
            backend.name()
        ),
    });
    outcome
}

/// Makes a backend call. Gives its outcome with the nanoseconds that it took.
pub(super) fn timed<T>(call: impl FnOnce() -> T) -> (T, u64) {
    let start = Instant::now();
    let outcome = call();
    let ns = start.elapsed().as_nanos();
    (outcome, u64::try_from(ns).unwrap_or(u64::MAX))
}

/// Gives a range or a segment back to its backend, whatever lives in it.
pub(super) fn take_back(
    backend: &dyn Backend,
    base: u64,
    span: u64,
    mapped: u64,
    paged: bool,
) -> BackendResult<()> {
    if paged {
        told(
            backend,
            "unreserve",
            span,
            backend.unreserve(base, span, mapped),
        )
    } else {
        told(backend, "release", span, backend.release(base, span))
    }
}

impl Pool {
    /// Makes backend calls about memory with the lock released.
    pub(super) fn unlocked<'a, T>(
        &'a self,
        guard: Guard<'a>,
        calls: impl FnOnce(&dyn Backend) -> T,
    ) -> Locked<'a, T> {
        self.in_books(guard, true, calls)
    }

    /// The same for calls that bring no memory by themselves, about streams and events or to ask: nobody
    /// waits for their end.
    pub(super) fn unlocked_aside<'a, T>(
        &'a self,
        guard: Guard<'a>,
        calls: impl FnOnce(&dyn Backend) -> T,
    ) -> Locked<'a, T> {
        self.in_books(guard, false, calls)
    }

    fn in_books<'a, T>(
        &'a self,
        mut guard: Guard<'a>,
        is_awaited: bool,
        calls: impl FnOnce(&dyn Backend) -> T,
    ) -> Locked<'a, T> {
        guard.in_flight += 1;
        guard.awaited += u32::from(is_awaited);
        let backend = guard.backend.clone();
        drop(guard);
        let in_flight = InFlight {
            pool: self,
            is_awaited,
        };
        let in_backend = Raised::new(&IN_BACKEND);
        let result = calls(&*backend);
        drop(in_backend);
        let guard = self.usable(in_flight.end())?;
        Ok((guard, result))
    }

    /// Asks the backend, and other pools of its device, what they have, with the lock released: for the
    /// report of a request that fails.
    pub(super) fn ask_inputs<'a>(&'a self, guard: Guard<'a>, steps: Steps) -> Locked<'a, Inputs> {
        let (backend, pending) = (guard.backend.clone(), guard.pending());
        drop(guard);
        let in_backend = Raised::new(&IN_BACKEND);
        // Not in the books: nobody waits for an answer to others.
        let memory = backend.memory().ok().flatten();
        drop(in_backend);
        let inputs = Inputs {
            steps,
            pending,
            memory,
            elsewhere: backend
                .device_key()
                .and_then(|key| registry::free_elsewhere(key, self)),
        };
        Ok((self.lock()?, inputs))
    }

    fn end_call(&self, is_awaited: bool) -> MutexGuard<'_, Option<Open>> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        // Also in a pool that another thread left half changed: somebody may wait for the end of
        // this call. A child that was forked inside the call has forgotten it.
        if let Some(open) = &mut *state {
            open.in_flight = open.in_flight.saturating_sub(1);
            open.awaited = open.awaited.saturating_sub(u32::from(is_awaited));
            open.calls_ended += u64::from(is_awaited);
        }
        if self.sleepers.any() {
            self.call_ended.notify_all();
        }
        state
    }

    /// A request is about to sleep: until it wakes, each free takes the way on which it is told.
    pub(super) fn begin_wait(&self, guard: &mut Guard<'_>) {
        guard.waiters += 1;
        guard.set_express();
        self.set_switch(guard);
        self.sleepers.begin();
    }

    /// It does not sleep, or has.
    fn cancel_wait(&self, guard: &mut Guard<'_>) {
        self.sleepers.end();
        // A child that was forked meanwhile has begun to count anew.
        guard.waiters = guard.waiters.saturating_sub(1);
        guard.set_express();
        self.set_switch(guard);
    }

    /// It has slept. `None`: another thread failed meanwhile.
    pub(super) fn end_wait<'a>(
        &'a self,
        state: Option<MutexGuard<'a, Option<Open>>>,
    ) -> Result<Guard<'a>, Unusable> {
        let guard = state
            .ok_or(Unusable::Poisoned)
            .and_then(|state| self.usable(state));
        match guard {
            Ok(mut guard) => {
                self.cancel_wait(&mut guard);
                Ok(guard)
            }
            Err(reason) => {
                self.sleepers.end();
                Err(reason)
            }
        }
    }

    /// Waits until a backend call of another thread has ended, or something was freed. `false`: there is no
    /// such call, or time is up.
    pub(super) fn wait_for_others<'a>(
        &'a self,
        mut guard: Guard<'a>,
        deadline: Option<Instant>,
    ) -> Locked<'a, bool> {
        if in_backend() {
            return Ok((guard, false));
        }
        let ended = guard.calls_ended;
        while guard.awaited > 0 && guard.calls_ended == ended {
            let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
            if left.is_some_and(|left| left.is_zero()) {
                return Ok((guard, false));
            }
            self.begin_wait(&mut guard);
            // Nobody tells of what was cached until now.
            if guard.empty_caches() {
                self.cancel_wait(&mut guard);
                return Ok((guard, true));
            }
            let state = match left {
                None => self.call_ended.wait(guard.0).ok(),
                Some(left) => self
                    .call_ended
                    .wait_timeout(guard.0, left)
                    .ok()
                    .map(|(state, _)| state),
            };
            guard = self.end_wait(state)?;
        }
        let waited = guard.calls_ended != ended;
        Ok((guard, waited))
    }
}
