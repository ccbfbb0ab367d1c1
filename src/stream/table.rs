#![forbid(unsafe_code)]
//! The streams that a pool has seen, and what waits for their work.
//!
//! A stream has a slot while anything of it is left: a lane of the engine with the memory that was freed
//! in its order, its [`Clock`], and the blocks that wait for it though they are another stream's.

use super::barrier::Barrier;
use super::clock::Clock;
use super::events::Events;
use crate::alloc::chunk::{ANYONE, ChunkId, HOME, Lane};
use crate::alloc::host_memory::TryPush;
use crate::alloc::{Engine, HostMemoryExhausted};
use crate::backend::streams::{Event, StreamKey};
use std::collections::{HashMap, VecDeque};

/// Names a slot of a [`Table`].
pub type SlotId = u32;

/// Names a block that waits.
pub type ParkedId = u32;

/// Slots that come at least before empty ones are looked for.
const EMPTY_SLOTS: usize = 16;

/// The oldest events that one look asks about, for each stream, beside the newest.
const OLDEST: usize = 8;

/// Events of one stream that may be outstanding. Beyond, frees wait for a later record.
pub const MOST_EVENTS: usize = 4096;

#[derive(Debug)]
pub(super) struct Slot {
    /// `None`: the slot is vacant.
    pub(super) key: Option<StreamKey>,
    lane: Lane,
    /// The context of the stream; `None`: the pool's own.
    pub(super) domain: Option<usize>,
    pub(super) clock: Clock,
    /// Parked blocks that wait for a record, in the order of its number.
    waits: VecDeque<(u64, ParkedId)>,
    /// Parked chunks that wait for nothing else and are anyone's then, in the order of their numbers: those of a
    /// stream whose lane serves no request.
    row: VecDeque<(u64, ChunkId)>,
    /// Their bytes.
    row_bytes: u64,
    /// Live blocks that name the stream as a user.
    uses: usize,
    /// Calls in progress that count on the slot.
    pins: u32,
    /// Whether its owner said that it ends: nothing is queued on it after its last record.
    is_ended: bool,
}

/// A block that was freed and that not even the stream may use in whose order it was freed.
#[derive(Clone, Copy, Debug)]
struct Parked {
    chunk: ChunkId,
    /// The stream in whose order it was freed, and the number there.
    owner: SlotId,
    number: u64,
    /// How much it still waits for. 0: the entry is vacant.
    left: u32,
}

/// An event to ask about.
#[derive(Clone, Copy, Debug)]
pub struct Query {
    /// What it is about.
    pub about: About,
    /// The event.
    pub event: Event,
}

/// What an event is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum About {
    /// Everything of a stream below a number. The newest of a stream comes first, then the oldest, in
    /// order.
    Stream {
        /// The stream.
        slot: SlotId,
        /// The number.
        below: u64,
    },
    /// A part of a barrier.
    Barrier,
}

/// The memory that waits for a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Waiting {
    /// The stream.
    pub key: StreamKey,
    /// Its lane.
    pub lane: Lane,
    /// Bytes freed in its order.
    pub bytes: u64,
    /// In so many blocks.
    pub blocks: u64,
}

/// All streams of a pool that is separate.
#[derive(Debug, Default)]
pub struct Table {
    pub(super) slots: Vec<Slot>,
    by_key: HashMap<StreamKey, SlotId>,
    /// Vacant slots.
    vacant: Vec<SlotId>,
    parked: Vec<Parked>,
    /// Vacant entries of `parked`.
    unparked: Vec<ParkedId>,
    /// Live blocks with the streams that they were recorded for.
    uses: HashMap<u64, Vec<SlotId>>,
    /// Unused events.
    pub events: Events,
    pub(super) barriers: Vec<Barrier>,
    /// With so many slots in use, those of which nothing is left are closed.
    close_at: usize,
    /// Barriers that are being made: their numbers name slots, which stay what they are.
    pub(super) making: u32,
}

impl Table {
    /// The slot of a stream, if it has one.
    pub fn find(&self, key: StreamKey) -> Option<SlotId> {
        self.by_key.get(&key).copied()
    }

    /// Gives a slot to a stream that has none. The first one has the lane `HOME`.
    pub fn open(
        &mut self,
        engine: &mut Engine,
        key: StreamKey,
        domain: Option<usize>,
    ) -> Result<SlotId, HostMemoryExhausted> {
        debug_assert!(self.find(key).is_none());
        if self.vacant.is_empty() && self.slots.len() >= self.close_at && self.making == 0 {
            self.close_empty(engine);
            // So that looking costs a constant for each stream that comes.
            self.close_at = self.slots.len() + self.by_key.len().max(EMPTY_SLOTS);
        }
        self.by_key
            .try_reserve(1)
            .map_err(|_| HostMemoryExhausted)?;
        // So that closing slots needs no memory.
        self.vacant
            .try_reserve(self.slots.len() + 1 - self.vacant.len())
            .map_err(|_| HostMemoryExhausted)?;
        self.slots.try_reserve(1).map_err(|_| HostMemoryExhausted)?;
        let lane = if self.slots.is_empty() {
            HOME
        } else {
            engine.open_lane()?
        };
        let slot = Slot {
            key: Some(key),
            lane,
            domain,
            clock: Clock::default(),
            waits: VecDeque::new(),
            row: VecDeque::new(),
            row_bytes: 0,
            uses: 0,
            pins: 0,
            is_ended: false,
        };
        let id = match self.vacant.pop() {
            Some(id) => {
                self.slots[id as usize] = slot;
                id
            }
            None => {
                self.slots.push(slot);
                (self.slots.len() - 1) as SlotId
            }
        };
        self.by_key.insert(key, id);
        Ok(id)
    }

    /// Closes the slots of streams of which nothing is left.
    fn close_empty(&mut self, engine: &mut Engine) {
        for id in 0..self.slots.len() as SlotId {
            let slot = &self.slots[id as usize];
            let is_empty = slot.clock.is_idle()
                && slot.waits.is_empty()
                && slot.row.is_empty()
                && slot.uses == 0
                && slot.pins == 0
                && engine.lane_bytes(slot.lane) == 0
                && !self.is_waited_by_parked(id);
            let Some(key) = slot.key.filter(|_| is_empty && slot.lane != HOME) else {
                continue;
            };
            engine.close_lane(slot.lane);
            self.forget_key(key, id);
            self.slots[id as usize].key = None;
            self.vacant.push(id);
            for barrier in &mut self.barriers {
                barrier.below.retain(|&(other, _)| other != id);
            }
        }
    }

    /// Whether a parked block goes to this stream in the end.
    fn is_waited_by_parked(&self, id: SlotId) -> bool {
        self.parked
            .iter()
            .any(|parked| parked.left > 0 && parked.owner == id)
    }

    /// The lane of a stream.
    pub fn lane(&self, id: SlotId) -> Lane {
        self.slots[id as usize].lane
    }

    /// Keeps the slot for a call that releases the pool's lock and counts on it afterwards.
    pub fn pin(&mut self, id: SlotId) {
        self.slots[id as usize].pins += 1;
    }

    /// The call has ended.
    pub fn unpin(&mut self, id: SlotId) {
        self.slots[id as usize].pins -= 1;
    }

    /// The context of a stream; `None`: the pool's own, whose number was not asked for yet.
    pub fn domain(&self, id: SlotId) -> Option<usize> {
        self.slots[id as usize].domain
    }

    /// Whether no stream has a slot.
    pub fn is_empty(&self) -> bool {
        // The first one stays.
        self.slots.is_empty()
    }

    /// Where a stream stands.
    pub fn clock(&self, id: SlotId) -> &Clock {
        &self.slots[id as usize].clock
    }

    /// The same, to take numbers from it.
    pub fn clock_mut(&mut self, id: SlotId) -> &mut Clock {
        &mut self.slots[id as usize].clock
    }

    pub(super) fn open_slots(&self) -> impl Iterator<Item = (SlotId, &Slot)> {
        self.slots
            .iter()
            .enumerate()
            .filter(|(_, slot)| slot.key.is_some())
            .map(|(id, slot)| (id as SlotId, slot))
    }

    /// The slot with a lane.
    pub fn of_lane(&self, lane: Lane) -> Option<SlotId> {
        self.open_slots()
            .find(|(_, slot)| slot.lane == lane)
            .map(|(id, _)| id)
    }

    /// The owner of a stream says that it ends, after the record that is made now; or, as a call was passed
    /// it, that it has not.
    pub fn set_ended(&mut self, id: SlotId, is_ended: bool) {
        self.slots[id as usize].is_ended = is_ended;
    }

    /// The stream is gone: one that comes under its key is another one, and gets a slot of its own.
    pub fn detach(&mut self, id: SlotId) {
        if let Some(key) = self.slots[id as usize].key {
            self.forget_key(key, id);
        }
    }

    fn forget_key(&mut self, key: StreamKey, id: SlotId) {
        if self.find(key) == Some(id) {
            self.by_key.remove(&key);
        }
    }

    /// Whether a record of a stream may be wanted later, though nothing waits for one yet.
    pub fn has_uses(&self, id: SlotId) -> bool {
        self.slots[id as usize].uses > 0
    }

    /// Names a stream as a user of a live block. `true`: the block had no such user before, and should be
    /// marked.
    pub fn add_use(&mut self, addr: u64, id: SlotId) -> Result<bool, HostMemoryExhausted> {
        self.uses.try_reserve(1).map_err(|_| HostMemoryExhausted)?;
        let users = self.uses.entry(addr).or_default();
        let is_first = users.is_empty();
        if !users.contains(&id) {
            if let Err(error) = users.try_push(id) {
                if is_first {
                    self.uses.remove(&addr);
                }
                return Err(error);
            }
            self.slots[id as usize].uses += 1;
        }
        Ok(is_first)
    }

    /// Makes room for a block to wait for other things and for the record of each user.
    pub fn reserve_parking(&mut self, addr: u64, is_used: bool) -> Result<(), HostMemoryExhausted> {
        if self.unparked.is_empty() {
            // Vacant entries are noted without asking for memory.
            self.unparked
                .try_reserve(self.parked.len() + 1)
                .map_err(|_| HostMemoryExhausted)?;
            self.parked
                .try_reserve(1)
                .map_err(|_| HostMemoryExhausted)?;
        }
        if is_used {
            for id in self.uses.get(&addr).into_iter().flatten() {
                self.slots[*id as usize]
                    .waits
                    .try_reserve(1)
                    .map_err(|_| HostMemoryExhausted)?;
            }
        }
        Ok(())
    }

    /// Lets a block that was just freed in the order of `owner` wait for the users that it named, and for so
    /// many `others`: each until [`Table::unpark`]. `None`: there is nothing to wait for. Room was
    /// made for it.
    pub fn park(
        &mut self,
        chunk: ChunkId,
        owner: SlotId,
        number: u64,
        addr: Option<u64>,
        others: u32,
    ) -> Option<ParkedId> {
        let users = addr
            .and_then(|addr| self.uses.remove(&addr))
            .unwrap_or_default();
        let id = self
            .unparked
            .last()
            .copied()
            .unwrap_or(self.parked.len() as ParkedId);
        let mut left = others;
        for user in users {
            let slot = &mut self.slots[user as usize];
            slot.uses -= 1;
            // Its own order makes the stream wait.
            if user == owner {
                continue;
            }
            let number = match slot.clock.recorded().checked_sub(1) {
                Some(last) if slot.is_ended => last,
                _ => slot.clock.want(),
            };
            if number >= slot.clock.done() {
                slot.waits.push_back((number, id));
                left += 1;
            }
        }
        if left == 0 {
            return None;
        }
        let parked = Parked {
            chunk,
            owner,
            number,
            left,
        };
        if self.unparked.pop().is_some() {
            self.parked[id as usize] = parked;
        } else {
            self.parked.push(parked);
        }
        Some(id)
    }

    /// One thing less that a block waits for.
    pub fn unpark(&mut self, engine: &mut Engine, id: ParkedId) {
        let parked = &mut self.parked[id as usize];
        parked.left -= 1;
        let Parked {
            chunk,
            owner,
            number,
            left,
        } = *parked;
        if left == 0 {
            self.unparked.push(id);
            self.list(engine, chunk, owner, number);
        }
    }

    /// Gives a freed block to the stream in whose order it was freed, or to anyone if that is done.
    pub fn list(&mut self, engine: &mut Engine, chunk: ChunkId, owner: SlotId, number: u64) {
        let slot = &mut self.slots[owner as usize];
        if number < slot.clock.done() {
            engine.end_free(chunk, ANYONE, 0);
        } else {
            engine.end_free(chunk, slot.lane, number);
        }
    }

    /// Makes room for one chunk more in the row of a stream. `false`: there is no memory for it.
    #[inline]
    pub fn reserve_row(&mut self, id: SlotId) -> bool {
        self.slots[id as usize].row.try_reserve(1).is_ok()
    }

    /// Adds a parked chunk, which was freed at a number, to the row of a stream. Room was made for it.
    #[inline]
    pub fn push_row(&mut self, id: SlotId, number: u64, chunk: ChunkId, bytes: u64) {
        let slot = &mut self.slots[id as usize];
        slot.row.push_back((number, chunk));
        slot.row_bytes += bytes;
    }

    /// Bytes in the row of a stream.
    pub fn row_bytes(&self, id: SlotId) -> u64 {
        self.slots[id as usize].row_bytes
    }

    /// Everything of a stream below a number is done.
    pub fn advance(&mut self, engine: &mut Engine, id: SlotId, below: u64) {
        let slot = &mut self.slots[id as usize];
        let events = &mut self.events;
        slot.clock.advance(below, |event| events.put(event));
        let done = slot.clock.done();
        engine.settle(slot.lane, done);
        while let Some(&(number, chunk)) = slot.row.front() {
            if number >= done {
                break;
            }
            slot.row.pop_front();
            slot.row_bytes -= engine.end_free(chunk, ANYONE, 0);
        }
        while let Some(&(number, parked)) = self.slots[id as usize].waits.front() {
            if number >= done {
                break;
            }
            self.slots[id as usize].waits.pop_front();
            self.unpark(engine, parked);
        }
    }

    /// Adds the events that are worth asking about.
    pub fn add_queries(&self, queries: &mut Vec<Query>) -> Result<(), HostMemoryExhausted> {
        for (id, slot) in self.open_slots() {
            let mut events = slot.clock.events();
            let mut add = |(number, event): (u64, Event)| {
                let about = About::Stream {
                    slot: id,
                    below: number + 1,
                };
                queries.try_push(Query { about, event })
            };
            // If the newest is done, all are.
            if let Some(newest) = events.next_back() {
                add(newest)?;
            }
            for oldest in events.take(OLDEST) {
                add(oldest)?;
            }
        }
        for &event in self.barriers.iter().flat_map(|barrier| &barrier.events) {
            let about = About::Barrier;
            queries.try_push(Query { about, event })?;
        }
        Ok(())
    }

    /// An event that was asked about is done.
    pub fn is_done(&mut self, engine: &mut Engine, query: Query) {
        match query.about {
            About::Stream { slot, below } => self.advance(engine, slot, below),
            About::Barrier => {
                let barriers = &mut self.barriers;
                let Some(at) = barriers
                    .iter()
                    .position(|barrier| barrier.events.contains(&query.event))
                else {
                    return;
                };
                barriers[at].events.retain(|&event| event != query.event);
                self.events.put(query.event);
                if barriers[at].events.is_empty() {
                    for (slot, below) in barriers.swap_remove(at).below {
                        self.advance(engine, slot, below);
                    }
                }
            }
        }
    }

    /// Whether events are outstanding.
    pub fn has_events(&self) -> bool {
        !self.barriers.is_empty()
            || self
                .open_slots()
                .any(|(_, slot)| slot.clock.events().len() > 0)
    }

    /// Whether an event that stands for all streams is outstanding.
    pub fn has_barriers(&self) -> bool {
        !self.barriers.is_empty()
    }

    /// The memory that waits, by stream.
    pub fn waiting<'a>(&'a self, engine: &'a Engine) -> impl Iterator<Item = Waiting> + 'a {
        let rows = self.open_slots().filter(|(_, slot)| !slot.row.is_empty());
        let rows = rows.filter_map(|(_, slot)| {
            Some(Waiting {
                key: slot.key?,
                lane: slot.lane,
                bytes: slot.row_bytes,
                blocks: slot.row.len() as u64,
            })
        });
        let lanes = engine
            .pending_in_lanes()
            .filter_map(|(lane, bytes, blocks)| {
                let slot = self.of_lane(lane)?;
                Some(Waiting {
                    key: self.slots[slot as usize].key?,
                    lane,
                    bytes,
                    blocks: blocks as u64,
                })
            });
        rows.chain(lanes)
    }

    /// Takes any event, in use or not, for it to be destroyed.
    pub fn take_event(&mut self) -> Option<Event> {
        if let Some(event) = self.events.take_any() {
            return Some(event);
        }
        while let Some(barrier) = self.barriers.last_mut() {
            if let Some(event) = barrier.events.pop() {
                return Some(event);
            }
            self.barriers.pop();
        }
        for slot in &mut self.slots {
            let mut taken = None;
            let next = slot.clock.events().next().map(|(number, _)| number + 1);
            if let Some(below) = next {
                slot.clock.advance(below, |event| taken = Some(event));
            }
            if taken.is_some() {
                return taken;
            }
        }
        None
    }
}
