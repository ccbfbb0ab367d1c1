#![forbid(unsafe_code)]
//! Regions: what the backend granted. Blocks of two regions never merge.

use super::chunk::{ChunkId, NIL};
use super::host_memory::HostMemoryExhausted;

/// Names a region in its [`Regions`] table.
pub type RegionId = u32;

/// One grant of the backend.
#[derive(Clone, Debug)]
pub struct Region {
    /// First address.
    pub base: u64,
    /// Length in bytes, memory or not.
    pub span: u64,
    /// Its first chunk.
    pub first: ChunkId,
    /// Its last chunk.
    pub last: ChunkId,
    /// Live chunks in it.
    pub live: u32,
    /// Chunks in it that are parked, or that a backend call is mapping or unmapping.
    pub busy: u32,
    /// Free chunks in it of other lanes than [`ANYONE`](super::chunk::ANYONE); 0 while the engine is not
    /// separate.
    pub pending: u32,
    /// Whether it gets and loses memory by pages.
    pub paged: bool,
    /// Whether the backend is taking it back. Its addresses may be granted anew before the pool
    /// hears that it is gone, so they count as nobody's.
    pub leaving: bool,
}

impl Region {
    const VACANT: Self = Self {
        base: 0,
        span: 0,
        first: NIL,
        last: NIL,
        live: 0,
        busy: 0,
        pending: 0,
        paged: false,
        leaving: false,
    };

    /// One past its last address.
    pub fn end(&self) -> u64 {
        self.base + self.span
    }

    /// Whether nothing in it is live, parked, or marked for a backend call.
    pub fn is_unused(&self) -> bool {
        self.live == 0 && self.busy == 0
    }

    /// Whether it can be given back now: nothing in it is used, and all that is free is anyone's.
    pub fn is_idle(&self) -> bool {
        self.is_unused() && self.pending == 0
    }
}

/// All regions of an engine.
#[derive(Debug, Default)]
pub struct Regions {
    /// Regions and vacant slots, which have no span.
    slots: Vec<Region>,
    vacant: Vec<RegionId>,
    /// Base and id of each region, in the order of addresses; without those that are leaving.
    by_base: Vec<(u64, RegionId)>,
    /// How many are leaving.
    leaving: usize,
}

impl Regions {
    /// Makes sure that the table has a slot for one more.
    pub fn reserve(&mut self) -> Result<(), HostMemoryExhausted> {
        self.slots.try_reserve(1).map_err(|_| HostMemoryExhausted)?;
        // So that giving a region back, or keeping it after all, needs no memory.
        let most = self.slots.len() + 1;
        self.vacant
            .try_reserve(most - self.vacant.len())
            .map_err(|_| HostMemoryExhausted)?;
        self.by_base
            .try_reserve(most - self.by_base.len())
            .map_err(|_| HostMemoryExhausted)
    }

    /// Adds a region that overlaps no other.
    pub fn insert(&mut self, region: Region) -> RegionId {
        let base = region.base;
        let id = self.vacant.pop().unwrap_or_else(|| {
            self.slots.push(Region::VACANT);
            (self.slots.len() - 1) as RegionId
        });
        self.slots[id as usize] = region;
        self.list(base, id);
        id
    }

    fn list(&mut self, base: u64, id: RegionId) {
        let at = self.position_after(base);
        self.by_base.insert(at, (base, id));
    }

    /// The backend is going to take a region back. To be followed by [`Regions::hide_leaving`], once
    /// for all that go together.
    pub fn leave(&mut self, id: RegionId) {
        self[id].leaving = true;
        self.leaving += 1;
    }

    /// Takes the addresses of leaving regions out of the order.
    pub fn hide_leaving(&mut self) {
        let slots = &self.slots;
        self.by_base.retain(|&(_, id)| !slots[id as usize].leaving);
    }

    /// The backend has not taken a hidden region back.
    pub fn show(&mut self, id: RegionId) {
        self[id].leaving = false;
        self.leaving -= 1;
        self.list(self[id].base, id);
    }

    /// How many regions begin at `addr` or below.
    fn position_after(&self, addr: u64) -> usize {
        self.by_base.partition_point(|&(base, _)| base <= addr)
    }

    /// Takes a region out, hidden or not.
    pub fn remove(&mut self, id: RegionId) -> Region {
        let region = std::mem::replace(&mut self.slots[id as usize], Region::VACANT);
        if region.leaving {
            self.leaving -= 1;
        } else {
            let at = self.position_after(region.base) - 1;
            debug_assert_eq!(self.by_base[at], (region.base, id));
            self.by_base.remove(at);
        }
        self.vacant.push(id);
        region
    }

    /// Regions in the table, hidden ones too.
    pub fn len(&self) -> usize {
        self.by_base.len() + self.leaving
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The region with `addr` in it.
    pub fn containing(&self, addr: u64) -> Option<RegionId> {
        let (_, id) = self.by_base[..self.position_after(addr)].last().copied()?;
        (addr < self[id].end()).then_some(id)
    }

    /// A region that shares an address with `base..base + span`.
    pub fn overlapping(&self, base: u64, span: u64) -> Option<RegionId> {
        let end = self.position_after(base + span - 1);
        let (_, id) = self.by_base[..end].last().copied()?;
        (base < self[id].end()).then_some(id)
    }

    /// Ids in the order of addresses, without the hidden ones.
    pub fn ids(&self) -> impl DoubleEndedIterator<Item = RegionId> + '_ {
        self.by_base.iter().map(|&(_, id)| id)
    }

    /// The region at a place in the order of addresses.
    pub fn id_at(&self, place: usize) -> Option<RegionId> {
        self.by_base.get(place).map(|&(_, id)| id)
    }

    /// Ids of hidden regions.
    pub fn hidden_ids(&self) -> impl Iterator<Item = RegionId> + '_ {
        (0..self.slots.len() as RegionId).filter(|&id| self.slots[id as usize].leaving)
    }
}

impl std::ops::Index<RegionId> for Regions {
    type Output = Region;
    #[inline]
    fn index(&self, id: RegionId) -> &Region {
        let region = &self.slots[id as usize];
        debug_assert_ne!(region.span, 0, "the region is in the table");
        region
    }
}

impl std::ops::IndexMut<RegionId> for Regions {
    #[inline]
    fn index_mut(&mut self, id: RegionId) -> &mut Region {
        let region = &mut self.slots[id as usize];
        debug_assert_ne!(region.span, 0, "the region is in the table");
        region
    }
}
