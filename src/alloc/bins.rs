#![forbid(unsafe_code)]
//! The size index: free chunks in the order (size, address), searched for the best fit.
//!
//! Sizes fall into bins: one for each multiple of 256 bytes below 64 KiB, then 32 for each power of
//! two. A bitmap of two levels says which bins hold anything. Inside a bin each distinct size is one node of a
//! bitwise digital trie on the size's low bits, as Doug Lea's malloc (2.8) has them. The chunks of
//! one size form a heap whose root is the trie's node: where ties go to the lowest address, a
//! leftist heap (Crane 1972) by address; where any chunk of the size will do, a list, which is a
//! heap without right children.
//!
//! A search is a walk down one trie. Every operation is O(log n) in the worst case, none allocates,
//! and no chain is walked.

use super::chunk::{ChunkId, Chunks, Links, NIL};
use super::heap::{meld, rank, restore_ranks};
use super::host_memory::{HostMemoryExhausted, TryPush};
use super::tree::{heap_links, next_in_tree, trie_links};
use super::trie::{at_least, smallest};
use crate::size::GRAIN_BITS;

/// Below this many grains each size has a bin of its own.
const EXACT: u64 = 1 << 8;
/// Binary logarithm of the bins for each power of two above.
const FRACTION_BITS: u32 = 5;
/// Bins for every size up to 2^64 - 1.
const BINS: usize = EXACT as usize + ((64 - GRAIN_BITS - 8) << FRACTION_BITS) as usize;
const WORDS: usize = BINS / 64;

/// The bin of a size, and how many of the low bits of the size (in grains) the bin leaves open.
#[inline]
fn bin_of(size: u64) -> (usize, u32) {
    let grains = size >> GRAIN_BITS;
    if grains < EXACT {
        return (grains as usize, 0);
    }
    let exponent = 63 - grains.leading_zeros();
    let open = exponent - FRACTION_BITS;
    let fraction = (grains >> open) as usize & ((1 << FRACTION_BITS) - 1);
    let octave = (exponent - 8) as usize;
    (EXACT as usize + (octave << FRACTION_BITS) + fraction, open)
}

/// Which of several chunks of one size is the best fit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ties {
    /// The one with the lowest address.
    LowestAddress,
    /// Any; the cheapest to find.
    Any,
}

/// Chunks ordered by size, and by address where ties go to the lowest.
///
/// What every call changes lies in one cache line: the compiler changes neighbours together, which
/// is slow across a line's end.
#[derive(Debug)]
#[repr(C, align(64))]
pub struct SizeIndex {
    bins: Box<[ChunkId; BINS]>,
    len: usize,
    bytes: u64,
    /// A bit for each word of `occupied`: whether it is not zero.
    occupied_words: u32,
    ties: Ties,
    /// A bit for each bin: whether it holds anything.
    occupied: [u64; WORDS],
}

impl SizeIndex {
    /// An empty index.
    pub fn new(ties: Ties) -> Result<Self, HostMemoryExhausted> {
        let mut bins = Vec::new();
        bins.try_reserve_exact(BINS)
            .map_err(|_| HostMemoryExhausted)?;
        bins.resize(BINS, NIL);
        let bins = bins.into_boxed_slice().try_into();
        Ok(Self {
            ties,
            bins: bins.map_err(|_| HostMemoryExhausted)?,
            occupied: [0; WORDS],
            occupied_words: 0,
            len: 0,
            bytes: 0,
        })
    }

    /// Chunks in the index.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether the index holds nothing.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The sum of their sizes.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Host bytes that it takes beyond itself.
    pub fn footprint(&self) -> usize {
        size_of_val(&*self.bins)
    }

    /// Adds a chunk that is in no index.
    #[inline]
    pub fn insert(&mut self, chunks: &mut Chunks, id: ChunkId) {
        let size = chunks[id].size;
        self.len += 1;
        self.bytes += size;
        let chunk = &mut chunks[id];
        chunk.links = Links::ALONE;
        chunk.rank = 1;
        let (bin, mut open) = bin_of(size);
        let mut at = self.bins[bin];
        if at == NIL {
            self.bins[bin] = id;
            self.occupied[bin / 64] |= 1 << (bin % 64);
            self.occupied_words |= 1 << (bin / 64);
            return;
        }
        let grains = size >> GRAIN_BITS;
        loop {
            let node = &mut chunks[at];
            if node.size == size {
                break;
            }
            // Two sizes of a bin differ in an open bit, so one is left while they differ.
            open -= 1;
            let side = (grains >> open & 1) as usize;
            let child = node.links.trie_child[side];
            if child == NIL {
                node.links.trie_child[side] = id;
                chunks[id].links.trie_parent = at;
                return;
            }
            at = child;
        }
        if self.ties == Ties::Any {
            let after = chunks[at].links.heap_left;
            chunks[at].links.heap_left = id;
            let links = &mut chunks[id].links;
            links.heap_parent = at;
            links.heap_left = after;
            if after != NIL {
                chunks[after].links.heap_parent = id;
            }
        } else if chunks[id].addr < chunks[at].addr {
            self.replace_trie_node(chunks, bin, at, id);
            chunks[id].links.heap_left = at;
            chunks[at].links.heap_parent = id;
        } else {
            meld(chunks, at, id);
        }
    }

    /// Takes out a chunk that is in this index.
    #[inline]
    pub fn remove(&mut self, chunks: &mut Chunks, id: ChunkId) {
        let links = chunks[id].links;
        let size = chunks[id].size;
        self.len -= 1;
        self.bytes -= size;
        let rest = if links.heap_right == NIL {
            links.heap_left
        } else {
            meld(chunks, links.heap_left, links.heap_right)
        };
        if links.heap_parent != NIL {
            // Inside the heap: the rest takes its place.
            let parent = links.heap_parent;
            if rest != NIL {
                chunks[rest].links.heap_parent = parent;
            }
            let up = &mut chunks[parent].links;
            if up.heap_left == id {
                up.heap_left = rest;
            } else {
                up.heap_right = rest;
            }
            if self.ties == Ties::LowestAddress {
                restore_ranks(chunks, parent);
            }
            return;
        }
        let (bin, _) = bin_of(size);
        if rest != NIL {
            chunks[rest].links.heap_parent = NIL;
            self.replace_trie_node(chunks, bin, id, rest);
            return;
        }
        // The last chunk of its size: a leaf below it takes its place in the trie.
        let mut leaf = id;
        loop {
            let child = chunks[leaf].links.trie_child;
            let down = if child[1] != NIL { child[1] } else { child[0] };
            if down == NIL {
                break;
            }
            leaf = down;
        }
        let parent = chunks[leaf].links.trie_parent;
        if parent == NIL {
            self.bins[bin] = NIL;
            self.occupied[bin / 64] &= !(1 << (bin % 64));
            if self.occupied[bin / 64] == 0 {
                self.occupied_words &= !(1 << (bin / 64));
            }
            return;
        }
        let child = &mut chunks[parent].links.trie_child;
        child[usize::from(child[1] == leaf)] = NIL;
        if leaf != id {
            self.replace_trie_node(chunks, bin, id, leaf);
        }
    }

    /// Puts `new` where `old` is in the trie of `bin`.
    fn replace_trie_node(&mut self, chunks: &mut Chunks, bin: usize, old: ChunkId, new: ChunkId) {
        let Links {
            trie_parent,
            trie_child,
            ..
        } = chunks[old].links;
        let links = &mut chunks[new].links;
        links.trie_parent = trie_parent;
        links.trie_child = trie_child;
        for child in trie_child {
            if child != NIL {
                chunks[child].links.trie_parent = new;
            }
        }
        if trie_parent == NIL {
            self.bins[bin] = new;
        } else {
            let child = &mut chunks[trie_parent].links.trie_child;
            child[usize::from(child[1] == old)] = new;
        }
    }

    /// The best fit: of the smallest size that is at least `size`, the chunk that wins the tie.
    #[inline]
    pub fn best_fit(&self, chunks: &Chunks, size: u64) -> Option<ChunkId> {
        let (bin, open) = bin_of(size);
        let root = self.bins[bin];
        if root != NIL {
            let found = at_least(chunks, root, size, open);
            if found != NIL {
                return Some(found);
            }
        }
        let above = self.next_bin(bin + 1)?;
        Some(smallest(chunks, self.bins[above]))
    }

    /// The best fit among the chunks that `usable` accepts. Linear in those that it refuses.
    pub fn best_fit_where(
        &self,
        chunks: &Chunks,
        mut size: u64,
        mut usable: impl FnMut(ChunkId) -> bool,
    ) -> Option<ChunkId> {
        loop {
            let root = self.best_fit(chunks, size)?;
            let (mut at, mut best) = (root, NIL);
            while at != NIL {
                // A heap's children lie above their parent: nothing below a worse one is better.
                let worse =
                    best != NIL && (self.ties == Ties::Any || chunks[at].addr > chunks[best].addr);
                let found = !worse && usable(at);
                if found {
                    best = at;
                }
                at = next_in_tree(root, at, !worse && !found, heap_links(chunks));
            }
            if best != NIL {
                return Some(best);
            }
            size = chunks[root].size.checked_add(1 << GRAIN_BITS)?;
        }
    }

    /// The largest size; 0 when empty.
    pub fn largest(&self, chunks: &Chunks) -> u64 {
        let Some(bin) = self.last_bin() else { return 0 };
        let mut largest = 0;
        let mut at = self.bins[bin];
        while at != NIL {
            let node = &chunks[at];
            largest = largest.max(node.size);
            let child = node.links.trie_child;
            at = if child[1] != NIL { child[1] } else { child[0] };
        }
        largest
    }

    /// Visits all chunks of at least `size` bytes, in no particular order.
    pub fn for_each_at_least(&self, chunks: &Chunks, size: u64, mut visit: impl FnMut(ChunkId)) {
        let mut bin = bin_of(size).0;
        while let Some(found) = self.next_bin(bin) {
            let root = self.bins[found];
            let mut node = root;
            while node != NIL {
                let mut at = if chunks[node].size >= size { node } else { NIL };
                while at != NIL {
                    visit(at);
                    at = next_in_tree(node, at, true, heap_links(chunks));
                }
                node = next_in_tree(root, node, true, trie_links(chunks));
            }
            bin = found + 1;
        }
    }

    /// All chunks of at least `size` bytes that `wanted` accepts, in no particular order.
    pub fn ids_at_least(
        &self,
        chunks: &Chunks,
        size: u64,
        wanted: impl Fn(ChunkId) -> bool,
    ) -> Result<Vec<ChunkId>, HostMemoryExhausted> {
        let mut found = Vec::new();
        let mut outcome = Ok(());
        self.for_each_at_least(chunks, size, |id| {
            if outcome.is_ok() && wanted(id) {
                outcome = found.try_push(id);
            }
        });
        outcome.map(|()| found)
    }

    #[inline]
    fn next_bin(&self, from: usize) -> Option<usize> {
        let word = from / 64;
        if word >= WORDS {
            return None;
        }
        let bits = self.occupied[word] & (u64::MAX << (from % 64));
        if bits != 0 {
            return Some(word * 64 + bits.trailing_zeros() as usize);
        }
        let words = self.occupied_words & (u32::MAX << word) & !(1 << word);
        if words == 0 {
            return None;
        }
        let word = words.trailing_zeros() as usize;
        Some(word * 64 + self.occupied[word].trailing_zeros() as usize)
    }

    fn last_bin(&self) -> Option<usize> {
        let word = self.occupied_words.checked_ilog2()? as usize;
        Some(word * 64 + 63 - self.occupied[word].leading_zeros() as usize)
    }

    /// Walks everything. Gives back the number of chunks and bytes seen, or what is wrong.
    pub fn check(&self, chunks: &Chunks) -> Result<(usize, u64), String> {
        let (mut count, mut bytes) = (0, 0);
        for word in 0..WORDS {
            if (self.occupied[word] != 0) != (self.occupied_words >> word & 1 == 1) {
                return Err(format!(
                    "bins {}: their bit does not say whether they are empty",
                    word * 64
                ));
            }
        }
        for bin in 0..BINS {
            let root = self.bins[bin];
            if (root != NIL) != (self.occupied[bin / 64] >> (bin % 64) & 1 == 1) {
                return Err(format!(
                    "bin {bin}: its bit does not say whether it is empty"
                ));
            }
            let mut node = root;
            while node != NIL {
                let chunk = chunks
                    .get(node)
                    .ok_or_else(|| format!("bin {bin}: chunk {node} does not exist"))?;
                let (own_bin, open) = bin_of(chunk.size);
                if own_bin != bin {
                    return Err(format!(
                        "chunk {node} of {} bytes is in bin {bin}",
                        chunk.size
                    ));
                }
                let parent = chunk.links.trie_parent;
                let (mut depth, mut up) = (0, node);
                while up != root && up != NIL && depth <= open {
                    depth += 1;
                    up = chunks[up].links.trie_parent;
                }
                if chunk.links.heap_parent != NIL || up != root || (node == root) != (parent == NIL)
                {
                    return Err(format!(
                        "chunk {node}: broken link to its parent in bin {bin}"
                    ));
                }
                if depth > open {
                    return Err(format!("bin {bin}: the trie is deeper than its bits"));
                }
                if parent != NIL {
                    let (a, b) = (chunk.size >> GRAIN_BITS, chunks[parent].size >> GRAIN_BITS);
                    let side = usize::from(chunks[parent].links.trie_child[1] == node);
                    let bit = open - depth;
                    if a == b || a >> (bit + 1) != b >> (bit + 1) || (a >> bit & 1) as usize != side
                    {
                        return Err(format!("chunk {node}: on the wrong path of bin {bin}"));
                    }
                }
                for child in chunk.links.trie_child {
                    if child != NIL
                        && chunks
                            .get(child)
                            .is_none_or(|below| below.links.trie_parent != node)
                    {
                        return Err(format!(
                            "chunk {node}: its child {child} in bin {bin} does not know it"
                        ));
                    }
                }
                let (heap_count, heap_bytes) = self.check_heap(chunks, node)?;
                count += heap_count;
                bytes += heap_bytes;
                node = next_in_tree(root, node, true, trie_links(chunks));
            }
        }
        if (count, bytes) != (self.len, self.bytes) {
            return Err(format!(
                "an index counts {} chunks of {} bytes and holds {count} of {bytes}",
                self.len, self.bytes
            ));
        }
        Ok((count, bytes))
    }

    fn check_heap(&self, chunks: &Chunks, root: ChunkId) -> Result<(usize, u64), String> {
        let (mut count, mut bytes) = (0, 0);
        let mut id = root;
        while id != NIL {
            let chunk = &chunks[id];
            count += 1;
            bytes += chunk.size;
            let Links {
                heap_left: left,
                heap_right: right,
                ..
            } = chunk.links;
            for child in [left, right] {
                if child == NIL {
                    continue;
                }
                let below = chunks
                    .get(child)
                    .ok_or_else(|| format!("chunk {id}: its heap names chunk {child}"))?;
                if below.links.heap_parent != id || below.size != chunk.size {
                    return Err(format!("chunk {child}: in the wrong heap"));
                }
                if self.ties == Ties::LowestAddress && below.addr <= chunk.addr {
                    return Err(format!("chunk {child}: below its parent in the heap"));
                }
            }
            let (l, r) = (rank(chunks, left), rank(chunks, right));
            let holds = match self.ties {
                Ties::LowestAddress => l >= r && chunk.rank == r + 1,
                Ties::Any => right == NIL,
            };
            if !holds {
                return Err(format!("chunk {id}: wrong rank"));
            }
            id = next_in_tree(root, id, true, heap_links(chunks));
        }
        Ok((count, bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::super::chunk::State;
    use super::*;
    use crate::size::GRAIN;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    #[test]
    fn bins_are_contiguous_and_ordered() {
        let mut last = 0;
        for grains in 1..100_000u64 {
            let (bin, open) = bin_of(grains * GRAIN);
            assert!(bin == last || bin == last + 1, "{grains} falls into {bin}");
            assert!(grains < EXACT || (32..64).contains(&(grains >> open)));
            last = bin;
        }
        assert_eq!(bin_of(u64::MAX / GRAIN * GRAIN).0, BINS - 1);
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: if cfg!(miri) { 4 } else { 256 }, ..ProptestConfig::default() })]

        /// Inserts, removals and searches against an ordered set of (size, address).
        #[test]
        fn finds_what_an_ordered_set_finds(
            steps in prop::collection::vec((0u8..4, 1u64..5000, any::<prop::sample::Index>()), 1..200),
            coarse in 0u32..8,
            by_address: bool,
        ) {
            let mut chunks = Chunks::default();
            let mut index = SizeIndex::new(if by_address { Ties::LowestAddress } else { Ties::Any }).unwrap();
            let mut model = BTreeSet::new();
            let mut next_addr = 0;
            for (kind, grains, pick) in steps {
                // Coarse sizes make many chunks of one size.
                let size = ((grains >> coarse) + 1) * GRAIN;
                if kind < 2 || model.is_empty() {
                    chunks.reserve(1).unwrap();
                    next_addr += GRAIN;
                    // Every other address descends, so that heaps grow at both ends.
                    let addr = if kind == 0 { next_addr } else { (1 << 40) - next_addr };
                    let id = chunks.insert(addr, size, 0, State::Free);
                    index.insert(&mut chunks, id);
                    model.insert((size, addr, id));
                } else if kind == 2 {
                    let key = *model.iter().nth(pick.index(model.len())).unwrap();
                    model.remove(&key);
                    index.remove(&mut chunks, key.2);
                    chunks.remove(key.2);
                }
                prop_assert_eq!(index.check(&chunks).map(|_| ()), Ok(()));
                let even = |id: ChunkId| chunks[id].addr / GRAIN % 2 == 0;
                let found = [index.best_fit(&chunks, size), index.best_fit_where(&chunks, size, even)];
                let best = [
                    model.range((size, 0, 0)..).next().map(|key| key.2),
                    model.range((size, 0, 0)..).map(|key| key.2).find(|&id| even(id)),
                ];
                if by_address {
                    prop_assert_eq!(found, best);
                } else {
                    let sizes = |ids: [Option<ChunkId>; 2]| ids.map(|id| id.map(|id| chunks[id].size));
                    prop_assert_eq!(sizes(found), sizes(best));
                    prop_assert!(found[1].is_none_or(even));
                }
                prop_assert_eq!(index.largest(&chunks), model.last().map_or(0, |key| key.0));
                let mut at_least = index.ids_at_least(&chunks, size, |_| true).unwrap();
                at_least.sort_unstable();
                let mut expected: Vec<_> = model.range((size, 0, 0)..).map(|key| key.2).collect();
                expected.sort_unstable();
                prop_assert_eq!(at_least, expected);
            }
        }
    }
}
