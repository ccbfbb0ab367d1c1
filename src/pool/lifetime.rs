#![forbid(unsafe_code)]
//! The end of a pool, the loss of its device, and the fork of its process.

use super::calls::in_backend;
use super::{Open, Pool, Unusable};
use crate::error::{Error, Result, Status};
use crate::log::{self, Level};
use std::sync::{MutexGuard, PoisonError};
use std::time::Duration;

/// How long a fork waits for a pool's backend calls to end.
const FORK_WAIT: Duration = Duration::from_secs(1);

impl Pool {
    /// Gives everything back, live blocks too, and ends the pool: every later call fails. Gives
    /// the number of blocks that were live.
    ///
    /// # Errors
    /// `InvalidValue`: called from inside the pool's own backend callbacks. The first failure of
    /// the backend, after everything else was given back.
    pub fn close(&self) -> Result<u64> {
        if in_backend() {
            return Err(Error::new(
                Status::InvalidValue,
                "a pool cannot be destroyed from inside a backend's callback",
            ));
        }
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        while state.as_ref().is_some_and(|open| open.in_flight > 0) {
            state = self
                .call_ended
                .wait(state)
                .unwrap_or_else(PoisonError::into_inner);
        }
        let Some(mut open) = state.take() else {
            return Err(Unusable::Destroyed.into());
        };
        drop(state);
        let live = open.engine.usage().live;
        let mut failed = Ok(live);
        for (region, bytes) in open.engine.drain() {
            let returned = if region.paged {
                open.backend.unreserve(region.base, region.span, bytes)
            } else {
                open.backend.release(region.base, region.span)
            };
            if let Err(error) = returned {
                let message = format!(
                    "{} bytes at {:#x} were not taken back: {error}",
                    bytes, region.base
                );
                failed = failed.and(Err(Error::new(Status::Driver, message)));
            }
        }
        failed
    }

    /// Locks the pool for a fork, after a moment for backend calls in progress to end: a child cannot
    /// finish them.
    pub(super) fn lock_for_fork(&self) -> MutexGuard<'_, Option<Open>> {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let busy = |state: &mut Option<Open>| state.as_ref().is_some_and(|open| open.in_flight > 0);
        match self.call_ended.wait_timeout_while(state, FORK_WAIT, busy) {
            Ok((state, _)) => state,
            Err(poisoned) => poisoned.into_inner().0,
        }
    }

    /// Forgets every block and every segment, whose memory is gone with its device, and begins anew.
    /// `give_back`: the memory is still there and is given back.
    pub(super) fn forget(&self, give_back: bool) -> Result<()> {
        let mut guard = self.lock()?;
        let regions = guard.engine.drain();
        guard.calls.backend_releases += regions.len() as u64;
        let fresh = super::Segmenter::new(*guard.policy());
        guard.segmenter = fresh;
        if !give_back {
            return Ok(());
        }
        let (_guard, ()) = self.unlocked(guard, |backend| {
            for (region, bytes) in regions {
                let returned = if region.paged {
                    backend.unreserve(region.base, region.span, bytes)
                } else {
                    backend.release(region.base, region.span)
                };
                if let Err(error) = returned {
                    log::log(Level::Error, || {
                        format!("{bytes} bytes at {:#x} are lost: {error}", region.base)
                    });
                }
            }
        })?;
        Ok(())
    }
}

impl Open {
    /// In a forked child: the backend calls that other threads had begun never end here. What they
    /// were about stays marked and unused.
    pub(super) fn after_fork(&mut self) {
        self.in_flight = 0;
        self.pledged = 0;
    }
}
