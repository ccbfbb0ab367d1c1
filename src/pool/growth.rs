#![forbid(unsafe_code)]
//! Asking the backend for more: pages in a range, or a segment.
//!
//! Meanwhile other threads go on. What a call is about is marked in the engine before, and what it
//! may bring is pledged, so that the limit holds whatever the order in which calls end.

use super::calls::{Locked, take_back, timed, told};
use super::give_back::MOST_GIVE_BACKS;
use super::pending::Patience;
use super::{Guard, Pool};
use crate::alloc::HostMemoryExhausted;
use crate::alloc::anywhere::AnywherePlan;
use crate::alloc::paging::{MapPlan, Span};
use crate::alloc::window::Extent;
use crate::alloc::{AddRegionError, Block, Request};
use crate::backend::{BackendError, BackendResult, Pages};
use crate::error::{Error, Result, Status};
use crate::stats::BackendTime;
use crate::text::text;
use std::cmp::Reverse;
use std::time::Instant;

/// Why the backend brought nothing.
#[derive(Clone, Copy, Debug)]
pub(super) struct Refusal {
    /// The bytes that would have served the request.
    pub(super) needed: u64,
    /// Of those, the bytes that were not to be had.
    pub(super) short: u64,
    /// Where it would have lain, if it would have grown from free memory.
    pub(super) kept: Extent,
}

/// What a try to grow came to.
pub(super) enum Grown {
    Served(Block),
    Refused(Refusal),
}

impl Refusal {
    /// None of the bytes that it takes were to be had.
    fn whole(needed: u64) -> Self {
        Self {
            needed,
            short: needed,
            kept: Extent::EMPTY,
        }
    }
}

impl Pool {
    pub(super) fn grow<'a>(
        &'a self,
        guard: Guard<'a>,
        request: &Request,
        deadline: Option<Instant>,
    ) -> Locked<'a, Result<Grown>> {
        match guard.pages {
            Some(pages) => self.grow_range(guard, request, pages, deadline),
            None => self.grow_by_segment(guard, request),
        }
    }

    /// Maps memory in a range, making the range first where there is none. No free chunk fits when it
    /// begins, nor at any turn of its loop.
    fn grow_range<'a>(
        &'a self,
        mut guard: Guard<'a>,
        request: &Request,
        pages: Pages,
        deadline: Option<Instant>,
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
                    (guard, mapped) = self.map(guard, &[span])?;
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
                MapPlan::Short { bytes, kept } => {
                    let refusal = Refusal {
                        needed: bytes,
                        short: bytes - available,
                        kept,
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
                            kept: Extent::EMPTY,
                        };
                        return Ok((guard, Ok(Grown::Refused(refusal))));
                    }
                    // One range is enough for all threads that find none.
                    if guard.reserving {
                        let waited;
                        (guard, waited) = self.wait_for_others(guard, deadline)?;
                        if waited {
                            if let Some(block) = guard.look(request)? {
                                return Ok((guard, Ok(Grown::Served(block))));
                            }
                            continue;
                        }
                    }
                    guard.reserving = true;
                    let range;
                    (guard, range) = self.unlocked(guard, |backend| {
                        told(backend, "reserve", least, backend.reserve(least))
                    })?;
                    guard.reserving = false;
                    match range {
                        Ok((addr, span)) => {
                            guard.calls.backend_allocations += 1;
                            let added = guard.engine.add_region(addr, span, true);
                            if let Err(error) = added {
                                let (guard, error) =
                                    self.decline(guard, addr, span, true, error)?;
                                return Ok((guard, Err(error)));
                            }
                            guard.has_grown();
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

    /// Has marked spans mapped, one after the other up to the first that fails. What was mapped is free
    /// memory then, whatever became of the others.
    fn map<'a>(&'a self, mut guard: Guard<'a>, spans: &[Span]) -> Locked<'a, BackendResult<()>> {
        let bytes: u64 = spans.iter().map(|span| span.bytes).sum();
        guard.pledged += bytes;
        let (mut guard, (mapped, done, time)) = self.unlocked(guard, |backend| {
            let mut time = BackendTime::default();
            for (done, span) in spans.iter().enumerate() {
                let (mapped, ns) = timed(|| backend.map(span.addr, span.bytes));
                let mapped = told(backend, "map", span.bytes, mapped);
                if mapped.is_err() {
                    return (mapped, done, time);
                }
                time.granted(ns);
            }
            (Ok(()), spans.len(), time)
        })?;
        guard.pledged = guard.pledged.saturating_sub(bytes);
        guard.calls.backend.add(time);
        for (place, &span) in spans.iter().enumerate() {
            if place < done {
                guard.engine.mapped(span);
            } else {
                guard.engine.map_failed(span);
            }
        }
        Ok((guard, mapped))
    }

    /// The last look at ranges: at every place, and with pages of the finest size given back for it.
    pub(super) fn map_anywhere<'a>(
        &'a self,
        mut guard: Guard<'a>,
        request: &Request,
        patience: Patience,
    ) -> Locked<'a, Option<Block>> {
        let Some(pages) = guard.pages else {
            return Ok((guard, None));
        };
        // What the backend was found to have, where it does not know that by itself.
        let mut found: Option<u64> = None;
        for _ in 0..MOST_GIVE_BACKS {
            guard.empty_caches();
            let available = guard.available().min(found.unwrap_or(u64::MAX));
            let gives_back = guard.policy().release_on_failure;
            let plan = guard
                .engine
                .plan_anywhere(request, pages, available, gives_back)
                .map_err(host_memory)?;
            match plan {
                AnywherePlan::Map(mut spans) => {
                    // If it is not to be had, that shows before anything is mapped.
                    spans.sort_unstable_by_key(|span| Reverse(span.bytes));
                    let asked: u64 = spans.iter().map(|span| span.bytes).sum();
                    let mapped;
                    (guard, mapped) = self.map(guard, &spans)?;
                    match mapped {
                        Ok(()) => {
                            if let Some(block) = guard.look(request)? {
                                return Ok((guard, Some(block)));
                            }
                            found = found.map(|free| free.saturating_sub(asked));
                        }
                        Err(BackendError::OutOfMemory) if gives_back => {
                            let memory;
                            (guard, memory) =
                                self.unlocked_aside(guard, |backend| backend.memory())?;
                            // A figure that would have been enough is no help.
                            let free = memory.ok().flatten().map_or(0, |memory| memory.free);
                            found = Some(if free < asked { free } else { 0 });
                        }
                        Err(_) => return Ok((guard, None)),
                    }
                }
                AnywherePlan::GiveBack { bytes, kept } => {
                    let given;
                    (guard, given) = self.give_back_finest(guard, bytes, kept, patience)?;
                    if given == 0 {
                        return Ok((guard, None));
                    }
                    found = found.map(|free| free.saturating_add(given));
                    guard.calls.retries += 1;
                }
                AnywherePlan::Nowhere => return Ok((guard, None)),
            }
        }
        Ok((guard, None))
    }

    /// Asks for a segment, in the sizes that the policy tries.
    pub(super) fn grow_by_segment<'a>(
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
                kept: Extent::EMPTY,
            };
            return Ok((guard, Ok(Grown::Refused(refusal))));
        };
        loop {
            let size = attempts.size;
            // Other threads may have grown since the sizes were chosen.
            if size <= guard.available() {
                guard.pledged += size;
                let (granted, ns);
                (guard, (granted, ns)) = self.unlocked(guard, |backend| {
                    let (granted, ns) = timed(|| backend.allocate(size));
                    (told(backend, "allocate", size, granted), ns)
                })?;
                guard.pledged = guard.pledged.saturating_sub(size);
                match granted {
                    Ok(addr) => {
                        guard.calls.backend_allocations += 1;
                        guard.calls.backend.granted(ns);
                        if let Err(error) = guard.engine.add_region(addr, size, false) {
                            let (guard, error) = self.decline(guard, addr, size, false, error)?;
                            return Ok((guard, Err(error)));
                        }
                        guard.has_grown();
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
        mut guard: Guard<'a>,
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
                text!(
                    "the {name} backend answered a request for {span} bytes with {addr:#x}; an address is a multiple of 256 with {span} bytes behind it"
                ),
            ),
            AddRegionError::Overlaps { base, span: other } => {
                // Giving it back would take memory from under live blocks.
                let error = Error::new(
                    Status::InvalidValue,
                    text!(
                        "the {name} backend answered a request for {span} bytes with {addr:#x}, which overlaps the {other} bytes at {base:#x} that it gave before and that are still in use; nothing was given back"
                    ),
                );
                guard.calls.backend_allocations -= 1;
                return Ok((guard, error));
            }
        };
        let (mut guard, returned) =
            self.unlocked(guard, |backend| take_back(backend, addr, span, 0, paged))?;
        let Err(problem) = returned else {
            guard.calls.backend_releases += 1;
            return Ok((guard, error));
        };
        let error = Error::new(
            error.status(),
            text!(
                "{error}; and the {name} backend did not take the {span} bytes back, which are lost: {problem}"
            ),
        );
        Ok((guard, error))
    }
}

pub(super) fn host_memory(_: HostMemoryExhausted) -> Error {
    Error::host_memory()
}
