#![forbid(unsafe_code)]
//! Ranges of addresses that get and lose memory by pages.
//!
//! A range has far more addresses than memory. It grows by mapping memory behind its last block,
//! so that blocks of any size follow each other without the seams between segments. Where blocks
//! that stay keep free pages apart, those pages are unmapped and as many mapped where the request
//! fits: memory that exists serves any request, wherever it lies. (PyTorch's expandable segments
//! and GMLake, ASPLOS 2024, do the same on CUDA's virtual memory.)
//!
//! Mapping and unmapping are backend calls, made without the pool's lock. A plan marks its chunk
//! first, and the chunk stays out of both indexes until the call has ended.

use super::chunk::{Chunk, ChunkId, NIL, State};
use super::engine::{Engine, Request};
use super::host_memory::{HostMemoryExhausted, TryPush};
use super::region::RegionId;
use super::window::Extent;
use crate::backend::Pages;
use crate::size::{round_down, round_up};

/// A part of a range, to be mapped or unmapped by the backend.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// The chunk that stands for it meanwhile.
    pub chunk: ChunkId,
    /// First address.
    pub addr: u64,
    /// Length in bytes.
    pub bytes: u64,
}

/// What [`Engine::plan_map`] found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MapPlan {
    /// With this much mapped, the request fits.
    Map(Span),
    /// With `bytes` mapped the request would fit, but fewer are available.
    Short {
        /// The bytes that it takes.
        bytes: u64,
        /// Where the request would lie, if it takes free memory there, which must stay.
        kept: Extent,
    },
    /// No range has the addresses.
    NoRange,
}

/// A place for a request: a part of a hole, perhaps with the free chunks beside it.
struct Place {
    hole: ChunkId,
    /// Where mapping begins.
    from: u64,
    /// Where mapping must reach.
    to: u64,
    /// Where the request would lie, if it takes free memory there.
    kept: Extent,
}

impl Engine {
    /// Looks for the place where the least must be mapped for a request to fit, and marks it.
    /// `step`: the least to map where there is room; `None`: no more than what the request needs.
    /// Never maps more than `available`.
    pub fn plan_map(
        &mut self,
        request: &Request,
        pages: Pages,
        step: Option<u64>,
        available: u64,
    ) -> Result<MapPlan, HostMemoryExhausted> {
        let mut best: Option<Place> = None;
        let hole = self.holes.best_fit(&self.chunks, request.size_anywhere());
        let tails = self
            .regions
            .ids()
            .filter(|&id| self.regions[id].paged)
            .map(|id| self.regions[id].last)
            .filter(|&id| self.chunks[id].state == State::Hole);
        for hole in hole.into_iter().chain(tails) {
            if let Some(place) = self.place_in(hole, request, pages, step.is_none()) {
                if best
                    .as_ref()
                    .is_none_or(|best| place.to - place.from < best.to - best.from)
                {
                    best = Some(place);
                }
            }
        }
        let Some(place) = best else {
            return Ok(MapPlan::NoRange);
        };
        self.map_place(&place, request, pages, step, available)
    }

    fn map_place(
        &mut self,
        place: &Place,
        request: &Request,
        pages: Pages,
        step: Option<u64>,
        available: u64,
    ) -> Result<MapPlan, HostMemoryExhausted> {
        let least = place.to - place.from;
        if least > available {
            return Ok(MapPlan::Short {
                bytes: least,
                kept: place.kept,
            });
        }
        self.chunks.reserve(2)?;
        let room = self.chunks[place.hole].end() - place.from;
        let wanted = step.map_or(least, |step| {
            let rounded = round_up(place.to, pages.unmap).unwrap_or(place.to);
            // From inside a page to the end of another would be more than the request rounded up.
            let most = round_up(request.size, pages.unmap).unwrap_or(least);
            step.max((rounded - place.from).min(most))
        });
        let bytes = wanted
            .min(room)
            .min(round_down(available, pages.map))
            .max(least);
        Ok(MapPlan::Map(
            self.mark_mapping(place.hole, place.from, bytes),
        ))
    }

    /// Where a request would lie around a hole. What alignment leaves out before it gets no memory:
    /// whole pages of the size in which memory is given back, or all of it if `exact`.
    fn place_in(
        &self,
        hole: ChunkId,
        request: &Request,
        pages: Pages,
        exact: bool,
    ) -> Option<Place> {
        let chunk = &self.chunks[hole];
        // What is mapped merges with free memory of its own lane only.
        let fresh = self.fresh_lane();
        let free_neighbour = |id: ChunkId| {
            let is_free = |chunk: &Chunk| chunk.state == State::Free && chunk.tag == fresh;
            (id != NIL && is_free(&self.chunks[id])).then_some(id)
        };
        let (mut prev, next) = (free_neighbour(chunk.prev), free_neighbour(chunk.next));
        let begin = prev.map_or(chunk.addr, |id| self.chunks[id].addr);
        let start = round_up(begin, request.align)?;
        let end = start.checked_add(request.size)?;
        let mut from = chunk.addr;
        if start >= chunk.addr {
            let page = if exact { pages.map } else { pages.unmap };
            from = from.max(round_down(start, page));
            prev = prev.filter(|_| from == chunk.addr);
        }
        let to = if end <= chunk.end() {
            round_up(end, pages.map)?.min(chunk.end())
        } else if end <= next.map_or(0, |id| self.chunks[id].end()) {
            chunk.end()
        } else {
            return None;
        };
        let takes_memory = prev.is_some() || end > chunk.end();
        let kept = if takes_memory {
            Extent {
                from: start,
                to: end,
            }
        } else {
            Extent::EMPTY
        };
        (from < to).then_some(Place {
            hole,
            from,
            to,
            kept,
        })
    }

    /// Marks what a place for a request takes of holes: for the backend's pages, from `within.from` to
    /// `within.to`.
    pub(super) fn mark_holes(
        &mut self,
        region: RegionId,
        within: Extent,
        pages: Pages,
    ) -> Result<Vec<Span>, HostMemoryExhausted> {
        let mut holes = Vec::new();
        let mut id = self.regions[region].first;
        while id != NIL && self.chunks[id].addr < within.to {
            let chunk = &self.chunks[id];
            if chunk.state == State::Hole && chunk.end() > within.from {
                holes.try_push(id)?;
            }
            id = chunk.next;
        }
        // Only the first and the last are divided.
        self.chunks.reserve(2)?;
        let mut spans = Vec::new();
        spans
            .try_reserve_exact(holes.len())
            .map_err(|_| HostMemoryExhausted)?;
        for hole in holes {
            let chunk = &self.chunks[hole];
            let from = round_down(within.from, pages.map).max(chunk.addr);
            let to = round_up(within.to, pages.map).unwrap_or(u64::MAX);
            let bytes = to.min(chunk.end()) - from;
            spans.push(self.mark_mapping(hole, from, bytes));
        }
        Ok(spans)
    }

    fn mark_mapping(&mut self, hole: ChunkId, from: u64, bytes: u64) -> Span {
        self.holes.remove(&mut self.chunks, hole);
        if from > self.chunks[hole].addr {
            let front = self.split_front(hole, from);
            self.holes.insert(&mut self.chunks, front);
        }
        if bytes < self.chunks[hole].size {
            let back = self.split_back(hole, from + bytes);
            self.holes.insert(&mut self.chunks, back);
        }
        self.mark_busy(hole, State::Mapping)
    }

    fn mark_busy(&mut self, id: ChunkId, state: State) -> Span {
        let chunk = &mut self.chunks[id];
        chunk.state = state;
        self.regions[chunk.region].busy += 1;
        Span {
            chunk: id,
            addr: chunk.addr,
            bytes: chunk.size,
        }
    }

    fn end_busy(&mut self, span: Span) {
        let region = self.chunks[span.chunk].region;
        self.regions[region].busy -= 1;
    }

    /// The backend mapped a span: it is free memory now.
    pub fn mapped(&mut self, span: Span) {
        self.end_busy(span);
        self.add_reserved(span.bytes);
        self.list_freed(span.chunk, self.fresh_lane(), 0);
    }

    /// The backend did not map a span.
    pub fn map_failed(&mut self, span: Span) {
        self.end_busy(span);
        self.list_hole(span.chunk);
    }

    /// Chooses whole free pages of `page` bytes, `bytes` or a little more in sum, from the largest
    /// free chunks, and marks them: if the engine is separate, of those that are anyone's. What lies in
    /// `kept` stays. `bytes` of `None`: all there are. Empty: there are not so many.
    pub fn plan_unmap(
        &mut self,
        bytes: Option<u64>,
        page: u64,
        kept: Extent,
    ) -> Result<Vec<Span>, HostMemoryExhausted> {
        let free = self.index(self.fresh_lane());
        let mut candidates = free.ids_at_least(&self.chunks, page, |id| {
            self.regions[self.chunks[id].region].paged && self.pages_outside(id, page, kept).1 > 0
        })?;
        let supply: u64 = candidates
            .iter()
            .map(|&id| self.pages_outside(id, page, kept).1)
            .sum();
        let mut missing = bytes.unwrap_or(supply);
        if supply < missing {
            return Ok(Vec::new());
        }
        // The largest first, and of equal ones the highest, so that few calls are made and low
        // addresses stay in use.
        candidates.sort_unstable_by_key(|&id| {
            std::cmp::Reverse((self.pages_outside(id, page, kept).1, self.chunks[id].addr))
        });
        self.chunks.reserve(2 * candidates.len())?;
        let mut spans = Vec::new();
        spans
            .try_reserve_exact(candidates.len())
            .map_err(|_| HostMemoryExhausted)?;
        for id in candidates {
            if missing == 0 {
                break;
            }
            let (from, available) = self.pages_outside(id, page, kept);
            let taken = round_up(missing.min(available), page).unwrap_or(available);
            missing = missing.saturating_sub(taken);
            spans.push(self.mark_unmapping(id, from + available - taken, taken));
        }
        Ok(spans)
    }

    fn mark_unmapping(&mut self, id: ChunkId, from: u64, bytes: u64) -> Span {
        self.remove_free(id);
        if from > self.chunks[id].addr {
            let front = self.split_front_in_lane(id, from);
            self.insert_free(front);
        }
        if bytes < self.chunks[id].size {
            let back = self.split_back_in_lane(id, from + bytes);
            self.insert_free(back);
        }
        self.mark_busy(id, State::Unmapping)
    }

    /// The backend unmapped a span: its addresses have no memory now.
    pub fn unmapped(&mut self, span: Span) {
        self.end_busy(span);
        self.usage.reserved -= span.bytes;
        self.list_hole(span.chunk);
    }

    /// The backend did not unmap a span: it is free memory still.
    pub fn unmap_failed(&mut self, span: Span) {
        self.end_busy(span);
        self.keep_free(span.chunk);
        self.list(span.chunk);
    }

    fn list_hole(&mut self, mut id: ChunkId) {
        self.chunks[id].state = State::Hole;
        self.chunks[id].tag = 0;
        let (prev, next) = (self.chunks[id].prev, self.chunks[id].next);
        if next != NIL && self.chunks[next].state == State::Hole {
            self.holes.remove(&mut self.chunks, next);
            self.absorb_next(id);
        }
        if prev != NIL && self.chunks[prev].state == State::Hole {
            self.holes.remove(&mut self.chunks, prev);
            self.absorb_next(prev);
            id = prev;
        }
        self.holes.insert(&mut self.chunks, id);
    }

    /// Where the whole pages of a free chunk begin that lie outside of `kept`, and their bytes. Of a
    /// chunk that `kept` begins in, what lies before; of one that it ends in, what lies behind. (If all of
    /// it lies in one chunk, the request fits there by now.)
    fn pages_outside(&self, id: ChunkId, page: u64, kept: Extent) -> (u64, u64) {
        let extent = self.chunks[id].extent();
        let outside = if extent.to <= kept.from || kept.to <= extent.from {
            extent
        } else if extent.from < kept.from {
            extent.before(kept.from)
        } else {
            extent.behind(kept.to)
        };
        let from = round_up(outside.from, page).unwrap_or(u64::MAX);
        (from, outside.whole_pages(page))
    }

    /// The memory that can be given back now: idle regions, and whole free pages of `page` bytes
    /// in other ranges; if the engine is separate, of what is anyone's.
    pub fn reclaimable(&self, page: Option<u64>) -> u64 {
        let Some(page) = page else {
            return self.idle_bytes();
        };
        let mut pages = 0;
        let free = self.index(self.fresh_lane());
        free.for_each_at_least(&self.chunks, page, |id| {
            let region = &self.regions[self.chunks[id].region];
            if region.paged && !region.is_idle() {
                pages += self.chunks[id].extent().whole_pages(page);
            }
        });
        self.idle_bytes() + pages
    }
}
