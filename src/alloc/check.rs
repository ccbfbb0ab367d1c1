#![forbid(unsafe_code)]
//! The invariants of the engine, all of them.

use super::chunk::{ANYONE, Chunk, HOME, NIL, State};
use super::engine::Engine;
use super::region::RegionId;
use crate::size::GRAIN;
use std::collections::HashSet;

/// What the chunks of one or of all regions add up to.
#[derive(Default, PartialEq, Eq, Debug)]
struct Sums {
    allocated: u64,
    requested: u64,
    live: u64,
    /// Of each lane.
    free: Vec<(usize, u64)>,
    parked: (u64, usize),
    holes: (usize, u64),
    unmapping: u64,
    chunks: usize,
}

impl Engine {
    /// Walks everything and names the first rule that is broken.
    pub fn check(&self) -> Result<(), String> {
        self.check_beside(0, 0)
    }

    /// The same, where of adopted blocks so many bytes are not counted, and so many are promised.
    pub fn check_beside(&self, uncounted: u64, promised: u64) -> Result<(), String> {
        let mut sums = Sums {
            free: vec![(0, 0); self.lanes.end()],
            ..Sums::default()
        };
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
        let indexes = self.indexes().map(|index| index.check(&self.chunks));
        let free = indexes.collect::<Result<Vec<_>, _>>()?;
        self.check_lanes()?;
        let holes = self.holes.check(&self.chunks)?;
        let rules = [
            ("free chunks and the free indexes", sums.free == free),
            (
                "parked chunks and their count",
                sums.parked == self.lanes.parked,
            ),
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
                sums.allocated + promised == usage.allocated + uncounted,
            ),
            (
                "live blocks and requested bytes",
                sums.requested == usage.requested,
            ),
            (
                "regions and reserved bytes",
                sums.allocated + self.free_bytes() + sums.parked.0 + sums.unmapping
                    == usage.reserved,
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
        let (mut live, mut busy, mut pending) = (0, 0, 0);
        let (mut addr, mut prev, mut at) = (region.base, NIL, region.first);
        let mut last: Option<&Chunk> = None;
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
                    let lane = chunk.tag;
                    if !self.lanes.is_open(lane) || (!self.separate && lane != HOME) {
                        return broken("free in a lane that is not open");
                    }
                    pending += u32::from(self.separate && lane != ANYONE);
                    let (count, bytes) = &mut sums.free[usize::from(lane)];
                    *count += 1;
                    *bytes += chunk.size;
                    if last.is_some_and(|last| last.state == State::Free && last.tag == lane) {
                        return broken("free beside a free chunk of its lane");
                    }
                }
                State::Parked => {
                    busy += 1;
                    sums.parked.0 += chunk.size;
                    sums.parked.1 += 1;
                }
                State::Hole => {
                    sums.holes.0 += 1;
                    sums.holes.1 += chunk.size;
                    if last.is_some_and(|last| last.state == State::Hole) {
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
            last = Some(chunk);
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
        if (live, busy, pending) != (region.live, region.busy, region.pending) {
            return Err(format!(
                "region {:#x}: wrong count of live, busy or pending chunks",
                region.base
            ));
        }
        Ok(())
    }

    /// Each index holds free chunks of its own lane, and each queue names all of them.
    fn check_lanes(&self) -> Result<(), String> {
        for (lane, index) in self.each_lane() {
            let queue = self.lanes.queue(lane);
            let is_queued = self.separate && lane != ANYONE && queue.is_complete();
            let entries: HashSet<_> = queue.entries().collect();
            let mut broken = None;
            index.for_each_at_least(&self.chunks, 0, |id| {
                let chunk = &self.chunks[id];
                if chunk.state != State::Free || chunk.tag != lane {
                    broken = Some("in its index and not free in it");
                } else if is_queued && !entries.contains(&(chunk.freed_at(), id)) {
                    broken = Some("free in it and not in its queue");
                }
            });
            if let Some(what) = broken {
                return Err(format!("lane {lane}: a chunk is {what}"));
            }
        }
        Ok(())
    }
}
