#![forbid(unsafe_code)]
//! Programs of operations on an engine with lanes, against a plain model: for each grain of memory,
//! who may use it. After each operation every grain is compared.

mod run;
mod supply;

use super::chunk::{ANYONE, ChunkId, HOME, Lane};
use super::engine::{Block, Engine, Request};
use super::paging::Span;
use super::policy::Policy;
use super::region::RegionId;
use crate::size::GRAIN;
use proptest::prelude::*;

/// Grains in a page.
const PAGE: usize = 4;
const PAGE_BYTES: u64 = PAGE as u64 * GRAIN;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Cell {
    Live,
    Parked,
    Free(Lane, u64),
    Hole,
    Mapping,
    /// What it was when it was marked.
    Unmapping(Lane, u64),
}

impl Cell {
    fn is_free(self) -> bool {
        matches!(self, Self::Free(..))
    }

    fn lane(self) -> Option<Lane> {
        match self {
            Self::Free(lane, _) => Some(lane),
            _ => None,
        }
    }
}

/// A region.
#[derive(Debug)]
struct Area {
    id: RegionId,
    base: u64,
    paged: bool,
    leaving: bool,
    cells: Vec<Cell>,
}

/// A row of grains of an area, and its first and one past its last.
type Row = (usize, usize, usize);

#[derive(Debug)]
struct World {
    engine: Engine,
    policy: Policy,
    separate: bool,
    areas: Vec<Area>,
    /// Address, bytes, tag.
    live: Vec<(u64, u64, u16)>,
    parked: Vec<(ChunkId, u64, u64)>,
    lanes: Vec<Lane>,
    mapping: Vec<Span>,
    unmapping: Vec<Span>,
    places: u64,
}

type Outcome = Result<(), TestCaseError>;

/// One operation: its kind and four numbers.
type Op = (u8, [u16; 4]);

/// Where the request lies first in grains `from..to` of an area, as a grain.
fn place(area: &Area, from: usize, to: usize, request: &Request) -> Option<usize> {
    let addr = |at: usize| area.base + at as u64 * GRAIN;
    (from..to).find(|&at| addr(at) % request.align == 0 && addr(at) + request.size <= addr(to))
}

/// Whether a request may use a grain without a wait.
fn is_usable(separate: bool, cell: Cell, request: &Request) -> bool {
    let Cell::Free(lane, number) = cell else {
        return false;
    };
    let in_time = request.usable_at.is_none_or(|time| number <= time);
    in_time && (!separate || [ANYONE, request.lane].contains(&lane))
}

impl World {
    fn new(policy: Policy) -> Self {
        Self {
            engine: Engine::new(policy).unwrap(),
            policy,
            separate: false,
            areas: Vec::new(),
            live: Vec::new(),
            parked: Vec::new(),
            lanes: Vec::new(),
            mapping: Vec::new(),
            unmapping: Vec::new(),
            places: 0,
        }
    }

    fn fresh(&self) -> Lane {
        if self.separate { ANYONE } else { HOME }
    }

    fn lane(&self, pick: u16) -> Lane {
        let pick = usize::from(pick) % (self.lanes.len() + 2);
        if pick < 2 {
            pick as Lane
        } else {
            self.lanes[pick - 2]
        }
    }

    fn request(&self, [lane, grains, align, time]: [u16; 4]) -> Request {
        let bytes = (u64::from(grains % 12) + 1) * GRAIN - u64::from(align % 2);
        let request = Request::new(bytes, GRAIN << (align / 2 % 6).saturating_sub(2)).unwrap();
        Request {
            lane: self.lane(lane),
            usable_at: (time % 3 == 0).then_some(u64::from(time / 3 % 10)),
            ..request
        }
    }

    fn cells(&mut self, addr: u64, bytes: u64) -> &mut [Cell] {
        let area = self
            .areas
            .iter_mut()
            .find(|area| (area.base..area.base + area.cells.len() as u64 * GRAIN).contains(&addr))
            .expect("an area");
        let from = ((addr - area.base) / GRAIN) as usize;
        &mut area.cells[from..from + (bytes / GRAIN) as usize]
    }

    fn set(&mut self, addr: u64, bytes: u64, cell: Cell) {
        self.cells(addr, bytes).fill(cell);
    }

    /// The longest rows of grains that are `wanted` and, two neighbours each, `joined`.
    fn rows(&self, wanted: impl Fn(Cell) -> bool, joined: impl Fn(Cell, Cell) -> bool) -> Vec<Row> {
        let mut rows = Vec::new();
        for (place, area) in self.areas.iter().enumerate() {
            let mut from = 0;
            for to in 1..=area.cells.len() {
                let last = area.cells[to - 1];
                let ends = area
                    .cells
                    .get(to)
                    .is_none_or(|&next| wanted(last) != wanted(next) || !joined(last, next));
                if ends {
                    if wanted(last) {
                        rows.push((place, from, to));
                    }
                    from = to;
                }
            }
        }
        rows
    }

    fn chunks(&self, wanted: impl Fn(Cell) -> bool) -> Vec<Row> {
        self.rows(
            |cell| cell.is_free() && wanted(cell),
            |one, other| one.lane() == other.lane(),
        )
    }

    /// Free chunks merge within their lane, and are as late as the latest part.
    fn merge(&mut self) {
        for (place, from, to) in self.chunks(|_| true) {
            let cells = &mut self.areas[place].cells[from..to];
            let number = |cell: &Cell| match *cell {
                Cell::Free(_, number) => number,
                _ => 0,
            };
            let latest = cells.iter().map(number).max().unwrap();
            let lane = cells[0].lane().unwrap();
            cells.fill(Cell::Free(lane, latest));
        }
    }

    fn is_usable(&self, cell: Cell, request: &Request) -> bool {
        is_usable(self.separate, cell, request)
    }

    /// Of the rows that hold the request, the smallest, with where the request lies first.
    fn smallest(&self, rows: &[Row], request: &Request) -> Vec<(Row, u64)> {
        let fitting = rows.iter().filter_map(|&row| {
            let area = &self.areas[row.0];
            let start = place(area, row.1, row.2, request)?;
            Some((row, area.base + start as u64 * GRAIN))
        });
        let mut fitting: Vec<(Row, u64)> = fitting.collect();
        let least = fitting.iter().map(|&((_, from, to), _)| to - from).min();
        fitting.retain(|&((_, from, to), _)| Some(to - from) == least);
        fitting
    }

    fn handed_out(&mut self, block: Block, request: &Request) -> Outcome {
        prop_assert!(block.addr % request.align == 0 && block.size >= request.size);
        self.set(block.addr, block.size, Cell::Live);
        self.live.push((block.addr, block.size, 0));
        Ok(())
    }

    fn allocate(&mut self, request: &Request, exhaustively: bool) -> Outcome {
        let fitting = self.smallest(&self.chunks(|cell| self.is_usable(cell, request)), request);
        let served = if exhaustively {
            self.engine.allocate_exhaustively(request).unwrap()
        } else {
            self.engine.allocate(request).unwrap()
        };
        let Some(block) = served else {
            // The quick look does not find every aligned place.
            let may_miss = !exhaustively && request.align > GRAIN;
            prop_assert!(may_miss || fitting.is_empty(), "{request:?}: {fitting:?}");
            return Ok(());
        };
        prop_assert!(
            self.cells(block.addr, block.size)
                .to_vec()
                .iter()
                .all(|&cell| self.is_usable(cell, request))
        );
        if exhaustively || request.align == GRAIN {
            let found = fitting.iter().find(|&&(_, start)| start == block.addr);
            prop_assert!(
                found.is_some(),
                "{request:?} at {block:?}, not in {fitting:?}"
            );
            let ((place, from, to), start) = *found.unwrap();
            let is_own = |&((place, from, _), _): &(Row, u64)| {
                self.areas[place].cells[from].lane() == Some(request.lane)
            };
            prop_assert!(
                is_own(&((place, from, to), start))
                    || !fitting.iter().any(is_own)
                    || !self.separate
            );
            let rest = self.areas[place].base + to as u64 * GRAIN - start;
            let splits = rest > request.size && self.policy.splits(rest, request.size);
            prop_assert_eq!(block.size, if splits { request.size } else { rest });
        }
        self.handed_out(block, request)
    }

    fn gather(&mut self, request: &Request, also: &[(Lane, u64)], must: bool) -> Outcome {
        let separate = self.separate;
        let allowed = move |cell: Cell| {
            let is_done = |&(lane, below): &(Lane, u64)| matches!(cell, Cell::Free(of, number) if of == lane && number < below);
            is_usable(separate, cell, request) || (separate && also.iter().any(is_done))
        };
        let fitting = self.smallest(&self.rows(allowed, |_, _| true), request);
        let served = self.engine.gather(request, also).unwrap();
        let Some(block) = served else {
            prop_assert!(
                fitting.is_empty() && !must,
                "{request:?}, {also:?}: {fitting:?}"
            );
            return Ok(());
        };
        prop_assert!(fitting.iter().any(|&(_, start)| start == block.addr));
        // Not one more chunk than the request needs.
        let chunks = self.chunks(|_| true);
        let end_of = |&(place, _, to): &Row| self.areas[place].base + to as u64 * GRAIN;
        let ends = chunks.iter().map(end_of);
        let end = ends.filter(|&end| end >= block.addr + request.size).min();
        let whole = end.map_or(0, |end| end - block.addr);
        let splits = whole > request.size && self.policy.splits(whole, request.size);
        prop_assert_eq!(block.size, if splits { request.size } else { whole });
        let cells = self.areas.iter().find(|area| {
            area.base <= block.addr && block.addr < area.base + area.cells.len() as u64 * GRAIN
        });
        let area = cells.unwrap();
        let from = ((block.addr - area.base) / GRAIN) as usize;
        prop_assert!(
            area.cells[from..from + (block.size / GRAIN) as usize]
                .iter()
                .all(|&cell| allowed(cell))
        );
        self.handed_out(block, request)
    }

    /// The least wait of all places, by trying each.
    fn least_wait(&self, request: &Request) -> Option<(usize, u64)> {
        let mut best = None;
        for (at, from, to) in self.rows(Cell::is_free, |_, _| true) {
            let area = &self.areas[at];
            for start in from..to {
                if place(area, start, to, request) != Some(start) {
                    continue;
                }
                let cells = &area.cells[start..start + (request.size / GRAIN) as usize];
                let waited = cells.iter().filter(|&&cell| !self.is_usable(cell, request));
                let mut lanes: Vec<Lane> = waited.clone().filter_map(|cell| cell.lane()).collect();
                lanes.sort_unstable();
                lanes.dedup();
                let number = |cell: &Cell| match *cell {
                    Cell::Free(_, number) => number,
                    _ => 0,
                };
                let wait = (lanes.len(), waited.map(number).max().unwrap_or(0));
                if best.is_none_or(|best| wait < best) {
                    best = Some(wait);
                }
            }
        }
        best
    }

    fn wait_and_gather(&mut self, request: &Request) -> Outcome {
        let waits = self.engine.plan_wait(request, |_, _| true).unwrap();
        let least = self.least_wait(request);
        let planned = waits.as_ref().map(|waits| {
            let latest = waits.iter().map(|&(_, below)| below - 1).max();
            (waits.len(), latest.unwrap_or(0))
        });
        prop_assert_eq!(planned, least, "{:?}: {:?}", request, waits);
        match waits {
            Some(waits) if self.separate || waits.is_empty() => self.gather(request, &waits, true),
            _ => Ok(()),
        }
    }

    fn free(&mut self, pick: u16, lane: u16, time: u64) -> Outcome {
        if self.live.is_empty() {
            return Ok(());
        }
        let (addr, size, _) = self.live.swap_remove(usize::from(pick) % self.live.len());
        let lane = self.lane(lane);
        let freed = if lane == HOME {
            self.engine.free(addr, time)
        } else {
            self.engine.free_in(addr, lane, time)
        };
        prop_assert_eq!(freed, Ok(Block { addr, size }));
        self.freed(addr, size, lane, time);
        Ok(())
    }

    fn freed(&mut self, addr: u64, size: u64, lane: Lane, time: u64) {
        let lane = if self.separate { lane } else { HOME };
        let time = if lane == ANYONE { 0 } else { time };
        self.set(addr, size, Cell::Free(lane, time));
    }

    fn end_free(&mut self, pick: u16, lane: u16, time: u64) {
        if !self.parked.is_empty() {
            let pick = usize::from(pick) % self.parked.len();
            let (chunk, addr, size) = self.parked.swap_remove(pick);
            let lane = self.lane(lane);
            self.engine.end_free(chunk, lane, time);
            self.freed(addr, size, lane, time);
        }
    }

    fn settle(&mut self, lane: Lane, below: u64, by_walk: bool) -> Outcome {
        let mut bytes = 0;
        if self.separate && lane != ANYONE {
            for cell in self.areas.iter_mut().flat_map(|area| &mut area.cells) {
                if matches!(*cell, Cell::Free(of, number) if of == lane && number < below) {
                    *cell = Cell::Free(ANYONE, 0);
                    bytes += GRAIN;
                }
            }
        }
        let settled = if by_walk && self.separate && lane != ANYONE {
            self.engine
                .settle_by_walk(|of, time| of == lane && time < below)
        } else {
            self.engine.settle(lane, below)
        };
        prop_assert_eq!(settled, bytes);
        Ok(())
    }

    fn settle_all(&mut self) -> Outcome {
        let mut bytes = 0;
        for cell in self.areas.iter_mut().flat_map(|area| &mut area.cells) {
            if self.separate && cell.lane().is_some_and(|lane| lane != ANYONE) {
                *cell = Cell::Free(ANYONE, 0);
                bytes += GRAIN;
            }
        }
        prop_assert_eq!(self.engine.settle_all(), bytes);
        Ok(())
    }
}
