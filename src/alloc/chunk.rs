#![forbid(unsafe_code)]
//! Chunks: the pieces that regions are divided into, and the table that holds them.
//!
//! Each region is a list of chunks in address order without gaps. The table hands out small
//! integer ids, so that links take four bytes and a chunk is one cache line.

use super::host_memory::HostMemoryExhausted;
use super::window::Extent;

/// Names a chunk in its [`Chunks`] table.
pub type ChunkId = u32;

/// Names a lane: who may use a free chunk. Free chunks merge within their lane only.
pub type Lane = u16;

/// The lane of an engine that is not separate; in one that is, the lane of the first stream.
pub const HOME: Lane = 0;

/// The lane of memory that no work uses any more, which any request may use.
pub const ANYONE: Lane = 1;

/// No chunk.
pub const NIL: ChunkId = u32::MAX;

/// What a chunk is at the moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum State {
    /// The slot of the table is unused.
    Vacant,
    /// Handed out.
    Live,
    /// Free, with memory behind it; in the free index of its lane.
    Free,
    /// Freed by its owner and not yet in a lane: in no index, used by nobody, never merged.
    Parked,
    /// Addresses without memory; in the index of holes.
    Hole,
    /// A backend call is mapping it; becomes `Free`, or `Hole` again.
    Mapping,
    /// A backend call is unmapping it; becomes `Hole`.
    Unmapping,
}

/// One piece of a region.
#[derive(Clone, Debug)]
#[repr(align(64))]
pub struct Chunk {
    /// First address, a multiple of [`crate::size::GRAIN`].
    pub addr: u64,
    /// Length in bytes, a multiple of [`crate::size::GRAIN`].
    pub size: u64,
    /// Live: the bytes asked for. Free: the time of the free ([`Chunk::freed_at`]).
    word: u64,
    /// The region it lies in.
    pub region: u32,
    /// The chunk before it in its region.
    pub prev: ChunkId,
    /// The chunk after it in its region. In a vacant slot: the next vacant slot.
    pub next: ChunkId,
    /// Links of the index that it is in; meaningless while it is in none.
    pub links: Links,
    /// Rank in the leftist heap of its size (null path length plus one). Apart from the links, so
    /// that a chunk is one cache line.
    pub rank: u8,
    /// What it is at the moment.
    pub state: State,
    /// Free, or marked for a backend call that takes its memory: the lane. Live: who adopted it
    /// ([`super::Engine::adopt`]) or marked it, 0 when it is handed out. Otherwise 0.
    pub tag: u16,
}

/// The place of a chunk in a [`super::bins::SizeIndex`].
#[derive(Clone, Copy, Debug)]
pub struct Links {
    /// Parent, left and right in the heap of its size. The parent of the heap's root is `NIL`.
    pub heap_parent: ChunkId,
    /// Left child in the heap.
    pub heap_left: ChunkId,
    /// Right child in the heap.
    pub heap_right: ChunkId,
    /// Parent in the trie of sizes; used by heap roots only. `NIL`: the root of its bin.
    pub trie_parent: ChunkId,
    /// Children in the trie of sizes; used by heap roots only.
    pub trie_child: [ChunkId; 2],
}

impl Links {
    /// Alone: a heap of one and a trie node without children.
    pub const ALONE: Self = Self {
        heap_parent: NIL,
        heap_left: NIL,
        heap_right: NIL,
        trie_parent: NIL,
        trie_child: [NIL; 2],
    };
}

impl Chunk {
    /// One past its last address.
    pub fn end(&self) -> u64 {
        self.addr + self.size
    }

    /// Its addresses.
    pub fn extent(&self) -> Extent {
        Extent {
            from: self.addr,
            to: self.end(),
        }
    }

    /// The bytes that the caller asked for; of a live chunk.
    pub fn requested(&self) -> u64 {
        debug_assert_eq!(self.state, State::Live);
        self.word
    }

    /// When it was freed, on the clock of its lane; 0 if that does not matter. Of a free chunk, merged
    /// ones being as late as the latest.
    pub fn freed_at(&self) -> u64 {
        debug_assert_eq!(self.state, State::Free);
        self.word
    }

    /// Makes it live.
    pub fn set_live(&mut self, requested: u64) {
        self.state = State::Live;
        self.word = requested;
    }

    /// Makes it free since `freed_at`.
    pub fn set_free(&mut self, freed_at: u64) {
        self.state = State::Free;
        self.word = freed_at;
    }
}

/// All chunks of an engine.
#[derive(Debug, Default)]
pub struct Chunks {
    slots: Vec<Chunk>,
    vacant: Option<ChunkId>,
    vacant_len: usize,
}

impl Chunks {
    /// Makes sure that the next `count` calls of [`Chunks::insert`] need no host memory.
    #[inline]
    pub fn reserve(&mut self, count: usize) -> Result<(), HostMemoryExhausted> {
        if self.vacant_len + (self.slots.capacity() - self.slots.len()) >= count {
            return Ok(());
        }
        self.grow(count)
    }

    // Growing by an eighth keeps the table within the memory promised for a block; the copies that
    // this costs are bounded by nine a chunk, and the system moves large tables by their pages.
    #[cold]
    fn grow(&mut self, count: usize) -> Result<(), HostMemoryExhausted> {
        let step = count.max(64).max(self.slots.len() / 8);
        if self.slots.len() + step >= NIL as usize {
            return Err(HostMemoryExhausted);
        }
        self.slots
            .try_reserve_exact(step)
            .map_err(|_| HostMemoryExhausted)
    }

    /// Puts a chunk into a slot that [`Chunks::reserve`] provided.
    #[inline]
    pub fn insert(&mut self, addr: u64, size: u64, region: u32, state: State) -> ChunkId {
        let chunk = Chunk {
            addr,
            size,
            word: 0,
            region,
            prev: NIL,
            next: NIL,
            links: Links::ALONE,
            rank: 1,
            state,
            tag: HOME,
        };
        if let Some(id) = self.vacant {
            let slot = &mut self.slots[id as usize];
            self.vacant = (slot.next != NIL).then_some(slot.next);
            self.vacant_len -= 1;
            *slot = chunk;
            id
        } else {
            debug_assert!(self.slots.len() < self.slots.capacity());
            self.slots.push(chunk);
            (self.slots.len() - 1) as ChunkId
        }
    }

    /// Gives a slot back.
    #[inline]
    pub fn remove(&mut self, id: ChunkId) {
        let next = self.vacant.unwrap_or(NIL);
        let slot = &mut self.slots[id as usize];
        slot.state = State::Vacant;
        slot.next = next;
        self.vacant = Some(id);
        self.vacant_len += 1;
    }

    /// Chunks in use.
    pub fn len(&self) -> usize {
        self.slots.len() - self.vacant_len
    }

    /// Whether no chunk is in use.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Host bytes that the table takes.
    pub fn footprint(&self) -> usize {
        self.slots.capacity() * size_of::<Chunk>()
    }

    /// The chunk, or `None` for an id that names none; for checks.
    pub fn get(&self, id: ChunkId) -> Option<&Chunk> {
        self.slots
            .get(id as usize)
            .filter(|chunk| chunk.state != State::Vacant)
    }
}

impl std::ops::Index<ChunkId> for Chunks {
    type Output = Chunk;
    #[inline]
    fn index(&self, id: ChunkId) -> &Chunk {
        &self.slots[id as usize]
    }
}

impl std::ops::IndexMut<ChunkId> for Chunks {
    #[inline]
    fn index_mut(&mut self, id: ChunkId) -> &mut Chunk {
        &mut self.slots[id as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chunk_is_one_cache_line() {
        assert_eq!(size_of::<Chunk>(), 64);
    }

    #[test]
    fn slots_are_used_again() {
        let mut chunks = Chunks::default();
        chunks.reserve(3).unwrap();
        let a = chunks.insert(0, 256, 0, State::Free);
        let b = chunks.insert(256, 256, 0, State::Free);
        assert_eq!(chunks.len(), 2);
        chunks.remove(a);
        chunks.remove(b);
        assert!(chunks.is_empty());
        assert!(chunks.get(a).is_none());
        assert_eq!(chunks.insert(512, 256, 0, State::Live), b);
        assert_eq!(chunks.insert(768, 256, 0, State::Live), a);
        assert_eq!(chunks[b].end(), 768);
    }
}
