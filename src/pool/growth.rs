#![forbid(unsafe_code)]
//! Asking the backend for more, giving back, and the order of both.
//!
//! Every backend call is made with the pool's lock released. Meanwhile other threads go on, and
//! what the call is about is marked in the engine. A request that would fail while other threads'
//! calls are in progress waits for them first, for a bounded time: they may bring just what it
//! lacks.

use super::oom::HandlerRound;
use super::{Guard, Open, Pool, Unusable};
use crate::alloc::chunk::{HostMemoryExhausted, NIL};
use crate::alloc::paging::{MapPlan, Span};
use crate::alloc::region::RegionId;
use crate::alloc::{AddRegionError, Block, Request};
use crate::backend::{Backend, BackendError, BackendResult, Pages};
use crate::config::environment;
use crate::error::{Error, Result, Status};
use crate::log::{self, Level};
use std::cell::Cell;
use std::sync::{MutexGuard, PoisonError};
use std::time::{Duration, Instant};

thread_local! {
    /// Set while this thread is inside a backend call. A callback of the user may call luma again;
    /// such a call must not wait for the call that it is part of.
    static IN_BACKEND: Cell<bool> = const { Cell::new(false) };
}

/// Give-backs that one request may make. Other threads may take each time what was given back for
/// this one; so many times in a row means that there is not enough for all.
const MOST_GIVE_BACKS: u32 = 32;

/// How long a fork waits for a pool's backend calls to end.
const FORK_WAIT: Duration = Duration::from_secs(1);

/// Why the backend brought nothing.
#[derive(Clone, Copy, Debug)]
struct Refusal {
    /// The bytes that would have served the request.
    needed: u64,
    /// Of those, the bytes that were not to be had.
    short: u64,
    /// Free chunks that the request would have grown from.
    beside: [u32; 2],
}

/// What a try to grow came to.
enum Grown {
    Served(Block),
    Refused(Refusal),
}

/// How much to give back.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Amount {
    /// So many bytes, or nothing.
    AtLeast(u64),
    /// Everything.
    All,
}

/// A part of a pool's memory that is being given back.
enum Return {
    Region {
        id: RegionId,
        base: u64,
        span: u64,
        bytes: u64,
        paged: bool,
    },
    Pages(Span),
}

impl Return {
    fn make(&self, backend: &dyn Backend) -> BackendResult<()> {
        match *self {
            Self::Region {
                base,
                span,
                bytes,
                paged: true,
                ..
            } => backend.unreserve(base, span, bytes),
            Self::Region { base, span, .. } => backend.release(base, span),
            Self::Pages(span) => backend.unmap(span.addr, span.bytes),
        }
    }
}

type Locked<'a, T> = Result<(Guard<'a>, T)>;

impl Pool {
    /// Makes backend calls with the lock released.
    fn unlocked<'a, T>(
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
        let mut guard = self.lock()?;
        // A child that was forked inside the call has forgotten it.
        guard.in_flight = guard.in_flight.saturating_sub(1);
        guard.calls_ended += 1;
        self.call_ended.notify_all();
        Ok((guard, result))
    }

    /// Serves a request that no free block fits. In order: grow; give back as much as is missing,
    /// grow; give all back that is free, grow; look at every place there is; wait for the backend
    /// calls of other threads; call the handlers; fail. After each step that changed something it
    /// looks again from the start.
    #[cold]
    pub(super) fn serve<'a>(
        &'a self,
        mut guard: Guard<'a>,
        request: &Request,
    ) -> Locked<'a, Result<Block>> {
        let mut handlers = HandlerRound::begin();
        let mut give_backs = 0;
        let deadline = Instant::now() + environment().oom_wait;
        loop {
            let grown;
            (guard, grown) = self.grow(guard, request)?;
            let refusal = match grown {
                Ok(Grown::Served(block)) => return Ok((guard, Ok(block))),
                Ok(Grown::Refused(refusal)) => refusal,
                Err(error) => return Ok((guard, Err(error))),
            };
            let possible = guard.could_ever_hold(request);
            if possible && guard.policy().release_on_failure && give_backs < MOST_GIVE_BACKS {
                let mut given = 0;
                for amount in guard.amounts(request, refusal) {
                    let beside = if amount == Amount::All {
                        [NIL; 2]
                    } else {
                        refusal.beside
                    };
                    (guard, given) = self.give_back(guard, amount, beside)?;
                    if given > 0 {
                        break;
                    }
                }
                if given > 0 {
                    give_backs += 1;
                    guard.calls.retries += 1;
                    if let Some(block) = guard.look(request)? {
                        return Ok((guard, Ok(block)));
                    }
                    continue;
                }
            }
            if let Some(block) = guard
                .engine
                .allocate_exhaustively(request)
                .map_err(host_memory)?
            {
                return Ok((guard, Ok(block)));
            }
            let found;
            (guard, found) = self.map_anywhere(guard, request)?;
            if let Some(block) = found {
                return Ok((guard, Ok(block)));
            }
            let waited;
            (guard, waited) = self.wait_for_others(guard, deadline)?;
            if waited {
                if let Some(block) = guard.look(request)? {
                    return Ok((guard, Ok(block)));
                }
                continue;
            }
            if !handlers.is_over() {
                drop(guard);
                let freed = handlers.call(request.requested);
                guard = self.lock()?;
                if freed {
                    give_backs = 0;
                    if let Some(block) = guard.look(request)? {
                        return Ok((guard, Ok(block)));
                    }
                    continue;
                }
            }
            guard.calls.out_of_memory += 1;
            let error = guard.out_of_memory(request);
            return Ok((guard, Err(error)));
        }
    }

    /// Waits until a backend call of another thread has ended. `false`: there is none, or time is
    /// up.
    fn wait_for_others<'a>(&'a self, mut guard: Guard<'a>, deadline: Instant) -> Locked<'a, bool> {
        if IN_BACKEND.get() {
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

    fn grow<'a>(&'a self, guard: Guard<'a>, request: &Request) -> Locked<'a, Result<Grown>> {
        match guard.pages {
            Some(pages) => self.grow_range(guard, request, pages),
            None => self.grow_by_segment(guard, request),
        }
    }

    /// Maps memory in a range, making the range first where there is none.
    fn grow_range<'a>(
        &'a self,
        mut guard: Guard<'a>,
        request: &Request,
        pages: Pages,
    ) -> Locked<'a, Result<Grown>> {
        let mut step = Some(guard.policy().page_step(guard.engine.usage().reserved));
        loop {
            let available = guard.available();
            let plan = guard
                .engine
                .plan_map(request, pages, step, available)
                .map_err(host_memory)?;
            match plan {
                MapPlan::Map(span) => {
                    let mapped;
                    (guard, mapped) = self.map(guard, span)?;
                    match mapped {
                        Ok(()) => {
                            // The memory beside it may have been taken meanwhile; then it takes more.
                            if let Some(block) = guard.look(request)? {
                                return Ok((guard, Ok(Grown::Served(block))));
                            }
                        }
                        Err(BackendError::OutOfMemory) if step.is_some() => step = None,
                        Err(BackendError::OutOfMemory) => {
                            return Ok((guard, Ok(Grown::Refused(Refusal::whole(span.bytes)))));
                        }
                        Err(BackendError::Failed(error)) => return Ok((guard, Err(error))),
                    }
                }
                MapPlan::Short { bytes, beside } => {
                    let refusal = Refusal {
                        needed: bytes,
                        short: bytes - available,
                        beside,
                    };
                    return Ok((guard, Ok(Grown::Refused(refusal))));
                }
                MapPlan::NoRange => {
                    let least = request.size_anywhere();
                    // A range without memory for the request would only take addresses.
                    if request.size > available {
                        let refusal = Refusal {
                            needed: request.size,
                            short: request.size - available,
                            beside: [NIL; 2],
                        };
                        return Ok((guard, Ok(Grown::Refused(refusal))));
                    }
                    let range;
                    (guard, range) = self.unlocked(guard, |backend| backend.reserve(least))?;
                    match range {
                        Ok((addr, span)) => {
                            guard.calls.backend_allocations += 1;
                            let added = guard.engine.add_region(addr, span, true);
                            if let Err(error) = added {
                                let (guard, error) =
                                    self.decline(guard, addr, span, true, error)?;
                                return Ok((guard, Err(error)));
                            }
                        }
                        Err(BackendError::OutOfMemory) => {
                            return Ok((guard, Ok(Grown::Refused(Refusal::whole(least)))));
                        }
                        Err(BackendError::Failed(error)) => return Ok((guard, Err(error))),
                    }
                }
            }
        }
    }

    fn map<'a>(&'a self, mut guard: Guard<'a>, span: Span) -> Locked<'a, BackendResult<()>> {
        guard.pledged += span.bytes;
        let (mut guard, mapped) =
            self.unlocked(guard, |backend| backend.map(span.addr, span.bytes))?;
        guard.pledged = guard.pledged.saturating_sub(span.bytes);
        match &mapped {
            Ok(()) => guard.engine.mapped(span),
            Err(_) => guard.engine.map_failed(span),
        }
        Ok((guard, mapped))
    }

    /// The last look at ranges: the least that must be mapped anywhere, and pages of the finest
    /// size given back for it.
    fn map_anywhere<'a>(
        &'a self,
        mut guard: Guard<'a>,
        request: &Request,
    ) -> Locked<'a, Option<Block>> {
        let Some(pages) = guard.pages else {
            return Ok((guard, None));
        };
        for _ in 0..MOST_GIVE_BACKS {
            let available = guard.available();
            let plan = guard
                .engine
                .plan_map_exhaustively(request, pages, available)
                .map_err(host_memory)?;
            match plan {
                MapPlan::Map(span) => {
                    let mapped;
                    (guard, mapped) = self.map(guard, span)?;
                    if mapped.is_err() {
                        return Ok((guard, None));
                    }
                    if let Some(block) = guard.look(request)? {
                        return Ok((guard, Some(block)));
                    }
                }
                MapPlan::Short { bytes, beside } if guard.policy().release_on_failure => {
                    let spans = guard
                        .engine
                        .plan_unmap(Some(bytes - available), pages.finest, beside)
                        .map_err(host_memory)?;
                    if spans.is_empty() {
                        return Ok((guard, None));
                    }
                    let given;
                    (guard, given) =
                        self.make_returns(guard, spans.into_iter().map(Return::Pages).collect())?;
                    if given == 0 {
                        return Ok((guard, None));
                    }
                    guard.calls.retries += 1;
                }
                _ => return Ok((guard, None)),
            }
        }
        Ok((guard, None))
    }

    /// Asks for a segment, in the sizes that the policy tries.
    fn grow_by_segment<'a>(
        &'a self,
        mut guard: Guard<'a>,
        request: &Request,
    ) -> Locked<'a, Result<Grown>> {
        let align = guard.backend.segment_align();
        let need = if request.align <= align {
            request.size
        } else {
            request.size_anywhere()
        };
        let (reserved, available) = (guard.engine.usage().reserved, guard.available());
        let Some(mut attempts) = guard.segmenter.first(need, reserved, available) else {
            let refusal = Refusal {
                needed: need,
                short: need - available,
                beside: [NIL; 2],
            };
            return Ok((guard, Ok(Grown::Refused(refusal))));
        };
        loop {
            let size = attempts.size;
            // Other threads may have grown since the sizes were chosen.
            if size <= guard.available() {
                guard.pledged += size;
                let granted;
                (guard, granted) = self.unlocked(guard, |backend| backend.allocate(size))?;
                guard.pledged = guard.pledged.saturating_sub(size);
                match granted {
                    Ok(addr) => {
                        guard.calls.backend_allocations += 1;
                        if let Err(error) = guard.engine.add_region(addr, size, false) {
                            let (guard, error) = self.decline(guard, addr, size, false, error)?;
                            return Ok((guard, Err(error)));
                        }
                        guard.segmenter.granted(&attempts);
                        let served = guard
                            .look(request)?
                            .map_or_else(|| Grown::Refused(Refusal::whole(need)), Grown::Served);
                        return Ok((guard, Ok(served)));
                    }
                    Err(BackendError::OutOfMemory) => {}
                    Err(BackendError::Failed(error)) => return Ok((guard, Err(error))),
                }
            }
            if !guard.segmenter.smaller(&mut attempts) {
                return Ok((guard, Ok(Grown::Refused(Refusal::whole(need)))));
            }
        }
    }

    /// Gives back at once what the backend granted and the engine cannot take, unless it belongs to
    /// another region already.
    fn decline<'a>(
        &'a self,
        guard: Guard<'a>,
        addr: u64,
        span: u64,
        paged: bool,
        reason: AddRegionError,
    ) -> Locked<'a, Error> {
        let name = guard.backend.name();
        let error = match reason {
            AddRegionError::HostMemoryExhausted => Error::host_memory(),
            AddRegionError::Malformed => Error::new(
                Status::InvalidValue,
                format!(
                    "the {name} backend answered a request for {span} bytes with {addr:#x}; an address is a multiple of 256 with {span} bytes behind it"
                ),
            ),
            AddRegionError::Overlaps { base, span: other } => {
                // Giving it back would take memory from under live blocks.
                let error = Error::new(
                    Status::InvalidValue,
                    format!(
                        "the {name} backend answered a request for {span} bytes with {addr:#x}, which overlaps the {other} bytes at {base:#x} that it gave before and that are still in use; nothing was given back"
                    ),
                );
                let mut guard = guard;
                guard.calls.backend_allocations -= 1;
                return Ok((guard, error));
            }
        };
        let (mut guard, returned) = self.unlocked(guard, |backend| {
            if paged {
                backend.unreserve(addr, span, 0)
            } else {
                backend.release(addr, span)
            }
        })?;
        match returned {
            Ok(()) => guard.calls.backend_releases += 1,
            Err(problem) => log::log(Level::Error, || {
                format!(
                    "{span} bytes at {addr:#x} are lost: the {name} backend did not take them back: {problem}"
                )
            }),
        }
        Ok((guard, error))
    }

    /// Gives wholly free segments and whole free pages back. Gives the bytes that went.
    fn give_back<'a>(
        &'a self,
        mut guard: Guard<'a>,
        amount: Amount,
        beside: [u32; 2],
    ) -> Locked<'a, u64> {
        let returns = guard.plan_returns(amount, beside).map_err(host_memory)?;
        if returns.is_empty() {
            return Ok((guard, 0));
        }
        self.make_returns(guard, returns)
    }

    fn make_returns<'a>(&'a self, guard: Guard<'a>, returns: Vec<Return>) -> Locked<'a, u64> {
        let (mut guard, results) = self.unlocked(guard, |backend| {
            returns
                .iter()
                .map(|part| part.make(backend))
                .collect::<Vec<_>>()
        })?;
        let mut given = 0;
        for (part, result) in returns.iter().zip(results) {
            let done = result.is_ok();
            match *part {
                Return::Region { id, bytes, .. } if done => {
                    guard.engine.region_released(id);
                    guard.calls.backend_releases += 1;
                    given += bytes;
                }
                Return::Region { id, .. } => guard.engine.region_kept(id),
                Return::Pages(span) if done => {
                    guard.engine.unmapped(span);
                    given += span.bytes;
                }
                Return::Pages(span) => guard.engine.unmap_failed(span),
            }
        }
        Ok((guard, given))
    }

    /// Gives every wholly free segment and every whole free page back to the backend. Gives the
    /// bytes that went.
    pub fn empty_cache(&self) -> Result<u64> {
        let (guard, given) = self.give_back(self.lock()?, Amount::All, [NIL; 2])?;
        guard.check_in_debug()?;
        Ok(given)
    }

    /// Sets the most that may be reserved (0: no limit), giving back what is free beyond it.
    ///
    /// # Errors
    /// `InvalidValue`: live blocks keep more than that in use. Nothing is given back then.
    pub fn set_limit(&self, bytes: u64) -> Result<()> {
        let limit = if bytes == 0 { u64::MAX } else { bytes };
        let mut guard = self.lock()?;
        loop {
            let held = guard.engine.usage().reserved.saturating_add(guard.pledged);
            if held <= limit {
                guard.limit = limit;
                guard.ceiling = u64::MAX;
                return guard.check_in_debug();
            }
            // Nothing grows meanwhile, while the limit that holds is still the old one.
            guard.ceiling = limit;
            let finest = guard.pages.map(|pages| pages.finest);
            let kept = held - guard.engine.reclaimable(finest);
            let mut given = 0;
            if kept <= limit {
                for page in [guard.pages.map(|pages| pages.unmap), finest] {
                    let returns = guard
                        .plan_returns_of(Amount::AtLeast(held - limit), [NIL; 2], page)
                        .map_err(host_memory)?;
                    if !returns.is_empty() {
                        (guard, given) = self.make_returns(guard, returns)?;
                        break;
                    }
                }
            }
            if given == 0 {
                guard.ceiling = u64::MAX;
                return Err(Error::new(
                    Status::InvalidValue,
                    format!(
                        "a limit of {} is below the {} that live blocks keep reserved; free blocks first",
                        super::oom::bytes(bytes),
                        super::oom::bytes(kept)
                    ),
                ));
            }
        }
    }

    /// Gives everything back, live blocks too, and ends the pool: every later call fails. Gives
    /// the number of blocks that were live.
    ///
    /// # Errors
    /// `InvalidValue`: called from inside the pool's own backend callbacks. The first failure of
    /// the backend, after everything else was given back.
    pub fn close(&self) -> Result<u64> {
        if IN_BACKEND.get() {
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
}

impl Pool {
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

impl Refusal {
    /// None of the bytes that it takes were to be had.
    fn whole(needed: u64) -> Self {
        Self {
            needed,
            short: needed,
            beside: [NIL; 2],
        }
    }
}

impl Open {
    /// In a forked child: the backend calls that other threads had begun never end here. What they
    /// were about stays marked and unused.
    pub(super) fn after_fork(&mut self) {
        self.in_flight = 0;
        self.pledged = 0;
    }

    /// Serves a request from free blocks.
    fn look(&mut self, request: &Request) -> Result<Option<Block>> {
        self.engine.allocate(request).map_err(host_memory)
    }

    /// Whether the request would fit if nothing else were there.
    fn could_ever_hold(&self, request: &Request) -> bool {
        let device = match self.backend.known_free() {
            Some(_) => self
                .backend
                .memory()
                .ok()
                .flatten()
                .map_or(u64::MAX, |memory| memory.total),
            None => u64::MAX,
        };
        request.size <= self.limit.min(device)
    }

    /// What to give back, one after the other until something goes.
    fn amounts(&self, request: &Request, refusal: Refusal) -> Vec<Amount> {
        if self.policy().releases_all_at_once() {
            // XLA's DeallocateFreeRegions: everything, if that can help.
            let left = self.limit.saturating_sub(self.engine.usage().reserved);
            let helps = self.engine.reclaimable(None).saturating_add(left) >= request.size;
            return if helps { vec![Amount::All] } else { Vec::new() };
        }
        vec![
            Amount::AtLeast(refusal.short),
            Amount::AtLeast(refusal.needed),
            Amount::All,
        ]
    }

    fn plan_returns(
        &mut self,
        amount: Amount,
        beside: [u32; 2],
    ) -> Result<Vec<Return>, HostMemoryExhausted> {
        let page = self.pages.map(|pages| pages.unmap);
        self.plan_returns_of(amount, beside, page)
    }

    /// Chooses and marks what to give back: idle regions (the largest first; all of them in the order
    /// of addresses), then whole free pages of other ranges. Nothing, where that is less than the amount.
    fn plan_returns_of(
        &mut self,
        amount: Amount,
        beside: [u32; 2],
        page: Option<u64>,
    ) -> Result<Vec<Return>, HostMemoryExhausted> {
        let mut idle = self.engine.idle_regions();
        if amount != Amount::All {
            // An idle range goes as a whole, unless the request is to grow from it.
            idle.retain(|&(id, _)| !self.engine.is_paged(id) || beside == [NIL; 2]);
            idle.sort_by_key(|&(_, bytes)| std::cmp::Reverse(bytes));
        }
        let mut missing = match amount {
            Amount::All => u64::MAX,
            Amount::AtLeast(bytes) => {
                if self.engine.reclaimable(page) < bytes {
                    return Ok(Vec::new());
                }
                bytes
            }
        };
        let mut chosen = Vec::new();
        for (id, bytes) in idle {
            if missing == 0 {
                break;
            }
            missing = missing.saturating_sub(bytes);
            chosen.push(id);
        }
        let mut returns = Vec::new();
        for id in chosen {
            let paged = self.engine.is_paged(id);
            let (base, span, bytes) = self.engine.begin_release(id);
            returns.push(Return::Region {
                id,
                base,
                span,
                bytes,
                paged,
            });
        }
        if let (Some(page), true) = (page, missing > 0) {
            let bytes = (amount != Amount::All).then_some(missing);
            match self.engine.plan_unmap(bytes, page, beside) {
                Ok(spans) if !spans.is_empty() => {
                    returns.extend(spans.into_iter().map(Return::Pages));
                    missing = 0;
                }
                Ok(_) => {}
                Err(error) => {
                    self.keep(&returns);
                    return Err(error);
                }
            }
        }
        if amount != Amount::All && missing > 0 {
            self.keep(&returns);
            returns.clear();
        }
        Ok(returns)
    }

    /// Takes the marks of regions off again.
    fn keep(&mut self, returns: &[Return]) {
        for part in returns {
            match *part {
                Return::Region { id, .. } => self.engine.region_kept(id),
                Return::Pages(span) => self.engine.unmap_failed(span),
            }
        }
    }
}

fn host_memory(_: HostMemoryExhausted) -> Error {
    Error::host_memory()
}
