#![forbid(unsafe_code)]
//! Allocating and freeing with caches, and when a pool has any.

use super::cache::{Cache, Refused};
use super::{Caches, Locked, Sums, Switch, slots};
use crate::alloc::{HostMemoryExhausted, NotLive, Request};
use crate::backend::streams::{Stream, StreamKey};
use crate::error::{Error, Result, Status};
use crate::pool::ordered::{Passed, Turn};
use crate::pool::{Guard, Open, Pool, Unusable};
use crate::size::GRAIN;
use crate::text::{Text, text};
use std::sync::TryLockError;
use std::sync::atomic::Ordering;

/// How often threads wait for a pool's lock before it gets caches. Waits are rare where threads
/// allocate now and then, and follow each other where they do little else.
const WAITS: u32 = 64;

impl Switch {
    pub(in crate::pool) const fn off() -> Self {
        Self {
            is_on: std::sync::atomic::AtomicBool::new(false),
            waits: std::sync::atomic::AtomicU32::new(0),
        }
    }

    /// Whether there are caches. See [`Switch`] for what a late answer does.
    #[inline(always)]
    pub(in crate::pool) fn is_on(&self) -> bool {
        self.is_on.load(Ordering::Relaxed)
    }

    fn set(&self, is_on: bool) {
        self.is_on.store(is_on, Ordering::Relaxed);
        self.waits.store(0, Ordering::Relaxed);
    }
}

impl Open {
    /// Whether the pool may have caches. It must know the default stream only, its preset must leave the choice of addresses to luma, a block
    /// must be as large as its request, and debug mode and a record want to see each call in its order.
    fn may_cache(&self) -> bool {
        self.is_cacheable
            && !self.is_watched
            && self.policy().min_split == GRAIN
            && self.home == Some(StreamKey::DEFAULT)
            && !self.engine.is_separate()
    }

    /// Frees all cached blocks; `true`: there were some. Other threads may cache further ones as soon as
    /// this returns.
    pub(in crate::pool) fn empty_caches(&mut self) -> bool {
        let before = self.engine.usage().live;
        if let Some(caches) = &self.caches {
            drop(caches.emptied(&mut self.engine));
        }
        self.engine.usage().live < before
    }

    /// Makes the engine the only one that keeps books of blocks, as long as nobody allocates.
    pub(in crate::pool) fn give_up_caches(&mut self) {
        if let Some(caches) = &self.caches {
            let mut all = caches.lock_all();
            let sums = all.sums();
            all.give_up(&mut self.engine);
            self.calls.allocations += sums.allocations;
            self.calls.frees += sums.frees;
        }
    }

    /// What the caches add up to.
    pub(in crate::pool) fn cached(&self) -> Sums {
        let caches = self.caches.as_ref();
        caches.map_or_else(Sums::default, |caches| caches.lock_all().sums())
    }

    /// The same without a wait; `None`: a cache is in use, or a call failed inside one.
    pub(in crate::pool) fn try_cached(&self) -> Option<Sums> {
        match &self.caches {
            None => Some(Sums::default()),
            Some(caches) => Some(caches.try_lock_all()?.sums()),
        }
    }

    /// Whether the block at `addr`, live for the engine, is in a cache, so that it is free.
    pub(in crate::pool) fn is_cached(&self, addr: u64) -> bool {
        let caches = self.caches.as_ref();
        caches.is_some_and(|caches| caches.is_cached(&self.engine, addr))
    }
}

impl Pool {
    /// Begins thread caches now, and not when threads are seen to wait for each other. `false`: this pool
    /// has none; see [`Pool::stop_thread_caches`], and only the default preset has any.
    ///
    /// # Errors
    /// `OutOfMemory`: the host has no memory for them.
    pub fn start_thread_caches(&self) -> Result<bool> {
        let mut guard = self.lock()?;
        self.start_caches(&mut guard)
            .map_err(|HostMemoryExhausted| Error::host_memory())
    }

    /// Ends thread caches and keeps the pool without, however its threads wait for each other.
    pub fn stop_thread_caches(&self) -> Result<()> {
        let mut guard = self.lock()?;
        self.stop_caches(&mut guard);
        Ok(())
    }

    /// The bytes in thread caches at this moment: freed, and kept for the next request of the same size.
    pub fn thread_cached_bytes(&self) -> Result<u64> {
        Ok(self.lock()?.cached().bytes)
    }

    /// Begins caches, where the pool may have any. Gives whether it has.
    fn start_caches(&self, open: &mut Open) -> Result<bool, HostMemoryExhausted> {
        if open.caches.is_none() && open.may_cache() {
            self.caches.prepare()?;
            open.caches = Some(self.caches.clone());
            open.set_express();
            self.set_switch(open);
        }
        Ok(open.caches.is_some())
    }

    /// Lets calls use the caches that there are, unless a request waits for what they free.
    pub(in crate::pool) fn set_switch(&self, open: &Open) {
        let is_on = open.caches.is_some() && open.waiters == 0;
        if self.switch.is_on() != is_on {
            self.switch.set(is_on);
        }
    }

    /// Ends caches for good: gives all blocks up to the engine.
    pub(in crate::pool) fn stop_caches(&self, open: &mut Open) {
        open.give_up_caches();
        open.caches = None;
        open.is_cacheable = false;
        open.set_express();
        self.switch.set(false);
    }

    /// Ends caches with their pool. After a call that failed inside it nothing is told to the engine, whose
    /// memory is to go back all the same.
    pub(in crate::pool) fn end_caches(&self, open: &mut Open) {
        if self.state.is_poisoned() || self.caches.is_poisoned() {
            self.abandon_caches();
            open.caches = None;
        } else {
            self.stop_caches(open);
        }
    }

    /// Ends caches where nobody knows any more what they hold.
    pub(in crate::pool) fn abandon_caches(&self) {
        self.switch.set(false);
        self.caches.forget();
    }

    /// Locks the caches for a fork, after the pool.
    pub(in crate::pool) fn lock_caches_for_fork(&self) -> Option<Locked<'_>> {
        self.caches.lock_whatever()
    }

    /// The lock, by a thread that found it taken.
    #[cold]
    pub(in crate::pool) fn lock_after_waiting<T>(
        &self,
        reason: TryLockError<T>,
    ) -> Result<Guard<'_>, Unusable> {
        if let TryLockError::Poisoned(_) = reason {
            // Whatever is cached is not handed out any more.
            self.switch.set(false);
            return Err(Unusable::Poisoned);
        }
        drop(reason);
        let mut guard = self.usable(self.state.lock().map_err(|_| Unusable::Poisoned)?)?;
        if guard.caches.is_none() && self.switch.waits.fetch_add(1, Ordering::Relaxed) + 1 >= WAITS
        {
            // Without memory for them there are none, until as many more waits.
            self.switch.waits.store(0, Ordering::Relaxed);
            let _ = self.start_caches(&mut guard);
        }
        Ok(guard)
    }

    /// Allocates in a pool that has caches.
    #[inline(never)]
    pub(in crate::pool) fn allocate_cached(&self, request: &Request) -> Result<Option<u64>> {
        let slot = slots::mine();
        if let Some(slot) = slot.filter(|_| Cache::suits(request)) {
            if let Some(addr) = self.caches.take(slot, request) {
                return Ok(Some(addr));
            }
        }
        self.allocate_past_cache(self.lock()?, request, slot)
    }

    /// Allocates under the lock of a pool that has caches, or had them a moment ago.
    #[cold]
    #[inline(never)]
    pub(in crate::pool) fn allocate_past_cache(
        &self,
        mut guard: Guard<'_>,
        request: &Request,
        slot: Option<usize>,
    ) -> Result<Option<u64>> {
        let open = &mut *guard;
        let Some(caches) = &open.caches else {
            open.calls.allocations += 1;
            return self.allocate_in_order(guard, *request, Passed::DEFAULT);
        };
        let turn = Turn::plain(Stream::DEFAULT);
        let found = caches.allocate(&mut open.engine, request, slot);
        open.calls.allocations += u64::from(!matches!(found, Ok(Some((_, true)))));
        match found {
            Ok(Some((addr, _))) => return Ok(Some(addr)),
            Ok(None) => {}
            Err(error) => return self.allocate_slowly(guard, request, turn, Err(error)),
        }
        // What others have cached may fit.
        if let Some(block) = open.look(request)? {
            if let (Some(caches), Some(slot)) = (&open.caches, slot) {
                caches.adopt(&mut open.engine, block, request, slot);
            }
            return Ok(Some(block.addr));
        }
        self.allocate_slowly(guard, request, turn, Ok(None))
    }

    /// Frees in a pool that has caches.
    #[inline(never)]
    pub(in crate::pool) fn free_cached(&self, addr: u64) -> Result<()> {
        let slot = slots::mine();
        match slot.map_or(Err(Refused::NotOwned), |slot| self.caches.put(slot, addr)) {
            Ok(()) if self.switch.is_on() => Ok(()),
            // A request that has begun to wait since is told of the block.
            Ok(()) => {
                let mut guard = self.lock()?;
                if guard.waiters > 0 && guard.empty_caches() {
                    self.tell_waiters(&mut guard);
                }
                Ok(())
            }
            Err(Refused::Cached) => Err(free_already(addr)),
            Err(Refused::NotOwned | Refused::Full | Refused::Resting) => {
                self.free_past_cache(self.lock()?, addr, slot)
            }
        }
    }

    /// Frees under the lock of a pool that has caches, or had them a moment ago.
    #[cold]
    #[inline(never)]
    pub(in crate::pool) fn free_past_cache(
        &self,
        mut guard: Guard<'_>,
        addr: u64,
        slot: Option<usize>,
    ) -> Result<()> {
        let open = &mut *guard;
        let freed = match &open.caches {
            Some(caches) => caches.free(&mut open.engine, addr, slot),
            None => return self.free_in_order(guard, addr, Passed::DEFAULT),
        };
        match freed {
            Ok(by_engine) => {
                open.calls.frees += u64::from(by_engine);
                if open.waiters > 0 {
                    self.tell_waiters(&mut guard);
                }
                Ok(())
            }
            Err(NotLive) => Err(open.describe_bad_free(addr)),
        }
    }
}

impl Caches {
    #[inline]
    fn take(&self, slot: usize, request: &Request) -> Option<u64> {
        self.lock(slot)?.take(request)
    }

    /// Gives a block to the cache that owns it: a thread's own, or the one that owned the last block
    /// which this thread freed and did not own.
    #[inline]
    fn put(&self, slot: usize, addr: u64) -> Result<(), Refused> {
        let mut own = self.lock(slot).ok_or(Refused::NotOwned)?;
        let put = own.put(addr);
        if put != Err(Refused::NotOwned) {
            return put;
        }
        let other = usize::from(own.other);
        drop(own);
        if other == slot {
            return put;
        }
        self.lock(other).ok_or(Refused::NotOwned)?.put(addr)
    }
}

/// The failure of a free of a block that waits in a cache.
#[cold]
fn free_already(addr: u64) -> Error {
    Error::new(Status::InvalidPointer, free_already_message(addr))
}

/// What is said of a free of free memory.
pub(in crate::pool) fn free_already_message(addr: u64) -> Text {
    text!("{addr:#x} is free already, or was never handed out")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::Backend;
    use crate::backend::simulated::{SimulatedBackend, SimulatedStream};
    use crate::pool::PoolConfig;
    use std::sync::Arc;

    /// A pool with caches, over a device with streams.
    fn pool_with_caches() -> (Arc<SimulatedBackend>, Pool) {
        let device = Arc::new(SimulatedBackend::new(16 << 20).with_streams());
        let pool = Pool::with_backend(device.clone(), &PoolConfig::default()).unwrap();
        let block = pool.allocate(8 << 20, 0).unwrap().unwrap();
        pool.free(block).unwrap();
        assert!(pool.start_thread_caches().unwrap());
        (device, pool)
    }

    /// After a reset the default stream is another one than the stream that is used first.
    #[test]
    fn after_a_reset_streams_are_told_apart() {
        let (device, pool) = pool_with_caches();
        pool.forget().unwrap();
        let stream = SimulatedStream::of(&device);
        let first = pool
            .allocate_on(2 << 20, 0, stream.handle())
            .unwrap()
            .unwrap();
        pool.free_on(first, stream.handle()).unwrap();
        let own = pool.allocate(2 << 20, 0).unwrap().unwrap();
        device.default_stream().block();
        device.default_stream().queue();
        pool.free(own).unwrap();
        // Work that was queued on the default stream may still use it.
        let other = pool
            .allocate_on(2 << 20, 0, stream.handle())
            .unwrap()
            .unwrap();
        assert_ne!(other, own);
        device.default_stream().finish();
    }

    /// A call that failed inside a cache ends the pool, which gives its memory back all the same.
    #[test]
    fn a_pool_with_a_broken_cache_gives_its_memory_back() {
        let (device, pool) = pool_with_caches();
        let block = pool.allocate(1000, 0).unwrap().unwrap();
        pool.free(block).unwrap();
        let failed = std::thread::scope(|scope| {
            let failing = scope.spawn(|| {
                let _state = pool.state.lock().unwrap();
                let _cache = pool.caches.lock(0);
                panic!("a call fails");
            });
            failing.join()
        });
        assert!(failed.is_err());
        pool.close().unwrap();
        assert_eq!((device.used(), device.grants()), (0, 0));
    }

    /// Resets under threads that use caches: stale blocks are refused or another thread's, and all stays whole.
    #[test]
    fn resets_go_with_caches() {
        let (_device, pool) = pool_with_caches();
        let done = std::sync::atomic::AtomicBool::new(false);
        std::thread::scope(|scope| {
            for at in 0..3 {
                let (pool, done) = (&pool, &done);
                scope.spawn(move || {
                    while !done.load(Ordering::Relaxed) {
                        let blocks = [1000, 4096, 1 << 20, (1 << 20) + 1]
                            .map(|bytes| pool.allocate(bytes, 256 << at).unwrap().unwrap());
                        for addr in blocks {
                            let _ = pool.free(addr);
                        }
                    }
                });
            }
            for _ in 0..if cfg!(miri) { 3 } else { 200 } {
                pool.forget().unwrap();
                pool.check().unwrap();
                let stats = pool.stats().unwrap();
                assert!(stats.allocated_bytes <= stats.peak_bytes);
            }
            done.store(true, Ordering::Relaxed);
        });
        pool.forget().unwrap();
        pool.check().unwrap();
        let stats = pool.stats().unwrap();
        assert_eq!((stats.live_blocks, stats.allocated_bytes), (0, 0));
        assert_eq!((stats.requested_bytes, stats.reserved_bytes), (0, 0));
    }

    /// Other pools' refusals name what this one could give back, cached blocks too.
    #[test]
    fn cached_blocks_count_as_free_for_other_pools() {
        let (device, pool) = pool_with_caches();
        let blocks: Vec<u64> = (0..8)
            .map(|_| pool.allocate(1 << 20, 0).unwrap().unwrap())
            .collect();
        for addr in blocks {
            pool.free(addr).unwrap();
        }
        assert!(pool.thread_cached_bytes().unwrap() > 0);
        let told = pool.reclaimable_of(device.device_key().unwrap());
        assert_eq!(told, pool.empty_cache().unwrap());
    }
}
