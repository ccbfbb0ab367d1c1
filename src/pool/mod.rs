#![forbid(unsafe_code)]
//! One pool: the lock, the order of an allocation, statistics, checks.
//!
//! The engine does the book-keeping under the pool's one mutex. Calls to the backend are made with
//! the mutex released: the engine marks what they are about first, and is told the outcome
//! afterwards. What an allocation does, in order, is [`Pool::allocate`] and then `serve`.
//!
//! - [`config`]: how a pool is made;
//! - `caches`: thread caches, where threads contend for the lock;
//! - `serve`: the order of a request that no free block fits;
//! - `ordered`: allocating and freeing in the order of streams;
//! - `captured`: the same while a stream is being captured;
//! - `quick`: short ways of such calls;
//! - `unordered`: memory in no stream's order;
//! - `pending`: memory that waits for work of the device;
//! - `growth`, `give_back`: asking the backend for more, and giving back;
//! - `calls`: backend calls without the lock;
//! - `inspect`: what a pool says of itself;
//! - `lifetime`: the end of a pool, the loss of its device, forks;
//! - [`oom`]: out of memory: handlers, the report and the message;
//! - [`checked`]: what `LUMA_DEBUG` asks for;
//! - [`recorder`]: the trace that `LUMA_TRACE` asks for;
//! - [`registry`]: all pools of the process by their handles, and forks;
//! - [`defaults`]: the default pools; [`hosted`]: those of a program that knows nothing of luma.

mod caches;
mod calls;
mod captured;
pub mod checked;
pub mod config;
pub mod defaults;
mod give_back;
mod growth;
pub mod hosted;
mod inspect;
mod lifetime;
pub mod oom;
mod ordered;
mod pending;
mod quick;
pub mod recorder;
pub mod registry;
mod serve;
mod unordered;

pub use config::{BackendKind, PoolConfig, Preset};
pub use inspect::{Room, Snapshot};
pub use oom::OomReport;
pub use unordered::Marks;

use crate::alloc::HostMemoryExhausted;
use crate::alloc::policy::Segmenter;
use crate::alloc::{Block, Engine, Growth, Policy, Request};
use crate::backend::streams::{StreamKey, StreamSource};
use crate::backend::{Backend, Pages};
use crate::config::environment;
use crate::error::{Error, Result, Status};
use crate::stats::BackendTime;
use crate::stream::{Captures, Query, Table};
use crate::text::text;
use caches::Caches;
use calls::Sleepers;
use oom::Steps;
use ordered::{Passed, Turn};
use quick::Standing;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use unordered::Unrecorded;

/// A pool of memory from one backend. All of its functions may be called from any thread.
#[derive(Debug)]
pub struct Pool {
    state: Mutex<Option<Open>>,
    /// Signalled when a backend call has ended, and when something was freed that requests wait for.
    call_ended: Condvar,
    sleepers: Sleepers,
    /// The [`StreamSource`] of the backend, to look a stream up before the lock is taken.
    source: AtomicU8,
    /// Whether a backend panicked in a call, whose outcome nobody knows.
    broken: AtomicBool,
    /// Whether there are thread caches.
    switch: caches::Switch,
    caches: Arc<Caches>,
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
    /// Those of them whose end may bring memory.
    awaited: u32,
    /// When it last got a region, on a clock that all pools share.
    grown: u64,
    /// How many backend calls have ended, and how often something was freed that requests waited for, to
    /// notice that.
    calls_ended: u64,
    /// The stream whose calls take the short way: the only one there is, while nobody watches or waits.
    express: Option<StreamKey>,
    /// Where unordered calls stand, once there was one.
    unordered: Option<Standing>,
    /// The same while they take the short way.
    quick: Option<Standing>,
    /// Where the default stream stands in a pool that is separate, while its calls take a short way.
    quick_default: Option<Standing>,
    /// The contexts whose work the last such event stood for.
    users: Vec<usize>,
    /// Whether it is never plain, and streams are made to wait where the host has waited in vain.
    tells_streams_apart: bool,
    unrecorded: Unrecorded,
    /// Whether the backend, or the limit, refused memory the last time that there was a request for more.
    is_cramped: bool,
    /// The first stream, once there was a call.
    home: Option<StreamKey>,
    /// The context of that, where it is not the pool's own.
    home_domain: Option<usize>,
    /// The number of the pool's own context, once it was asked for.
    domain: Option<usize>,
    source: StreamSource,
    /// The streams of a pool that is separate.
    streams: Table,
    captures: Captures,
    /// How often streams and captures were forgotten. A call that finds another number than it began with
    /// has lost its lane.
    epoch: u64,
    /// Calls in progress that count on the lane of a capture.
    captured_calls: u32,
    /// Room for questions about events.
    queries: Vec<Query>,
    /// Whether a thread is asking about events.
    polling: bool,
    /// Requests that wait for something to be freed.
    waiters: u32,
    calls: Calls,
    /// Checked mode, where it is on.
    checked: Option<Box<checked::Checked>>,
    /// Record each call.
    record: bool,
    /// Whether any of both.
    is_watched: bool,
    /// The thread caches, once there are any.
    caches: Option<Arc<Caches>>,
    /// Whether there may be any, by the preset and as long as nobody stopped them.
    is_cacheable: bool,
}

#[derive(Clone, Copy, Debug, Default)]
struct Calls {
    allocations: u64,
    frees: u64,
    retries: u64,
    out_of_memory: u64,
    backend_allocations: u64,
    backend_releases: u64,
    event_records: u64,
    event_queries: u64,
    stream_waits: u64,
    oom_waits: u64,
    oom_wait_ns: u64,
    handlers: u64,
    backend: BackendTime,
}

/// The stream that a pool knows from the start: over memory without streams, the only one.
fn first_home(source: StreamSource) -> Option<StreamKey> {
    source.streams().is_none().then_some(StreamKey::DEFAULT)
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
        let checks = config.checks.or_else(|| environment().checks());
        let checked = checks.map(|checks| Box::new(checked::Checked::new(checks)));
        let record = recorder::is_on();
        static POOLS: AtomicU64 = AtomicU64::new(0);
        let source = backend.stream_source();
        let mut open = Self {
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
            awaited: 0,
            grown: 0,
            calls_ended: 0,
            calls: Calls::default(),
            is_watched: checked.is_some() || record,
            checked,
            record,
            express: None,
            unordered: None,
            quick: None,
            quick_default: None,
            users: Vec::new(),
            unrecorded: Unrecorded::default(),
            is_cramped: false,
            tells_streams_apart: config.tells_streams_apart,
            home: first_home(source),
            home_domain: None,
            domain: None,
            source,
            streams: Table::default(),
            captures: Captures::default(),
            epoch: 0,
            captured_calls: 0,
            queries: Vec::new(),
            polling: false,
            waiters: 0,
            caches: None,
            is_cacheable: config.preset == Preset::Default,
        };
        open.set_express();
        open.stay_separate().map_err(growth::host_memory)?;
        Ok(open)
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

    fn check(&self) -> Result<()> {
        let caches = self.caches.as_deref().map(Caches::lock_all);
        let usage = self.engine.usage();
        let checked = match &caches {
            Some(caches) => caches.check(&self.engine),
            None => self.engine.check(),
        };
        let checked = checked.and_then(|()| {
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
    pub(crate) fn closed() -> Self {
        Self {
            state: Mutex::new(None),
            call_ended: Condvar::new(),
            sleepers: Sleepers::none(),
            source: AtomicU8::new(0),
            broken: AtomicBool::new(false),
            switch: caches::Switch::off(),
            caches: Arc::default(),
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
        // Whoever finds the pool open has its lock, or a handle that was made after this.
        self.source.store(open.source.into(), Ordering::Relaxed);
        let mut state = self.state.lock().map_err(|_| Unusable::Poisoned)?;
        self.abandon_caches();
        *state = Some(open);
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
        match self.state.try_lock() {
            Ok(state) if state.is_some() => Ok(Guard(state)),
            Ok(_) => Err(self.why_closed()),
            Err(reason) => self.lock_after_waiting(reason),
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
        self.allocate_for(bytes, align, Passed::DEFAULT)
    }

    #[inline(always)]
    fn allocate_for(&self, bytes: u64, align: u64, passed: Passed) -> Result<Option<u64>> {
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
        if self.switch.is_on() && passed.stream.is_default() {
            return self.allocate_cached(&request);
        }
        let mut guard = self.lock()?;
        let open = &mut *guard;
        open.calls.allocations += 1;
        if !Self::is_express(open, passed) {
            return self.allocate_in_order(guard, request, passed);
        }
        match open.engine.allocate(&request) {
            Ok(Some(block)) => Ok(Some(block.addr)),
            outcome => self.allocate_slowly(guard, &request, Turn::plain(passed.stream), outcome),
        }
    }

    /// The same where more is to be done than to look for free memory.
    #[cold]
    fn allocate_in_order(
        &self,
        mut guard: Guard<'_>,
        mut request: Request,
        passed: Passed,
    ) -> Result<Option<u64>> {
        if let Some(lane) = guard.quick_lane(passed) {
            request.lane = lane;
            if let Ok(Some(block)) = guard.engine.allocate(&request) {
                return Ok(Some(block.addr));
            }
        }
        if guard.caches.is_some() && passed.stream.is_default() {
            guard.calls.allocations -= 1;
            return self.allocate_past_cache(guard, &request, None);
        }
        let (mut guard, turn) = self.enter(guard, passed)?;
        let turn = match turn {
            Ok(turn) => turn,
            Err(error) => return self.conclude(guard, &request, Err(error)),
        };
        request.lane = turn.lane;
        let outcome = guard.engine.allocate(&request);
        self.allocate_slowly(guard, &request, turn, outcome)
    }

    #[cold]
    fn allocate_slowly(
        &self,
        guard: Guard<'_>,
        request: &Request,
        turn: Turn,
        outcome: Result<Option<Block>, HostMemoryExhausted>,
    ) -> Result<Option<u64>> {
        let served = match outcome {
            Ok(Some(block)) => Ok((guard, Ok(block))),
            Ok(None) => self.serve_pinned(guard, request, turn),
            Err(HostMemoryExhausted) => Ok((guard, Err(Error::host_memory()))),
        };
        let (mut guard, mut served) = match served {
            Ok(served) => served,
            Err(error) => (self.lock()?, Err(error)),
        };
        if let Ok(block) = served {
            served = Self::hand_out(&mut guard, turn, block).map_err(growth::host_memory);
        }
        self.conclude(self.record_if_due(guard, turn)?, request, served)
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
        if let Ok(block) = &served {
            guard.note_allocated(*block);
        }
        let checked = guard.check_in_debug();
        checked::tell(guard);
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
            lane: crate::alloc::chunk::HOME,
            usable_at: None,
        };
        let inputs;
        (guard, inputs) = self.ask_inputs(guard, Steps::default())?;
        guard.empty_caches();
        let error = guard.out_of_memory(&request, &inputs);
        self.conclude(guard, &request, Err(error))
    }

    /// Frees the block that begins at `addr`.
    ///
    /// # Errors
    /// `InvalidPointer`: no live block begins there; the message says what does lie there.
    #[inline]
    pub fn free(&self, addr: u64) -> Result<()> {
        self.free_for(addr, Passed::DEFAULT)
    }

    #[inline(always)]
    fn free_for(&self, addr: u64, passed: Passed) -> Result<()> {
        if self.switch.is_on() && passed.stream.is_default() {
            return self.free_cached(addr);
        }
        let mut guard = self.lock()?;
        let open = &mut *guard;
        if !Self::is_express(open, passed) {
            return self.free_in_order(guard, addr, passed);
        }
        match open.engine.free(addr, 0) {
            Ok(_) => {
                open.calls.frees += 1;
                Ok(())
            }
            Err(_) => Err(open.describe_bad_free(addr)),
        }
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
