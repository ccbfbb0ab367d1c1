#![forbid(unsafe_code)]
//! The end of a pool, the loss of its device, and the fork of its process.

use super::calls::{in_backend, take_back};
use super::unordered::Unrecorded;
use super::{Calls, Open, Pool, checked, first_home, recorder};
use crate::alloc::policy::Segmenter;
use crate::alloc::region::Region;
use crate::backend::streams::StreamKey;
use crate::error::{Error, Result, Status};
use crate::stream::{Captures, Table};
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
        if let Some(open) = &mut *state {
            self.end_caches(open);
        }
        let Some(mut open) = state.take() else {
            return Err(self.why_closed().into());
        };
        drop(state);
        let live = open.engine.usage().live;
        open.record_all_freed();
        Self::close_streams(&mut open);
        open.empty_quarantine();
        checked::tell_findings(&open.take_findings());
        if let Some(leaks) = open.leaks() {
            checked::tell_leaks(&leaks);
        }
        let mut failed = Ok(live);
        while let Some((region, mapped)) = open.engine.take_region() {
            let Region {
                base, span, paged, ..
            } = region;
            if let Err(error) = take_back(&*open.backend, base, span, mapped, paged) {
                failed = failed.and(Err(Error::new(
                    error.status(),
                    text!(
                        "{mapped} bytes at {base:#x} were not taken back by the {} backend: {error}",
                        open.backend.name()
                    ),
                )));
            }
        }
        failed
    }

    /// Locks the pool for a fork, after a moment for backend calls in progress to end: a child cannot
    /// finish them.
    pub(super) fn lock_for_fork(&self) -> MutexGuard<'_, Option<Open>> {
        // Inside a backend call there is no waiting for its end.
        let most = if in_backend() {
            Duration::ZERO
        } else {
            FORK_WAIT
        };
        self.lock_when_quiet(Some(most))
    }

    /// Locks the pool, open or not, half changed or not, when no backend call is in progress, or
    /// `most` has passed.
    fn lock_when_quiet(&self, most: Option<Duration>) -> MutexGuard<'_, Option<Open>> {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let busy = |state: &mut Option<Open>| state.as_ref().is_some_and(|open| open.in_flight > 0);
        self.sleepers.begin();
        let state = match most {
            None => self
                .call_ended
                .wait_while(state, busy)
                .unwrap_or_else(PoisonError::into_inner),
            Some(most) => match self.call_ended.wait_timeout_while(state, most, busy) {
                Ok((state, _)) => state,
                Err(poisoned) => poisoned.into_inner().0,
            },
        };
        self.sleepers.end();
        state
    }

    /// As [`Pool::forget`], where the memory was lost with that device. `false`: it was not.
    pub(super) fn forget_if_of(&self, device: i32) -> Result<bool> {
        let is_lost = self
            .lock()
            .is_ok_and(|guard| guard.backend.is_lost_by_reset(device));
        if is_lost {
            self.forget()?;
        }
        Ok(is_lost)
    }

    /// The device was reset: forgets every block. Memory that outlives that is given back; of memory
    /// that is gone the backend is not told.
    pub(super) fn forget(&self) -> Result<()> {
        self.forget_if(|_| true)
    }

    /// How often streams and blocks were forgotten.
    pub(super) fn epoch(&self) -> Result<u64> {
        Ok(self.lock()?.epoch)
    }

    /// As [`Pool::forget`], unless that was done since.
    pub(super) fn forget_since(&self, epoch: u64) -> Result<()> {
        self.forget_if(|open| open.epoch == epoch)
    }

    fn forget_if(&self, is_to_be: impl FnOnce(&Open) -> bool) -> Result<()> {
        if in_backend() {
            return Err(Error::new(
                Status::InvalidValue,
                "a device cannot be reset from inside a backend's callback",
            ));
        }
        // The outcome of a call in progress would be about chunks that are forgotten.
        let mut guard = self.usable(self.lock_when_quiet(None))?;
        if !is_to_be(&guard) {
            return Ok(());
        }
        if !guard.backend.outlives_reset() {
            guard.forget_all();
            return Ok(());
        }
        guard.free_all();
        drop(guard);
        self.empty_cache().map(|_| ())
    }
}

impl Open {
    /// A record has the blocks freed that end with their pool.
    fn record_all_freed(&self) {
        if self.record {
            for (block, _) in self.engine.live_blocks() {
                recorder::freed(self.id, block.addr);
            }
        }
    }

    fn free_all(&mut self) {
        self.record_all_freed();
        self.forget_checked();
        self.give_up_caches();
        self.engine.free_all();
        self.forget_streams();
        self.segmenter = Segmenter::new(*self.policy());
    }

    /// Nothing is live and nothing waits. Events went with what they were about.
    fn forget_streams(&mut self) {
        self.streams = Table::default();
        self.captures = Captures::default();
        self.captured_calls = 0;
        self.epoch += 1;
        self.engine.settle_all();
        self.engine.rejoin();
        // What caches serve and take back is the default stream's.
        self.home = match self.caches {
            Some(_) => Some(StreamKey::DEFAULT),
            None => first_home(self.source),
        };
        self.home_domain = None;
        self.domain = None;
        self.unordered = None;
        self.users = Vec::new();
        self.unrecorded = Unrecorded::default();
        self.is_cramped = false;
        self.set_express();
        // Without memory for that it is plain until another stream comes.
        let _ = self.stay_separate();
    }

    /// Forgets every block and all memory, which is gone: of that the backend is not told.
    fn forget_all(&mut self) {
        self.free_all();
        while self.engine.forget_region() {
            self.calls.backend_releases += 1;
        }
        self.backend.forget();
    }

    /// In a forked child: the backend calls that other threads had begun never end here. What they
    /// were about stays marked and unused. Memory that only the parent has is forgotten.
    pub(super) fn after_fork(&mut self) {
        self.in_flight = 0;
        self.awaited = 0;
        self.waiters = 0;
        self.polling = false;
        self.set_express();
        self.pledged = 0;
        self.reserving = false;
        self.ceiling = u64::MAX;
        if !self.backend.survives_fork() {
            // The record of these frees would be the parent's.
            let record = std::mem::take(&mut self.record);
            self.forget_all();
            self.record = record;
            // So is what was counted of it.
            self.calls = Calls::default();
            self.reset_peak();
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::backend::simulated::{SimulatedBackend, SimulatedStream};
    use crate::pool::{Pool, PoolConfig};
    use std::sync::Arc;

    #[test]
    fn a_reset_forgets_what_waits_for_streams_and_captures() {
        let device = Arc::new(SimulatedBackend::new(64 << 20).with_streams());
        let pool = Pool::with_backend(device.clone(), &PoolConfig::default()).unwrap();
        for _ in 0..2 {
            let [one, other, user] = [(); 3].map(|()| SimulatedStream::of(&device));
            let block = |stream: &SimulatedStream| {
                let block = pool.allocate_on(1 << 20, 0, stream.handle());
                block.unwrap().unwrap()
            };
            let blocks = [&one, &other].map(block);
            pool.record_stream(blocks[0], user.handle()).unwrap();
            for stream in [&one, &other, &user] {
                stream.queue();
            }
            pool.free_on(blocks[0], one.handle()).unwrap();
            pool.free_on(blocks[1], other.handle()).unwrap();
            user.begin_capture();
            block(&user);
            assert!(pool.stats().unwrap().pending_bytes >= 2 << 20);
            // The work went with the device.
            for stream in [&one, &other, &user] {
                stream.finish();
            }
            drop(user.end_capture());
            pool.forget().unwrap();
            pool.check().unwrap();
            let stats = pool.stats().unwrap();
            assert_eq!((stats.pending_bytes, stats.live_blocks), (0, 0));
            assert_eq!((stats.reserved_bytes, device.used()), (0, 0));
            // One stream is known again.
            let records = device.context().calls().records;
            let block = block(&one);
            pool.free_on(block, one.handle()).unwrap();
            assert_eq!(device.context().calls().records, records);
            pool.forget().unwrap();
        }
        assert_eq!(device.context().violations(), [""; 0]);
        assert_eq!(device.violations(), [""; 0]);
    }
}
