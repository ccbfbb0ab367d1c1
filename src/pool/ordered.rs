#![forbid(unsafe_code)]
//! Allocating and freeing in the order of streams.
//!
//! While a pool knows one stream it is *plain*: all free memory is that stream's, and nothing is recorded
//! or asked. From the second stream on it is *separate*: memory that is freed in the order of a stream
//! serves that stream at once, and the others when an event says that the work before the free is done.
//!
//! Events are recorded and asked without the pool's lock, and a stream is touched only inside a call that
//! was passed it: it may be destroyed at any other time. The default stream is never destroyed; nothing is
//! recorded on it before another stream lacks memory.

use super::calls::Locked;
use super::captured::CAPTURED;
use super::{Guard, Open, Pool, checked};
use crate::alloc::chunk::{HOME, Lane};
use crate::alloc::{Block, HostMemoryExhausted};
use crate::backend::BackendError;
use crate::backend::streams::{Event, Place, Stream, StreamKey, StreamSource};
use crate::error::{Error, Result, Status};
use crate::log::{self, Level};
use crate::pool::growth::host_memory;
use crate::stream::SlotId;
use crate::stream::captures::Owner;
use crate::stream::table::MOST_EVENTS;
use crate::text::text;
use std::sync::atomic::Ordering;

/// The mark of a live block that names the pool's first stream as a user, since a time when it knew no other.
pub(super) const HOME_USED: u16 = 1 << 13;
/// The mark of a live block that names streams as users.
pub(super) const USED: u16 = 1 << 14;

/// A stream as a call was passed it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Passed {
    pub(super) stream: Stream,
    pub(super) place: Place,
}

impl Passed {
    pub(super) const DEFAULT: Self = Self {
        stream: Stream::DEFAULT,
        place: Place::DEFAULT,
    };

    /// No stream: see [`super::unordered`].
    pub(super) const UNORDERED: Self = Self {
        stream: Stream::DEFAULT,
        place: Place {
            key: StreamKey::UNORDERED,
            capture: None,
        },
    };

    /// Whether it is the default stream.
    pub(super) fn is_default(self) -> bool {
        self.place.key == StreamKey::DEFAULT
    }
}

/// What a call may use: whose lane, and how.
#[derive(Clone, Copy, Debug)]
pub(super) struct Turn {
    pub(super) stream: Stream,
    pub(super) lane: Lane,
    /// Where the stream stands; `None`: the pool is plain, or the stream is being captured.
    pub(super) slot: Option<SlotId>,
    /// The number of the capture that the stream is in.
    pub(super) capture: Option<u64>,
    /// [`Open::epoch`] at its begin.
    pub(super) epoch: u64,
    /// Whether events may be recorded on the stream: it is not the default one, which is asked when that
    /// is needed, nor unknown.
    pub(super) is_recordable: bool,
}

impl Turn {
    /// A call on the one stream of a plain pool.
    pub(super) const fn plain(stream: Stream) -> Self {
        Self {
            stream,
            lane: HOME,
            slot: None,
            capture: None,
            epoch: 0,
            is_recordable: false,
        }
    }
}

/// The failure of a backend's call as that of a request.
pub(super) fn failed(error: BackendError) -> Error {
    match error {
        BackendError::OutOfMemory => Error::new(
            Status::Driver,
            "the driver has no memory for an event or a stream",
        ),
        BackendError::Failed(error) => error,
    }
}

impl Open {
    /// Decides which stream's calls take the short way: those of the only one there is.
    pub(super) fn set_express(&mut self) {
        let is_plain = !self.is_watched
            && !self.engine.is_separate()
            && self.waiters == 0
            && self.caches.is_none();
        self.express = if is_plain { self.home } else { None };
        self.set_quick();
    }

    /// Begins to tell streams apart where that is wanted from the start.
    pub(super) fn stay_separate(&mut self) -> Result<(), HostMemoryExhausted> {
        if self.tells_streams_apart && self.source.streams().is_some() {
            return self.separate();
        }
        Ok(())
    }

    /// Begins to tell streams apart.
    fn separate(&mut self) -> Result<(), HostMemoryExhausted> {
        if !self.engine.is_separate() {
            self.empty_quarantine();
        }
        self.engine.separate()?;
        if self.streams.is_empty() {
            let home = *self.home.get_or_insert(StreamKey::DEFAULT);
            let slot = self
                .streams
                .open(&mut self.engine, home, self.home_domain)?;
            // Also where no memory is free yet: a call in progress may bring some back.
            self.streams.clock_mut(slot).want();
        }
        self.set_express();
        Ok(())
    }

    /// The slot of a stream of a separate pool.
    pub(super) fn slot_of(
        &mut self,
        key: StreamKey,
        domain: Option<usize>,
    ) -> Result<SlotId, HostMemoryExhausted> {
        match self.streams.find(key) {
            Some(slot) => {
                self.streams.set_ended(slot, false);
                Ok(slot)
            }
            None => self.streams.open(&mut self.engine, key, domain),
        }
    }

    /// Whether a record is due on a stream that a call was passed.
    fn is_record_due(&self, slot: SlotId) -> bool {
        let clock = self.streams.clock(slot);
        clock.lacks_record() && clock.events().len() < MOST_EVENTS
    }
}

impl Pool {
    /// Begins to tell streams apart. Thread caches know one stream only.
    pub(super) fn separate(&self, open: &mut Open) -> Result<(), HostMemoryExhausted> {
        if open.caches.is_some() {
            self.stop_caches(open);
        }
        open.separate()
    }

    /// What a stream is that a caller names.
    pub(super) fn passed(&self, stream: Stream) -> Result<Passed> {
        if stream.is_default() {
            return Ok(Passed::DEFAULT);
        }
        let source = StreamSource::from_u8(self.source.load(Ordering::Relaxed));
        match source {
            Some(StreamSource::Immediate) | None => Ok(Passed::DEFAULT),
            Some(StreamSource::Refused) => Err(Error::new(
                Status::Unsupported,
                "a pool over callbacks cannot tell when a stream's work is done: pass NULL for the stream",
            )),
            Some(source) => {
                let streams = source.streams().ok_or_else(|| {
                    Error::new(Status::Internal, "a source of streams without functions")
                })?;
                let place = streams.place(stream).map_err(failed)?;
                Ok(Passed { stream, place })
            }
        }
    }

    /// As [`Pool::allocate`], for use in the order of a stream: what its work before this call did to the
    /// block is over when work that is queued on it later begins. Other streams must be made to wait
    /// by their owner.
    ///
    /// In a stream that is being captured, the block belongs to the capture: see
    /// [`crate::stream::captures`].
    ///
    /// # Errors
    /// As [`Pool::allocate`]. `Unsupported`: the backend knows no streams. What the driver says of the
    /// stream.
    #[inline]
    pub fn allocate_on(&self, bytes: u64, align: u64, stream: Stream) -> Result<Option<u64>> {
        if stream.is_default() {
            return self.allocate(bytes, align);
        }
        let passed = self.passed(stream)?;
        if passed.place.key == StreamKey::UNKNOWN {
            return Err(refuse_unknown());
        }
        self.allocate_for(bytes, align, passed)
    }

    /// Frees the block that begins at `addr`, in the order of a stream: the work that was queued on it
    /// before may still use the block.
    ///
    /// # Errors
    /// As [`Pool::free`] and [`Pool::allocate_on`]; nothing is freed then.
    #[inline]
    pub fn free_on(&self, addr: u64, stream: Stream) -> Result<()> {
        if stream.is_default() {
            return self.free(addr);
        }
        match self.passed(stream) {
            Ok(passed) => self.free_for(addr, passed),
            Err(error) => {
                let source = StreamSource::from_u8(self.source.load(Ordering::Relaxed));
                let streams = source.and_then(StreamSource::streams);
                // Frees are quiet when the driver is gone.
                if streams.is_some_and(|streams| streams.have_ended()) {
                    return self.free_unordered(addr);
                }
                Err(error)
            }
        }
    }

    /// Whether calls on this stream take the short way.
    #[inline]
    pub(super) fn is_express(open: &Open, passed: Passed) -> bool {
        open.express == Some(passed.place.key) && passed.place.capture.is_none()
    }

    /// Names a stream as a user of a live block: when the block is freed, in whatever order, it waits for
    /// the work that is queued on that stream by then, too.
    ///
    /// # Errors
    /// `InvalidPointer`: no live block begins there. As [`Pool::allocate_on`] otherwise.
    pub fn record_stream(&self, addr: u64, stream: Stream) -> Result<()> {
        let passed = self.passed(stream)?;
        let guard = self.lock()?;
        if guard.block_at(addr).is_none() {
            return Err(guard.describe_bad_free(addr));
        }
        if guard.source.streams().is_none() {
            return Ok(());
        }
        let mut guard = guard;
        if Self::is_only_stream(&guard, passed) {
            // The block may be freed in the order of another stream, once there is one. Who adopts blocks
            // has marks of its own.
            guard.mark(addr, HOME_USED);
            guard.is_cacheable = false;
            return guard.check_in_debug();
        }
        self.separate(&mut guard).map_err(host_memory)?;
        let (mut guard, turn) = self.enter(guard, passed)?;
        let turn = turn?;
        // The lock was released for a stream that is new.
        if guard.block_at(addr).is_none() {
            return Err(guard.describe_bad_free(addr));
        }
        let open = &mut *guard;
        if let Some(capture) = turn.capture {
            let is_own = false;
            open.captures
                .claim(addr, Owner { capture, is_own })
                .map_err(host_memory)?;
            open.mark(addr, CAPTURED);
        } else if let Some(slot) = turn.slot {
            open.streams.add_use(addr, slot).map_err(host_memory)?;
            open.mark(addr, USED);
            guard = self.record_if_due(guard, turn)?;
        }
        guard.check_in_debug()
    }

    /// Whether a call names the one stream that the pool knows.
    fn is_only_stream(open: &Open, passed: Passed) -> bool {
        let is_plain = !open.engine.is_separate() && open.caches.is_none();
        is_plain && passed.place.capture.is_none() && open.home == Some(passed.place.key)
    }

    /// A stream is about to be destroyed: records what waits for it, while that can be done. Without this
    /// call such memory waits until everything in the context is done.
    ///
    /// # Errors
    /// As [`Pool::allocate_on`].
    pub fn release_stream(&self, stream: Stream) -> Result<()> {
        self.end_stream(stream, false)
    }

    pub(super) fn end_stream(&self, stream: Stream, is_certain: bool) -> Result<()> {
        let source = StreamSource::from_u8(self.source.load(Ordering::Relaxed));
        if source.and_then(StreamSource::streams).is_none() {
            return Ok(());
        }
        let passed = self.passed(stream)?;
        let mut guard = self.lock()?;
        let is_known = if guard.engine.is_separate() {
            guard.streams.find(passed.place.key).is_some()
        } else {
            guard.home == Some(passed.place.key)
        };
        if !is_known || passed.stream.is_default() || passed.place.capture.is_some() {
            return Ok(());
        }
        self.separate(&mut guard).map_err(host_memory)?;
        let (mut guard, turn) = self.enter(guard, passed)?;
        let turn = turn?;
        if let Some(slot) = turn.slot {
            if guard.streams.has_uses(slot) {
                guard.streams.clock_mut(slot).want();
            }
            guard = self.record_if_due(guard, turn)?;
            // Where that failed, what waits goes on waiting.
            if !guard.streams.clock(slot).lacks_record() {
                guard.streams.set_ended(slot, true);
            }
            if is_certain {
                guard.streams.detach(slot);
            }
        }
        guard.check_in_debug()
    }

    /// Finds out what a call may use that was passed a stream.
    pub(super) fn enter<'a>(
        &'a self,
        mut guard: Guard<'a>,
        passed: Passed,
    ) -> Locked<'a, Result<Turn>> {
        let Passed { stream, place } = passed;
        if let Some(capture) = place.capture {
            return self.enter_capture(guard, passed, capture);
        }
        if place.key == StreamKey::UNORDERED {
            let entered = self
                .separate(&mut guard)
                .and_then(|()| guard.unordered_turn());
            return Ok((guard, entered.map_err(host_memory)));
        }
        guard.captures.note_outside(stream);
        let is_known = if guard.engine.is_separate() {
            guard.streams.find(place.key).is_some()
        } else {
            guard.home == Some(place.key)
        };
        let mut domain = None;
        if !is_known && !stream.is_default() && place.key != StreamKey::UNKNOWN {
            let found;
            (guard, found) = self.find_domain(guard, stream)?;
            match found {
                Ok(found) => domain = found,
                Err(error) => return Ok((guard, Err(error))),
            }
        }
        let open = &mut *guard;
        if !open.engine.is_separate() {
            if open.home.is_none() {
                open.home = Some(place.key);
                open.home_domain = domain;
                open.set_express();
            }
            if open.home == Some(place.key) {
                return Ok((guard, Ok(Turn::plain(stream))));
            }
        }
        let entered = self
            .separate(open)
            .and_then(|()| open.slot_of(place.key, domain))
            .map(|slot| Turn {
                stream,
                lane: open.streams.lane(slot),
                slot: Some(slot),
                capture: None,
                epoch: open.epoch,
                is_recordable: !stream.is_default() && place.key != StreamKey::UNKNOWN,
            });
        Ok((guard, entered.map_err(host_memory)))
    }

    /// The context of a stream that is new; `None`: the pool's own.
    #[cold]
    fn find_domain<'a>(
        &'a self,
        guard: Guard<'a>,
        stream: Stream,
    ) -> Locked<'a, Result<Option<usize>>> {
        let Some(streams) = guard.source.streams() else {
            return Ok((guard, Ok(None)));
        };
        let (guard, found) = self.unlocked_aside(guard, |backend| {
            let (own, domain) = (backend.domain()?, streams.domain(stream)?);
            Ok((domain != own).then_some(domain))
        })?;
        Ok((guard, found.map_err(failed)))
    }

    /// Frees a block in the order of a stream, where more is to be done than to list it.
    #[cold]
    pub(super) fn free_in_order(&self, guard: Guard<'_>, addr: u64, passed: Passed) -> Result<()> {
        if guard.caches.is_some() && passed.is_default() {
            return self.free_past_cache(guard, addr, None);
        }
        let mut guard = guard;
        if guard.free_quickly(addr, passed) {
            return Ok(());
        }
        if guard.block_at(addr).is_none() {
            return refuse_free(guard, addr);
        }
        let (mut guard, turn) = self.enter(guard, passed)?;
        let turn = turn?;
        let open = &mut *guard;
        let mut marks = open.engine.tag(addr).unwrap_or(0);
        if marks & HOME_USED != 0 && open.engine.is_separate() {
            if let Some(home) = open.streams.of_lane(HOME) {
                open.streams.add_use(addr, home).map_err(host_memory)?;
                marks |= USED;
            }
        }
        let is_captures = marks & CAPTURED != 0 && open.captures.owners(addr).next().is_some();
        if turn.capture.is_some() || is_captures {
            let freed = open.free_for_capture(addr, turn, marks);
            guard = self.record_if_due(guard, turn)?;
            return self.conclude_free(guard, addr, freed);
        }
        let Some(slot) = turn.slot else {
            let freed = open.free_plainly(addr);
            return self.conclude_free(guard, addr, Ok(freed));
        };
        open.captures.release(addr);
        let is_used = marks & USED != 0;
        open.streams
            .reserve_parking(addr, is_used)
            .map_err(host_memory)?;
        let clock = open.streams.clock_mut(slot);
        let number = clock.want();
        let records = turn.is_recordable && clock.events().len() < MOST_EVENTS;
        if !records && !is_used {
            let lane = open.streams.lane(slot);
            let freed = open.engine.free_in(addr, lane, number).ok();
            return self.conclude_free(guard, addr, Ok(freed));
        }
        let Ok((chunk, block)) = open.engine.begin_free(addr) else {
            return refuse_free(guard, addr);
        };
        let parked = open.streams.park(
            chunk,
            slot,
            number,
            is_used.then_some(addr),
            u32::from(records),
        );
        match parked {
            None => open.streams.list(&mut open.engine, chunk, slot, number),
            Some(parked) if records => {
                let number = open.streams.clock_mut(slot).begin_record();
                guard = self.record(guard, slot, number, turn.stream)?;
                let open = &mut *guard;
                open.streams.unpark(&mut open.engine, parked);
            }
            Some(_) => {}
        }
        self.conclude_free(guard, addr, Ok(Some(block)))
    }

    fn conclude_free(
        &self,
        mut guard: Guard<'_>,
        addr: u64,
        freed: Result<Option<Block>>,
    ) -> Result<()> {
        let freed = freed?;
        if freed.is_none() {
            return refuse_free(guard, addr);
        }
        guard.calls.frees += 1;
        if guard.waiters > 0 {
            self.tell_waiters(&mut guard);
        }
        if !guard.is_watched {
            return Ok(());
        }
        let noted = guard.note_freed(addr);
        checked::tell(guard);
        noted
    }

    /// Records an event on a stream that a call was passed, if something waits for that.
    pub(super) fn record_if_due<'a>(
        &'a self,
        mut guard: Guard<'a>,
        turn: Turn,
    ) -> Result<Guard<'a>> {
        match turn.slot {
            Some(slot)
                if turn.is_recordable && turn.epoch == guard.epoch && guard.is_record_due(slot) =>
            {
                let number = guard.streams.clock_mut(slot).begin_record();
                self.record(guard, slot, number, turn.stream)
            }
            _ => Ok(guard),
        }
    }

    /// Records an event with a number on a stream that the call was passed. A failure costs nothing but
    /// time: a later record stands for the same work.
    fn record<'a>(
        &'a self,
        mut guard: Guard<'a>,
        slot: SlotId,
        number: u64,
        stream: Stream,
    ) -> Result<Guard<'a>> {
        let Some(streams) = guard.source.streams() else {
            return Ok(guard);
        };
        let domain = guard.streams.domain(slot).or(guard.domain);
        let unused = domain.and_then(|domain| guard.streams.events.take(domain));
        let (mut guard, (event, recorded)) = self.unlocked_aside(guard, |backend| {
            let event = match unused {
                Some(event) => Ok(event),
                None => domain
                    .map_or_else(|| backend.domain(), Ok)
                    .and_then(|domain| streams.create_event(domain)),
            };
            let (event, recorded) = match event {
                Ok(event) => (Some(event), streams.record(event, stream)),
                Err(error) => (None, Err(error)),
            };
            if let Err(error) = &recorded {
                log::log(Level::Warning, || {
                    text!(
                        "an event was not recorded, and freed memory waits for a later one: {error}"
                    )
                });
            }
            (event, recorded.is_ok())
        })?;
        guard.recorded(slot, number, event, recorded);
        Ok(guard)
    }
}

#[cold]
pub(super) fn refuse_unknown() -> Error {
    Error::new(
        Status::InvalidValue,
        "a host function of a stream cannot allocate in the order of a stream: the driver may not be asked there",
    )
}

/// Answers a free of what is no live block.
#[cold]
fn refuse_free(mut guard: Guard<'_>, addr: u64) -> Result<()> {
    let error = guard.describe_bad_free(addr);
    guard.note_bad_free(addr);
    checked::tell(guard);
    Err(error)
}

impl Open {
    /// Notes what became of a record.
    pub(super) fn recorded(
        &mut self,
        slot: SlotId,
        number: u64,
        event: Option<Event>,
        is_recorded: bool,
    ) {
        let Some(event) = event else {
            return;
        };
        if self.streams.domain(slot).is_none() {
            self.domain = Some(event.domain);
        }
        let unused = if is_recorded {
            self.calls.event_records += 1;
            self.streams.clock_mut(slot).end_record(number, event)
        } else {
            Some(event)
        };
        if let Some(event) = unused {
            self.streams.events.put(event);
        }
    }
}
