#![forbid(unsafe_code)]
//! Backtracking over placements from the bottom up, within a capacity.
//!
//! After M. D. Moffitt, "MiniMalloc: A Lightweight Memory Allocator for Hardware-Accelerated Machine
//! Learning" (ASPLOS 2023). Buffers are placed by ascending offset, each on top of what is below it;
//! of equal offsets, by the rank that an order gives them. Every placement that fits can be pushed
//! down to one of these, so trying them all is a proof. What is cut:
//! - dominance: a buffer whose offset is at or above the top that another would have if that one came
//!   now leaves room for the other below itself;
//! - sections: the buffers of a section that are still to come go on top of its floor, and what lies
//!   below the offset reached is lost;
//! - parts: what no remaining lifetime connects is searched separately, and a part that fails takes
//!   back the choice that made it a part, not the latest one;
//! - twins: buffers of equal size and lifetime are interchangeable.
//!
//! Sections count how often they were found too full. An order that puts the buffers of such
//! sections first tends to succeed where others fail; see [`effort`](super::effort).

use super::instance::Item;
use super::problem::{NONE, Problem};
use crate::plan::Stopped;

/// How a search ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// With a placement, in [`Search::offsets`].
    Found,
    /// There is no placement.
    Exhausted,
    /// After as many nodes as were allowed.
    Limit,
    /// On request.
    Stopped(Stopped),
}

/// Nodes between two looks at the clock.
const NODES_PER_LOOK: u64 = 128;

/// Items to place that overlaps connect.
#[derive(Clone, Copy)]
struct Part {
    /// Where its items are in the arena, and how many.
    start: usize,
    count: usize,
    first_section: u32,
    end_section: u32,
    /// No item may be placed below this offset, nor at it with a lower rank.
    floor: u64,
    rank: u32,
    /// The frame whose choice made it, or [`NONE`].
    parent: u32,
    /// The part to be placed after it, or [`NONE`].
    next: u32,
}

/// A part with the item of it that is placed first, at present.
struct Frame {
    part: u32,
    item: u32,
    offset: u64,
    rank: u32,
    /// The least top that an item would have; NONE of this part is placed at or above it.
    ceiling: u64,
    /// Lengths of the stacks before the choice.
    changes: usize,
    raised: usize,
    arena: usize,
    parts: usize,
}

/// What a search needs, kept between runs.
pub(super) struct Search<'a> {
    problem: &'a Problem<'a>,
    pub offsets: Vec<u64>,
    /// How often each section was too full.
    pub failures: Vec<u64>,
    /// The least offset that an item can have; `u64::MAX` once it is placed.
    least: Vec<u64>,
    /// The least offset that anything to come can have in a section.
    floor: Vec<u64>,
    /// The sizes of what is to come in a section.
    load: Vec<u64>,
    /// An item of each section that lately had the least offset there.
    witness: Vec<u32>,
    rank: Vec<u32>,
    arena: Vec<u32>,
    parts: Vec<Part>,
    frames: Vec<Frame>,
    /// Former values of `least` and of `floor`.
    changes: Vec<(u32, u64)>,
    raised: Vec<(u32, u64)>,
    /// For each section, how many more of the ranges being united are open in it; all 0 between uses.
    open: Vec<i32>,
    reach: Vec<u32>,
    capacity: u64,
}

impl<'a> Search<'a> {
    pub fn new(problem: &'a Problem<'a>) -> Self {
        let sections = problem.load.len();
        let items = problem.items.len();
        Self {
            problem,
            offsets: vec![0; items],
            failures: vec![0; sections],
            least: vec![0; items],
            floor: vec![0; sections],
            load: vec![0; sections],
            witness: problem.members.iter().map(|list| list[0]).collect(),
            rank: vec![0; items],
            arena: Vec::new(),
            parts: Vec::new(),
            frames: Vec::new(),
            changes: Vec::new(),
            raised: Vec::new(),
            open: vec![0; sections + 1],
            reach: vec![0; sections],
            capacity: 0,
        }
    }

    /// Looks for a placement within `capacity`, below `u64::MAX`. `order` is all items, the most
    /// urgent first. `spent` counts the choices tried; more than `limit` are not. `stop` is asked
    /// now and then with the choices tried.
    pub fn run(
        &mut self,
        order: &[u32],
        capacity: u64,
        limit: u64,
        spent: &mut u64,
        stop: impl Fn(u64) -> Option<Stopped>,
    ) -> Outcome {
        self.reset(order, capacity);
        if self.load.iter().any(|&load| load > capacity) {
            return Outcome::Exhausted;
        }
        let sections = self.load.len() as u32;
        let mut part = self.split(0, order.len(), (0, sections), (0, 0), (NONE, NONE));
        while part != NONE {
            self.open_frame(part);
            part = loop {
                if !self.advance() {
                    if self.frames.is_empty() {
                        return Outcome::Exhausted;
                    }
                    continue;
                }
                *spent += 1;
                if *spent > limit {
                    return Outcome::Limit;
                }
                if *spent % NODES_PER_LOOK == 0 {
                    if let Some(stopped) = stop(*spent) {
                        return Outcome::Stopped(stopped);
                    }
                }
                if self.place() {
                    break self.split_rest();
                }
            };
        }
        Outcome::Found
    }

    fn reset(&mut self, order: &[u32], capacity: u64) {
        self.capacity = capacity;
        self.least.fill(0);
        self.floor.fill(0);
        self.load.copy_from_slice(self.problem.load);
        for (rank, &id) in (0..).zip(order) {
            self.rank[id as usize] = rank;
        }
        self.arena.clear();
        self.arena.extend_from_slice(order);
        self.parts.clear();
        self.frames.clear();
        self.changes.clear();
        self.raised.clear();
    }

    fn open_frame(&mut self, part: u32) {
        let Part { start, count, .. } = self.parts[part as usize];
        let tops = self.arena[start..start + count].iter().map(|&id| {
            let id = id as usize;
            self.least[id].saturating_add(self.problem.items[id].size)
        });
        self.frames.push(Frame {
            part,
            item: NONE,
            offset: 0,
            rank: 0,
            ceiling: tops.min().unwrap_or(0),
            changes: self.changes.len(),
            raised: self.raised.len(),
            arena: self.arena.len(),
            parts: self.parts.len(),
        });
    }

    /// Takes back the choice of the last frame and makes the next one. False: there was none, and
    /// all frames after the choice that made the part are gone.
    fn advance(&mut self) -> bool {
        self.take_back();
        let Some(frame) = self.frames.last_mut() else {
            return false;
        };
        let part = self.parts[frame.part as usize];
        let (floor, rank) = if frame.item == NONE {
            (part.floor, part.rank)
        } else {
            (frame.offset, frame.rank + 1)
        };
        let mut best = NONE;
        let mut offset = frame.ceiling;
        // By ascending rank.
        for &id in &self.arena[part.start..part.start + part.count] {
            let least = self.least[id as usize];
            if least >= offset || least < floor || (least == floor && self.rank[id as usize] < rank)
            {
                continue;
            }
            let twin = self.problem.twin[id as usize];
            if twin != NONE && self.least[twin as usize] != u64::MAX {
                continue;
            }
            best = id;
            offset = least;
            if least == floor {
                break;
            }
        }
        if best != NONE {
            frame.item = best;
            frame.offset = offset;
            frame.rank = self.rank[best as usize];
            return true;
        }
        self.frames.pop();
        let keep = if part.parent == NONE {
            0
        } else {
            part.parent as usize + 1
        };
        while self.frames.len() > keep {
            self.take_back();
            self.frames.pop();
        }
        false
    }

    /// Takes back the choice of the last frame, which stays.
    fn take_back(&mut self) {
        let Some(frame) = self.frames.last() else {
            return;
        };
        if frame.item == NONE {
            return;
        }
        // A choice that was not placed has changed nothing.
        if self.least[frame.item as usize] == u64::MAX {
            let item = self.problem.items[frame.item as usize];
            for load in &mut self.load[item.first as usize..item.end as usize] {
                *load += item.size;
            }
        }
        for &(id, former) in self.changes[frame.changes..].iter().rev() {
            self.least[id as usize] = former;
        }
        for &(section, former) in self.raised[frame.raised..].iter().rev() {
            self.floor[section as usize] = former;
        }
        self.changes.truncate(frame.changes);
        self.raised.truncate(frame.raised);
        self.arena.truncate(frame.arena);
        self.parts.truncate(frame.parts);
    }

    /// Places the choice of the last frame. False: some section has become too full.
    fn place(&mut self) -> bool {
        let Some(frame) = self.frames.last() else {
            return false;
        };
        let (id, offset) = (frame.item, frame.offset);
        let part = self.parts[frame.part as usize];
        let item = self.problem.items[id as usize];
        let top = offset.saturating_add(item.size);
        self.offsets[id as usize] = offset;
        self.changes.push((id, self.least[id as usize]));
        self.least[id as usize] = u64::MAX;
        for section in item.first..item.end {
            self.raised.push((section, self.floor[section as usize]));
            self.floor[section as usize] = top;
            self.load[section as usize] -= item.size;
        }
        // What overlaps it and is to come goes on top.
        let (mut from, mut to) = (item.first, item.end);
        for &other in self.problem.overlaps.list(id) {
            let least = self.least[other as usize];
            if least < top {
                self.changes.push((other, least));
                self.least[other as usize] = top;
                let Item { first, end, .. } = self.problem.items[other as usize];
                self.open[first as usize] += 1;
                self.open[end as usize] -= 1;
                from = from.min(first);
                to = to.max(end);
            }
        }
        self.raise_floors(from, to) && self.all_fit(part, offset)
    }

    /// Raises the floor of the sections marked in `open`, within `from..to`, to the least offset of
    /// what is to come there.
    fn raise_floors(&mut self, from: u32, to: u32) -> bool {
        let mut fits = true;
        let mut open = 0;
        for section in from..to {
            open += std::mem::take(&mut self.open[section as usize]);
            let floor = self.floor[section as usize];
            let load = self.load[section as usize];
            if open == 0 || load == 0 || !fits {
                continue;
            }
            if self.least[self.witness[section as usize] as usize] <= floor {
                continue;
            }
            let mut lowest = u64::MAX;
            for &id in self.problem.members.list(section) {
                let least = self.least[id as usize];
                if least < lowest {
                    lowest = least;
                    self.witness[section as usize] = id;
                    if lowest <= floor {
                        break;
                    }
                }
            }
            if lowest > floor {
                self.raised.push((section, floor));
                self.floor[section as usize] = lowest;
                if lowest.saturating_add(load) > self.capacity {
                    self.failures[section as usize] += 1;
                    fits = false;
                }
            }
        }
        self.open[to as usize] = 0;
        fits
    }

    fn all_fit(&mut self, part: Part, offset: u64) -> bool {
        let range = part.first_section as usize..part.end_section as usize;
        let mut sections = self.floor[range.clone()].iter().zip(&self.load[range]);
        let full = sections
            .position(|(&floor, &load)| floor.max(offset).saturating_add(load) > self.capacity);
        if let Some(at) = full {
            self.failures[part.first_section as usize + at] += 1;
        }
        full.is_none()
    }

    /// Makes parts of what the last frame's part has left. The first one to place, or [`NONE`].
    fn split_rest(&mut self) -> u32 {
        let last = self.frames.len() as u32 - 1;
        let Frame {
            part,
            item,
            offset,
            rank,
            ..
        } = self.frames[last as usize];
        let part = self.parts[part as usize];
        let start = self.arena.len();
        for at in part.start..part.start + part.count {
            if self.arena[at] != item {
                self.arena.push(self.arena[at]);
            }
        }
        let sections = (part.first_section, part.end_section);
        self.split(
            start,
            part.count - 1,
            sections,
            (offset, rank),
            (last, part.next),
        )
    }

    /// Makes parts of `count` items from `start` in the arena on.
    fn split(
        &mut self,
        start: usize,
        count: usize,
        sections: (u32, u32),
        (floor, rank): (u64, u32),
        (parent, mut next): (u32, u32),
    ) -> u32 {
        let reach = &mut self.reach[..];
        reach[sections.0 as usize..sections.1 as usize].fill(0);
        for &id in &self.arena[start..start + count] {
            let item = &self.problem.items[id as usize];
            let furthest = &mut reach[item.first as usize];
            *furthest = item.end.max(*furthest);
        }
        let mut section = sections.0;
        while section < sections.1 {
            let first_section = section;
            let mut end_section = self.reach[section as usize];
            section += 1;
            if end_section == 0 {
                continue;
            }
            while section < end_section {
                end_section = end_section.max(self.reach[section as usize]);
                section += 1;
            }
            let from = self.arena.len();
            let mut part = Part {
                start,
                count,
                first_section,
                end_section,
                floor,
                rank,
                parent,
                next,
            };
            for at in start..start + count {
                let id = self.arena[at];
                let item = &self.problem.items[id as usize];
                if item.first >= first_section && item.first < end_section {
                    self.arena.push(id);
                }
            }
            part.start = from;
            part.count = self.arena.len() - from;
            if part.count == count {
                // One part: it needs no list of its own.
                self.arena.truncate(from);
                part.start = start;
            }
            next = self.parts.len() as u32;
            self.parts.push(part);
        }
        next
    }
}
