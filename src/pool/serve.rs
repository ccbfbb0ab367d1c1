#![forbid(unsafe_code)]
//! The order of a request that no free block fits, up to its failure.
//!
//! A request that would fail while other threads' backend calls are in progress waits for them
//! first, for a bounded time: they may bring just what it lacks.

use super::calls::{Locked, deadline};
use super::give_back::{Amount, MOST_GIVE_BACKS};
use super::growth::{Grown, Refusal, host_memory};
use super::oom::{self, HandlerRound, Inputs, Steps};
use super::ordered::Turn;
use super::pending::{MOST_ROUNDS, Patience};
use super::{Guard, Open, Pool};
use crate::alloc::window::Extent;
use crate::alloc::{Block, Request};
use crate::backend::streams::StreamSource;
use crate::config::environment;
use crate::error::{Error, Result, Status};
use crate::size::GRAIN;
use std::time::Instant;

impl Pool {
    /// Serves a request, while what its turn names stays what it is: the pool's lock is released on the way.
    #[cold]
    pub(super) fn serve_pinned<'a>(
        &'a self,
        mut guard: Guard<'a>,
        request: &Request,
        turn: Turn,
    ) -> Locked<'a, Result<Block>> {
        let open = &mut *guard;
        if let Some(slot) = turn.slot {
            open.streams.pin(slot);
        }
        open.captured_calls += u32::from(turn.capture.is_some());
        let epoch = open.epoch;
        let served = self.serve(guard, request, turn);
        let (mut guard, served) = match served {
            Ok(served) => served,
            Err(error) => (self.lock()?, Err(error)),
        };
        let open = &mut *guard;
        if open.epoch == epoch {
            if let Some(slot) = turn.slot {
                open.streams.unpin(slot);
            }
            open.captured_calls -= u32::from(turn.capture.is_some());
        }
        Ok((guard, served))
    }

    /// Serves a request that the quick look found no free block for. In order: look at every free
    /// chunk, which for an alignment the quick look does not; grow; empty the quarantine of checked mode; give back as much as is missing,
    /// grow; give all back that is free, grow; grow at any place there is; take a segment beside the
    /// range; wait for the backend calls of other threads; call the handlers; fail. After each step
    /// that changed something it begins anew.
    fn serve<'a>(
        &'a self,
        mut guard: Guard<'a>,
        request: &Request,
        turn: Turn,
    ) -> Locked<'a, Result<Block>> {
        if turn.capture.is_some() {
            return self.serve_captured(guard, request);
        }
        let mut handlers = HandlerRound::begin();
        let mut give_backs = 0;
        let mut has_trimmed = false;
        let mut late = 0;
        let mut emptied = 0;
        let mut steps = Steps::default();
        let deadline = deadline();
        let patience = Patience::Until(deadline, turn.stream);
        if request.align > GRAIN {
            if let Some(block) = guard.look(request)? {
                return Ok((guard, Ok(block)));
            }
        }
        let epoch = guard.epoch;
        loop {
            if turn.slot.is_some() && guard.epoch != epoch {
                return Ok((guard, Err(reset_meanwhile())));
            }
            let found;
            (guard, found) = self.look_at_pending(guard, request, turn)?;
            if let Some(block) = found {
                return Ok((guard, Ok(block)));
            }
            let grown;
            (guard, grown) = self.grow(guard, request, deadline)?;
            guard.is_cramped = matches!(grown, Ok(Grown::Refused(_)));
            let refusal = match grown {
                Ok(Grown::Served(block)) => return Ok((guard, Ok(block))),
                Ok(Grown::Refused(refusal)) => refusal,
                Err(error) => return Ok((guard, Err(error))),
            };
            if emptied < MOST_GIVE_BACKS && guard.empty_quarantine() {
                emptied += 1;
                if let Some(block) = guard.look(request)? {
                    return Ok((guard, Ok(block)));
                }
                continue;
            }
            // What was freed meanwhile is to count.
            guard.empty_caches();
            let possible = guard.could_ever_hold(request);
            if possible && guard.policy().release_on_failure && give_backs < MOST_GIVE_BACKS {
                let mut given = 0;
                for amount in guard.amounts(request, refusal).into_iter().flatten() {
                    let kept = if amount == Amount::All {
                        Extent::EMPTY
                    } else {
                        refusal.kept
                    };
                    (guard, given) = self.give_back(guard, amount, kept, patience)?;
                    if given > 0 {
                        break;
                    }
                }
                if given > 0 {
                    give_backs += 1;
                    guard.calls.retries += 1;
                    steps.give_backs += 1;
                    if let Some(block) = guard.look(request)? {
                        return Ok((guard, Ok(block)));
                    }
                    continue;
                }
            }
            if possible {
                let found;
                (guard, found) = self.map_anywhere(guard, request, patience)?;
                if let Some(block) = found {
                    return Ok((guard, Ok(block)));
                }
            }
            if guard.pages.is_some_and(|pages| pages.map > GRAIN) {
                // A limit need not be whole pages, and all of it is to be used all the same.
                let grown;
                (guard, grown) = self.grow_by_segment(guard, request)?;
                match grown {
                    Ok(Grown::Served(block)) => return Ok((guard, Ok(block))),
                    Ok(Grown::Refused(_)) => {}
                    Err(error) => return Ok((guard, Err(error))),
                }
            }
            if !has_trimmed && possible && guard.source == StreamSource::Cuda {
                // The driver's own pools keep memory that is not asked for otherwise.
                has_trimmed = true;
                (guard, ()) = self.unlocked(guard, |backend| backend.trim())?;
                continue;
            }
            if environment().oom_wait.is_zero() {
                let found;
                (guard, found) = self.make_stream_wait(guard, request, turn)?;
                if let Some(block) = found {
                    return Ok((guard, Ok(block)));
                }
            }
            let mut waited = false;
            if possible {
                let begun = Instant::now();
                (guard, waited) = self.wait_for_others(guard, deadline)?;
                if waited {
                    steps.waits += 1;
                    steps.wait_ns += begun.elapsed().as_nanos() as u64;
                }
            }
            // What ends after the time is up counts, too, but not for ever.
            late += u32::from(deadline.is_some_and(|deadline| Instant::now() >= deadline));
            if possible && !waited && late <= MOST_ROUNDS && guard.could_fit_settled(request) {
                (guard, waited) = self.cover_orphans(guard)?;
                if !waited {
                    (guard, waited) = self.wait_for_pending(guard, deadline, &mut steps)?;
                }
            }
            if waited {
                if let Some(block) = guard.look(request)? {
                    return Ok((guard, Ok(block)));
                }
                continue;
            }
            if guard.tells_streams_apart {
                // The work may wait for the program, which the driver's own pool would have served.
                let found;
                (guard, found) = self.make_stream_wait(guard, request, turn)?;
                if let Some(block) = found {
                    return Ok((guard, Ok(block)));
                }
            }
            let mut freed = false;
            while !freed {
                let Some(handler) = handlers.next() else {
                    break;
                };
                drop(guard);
                freed = oom::call(&handler, request.requested);
                // It may be the last owner of something that calls luma when it goes.
                drop(handler);
                guard = self.lock()?;
                guard.calls.handlers += 1;
                steps.handlers += 1;
            }
            if turn.slot.is_some() && guard.epoch != epoch {
                return Ok((guard, Err(reset_meanwhile())));
            }
            // Other threads may have freed something, too, while the lock was released.
            if let Some(block) = guard.look(request)? {
                return Ok((guard, Ok(block)));
            }
            if freed {
                give_backs = 0;
                continue;
            }
            let inputs;
            (guard, inputs) = self.ask_inputs(guard, steps)?;
            // And while the backend was asked.
            return Ok(match guard.look(request)? {
                Some(block) => (guard, Ok(block)),
                None => {
                    let error = guard.out_of_memory(request, &inputs);
                    (guard, Err(error))
                }
            });
        }
    }
}

impl Pool {
    /// Serves a request of a separate pool from memory whose work has ended by now, and from pieces side by
    /// side of which some are the stream's own and some anyone's.
    fn look_at_pending<'a>(
        &'a self,
        mut guard: Guard<'a>,
        request: &Request,
        turn: Turn,
    ) -> Locked<'a, Option<Block>> {
        if !guard.engine.is_separate() {
            return Ok((guard, None));
        }
        guard = self.cover_unordered(guard, request)?;
        for _ in 0..MOST_ROUNDS {
            let progress;
            (guard, progress) = self.collect_once(guard)?;
            // Also without progress: another thread may have freed something while the lock was released.
            if let Some(block) = guard.look(request)? {
                return Ok((guard, Some(block)));
            }
            if !progress {
                break;
            }
        }
        match guard.engine.gather(request, &[]).map_err(host_memory)? {
            Some(block) => Ok((guard, Some(block))),
            None => self.slow_down(guard, request, turn),
        }
    }

    /// Serves a request of a stream that is being captured: from memory of the capture, from memory whose
    /// work is known to be done, and by growing. Nothing is asked, given back or waited for.
    #[cold]
    fn serve_captured<'a>(
        &'a self,
        mut guard: Guard<'a>,
        request: &Request,
    ) -> Locked<'a, Result<Block>> {
        guard.collect_captures();
        if let Some(block) = guard.look(request)? {
            return Ok((guard, Ok(block)));
        }
        if let Some(block) = guard.engine.gather(request, &[]).map_err(host_memory)? {
            return Ok((guard, Ok(block)));
        }
        let grown;
        (guard, grown) = self.grow(guard, request, deadline())?;
        let mut served = grown?;
        if matches!(served, Grown::Refused(_)) && guard.pages.is_some() {
            let grown;
            (guard, grown) = self.grow_by_segment(guard, request)?;
            served = grown?;
        }
        Ok(match served {
            Grown::Served(block) => (guard, Ok(block)),
            Grown::Refused(_) => {
                // The backend is not asked under capture.
                let inputs = Inputs {
                    pending: guard.pending(),
                    ..Inputs::default()
                };
                let error = guard.out_of_memory(request, &inputs);
                (guard, Err(error))
            }
        })
    }
}

/// The failure of a request whose lane went with its device.
#[cold]
fn reset_meanwhile() -> Error {
    Error::new(
        Status::InvalidValue,
        "the device was reset while the request waited for memory",
    )
}

impl Open {
    /// Whether the request would fit if all outstanding work were done.
    fn could_fit_settled(&self, request: &Request) -> bool {
        self.engine
            .could_fit_settled(request, self.pages, self.available())
    }

    /// Serves a request from free blocks. Wherever there is a place it is found: memory that a plan
    /// put where an alignment needs it must not be passed over, or growing would go on.
    pub(super) fn look(&mut self, request: &Request) -> Result<Option<Block>> {
        let engine = &mut self.engine;
        // Locked until the block is taken: then the peak may rise.
        let _empty = self.caches.as_deref().map(|caches| caches.emptied(engine));
        self.engine
            .allocate_exhaustively(request)
            .map_err(host_memory)
    }

    /// Whether the request would fit if nothing else were there.
    fn could_ever_hold(&self, request: &Request) -> bool {
        let device = self.device_total.unwrap_or(u64::MAX);
        request.size <= self.limit.min(device) && request.align <= self.backend.largest_align()
    }

    /// What to give back, one after the other until something goes.
    fn amounts(&self, request: &Request, refusal: Refusal) -> [Option<Amount>; 3] {
        if self.policy().releases_all_at_once() {
            // XLA's DeallocateFreeRegions: everything, if that can help.
            let left = self.limit.saturating_sub(self.engine.usage().reserved);
            let helps = self.engine.reclaimable(None).saturating_add(left) >= request.size;
            return [helps.then_some(Amount::All), None, None];
        }
        // All of it only where that may do: giving back can make the driver wait for the whole device.
        let finest = self.pages.map(|pages| pages.finest);
        let most = self
            .engine
            .reclaimable(finest)
            .saturating_add(self.available());
        [
            Some(Amount::AtLeast(refusal.short)),
            Some(Amount::AtLeast(refusal.needed)),
            (most >= request.size).then_some(Amount::All),
        ]
    }
}
