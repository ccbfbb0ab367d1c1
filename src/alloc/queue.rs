#![forbid(unsafe_code)]
//! The free chunks of a lane in the order of their times, for [`Engine::settle`](super::Engine::settle).
//!
//! Entries of (time, chunk): those that come in the order of times, as nearly all do, in a row, and the others in
//! a heap. What an allocation or a merge takes away leaves its entry behind, which says nothing any more; where
//! most are such entries they are made anew from the lane's index. So an entry costs O(1) in order and O(log n)
//! otherwise, once, and the queue stays within a small multiple of the lane.

use super::bins::SizeIndex;
use super::chunk::{ChunkId, Chunks, Lane, State};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

/// Entries that a queue may hold beyond twice the chunks of its lane.
const SPARE: usize = 64;

type Entry = (u64, ChunkId);

#[derive(Debug, Default)]
pub(super) struct Queue {
    /// In the order of their times.
    row: VecDeque<Entry>,
    /// Those that came later than their times would have it.
    heap: BinaryHeap<Reverse<Entry>>,
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
        self.row.clear();
        self.heap.clear();
        self.partial = partial;
    }

    /// Adds a chunk that the lane's index holds.
    #[inline]
    pub(super) fn push(&mut self, chunks: &Chunks, index: &SizeIndex, id: ChunkId) {
        if self.partial {
            return;
        }
        let time = chunks[id].freed_at();
        if self.row.len() + self.heap.len() >= 2 * index.len() + SPARE {
            self.refill(chunks, index);
        } else if self.row.back().is_none_or(|&(last, _)| last <= time) {
            if self.row.try_reserve(1).is_ok() {
                self.row.push_back((time, id));
            } else {
                self.clear(true);
            }
        } else if self.heap.try_reserve(1).is_ok() {
            self.heap.push(Reverse((time, id)));
        } else {
            self.clear(true);
        }
    }

    /// Makes it anew from the lane's index.
    pub(super) fn refill(&mut self, chunks: &Chunks, index: &SizeIndex) {
        self.clear(false);
        if self.row.try_reserve(index.len()).is_err() {
            self.partial = true;
            return;
        }
        index.for_each_at_least(chunks, 0, |id| {
            self.row.push_back((chunks[id].freed_at(), id));
        });
        self.row.make_contiguous().sort_unstable();
    }

    /// Takes out the chunk of the lane that was freed first, if that was before `below`.
    pub(super) fn pop(&mut self, chunks: &Chunks, lane: Lane, below: u64) -> Option<ChunkId> {
        while let Some((time, id)) = self.pop_entry(below) {
            let is_there = chunks.get(id).is_some_and(|chunk| {
                chunk.state == State::Free && chunk.tag == lane && chunk.freed_at() == time
            });
            if is_there {
                return Some(id);
            }
        }
        None
    }

    /// Takes out the first entry, if its time is before `below`.
    #[inline]
    fn pop_entry(&mut self, below: u64) -> Option<Entry> {
        let in_row = self.row.front().copied();
        let in_heap = self.heap.peek().map(|&Reverse(entry)| entry);
        let is_heaps = match (in_row, in_heap) {
            (Some((first, _)), Some((time, _))) => time < first,
            (None, Some(_)) => true,
            (_, None) => false,
        };
        let first = if is_heaps { in_heap } else { in_row };
        let first = first.filter(|&(time, _)| time < below)?;
        if is_heaps {
            self.heap.pop();
        } else {
            self.row.pop_front();
        }
        Some(first)
    }

    /// Host bytes that it takes beyond itself.
    pub(super) fn footprint(&self) -> usize {
        (self.row.capacity() + self.heap.capacity()) * size_of::<Entry>()
    }

    /// The entries, in no order.
    pub(super) fn entries(&self) -> impl Iterator<Item = Entry> + '_ {
        let late = self.heap.iter().map(|&Reverse(entry)| entry);
        self.row.iter().copied().chain(late)
    }
}
