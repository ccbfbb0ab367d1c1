#![forbid(unsafe_code)]
//! The invariants of the engine, all of them.

use super::chunk::{NIL, State};
use super::engine::Engine;
use super::region::RegionId;
use crate::size::GRAIN;

/// What the chunks of one or of all regions add up to.
#[derive(Default, PartialEq, Eq, Debug)]
struct Sums {
    allocated: u64,
    requested: u64,
    live: u64,
    free: (usize, u64),
    holes: (usize, u64),
    unmapping: u64,
    chunks: usize,
}

impl Engine {
    /// Walks everything and names the first rule that is broken.
    pub fn check(&self) -> Result<(), String> {
        let mut sums = Sums::default();
        let mut end = 0;
        for id in self.regions.ids() {
            let region = &self.regions[id];
            if region.base < end {
                return Err(format!(
                    "region {:#x} overlaps the one before it",
                    region.base
                ));
            }
            end = region.end();
            self.check_region(id, &mut sums)?;
        }
        for id in self.regions.hidden_ids() {
            if self.regions[id].live > 0 {
                return Err(format!(
                    "region {:#x} is being given back and has live blocks",
                    self.regions[id].base
                ));
            }
            self.check_region(id, &mut sums)?;
        }
        let usage = self.usage;
        let free = self.free.check(&self.chunks)?;
        let holes = self.holes.check(&self.chunks)?;
        let rules = [
            ("free chunks and the free index", sums.free == free),
            ("holes and the index of holes", sums.holes == holes),
            (
                "live chunks and the address map",
                sums.live == self.live.len() as u64,
            ),
            (
                "chunks in regions and in the table",
                sums.chunks == self.chunks.len(),
            ),
            ("live blocks and their count", sums.live == usage.live),
            (
                "live blocks and allocated bytes",
                sums.allocated == usage.allocated,
            ),
            (
                "live blocks and requested bytes",
                sums.requested == usage.requested,
            ),
            (
                "regions and reserved bytes",
                sums.allocated + free.1 + sums.unmapping == usage.reserved,
            ),
            (
                "peaks",
                usage.peak_allocated >= usage.allocated && usage.peak_reserved >= usage.reserved,
            ),
        ];
        match rules.iter().find(|(_, holds)| !holds) {
            Some((what, _)) => Err(format!("{what} do not agree: {sums:?}, {usage:?}")),
            None => Ok(()),
        }
    }

    fn check_region(&self, id: RegionId, sums: &mut Sums) -> Result<(), String> {
        let region = &self.regions[id];
        let (mut live, mut busy) = (0, 0);
        let (mut addr, mut prev, mut at) = (region.base, NIL, region.first);
        let mut last_state = None;
        while at != NIL {
            let chunk = self.chunks.get(at).ok_or_else(|| {
                format!(
                    "region {:#x} names chunk {at}, which does not exist",
                    region.base
                )
            })?;
            let broken = |what: &str| {
                Err(format!(
                    "chunk at {:#x} of region {:#x}: {what}",
                    chunk.addr, region.base
                ))
            };
            if chunk.addr != addr || chunk.size == 0 {
                return broken("a gap or an overlap before it");
            }
            if chunk.addr % GRAIN != 0 || chunk.size % GRAIN != 0 {
                return broken("not a multiple of 256 bytes");
            }
            if chunk.region != id || chunk.prev != prev {
                return broken("linked to another region or neighbour");
            }
            match chunk.state {
                State::Vacant => return broken("a vacant slot"),
                State::Live => {
                    live += 1;
                    sums.live += 1;
                    sums.allocated += chunk.size;
                    sums.requested += chunk.requested();
                    if chunk.requested() > chunk.size {
                        return broken("smaller than what was asked for");
                    }
                    if self.live.get(chunk.addr, |id| self.chunks[id].addr) != Some(at) {
                        return broken("live and not in the address map");
                    }
                }
                State::Free => {
                    sums.free.0 += 1;
                    sums.free.1 += chunk.size;
                    if last_state == Some(State::Free) {
                        return broken("free beside a free chunk");
                    }
                }
                State::Hole => {
                    sums.holes.0 += 1;
                    sums.holes.1 += chunk.size;
                    if last_state == Some(State::Hole) {
                        return broken("a hole beside a hole");
                    }
                }
                State::Mapping => busy += 1,
                State::Unmapping => {
                    busy += 1;
                    sums.unmapping += chunk.size;
                }
            }
            if matches!(chunk.state, State::Hole | State::Mapping) && !region.paged {
                return broken("without memory in a region that has no pages");
            }
            last_state = Some(chunk.state);
            sums.chunks += 1;
            addr = chunk.end();
            prev = at;
            at = chunk.next;
        }
        if addr != region.end() || prev != region.last {
            return Err(format!(
                "region {:#x}: its chunks end at {addr:#x}",
                region.base
            ));
        }
        if (live, busy) != (region.live, region.busy) {
            return Err(format!(
                "region {:#x}: wrong count of live or busy chunks",
                region.base
            ));
        }
        Ok(())
    }
}
