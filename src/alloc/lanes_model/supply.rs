#![forbid(unsafe_code)]
//! Regions coming and going in the model.

use super::super::anywhere::AnywherePlan;
use super::super::chunk::HOME;
use super::super::engine::Request;
use super::super::paging::{MapPlan, Span};
use super::super::window::Extent;
use super::{Area, Cell, Outcome, PAGE, PAGE_BYTES, World};
use crate::backend::Pages;
use crate::size::GRAIN;
use proptest::prelude::*;

impl World {
    pub(super) fn add_area(&mut self, grains: u16, paged: bool) {
        if self.areas.len() >= 6 {
            return;
        }
        self.places += 1;
        let grains = usize::from(grains % 40) + 1;
        let (offset, count) = if paged {
            (0, grains.next_multiple_of(PAGE) + 2 * PAGE)
        } else {
            (grains as u64 % 7 * GRAIN, grains)
        };
        let base = (self.places << 20) + offset;
        let id = self
            .engine
            .add_region(base, count as u64 * GRAIN, paged)
            .unwrap();
        let cell = if paged {
            Cell::Hole
        } else {
            Cell::Free(self.fresh(), 0)
        };
        self.areas.push(Area {
            id,
            base,
            paged,
            leaving: false,
            cells: vec![cell; count],
        });
    }

    pub(super) fn map(
        &mut self,
        request: &Request,
        step: bool,
        available: u64,
        at_once: bool,
    ) -> Outcome {
        let step = step.then_some(3 * PAGE_BYTES);
        let plan = self
            .engine
            .plan_map(request, Pages::of(PAGE_BYTES), step, available)
            .unwrap();
        let MapPlan::Map(span) = plan else {
            return Ok(());
        };
        prop_assert!(span.bytes <= available);
        prop_assert!(
            self.cells(span.addr, span.bytes)
                .iter()
                .all(|&cell| cell == Cell::Hole)
        );
        self.set(span.addr, span.bytes, Cell::Mapping);
        self.mapping.push(span);
        if at_once {
            self.end_mapping(self.mapping.len() - 1, true);
            self.merge();
            // What was mapped for a request serves it.
            let fitting =
                self.smallest(&self.chunks(|cell| self.is_usable(cell, request)), request);
            prop_assert!(!fitting.is_empty() || (!self.separate && request.usable_at.is_some()));
        }
        Ok(())
    }

    /// What each place for a request in ranges costs, keeps, and leaves of an area that could be given back
    /// as a whole.
    fn places(&self, request: &Request) -> Vec<(u64, u64, u64)> {
        let fresh = self.fresh();
        let size = (request.size / GRAIN) as usize;
        let mut places = Vec::new();
        for area in self.areas.iter().filter(|area| area.paged && !area.leaving) {
            let is_spare = |at: usize| area.cells[at].lane() == Some(fresh);
            let is_hole = |at: usize| area.cells[at] == Cell::Hole;
            let all_spare = |page: usize| (page..page + PAGE).all(is_spare);
            let pages: Vec<usize> = (0..area.cells.len()).step_by(PAGE).collect();
            let free = area.cells.iter().filter(|cell| cell.is_free()).count();
            let whole = pages.iter().filter(|&&page| all_spare(page)).count() * PAGE;
            let edges = if self.is_idle(area) { free - whole } else { 0 };
            for from in 0..(area.cells.len() + 1).saturating_sub(size) {
                let window = from..from + size;
                let addr = area.base + from as u64 * GRAIN;
                let is_row = window.clone().all(|at| is_spare(at) || is_hole(at));
                if addr % request.align != 0 || !is_row {
                    continue;
                }
                let touched = pages
                    .iter()
                    .filter(|&&page| page < window.end && window.start < page + PAGE);
                let cost = touched.clone().filter(|&&page| is_hole(page)).count();
                let kept = touched.filter(|&&page| all_spare(page)).count();
                places.push((
                    cost as u64 * PAGE_BYTES,
                    kept as u64 * PAGE_BYTES,
                    edges as u64 * GRAIN,
                ));
            }
        }
        places
    }

    pub(super) fn map_anywhere(
        &mut self,
        request: &Request,
        available: u64,
        gives_back: bool,
        at_once: bool,
    ) -> Outcome {
        let places = self.places(request);
        // It is asked only when no free memory holds the request.
        if places.iter().any(|&(cost, ..)| cost == 0) {
            return Ok(());
        }
        let budget = available + self.engine.reclaimable(Some(PAGE_BYTES));
        let fits_now = places.iter().any(|&(cost, ..)| cost <= available);
        let fits_then = places
            .iter()
            .any(|&(cost, kept, edges)| cost + kept + edges <= budget);
        let plan = self
            .engine
            .plan_anywhere(request, Pages::of(PAGE_BYTES), available, gives_back)
            .unwrap();
        let spans = match plan {
            AnywherePlan::Map(spans) => spans,
            AnywherePlan::GiveBack { bytes, kept } => {
                prop_assert!(gives_back && fits_then && !fits_now);
                prop_assert_eq!(kept.to - kept.from, request.size);
                // Areas that can be given back as a whole count as such, but for the one of the place.
                let beside: u64 = self
                    .areas
                    .iter()
                    .filter(|area| self.is_idle(area) && !self.engine.holds(area.id, kept))
                    .map(|area| area.cells.iter().filter(|cell| cell.is_free()).count() as u64)
                    .sum::<u64>()
                    * GRAIN;
                if bytes > beside {
                    self.unmap_around(bytes - beside, kept)?;
                }
                return Ok(());
            }
            AnywherePlan::Nowhere => {
                prop_assert!(!(fits_now || gives_back && fits_then));
                return Ok(());
            }
        };
        prop_assert!(fits_now && !spans.is_empty());
        let least = places.iter().map(|&(cost, ..)| cost).min();
        prop_assert_eq!(Some(spans.iter().map(|span| span.bytes).sum()), least);
        let first = self.mapping.len();
        for span in spans {
            let holes = self.cells(span.addr, span.bytes);
            prop_assert!(holes.iter().all(|&cell| cell == Cell::Hole));
            self.set(span.addr, span.bytes, Cell::Mapping);
            self.mapping.push(span);
        }
        if at_once {
            while self.mapping.len() > first {
                self.end_mapping(self.mapping.len() - 1, true);
            }
            self.merge();
            let fitting =
                self.smallest(&self.chunks(|cell| self.is_usable(cell, request)), request);
            prop_assert!(!fitting.is_empty() || (!self.separate && request.usable_at.is_some()));
        }
        Ok(())
    }

    /// Whole pages that lie outside of certain addresses.
    fn unmap_around(&mut self, bytes: u64, kept: Extent) -> Outcome {
        let spans = self
            .engine
            .plan_unmap(Some(bytes), PAGE_BYTES, kept)
            .unwrap();
        let sum: u64 = spans.iter().map(|span| span.bytes).sum();
        prop_assert!(sum >= bytes, "{sum} of {bytes}");
        for span in spans {
            prop_assert!(span.addr + span.bytes <= kept.from || kept.to <= span.addr);
            self.mark_unmapping(span)?;
        }
        Ok(())
    }

    fn mark_unmapping(&mut self, span: Span) -> Outcome {
        let fresh = self.fresh();
        prop_assert!(span.addr % PAGE_BYTES == 0 && span.bytes % PAGE_BYTES == 0);
        for cell in self.cells(span.addr, span.bytes) {
            let Cell::Free(lane, number) = *cell else {
                return Err(TestCaseError::fail("unmaps what is not free"));
            };
            prop_assert_eq!(lane, fresh);
            *cell = Cell::Unmapping(lane, number);
        }
        self.unmapping.push(span);
        Ok(())
    }

    pub(super) fn end_mapping(&mut self, place: usize, done: bool) {
        let span = self.mapping.swap_remove(place);
        if done {
            self.engine.mapped(span);
            self.set(span.addr, span.bytes, Cell::Free(self.fresh(), 0));
        } else {
            self.engine.map_failed(span);
            self.set(span.addr, span.bytes, Cell::Hole);
        }
    }

    pub(super) fn unmap(&mut self, bytes: Option<u64>) -> Outcome {
        let supply: u64 = self.whole_pages(|_| true);
        let spans = self
            .engine
            .plan_unmap(bytes, PAGE_BYTES, Extent::EMPTY)
            .unwrap();
        let sum: u64 = spans.iter().map(|span| span.bytes).sum();
        let enough = match bytes {
            Some(bytes) if bytes > supply => sum == 0,
            Some(bytes) => sum >= bytes,
            None => sum == supply,
        };
        prop_assert!(enough, "{sum} of {supply} for {bytes:?}");
        for span in spans {
            self.mark_unmapping(span)?;
        }
        Ok(())
    }

    /// The whole free pages in paged areas that are `wanted`, in bytes.
    pub(super) fn whole_pages(&self, wanted: impl Fn(&Area) -> bool) -> u64 {
        let chunks = self.chunks(|cell| cell.lane() == Some(self.fresh()));
        let pages = chunks
            .iter()
            .filter(|row| self.areas[row.0].paged && wanted(&self.areas[row.0]));
        let whole = pages.map(|&(_, from, to)| (to / PAGE).saturating_sub(from.div_ceil(PAGE)));
        whole.sum::<usize>() as u64 * PAGE_BYTES
    }

    pub(super) fn end_unmapping(&mut self, done: bool) {
        let Some(span) = self.unmapping.pop() else {
            return;
        };
        if done {
            self.engine.unmapped(span);
            self.set(span.addr, span.bytes, Cell::Hole);
        } else {
            self.engine.unmap_failed(span);
            self.keep(span.addr, span.bytes);
        }
    }

    /// What was marked is free again: in `HOME` for what was marked there, as it was.
    pub(super) fn keep(&mut self, addr: u64, bytes: u64) {
        let (separate, fresh) = (self.separate, self.fresh());
        for cell in self.cells(addr, bytes) {
            *cell = match *cell {
                Cell::Unmapping(HOME, number) if separate => Cell::Free(HOME, number),
                Cell::Unmapping(..) => Cell::Free(fresh, 0),
                Cell::Mapping => Cell::Hole,
                other => other,
            };
        }
    }

    pub(super) fn is_unused(area: &Area) -> bool {
        let is_unused = |cell: &Cell| matches!(cell, Cell::Free(..) | Cell::Hole);
        !area.leaving && area.cells.iter().all(is_unused)
    }

    pub(super) fn is_idle(&self, area: &Area) -> bool {
        let is_settled = |cell: &Cell| cell.lane().is_none_or(|lane| lane == self.fresh());
        Self::is_unused(area) && area.cells.iter().all(is_settled)
    }

    pub(super) fn release(&mut self, pick: u16) {
        let idle: Vec<_> = self.engine.idle_regions().map(|(id, _)| id).collect();
        if idle.is_empty() {
            return;
        }
        let id = idle[usize::from(pick) % idle.len()];
        self.engine.begin_release(id);
        self.engine.hide_leaving();
        let area = self.areas.iter_mut().find(|area| area.id == id).unwrap();
        area.leaving = true;
        for cell in &mut area.cells {
            *cell = match *cell {
                Cell::Free(lane, number) => Cell::Unmapping(lane, number),
                _ => Cell::Mapping,
            };
        }
    }

    pub(super) fn end_release(&mut self, done: bool) {
        let Some(place) = self.areas.iter().position(|area| area.leaving) else {
            return;
        };
        if done {
            let area = self.areas.remove(place);
            self.engine.region_released(area.id);
        } else {
            let area = &mut self.areas[place];
            area.leaving = false;
            let (id, base, bytes) = (area.id, area.base, area.cells.len() as u64 * GRAIN);
            self.engine.region_kept(id);
            self.keep(base, bytes);
        }
    }

    pub(super) fn free_all(&mut self, forget: bool) {
        self.engine.free_all();
        let fresh = self.fresh();
        for cell in self.areas.iter_mut().flat_map(|area| &mut area.cells) {
            *cell = match *cell {
                Cell::Live | Cell::Parked => Cell::Free(fresh, 0),
                Cell::Free(lane, _) if lane != fresh => Cell::Free(fresh, 0),
                other => other,
            };
        }
        self.live.clear();
        self.parked.clear();
        if forget {
            while self.engine.forget_region() {}
            self.areas.clear();
            self.mapping.clear();
            self.unmapping.clear();
        }
    }
}
