#![forbid(unsafe_code)]
//! The last look at ranges before a request is refused: over every place that there is, with all that
//! could be given back for it.

use super::chunk::{ChunkId, NIL, State};
use super::engine::{Engine, Request};
use super::host_memory::HostMemoryExhausted;
use super::paging::Span;
use super::region::RegionId;
use super::window::{Extent, Piece, Window, for_each_window};
use crate::backend::Pages;

/// What [`Engine::plan_anywhere`] found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AnywherePlan {
    /// With all of these mapped, the request fits. They are marked.
    Map(Vec<Span>),
    /// There will be enough to map once so many bytes more are given back, of memory that does not lie
    /// in `kept`.
    GiveBack {
        /// How many.
        bytes: u64,
        /// Where the request would lie.
        kept: Extent,
    },
    /// There is no such place.
    Nowhere,
}

/// A place, and the range that it is in.
#[derive(Clone, Copy)]
struct Found {
    region: RegionId,
    window: Window,
}

impl Engine {
    /// Looks for the place where the least must be mapped for a request to fit, of those for which
    /// there is enough: `available` bytes, and if `gives_back` all that is free and lies elsewhere, by
    /// pages of the finest size. Linear in the number of chunks.
    pub fn plan_anywhere(
        &mut self,
        request: &Request,
        pages: Pages,
        available: u64,
        gives_back: bool,
    ) -> Result<AnywherePlan, HostMemoryExhausted> {
        let reclaimable = if gives_back {
            self.reclaimable(Some(pages.finest))
        } else {
            0
        };
        let mut best: Option<Found> = None;
        for region in self.ranges() {
            let edges = self.edges(region, pages.finest);
            for row in self.rows(region) {
                for_each_window(row, request, pages, |window| {
                    let total = window.price().saturating_add(edges);
                    let is_enough =
                        window.cost <= available || total <= available.saturating_add(reclaimable);
                    let order = |window: &Window| (window.cost, window.from);
                    let is_better = |best: Found| order(&window) < order(&best.window);
                    // What costs nothing is free memory that is not the request's to use yet.
                    if window.cost > 0 && is_enough && best.is_none_or(is_better) {
                        best = Some(Found { region, window });
                    }
                });
            }
        }
        let Some(Found { region, window }) = best else {
            return Ok(AnywherePlan::Nowhere);
        };
        let kept = Extent {
            from: window.from,
            to: window.from + request.size,
        };
        if window.cost > available {
            let bytes = window.cost - available;
            return Ok(AnywherePlan::GiveBack { bytes, kept });
        }
        let spans = self.mark_holes(region, kept, pages)?;
        Ok(AnywherePlan::Map(spans))
    }

    pub(super) fn ranges(&self) -> impl Iterator<Item = RegionId> + '_ {
        self.regions.ids().filter(|&id| self.regions[id].paged)
    }

    /// The rows of a region, in the order of addresses; an empty one between two chunks that are in none.
    pub(super) fn rows(&self, region: RegionId) -> impl Iterator<Item = Pieces<'_>> + '_ {
        let mut from = Some(self.regions[region].first);
        std::iter::from_fn(move || {
            let first = from?;
            let row = self.row(first, NIL);
            let end = self.row_end(first);
            from = (end != NIL).then(|| self.chunks[end].next);
            Some(row)
        })
    }

    /// The row from a chunk on. What is live counts as free if it is the chunk `freed`.
    pub(super) fn row(&self, first: ChunkId, freed: ChunkId) -> Pieces<'_> {
        Pieces {
            engine: self,
            at: first,
            freed,
        }
    }

    /// The first chunk from a certain one on that is in no row.
    pub(super) fn row_end(&self, first: ChunkId) -> ChunkId {
        let mut id = first;
        while id != NIL && (self.is_spare(id) || self.chunks[id].state == State::Hole) {
            id = self.chunks[id].next;
        }
        id
    }

    /// Whether a chunk is free memory that merges with what is mapped beside it.
    pub(super) fn is_spare(&self, id: ChunkId) -> bool {
        let chunk = &self.chunks[id];
        chunk.state == State::Free && chunk.tag == self.fresh_lane()
    }

    /// Of a range that could be given back as a whole, the memory that is in no whole page: it stays
    /// if a request is put there.
    pub(super) fn edges(&self, region: RegionId, page: u64) -> u64 {
        if !self.regions[region].is_idle() {
            return 0;
        }
        self.mapped_bytes(region) - self.pages_in(region, page)
    }

    /// The whole free pages of a range.
    pub(super) fn pages_in(&self, region: RegionId, page: u64) -> u64 {
        let (mut pages, mut id) = (0, self.regions[region].first);
        while id != NIL {
            if self.is_spare(id) {
                pages += self.chunks[id].extent().whole_pages(page);
            }
            id = self.chunks[id].next;
        }
        pages
    }
}

/// The pieces of a row.
#[derive(Clone)]
pub(super) struct Pieces<'a> {
    engine: &'a Engine,
    at: ChunkId,
    freed: ChunkId,
}

impl Pieces<'_> {
    fn next_chunk(&mut self) -> Option<Piece> {
        let id = self.at;
        if id == NIL {
            return None;
        }
        let chunk = &self.engine.chunks[id];
        let is_memory = id == self.freed || self.engine.is_spare(id);
        if !is_memory && chunk.state != State::Hole {
            return None;
        }
        self.at = chunk.next;
        let extent = chunk.extent();
        Some(Piece { extent, is_memory })
    }
}

impl Iterator for Pieces<'_> {
    type Item = Piece;

    fn next(&mut self) -> Option<Piece> {
        let mut piece = self.next_chunk()?;
        let mut rest = self.clone();
        while let Some(other) = rest.next_chunk() {
            if other.is_memory != piece.is_memory {
                break;
            }
            piece.extent.to = other.extent.to;
            self.at = rest.at;
        }
        Some(piece)
    }
}
