#![forbid(unsafe_code)]
//! Giving memory back: wholly free segments, and whole free pages of ranges.

use super::calls::Locked;
use super::growth::host_memory;
use super::{Guard, Open, Pool};
use crate::alloc::chunk::{HostMemoryExhausted, NIL};
use crate::alloc::paging::Span;
use crate::alloc::region::RegionId;
use crate::backend::{Backend, BackendResult};
use crate::error::{Error, Result, Status};

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

impl Pool {
    /// Gives wholly free segments and whole free pages back. Gives the bytes that went.
    pub(super) fn give_back<'a>(
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

    pub(super) fn make_returns<'a>(
        &'a self,
        guard: Guard<'a>,
        returns: Vec<Return>,
    ) -> Locked<'a, u64> {
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
}

impl Open {
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
