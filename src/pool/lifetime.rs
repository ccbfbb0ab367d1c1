#![forbid(unsafe_code)]
//! The end of a pool, the loss of its device, and the fork of its process.

use super::calls::in_backend;
use super::{Open, Pool, Unusable};
use crate::alloc::Engine;
use crate::alloc::policy::Segmenter;
use crate::alloc::region::Region;
use crate::backend::Backend;
use crate::error::{Error, Result, Status};
use crate::log::{self, Level};
use crate::text::text;
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
        let mut state = self.lock_when_quiet(None);
        let Some(mut open) = state.take() else {
            return Err(Unusable::Destroyed.into());
        };
        drop(state);
        let live = open.engine.usage().live;
        let mut failed = Ok(live);
        while let Some((region, bytes)) = open.engine.take_region() {
            if let Err(error) = take_back(&*open.backend, &region, bytes) {
                failed = failed.and(Err(error));
            }
        }
        failed
    }

    /// Locks the pool for a fork, after a moment for backend calls in progress to end: a child cannot
    /// finish them.
    pub(super) fn lock_for_fork(&self) -> MutexGuard<'_, Option<Open>> {
        self.lock_when_quiet(Some(FORK_WAIT))
    }

    /// Locks the pool, open or not, half changed or not, when no backend call is in progress, or
    /// `most` has passed.
    fn lock_when_quiet(&self, most: Option<Duration>) -> MutexGuard<'_, Option<Open>> {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let busy = |state: &mut Option<Open>| state.as_ref().is_some_and(|open| open.in_flight > 0);
        match most {
            None => self
                .call_ended
                .wait_while(state, busy)
                .unwrap_or_else(PoisonError::into_inner),
            Some(most) => match self.call_ended.wait_timeout_while(state, most, busy) {
                Ok((state, _)) => state,
                Err(poisoned) => poisoned.into_inner().0,
            },
        }
    }

    /// Forgets every block and every segment, whose memory is gone with its device, and begins anew.
    /// `give_back`: the memory is still there and is given back.
    pub(super) fn forget(&self, give_back: bool) -> Result<()> {
        if in_backend() {
            return Err(Error::new(
                Status::InvalidValue,
                "a device cannot be reset from inside a backend's callback",
            ));
        }
        // The outcome of a call in progress would be about chunks that are forgotten.
        let mut guard = self.usable(self.lock_when_quiet(None))?;
        let policy = *guard.policy();
        let mut gone = std::mem::replace(&mut guard.engine, Engine::new(policy));
        guard.segmenter = Segmenter::new(policy);
        guard.calls.backend_releases += gone.segments() as u64;
        if !give_back {
            return Ok(());
        }
        let (_guard, ()) = self.unlocked(guard, |backend| {
            while let Some((region, bytes)) = gone.take_region() {
                if let Err(error) = take_back(backend, &region, bytes) {
                    log::log(Level::Error, || text!("{error}"));
                }
            }
        })?;
        Ok(())
    }
}

/// Gives a region back to its backend, whatever lives in it.
fn take_back(backend: &dyn Backend, region: &Region, bytes: u64) -> Result<()> {
    let returned = if region.paged {
        backend.unreserve(region.base, region.span, bytes)
    } else {
        backend.release(region.base, region.span)
    };
    returned.map_err(|error| {
        Error::new(
            Status::Driver,
            text!(
                "{bytes} bytes at {:#x} were not taken back by the {} backend: {error}",
                region.base,
                backend.name()
            ),
        )
    })
}

impl Open {
    /// In a forked child: the backend calls that other threads had begun never end here. What they
    /// were about stays marked and unused.
    pub(super) fn after_fork(&mut self) {
        self.in_flight = 0;
        self.pledged = 0;
    }
}
