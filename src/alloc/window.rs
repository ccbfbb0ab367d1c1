#![forbid(unsafe_code)]
//! Places for a request that no free chunk holds, among free memory and addresses without memory.
//!
//! Between two live blocks of a range lies a row of free chunks and holes. A request that is put there
//! *costs* the memory of the holes that it covers, and *keeps* the whole free pages that it covers,
//! which could be given back otherwise. Memory that is given back and mapped elsewhere changes neither
//! side of `cost + kept <= available + reclaimable`, so that this says, in whatever order it is done,
//! whether there is enough for a place.

use super::engine::Request;
use crate::backend::Pages;
use crate::size::{round_down, round_up};

/// Addresses from `from` on, up to `to`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    /// The first.
    pub from: u64,
    /// One past the last.
    pub to: u64,
}

impl Extent {
    /// No addresses.
    pub const EMPTY: Self = Self { from: 0, to: 0 };

    /// The whole pages in it.
    pub fn whole_pages(self, page: u64) -> u64 {
        let from = round_up(self.from, page).unwrap_or(u64::MAX);
        round_down(self.to, page).saturating_sub(from)
    }

    /// Where a request would lie first in it; `None`: it does not fit.
    pub fn start_of(self, request: &Request) -> Option<u64> {
        let start = round_up(self.from, request.align)?;
        (start.checked_add(request.size)? <= self.to).then_some(start)
    }

    /// What of it lies before `at`.
    pub(super) fn before(self, at: u64) -> Self {
        Self {
            to: self.to.min(at),
            ..self
        }
    }

    /// What of it lies from `at` on.
    pub(super) fn behind(self, at: u64) -> Self {
        Self {
            from: self.from.max(at),
            ..self
        }
    }
}

/// A part of a row: of several that follow each other with memory or without, all that belong together.
#[derive(Clone, Copy, Debug)]
pub struct Piece {
    /// Its addresses.
    pub extent: Extent,
    /// Whether they have memory.
    pub is_memory: bool,
}

/// A place for a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// Its first address.
    pub from: u64,
    /// The bytes to be mapped.
    pub cost: u64,
    /// The whole pages of memory in it.
    pub kept: u64,
}

impl Window {
    /// What there must be for it, if everything outside of it is given back.
    pub fn price(&self) -> u64 {
        self.cost.saturating_add(self.kept)
    }
}

/// Visits the places in a row that can be the best ones: the least price of all is among them, and if none
/// of them costs nothing, the least cost. They begin or end with a piece, as near as alignment lets them. In
/// between, what a place costs less it keeps more, but for parts of a page; so where memory is mapped by
/// smaller pages than it is given back, those places count, too, that begin or end with a page near by.
pub fn for_each_window(
    row: impl Iterator<Item = Piece> + Clone,
    request: &Request,
    pages: Pages,
    mut visit: impl FnMut(Window),
) {
    let Some(first) = row.clone().next() else {
        return;
    };
    let &Request { size, align, .. } = request;
    // Most rows are too short, which is quickly seen.
    if row
        .clone()
        .last()
        .is_none_or(|last| last.extent.to - first.extent.from < size)
    {
        return;
    }
    // Which end of the place lies at the end of a piece, and which at that of a page.
    for with_piece in [Side::Start, Side::End] {
        for with_page in [None, Some(Side::Start), Some(Side::End)] {
            if with_page.is_some() && pages.map == pages.finest {
                continue;
            }
            for (page_up, up) in [(true, true), (true, false), (false, true), (false, false)] {
                if with_page.is_none() && page_up {
                    continue;
                }
                let starts = row.clone().filter_map(|piece| {
                    let mut start = match with_piece {
                        Side::Start => piece.extent.from,
                        Side::End => piece.extent.to.checked_sub(size)?,
                    };
                    start = match with_page {
                        None => start,
                        Some(Side::Start) => round(start, pages.finest, page_up)?,
                        Some(Side::End) => {
                            let end = start.checked_add(size)?;
                            round(end, pages.finest, page_up)?.checked_sub(size)?
                        }
                    };
                    start = round(start, align, up)?;
                    (start >= first.extent.from).then_some(start)
                });
                let mut slide = Slide::new(row.clone(), first, size, pages);
                starts
                    .map_while(|start| slide.to(start))
                    .for_each(&mut visit);
            }
        }
    }
}

/// An end of a place.
#[derive(Clone, Copy)]
enum Side {
    Start,
    End,
}

fn round(value: u64, to: u64, up: bool) -> Option<u64> {
    if up {
        round_up(value, to)
    } else {
        Some(round_down(value, to))
    }
}

/// A window of one size that moves over a row.
struct Slide<I> {
    size: u64,
    pages: Pages,
    /// The first piece that it touches and the last one, each with those that follow.
    head: Piece,
    heads: I,
    tail: Piece,
    tails: I,
    /// The holes and the whole pages from the one to the other.
    holes: u64,
    kept: u64,
}

impl<I: Iterator<Item = Piece> + Clone> Slide<I> {
    fn new(mut row: I, first: Piece, size: u64, pages: Pages) -> Self {
        row.next();
        let mut slide = Self {
            size,
            pages,
            head: first,
            heads: row.clone(),
            tail: first,
            tails: row,
            holes: 0,
            kept: 0,
        };
        slide.enter(first);
        slide
    }

    fn enter(&mut self, piece: Piece) {
        if piece.is_memory {
            self.kept += piece.extent.whole_pages(self.pages.finest);
        } else {
            self.holes += piece.extent.to - piece.extent.from;
        }
    }

    fn leave(&mut self, piece: Piece) {
        if piece.is_memory {
            self.kept -= piece.extent.whole_pages(self.pages.finest);
        } else {
            self.holes -= piece.extent.to - piece.extent.from;
        }
    }

    /// Moves to `start`, which is in the row and not before the last one. `None`: the row ends too soon.
    fn to(&mut self, start: u64) -> Option<Window> {
        let end = start.checked_add(self.size)?;
        while self.tail.extent.to < end {
            self.tail = self.tails.next()?;
            self.enter(self.tail);
        }
        while self.head.extent.to <= start {
            self.leave(self.head);
            self.head = self.heads.next()?;
        }
        let (mut cost, mut kept) = (self.holes, self.kept);
        let (head, tail) = (self.head, self.tail);
        if head.is_memory {
            kept -= head.extent.before(start).whole_pages(self.pages.finest);
        } else {
            let from = round_down(start, self.pages.map);
            cost -= from.saturating_sub(head.extent.from);
        }
        if tail.is_memory {
            kept -= tail.extent.behind(end).whole_pages(self.pages.finest);
        } else {
            let to = round_up(end, self.pages.map).unwrap_or(u64::MAX);
            cost -= tail.extent.to.saturating_sub(to);
        }
        Some(Window {
            from: start,
            cost,
            kept,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::size::GRAIN;
    use proptest::collection::vec;
    use proptest::prelude::*;

    /// What a window costs and keeps, counted grain by grain.
    fn counted(row: &[Piece], start: u64, size: u64, pages: Pages) -> Window {
        let window = start..start + size;
        let (mut cost, mut kept) = (0, 0);
        for piece in row {
            let Extent { from, to } = piece.extent;
            let page = if piece.is_memory {
                pages.finest
            } else {
                pages.map
            };
            let (first, last) = if piece.is_memory {
                (from.next_multiple_of(page), to / page * page)
            } else {
                (from, to)
            };
            let mut at = first;
            while at < last {
                let next = (at + 1).next_multiple_of(page).min(last);
                let touches = (at..next)
                    .step_by(GRAIN as usize)
                    .any(|grain| window.contains(&grain));
                if touches && piece.is_memory {
                    kept += next - at;
                } else if touches {
                    cost += next - at;
                }
                at = next;
            }
        }
        Window {
            from: start,
            cost,
            kept,
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig {
            cases: if cfg!(miri) { 4 } else { 4000 },
            failure_persistence: None,
            ..ProptestConfig::default()
        })]

        #[test]
        fn windows_are_counted_and_the_best_is_among_them(
            sizes in vec(1u64..14, 1..9),
            is_memory: bool,
            from in 0u64..9,
            size in 1u64..40,
            align in 0u32..5,
            map in 0u32..3,
        ) {
            let pages = Pages {
                map: GRAIN << map,
                unmap: 8 * GRAIN,
                finest: 4 * GRAIN,
            };
            let mut row = Vec::new();
            let (mut at, mut is_memory) = (from * GRAIN, is_memory);
            if !is_memory {
                at = at.next_multiple_of(pages.map);
            }
            let first = at;
            for (place, size) in sizes.iter().enumerate() {
                let mut to = at + size * GRAIN;
                // Holes are whole pages.
                if !is_memory || place + 1 < sizes.len() {
                    to = to.next_multiple_of(pages.map);
                }
                let extent = Extent { from: at, to };
                row.push(Piece { extent, is_memory });
                (at, is_memory) = (to, !is_memory);
            }
            let request = Request::new(size * GRAIN, GRAIN << align).unwrap();
            let mut found: Vec<Window> = Vec::new();
            for_each_window(row.iter().copied(), &request, pages, |window| found.push(window));
            for window in &found {
                prop_assert_eq!(*window, counted(&row, window.from, request.size, pages));
                prop_assert_eq!(window.from % request.align, 0);
            }
            let mut best: Option<u64> = None;
            let mut cost = u64::MAX;
            let mut start = first.next_multiple_of(request.align);
            while start + request.size <= at {
                let window = counted(&row, start, request.size, pages);
                let price = window.price();
                best = Some(best.map_or(price, |best| best.min(price)));
                cost = cost.min(window.cost);
                start += request.align;
            }
            let least = found.iter().map(Window::price).min();
            prop_assert_eq!(best, least);
            if best.is_some() && cost > 0 {
                prop_assert_eq!(found.iter().map(|window| window.cost).min(), Some(cost));
            }
        }
    }
}
