#![forbid(unsafe_code)]
//! Programs, and the comparison after each operation.

use super::super::anywhere::AnywherePlan;
use super::super::bins::Ties;
use super::super::chunk::{ANYONE, HOME, NIL, State};
use super::super::engine::{Block, Request};
use super::super::policy::Policy;
use super::super::window::Extent;
use super::{Area, Cell, Op, Outcome, PAGE_BYTES, World};
use crate::backend::Pages;
use crate::size::GRAIN;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

impl World {
    fn step(&mut self, (kind, numbers): Op) -> Outcome {
        let [a, b, c, d] = numbers;
        let time = u64::from(c % 10);
        match kind {
            0..=11 => self.allocate(&self.request(numbers), kind < 6)?,
            12..=19 => self.free(a, b, time)?,
            20..=22 if !self.live.is_empty() => {
                let pick = usize::from(a) % self.live.len();
                let (addr, size, _) = self.live.swap_remove(pick);
                let (chunk, block) = self.engine.begin_free(addr).unwrap();
                prop_assert_eq!(block, Block { addr, size });
                self.set(addr, size, Cell::Parked);
                self.parked.push((chunk, addr, size));
            }
            23..=25 => self.end_free(a, b, time),
            26..=28 => self.settle(self.lane(a), time, b % 4 == 0)?,
            29 if a % 4 == 0 => self.settle_all()?,
            30..=33 => {
                let also: Vec<_> = [(d, time), (d / 7, time / 2)]
                    .map(|(lane, below)| (self.lane(lane), below))
                    .into();
                self.gather(
                    &self.request([a, b, c / 2, d]),
                    &also[..usize::from(a % 3)],
                    false,
                )?;
            }
            34..=36 => self.wait_and_gather(&self.request(numbers))?,
            37 => self.add_area(a, b % 2 == 0),
            38 | 39 => self.map(
                &self.request(numbers),
                a % 2 == 0,
                u64::from(b % 16) * PAGE_BYTES,
                c % 2 == 0,
            )?,
            40 if !self.mapping.is_empty() => {
                self.end_mapping(usize::from(a) % self.mapping.len(), b % 3 > 0);
            }
            41 => self.unmap((a % 4 > 0).then_some(u64::from(b % 5) * PAGE_BYTES))?,
            42 => self.end_unmapping(a % 2 == 0),
            43 if a % 2 == 0 => self.release(b),
            44 => self.end_release(a % 2 == 0),
            45 => {
                self.engine.separate().unwrap();
                self.separate = true;
            }
            46 if self.lanes.len() < 3 => {
                let lane = self.engine.open_lane().unwrap();
                self.separate = true;
                prop_assert!(lane > ANYONE && !self.lanes.contains(&lane));
                self.lanes.push(lane);
            }
            47 if !self.lanes.is_empty() => {
                let pick = usize::from(a) % self.lanes.len();
                let lane = self.lanes[pick];
                let is_empty = self.chunks(|cell| cell.lane() == Some(lane)).is_empty();
                prop_assert_eq!(self.engine.close_lane(lane), is_empty);
                if is_empty {
                    self.lanes.swap_remove(pick);
                }
            }
            48 => {
                let held = self.chunks(|cell| cell.lane().is_some_and(|lane| lane > ANYONE));
                let may = held.is_empty() && self.parked.is_empty();
                prop_assert_eq!(self.engine.rejoin(), may);
                if may {
                    self.separate = false;
                    self.lanes.clear();
                    for cell in self.areas.iter_mut().flat_map(|area| &mut area.cells) {
                        if cell.lane() == Some(ANYONE) {
                            *cell = Cell::Free(HOME, 0);
                        }
                    }
                }
            }
            49 if a % 4 == 0 => self.free_all(b % 2 == 0),
            50 if !self.live.is_empty() => {
                let pick = usize::from(a) % self.live.len();
                self.live[pick].2 = b;
                prop_assert!(self.engine.set_tag(self.live[pick].0, b));
            }
            51 | 52 => self.map_anywhere(
                &self.request(numbers),
                u64::from(b % 6) * PAGE_BYTES / 2,
                a % 4 > 0,
                c % 2 == 0,
            )?,
            _ => {}
        }
        self.merge();
        self.compare()
    }

    /// Every grain and every sum.
    fn compare(&self) -> Outcome {
        prop_assert_eq!(self.engine.check(), Ok(()));
        for area in &self.areas {
            let mut cells = Vec::new();
            let mut id = self.engine.regions[area.id].first;
            while id != NIL {
                let chunk = &self.engine.chunks[id];
                let cell = match chunk.state {
                    State::Live => Cell::Live,
                    State::Parked => Cell::Parked,
                    State::Free => Cell::Free(chunk.tag, chunk.freed_at()),
                    State::Hole => Cell::Hole,
                    State::Mapping => Cell::Mapping,
                    State::Unmapping => Cell::Unmapping(chunk.tag, 0),
                    State::Vacant => return Err(TestCaseError::fail("a vacant chunk")),
                };
                cells.extend(std::iter::repeat_n(cell, (chunk.size / GRAIN) as usize));
                id = chunk.next;
            }
            // The engine shows the time of a marked chunk only when it is free again.
            let shown = area.cells.iter().map(|&cell| match cell {
                Cell::Unmapping(lane, _) => Cell::Unmapping(lane, 0),
                cell => cell,
            });
            prop_assert_eq!(cells, shown.collect::<Vec<_>>(), "area at {:#x}", area.base);
        }
        let engine = &self.engine;
        let bytes = |wanted: &dyn Fn(Cell) -> bool| {
            let cells = self.areas.iter().flat_map(|area| &area.cells);
            cells.filter(|&&cell| wanted(cell)).count() as u64 * GRAIN
        };
        prop_assert_eq!(engine.is_separate(), self.separate);
        prop_assert_eq!(engine.usage().allocated, bytes(&|cell| cell == Cell::Live));
        prop_assert_eq!(engine.free_bytes(), bytes(&Cell::is_free));
        prop_assert_eq!(engine.parked_bytes(), bytes(&|cell| cell == Cell::Parked));
        prop_assert_eq!(engine.parked_chunks(), self.parked.len());
        let is_pending =
            |cell: Cell| cell == Cell::Parked || cell.lane().is_some_and(|lane| lane != ANYONE);
        let pending = if self.separate { bytes(&is_pending) } else { 0 };
        prop_assert_eq!(engine.pending_bytes(), pending);
        let in_lanes: u64 = engine.pending_in_lanes().map(|(_, bytes, _)| bytes).sum();
        prop_assert_eq!(
            in_lanes
                + if self.separate {
                    engine.parked_bytes()
                } else {
                    0
                },
            pending
        );
        for lane in [HOME, ANYONE].into_iter().chain(self.lanes.iter().copied()) {
            prop_assert_eq!(
                engine.lane_bytes(lane),
                bytes(&|cell| cell.lane() == Some(lane))
            );
        }
        let chunks = self.chunks(|_| true);
        let largest = chunks
            .iter()
            .map(|&(_, from, to)| (to - from) as u64 * GRAIN)
            .max();
        prop_assert_eq!(engine.largest_free(), largest.unwrap_or(0));
        let idle: Vec<&Area> = self
            .areas
            .iter()
            .filter(|area| self.is_idle(area))
            .collect();
        let mut found: Vec<_> = engine.idle_regions().map(|(id, _)| id).collect();
        let mut expected: Vec<_> = idle.iter().map(|area| area.id).collect();
        found.sort_unstable();
        expected.sort_unstable();
        prop_assert_eq!(found, expected);
        let mapped =
            |area: &&Area| area.cells.iter().filter(|cell| cell.is_free()).count() as u64 * GRAIN;
        let whole = self.whole_pages(|area| !self.is_idle(area));
        prop_assert_eq!(
            engine.reclaimable(Some(PAGE_BYTES)),
            idle.iter().map(mapped).sum::<u64>() + whole
        );
        let blocks: usize = self
            .areas
            .iter()
            .enumerate()
            .map(|(place, area)| {
                let count = chunks.iter().filter(|row| row.0 == place).count();
                if Self::is_unused(area) {
                    count.min(1)
                } else {
                    count
                }
            })
            .sum();
        prop_assert_eq!(engine.free_blocks(), blocks);
        for &(addr, size, tag) in &self.live {
            prop_assert_eq!(engine.tag(addr), Some(tag));
            prop_assert_eq!(engine.block_at(addr), Some(Block { addr, size }));
        }
        Ok(())
    }

    /// Whether there is a place for a request that so many bytes are enough for. What it marks stays
    /// marked: this ends the program.
    fn has_place(&mut self, request: &Request, available: u64) -> bool {
        let plan = self
            .engine
            .plan_anywhere(request, Pages::of(PAGE_BYTES), available, false);
        matches!(plan, Ok(AnywherePlan::Map(_)))
    }

    /// Ends everything that is in progress, settles everything, and serves the request by whatever
    /// may be given back and brought: a request that this serves could have been told to fit.
    fn serve_settled(mut self, request: &Request, paged: bool, mut available: u64) -> Outcome {
        let request = &Request {
            usable_at: None,
            ..*request
        };
        let pages = paged.then_some(Pages::of(PAGE_BYTES));
        let could = self.engine.could_fit_settled(request, pages, available);
        while !self.parked.is_empty() {
            self.end_free(0, 0, 0);
        }
        while !self.mapping.is_empty() {
            let span = self.mapping[0];
            available += span.bytes;
            self.end_mapping(0, false);
        }
        while let Some(&span) = self.unmapping.last() {
            available += span.bytes;
            self.end_unmapping(true);
        }
        while let Some(area) = self.areas.iter().find(|area| area.leaving) {
            let is_memory = |cell: &&Cell| matches!(cell, Cell::Unmapping(..));
            available += area.cells.iter().filter(is_memory).count() as u64 * GRAIN;
            self.end_release(true);
        }
        self.merge();
        self.settle_all()?;
        self.merge();
        self.compare()?;
        let mut fits = self
            .engine
            .allocate_exhaustively(request)
            .unwrap()
            .is_some();
        if !fits && pages.is_some() {
            fits = self.has_place(request, available);
        }
        if !fits {
            let idle: Vec<_> = self.engine.idle_regions().collect();
            for (id, bytes) in idle {
                self.engine.begin_release(id);
                available += bytes;
            }
            self.engine.hide_leaving();
            fits = available >= request.size_anywhere();
        }
        if !fits && pages.is_some() {
            for span in self
                .engine
                .plan_unmap(None, PAGE_BYTES, Extent::EMPTY)
                .unwrap()
            {
                available += span.bytes;
                self.engine.unmapped(span);
            }
            // In a new range, or beside what is left of the old ones.
            fits = available >= request.size.next_multiple_of(PAGE_BYTES) + request.align
                || self.has_place(request, available);
        }
        prop_assert!(could || !fits, "{request:?} fits when all is settled");
        Ok(())
    }
}

fn policies() -> impl Strategy<Value = Policy> {
    let small = Policy {
        min_split: 4 * GRAIN,
        ..Policy::XLA
    };
    let by_address = Policy {
        ties: Ties::LowestAddress,
        ..Policy::DEFAULT
    };
    select(vec![Policy::DEFAULT, small, by_address])
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: if cfg!(miri) { 2 } else { 512 },
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn memory_goes_to_whom_it_may(
        policy in policies(),
        program in vec((0u8..53, any::<[u16; 4]>()), 1..if cfg!(miri) { 60 } else { 200 }),
        last: [u16; 4],
        (paged, grains) in (any::<bool>(), 0u64..20),
    ) {
        let mut world = World::new(policy);
        world.add_area(39, false);
        world.add_area(30, true);
        for op in program {
            world.step(op).map_err(|error| TestCaseError::fail(format!("{op:?}: {error}")))?;
        }
        let request = world.request(last);
        world.serve_settled(&request, paged, grains * GRAIN)?;
    }

    #[test]
    fn places_in_ranges_are_found(
        policy in policies(),
        // Allocates, frees, grows, gives back, looks everywhere.
        program in vec(
            (select(vec![0u8, 0, 0, 0, 12, 12, 12, 38, 38, 41, 42, 51, 51, 51]), any::<[u16; 4]>()),
            1..if cfg!(miri) { 60 } else { 200 },
        ),
        others in vec(0u16..40, 0..3),
    ) {
        let mut world = World::new(policy);
        for grains in others {
            world.add_area(grains, true);
        }
        world.add_area(39, true);
        for op in program {
            world.step(op).map_err(|error| TestCaseError::fail(format!("{op:?}: {error}")))?;
        }
    }
}
