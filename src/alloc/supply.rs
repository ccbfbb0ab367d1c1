#![forbid(unsafe_code)]
//! Regions coming and going: what the backend granted, and what it takes back.

use super::chunk::{NIL, State};
use super::engine::Engine;
use super::host_memory::HostMemoryExhausted;
use super::policy::Policy;
use super::region::{Region, RegionId};
use super::window::Extent;
use crate::size::GRAIN;

/// Why a region was not added.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AddRegionError {
    /// It is empty, misaligned, or goes beyond the address space.
    Malformed,
    /// It shares addresses with a region that is held.
    Overlaps {
        /// First address of the other one.
        base: u64,
        /// Its length.
        span: u64,
    },
    /// No host memory for book-keeping.
    HostMemoryExhausted,
}

impl From<HostMemoryExhausted> for AddRegionError {
    fn from(_: HostMemoryExhausted) -> Self {
        Self::HostMemoryExhausted
    }
}

impl Engine {
    /// Adds what the backend granted. `paged`: addresses only, which get memory by
    /// [`Engine::plan_map`]; otherwise memory, of which all is free.
    pub fn add_region(
        &mut self,
        base: u64,
        span: u64,
        paged: bool,
    ) -> Result<RegionId, AddRegionError> {
        if span == 0 || base % GRAIN != 0 || span % GRAIN != 0 || base.checked_add(span).is_none() {
            return Err(AddRegionError::Malformed);
        }
        if let Some(other) = self.regions.overlapping(base, span) {
            let Region { base, span, .. } = self.regions[other];
            return Err(AddRegionError::Overlaps { base, span });
        }
        self.chunks.reserve(1)?;
        self.regions.reserve()?;
        let state = if paged { State::Hole } else { State::Free };
        let id = self.chunks.insert(base, span, 0, state);
        let region = self.regions.insert(Region {
            base,
            span,
            first: id,
            last: id,
            live: 0,
            busy: 0,
            pending: 0,
            paged,
            leaving: false,
        });
        let lane = self.fresh_lane();
        let chunk = &mut self.chunks[id];
        chunk.region = region;
        if paged {
            self.holes.insert(&mut self.chunks, id);
        } else {
            chunk.set_free(0);
            chunk.tag = lane;
            self.insert_free(id);
            self.add_reserved(span);
        }
        Ok(region)
    }

    /// Regions that can be given back now, in the order of addresses, with the memory in each.
    pub fn idle_regions(&self) -> impl Iterator<Item = (RegionId, u64)> + '_ {
        self.regions
            .ids()
            .filter(|&id| self.regions[id].is_idle())
            .map(|id| (id, self.mapped_bytes(id)))
    }

    /// The memory in regions that can be given back now.
    pub fn idle_bytes(&self) -> u64 {
        self.idle_regions().map(|(_, bytes)| bytes).sum()
    }

    /// Whether a region gets and loses memory by pages.
    pub fn is_paged(&self, id: RegionId) -> bool {
        self.regions[id].paged
    }

    /// Whether addresses lie in a region; no addresses lie in none.
    pub fn holds(&self, id: RegionId, addresses: Extent) -> bool {
        let region = &self.regions[id];
        addresses.from < addresses.to
            && region.base <= addresses.from
            && addresses.to <= region.end()
    }

    /// The rules that it follows.
    pub fn policy(&self) -> &Policy {
        &self.policy
    }

    /// Memory in a region of which nothing is being mapped.
    pub(super) fn mapped_bytes(&self, region: RegionId) -> u64 {
        let mut bytes = 0;
        let mut id = self.regions[region].first;
        while id != NIL {
            let chunk = &self.chunks[id];
            if !matches!(chunk.state, State::Hole | State::Mapping) {
                bytes += chunk.size;
            }
            id = chunk.next;
        }
        bytes
    }

    /// Marks an idle region for being given back: nothing in it is used until
    /// [`Engine::region_released`] or [`Engine::region_kept`], and after
    /// [`Engine::hide_leaving`] its addresses count as nobody's. Gives back its base, its span and
    /// the memory in it, which counts as reserved until then.
    pub fn begin_release(&mut self, id: RegionId) -> (u64, u64, u64) {
        let bytes = self.mark_all(id);
        self.regions.leave(id);
        let region = &self.regions[id];
        (region.base, region.span, bytes)
    }

    /// Marks every chunk of a region without live blocks, so that none is in an index. Gives the memory
    /// in those that were not marked.
    fn mark_all(&mut self, id: RegionId) -> u64 {
        debug_assert_eq!(self.regions[id].live, 0);
        let mut bytes = 0;
        let mut at = self.regions[id].first;
        while at != NIL {
            match self.chunks[at].state {
                State::Free => {
                    bytes += self.chunks[at].size;
                    self.remove_free(at);
                    self.chunks[at].state = State::Unmapping;
                }
                // Where all is forgotten.
                State::Parked => {
                    bytes += self.chunks[at].size;
                    self.unpark(at);
                    self.chunks[at].state = State::Unmapping;
                }
                State::Hole => {
                    self.holes.remove(&mut self.chunks, at);
                    self.chunks[at].state = State::Mapping;
                }
                // A backend call that is not heard of any more has marked it.
                _ => {}
            }
            self.regions[id].busy += 1;
            at = self.chunks[at].next;
        }
        bytes
    }

    /// Takes a region out of whose memory the backend is not told. No block is live, and the outcome
    /// of a backend call in progress will not be told any more. `false`: there is no region.
    pub fn forget_region(&mut self) -> bool {
        let last = self
            .regions
            .ids()
            .next_back()
            .or_else(|| self.regions.hidden_ids().next());
        if let Some(id) = last {
            self.mark_all(id);
            self.region_released(id);
        }
        last.is_some()
    }

    /// To be called when all regions that go together are marked, before the backend is.
    pub fn hide_leaving(&mut self) {
        self.regions.hide_leaving();
    }

    /// The backend took a region back.
    pub fn region_released(&mut self, id: RegionId) {
        let mut at = self.regions.remove(id).first;
        while at != NIL {
            let chunk = &self.chunks[at];
            if chunk.state == State::Unmapping {
                self.usage.reserved -= chunk.size;
            }
            let next = chunk.next;
            self.chunks.remove(at);
            at = next;
        }
    }

    /// The backend did not take a region back: it is as it was.
    pub fn region_kept(&mut self, id: RegionId) {
        self.regions.show(id);
        let mut at = self.regions[id].first;
        while at != NIL {
            self.regions[id].busy -= 1;
            if self.chunks[at].state == State::Unmapping {
                self.keep_free(at);
                self.insert_free(at);
                self.note(at);
            } else {
                self.chunks[at].state = State::Hole;
                self.holes.insert(&mut self.chunks, at);
            }
            at = self.chunks[at].next;
        }
    }

    pub(super) fn add_reserved(&mut self, bytes: u64) {
        self.usage.reserved += bytes;
        self.usage.peak_reserved = self.usage.peak_reserved.max(self.usage.reserved);
    }

    /// Takes a region out of the table, live blocks or not, with the memory in it. For the end of a
    /// pool: nothing else is kept in order. Regions that another thread's call was giving back when
    /// the process forked are left out: nobody knows whether they are still there.
    pub fn take_region(&mut self) -> Option<(Region, u64)> {
        let id = self.regions.ids().next_back()?;
        let bytes = self.mapped_bytes(id);
        Some((self.regions.remove(id), bytes))
    }

    /// Frees every live block and every parked one, and settles all that is free: no work uses any of
    /// it any more.
    pub fn free_all(&mut self) {
        let lane = self.fresh_lane();
        let mut place = 0;
        while let Some(id) = self.regions.id_at(place) {
            place += 1;
            let mut at = self.regions[id].first;
            while at != NIL {
                match self.chunks[at].state {
                    State::Live => {
                        let ended = self.end_live(self.chunks[at].addr, |_| {});
                        debug_assert!(ended.is_ok(), "a live chunk is in the address map");
                        at = self.list_freed(at, lane, 0);
                    }
                    State::Parked => {
                        self.unpark(at);
                        at = self.list_freed(at, lane, 0);
                    }
                    State::Free if self.chunks[at].tag != lane => at = self.settle_chunk(at),
                    _ => {}
                }
                at = self.chunks[at].next;
            }
        }
        self.lanes.forget_queues();
    }
}
