#![forbid(unsafe_code)]
//! What would make a refused request fit. Nothing is changed and no memory is taken; all of it is linear
//! in the number of chunks, and for messages.

use super::chunk::{ChunkId, NIL, State};
use super::engine::{Block, Engine, Request};
use super::region::RegionId;
use super::window::{Extent, Window, for_each_window};
use crate::backend::Pages;
use crate::size::round_up;

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
#[derive(Clone, Debug)]
pub struct Need {
    /// The bytes that it takes where no free block helps.
    pub alone: u64,
    reclaimable: Reclaimable,
    prices: Prices,
}

impl Need {
    /// The bytes that can be given back, and asked for again where no free block helps.
    pub fn reclaimable(&self) -> u64 {
        self.reclaimable.first
    }

    /// The least that it takes at any place of a range, once what helps is given back elsewhere.
    pub fn beside(&self) -> Option<u64> {
        let least = self.prices.0[0];
        least.map(|(price, _)| price.saturating_sub(self.reclaimable.finest))
    }
}

/// Bytes that can be given back.
#[derive(Clone, Copy, Debug)]
struct Reclaimable {
    /// By pages as they are given back first.
    first: u64,
    /// By the finest ones.
    finest: u64,
}

/// The least prices of places in different rows, ascending, each with the number of its row.
#[derive(Clone, Debug, Default)]
struct Prices([Option<(u64, usize)>; 3]);

impl Prices {
    /// Takes in the least price of a row; one of each.
    fn note(&mut self, price: u64, row: usize) {
        let mut new = Some((price, row));
        for place in &mut self.0 {
            if place.is_none() || new < *place {
                std::mem::swap(place, &mut new);
            }
            if new.is_none() {
                break;
            }
        }
    }

    /// The least outside of two rows.
    fn outside(&self, rows: [usize; 2]) -> Option<u64> {
        let mut prices = self.0.iter().flatten();
        prices
            .find(|(_, row)| !rows.contains(row))
            .map(|&(price, _)| price)
    }
}

impl Means {
    /// What there must be for a place in a range: if free memory is given back, together with that.
    /// `edges`: those of the range.
    fn price(&self, window: &Window, edges: u64) -> u64 {
        if self.gives_back {
            window.price().saturating_add(edges)
        } else {
            window.cost
        }
    }
}

impl Engine {
    fn reclaimable_by(&self, means: &Means) -> Reclaimable {
        if !means.gives_back {
            return Reclaimable {
                first: 0,
                finest: 0,
            };
        }
        Reclaimable {
            first: self.reclaimable(means.pages.map(|pages| pages.unmap)),
            finest: self.reclaimable(means.pages.map(|pages| pages.finest)),
        }
    }

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
        Need {
            alone,
            reclaimable: self.reclaimable_by(means),
            prices: self.prices(request, means),
        }
    }

    /// What there must be for the best place in each row of each range. Rows are numbered in the order of
    /// addresses.
    fn prices(&self, request: &Request, means: &Means) -> Prices {
        let mut prices = Prices::default();
        let Some(pages) = means.pages else {
            return prices;
        };
        let mut number = 0;
        for region in self.regions.ids() {
            let is_range = self.regions[region].paged;
            let edges = if is_range {
                self.edges(region, pages.finest)
            } else {
                0
            };
            for row in self.rows(region) {
                let mut least: Option<u64> = None;
                if is_range {
                    for_each_window(row, request, pages, |window| {
                        if window.cost > 0 {
                            let price = means.price(&window, edges);
                            least = Some(least.map_or(price, |least| least.min(price)));
                        }
                    });
                }
                if let Some(price) = least {
                    prices.note(price, number);
                }
                number += 1;
            }
        }
        prices
    }

    /// The smallest live block of those that would make room for a refused request if they were free,
    /// each by itself: with the free blocks beside it, with addresses there that get memory, or by what it
    /// lets the pool give back and ask for anew. Each that it gives is enough.
    /// `need`: what [`Engine::need`] says of the same request and means.
    pub fn smallest_block_to_free(
        &self,
        request: &Request,
        means: &Means,
        need: &Need,
    ) -> Option<Block> {
        let mut smallest: Option<Block> = None;
        let mut number = 0;
        for region in self.regions.ids() {
            let mut first = self.regions[region].first;
            loop {
                let at = self.row_end(first);
                if at == NIL {
                    break;
                }
                let chunk = &self.chunks[at];
                let is_smaller = smallest.is_none_or(|block| chunk.size < block.size);
                if chunk.state == State::Live && is_smaller {
                    let then = self.reclaimable_without(region, at, means, need.reclaimable);
                    // What both rows beside it offer is looked at together with it.
                    let price = need.prices.outside([number, number + 1]);
                    let alone = need.alone <= means.available.saturating_add(then.first);
                    let elsewhere = price
                        .is_some_and(|price| price <= means.available.saturating_add(then.finest));
                    if means.gives_back && (alone || elsewhere)
                        || self.fits_without(region, first, at, request, means, then.finest)
                    {
                        smallest = Some(Block {
                            addr: chunk.addr,
                            size: chunk.size,
                        });
                    }
                }
                number += 1;
                first = chunk.next;
            }
            number += 1;
        }
        smallest
    }

    /// The free memory around a live chunk, with it, and the whole pages of that on either side.
    fn merged(&self, id: ChunkId, page: u64) -> (Extent, u64) {
        let chunk = &self.chunks[id];
        let (mut extent, mut pages) = (chunk.extent(), 0);
        for side in [chunk.prev, chunk.next] {
            if side != NIL && self.is_spare(side) {
                let side = self.chunks[side].extent();
                extent.from = extent.from.min(side.from);
                extent.to = extent.to.max(side.to);
                pages += side.whole_pages(page);
            }
        }
        (extent, pages)
    }

    /// Whether a region could be given back as a whole if a live chunk of it were free.
    fn is_last(&self, region: RegionId) -> bool {
        let region = &self.regions[region];
        region.live == 1 && region.busy == 0 && region.pending == 0
    }

    /// What can be given back if a live chunk is free.
    fn reclaimable_without(
        &self,
        region: RegionId,
        id: ChunkId,
        means: &Means,
        now: Reclaimable,
    ) -> Reclaimable {
        if !means.gives_back {
            return now;
        }
        let gained = |page: Option<u64>| {
            let page = page.filter(|_| self.regions[region].paged);
            if self.is_last(region) {
                let counted = page.map_or(0, |page| self.pages_in(region, page));
                return self.mapped_bytes(region) - counted;
            }
            page.map_or(0, |page| {
                let (extent, counted) = self.merged(id, page);
                extent.whole_pages(page) - counted
            })
        };
        Reclaimable {
            first: now.first + gained(means.pages.map(|pages| pages.unmap)),
            finest: now.finest + gained(means.pages.map(|pages| pages.finest)),
        }
    }

    /// Whether the request fits where a live chunk is now, if that is free, or beside it. The row before
    /// the chunk begins at `first`.
    fn fits_without(
        &self,
        region: RegionId,
        first: ChunkId,
        id: ChunkId,
        request: &Request,
        means: &Means,
        reclaimable: u64,
    ) -> bool {
        let page = means.pages.map_or(1, |pages| pages.finest);
        let (extent, counted) = self.merged(id, page);
        if extent.start_of(request).is_some() {
            return true;
        }
        let Some(pages) = means.pages.filter(|_| self.regions[region].paged) else {
            return false;
        };
        // As `edges` of the region that it would be then.
        let edges = if self.is_last(region) {
            let counted = self.pages_in(region, page) - counted;
            self.mapped_bytes(region) - counted - extent.whole_pages(page)
        } else {
            0
        };
        let mut is_enough = false;
        for_each_window(self.row(first, id), request, pages, |window| {
            let price = means.price(&window, edges);
            is_enough |= price <= means.available.saturating_add(reclaimable);
        });
        is_enough
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_price_outside_of_two_rows_is_known() {
        let rows = [9u64, 5, 7, 3, 5, 1, 8];
        let mut prices = Prices::default();
        for (row, &price) in rows.iter().enumerate() {
            prices.note(price, row);
            for first in 0..rows.len() {
                let without = [first, first + 1];
                let others = (0..=row).filter(|row| !without.contains(row));
                let least = others.map(|row| rows[row]).min();
                assert_eq!(prices.outside(without), least, "{row} {first}");
            }
        }
    }
}
