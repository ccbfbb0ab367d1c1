#![forbid(unsafe_code)]
//! Lanes: who may use a free chunk.
//!
//! Work on a device uses memory for a while after its owner freed it. What is freed on a stream can
//! be handed out on that stream again at once, since work on one stream is done in order; on another
//! stream not before the work is known to be done. So each stream has a *lane* of free chunks, and
//! what is done is *settled*: it goes to the lane [`ANYONE`], from which any request is served. Free
//! chunks merge within a lane only. Each lane has a clock of its own, by which the times of its frees
//! are told.
//!
//! As long as there is one stream the engine is not *separate*: every free chunk is in [`HOME`], and
//! nothing is ever settled.
//!
//! A block that more than one stream uses may be *parked* when it is freed: it is in no lane, and
//! nobody's, until [`Engine::end_free`].

use super::bins::SizeIndex;
use super::chunk::{ANYONE, Chunk, ChunkId, HOME, Lane, NIL, State};
use super::engine::{Block, Engine, NotLive, Request};
use super::host_memory::HostMemoryExhausted;
use super::queue::Queue;

/// A lane other than `HOME`.
#[derive(Debug)]
pub(super) struct Slot {
    pub(super) index: SizeIndex,
    pub(super) queue: Queue,
    pub(super) open: bool,
}

/// The lanes of an engine, without the index of `HOME`.
#[derive(Debug, Default)]
pub(super) struct Lanes {
    /// The queue of `HOME`.
    home: Queue,
    /// The lanes from `ANYONE` on. None before the engine was separate for the first time.
    others: Vec<Slot>,
    /// Lanes that are not open. Has room for all.
    closed: Vec<Lane>,
    /// Bytes and number of parked chunks.
    pub(super) parked: (u64, usize),
}

impl Lanes {
    #[inline]
    fn slot(&self, lane: Lane) -> &Slot {
        &self.others[usize::from(lane) - 1]
    }

    #[inline]
    fn slot_mut(&mut self, lane: Lane) -> &mut Slot {
        &mut self.others[usize::from(lane) - 1]
    }

    pub(super) fn is_open(&self, lane: Lane) -> bool {
        lane == HOME
            || self
                .others
                .get(usize::from(lane) - 1)
                .is_some_and(|slot| slot.open)
    }

    pub(super) fn queue(&self, lane: Lane) -> &Queue {
        if lane == HOME {
            &self.home
        } else {
            &self.slot(lane).queue
        }
    }

    /// One past the highest lane.
    pub(super) fn end(&self) -> usize {
        self.others.len() + 1
    }

    /// Empties all queues, when every free chunk is anyone's.
    pub(super) fn forget_queues(&mut self) {
        self.home.clear(false);
        for slot in &mut self.others {
            slot.queue.clear(false);
        }
    }

    pub(super) fn footprint(&self) -> usize {
        let slots = self.others.iter();
        let each =
            slots.map(|slot| size_of::<Slot>() + slot.index.footprint() + slot.queue.footprint());
        self.home.footprint() + each.sum::<usize>()
    }
}

impl Engine {
    /// Whether there are lanes besides `HOME`.
    #[inline]
    pub fn is_separate(&self) -> bool {
        self.separate
    }

    /// Makes lanes count: what is free now is in `HOME`, what the backend brings from now on is
    /// anyone's. Does nothing where that is so already.
    pub fn separate(&mut self) -> Result<(), HostMemoryExhausted> {
        if self.separate {
            return Ok(());
        }
        if self.lanes.others.is_empty() {
            self.add_lane()?;
        }
        self.separate = true;
        // The times of frees up to now are in no queue.
        self.lanes.home.clear(!self.free.is_empty());
        self.count_pending();
        Ok(())
    }

    /// Counts the pending chunks of every region anew.
    fn count_pending(&mut self) {
        let mut place = 0;
        while let Some(id) = self.regions.id_at(place) {
            place += 1;
            let mut pending = 0;
            let mut at = self.regions[id].first;
            while at != NIL {
                let chunk = &self.chunks[at];
                let is_pending = chunk.state == State::Free && chunk.tag != ANYONE;
                pending += u32::from(is_pending && self.separate);
                at = chunk.next;
            }
            self.regions[id].pending = pending;
        }
    }

    /// Makes the engine not separate again, closing every lane. `false`: a lane other than `HOME` and
    /// `ANYONE` holds chunks, or one is parked, and nothing was changed.
    pub fn rejoin(&mut self) -> bool {
        let is_held = |(lane, index): (Lane, &SizeIndex)| lane > ANYONE && !index.is_empty();
        if self.lanes.parked.1 > 0 || self.each_lane().any(is_held) {
            return false;
        }
        if !self.separate {
            return true;
        }
        for lane in ANYONE + 1..=self.lanes.others.len() as Lane {
            self.close_lane(lane);
        }
        let mut place = 0;
        while let Some(id) = self.regions.id_at(place) {
            place += 1;
            let mut at = self.regions[id].first;
            while at != NIL {
                if self.chunks[at].state == State::Free && self.chunks[at].tag == ANYONE {
                    self.remove_free(at);
                    self.chunks[at].tag = HOME;
                    at = self.list_free(at);
                }
                at = self.chunks[at].next;
            }
        }
        self.separate = false;
        self.lanes.forget_queues();
        self.count_pending();
        true
    }

    /// Opens a lane, and makes the engine separate if it is not. Lanes that were closed are used again.
    pub fn open_lane(&mut self) -> Result<Lane, HostMemoryExhausted> {
        self.separate()?;
        let lane = match self.lanes.closed.pop() {
            Some(lane) => lane,
            None => self.add_lane()?,
        };
        self.lanes.slot_mut(lane).open = true;
        Ok(lane)
    }

    fn add_lane(&mut self) -> Result<Lane, HostMemoryExhausted> {
        let lane = Lane::try_from(self.lanes.end()).map_err(|_| HostMemoryExhausted)?;
        let slot = Slot {
            index: SizeIndex::new(self.policy.ties)?,
            queue: Queue::default(),
            open: true,
        };
        let Lanes { others, closed, .. } = &mut self.lanes;
        others.try_reserve(1).map_err(|_| HostMemoryExhausted)?;
        closed
            .try_reserve(others.len() + 1 - closed.len())
            .map_err(|_| HostMemoryExhausted)?;
        others.push(slot);
        Ok(lane)
    }

    /// Closes a lane that [`Engine::open_lane`] opened. No parked chunk is to end in it any more.
    /// `false`: it holds chunks, or is not open, and nothing was changed.
    pub fn close_lane(&mut self, lane: Lane) -> bool {
        if lane <= ANYONE || !self.lanes.is_open(lane) {
            return false;
        }
        let slot = self.lanes.slot_mut(lane);
        if !slot.index.is_empty() {
            return false;
        }
        slot.open = false;
        slot.queue.clear(false);
        self.lanes.closed.push(lane);
        true
    }

    /// Free bytes in a lane.
    pub fn lane_bytes(&self, lane: Lane) -> u64 {
        if lane != HOME && !self.lanes.is_open(lane) {
            return 0;
        }
        self.index(lane).bytes()
    }

    /// The memory that is freed and not anyone's: parked, or free in another lane; 0 while the engine
    /// is not separate.
    pub fn pending_bytes(&self) -> u64 {
        if !self.separate {
            return 0;
        }
        let lanes = self.pending_in_lanes();
        self.lanes.parked.0 + lanes.map(|(_, bytes, _)| bytes).sum::<u64>()
    }

    /// The lanes other than `ANYONE` that hold free chunks, with their bytes and number; none while
    /// the engine is not separate.
    pub fn pending_in_lanes(&self) -> impl Iterator<Item = (Lane, u64, usize)> + '_ {
        self.each_lane()
            .filter(|&(lane, index)| self.separate && lane != ANYONE && !index.is_empty())
            .map(|(lane, index)| (lane, index.bytes(), index.len()))
    }

    /// The lane of what the backend brings.
    #[inline]
    pub(super) fn fresh_lane(&self) -> Lane {
        if self.separate { ANYONE } else { HOME }
    }

    /// The free chunks of an open lane.
    #[inline]
    pub(super) fn index(&self, lane: Lane) -> &SizeIndex {
        if lane == HOME {
            &self.free
        } else {
            &self.lanes.slot(lane).index
        }
    }

    /// The free chunks of every lane, from `HOME` on.
    pub(super) fn indexes(&self) -> impl Iterator<Item = &SizeIndex> {
        let others = self.lanes.others.iter().map(|slot| &slot.index);
        std::iter::once(&self.free).chain(others)
    }

    /// Every lane, open or not, with its free chunks.
    pub(super) fn each_lane(&self) -> impl Iterator<Item = (Lane, &SizeIndex)> {
        let indexes = self.indexes().enumerate();
        indexes.map(|(lane, index)| (lane as Lane, index))
    }

    /// Adds a free chunk to the index of its lane.
    #[inline]
    pub(super) fn insert_free(&mut self, id: ChunkId) {
        let chunk = &self.chunks[id];
        let lane = chunk.tag;
        if self.separate && lane != ANYONE {
            self.regions[chunk.region].pending += 1;
        }
        if lane == HOME {
            self.free.insert(&mut self.chunks, id);
        } else {
            let slot = self.lanes.slot_mut(lane);
            slot.index.insert(&mut self.chunks, id);
        }
    }

    /// Takes a free chunk out of the index of its lane.
    #[inline]
    pub(super) fn remove_free(&mut self, id: ChunkId) {
        let chunk = &self.chunks[id];
        let lane = chunk.tag;
        if self.separate && lane != ANYONE {
            self.regions[chunk.region].pending -= 1;
        }
        if lane == HOME {
            self.free.remove(&mut self.chunks, id);
        } else {
            let slot = self.lanes.slot_mut(lane);
            slot.index.remove(&mut self.chunks, id);
        }
    }

    /// Adds a chunk that the index of its lane holds to the lane's queue.
    #[inline]
    pub(super) fn note(&mut self, id: ChunkId) {
        let lane = self.chunks[id].tag;
        if !self.separate || lane == ANYONE {
            return;
        }
        if lane == HOME {
            self.lanes.home.push(&self.chunks, &self.free, id);
        } else {
            let Slot { index, queue, .. } = self.lanes.slot_mut(lane);
            queue.push(&self.chunks, index, id);
        }
    }

    /// Merges a free chunk that is in no index with the free neighbours of its lane, and lists the
    /// result, whose id it gives. Kept out of [`Engine::free`], which is hot while there is one lane.
    #[inline(never)]
    pub(super) fn list_in_lane(&mut self, mut id: ChunkId) -> ChunkId {
        let chunk = &self.chunks[id];
        let (prev, next, lane) = (chunk.prev, chunk.next, chunk.tag);
        if self.is_free_in(next, lane) {
            self.remove_free(next);
            self.absorb_next(id);
        }
        if self.is_free_in(prev, lane) {
            self.remove_free(prev);
            self.absorb_next(prev);
            id = prev;
        }
        self.insert_free(id);
        self.note(id);
        id
    }

    fn is_free_in(&self, id: ChunkId, lane: Lane) -> bool {
        id != NIL && self.chunks[id].state == State::Free && self.chunks[id].tag == lane
    }

    /// [`Engine::list_in_lane`], or if the engine is not separate [`Engine::list_free`].
    pub(super) fn list(&mut self, id: ChunkId) -> ChunkId {
        if self.separate {
            self.list_in_lane(id)
        } else {
            self.list_free(id)
        }
    }

    /// Lists a chunk that is in no index as free. Gives the chunk that it became a part of.
    pub(super) fn list_freed(&mut self, id: ChunkId, lane: Lane, freed_at: u64) -> ChunkId {
        let lane = if self.separate { lane } else { HOME };
        debug_assert!(self.lanes.is_open(lane), "lane {lane} is open");
        let chunk = &mut self.chunks[id];
        chunk.tag = lane;
        chunk.set_free(if lane == ANYONE { 0 } else { freed_at });
        self.list(id)
    }

    /// Makes a chunk free that a backend call was to take: what was marked in `HOME` while the engine
    /// was not separate waits for the work that it waited for.
    pub(super) fn keep_free(&mut self, id: ChunkId) {
        let fresh = self.fresh_lane();
        let chunk = &mut self.chunks[id];
        if self.separate && chunk.tag == HOME {
            chunk.state = State::Free;
        } else {
            chunk.tag = fresh;
            chunk.set_free(0);
        }
    }

    /// [`Engine::split_back`] for a free chunk of any lane.
    pub(super) fn split_back_in_lane(&mut self, id: ChunkId, at: u64) -> ChunkId {
        let back = self.split_back(id, at);
        self.chunks[back].tag = self.chunks[id].tag;
        back
    }

    /// [`Engine::split_front`] for a free chunk of any lane.
    pub(super) fn split_front_in_lane(&mut self, id: ChunkId, at: u64) -> ChunkId {
        let front = self.split_front(id, at);
        self.chunks[front].tag = self.chunks[id].tag;
        front
    }

    /// The best fit among the free chunks that a request of the lane may use: of two of one size the
    /// lane's own.
    pub(super) fn best_fit_where(
        &self,
        lane: Lane,
        size: u64,
        usable: impl Fn(ChunkId) -> bool,
    ) -> Option<ChunkId> {
        let chunks = &self.chunks;
        let usable = |id| self.policy.fits(chunks[id].size, size) && usable(id);
        if !self.separate {
            return self.free.best_fit_where(chunks, size, usable);
        }
        if lane == ANYONE {
            return self.index(lane).best_fit_where(chunks, size, usable);
        }
        let own = self.index(lane).best_fit_where(chunks, size, &usable);
        let settled = self.index(ANYONE).best_fit_where(chunks, size, &usable);
        self.smaller(own, settled)
    }

    fn smaller(&self, first: Option<ChunkId>, second: Option<ChunkId>) -> Option<ChunkId> {
        match (first, second) {
            (Some(one), Some(other)) if self.chunks[other].size < self.chunks[one].size => second,
            (Some(_), _) => first,
            (None, _) => second,
        }
    }

    /// Serves a request at any time, of an engine that is separate, from the best fit if that is aligned.
    #[inline(never)]
    pub(super) fn allocate_in_lane(&mut self, request: &Request) -> Option<Block> {
        let settled = self.index(ANYONE).best_fit(&self.chunks, request.size);
        let id = if request.lane == ANYONE {
            settled?
        } else {
            let own = self
                .index(request.lane)
                .best_fit(&self.chunks, request.size);
            self.smaller(own, settled)?
        };
        let Chunk { addr, size, .. } = self.chunks[id];
        let fits = self.policy.fits(size, request.size) && addr % request.align == 0;
        fits.then(|| self.take_in_lane(id, addr, request))
    }

    /// Hands out `start..start + request.size` of a free chunk of any lane. Two chunks are in reserve.
    pub(super) fn take_in_lane(&mut self, id: ChunkId, start: u64, request: &Request) -> Block {
        if !self.separate {
            return self.take(id, start, request);
        }
        self.remove_free(id);
        let part = self.cut(id, start, request);
        self.chunks[part].tag = 0;
        self.hand_out(part, request)
    }

    /// Cuts off a free chunk in no index what the policy leaves of it when `start..start +
    /// request.size` is used; that is listed. Gives the part that is used.
    fn cut(&mut self, id: ChunkId, start: u64, request: &Request) -> ChunkId {
        let mut part = id;
        // What is left keeps the chunk's id, which the lane's queue names.
        if start > self.chunks[id].addr {
            part = self.split_back_in_lane(id, start);
            self.insert_free(id);
        }
        let size = self.chunks[part].size;
        if size > request.size && self.policy.splits(size, request.size) {
            let end = start + request.size;
            if part == id {
                part = self.split_front_in_lane(id, end);
                self.insert_free(id);
            } else {
                let rest = self.split_back_in_lane(part, end);
                self.insert_free(rest);
                self.note(rest);
            }
        }
        part
    }

    /// Frees the block that begins at `addr` into an open lane, at time `freed_at` of its clock.
    pub fn free_in(&mut self, addr: u64, lane: Lane, freed_at: u64) -> Result<Block, NotLive> {
        let (id, block) = self.end_live(addr, |_| {})?;
        self.list_freed(id, lane, freed_at);
        Ok(block)
    }

    /// [`Engine::free_in`] for a block whose tag `may_go` accepts; `None`: it does not.
    #[inline]
    pub fn free_in_if(
        &mut self,
        addr: u64,
        lane: Lane,
        freed_at: u64,
        may_go: impl FnOnce(u16) -> bool,
    ) -> Result<Option<Block>, NotLive> {
        let ended = self.end_live_if(addr, may_go, |_| {})?;
        Ok(ended.map(|(id, block)| {
            self.list_freed(id, lane, freed_at);
            block
        }))
    }

    /// The work that used what was freed in a lane before the time `below` is done: those chunks are
    /// anyone's. Gives their bytes. O(log n) for each of them, however many stay.
    pub fn settle(&mut self, lane: Lane, below: u64) -> u64 {
        if !self.separate || lane == ANYONE || !self.lanes.is_open(lane) {
            return 0;
        }
        if !self.lanes.queue(lane).is_complete() && !self.refill(lane) {
            return self.settle_by_walk(|of, freed_at| of == lane && freed_at < below);
        }
        let mut bytes = 0;
        loop {
            let queue = if lane == HOME {
                &mut self.lanes.home
            } else {
                &mut self.lanes.slot_mut(lane).queue
            };
            let Some(id) = queue.pop(&self.chunks, lane, below) else {
                return bytes;
            };
            bytes += self.chunks[id].size;
            self.settle_chunk(id);
        }
    }

    /// Makes a lane's queue anew. `false`: the host has no memory for it.
    fn refill(&mut self, lane: Lane) -> bool {
        if lane == HOME {
            self.lanes.home.refill(&self.chunks, &self.free);
        } else {
            let Slot { index, queue, .. } = self.lanes.slot_mut(lane);
            queue.refill(&self.chunks, index);
        }
        self.lanes.queue(lane).is_complete()
    }

    /// All work is done: every free chunk of every lane is anyone's. Gives the bytes that were not.
    pub fn settle_all(&mut self) -> u64 {
        if !self.separate {
            return 0;
        }
        let bytes = self.settle_by_walk(|_, _| true);
        self.lanes.forget_queues();
        bytes
    }

    /// Settles the free chunks for whose lane and time `is_done`. Needs no host memory.
    pub(super) fn settle_by_walk(&mut self, is_done: impl Fn(Lane, u64) -> bool) -> u64 {
        let mut bytes = 0;
        let mut place = 0;
        while let Some(id) = self.regions.id_at(place) {
            place += 1;
            let mut at = self.regions[id].first;
            while at != NIL {
                let chunk = &self.chunks[at];
                if chunk.state == State::Free
                    && chunk.tag != ANYONE
                    && is_done(chunk.tag, chunk.freed_at())
                {
                    bytes += chunk.size;
                    at = self.settle_chunk(at);
                }
                at = self.chunks[at].next;
            }
        }
        bytes
    }

    /// Moves a free chunk to the fresh lane. Gives the chunk that it became a part of.
    pub(super) fn settle_chunk(&mut self, id: ChunkId) -> ChunkId {
        self.remove_free(id);
        self.list_freed(id, self.fresh_lane(), 0)
    }
}
