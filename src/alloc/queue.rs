#![forbid(unsafe_code)]
//! The free chunks of a lane in the order of their times, for [`Engine::settle`](super::Engine::settle).
//!
//! A heap of (time, chunk). What an allocation or a merge takes away leaves its entry behind, which
//! says nothing any more; where most of the heap is such entries it is made anew from the lane's index.
//! So an entry costs O(log n) once, whatever the order of times, and the heap stays within a small
//! multiple of the lane.

use super::bins::SizeIndex;
use super::chunk::{ChunkId, Chunks, Lane, State};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Entries that a queue may hold beyond twice the chunks of its lane.
const SPARE: usize = 64;

#[derive(Debug, Default)]
pub(super) struct Queue {
    heap: BinaryHeap<Reverse<(u64, ChunkId)>>,
    /// Chunks of the lane may be missing: the queue is empty, and its lane is to be walked.
    partial: bool,
}

impl Queue {
    /// Whether it names every chunk of its lane.
    pub(super) fn is_complete(&self) -> bool {
        !self.partial
    }

    /// Forgets all entries; `partial`: though the lane may have chunks.
    pub(super) fn clear(&mut self, partial: bool) {
        self.heap.clear();
        self.partial = partial;
    }

    /// Adds a chunk that the lane's index holds.
    #[inline]
    pub(super) fn push(&mut self, chunks: &Chunks, index: &SizeIndex, id: ChunkId) {
        if self.partial {
            return;
        }
        if self.heap.len() >= 2 * index.len() + SPARE {
            self.refill(chunks, index);
        } else if self.heap.try_reserve(1).is_ok() {
            self.heap.push(Reverse((chunks[id].freed_at(), id)));
        } else {
            self.clear(true);
        }
    }

    /// Makes it anew from the lane's index.
    pub(super) fn refill(&mut self, chunks: &Chunks, index: &SizeIndex) {
        self.heap.clear();
        self.partial = self.heap.try_reserve(index.len()).is_err();
        if !self.partial {
            index.for_each_at_least(chunks, 0, |id| {
                self.heap.push(Reverse((chunks[id].freed_at(), id)));
            });
        }
    }

    /// Takes out the chunk of the lane that was freed first, if that was before `below`.
    pub(super) fn pop(&mut self, chunks: &Chunks, lane: Lane, below: u64) -> Option<ChunkId> {
        while let Some(&Reverse((time, id))) = self.heap.peek() {
            if time >= below {
                break;
            }
            self.heap.pop();
            let is_there = chunks.get(id).is_some_and(|chunk| {
                chunk.state == State::Free && chunk.tag == lane && chunk.freed_at() == time
            });
            if is_there {
                return Some(id);
            }
        }
        None
    }

    /// Host bytes that it takes beyond itself.
    pub(super) fn footprint(&self) -> usize {
        self.heap.capacity() * size_of::<Reverse<(u64, ChunkId)>>()
    }

    /// The entries, in no order.
    pub(super) fn entries(&self) -> impl Iterator<Item = (u64, ChunkId)> + '_ {
        self.heap.iter().map(|&Reverse(entry)| entry)
    }
}
