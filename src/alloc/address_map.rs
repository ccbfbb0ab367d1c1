#![forbid(unsafe_code)]
//! From the address of a live block to its chunk.
//!
//! Open addressing with linear probing and deletion by shifting back (Knuth, TAOCP 3, 6.4,
//! algorithm R). A slot holds the chunk's id and 32 bits of the address's hash, which give its home
//! slot again, so that growing and deleting read no chunk.

use super::chunk::{ChunkId, HostMemoryExhausted, NIL};
use crate::size::GRAIN_BITS;

/// A slot's hash is in the upper half, its chunk in the lower.
type Slot = u64;
const EMPTY: Slot = u64::MAX;
const SMALLEST: usize = 64;

/// Maps addresses to chunk ids.
#[derive(Debug, Default)]
pub struct AddressMap {
    slots: Vec<Slot>,
    /// 32 less the binary logarithm of the number of slots.
    shift: u32,
    len: usize,
}

// The golden ratio spreads neighbouring addresses evenly (Knuth, TAOCP 3, 6.4).
#[inline]
fn hash(addr: u64) -> u32 {
    ((addr >> GRAIN_BITS).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32) as u32
}

#[inline]
fn chunk(slot: Slot) -> ChunkId {
    slot as ChunkId
}

impl AddressMap {
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
        self.slots.capacity() * size_of::<Slot>()
    }

    /// Makes sure that the next [`AddressMap::insert`] needs no host memory.
    #[inline]
    pub fn reserve(&mut self) -> Result<(), HostMemoryExhausted> {
        // At three quarters full, a search that fails looks at one or two cache lines.
        if self.len < self.slots.len() / 4 * 3 {
            return Ok(());
        }
        self.grow()
    }

    #[cold]
    fn grow(&mut self) -> Result<(), HostMemoryExhausted> {
        let count = (self.slots.len() * 2).max(SMALLEST);
        if count > 1 << 31 {
            return Err(HostMemoryExhausted);
        }
        let mut slots = Vec::new();
        slots
            .try_reserve_exact(count)
            .map_err(|_| HostMemoryExhausted)?;
        slots.resize(count, EMPTY);
        let old = std::mem::replace(&mut self.slots, slots);
        self.shift = 32 - count.trailing_zeros();
        for slot in old {
            if slot != EMPTY {
                self.put(slot);
            }
        }
        Ok(())
    }

    #[inline]
    fn home(&self, slot: Slot) -> usize {
        ((slot >> 32) as u32 >> self.shift) as usize
    }

    #[inline]
    fn put(&mut self, slot: Slot) {
        let mask = self.slots.len() - 1;
        let mut at = self.home(slot);
        while self.slots[at] != EMPTY {
            at = (at + 1) & mask;
        }
        self.slots[at] = slot;
    }

    /// Adds an address that is not in the map, after [`AddressMap::reserve`].
    #[inline]
    pub fn insert(&mut self, addr: u64, id: ChunkId) {
        debug_assert_ne!(id, NIL);
        self.put(Slot::from(hash(addr)) << 32 | Slot::from(id));
        self.len += 1;
    }

    #[inline]
    fn position(&self, addr: u64, addr_of: impl Fn(ChunkId) -> u64) -> Option<usize> {
        if self.slots.is_empty() {
            return None;
        }
        let wanted = hash(addr);
        let mask = self.slots.len() - 1;
        let mut at = (wanted >> self.shift) as usize;
        loop {
            let slot = self.slots[at];
            if (slot >> 32) as u32 == wanted && slot != EMPTY && addr_of(chunk(slot)) == addr {
                return Some(at);
            }
            if slot == EMPTY {
                return None;
            }
            at = (at + 1) & mask;
        }
    }

    /// The chunk at an address. `addr_of` gives the address of a chunk.
    #[inline]
    pub fn get(&self, addr: u64, addr_of: impl Fn(ChunkId) -> u64) -> Option<ChunkId> {
        self.position(addr, addr_of).map(|at| chunk(self.slots[at]))
    }

    /// Takes out an address and gives back its chunk. `addr_of` gives the address of a chunk.
    #[inline]
    pub fn remove(&mut self, addr: u64, addr_of: impl Fn(ChunkId) -> u64) -> Option<ChunkId> {
        let mut gap = self.position(addr, addr_of)?;
        let id = chunk(self.slots[gap]);
        let mask = self.slots.len() - 1;
        let mut at = gap;
        loop {
            at = (at + 1) & mask;
            let slot = self.slots[at];
            if slot == EMPTY {
                break;
            }
            // A slot may move into the gap unless its home lies behind the gap.
            if at.wrapping_sub(self.home(slot)) & mask >= at.wrapping_sub(gap) & mask {
                self.slots[gap] = slot;
                gap = at;
            }
        }
        self.slots[gap] = EMPTY;
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
        fn behaves_like_a_map(steps in prop::collection::vec((any::<bool>(), 0u64..400), 1..1000), stride in 0u32..30) {
            let mut map = AddressMap::default();
            let mut model = HashMap::new();
            // Ids are the keys themselves, so that `addr_of` is a formula.
            let addr_of = |id: ChunkId| u64::from(id) << (GRAIN_BITS + stride);
            for (insert, key) in steps {
                let addr = addr_of(key as ChunkId);
                if insert {
                    if model.insert(addr, key as ChunkId).is_none() {
                        map.reserve().unwrap();
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
        }
    }
}
