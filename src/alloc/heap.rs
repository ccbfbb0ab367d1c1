#![forbid(unsafe_code)]
//! Leftist heaps (Crane 1972) of chunks by address: in each node the left child's rank is at least
//! the right's, so the right spine of n chunks is no longer than log2(n + 1), and joining two heaps
//! walks right spines only.

use super::chunk::{ChunkId, Chunks, Links, NIL};

#[inline]
pub(super) fn rank(chunks: &Chunks, id: ChunkId) -> u8 {
    if id == NIL { 0 } else { chunks[id].rank }
}

/// Joins two heaps; gives back the root, whose parent is left as it was.
pub(super) fn meld(chunks: &mut Chunks, a: ChunkId, b: ChunkId) -> ChunkId {
    if a == NIL {
        return b;
    }
    if b == NIL {
        return a;
    }
    let (top, mut other) = if chunks[a].addr < chunks[b].addr {
        (a, b)
    } else {
        (b, a)
    };
    // Merge the right spines, each no longer than its rank; then mend the ranks from the bottom.
    let mut at = top;
    loop {
        let right = chunks[at].links.heap_right;
        if right == NIL {
            chunks[at].links.heap_right = other;
            chunks[other].links.heap_parent = at;
            break;
        }
        if chunks[right].addr < chunks[other].addr {
            at = right;
        } else {
            chunks[at].links.heap_right = other;
            chunks[other].links.heap_parent = at;
            at = other;
            other = right;
        }
    }
    loop {
        mend_rank(chunks, at);
        if at == top {
            return top;
        }
        at = chunks[at].links.heap_parent;
    }
}

/// Puts the child of higher rank on the left; says whether the rank changed.
#[inline]
fn mend_rank(chunks: &mut Chunks, id: ChunkId) -> bool {
    let Links {
        heap_left,
        heap_right,
        ..
    } = chunks[id].links;
    let (l, r) = (rank(chunks, heap_left), rank(chunks, heap_right));
    let chunk = &mut chunks[id];
    if l < r {
        chunk.links.heap_left = heap_right;
        chunk.links.heap_right = heap_left;
    }
    let before = std::mem::replace(&mut chunk.rank, l.min(r) + 1);
    chunk.rank != before
}

/// Mends ranks from `id` upward for as long as they change.
pub(super) fn restore_ranks(chunks: &mut Chunks, mut id: ChunkId) {
    while id != NIL && mend_rank(chunks, id) {
        id = chunks[id].links.heap_parent;
    }
}
