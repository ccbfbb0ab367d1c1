#![forbid(unsafe_code)]
//! What would make a refused request fit. Nothing is changed; all of it is linear in the number of
//! chunks, and for messages.

use super::chunk::{Chunk, ChunkId, NIL, State};
use super::engine::{Block, Engine, Request};
use super::region::RegionId;
use crate::backend::Pages;
use crate::size::{round_down, round_up};

/// What a pool may do to grow.
#[derive(Clone, Copy, Debug)]
pub struct Means {
    /// The bytes that the backend may still bring.
    pub available: u64,
    /// Whether free memory is given back to it first.
    pub gives_back: bool,
    /// The backend's pages, if the policy uses them.
    pub pages: Option<Pages>,
    /// Addresses of segments are multiples of this.
    pub segment_align: u64,
}

/// What it takes to serve a request by growing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Need {
    /// The bytes that it takes where no free block helps.
    pub alone: u64,
    /// The place in a range where it takes the least, with the free blocks beside that.
    pub place: Option<Place>,
    /// The bytes that can be given back for it, and asked for again.
    pub reclaimable: u64,
}

/// Addresses without memory that a request could be put into.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// The memory that it would take.
    pub cost: u64,
    hole: ChunkId,
    /// The free chunks that it would use beside that, or `NIL`.
    sides: [ChunkId; 2],
}

/// The free memory around a live block, and what is behind it.
struct Run {
    from: u64,
    to: u64,
    /// The free chunks on either side, or `NIL`.
    sides: [ChunkId; 2],
    /// The chunks before and after them, or `NIL`.
    around: [ChunkId; 2],
}

/// What can be given back of a region as it is.
struct Idle {
    /// Bytes that can be given back.
    bytes: u64,
    /// Bytes that can be given back once one certain block is free, if it is the last one.
    if_last: u64,
}

/// What is given back in extremity.
struct Finest {
    page: u64,
    reclaimable: u64,
}

fn whole_pages(from: u64, to: u64, page: u64) -> u64 {
    let first = round_up(from, page).unwrap_or(u64::MAX);
    round_down(to, page).saturating_sub(first)
}

fn fits(request: &Request, from: u64, to: u64) -> bool {
    round_up(from, request.align)
        .and_then(|start| start.checked_add(request.size))
        .is_some_and(|end| end <= to)
}

impl Means {
    /// The pages that are given back first.
    fn page(&self) -> Option<u64> {
        self.pages.map(|pages| pages.unmap)
    }
}

impl Engine {
    /// What a request that no free block holds takes.
    pub fn need(&self, request: &Request, means: &Means) -> Need {
        let segment = if request.align <= means.segment_align {
            request.size
        } else {
            request.size_anywhere()
        };
        let alone = means.pages.map_or(segment, |pages| {
            round_up(request.size, pages.map).map_or(segment, |paged| paged.min(segment))
        });
        let mut place: Option<Place> = None;
        if let Some(pages) = means.pages {
            self.holes.for_each_at_least(&self.chunks, 0, |hole| {
                let chunk = &self.chunks[hole];
                let sides = [self.free_side(chunk.prev), self.free_side(chunk.next)];
                let begin = sides[0].map_or(chunk.addr, |side| side.addr);
                let end = sides[1].map_or(chunk.end(), Chunk::end);
                let Some(cost) = cost_around(chunk, begin, end, request, pages) else {
                    return;
                };
                if place.is_none_or(|least| cost < least.cost) {
                    place = Some(Place {
                        cost,
                        hole,
                        sides: [chunk.prev, chunk.next],
                    });
                }
            });
        }
        Need {
            alone,
            place,
            reclaimable: if means.gives_back {
                self.reclaimable(means.page())
            } else {
                0
            },
        }
    }

    /// The smallest live block of those that would make room for a refused request if they were free,
    /// each by itself: with the free blocks beside it, with addresses behind it that get memory, or by
    /// what it lets the pool give back and ask for anew. Each that it gives is enough; that there is
    /// none does not mean that none is.
    pub fn smallest_block_to_free(&self, request: &Request, means: &Means) -> Option<Block> {
        let need = self.need(request, means);
        // What is lacking once everything is given back; `None`: giving back is not done.
        let missing = means.gives_back.then(|| {
            let budget = means.available.saturating_add(need.reclaimable);
            need.alone.saturating_sub(budget)
        });
        let elsewhere = self.reclaimable_beside_ranges(means);
        let finest = means
            .pages
            .filter(|pages| means.gives_back && pages.finest < pages.unmap)
            .map(|pages| Finest {
                page: pages.finest,
                reclaimable: self.reclaimable(Some(pages.finest)),
            });
        let mut smallest: Option<Block> = None;
        for region in self.regions.ids() {
            let idle = self.idle_part(region, means.page());
            let mut at = self.regions[region].first;
            while at != NIL {
                let chunk = &self.chunks[at];
                let (id, size) = (at, chunk.size);
                at = chunk.next;
                if chunk.state != State::Live || smallest.is_some_and(|block| block.size <= size) {
                    continue;
                }
                let run = self.run_around(id);
                let is_enough = fits(request, run.from, run.to)
                    || missing.is_some_and(|missing| {
                        self.gained(region, &run, &idle, means.page()) >= missing
                    })
                    || self.grows(region, &run, &idle, request, means, &need, elsewhere)
                    || finest.as_ref().is_some_and(|finest| {
                        self.grows_by_finest(&run, request, means, &need, finest)
                    });
                if is_enough {
                    smallest = Some(Block {
                        addr: chunk.addr,
                        size,
                    });
                }
            }
        }
        smallest
    }

    fn free_side(&self, id: ChunkId) -> Option<&Chunk> {
        (id != NIL)
            .then(|| &self.chunks[id])
            .filter(|chunk| chunk.state == State::Free && chunk.tag == self.fresh_lane())
    }

    fn run_around(&self, id: ChunkId) -> Run {
        let chunk = &self.chunks[id];
        let (before, behind) = (self.free_side(chunk.prev), self.free_side(chunk.next));
        Run {
            from: before.map_or(chunk.addr, |side| side.addr),
            to: behind.map_or(chunk.end(), Chunk::end),
            sides: [
                before.map_or(NIL, |_| chunk.prev),
                behind.map_or(NIL, |_| chunk.next),
            ],
            around: [
                before.map_or(chunk.prev, |side| side.prev),
                behind.map_or(chunk.next, |side| side.next),
            ],
        }
    }

    /// What can be given back of a region now, and if its last block were free.
    fn idle_part(&self, id: RegionId, page: Option<u64>) -> Idle {
        let region = &self.regions[id];
        let is_last = region.live == 1 && region.busy == 0;
        if !region.paged {
            return Idle {
                bytes: 0,
                if_last: if is_last { region.span } else { 0 },
            };
        }
        let mut idle = Idle {
            bytes: 0,
            if_last: 0,
        };
        let mut at = region.first;
        while at != NIL {
            let chunk = &self.chunks[at];
            match (chunk.state, page) {
                (State::Free, Some(page)) => {
                    idle.bytes += whole_pages(chunk.addr, chunk.end(), page);
                    idle.if_last += chunk.size;
                }
                (State::Live, _) => idle.if_last += chunk.size,
                _ => {}
            }
            at = chunk.next;
        }
        if !is_last {
            idle.if_last = 0;
        }
        idle
    }

    /// What more could be given back if the block in the run were free.
    fn gained(&self, region: RegionId, run: &Run, idle: &Idle, page: Option<u64>) -> u64 {
        let whole = idle.if_last.saturating_sub(idle.bytes);
        if !self.regions[region].paged {
            return whole;
        }
        let Some(page) = page else {
            return whole;
        };
        let pages = whole_pages(run.from, run.to, page);
        whole.max(pages.saturating_sub(self.pages_of(run.sides, page)))
    }

    /// Whole pages of free chunks.
    fn pages_of(&self, ids: [ChunkId; 2], page: u64) -> u64 {
        ids.iter()
            .filter_map(|&id| self.free_side(id))
            .map(|side| whole_pages(side.addr, side.end(), page))
            .sum()
    }

    /// What is given back while a range is to grow from a free chunk: segments, and pages of any range.
    fn reclaimable_beside_ranges(&self, means: &Means) -> u64 {
        let Some(pages) = means.pages.filter(|_| means.gives_back) else {
            return 0;
        };
        let idle = self.idle_regions();
        let mut bytes: u64 = idle
            .filter(|&(id, _)| !self.regions[id].paged)
            .map(|(_, bytes)| bytes)
            .sum();
        self.free
            .for_each_at_least(&self.chunks, pages.unmap, |id| {
                let chunk = &self.chunks[id];
                if self.regions[chunk.region].paged {
                    bytes += whole_pages(chunk.addr, chunk.end(), pages.unmap);
                }
            });
        bytes
    }

    /// Whether a range could grow as far as the request needs: behind the run, or elsewhere with what
    /// the run lets be given back. Both only at the end of a range, where the pool looks first, and while
    /// no other place is cheaper, which would decide what may be given back.
    #[allow(clippy::too_many_arguments)]
    fn grows(
        &self,
        region: RegionId,
        run: &Run,
        idle: &Idle,
        request: &Request,
        means: &Means,
        need: &Need,
        elsewhere: u64,
    ) -> bool {
        let Some(pages) = means.pages else {
            return false;
        };
        let [before, behind] = self.costs_around(run, request, pages);
        let least = need.place.map_or(u64::MAX, |place| place.cost);
        let kept = self.pages_of(run.sides, pages.unmap);
        if let Some(cost) = behind.filter(|_| self.is_at_end(run.around[1])) {
            let is_cheapest = cost < least && before.is_none_or(|before| cost < before);
            let budget = means
                .available
                .saturating_add(elsewhere - kept.min(elsewhere));
            if cost <= means.available || is_cheapest && cost <= budget {
                return true;
            }
        }
        let Some(place) = need.place.filter(|place| self.is_at_end(place.hole)) else {
            return false;
        };
        let is_cheapest = [before, behind]
            .iter()
            .flatten()
            .all(|&cost| cost > place.cost);
        let is_apart = !run.around.contains(&place.hole) && means.gives_back;
        if !is_cheapest || !is_apart {
            return false;
        }
        let gained = if self.regions[region].paged {
            whole_pages(run.from, run.to, pages.unmap).saturating_sub(kept)
        } else {
            idle.if_last
        };
        let used = self.pages_of(place.sides, pages.unmap);
        let budget = means
            .available
            .saturating_add((elsewhere + gained).saturating_sub(used));
        place.cost <= budget
    }

    /// As the second case of [`Engine::grows`], at any place, by the finest pages: those are given back
    /// last, where no larger ones are left.
    fn grows_by_finest(
        &self,
        run: &Run,
        request: &Request,
        means: &Means,
        need: &Need,
        finest: &Finest,
    ) -> bool {
        let (Some(pages), Some(place)) = (means.pages, need.place) else {
            return false;
        };
        let costs = self.costs_around(run, request, pages);
        let is_cheapest = costs.iter().flatten().all(|&cost| cost > place.cost);
        let is_apart = !run.around.contains(&place.hole);
        let has_larger = need.reclaimable > 0 || whole_pages(run.from, run.to, pages.unmap) > 0;
        if !is_cheapest || !is_apart || has_larger {
            return false;
        }
        let gained =
            whole_pages(run.from, run.to, finest.page) - self.pages_of(run.sides, finest.page);
        let used = self.pages_of(place.sides, finest.page);
        let given = (finest.reclaimable + gained).saturating_sub(used);
        place.cost <= means.available.saturating_add(given)
    }

    /// What the holes before and behind a run would take with it; `None`: they are none, or no place.
    fn costs_around(&self, run: &Run, request: &Request, pages: Pages) -> [Option<u64>; 2] {
        run.around.map(|id| {
            let hole = (id != NIL).then(|| &self.chunks[id]);
            let hole = hole.filter(|chunk| chunk.state == State::Hole)?;
            let (mut begin, mut end) = (hole.addr, hole.end());
            if hole.addr >= run.to {
                begin = run.from;
                end = self.free_side(hole.next).map_or(end, Chunk::end);
            } else {
                begin = self.free_side(hole.prev).map_or(begin, |side| side.addr);
                end = run.to;
            }
            cost_around(hole, begin, end, request, pages)
        })
    }

    /// Whether a chunk is the last of a range, and has no memory.
    fn is_at_end(&self, id: ChunkId) -> bool {
        let chunk = &self.chunks[id];
        chunk.state == State::Hole && self.regions[chunk.region].last == id
    }
}

/// The least memory that a hole takes for a request that begins in the free memory from `begin` on and
/// ends in the hole, or in the free memory up to `end`.
fn cost_around(hole: &Chunk, begin: u64, end: u64, request: &Request, pages: Pages) -> Option<u64> {
    let start = round_up(begin, request.align)?;
    let last = start.checked_add(request.size)?;
    let from = if start >= hole.addr {
        hole.addr.max(round_down(start, pages.map))
    } else {
        hole.addr
    };
    let to = if last <= hole.end() {
        round_up(last, pages.map)?.min(hole.end())
    } else if last <= end {
        hole.end()
    } else {
        return None;
    };
    (from < to).then(|| to - from)
}
