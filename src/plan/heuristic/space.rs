#![forbid(unsafe_code)]
//! One memory while a plan is made: what lies where, by address, and the holes by size.

use std::collections::BTreeSet;

/// No block, or no buffer.
pub(super) const NONE: u32 = u32::MAX;

/// A part of the memory: a resident, or a hole.
#[derive(Clone, Copy, Debug)]
pub(super) struct Block {
    pub(super) offset: u64,
    pub(super) size: u64,
    /// The block before it by address.
    pub(super) prev: u32,
    /// The block after it by address.
    pub(super) next: u32,
    /// The buffer, or [`NONE`]: a hole.
    pub(super) buffer: u32,
}

/// Where in a hole a buffer is put.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    Low,
    High,
}

/// A memory, cut into blocks. No block is empty, and no two holes are neighbours.
#[derive(Clone, Debug)]
pub(super) struct Space {
    blocks: Vec<Block>,
    /// Entries of `blocks` that are none.
    unused: Vec<u32>,
    /// The holes by size, then offset; with their block.
    holes: BTreeSet<(u64, u64, u32)>,
    /// The block at offset 0, if the memory has any bytes.
    first: u32,
}

impl Space {
    /// An empty memory of `room` bytes.
    pub(super) fn new(room: u64) -> Self {
        let mut space = Self {
            blocks: Vec::new(),
            unused: Vec::new(),
            holes: BTreeSet::new(),
            first: NONE,
        };
        if room > 0 {
            space.first = space.add(Block {
                offset: 0,
                size: room,
                prev: NONE,
                next: NONE,
                buffer: NONE,
            });
            space.holes.insert((room, 0, space.first));
        }
        space
    }

    #[inline]
    pub(super) fn block(&self, id: u32) -> &Block {
        &self.blocks[id as usize]
    }

    /// The first block by address, or [`NONE`].
    pub(super) fn first(&self) -> u32 {
        self.first
    }

    /// Blocks.
    pub(super) fn len(&self) -> usize {
        self.blocks.len() - self.unused.len()
    }

    /// The smallest hole of at least `size` bytes, and of these the lowest.
    pub(super) fn best_fit(&self, size: u64) -> Option<u32> {
        let mut fitting = self.holes.range((size, 0, 0)..);
        fitting.next().map(|&(_, _, id)| id)
    }

    /// Puts a buffer of `size` bytes, not 0, at one end of a hole that it fits in, and returns its
    /// block.
    pub(super) fn take(&mut self, hole: u32, size: u64, buffer: u32, end: End) -> u32 {
        let Block {
            offset,
            size: whole,
            next,
            ..
        } = *self.block(hole);
        self.holes.remove(&(whole, offset, hole));
        let rest = whole - size;
        if rest == 0 {
            self.blocks[hole as usize].buffer = buffer;
            return hole;
        }
        // The hole's block becomes the low part, and another one the high part.
        let (low, high) = match end {
            End::Low => (buffer, NONE),
            End::High => (NONE, buffer),
        };
        let low_size = if low == NONE { rest } else { size };
        let part = self.add(Block {
            offset: offset + low_size,
            size: whole - low_size,
            prev: hole,
            next,
            buffer: high,
        });
        if next != NONE {
            self.blocks[next as usize].prev = part;
        }
        let block = &mut self.blocks[hole as usize];
        block.next = part;
        block.size = low_size;
        block.buffer = low;
        match end {
            End::Low => {
                self.holes.insert((rest, offset + size, part));
                hole
            }
            End::High => {
                self.holes.insert((rest, offset, hole));
                part
            }
        }
    }

    /// Makes a hole of a resident's block, and returns the hole that it is part of then.
    pub(super) fn release(&mut self, id: u32) -> u32 {
        let mut id = id;
        self.blocks[id as usize].buffer = NONE;
        let Block { prev, next, .. } = *self.block(id);
        if next != NONE && self.block(next).buffer == NONE {
            self.forget(next);
            self.join(id, next);
        }
        if prev != NONE && self.block(prev).buffer == NONE {
            self.forget(prev);
            self.join(prev, id);
            id = prev;
        }
        let Block { offset, size, .. } = *self.block(id);
        self.holes.insert((size, offset, id));
        id
    }

    /// Takes a hole out of the index.
    fn forget(&mut self, hole: u32) {
        let Block { offset, size, .. } = *self.block(hole);
        self.holes.remove(&(size, offset, hole));
    }

    /// Makes one block of a block and the one after it.
    fn join(&mut self, low: u32, high: u32) {
        let Block { size, next, .. } = *self.block(high);
        let block = &mut self.blocks[low as usize];
        block.size += size;
        block.next = next;
        if next != NONE {
            self.blocks[next as usize].prev = low;
        }
        self.unused.push(high);
    }

    fn add(&mut self, block: Block) -> u32 {
        match self.unused.pop() {
            Some(id) => {
                self.blocks[id as usize] = block;
                id
            }
            None => {
                self.blocks.push(block);
                (self.blocks.len() - 1) as u32
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{End, NONE, Space};

    #[test]
    fn blocks_are_what_a_map_of_bytes_says() {
        let room = 60;
        let mut space = Space::new(room);
        let mut bytes = vec![NONE; room as usize];
        let mut live: Vec<(u32, u32)> = Vec::new();
        let mut state = 3u64;
        let mut random = move |bound: u64| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            (state >> 33) % bound
        };
        for buffer in 0..5_000 {
            let size = 1 + random(15);
            match space.best_fit(size) {
                Some(hole) if random(3) > 0 => {
                    let end = if random(2) > 0 { End::Low } else { End::High };
                    let block = space.take(hole, size, buffer, end);
                    let start = space.block(block).offset as usize;
                    let taken = &mut bytes[start..start + size as usize];
                    assert!(taken.iter().all(|&owner| owner == NONE));
                    taken.fill(buffer);
                    live.push((buffer, block));
                }
                _ if !live.is_empty() => {
                    let at = random(live.len() as u64) as usize;
                    let (buffer, block) = live.swap_remove(at);
                    space.release(block);
                    for owner in bytes.iter_mut().filter(|owner| **owner == buffer) {
                        *owner = NONE;
                    }
                }
                _ => {}
            }
            let mut id = space.first();
            let (mut at, mut blocks, mut before) = (0, 0, NONE);
            while id != NONE {
                let block = space.block(id);
                assert_eq!((block.offset, block.prev), (at as u64, before));
                let end = at + block.size as usize;
                assert!(bytes[at..end].iter().all(|&owner| owner == block.buffer));
                if block.buffer == NONE {
                    assert!(bytes.get(end).is_none_or(|&owner| owner != NONE));
                    assert!(space.best_fit(block.size).is_some());
                }
                (at, blocks, before, id) = (end, blocks + 1, id, block.next);
            }
            assert_eq!((at as u64, blocks), (room, space.len()));
        }
    }
}
