#![forbid(unsafe_code)]
//! One pool: the lock, the order of an allocation, statistics, checks.
//!
//! The engine does the book-keeping under the pool's one mutex. Calls to the backend are made with
//! the mutex released: the engine marks what they are about first, and is told the outcome
//! afterwards. What an allocation does, in order, is [`Pool::allocate`] and then `serve`.
//!
//! - [`config`]: how a pool is made;
//! - `serve`: the order of a request that no free block fits;
//! - `growth`, `give_back`: asking the backend for more, and giving back;
//! - `calls`: backend calls without the lock;
//! - `lifetime`: the end of a pool, the loss of its device, forks;
//! - [`oom`]: out-of-memory handlers and the message;
//! - [`recorder`]: the trace that `LUMA_TRACE` asks for;
//! - [`registry`]: all pools of the process by their handles, and forks;
//! - [`defaults`]: the default pools.

mod calls;
pub mod config;
pub mod defaults;
mod give_back;
mod growth;
mod lifetime;
pub mod oom;
pub mod recorder;
pub mod registry;
mod serve;

pub use config::{BackendKind, PoolConfig, Preset};

use crate::alloc::HostMemoryExhausted;
use crate::alloc::policy::Segmenter;
use crate::alloc::{Block, Engine, Growth, Located, Policy, Request};
use crate::backend::{Backend, Memory, Pages};
use crate::error::{Error, Result, Status};
use crate::stats::Stats;
use crate::text::text;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};

/// What freed blocks are filled with in debug mode.
const POISON: u8 = 0xDF;

/// A pool of memory from one backend. All of its functions may be called from any thread.
#[derive(Debug)]
pub struct Pool {
    state: Mutex<Option<Open>>,
    /// Signalled when a backend call has ended.
    call_ended: Condvar,
    /// Whether a backend panicked in a call, whose outcome nobody knows.
    broken: AtomicBool,
}

/// What a pool is while it is open.
#[derive(Debug)]
pub(crate) struct Open {
    /// Tells pools apart in a record.
    id: u64,
    engine: Engine,
    segmenter: Segmenter,
    backend: Arc<dyn Backend>,
    /// All the memory that the backend said it has.
    device_total: Option<u64>,
    /// The backend's pages, if the policy uses them.
    pages: Option<Pages>,
    /// The most bytes that may be reserved; `u64::MAX`: no limit.
    limit: u64,
    /// While the limit is being lowered, the new one: nothing grows beyond it.
    ceiling: u64,
    /// Bytes that backend calls in progress may bring.
    pledged: u64,
    /// Whether one of them is to bring a range of addresses.
    reserving: bool,
    /// Backend calls in progress.
    in_flight: u32,
    /// When it last got a region, on a clock that all pools share.
    grown: u64,
    /// How many backend calls have ended, to notice that one has.
    calls_ended: u64,
    calls: Calls,
    /// Check everything after each call.
    debug: bool,
    /// Record each call.
    record: bool,
    /// Whether any of both.
    is_watched: bool,
}

#[derive(Clone, Copy, Debug, Default)]
struct Calls {
    allocations: u64,
    frees: u64,
    retries: u64,
    out_of_memory: u64,
    backend_allocations: u64,
    backend_releases: u64,
}

/// The lock on an open pool.
pub(crate) struct Guard<'a>(MutexGuard<'a, Option<Open>>);

impl std::ops::Deref for Guard<'_> {
    type Target = Open;
    #[inline]
    fn deref(&self) -> &Open {
        self.0.as_ref().expect("a guard is made of an open pool")
    }
}

impl std::ops::DerefMut for Guard<'_> {
    #[inline]
    fn deref_mut(&mut self) -> &mut Open {
        self.0.as_mut().expect("a guard is made of an open pool")
    }
}

impl Open {
    fn new(backend: Arc<dyn Backend>, config: &PoolConfig) -> Result<Self> {
        let mut policy = config.policy()?;
        let memory = backend.memory().map_err(|error| {
            Error::new(
                error.status(),
                text!(
                    "the {} backend cannot say what memory it has: {error}",
                    backend.name()
                ),
            )
        })?;
        let limit = config.limit(memory)?;
        if policy.growth == Growth::Fixed && limit == u64::MAX && memory.is_none() {
            return Err(Error::new(
                Status::InvalidValue,
                text!(
                    "fixed growth takes one segment of the whole limit, and the {} backend does not say how much it has: set memory_limit",
                    backend.name()
                ),
            ));
        }
        let pages = backend.pages().filter(|_| policy.growth == Growth::Paged);
        if pages.is_none() && policy.growth == Growth::Paged {
            policy.growth = Growth::Proportional;
        }
        let (debug, record) = (crate::config::environment().debug, recorder::is_on());
        static POOLS: AtomicU64 = AtomicU64::new(0);
        Ok(Self {
            id: POOLS.fetch_add(1, Ordering::Relaxed),
            device_total: memory.map(|memory| memory.total),
            engine: Engine::new(policy).map_err(|HostMemoryExhausted| Error::host_memory())?,
            segmenter: Segmenter::new(policy),
            backend,
            pages,
            limit,
            ceiling: u64::MAX,
            pledged: 0,
            reserving: false,
            in_flight: 0,
            grown: 0,
            calls_ended: 0,
            calls: Calls::default(),
            debug,
            record,
            is_watched: debug || record,
        })
    }

    fn policy(&self) -> &Policy {
        self.engine.policy()
    }

    /// The engine took a region.
    fn has_grown(&mut self) {
        static GROWTHS: AtomicU64 = AtomicU64::new(0);
        self.grown = GROWTHS.fetch_add(1, Ordering::Relaxed) + 1;
    }

    /// What may still be asked of the backend: by the limit, and by what the backend is known to
    /// have.
    fn available(&self) -> u64 {
        let held = self.engine.usage().reserved.saturating_add(self.pledged);
        self.limit
            .min(self.ceiling)
            .saturating_sub(held)
            .min(self.backend.known_free().unwrap_or(u64::MAX))
    }

    /// What debug mode and a record want to know of a free.
    #[cold]
    fn freed_under_watch(&self, block: Block) -> Result<()> {
        if self.record {
            recorder::freed(self.id, block.addr);
        }
        if self.debug {
            self.backend.fill(block.addr, block.size, POISON);
        }
        self.check_in_debug()
    }

    /// The checks of debug mode.
    fn check_in_debug(&self) -> Result<()> {
        if self.debug { self.check() } else { Ok(()) }
    }

    fn check(&self) -> Result<()> {
        let usage = self.engine.usage();
        let checked = self.engine.check().and_then(|()| {
            if usage.reserved > self.limit {
                return Err(format!(
                    "{} bytes are reserved and the limit is {}",
                    usage.reserved, self.limit
                ));
            }
            Ok(())
        });
        checked.map_err(|rule| Error::new(Status::Corrupted, text!("broken invariant: {rule}")))
    }
}

impl Pool {
    /// A pool that is not open: every call fails.
    pub(crate) const fn closed() -> Self {
        Self {
            state: Mutex::new(None),
            call_ended: Condvar::new(),
            broken: AtomicBool::new(false),
        }
    }

    /// A pool as `config` says.
    pub fn new(config: &PoolConfig) -> Result<Self> {
        let pool = Self::closed();
        pool.open(config)?;
        Ok(pool)
    }

    /// A pool over a backend of one's own; `config` says the rest.
    pub fn with_backend(backend: Arc<dyn Backend>, config: &PoolConfig) -> Result<Self> {
        let pool = Self::closed();
        pool.open_over(backend, config)?;
        Ok(pool)
    }

    pub(crate) fn open(&self, config: &PoolConfig) -> Result<()> {
        self.open_over(config.backend()?, config)
    }

    pub(crate) fn open_over(&self, backend: Arc<dyn Backend>, config: &PoolConfig) -> Result<()> {
        let open = Open::new(backend, config)?;
        // A pool whose state was half changed by a panic begins anew.
        self.state.clear_poison();
        self.broken.store(false, Ordering::Relaxed);
        *self.state.lock().map_err(|_| Unusable::Poisoned)? = Some(open);
        Ok(())
    }

    /// The guard of a state that was locked whatever it is.
    fn usable<'a>(&'a self, state: MutexGuard<'a, Option<Open>>) -> Result<Guard<'a>, Unusable> {
        if self.state.is_poisoned() {
            return Err(Unusable::Poisoned);
        }
        if state.is_none() {
            return Err(self.why_closed());
        }
        Ok(Guard(state))
    }

    #[cold]
    fn why_closed(&self) -> Unusable {
        if self.broken.load(Ordering::Relaxed) {
            Unusable::Poisoned
        } else {
            Unusable::Destroyed
        }
    }

    #[inline(always)]
    fn lock(&self) -> Result<Guard<'_>, Unusable> {
        match self.state.lock() {
            Ok(state) if state.is_some() => Ok(Guard(state)),
            Ok(_) => Err(self.why_closed()),
            Err(_) => Err(Unusable::Poisoned),
        }
    }

    /// Allocates `bytes` bytes at a multiple of `align` (0 or a power of two, raised to 256).
    /// Gives the address; `None` for no bytes.
    ///
    /// # Errors
    /// `InvalidValue`: `align` is not a power of two. `OutOfMemory`: neither pool nor backend have
    /// the memory, or the limit is reached. Whatever the backend fails with.
    #[inline]
    pub fn allocate(&self, bytes: u64, align: u64) -> Result<Option<u64>> {
        if align & align.wrapping_sub(1) != 0 && align != 0 {
            return Err(Error::new(
                Status::InvalidValue,
                text!("an alignment is 0 or a power of two, not {align}"),
            ));
        }
        if bytes == 0 {
            return Ok(None);
        }
        let Some(request) = Request::new(bytes, align) else {
            return self.refuse_oversized(bytes, align);
        };
        let mut guard = self.lock()?;
        let open = &mut *guard;
        open.calls.allocations += 1;
        match open.engine.allocate(&request) {
            Ok(Some(block)) if !open.is_watched => Ok(Some(block.addr)),
            outcome => self.allocate_slowly(guard, &request, outcome),
        }
    }

    #[cold]
    fn allocate_slowly(
        &self,
        guard: Guard<'_>,
        request: &Request,
        outcome: Result<Option<Block>, HostMemoryExhausted>,
    ) -> Result<Option<u64>> {
        let served = match outcome {
            Ok(Some(block)) => Ok((guard, Ok(block))),
            Ok(None) => self.serve(guard, request),
            Err(HostMemoryExhausted) => Ok((guard, Err(Error::host_memory()))),
        };
        let (guard, served) = match served {
            Ok(served) => served,
            Err(error) => (self.lock()?, Err(error)),
        };
        self.conclude(guard, request, served)
    }

    /// What is counted, recorded, checked and logged at the end of a request.
    fn conclude(
        &self,
        mut guard: Guard<'_>,
        request: &Request,
        served: Result<Block>,
    ) -> Result<Option<u64>> {
        if guard.record {
            match &served {
                Ok(block) => recorder::allocated(guard.id, block.addr, request.requested),
                Err(_) => recorder::refused(request.requested),
            }
        }
        if served
            .as_ref()
            .is_err_and(|error| error.status() == Status::OutOfMemory)
        {
            guard.calls.out_of_memory += 1;
        }
        let checked = guard.check_in_debug();
        drop(guard);
        if let Err(error) = &served {
            crate::log::log(crate::log::Level::Info, || text!("{error}"));
        }
        checked?;
        served.map(|block| Some(block.addr))
    }

    /// A size that cannot be rounded up without wrapping.
    #[cold]
    fn refuse_oversized(&self, bytes: u64, align: u64) -> Result<Option<u64>> {
        let mut guard = self.lock()?;
        guard.calls.allocations += 1;
        let request = Request {
            requested: bytes,
            size: u64::MAX,
            align: align.max(crate::size::GRAIN),
            usable_at: None,
        };
        let memory;
        (guard, memory) = self.ask_memory(guard)?;
        let error = guard.out_of_memory(&request, memory);
        self.conclude(guard, &request, Err(error))
    }

    /// Frees the block that begins at `addr`.
    ///
    /// # Errors
    /// `InvalidPointer`: no live block begins there; the message says what does lie there.
    #[inline]
    pub fn free(&self, addr: u64) -> Result<()> {
        let mut guard = self.lock()?;
        let open = &mut *guard;
        match open.engine.free(addr, 0) {
            Ok(block) => {
                open.calls.frees += 1;
                if open.is_watched {
                    return open.freed_under_watch(block);
                }
                Ok(())
            }
            Err(_) => Err(open.describe_bad_free(addr)),
        }
    }

    /// The bytes of the live block that begins at `addr`; `None` if none does.
    pub fn usable_size(&self, addr: u64) -> Option<u64> {
        self.lock()
            .ok()?
            .engine
            .block_at(addr)
            .map(|block| block.size)
    }

    /// What lies at `addr`.
    pub fn locate(&self, addr: u64) -> Located {
        self.lock()
            .map_or(Located::Foreign, |guard| guard.engine.locate(addr))
    }

    /// Where `addr` lies in the pool's memory, when the pool last got a region: the larger the later.
    fn claim(&self, addr: u64) -> Option<u64> {
        let guard = self.lock().ok()?;
        (guard.engine.locate(addr) != Located::Foreign).then_some(guard.grown)
    }

    /// The figures at this moment.
    pub fn stats(&self) -> Result<Stats> {
        let guard = self.lock()?;
        let (usage, calls) = (guard.engine.usage(), guard.calls);
        Ok(Stats {
            allocated_bytes: usage.allocated,
            reserved_bytes: usage.reserved,
            peak_bytes: usage.peak_allocated,
            live_blocks: usage.live,
            free_blocks: guard.engine.free_blocks() as u64,
            segments: guard.engine.segments() as u64,
            backend_allocations: calls.backend_allocations,
            backend_releases: calls.backend_releases,
            requested_bytes: usage.requested,
            peak_reserved_bytes: usage.peak_reserved,
            largest_free_block: guard.engine.largest_free(),
            memory_limit: if guard.limit == u64::MAX {
                0
            } else {
                guard.limit
            },
            alloc_calls: calls.allocations,
            free_calls: calls.frees,
            alloc_retries: calls.retries,
            out_of_memory_count: calls.out_of_memory,
            pending_bytes: 0,
        })
    }

    /// Begins both peaks anew at what is held now.
    pub fn reset_peak(&self) -> Result<()> {
        self.lock()?.engine.reset_peak();
        Ok(())
    }

    /// Walks everything.
    ///
    /// # Errors
    /// `Corrupted`: the message names the first rule that is broken.
    pub fn check(&self) -> Result<()> {
        self.lock()?.check()
    }

    /// Host bytes that book-keeping takes.
    pub fn footprint(&self) -> Result<usize> {
        Ok(self.lock()?.engine.footprint())
    }

    /// Live blocks in the order of addresses: address, size, bytes asked for.
    pub fn live_blocks(&self) -> Result<Vec<(u64, u64, u64)>> {
        let guard = self.lock()?;
        Ok(guard
            .engine
            .live_blocks()
            .map(|(block, requested)| (block.addr, block.size, requested))
            .collect())
    }

    /// Whether the host may read and write the pool's memory.
    pub fn is_host_accessible(&self) -> Result<bool> {
        Ok(self.lock()?.backend.is_host_accessible())
    }

    /// The name of the pool's backend.
    pub fn backend_name(&self) -> Result<&'static str> {
        Ok(self.lock()?.backend.name())
    }

    /// The device's memory: what this pool may still take from it, and all of it. Where the backend
    /// does not say, the limit counts as all.
    ///
    /// # Errors
    /// `Unsupported`: neither is known.
    pub fn memory(&self) -> Result<Memory> {
        let guard = self.lock()?;
        let backend = guard.backend.clone();
        let (limit, held) = (guard.limit, guard.engine.usage().reserved);
        drop(guard);
        let left = limit.saturating_sub(held);
        match backend.memory() {
            Ok(Some(memory)) => Ok(Memory {
                free: memory.free.min(left),
                total: memory.total,
            }),
            Ok(None) if limit != u64::MAX => Ok(Memory {
                free: left,
                total: limit,
            }),
            Ok(None) => Err(Error::new(
                Status::Unsupported,
                text!(
                    "the {} backend does not say how much memory it has, and the pool has no limit",
                    backend.name()
                ),
            )),
            Err(error) => Err(Error::new(error.status(), text!("{error}"))),
        }
    }
}

impl Open {
    /// Why `addr` cannot be freed.
    #[cold]
    fn describe_bad_free(&self, addr: u64) -> Error {
        let message = match self.engine.locate(addr) {
            Located::Foreign => text!("{addr:#x} is not from this pool"),
            Located::Free => text!("{addr:#x} is free already, or was never handed out"),
            Located::Start { block } | Located::Inside { block } => text!(
                "{addr:#x} is {} bytes inside the block of {} bytes at {:#x}; only that address frees it",
                addr - block.addr,
                block.size,
                block.addr
            ),
        };
        Error::new(Status::InvalidPointer, message)
    }
}

/// Why a pool takes no calls.
#[derive(Clone, Copy, Debug)]
enum Unusable {
    Destroyed,
    Poisoned,
}

impl From<Unusable> for Error {
    #[cold]
    fn from(reason: Unusable) -> Self {
        match reason {
            Unusable::Destroyed => Self::new(Status::InvalidValue, "the pool was destroyed"),
            Unusable::Poisoned => Self::new(
                Status::Internal,
                "an earlier call failed inside luma while it changed this pool, which may be half changed and refuses all calls; please report the first message",
            ),
        }
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        // The last owner: no call is in progress, and nobody could hear of a failure.
        let _ = self.close();
    }
}
