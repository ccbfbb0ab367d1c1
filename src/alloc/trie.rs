#![forbid(unsafe_code)]
//! Searches in a bin's trie of sizes.
//!
//! Below a node, the next open bit of the size says on which side: so all sizes to the left are
//! smaller than all to the right, and the node itself may be anything that shares the bits above.

use super::chunk::{ChunkId, Chunks, NIL};
use crate::size::GRAIN_BITS;

/// The node of the smallest size in a trie.
#[inline]
pub(super) fn smallest(chunks: &Chunks, root: ChunkId) -> ChunkId {
    smallest_or(chunks, root, NIL, u64::MAX)
}

/// The node of the smallest size below `best_size` in a trie, or `best`. The smallest size is on
/// the leftmost path, at any depth.
#[inline]
fn smallest_or(chunks: &Chunks, mut at: ChunkId, mut best: ChunkId, mut best_size: u64) -> ChunkId {
    while at != NIL {
        let node = &chunks[at];
        if node.size < best_size {
            best = at;
            best_size = node.size;
        }
        let child = node.links.trie_child;
        at = if child[0] != NIL { child[0] } else { child[1] };
    }
    best
}

/// The node of the smallest size that is at least `size` in a trie, or `NIL`.
#[inline]
pub(super) fn at_least(chunks: &Chunks, root: ChunkId, size: u64, mut open: u32) -> ChunkId {
    let grains = size >> GRAIN_BITS;
    let (mut best, mut best_size) = (NIL, u64::MAX);
    // The deepest subtree to the right of the path holds the next larger sizes.
    let mut larger = NIL;
    let mut at = root;
    while at != NIL {
        let node = &chunks[at];
        if node.size >= size && node.size < best_size {
            best = at;
            best_size = node.size;
            if best_size == size {
                return best;
            }
        }
        if open == 0 {
            break;
        }
        open -= 1;
        let child = node.links.trie_child;
        if grains >> open & 1 == 1 {
            at = child[1];
        } else {
            if child[1] != NIL {
                larger = child[1];
            }
            at = child[0];
        }
    }
    smallest_or(chunks, larger, best, best_size)
}
