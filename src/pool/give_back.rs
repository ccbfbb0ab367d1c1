#![forbid(unsafe_code)]
//! Giving memory back: wholly free segments, and whole free pages of ranges.

use super::calls::{Locked, deadline, take_back, timed, told};
use super::growth::host_memory;
use super::oom::{Bytes, Steps};
use super::pending::Patience;
use super::{Guard, Open, Pool, checked};
use crate::alloc::HostMemoryExhausted;
use crate::alloc::host_memory::TryPush;
use crate::alloc::paging::Span;
use crate::alloc::region::RegionId;
use crate::alloc::window::Extent;
use crate::backend::{Backend, BackendError, BackendResult};
use crate::error::{Error, Result, Status};
use crate::stats::BackendTime;
use crate::text::text;
use std::cmp::Reverse;

/// Give-backs that one request may make. Other threads may take each time what was given back for
/// this one; so many times in a row means that there is not enough for all.
pub(super) const MOST_GIVE_BACKS: u32 = 32;

/// How much to give back.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Amount {
    /// So many bytes, or nothing.
    AtLeast(u64),
    /// Everything.
    All,
}

/// A part of a pool's memory that is being given back.
pub(super) enum Return {
    Region {
        id: RegionId,
        base: u64,
        span: u64,
        bytes: u64,
        paged: bool,
    },
    Pages(Span),
}

/// A part, and whether the backend took it.
pub(super) struct Planned {
    part: Return,
    done: bool,
}

impl From<Return> for Planned {
    fn from(part: Return) -> Self {
        Self { part, done: false }
    }
}

/// What giving back came to.
#[derive(Default)]
pub(super) struct Given {
    /// The bytes that went.
    bytes: u64,
    /// The first refusal of the backend.
    refusal: Option<BackendError>,
}

impl Return {
    fn make(&self, backend: &dyn Backend) -> BackendResult<()> {
        match *self {
            Self::Region {
                base,
                span,
                bytes,
                paged,
                ..
            } => take_back(backend, base, span, bytes, paged),
            Self::Pages(Span { addr, bytes, .. }) => {
                told(backend, "unmap", bytes, backend.unmap(addr, bytes))
            }
        }
    }
}

impl Pool {
    /// Gives wholly free segments and whole free pages back, but nothing of `kept`. Gives the bytes that
    /// went.
    pub(super) fn give_back<'a>(
        &'a self,
        mut guard: Guard<'a>,
        amount: Amount,
        kept: Extent,
        patience: Patience,
    ) -> Locked<'a, u64> {
        let returns = guard.plan_returns(amount, kept);
        self.make_planned(guard, returns, patience)
    }

    /// The same in extremity, by pages of the finest size.
    pub(super) fn give_back_finest<'a>(
        &'a self,
        mut guard: Guard<'a>,
        bytes: u64,
        kept: Extent,
        patience: Patience,
    ) -> Locked<'a, u64> {
        let finest = guard.pages.map(|pages| pages.finest);
        let returns = guard.plan_returns_of(Amount::AtLeast(bytes), kept, finest);
        self.make_planned(guard, returns, patience)
    }

    fn make_planned<'a>(
        &'a self,
        guard: Guard<'a>,
        returns: Result<Vec<Planned>, HostMemoryExhausted>,
        patience: Patience,
    ) -> Locked<'a, u64> {
        let (guard, given) = self.make_returns(guard, returns.map_err(host_memory)?, patience)?;
        Ok((guard, given.bytes))
    }

    /// Gives marked memory back. `patience`: how long it may wait for work that still uses it.
    fn make_returns<'a>(
        &'a self,
        guard: Guard<'a>,
        mut returns: Vec<Planned>,
        patience: Patience,
    ) -> Locked<'a, Given> {
        let mut given = Given::default();
        if returns.is_empty() {
            return Ok((guard, given));
        }
        // Of a separate pool only memory is given back whose work is done.
        let has_work = !guard.engine.is_separate() && guard.source.streams().is_some();
        let home = guard.home.filter(|_| has_work);
        let (mut guard, (refusal, time)) = self.unlocked(guard, |backend| {
            let mut time = BackendTime::default();
            if let Err(error) = Self::quiesce(backend, home, patience) {
                return (Some(error), time);
            }
            let mut refusal = None;
            for planned in &mut returns {
                let (made, ns) = timed(|| planned.part.make(backend));
                planned.done = made.is_ok();
                if planned.done {
                    time.returned(ns);
                }
                refusal = refusal.or(made.err());
            }
            (refusal, time)
        })?;
        given.refusal = refusal;
        guard.calls.backend.add(time);
        for Planned { part, done } in returns {
            match part {
                Return::Region { id, bytes, .. } if done => {
                    guard.engine.region_released(id);
                    guard.calls.backend_releases += 1;
                    given.bytes += bytes;
                }
                Return::Region { id, .. } => guard.engine.region_kept(id),
                Return::Pages(span) if done => {
                    guard.engine.unmapped(span);
                    given.bytes += span.bytes;
                }
                Return::Pages(span) => guard.engine.unmap_failed(span),
            }
        }
        Ok((guard, given))
    }

    /// Gives every wholly free segment and every whole free page back to the backend. Gives the
    /// bytes that went. While the pool has seen one stream it waits for that; of several, what their work
    /// may still use stays.
    pub fn empty_cache(&self) -> Result<u64> {
        let guard = self.settle(self.lock()?)?;
        let mut guard = self.destroy_unused_events(guard)?;
        guard.empty_quarantine();
        let (guard, given) =
            self.give_back(guard, Amount::All, Extent::EMPTY, Patience::Endless)?;
        let checked = guard.check_in_debug();
        checked::tell(guard);
        checked.map(|()| given)
    }

    /// What [`Pool::empty_cache`] would give back, if the pool is over the device with this key.
    pub(super) fn reclaimable_of(&self, device_key: u64) -> u64 {
        let Ok(mut guard) = self.lock() else {
            return 0;
        };
        guard.empty_caches();
        if guard.backend.device_key() != Some(device_key) {
            return 0;
        }
        let page = guard.pages.map(|pages| pages.unmap);
        guard.engine.reclaimable(page)
    }

    /// Sets the most that may be reserved (0: no limit), giving back what is free beyond it.
    ///
    /// # Errors
    /// `InvalidValue`: live blocks keep more than that in use. What the backend fails with, where it
    /// does not take enough back. The limit stays as it was then.
    pub fn set_limit(&self, bytes: u64) -> Result<()> {
        let limit = if bytes == 0 { u64::MAX } else { bytes };
        let mut guard = self.settle(self.lock()?)?;
        // Nothing grows meanwhile, while the limit that holds is still the old one.
        guard.ceiling = limit;
        guard.empty_quarantine();
        let lowered;
        (guard, lowered) = self.fit_into(guard, limit)?;
        guard.ceiling = u64::MAX;
        if lowered.is_ok() {
            guard.limit = limit;
        }
        let checked = guard.check_in_debug();
        checked::tell(guard);
        lowered.and(checked)
    }

    /// Gives back what is free, until no more than `limit` is held.
    fn fit_into<'a>(&'a self, mut guard: Guard<'a>, limit: u64) -> Locked<'a, Result<()>> {
        let deadline = deadline();
        let mut steps = Steps::default();
        loop {
            let held = guard.engine.usage().reserved.saturating_add(guard.pledged);
            if held <= limit {
                return Ok((guard, Ok(())));
            }
            let planned = match guard.plan_returns_down_to(held, limit) {
                Ok(planned) => planned,
                Err(error) => return Ok((guard, Err(host_memory(error)))),
            };
            let given;
            (guard, given) = self.make_returns(guard, planned, Patience::Endless)?;
            if given.bytes > 0 {
                continue;
            }
            // What other threads are bringing or giving back may make the difference, and what streams
            // still use.
            let mut waited;
            (guard, waited) = self.wait_for_others(guard, deadline)?;
            if !waited {
                (guard, waited) = self.wait_for_pending(guard, deadline, &mut steps)?;
            }
            if waited {
                continue;
            }
            let limit = Bytes(limit);
            let error = if let Some(refusal) = given.refusal {
                let status = match &refusal {
                    // Not that of a request.
                    BackendError::OutOfMemory => Status::Driver,
                    BackendError::Failed(error) => error.status(),
                };
                Error::new(
                    status,
                    text!(
                        "the {} backend does not take back what a limit of {limit} needs: {refusal}",
                        guard.backend.name()
                    ),
                )
            } else {
                let finest = guard.pages.map(|pages| pages.finest);
                let kept = Bytes(held.saturating_sub(guard.engine.reclaimable(finest)));
                Error::new(
                    Status::InvalidValue,
                    text!(
                        "a limit of {limit} is below the {kept} that live blocks keep reserved; free blocks first"
                    ),
                )
            };
            return Ok((guard, Err(error)));
        }
    }
}

impl Open {
    fn plan_returns(
        &mut self,
        amount: Amount,
        kept: Extent,
    ) -> Result<Vec<Planned>, HostMemoryExhausted> {
        let page = self.pages.map(|pages| pages.unmap);
        self.plan_returns_of(amount, kept, page)
    }

    /// Chooses and marks what to give back so that of `held` bytes at most `limit` stay: by large
    /// pages, or if that is not enough by the finest. Nothing, if live blocks keep more.
    fn plan_returns_down_to(
        &mut self,
        held: u64,
        limit: u64,
    ) -> Result<Vec<Planned>, HostMemoryExhausted> {
        let amount = Amount::AtLeast(held - limit);
        let planned = self.plan_returns(amount, Extent::EMPTY)?;
        if !planned.is_empty() {
            return Ok(planned);
        }
        let finest = self.pages.map(|pages| pages.finest);
        self.plan_returns_of(amount, Extent::EMPTY, finest)
    }

    /// Chooses and marks what to give back: idle regions (the largest first; all of them in the order
    /// of addresses), then whole free pages of other ranges. Nothing, where that is less than the amount.
    fn plan_returns_of(
        &mut self,
        amount: Amount,
        kept: Extent,
        page: Option<u64>,
    ) -> Result<Vec<Planned>, HostMemoryExhausted> {
        self.empty_caches();
        // An idle range goes as a whole, unless the request is to grow from it.
        let mut idle = Vec::new();
        for (id, bytes) in self.engine.idle_regions() {
            if !self.engine.holds(id, kept) {
                idle.try_push((id, bytes))?;
            }
        }
        if amount != Amount::All {
            idle.sort_unstable_by_key(|&(_, bytes)| Reverse(bytes));
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
        let mut returns: Vec<Planned> = Vec::new();
        returns
            .try_reserve(idle.len())
            .map_err(|_| HostMemoryExhausted)?;
        for (id, bytes) in idle {
            if missing == 0 {
                break;
            }
            missing = missing.saturating_sub(bytes);
            let paged = self.engine.is_paged(id);
            let (base, span, bytes) = self.engine.begin_release(id);
            let part = Return::Region {
                id,
                base,
                span,
                bytes,
                paged,
            };
            returns.push(part.into());
        }
        self.engine.hide_leaving();
        if missing == 0 {
            return Ok(returns);
        }
        let wanted = (amount != Amount::All).then_some(missing);
        let added = match page {
            Some(page) => self.plan_pages(&mut returns, wanted, page, kept),
            None => Ok(false),
        };
        // Regions alone are too little for an amount, and enough where everything goes.
        if added.is_err() || (added == Ok(false) && wanted.is_some()) {
            self.keep(&returns);
            returns.clear();
        }
        added.map(|_| returns)
    }

    /// Chooses and marks whole free pages: so many bytes, or all. `false`: there are not so many.
    fn plan_pages(
        &mut self,
        returns: &mut Vec<Planned>,
        bytes: Option<u64>,
        page: u64,
        kept: Extent,
    ) -> Result<bool, HostMemoryExhausted> {
        let spans = self.engine.plan_unmap(bytes, page, kept)?;
        let found = !spans.is_empty();
        self.add_pages(returns, spans)?;
        Ok(found)
    }

    /// Adds marked pages; without memory for that their marks are taken off.
    fn add_pages(
        &mut self,
        returns: &mut Vec<Planned>,
        spans: Vec<Span>,
    ) -> Result<(), HostMemoryExhausted> {
        if returns.try_reserve(spans.len()).is_err() {
            for span in spans {
                self.engine.unmap_failed(span);
            }
            return Err(HostMemoryExhausted);
        }
        returns.extend(spans.into_iter().map(|span| Return::Pages(span).into()));
        Ok(())
    }

    /// Takes marks off again.
    fn keep(&mut self, returns: &[Planned]) {
        for planned in returns {
            match planned.part {
                Return::Region { id, .. } => self.engine.region_kept(id),
                Return::Pages(span) => self.engine.unmap_failed(span),
            }
        }
    }
}
