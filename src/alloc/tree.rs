#![forbid(unsafe_code)]
//! Walks over the trees that lie in chunks, by their links to parents: they need no memory.

use super::chunk::{ChunkId, Chunks, NIL};

/// A node's parent and children.
pub(super) type TreeLinks = (ChunkId, [ChunkId; 2]);

pub(super) fn heap_links(chunks: &Chunks) -> impl Fn(ChunkId) -> TreeLinks + '_ {
    |id| {
        let links = &chunks[id].links;
        (links.heap_parent, [links.heap_left, links.heap_right])
    }
}

pub(super) fn trie_links(chunks: &Chunks) -> impl Fn(ChunkId) -> TreeLinks + '_ {
    |id| (chunks[id].links.trie_parent, chunks[id].links.trie_child)
}

/// The node after `at` in a walk over the tree under `root` that comes to parents first; `NIL` at
/// its end. Without `enter` the walk leaves out what is below `at`.
pub(super) fn next_in_tree(
    root: ChunkId,
    mut at: ChunkId,
    enter: bool,
    links: impl Fn(ChunkId) -> TreeLinks,
) -> ChunkId {
    if enter {
        let (_, children) = links(at);
        if let Some(child) = children.into_iter().find(|&child| child != NIL) {
            return child;
        }
    }
    while at != root {
        let (parent, _) = links(at);
        let (_, [first, second]) = links(parent);
        if first == at && second != NIL {
            return second;
        }
        at = parent;
    }
    NIL
}
