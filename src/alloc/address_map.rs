#![forbid(unsafe_code)]
//! From the address of a live block to its chunk.
//!
//! A hash table of buckets, each one cache line with a byte of the hash for each of its slots, so
//! that a search compares them all at once (as in F14, Bronson and Shi 2019, here in plain integer
//! arithmetic). A bucket that is full passes what follows on to the next one, and counts how many it
//! passed, so that a search knows where to stop and nothing is left behind by a removal. The key
//! itself is in the chunk, which the caller is going to read anyway.

use super::chunk::{ChunkId, NIL};
use super::host_memory::HostMemoryExhausted;
use crate::size::GRAIN_BITS;

const SLOTS: usize = 12;
/// The table grows when it is fuller than this, in slots a bucket.
const FULL: usize = 9;
const SMALLEST: usize = 8;
const LOW_BITS: u64 = 0x0101_0101_0101_0101;
const HIGH_BITS: u64 = 0x8080_8080_8080_8080;

/// One cache line of slots.
#[derive(Clone, Debug)]
#[repr(align(64))]
struct Bucket {
    /// A byte for each slot, the first in the lowest: 0 for an empty slot, otherwise with its
    /// high bit set.
    tags: u64,
    more_tags: u32,
    /// Entries that found this bucket full and lie in later ones.
    passed: u32,
    ids: [ChunkId; SLOTS],
}

const EMPTY: Bucket = Bucket {
    tags: 0,
    more_tags: 0,
    passed: 0,
    ids: [NIL; SLOTS],
};

impl Bucket {
    /// A mask with the high bit of each byte of `word` that equals `tag`; above the lowest one
    /// there may be others (Mycroft 1987).
    #[inline]
    fn equal(word: u64, tag: u8) -> u64 {
        let difference = word ^ (LOW_BITS * u64::from(tag));
        difference.wrapping_sub(LOW_BITS) & !difference & HIGH_BITS
    }

    /// The first slot whose tag is `tag` and that `is` accepts.
    #[inline]
    fn find(&self, tag: u8, is: impl Fn(ChunkId) -> bool) -> Option<usize> {
        for (word, first) in [(self.tags, 0), (u64::from(self.more_tags), 8)] {
            let mut equal = Self::equal(word, tag);
            while equal != 0 {
                let slot = first + (equal.trailing_zeros() / 8) as usize;
                // A match above the lowest may be none, or lie beyond the last slot.
                if slot < SLOTS && is(self.ids[slot]) {
                    return Some(slot);
                }
                equal &= equal - 1;
            }
        }
        None
    }

    #[inline]
    fn set_tag(&mut self, slot: usize, tag: u8) {
        if slot < 8 {
            let shift = 8 * slot;
            self.tags = self.tags & !(0xFF << shift) | u64::from(tag) << shift;
        } else {
            let shift = 8 * (slot - 8);
            self.more_tags = self.more_tags & !(0xFF << shift) | u32::from(tag) << shift;
        }
    }

    /// Puts an entry into an empty slot, if there is one.
    #[inline]
    fn put(&mut self, tag: u8, id: ChunkId) -> bool {
        let empty = !self.tags & HIGH_BITS;
        let slot = if empty != 0 {
            (empty.trailing_zeros() / 8) as usize
        } else {
            let empty = !self.more_tags & HIGH_BITS as u32;
            if empty == 0 {
                return false;
            }
            8 + (empty.trailing_zeros() / 8) as usize
        };
        self.set_tag(slot, tag);
        self.ids[slot] = id;
        true
    }
}

/// Maps addresses to chunk ids. Functions that take `addr_of` read the address of a chunk by it.
#[derive(Debug, Default)]
pub struct AddressMap {
    buckets: Vec<Bucket>,
    len: usize,
}

/// Which bucket to begin with, and the tag.
#[inline]
fn hash(addr: u64) -> (usize, u8) {
    // The golden ratio spreads neighbouring addresses evenly (Knuth, TAOCP 3, 6.4). The bucket
    // comes from the upper half, the tag from bits that it does not use.
    let hash = (addr >> GRAIN_BITS).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    ((hash >> 32) as usize, (hash >> 24) as u8 | 0x80)
}

impl AddressMap {
    /// A map without entries.
    pub const fn new() -> Self {
        Self {
            buckets: Vec::new(),
            len: 0,
        }
    }

    /// Entries.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are no entries.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Host bytes that the map takes.
    pub fn footprint(&self) -> usize {
        self.buckets.capacity() * size_of::<Bucket>()
    }

    /// Makes sure that the next [`AddressMap::insert`] needs no host memory.
    #[inline]
    pub fn reserve(&mut self, addr_of: impl Fn(ChunkId) -> u64) -> Result<(), HostMemoryExhausted> {
        if self.len < self.buckets.len() * FULL {
            return Ok(());
        }
        self.grow(addr_of)
    }

    #[cold]
    fn grow(&mut self, addr_of: impl Fn(ChunkId) -> u64) -> Result<(), HostMemoryExhausted> {
        let count = (self.buckets.len() * 2).max(SMALLEST);
        let mut buckets = Vec::new();
        buckets
            .try_reserve_exact(count)
            .map_err(|_| HostMemoryExhausted)?;
        buckets.resize(count, EMPTY);
        for old in std::mem::replace(&mut self.buckets, buckets) {
            for (slot, &id) in old.ids.iter().enumerate() {
                let tags = if slot < 8 {
                    old.tags >> (8 * slot)
                } else {
                    u64::from(old.more_tags) >> (8 * (slot - 8))
                };
                if tags as u8 != 0 {
                    self.put(addr_of(id), id);
                }
            }
        }
        Ok(())
    }

    #[inline]
    fn put(&mut self, addr: u64, id: ChunkId) {
        let (at, tag) = hash(addr);
        let mask = self.buckets.len() - 1;
        let mut at = at & mask;
        while !self.buckets[at].put(tag, id) {
            self.buckets[at].passed += 1;
            at = (at + 1) & mask;
        }
    }

    /// Adds an address that is not in the map, after [`AddressMap::reserve`].
    #[inline]
    pub fn insert(&mut self, addr: u64, id: ChunkId) {
        self.put(addr, id);
        self.len += 1;
    }

    /// The bucket and the slot of an address.
    #[inline]
    fn position(&self, addr: u64, addr_of: impl Fn(ChunkId) -> u64) -> Option<(usize, usize)> {
        let mask = self.buckets.len().checked_sub(1)?;
        let (at, tag) = hash(addr);
        let mut at = at & mask;
        // Every bucket may have passed something on, though none is full any more.
        for _ in 0..self.buckets.len() {
            let bucket = &self.buckets[at];
            if let Some(slot) = bucket.find(tag, |id| addr_of(id) == addr) {
                return Some((at, slot));
            }
            if bucket.passed == 0 {
                return None;
            }
            at = (at + 1) & mask;
        }
        None
    }

    /// The chunk at an address.
    #[inline]
    pub fn get(&self, addr: u64, addr_of: impl Fn(ChunkId) -> u64) -> Option<ChunkId> {
        let (at, slot) = self.position(addr, addr_of)?;
        Some(self.buckets[at].ids[slot])
    }

    /// Takes out an address and gives back its chunk.
    #[inline]
    pub fn remove(&mut self, addr: u64, addr_of: impl Fn(ChunkId) -> u64) -> Option<ChunkId> {
        let (at, slot) = self.position(addr, addr_of)?;
        let bucket = &mut self.buckets[at];
        let id = bucket.ids[slot];
        bucket.set_tag(slot, 0);
        let mask = self.buckets.len() - 1;
        let mut passed_by = hash(addr).0 & mask;
        while passed_by != at {
            self.buckets[passed_by].passed -= 1;
            passed_by = (passed_by + 1) & mask;
        }
        self.len -= 1;
        Some(id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashMap;

    proptest! {
        #![proptest_config(ProptestConfig { cases: if cfg!(miri) { 4 } else { 128 }, ..ProptestConfig::default() })]

        #[test]
        fn behaves_like_a_map(steps in prop::collection::vec((any::<bool>(), 0u64..400), 1..2000), stride in 0u32..30) {
            let mut map = AddressMap::default();
            let mut model = HashMap::new();
            // Ids are the keys themselves, so that `addr_of` is a formula.
            let addr_of = |id: ChunkId| u64::from(id) << (GRAIN_BITS + stride);
            for (insert, key) in steps {
                let addr = addr_of(key as ChunkId);
                if insert {
                    if model.insert(addr, key as ChunkId).is_none() {
                        map.reserve(addr_of).unwrap();
                        map.insert(addr, key as ChunkId);
                    }
                } else {
                    prop_assert_eq!(map.remove(addr, addr_of), model.remove(&addr));
                }
                prop_assert_eq!(map.len(), model.len());
                prop_assert_eq!(map.get(addr, addr_of), model.get(&addr).copied());
            }
            for (addr, id) in &model {
                prop_assert_eq!(map.get(*addr, addr_of), Some(*id));
            }
            for (addr, id) in &model {
                prop_assert_eq!(map.remove(*addr, addr_of), Some(*id));
            }
            prop_assert!(map.buckets.iter().all(|bucket| bucket.passed == 0 && bucket.tags == 0 && bucket.more_tags == 0));
        }
    }

    #[test]
    fn a_search_ends_when_every_bucket_has_passed_something_on() {
        let addr_of = |id: ChunkId| u64::from(id) << GRAIN_BITS;
        let mut map = AddressMap::default();
        map.reserve(addr_of).unwrap();
        let mut absent = None;
        for bucket in 0..SMALLEST {
            let mut ids = (0..u32::MAX).filter(|&id| hash(addr_of(id)).0 % SMALLEST == bucket);
            // What lies there already takes a slot, too.
            let taken = map.buckets[bucket]
                .ids
                .iter()
                .filter(|&&id| id != NIL)
                .count();
            let fillers: Vec<ChunkId> = ids.by_ref().take(SLOTS - taken).collect();
            let passed = ids.next().unwrap();
            for &id in fillers.iter().chain([&passed]) {
                map.insert(addr_of(id), id);
            }
            for id in fillers {
                assert_eq!(map.remove(addr_of(id), addr_of), Some(id));
            }
            absent = ids.next();
        }
        assert!(map.buckets.iter().all(|bucket| bucket.passed > 0));
        assert_eq!(map.get(addr_of(absent.unwrap()), addr_of), None);
    }

    #[test]
    fn entries_beyond_a_full_bucket_are_found() {
        // Addresses that share their bucket, by trying.
        let shared: Vec<ChunkId> = (0..u32::MAX)
            .filter(|&id| hash(u64::from(id) << GRAIN_BITS).0 % SMALLEST == 3)
            .take(2 * SLOTS)
            .collect();
        let addr_of = |id: ChunkId| u64::from(id) << GRAIN_BITS;
        let mut map = AddressMap::default();
        for &id in &shared {
            map.reserve(addr_of).unwrap();
            map.insert(addr_of(id), id);
        }
        assert_eq!(map.buckets[3].passed as usize, SLOTS);
        for &id in shared.iter().rev() {
            assert_eq!(map.get(addr_of(id), addr_of), Some(id));
            assert_eq!(map.remove(addr_of(id), addr_of), Some(id));
            assert_eq!(map.get(addr_of(id), addr_of), None);
        }
        assert_eq!(map.buckets[3].passed, 0);
    }
}
