#![forbid(unsafe_code)]
//! Allocating and freeing: best fit with coalescing over regions.
//!
//! The algorithm is that of XLA's `BFCAllocator` (tsl/framework/bfc_allocator.cc) with another
//! size index: the best fit by (size, lowest address), split by the policy's rule, and on a free
//! merged at once with both neighbours.

use super::address_map::AddressMap;
use super::bins::{SizeIndex, Ties};
use super::chunk::{ANYONE, Chunk, ChunkId, Chunks, HOME, Lane, NIL, State};
use super::host_memory::HostMemoryExhausted;
use super::lanes::Lanes;
use super::policy::Policy;
use super::region::{RegionId, Regions};
use crate::size::{GRAIN, round_up};

/// A request for memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// Bytes asked for.
    pub requested: u64,
    /// Bytes needed: `requested` rounded up to [`GRAIN`].
    pub size: u64,
    /// Alignment of the address, a power of two of at least [`GRAIN`].
    pub align: u64,
    /// Only chunks freed at this time or before may be used (the safe frontier of XLA's
    /// `BFCAllocator`); `None`: any.
    pub usable_at: Option<u64>,
    /// Only chunks of this lane, and of [`ANYONE`], may be used. Of no meaning
    /// while the engine is not separate.
    pub lane: Lane,
}

impl Request {
    /// A request for `bytes` (not 0) at a multiple of `align` (0 or a power of two). `None`: no
    /// address space could hold it.
    #[inline]
    pub fn new(bytes: u64, align: u64) -> Option<Self> {
        let size = round_up(bytes, GRAIN)?;
        let align = align.max(GRAIN);
        size.checked_add(align)?;
        Some(Self {
            requested: bytes,
            size,
            align,
            usable_at: None,
            lane: HOME,
        })
    }

    /// A chunk of this size holds the request wherever the chunk lies.
    #[inline]
    pub fn size_anywhere(&self) -> u64 {
        self.size + (self.align - GRAIN)
    }
}

/// A block that was handed out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Block {
    /// Its first address.
    pub addr: u64,
    /// Its bytes, at least those asked for.
    pub size: u64,
}

/// The address is not the start of a live block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotLive;

/// What lies at an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Located {
    /// It is in no region.
    Foreign,
    /// Free memory.
    Free,
    /// The start of a live block.
    Start {
        /// The block.
        block: Block,
    },
    /// Inside a live block.
    Inside {
        /// The block.
        block: Block,
    },
}

/// What an engine holds. Sizes in bytes. In one cache line, as [`SizeIndex`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(align(64))]
pub struct Usage {
    /// In live blocks.
    pub allocated: u64,
    /// Asked for, of live blocks.
    pub requested: u64,
    /// Live blocks.
    pub live: u64,
    /// Memory in regions.
    pub reserved: u64,
    /// Highest `allocated` since the start or [`Engine::reset_peak`].
    pub peak_allocated: u64,
    /// Highest `reserved` since the start or [`Engine::reset_peak`].
    pub peak_reserved: u64,
}

/// Book-keeping of all regions of one pool. Not thread-safe by itself.
#[derive(Debug)]
pub struct Engine {
    pub(super) policy: Policy,
    pub(super) chunks: Chunks,
    /// Chunks in state `Free`, of the lane `HOME`: all of them while the engine is not separate.
    pub(super) free: SizeIndex,
    /// Whether there are lanes besides `HOME`.
    pub(super) separate: bool,
    /// What lanes take beyond the index of `HOME`.
    pub(super) lanes: Lanes,
    /// Chunks in state `Hole`.
    pub(super) holes: SizeIndex,
    /// Chunks in state `Live`.
    pub(super) live: AddressMap,
    pub(super) regions: Regions,
    pub(super) usage: Usage,
}

impl Engine {
    /// An engine without regions.
    pub fn new(policy: Policy) -> Result<Self, HostMemoryExhausted> {
        Ok(Self {
            policy,
            chunks: Chunks::default(),
            free: SizeIndex::new(policy.ties)?,
            separate: false,
            lanes: Lanes::default(),
            holes: SizeIndex::new(Ties::LowestAddress)?,
            live: AddressMap::default(),
            regions: Regions::default(),
            usage: Usage::default(),
        })
    }

    /// What it holds.
    #[inline]
    pub fn usage(&self) -> Usage {
        self.usage
    }

    /// Begins both peaks anew at what is held now.
    pub fn reset_peak(&mut self) {
        self.usage.peak_allocated = self.usage.allocated;
        self.usage.peak_reserved = self.usage.reserved;
    }

    /// Regions held.
    pub fn segments(&self) -> usize {
        self.regions.len()
    }

    /// Free chunks of all lanes. A region with nothing live or parked counts as one, though addresses
    /// without memory, or lanes, may keep its free chunks apart.
    pub fn free_blocks(&self) -> usize {
        let apart: usize = self
            .regions
            .ids()
            .filter(|&id| self.regions[id].is_unused() && (self.regions[id].paged || self.separate))
            .map(|id| self.free_chunks_in(id).saturating_sub(1))
            .sum();
        self.indexes().map(SizeIndex::len).sum::<usize>() - apart
    }

    fn free_chunks_in(&self, region: RegionId) -> usize {
        let mut count = 0;
        let mut id = self.regions[region].first;
        while id != NIL {
            count += usize::from(self.chunks[id].state == State::Free);
            id = self.chunks[id].next;
        }
        count
    }

    /// Bytes in free chunks of all lanes.
    pub fn free_bytes(&self) -> u64 {
        self.indexes().map(SizeIndex::bytes).sum()
    }

    /// The largest free chunk that anybody may use; 0 when there is none.
    pub fn largest_settled(&self) -> u64 {
        self.index(self.fresh_lane()).largest(&self.chunks)
    }

    /// The largest free chunk of any lane; 0 when there is none.
    pub fn largest_free(&self) -> u64 {
        let largest = self.indexes().map(|index| index.largest(&self.chunks));
        largest.max().unwrap_or(0)
    }

    /// Host bytes that book-keeping takes.
    pub fn footprint(&self) -> usize {
        self.chunks.footprint() + self.live.footprint() + self.lanes.footprint()
    }

    /// Serves a request from free chunks. `None`: none of them fits.
    #[inline(always)]
    pub fn allocate(&mut self, request: &Request) -> Result<Option<Block>, HostMemoryExhausted> {
        self.chunks.reserve(2)?;
        self.live.reserve(|id| self.chunks[id].addr)?;
        if request.align == GRAIN && request.usable_at.is_none() {
            if self.separate {
                return Ok(self.allocate_in_lane(request));
            }
            let Some(id) = self.free.best_fit(&self.chunks, request.size) else {
                return Ok(None);
            };
            let Chunk { addr, size, .. } = self.chunks[id];
            if !self.policy.fits(size, request.size) {
                return Ok(None);
            }
            return Ok(Some(self.take(id, addr, request)));
        }
        if self.separate && request.lane == ANYONE && request.usable_at.is_none() {
            // The best fit is nearly always aligned well.
            if let Some(block) = self.allocate_in_lane(request) {
                return Ok(Some(block));
            }
        }
        Ok(self.allocate_constrained(request))
    }

    /// The best fit under an alignment or a time.
    fn allocate_constrained(&mut self, request: &Request) -> Option<Block> {
        let in_time = |id| self.is_in_time(id, request);
        // The best fit may be aligned well already; otherwise a chunk that holds the request
        // wherever it lies keeps the search logarithmic.
        let tight = self
            .best_fit_where(request.lane, request.size, in_time)
            .and_then(|id| Some((id, self.aligned_start(id, request)?)));
        let found = tight.or_else(|| {
            let id = self.best_fit_where(request.lane, request.size_anywhere(), in_time)?;
            Some((id, self.aligned_start(id, request)?))
        });
        let (id, start) = found?;
        Some(self.take_in_lane(id, start, request))
    }

    /// Serves a request from any free chunk that can, at the price of looking at all of them where
    /// it is aligned. For requests that would grow or fail otherwise.
    pub fn allocate_exhaustively(
        &mut self,
        request: &Request,
    ) -> Result<Option<Block>, HostMemoryExhausted> {
        self.chunks.reserve(2)?;
        self.live.reserve(|id| self.chunks[id].addr)?;
        let found = self
            .best_fit_where(request.lane, request.size, |id| {
                self.is_in_time(id, request) && self.aligned_start(id, request).is_some()
            })
            .and_then(|id| Some((id, self.aligned_start(id, request)?)));
        Ok(found.map(|(id, start)| self.take_in_lane(id, start, request)))
    }

    /// Whether the request may use a free chunk at its time.
    fn is_in_time(&self, id: ChunkId, request: &Request) -> bool {
        request
            .usable_at
            .is_none_or(|time| self.chunks[id].freed_at() <= time)
    }

    /// Where the request would lie in a chunk.
    fn aligned_start(&self, id: ChunkId, request: &Request) -> Option<u64> {
        let chunk = &self.chunks[id];
        let start = round_up(chunk.addr, request.align)?;
        (start.checked_add(request.size)? <= chunk.end()).then_some(start)
    }

    /// Hands out `start..start + request.size` of a free chunk, of an engine that is not separate. Two
    /// chunks are in reserve.
    #[inline(always)]
    pub(super) fn take(&mut self, id: ChunkId, start: u64, request: &Request) -> Block {
        self.free.remove(&mut self.chunks, id);
        if start > self.chunks[id].addr {
            let front = self.split_front(id, start);
            self.free.insert(&mut self.chunks, front);
        }
        let size = self.chunks[id].size;
        if size > request.size && self.policy.splits(size, request.size) {
            let rest = self.split_back(id, start + request.size);
            self.free.insert(&mut self.chunks, rest);
        }
        self.hand_out(id, request)
    }

    /// Makes a free chunk that is in no index live; its tag is 0.
    #[inline(always)]
    pub(super) fn hand_out(&mut self, id: ChunkId, request: &Request) -> Block {
        let chunk = &mut self.chunks[id];
        chunk.set_live(request.requested);
        let (addr, size) = (chunk.addr, chunk.size);
        self.regions[chunk.region].live += 1;
        self.live.insert(addr, id);
        let usage = &mut self.usage;
        usage.live += 1;
        usage.requested += request.requested;
        usage.allocated += size;
        usage.peak_allocated = usage.peak_allocated.max(usage.allocated);
        Block { addr, size }
    }

    /// Frees the block that begins at `addr` into `HOME`, at time `freed_at` of its clock (0 if that
    /// does not matter).
    #[inline(always)]
    pub fn free(&mut self, addr: u64, freed_at: u64) -> Result<Block, NotLive> {
        let (id, block) = self.end_live(addr, |chunk| {
            chunk.tag = HOME;
            chunk.set_free(freed_at);
        })?;
        if self.separate {
            self.list_in_lane(id);
        } else {
            self.list_free(id);
        }
        Ok(block)
    }

    /// Ends the block that begins at `addr`; `become_next` gives its chunk another state.
    #[inline(always)]
    pub(super) fn end_live(
        &mut self,
        addr: u64,
        become_next: impl FnOnce(&mut Chunk),
    ) -> Result<(ChunkId, Block), NotLive> {
        let ended = self.end_live_if(addr, |_| true, become_next)?;
        ended.ok_or(NotLive)
    }

    /// The same for a block whose tag `may_go` accepts; `None`: it does not.
    #[inline(always)]
    pub(super) fn end_live_if(
        &mut self,
        addr: u64,
        may_go: impl FnOnce(u16) -> bool,
        become_next: impl FnOnce(&mut Chunk),
    ) -> Result<Option<(ChunkId, Block)>, NotLive> {
        let chunks = &self.chunks;
        let id = self
            .live
            .remove(addr, |id| chunks[id].addr)
            .ok_or(NotLive)?;
        if !may_go(self.chunks[id].tag) {
            // Its place is still there.
            self.live.insert(addr, id);
            return Ok(None);
        }
        let chunk = &mut self.chunks[id];
        let size = chunk.size;
        self.usage.live -= 1;
        self.usage.requested -= chunk.requested();
        self.usage.allocated -= size;
        become_next(chunk);
        self.regions[chunk.region].live -= 1;
        Ok(Some((id, Block { addr, size })))
    }

    /// Merges a free chunk that is in no index with its free neighbours, and lists the result, whose
    /// id it gives. The engine is not separate.
    #[inline(always)]
    pub(super) fn list_free(&mut self, mut id: ChunkId) -> ChunkId {
        let (prev, next) = (self.chunks[id].prev, self.chunks[id].next);
        if next != NIL && self.chunks[next].state == State::Free {
            self.free.remove(&mut self.chunks, next);
            self.absorb_next(id);
        }
        if prev != NIL && self.chunks[prev].state == State::Free {
            self.free.remove(&mut self.chunks, prev);
            self.absorb_next(prev);
            id = prev;
        }
        self.free.insert(&mut self.chunks, id);
        id
    }

    /// Joins a chunk with the next one. Free chunks keep the later of their times.
    #[inline]
    pub(super) fn absorb_next(&mut self, id: ChunkId) {
        let next = self.chunks[id].next;
        let gone = &self.chunks[next];
        let (size, after, state) = (gone.size, gone.next, gone.state);
        if state == State::Free {
            let time = gone.freed_at().max(self.chunks[id].freed_at());
            self.chunks[id].set_free(time);
        }
        let chunk = &mut self.chunks[id];
        chunk.size += size;
        chunk.next = after;
        let region = chunk.region;
        if after == NIL {
            self.regions[region].last = id;
        } else {
            self.chunks[after].prev = id;
        }
        self.chunks.remove(next);
    }

    /// Cuts `at..` off a chunk that is in no index. Gives back the new chunk, in the same state and
    /// with a tag of 0.
    #[inline]
    pub(super) fn split_back(&mut self, id: ChunkId, at: u64) -> ChunkId {
        let chunk = &self.chunks[id];
        let (region, next, state, size) = (chunk.region, chunk.next, chunk.state, chunk.end() - at);
        let time = if state == State::Free {
            chunk.freed_at()
        } else {
            0
        };
        let back = self.chunks.insert(at, size, region, state);
        let chunk = &mut self.chunks[back];
        if state == State::Free {
            chunk.set_free(time);
        }
        chunk.prev = id;
        chunk.next = next;
        let chunk = &mut self.chunks[id];
        chunk.size -= size;
        chunk.next = back;
        if next == NIL {
            self.regions[region].last = back;
        } else {
            self.chunks[next].prev = back;
        }
        back
    }

    /// Cuts `..at` off a chunk that is in no index. Gives back the new chunk, in the same state and
    /// with a tag of 0.
    pub(super) fn split_front(&mut self, id: ChunkId, at: u64) -> ChunkId {
        let chunk = &self.chunks[id];
        let (addr, region, prev, state) = (chunk.addr, chunk.region, chunk.prev, chunk.state);
        let time = if state == State::Free {
            chunk.freed_at()
        } else {
            0
        };
        let front = self.chunks.insert(addr, at - addr, region, state);
        let chunk = &mut self.chunks[front];
        if state == State::Free {
            chunk.set_free(time);
        }
        chunk.next = id;
        chunk.prev = prev;
        let chunk = &mut self.chunks[id];
        chunk.size -= at - addr;
        chunk.addr = at;
        chunk.prev = front;
        if prev == NIL {
            self.regions[region].first = front;
        } else {
            self.chunks[prev].next = front;
        }
        front
    }

    /// The live block that begins at `addr`.
    pub fn block_at(&self, addr: u64) -> Option<Block> {
        let id = self.live.get(addr, |id| self.chunks[id].addr)?;
        Some(Block {
            addr,
            size: self.chunks[id].size,
        })
    }

    /// Notes who else keeps books of the live block at `addr`: the bytes that were asked for count
    /// there from now on, and here as none. `tag` is not 0. `false`: no block is live there.
    pub fn adopt(&mut self, addr: u64, tag: u16) -> bool {
        let Some(id) = self.live.get(addr, |id| self.chunks[id].addr) else {
            return false;
        };
        let chunk = &mut self.chunks[id];
        chunk.tag = tag;
        self.usage.requested -= chunk.requested();
        chunk.set_live(0);
        true
    }

    /// Ends what [`Engine::adopt`] began: `requested` bytes count here again.
    pub fn disown(&mut self, addr: u64, requested: u64) {
        if let Some(id) = self.live.get(addr, |id| self.chunks[id].addr) {
            let chunk = &mut self.chunks[id];
            chunk.tag = 0;
            chunk.set_live(requested);
            self.usage.requested += requested;
        }
    }

    /// Frees an adopted block that [`Usage::allocated`] does not count: neither before nor afterwards.
    pub fn free_uncounted(&mut self, addr: u64) -> Result<Block, NotLive> {
        let block = self.block_at(addr).ok_or(NotLive)?;
        self.usage.allocated += block.size;
        self.free(addr, 0)
    }

    /// How many bytes can be allocated before the peak rises.
    pub fn below_peak(&self) -> u64 {
        self.usage.peak_allocated - self.usage.allocated
    }

    /// Counts bytes as allocated that are about to be, by whoever adopts blocks.
    pub fn promise(&mut self, bytes: u64) {
        let usage = &mut self.usage;
        usage.allocated += bytes;
        usage.peak_allocated = usage.peak_allocated.max(usage.allocated);
    }

    /// Takes back what [`Engine::promise`] or the free of a block gave.
    pub fn take_promise(&mut self, bytes: u64) {
        self.usage.allocated -= bytes;
    }

    /// The tag of the live block that begins at `addr`: 0 since it was handed out, or what
    /// [`Engine::set_tag`] made it.
    pub fn tag(&self, addr: u64) -> Option<u16> {
        let id = self.live.get(addr, |id| self.chunks[id].addr)?;
        Some(self.chunks[id].tag)
    }

    /// Tags the live block that begins at `addr`. The engine makes no use of it. `false`: there is no
    /// such block.
    pub fn set_tag(&mut self, addr: u64, tag: u16) -> bool {
        let chunks = &self.chunks;
        let id = self.live.get(addr, |id| chunks[id].addr);
        if let Some(id) = id {
            self.chunks[id].tag = tag;
        }
        id.is_some()
    }

    /// The bytes that were asked for, of the live block that begins at `addr`.
    pub fn requested_at(&self, addr: u64) -> Option<u64> {
        let id = self.live.get(addr, |id| self.chunks[id].addr)?;
        Some(self.chunks[id].requested())
    }

    /// What lies at `addr`. Linear in the chunks of its region: for messages.
    pub fn locate(&self, addr: u64) -> Located {
        let Some(region) = self.regions.containing(addr) else {
            return Located::Foreign;
        };
        let mut id = self.regions[region].first;
        while self.chunks[id].end() <= addr {
            id = self.chunks[id].next;
        }
        let chunk = &self.chunks[id];
        let block = Block {
            addr: chunk.addr,
            size: chunk.size,
        };
        match chunk.state {
            State::Live if addr == chunk.addr => Located::Start { block },
            State::Live => Located::Inside { block },
            _ => Located::Free,
        }
    }

    /// Live blocks in the order of addresses, with the bytes that were asked for.
    pub fn live_blocks(&self) -> impl Iterator<Item = (Block, u64)> + '_ {
        self.regions.ids().flat_map(move |region| {
            let mut next = self.regions[region].first;
            std::iter::from_fn(move || {
                while next != NIL {
                    let chunk = &self.chunks[next];
                    next = chunk.next;
                    if chunk.state == State::Live {
                        let block = Block {
                            addr: chunk.addr,
                            size: chunk.size,
                        };
                        return Some((block, chunk.requested()));
                    }
                }
                None
            })
        })
    }
}
