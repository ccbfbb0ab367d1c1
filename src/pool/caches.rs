#![forbid(unsafe_code)]
//! Thread caches: blocks that a thread freed and that it gets again without the pool's lock.
//!
//! They begin when a second thread is seen to wait for the pool's lock, and change no result but for
//! the addresses of blocks. To the engine a cached block is live, marked by the number of its cache; to
//! everybody else it is free. Whatever looks for memory harder than by one look at the free blocks empties
//! the caches first, so that no request fails and no backend is asked because of them.
//!
//! *Locks.* Each cache has a mutex. The order is the pool's lock, then caches in the order of their
//! numbers; who holds a cache's lock never takes the pool's. What lists and counts blocks takes them
//! all.
//!
//! *The peak.* It is exact without a counter that threads share. Each cache has some *room*: bytes that its
//! thread may hand out beyond what it has handed out. What the engine counts as allocated is what is handed
//! out and the room of all caches, and is never above the peak, so that the true figure is not either.
//! The peak rises only while all caches are locked and none has room, when both are the same.
//!
//! - [`cache`]: one cache;
//! - [`slots`]: which cache a thread uses;
//! - `calls`: allocating and freeing with caches, and when there are any;
//! - `figures`: what a pool tells of its blocks.

mod cache;
mod calls;
mod figures;
mod slots;

use crate::alloc::{Block, Engine, HostMemoryExhausted, NotLive, Request};
use cache::{Cache, Refused};
pub(in crate::pool) use calls::free_already_message;
use slots::SLOTS;
pub(in crate::pool) use slots::after_fork;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

/// Whether a pool has caches, for calls that do not hold its lock. In a cache line of its own, which
/// stays in every processor's cache.
///
/// It changes under the pool's lock, and may be read late. A thread that reads `false` late finds the
/// caches under the pool's lock; one that reads `true` late finds its cache without the block.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(super) struct Switch {
    is_on: AtomicBool,
    /// How often a thread has waited for the pool's lock.
    waits: AtomicU32,
}

/// The caches of one pool. Only with the pool's lock is it known which of them are in use.
#[derive(Debug, Default)]
pub(super) struct Caches {
    /// Made when caches begin for the first time.
    table: OnceLock<Box<[Mutex<Cache>]>>,
    /// All caches that ever had a block or room are below. Written under the pool's lock.
    used: AtomicUsize,
}

/// What all caches of a pool add up to.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Sums {
    /// Blocks that are cached.
    pub(super) blocks: u64,
    /// The bytes in them.
    pub(super) bytes: u64,
    /// The largest.
    pub(super) largest: u64,
    /// The room of all caches.
    pub(super) room: u64,
    /// What was asked for, of handed out blocks that the engine counts none for.
    pub(super) requested: u64,
    /// Requests that were served.
    pub(super) allocations: u64,
    /// Blocks that were taken back.
    pub(super) frees: u64,
}

/// The locks on all caches in use, and with the pool's lock on everything.
pub(super) struct Locked<'a>([Option<MutexGuard<'a, Cache>>; SLOTS]);

/// The number by which the engine knows a cache.
fn tag_of(slot: usize) -> u16 {
    slot as u16 + 1
}

/// The cache of a number, which is not 0.
fn slot_of(tag: u16) -> usize {
    usize::from(tag) - 1
}

impl Caches {
    /// Makes the table, if it is not there yet.
    fn prepare(&self) -> Result<(), HostMemoryExhausted> {
        if self.table.get().is_some() {
            return Ok(());
        }
        let mut table = Vec::new();
        table
            .try_reserve_exact(SLOTS)
            .map_err(|_| HostMemoryExhausted)?;
        table.resize_with(SLOTS, || Mutex::new(Cache::new()));
        self.table.get_or_init(|| table.into_boxed_slice());
        Ok(())
    }

    /// Locks one cache; `None`: there are none. Panics where an earlier call failed inside it, which
    /// under the pool's lock ends the pool, too.
    #[inline]
    fn lock(&self, slot: usize) -> Option<MutexGuard<'_, Cache>> {
        let cache = self.table.get()?.get(slot)?;
        Some(cache.lock().expect("no call failed inside a cache"))
    }

    /// Whether a call failed inside a cache.
    fn is_poisoned(&self) -> bool {
        let mut caches = self.table.get().into_iter().flatten();
        caches.any(Mutex::is_poisoned)
    }

    fn used(&self) -> usize {
        self.used.load(Ordering::Relaxed)
    }

    /// Locks all caches in use. To be done with the pool's lock.
    pub(super) fn lock_all(&self) -> Locked<'_> {
        let mut all = Locked([const { None }; SLOTS]);
        for (slot, place) in all.0.iter_mut().enumerate().take(self.used()) {
            *place = self.lock(slot);
        }
        all
    }

    /// The same without a wait; `None`: one is locked, or a call failed inside it.
    fn try_lock_all(&self) -> Option<Locked<'_>> {
        let mut all = Locked([const { None }; SLOTS]);
        let caches = self.table.get().into_iter().flatten().take(self.used());
        for (cache, place) in caches.zip(&mut all.0) {
            *place = Some(cache.try_lock().ok()?);
        }
        Some(all)
    }

    /// Locks all caches, in use or not, whole or not. `None`: there are none.
    pub(super) fn lock_whatever(&self) -> Option<Locked<'_>> {
        let table = self.table.get()?;
        let mut all = Locked([const { None }; SLOTS]);
        for (cache, place) in table.iter().zip(&mut all.0) {
            *place = Some(cache.lock().unwrap_or_else(PoisonError::into_inner));
        }
        Some(all)
    }

    /// Forgets all blocks without telling the engine, whose books are of no use any more.
    pub(super) fn forget(&self) {
        if let Some(mut all) = self.lock_whatever() {
            all.caches_mut().for_each(Cache::forget);
        }
        for cache in self.table.get().into_iter().flatten() {
            cache.clear_poison();
        }
    }

    /// Frees all cached blocks, and gives the locks under which there are none. To be done with the
    /// pool's lock.
    pub(super) fn emptied(&self, engine: &mut Engine) -> Locked<'_> {
        let mut all = self.lock_all();
        all.empty(engine);
        all
    }

    /// Allocates for the thread of a slot, if it has one, under the pool's lock. What is counted in the
    /// cache says `true`. `None`: no free block fits; those that are cached elsewhere may.
    fn allocate(
        &self,
        engine: &mut Engine,
        request: &Request,
        slot: Option<usize>,
    ) -> Result<Option<(u64, bool)>, HostMemoryExhausted> {
        if let Some(slot) = slot {
            self.begin_use(slot);
        }
        if let Some((mut cache, slot)) = slot.and_then(|slot| Some((self.lock(slot)?, slot))) {
            if cache.make_room(engine, request.size) {
                if Cache::suits(request) {
                    if let Some(addr) = cache.take(request) {
                        return Ok(Some((addr, true)));
                    }
                    cache.miss(engine);
                }
                // The engine counts what it hands out.
                cache.room -= request.size;
                engine.take_promise(request.size);
                let mut found = engine.allocate(request)?;
                if found.is_none() && cache.cached > 0 {
                    cache.evict(engine, u64::MAX);
                    found = engine.allocate(request)?;
                }
                if let Some(block) = found {
                    self.adopt_into(&mut cache, engine, block, request, slot);
                }
                return Ok(found.map(|block| (block.addr, false)));
            }
        } else if engine.below_peak() >= request.size {
            return Ok(engine.allocate(request)?.map(|block| (block.addr, false)));
        }
        let mut all = self.lock_all();
        all.give_room(engine);
        // What the engine counts is the true figure now, and may become the peak.
        let own = slot.and_then(|slot| all.0[slot].as_mut());
        if let Some(cache) = own.filter(|cache| cache.has(request)) {
            engine.promise(request.size);
            cache.room = request.size;
            return Ok(cache.take(request).map(|addr| (addr, true)));
        }
        let found = engine.allocate(request)?;
        drop(all);
        if let (Some(block), Some(slot)) = (found, slot) {
            self.adopt(engine, block, request, slot);
        }
        Ok(found.map(|block| (block.addr, false)))
    }

    /// Puts a block that the engine has just handed out into a thread's cache, if there is room.
    pub(super) fn adopt(&self, engine: &mut Engine, block: Block, request: &Request, slot: usize) {
        self.begin_use(slot);
        if let Some(mut cache) = self.lock(slot) {
            self.adopt_into(&mut cache, engine, block, request, slot);
        }
    }

    fn adopt_into(
        &self,
        cache: &mut Cache,
        engine: &mut Engine,
        block: Block,
        request: &Request,
        slot: usize,
    ) {
        if !Cache::suits(request) || block.size != request.size {
            return;
        }
        // Without memory for that the block is live as any other.
        let _ = cache.adopt(engine, block.addr, request, tag_of(slot));
    }

    /// A cache is about to get blocks or room. Under the pool's lock.
    fn begin_use(&self, slot: usize) {
        if slot >= self.used() {
            self.used.store(slot + 1, Ordering::Relaxed);
        }
    }

    /// Frees a block, under the pool's lock. What a cache takes back is counted there; `true`: the
    /// engine took it.
    fn free(&self, engine: &mut Engine, addr: u64, slot: Option<usize>) -> Result<bool, NotLive> {
        let tag = engine.tag(addr).ok_or(NotLive)?;
        if tag == 0 {
            return engine.free(addr, 0).map(|_| true);
        }
        let owner = slot_of(tag);
        let mut cache = self.lock(owner).ok_or(NotLive)?;
        let mut put = cache.put(addr);
        match put {
            Err(Refused::Full) => {
                // Of a cache that is full of small blocks several rounds may have to go.
                while put == Err(Refused::Full) && cache.cached > 0 {
                    cache.evict_some(engine);
                    put = cache.put(addr);
                }
                if put == Err(Refused::Full) {
                    cache.disown(engine, addr);
                    return engine.free(addr, 0).map(|_| true);
                }
            }
            Err(Refused::Resting) => {
                cache.disown(engine, addr);
                return engine.free(addr, 0).map(|_| true);
            }
            _ => {}
        }
        drop(cache);
        put.map_err(|_| NotLive)?;
        if let Some(mut own) = slot.and_then(|slot| self.lock(slot)) {
            own.other = owner as u8;
        }
        Ok(false)
    }

    /// Whether the block at `addr`, live for the engine, is cached.
    pub(super) fn is_cached(&self, engine: &Engine, addr: u64) -> bool {
        let tag = engine.tag(addr).filter(|&tag| tag != 0);
        tag.and_then(|tag| self.lock(slot_of(tag)))
            .is_some_and(|cache| cache.is_cached(addr))
    }
}

impl Locked<'_> {
    fn caches(&self) -> impl Iterator<Item = &Cache> {
        self.0.iter().flatten().map(|cache| &**cache)
    }

    fn caches_mut(&mut self) -> impl Iterator<Item = &mut Cache> {
        self.0.iter_mut().flatten().map(|cache| &mut **cache)
    }

    /// Frees all cached blocks and takes all room back: then the engine's figures are true.
    fn empty(&mut self, engine: &mut Engine) {
        for cache in self.caches_mut() {
            cache.evict(engine, u64::MAX);
        }
        self.give_room(engine);
    }

    fn give_room(&mut self, engine: &mut Engine) {
        for cache in self.caches_mut() {
            cache.give_room(engine);
        }
    }

    /// Gives all blocks up, cached or handed out, for which the engine alone keeps books then.
    pub(super) fn give_up(&mut self, engine: &mut Engine) {
        for cache in self.caches_mut() {
            cache.give_up(engine);
        }
    }

    /// The sums of all caches.
    pub(super) fn sums(&self) -> Sums {
        let mut sums = Sums::default();
        for cache in self.caches() {
            sums.blocks += cache.cached;
            sums.bytes += cache.cached_bytes;
            sums.largest = sums.largest.max(cache.largest());
            sums.room += cache.room;
            sums.requested += cache.requested;
            sums.allocations += cache.allocations;
            sums.frees += cache.frees;
        }
        sums
    }

    /// What was asked for, of a handed out block that the engine knows by this tag.
    pub(super) fn requested_of(&self, addr: u64, tag: u16) -> Option<u64> {
        self.0.get(slot_of(tag))?.as_ref()?.requested_of(addr)
    }

    /// Host bytes that the tables take.
    pub(super) fn footprint(&self) -> usize {
        self.caches().map(Cache::footprint).sum()
    }

    /// Walks everything and names the first rule that is broken in the engine, inside a cache, or between
    /// them.
    pub(super) fn check(&self, engine: &Engine) -> Result<(), String> {
        let sums = self.sums();
        engine.check_beside(sums.bytes, sums.room)?;
        let mut owned = 0;
        for (slot, cache) in self.0.iter().enumerate() {
            if let Some(cache) = cache {
                cache.check(engine, tag_of(slot))?;
                owned += cache.owned();
            }
        }
        // Each cache's blocks have its tag, so that none is in two tables.
        let tagged = engine
            .live_blocks()
            .filter(|(block, _)| engine.tag(block.addr) != Some(0))
            .count();
        if owned != tagged {
            return Err(format!(
                "{tagged} blocks are marked as adopted, and caches have {owned}"
            ));
        }
        Ok(())
    }
}
