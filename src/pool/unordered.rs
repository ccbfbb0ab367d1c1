#![forbid(unsafe_code)]
//! Memory in no stream's order: `cuMemAlloc` and `cuMemFree` as they are promised.
//!
//! Any work may use such a block as soon as it is allocated, and what is freed serves nobody before all
//! work is done that was queued until then, on whatever stream. The driver's own `cuMemFree` waits for the
//! device to that end. Here a free waits for nothing: the memory goes to a row that serves no request, and
//! one event of each context stands for everything that was freed before it ([`crate::stream::barrier`]). The
//! event is recorded when as much was freed as growth takes at once, not with each free: what is queued later is
//! not in it, and may need the program to go on.
//!
//! A program that frees and allocates faster than its device works would take ever more memory, where the
//! driver would have made it wait. So such a request waits, too, once more memory waits for the device than
//! is in use: see `Open::runs_ahead`.

use super::calls::{Locked, deadline, in_backend};
use super::growth::host_memory;
use super::ordered::{Passed, Turn, failed};
use super::pending::{record_all, wait_for_all};
use super::quick::Standing;
use super::{Guard, Open, Pool};
use crate::alloc::chunk::ANYONE;
use crate::alloc::{Block, HostMemoryExhausted, Request};
use crate::backend::streams::{StreamKey, Streams};
use crate::config::environment;
use crate::error::{Error, Result, Status};
use crate::size::round_up;
use crate::stream::barrier::Covered;
use crate::text::text;
use std::cell::Cell;
use std::time::{Duration, Instant};

/// Marks of a live block that its owner set. They change nothing for the pool, and go with the block.
const OWNERS: u16 = Marks::ORDERED.0 | Marks::RANGE_ASKED.0;

/// Sizes are rounded up to an alignment up to this.
const LARGEST_GRAIN: u64 = 512;

/// As much memory may wait for the device whatever is in use.
const SPARE: u64 = 64 << 20;
/// An event is recorded for at least so many bytes, and rather than to grow for so many.
const LEAST_STEP: u64 = 4 << 20;
/// So long a request waits for the device, where growing would serve it.
const LONGEST_WAIT: Duration = Duration::from_secs(1);

/// Whether nothing is to be done about a block with these marks but to free it.
pub(super) fn is_simple(marks: u16) -> bool {
    marks & !OWNERS == 0
}

/// What the owner of a block notes about it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Marks(u16);

impl Marks {
    /// It was allocated in the order of a stream.
    pub const ORDERED: Self = Self(1 << 12);
    /// The program has asked which segment it lies in.
    pub const RANGE_ASKED: Self = Self(1 << 11);

    /// Whether all of `other` are set.
    pub fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }
}

/// Unordered frees that no event stands for.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Unrecorded {
    bytes: u64,
    /// With fewer bytes than this, none is recorded: it was tried for not long ago.
    tried: u64,
}

impl Turn {
    /// Whether only memory that is anyone's serves it.
    pub(super) fn is_unordered(self) -> bool {
        self.slot.is_some() && self.lane == ANYONE
    }
}

impl Open {
    /// The turn of an unordered call. The pool is separate.
    pub(super) fn unordered_turn(&mut self) -> Result<Turn, HostMemoryExhausted> {
        let slot = match self.unordered {
            Some(Standing { slot, .. }) => slot,
            None => {
                let slot = self.slot_of(StreamKey::UNORDERED, None)?;
                // The short ways below count on the slot from now on.
                self.streams.pin(slot);
                let lane = self.streams.lane(slot);
                self.unordered = Some(Standing { slot, lane });
                self.set_express();
                slot
            }
        };
        Ok(Turn {
            stream: Passed::UNORDERED.stream,
            lane: ANYONE,
            slot: Some(slot),
            capture: None,
            epoch: self.epoch,
            is_recordable: false,
        })
    }

    /// Bytes that were freed unordered and wait for work.
    fn unordered_bytes(&self) -> u64 {
        self.unordered.map_or(0, |Standing { slot, lane }| {
            self.engine.lane_bytes(lane) + self.streams.row_bytes(slot)
        })
    }

    /// Bytes of unordered frees for which an event is recorded at once: about as many as growth takes.
    #[inline]
    fn barrier_step(&self) -> u64 {
        let step = self.policy().page_step(self.engine.usage().reserved);
        step.max(LEAST_STEP)
    }

    /// Counts bytes that no event stands for. `true`: they are enough for one.
    #[inline]
    fn has_unrecorded(&mut self, bytes: u64) -> bool {
        self.unrecorded.bytes += bytes;
        self.unrecorded.bytes >= self.barrier_step().max(self.unrecorded.tried)
    }

    /// Whether no event stands for what was freed last, it might serve a request, and that is worth more than
    /// to grow: so much was freed, or there is no growing.
    fn lacks_barrier(&self, request: &Request) -> bool {
        self.unordered.is_some_and(|Standing { slot, .. }| {
            let waiting = self.unordered_bytes();
            let settled = self.engine.lane_bytes(ANYONE);
            let is_much = self.unrecorded.bytes >= LEAST_STEP;
            waiting > 0
                && waiting.saturating_add(settled) >= request.size
                && (is_much || self.is_cramped || self.available() < request.size)
                && self.streams.is_orphan(slot)
        })
    }

    /// Whether the memory that waits for the device is more than what is in use.
    fn runs_ahead(&self) -> bool {
        self.unordered_bytes() > self.engine.usage().allocated.max(SPARE)
    }
}

impl Pool {
    /// As [`Pool::allocate`], for use by any work at once, whatever the stream and the context.
    ///
    /// # Errors
    /// As [`Pool::allocate`].
    #[inline]
    pub fn allocate_unordered(&self, bytes: u64, align: u64) -> Result<Option<u64>> {
        if align & align.wrapping_sub(1) != 0 && align != 0 {
            return Err(Error::new(
                Status::InvalidValue,
                text!("an alignment is 0 or a power of two, not {align}"),
            ));
        }
        if bytes == 0 {
            return Ok(None);
        }
        let Some(mut request) = Request::new(bytes, align) else {
            return self.refuse_oversized(bytes, align);
        };
        // A rest that is as well aligned as the block serves the next one, without a sliver between them.
        let Some(size) = round_up(request.size, request.align.min(LARGEST_GRAIN)) else {
            return self.refuse_oversized(bytes, align);
        };
        request.size = size;
        request.lane = ANYONE;
        let mut guard = self.lock()?;
        let open = &mut *guard;
        open.calls.allocations += 1;
        if open.quick.is_some() {
            if let Ok(Some(block)) = open.engine.allocate(&request) {
                return Ok(Some(block.addr));
            }
        }
        self.allocate_unordered_slowly(guard, &request)
    }

    #[cold]
    fn allocate_unordered_slowly(
        &self,
        guard: Guard<'_>,
        request: &Request,
    ) -> Result<Option<u64>> {
        let (mut guard, turn) = self.enter(guard, Passed::UNORDERED)?;
        let turn = match turn {
            Ok(turn) => turn,
            Err(error) => return self.conclude(guard, request, Err(error)),
        };
        let request = Request {
            lane: turn.lane,
            ..*request
        };
        let outcome = guard.engine.allocate(&request);
        self.allocate_slowly(guard, &request, turn, outcome)
    }

    /// As [`Pool::free`], while work on any stream may still use the block. Does not wait. The memory serves
    /// nobody before the work is done that was queued when this was called.
    ///
    /// # Errors
    /// As [`Pool::free`].
    #[inline]
    pub fn free_unordered(&self, addr: u64) -> Result<()> {
        let mut guard = self.lock()?;
        let open = &mut *guard;
        if let Some(Standing { slot, .. }) = open.quick {
            let has_room = open.streams.reserve_row(slot);
            match open
                .engine
                .begin_free_if(addr, |marks| has_room && is_simple(marks))
            {
                Ok(Some((chunk, block))) => {
                    let number = open.streams.clock_mut(slot).want();
                    open.streams.push_row(slot, number, chunk, block.size);
                    open.calls.frees += 1;
                    if open.has_unrecorded(block.size) {
                        return self.record_unordered(guard);
                    }
                    return Ok(());
                }
                Ok(None) => {}
                Err(_) => return Err(open.describe_bad_free(addr)),
            }
        }
        let bytes = guard.block_at(addr).map_or(0, |block| block.size);
        self.free_in_order(guard, addr, Passed::UNORDERED)?;
        let mut guard = self.lock()?;
        if guard.has_unrecorded(bytes) {
            return self.record_unordered(guard);
        }
        Ok(())
    }

    /// Lets an event stand for all work that unordered frees wait for up to now. Where that cannot be had, a
    /// later one is tried for.
    #[cold]
    fn record_unordered(&self, guard: Guard<'_>) -> Result<()> {
        self.cover_all(guard, |_, _| Covered::Not).map(|_| ())
    }

    /// The same; where drivers have no such event, `otherwise`.
    fn cover_all<'a>(
        &'a self,
        mut guard: Guard<'a>,
        otherwise: impl Fn(&dyn Streams, &[usize]) -> Covered,
    ) -> Result<Guard<'a>> {
        // An event for everything breaks captures.
        let may_cover = !guard.captures.are_open() && !in_backend();
        guard.unrecorded.tried = guard.unrecorded.bytes + guard.barrier_step();
        if !may_cover {
            return Ok(guard);
        }
        let (bytes, own) = (guard.unrecorded.bytes, vec![None]);
        let is_covered = Cell::new(false);
        let (mut guard, _) = self.end_orphans(guard, own, |streams, domains, unused| {
            let covered = match record_all(streams, domains, unused) {
                Err(error) if error.status() == Status::Unsupported => otherwise(streams, domains),
                covered => covered.unwrap_or(Covered::Not),
            };
            is_covered.set(!matches!(covered, Covered::Not));
            covered
        })?;
        if is_covered.get() {
            // Other threads may have freed more meanwhile.
            let left = guard.unrecorded.bytes.saturating_sub(bytes);
            guard.unrecorded = Unrecorded {
                bytes: left,
                tried: 0,
            };
        }
        Ok(guard)
    }

    /// Notes something about the live block that begins at `addr`, if there is one. The pool has no thread
    /// caches from then on: whoever adopts blocks has marks of its own.
    pub fn mark(&self, addr: u64, marks: Marks) {
        if let Ok(mut guard) = self.lock() {
            if guard.is_cacheable {
                self.stop_caches(&mut guard);
            }
            guard.mark(addr, marks.0);
        }
    }

    /// Whether something was noted about any live block that begins in `from..to`. Linear in all live blocks.
    pub fn has_marked(&self, from: u64, to: u64, marks: Marks) -> bool {
        let Ok(guard) = self.lock() else {
            return false;
        };
        let mut blocks = guard.engine.live_blocks().map(|(block, _)| block.addr);
        blocks.any(|addr| {
            let of_block = guard.engine.tag(addr).unwrap_or(0) & OWNERS;
            (from..to).contains(&addr) && Marks(of_block).has(marks)
        })
    }

    /// What was noted about the live block that begins at `addr`; `None`: there is none.
    pub fn marks(&self, addr: u64) -> Option<Marks> {
        let guard = self.lock().ok()?;
        guard.block_at(addr)?;
        Some(Marks(guard.engine.tag(addr)? & OWNERS))
    }

    /// Waits until all work is done that was queued in the contexts that may use the pool's memory.
    ///
    /// # Errors
    /// What the backend fails with.
    pub fn wait_for_work(&self) -> Result<()> {
        let guard = self.lock()?;
        let Some(streams) = guard.source.streams() else {
            return Ok(());
        };
        let spares_captures = guard.captures.are_open();
        let (_, waited) = self.unlocked_aside(guard, |backend| {
            let users = streams.users(backend.domain()?)?;
            users
                .into_iter()
                .try_for_each(|user| streams.synchronize(user, spares_captures))
        })?;
        waited.map_err(failed)
    }

    /// For a request that failed for want of memory: waits for all work, for as long as it takes, if memory is
    /// there that was freed unordered and waits for work, and so many bytes are possible at all. The driver's
    /// `cuMemFree` would have waited so. `false`: there is none, or requests are not to wait at all.
    ///
    /// # Errors
    /// As [`Pool::wait_for_work`].
    pub fn wait_for_frees(&self, bytes: u64) -> Result<bool> {
        let is_waiting = {
            let guard = self.lock()?;
            let device = guard.device_total.unwrap_or(u64::MAX);
            bytes <= guard.limit.min(device) && guard.unordered_bytes() > 0
        };
        if !is_waiting || environment().oom_wait.is_zero() {
            return Ok(false);
        }
        self.wait_for_work().map(|()| true)
    }

    /// Lets an event stand for the work that unordered frees wait for, where their memory might serve a
    /// request. Drivers that have no such event make this wait for the work, as their `cuMemFree` would.
    pub(super) fn cover_unordered<'a>(
        &'a self,
        guard: Guard<'a>,
        request: &Request,
    ) -> Result<Guard<'a>> {
        if !guard.lacks_barrier(request) {
            return Ok(guard);
        }
        self.cover_all(guard, |streams, domains| {
            wait_for_all(streams, domains, false)
        })
    }

    /// As [`Pool::empty_cache`], after waiting for work that memory waits for, at most as long as a request for
    /// memory does (`LUMA_OOM_WAIT`): for somebody else who lacks what the program has freed.
    ///
    /// # Errors
    /// As [`Pool::empty_cache`].
    pub fn empty_cache_in_time(&self) -> Result<u64> {
        let deadline = deadline();
        let (guard, _) = self.collect(self.lock()?)?;
        let mut guard = self.cover_all(guard, |streams, domains| {
            wait_for_all(streams, domains, false)
        })?;
        while guard.engine.pending_bytes() > 0 && guard.streams.has_events() {
            let wait;
            (guard, wait) = self.wait_for_change(guard, deadline)?;
            if !wait.is_changed {
                break;
            }
        }
        drop(guard);
        self.empty_cache()
    }

    /// Lets an unordered request wait for the device while more memory waits for it than is in use, for a
    /// bounded time: what the device waits for may be up to the caller.
    pub(super) fn slow_down<'a>(
        &'a self,
        mut guard: Guard<'a>,
        request: &Request,
        turn: Turn,
    ) -> Locked<'a, Option<Block>> {
        if !turn.is_unordered() || !guard.runs_ahead() {
            return Ok((guard, None));
        }
        let longest = environment().oom_wait.min(LONGEST_WAIT);
        let deadline = Instant::now().checked_add(longest);
        let epoch = guard.epoch;
        while guard.epoch == epoch && guard.runs_ahead() && guard.streams.has_barriers() {
            let wait;
            (guard, wait) = self.wait_for_change(guard, deadline)?;
            if let Some(block) = guard.look(request)? {
                return Ok((guard, Some(block)));
            }
            if !wait.is_changed {
                break;
            }
        }
        let gathered = guard.engine.gather(request, &[]).map_err(host_memory)?;
        Ok((guard, gathered))
    }
}
