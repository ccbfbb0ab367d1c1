#![forbid(unsafe_code)]
//! The pass itself.

use std::cmp::Reverse;

use super::Placed;
use super::next_uses::NextUses;
use super::space::{End, NONE, Space};
use super::window::{Window, around, sweep};
use crate::plan::error::{PlanError, PlanErrorKind};
use crate::plan::graph::{Graph, NodeKind};
use crate::plan::timeline::Timeline;

/// A buffer at the position that the pass is at.
#[derive(Clone, Copy, Debug)]
struct State {
    /// Its block, or [`NONE`] while it is not resident.
    block: u32,
    /// Its latest event.
    seen: u32,
    /// The position of its next event, once its ALLOC has run.
    due: u32,
    /// The latest position that needs it.
    needed: u32,
    /// The latest position that it was placed at.
    placed: u32,
    /// What a spill before its next event moves.
    traffic: u64,
}

/// Up to so many blocks a memory is looked through as a whole for the best window.
const WHOLE: usize = 512;
/// In a larger one, the windows around so many of those needed last are compared.
const CANDIDATES: usize = 48;
/// And fewer where so many, one after the other, had none better than before.
const PATIENCE: u32 = 12;

/// Which end of a hole a buffer is put at. To keep apart what is unlike keeps holes together; what
/// tells best depends on the graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ends {
    /// All at the low end.
    Low,
    /// Those smaller than one part in so many of the memory at the high end.
    SmallHigh(u64),
    /// Those at the high end that are not needed again soon.
    LateHigh,
}

/// Goes through the order once. The gaps in `spilled` are spilled in any case.
pub(super) fn run(
    graph: &Graph,
    timeline: &Timeline,
    spilled: Vec<bool>,
    ends: Ends,
) -> Result<Placed, PlanError> {
    let mut pass = Pass::new(graph, timeline, spilled, ends);
    let mut operands = Vec::new();
    for (at, &node) in timeline.order().iter().enumerate() {
        pass.now = at as u32;
        match graph.kind(node) {
            NodeKind::Alloc(buffer) => {
                pass.bring(&[buffer])?;
                pass.keep(buffer);
            }
            NodeKind::Free(buffer) => {
                pass.bring(&[buffer])?;
                let seen = pass.states[buffer as usize].seen as usize;
                pass.next.clear(timeline, buffer, seen + 1);
                pass.drop(buffer);
            }
            NodeKind::Operation => {
                operands.clear();
                operands.extend(graph.uses(node).iter().map(|usage| usage.buffer));
                pass.bring(&operands)?;
                for &buffer in &operands {
                    let seen = &mut pass.states[buffer as usize].seen;
                    *seen += 1;
                    let seen = *seen as usize;
                    pass.next.clear(timeline, buffer, seen);
                    pass.keep(buffer);
                }
            }
        }
    }
    Ok(pass.placed())
}

struct Pass<'a> {
    graph: &'a Graph,
    timeline: &'a Timeline,
    spaces: Vec<Space>,
    next: NextUses,
    /// The position of the node that is about to run.
    now: u32,
    states: Vec<State>,
    spilled: Vec<bool>,
    /// Of each buffer: where it is after its ALLOC.
    initial: Vec<u64>,
    /// Of each spilled gap: where the buffer is after it.
    reloaded: Vec<u64>,
    /// Of each memory: the smallest buffer that is not empty.
    smallest: Vec<u64>,
    ends: Ends,
    /// Of each memory: how many positions ahead is soon.
    soon: Vec<u32>,
    /// Scratch: those that must be placed now.
    absent: Vec<u32>,
}

impl<'a> Pass<'a> {
    fn new(graph: &'a Graph, timeline: &'a Timeline, spilled: Vec<bool>, ends: Ends) -> Self {
        let buffers = graph.buffers();
        let memories = graph.memories().len();
        let mut total = vec![0u128; memories];
        let mut smallest = vec![u64::MAX; memories];
        for buffer in 0..buffers as u32 {
            let (memory, size) = (graph.memory(buffer) as usize, graph.footprint(buffer));
            total[memory] += u128::from(size);
            if size > 0 {
                smallest[memory] = smallest[memory].min(size);
            }
        }
        let room = |memory: usize| graph.room(memory as u32);
        let contended: Vec<bool> = (0..memories)
            .map(|memory| total[memory] > u128::from(room(memory)))
            .collect();
        Self {
            graph,
            timeline,
            spaces: (0..memories)
                .map(|memory| Space::new(room(memory)))
                .collect(),
            next: NextUses::new(graph, timeline, &contended),
            now: 0,
            states: vec![
                State {
                    block: NONE,
                    seen: 0,
                    due: NONE,
                    needed: NONE,
                    placed: NONE,
                    traffic: 0,
                };
                buffers
            ],
            spilled,
            initial: vec![0; buffers],
            reloaded: vec![0; timeline.gaps()],
            smallest,
            ends,
            soon: soon(graph, timeline),
            absent: Vec::new(),
        }
    }

    /// Leaves a buffer resident after its latest event, unless the gap is to be spilled.
    fn keep(&mut self, buffer: u32) {
        let state = &mut self.states[buffer as usize];
        let seen = state.seen as usize;
        if self.spilled[self.timeline.first_gap(buffer) + seen] {
            self.drop(buffer);
        } else {
            state.due = self.timeline.events(buffer)[seen + 1];
            state.traffic = self.timeline.gap_traffic(buffer, seen);
            self.next.set(self.timeline, buffer, seen + 1);
        }
    }

    /// Makes the buffers that the node needs resident.
    fn bring(&mut self, operands: &[u32]) -> Result<(), PlanError> {
        let mut absent = std::mem::take(&mut self.absent);
        absent.clear();
        for &buffer in operands {
            let state = &mut self.states[buffer as usize];
            state.needed = self.now;
            if state.block == NONE && self.graph.footprint(buffer) > 0 {
                absent.push(buffer);
            }
        }
        if absent.len() > 1 {
            // The largest first, while there is most choice.
            absent.sort_by_key(|&buffer| Reverse(self.graph.footprint(buffer)));
        }
        for &buffer in &absent {
            // Placing anew may have brought it already.
            if self.is_absent(buffer) && !self.place(buffer) {
                self.place_anew(operands, self.graph.memory(buffer))?;
            }
        }
        self.absent = absent;
        Ok(())
    }

    fn is_absent(&self, buffer: u32) -> bool {
        self.states[buffer as usize].block == NONE
    }

    /// Places a buffer in a hole, made or found; false if those that must stay leave none.
    fn place(&mut self, buffer: u32) -> bool {
        let memory = self.graph.memory(buffer);
        let Some(hole) = self.hole(memory, self.graph.footprint(buffer)) else {
            return false;
        };
        let end = self.end(buffer);
        self.put(buffer, hole, end);
        true
    }

    /// The end of a hole that a buffer is put at.
    fn end(&self, buffer: u32) -> End {
        let memory = self.graph.memory(buffer);
        let high = match self.ends {
            Ends::Low => false,
            Ends::SmallHigh(parts) => {
                self.graph.footprint(buffer) < self.graph.room(memory) / parts
            }
            Ends::LateHigh => {
                let events = self.timeline.events(buffer);
                let later = events[self.states[buffer as usize].seen as usize..].iter();
                let next = later.copied().find(|&at| at > self.now);
                next.is_some_and(|at| at - self.now > self.soon[memory as usize])
            }
        };
        if high { End::High } else { End::Low }
    }

    /// A hole of at least `need` bytes, found or made.
    fn hole(&mut self, memory: u32, need: u64) -> Option<u32> {
        let space = &self.spaces[memory as usize];
        if let Some(hole) = space.best_fit(need) {
            return Some(hole);
        }
        let Window { first, last, .. } = self.window(memory, need)?;
        Some(self.vacate(memory, first, last))
    }

    /// Puts a buffer at an end of a hole.
    fn put(&mut self, buffer: u32, hole: u32, end: End) {
        let space = &mut self.spaces[self.graph.memory(buffer) as usize];
        let block = space.take(hole, self.graph.footprint(buffer), buffer, end);
        let offset = space.block(block).offset;
        let state = &mut self.states[buffer as usize];
        state.block = block;
        state.placed = self.now;
        if self.timeline.events(buffer)[0] == self.now {
            self.initial[buffer as usize] = offset;
        } else {
            self.reloaded[self.timeline.first_gap(buffer) + state.seen as usize] = offset;
        }
    }

    /// What it costs to spill a resident in the gap that it is in, or that it must stay.
    fn cost(&self, buffer: u32) -> Option<u128> {
        let state = &self.states[buffer as usize];
        let needed = state.needed == self.now;
        (!needed).then(|| cost(state.traffic, u64::from(state.due - self.now)))
    }

    /// The best window of at least `need` bytes, or none if those that must stay leave none.
    fn window(&self, memory: u32, need: u64) -> Option<Window> {
        let space = &self.spaces[memory as usize];
        let whole = (space.first(), NONE);
        if space.len() <= WHOLE {
            return sweep(space, whole, need, None, |buffer| self.cost(buffer));
        }
        let mut best: Option<Window> = None;
        for costly in [false, true] {
            let mut in_vain = 0;
            for buffer in self.next.last(memory, costly).take(CANDIDATES) {
                let Some(own) = self.cost(buffer) else {
                    continue;
                };
                let size = u128::from(self.graph.footprint(buffer));
                // Whatever else is cleared costs at least as much a byte.
                let least = own * u128::from(self.smallest[memory as usize]) / size;
                if best.is_some_and(|best| best.cost <= least) {
                    break;
                }
                let range = around(space, self.states[buffer as usize].block, need);
                let better = sweep(space, range, need, best, |buffer| self.cost(buffer));
                in_vain = if better == best { in_vain + 1 } else { 0 };
                if in_vain == PATIENCE {
                    break;
                }
                best = better;
            }
        }
        best.or_else(|| sweep(space, whole, need, None, |buffer| self.cost(buffer)))
    }

    /// Spills the residents of a window, and returns the hole that this makes.
    fn vacate(&mut self, memory: u32, first: u32, last: u32) -> u32 {
        let space = &self.spaces[memory as usize];
        let mut victims = Vec::new();
        let mut id = first;
        let mut hole = first;
        loop {
            let block = space.block(id);
            if block.buffer != NONE {
                victims.push(block.buffer);
            }
            if id == last {
                break;
            }
            id = block.next;
        }
        for buffer in victims {
            hole = self.spill(buffer);
        }
        hole
    }

    /// Spills a resident in the gap that it is in, and returns the hole that it leaves.
    fn spill(&mut self, buffer: u32) -> u32 {
        let seen = self.states[buffer as usize].seen as usize;
        self.spilled[self.timeline.first_gap(buffer) + seen] = true;
        self.next.clear(self.timeline, buffer, seen + 1);
        self.drop(buffer)
    }

    /// Takes a resident out, and returns the hole that it leaves.
    fn drop(&mut self, buffer: u32) -> u32 {
        let block = std::mem::replace(&mut self.states[buffer as usize].block, NONE);
        match block {
            NONE => NONE,
            block => self.spaces[self.graph.memory(buffer) as usize].release(block),
        }
    }

    /// Places what a node needs of a memory where those that must stay leave the absent ones no room:
    /// moves as few of them as will do, each by a spill in the gap that ends here.
    fn place_anew(&mut self, operands: &[u32], memory: u32) -> Result<(), PlanError> {
        let mut group: Vec<u32> = operands
            .iter()
            .copied()
            .filter(|&buffer| self.graph.memory(buffer) == memory)
            .filter(|&buffer| self.graph.footprint(buffer) > 0)
            .collect();
        group.sort_by_key(|&buffer| Reverse(self.graph.footprint(buffer)));
        // What was placed for this node only may go elsewhere for nothing.
        self.drop_placed(&group);
        let mut stay: Vec<u32> = group.clone();
        stay.retain(|&buffer| !self.is_absent(buffer));
        stay.sort_by_key(|&buffer| Reverse(self.states[buffer as usize].traffic));
        loop {
            let mut absent = group.clone();
            absent.retain(|&buffer| self.is_absent(buffer));
            if self.place_together(&absent, memory) {
                return Ok(());
            }
            if absent.iter().all(|&buffer| self.place(buffer)) {
                return Ok(());
            }
            self.drop_placed(&group);
            // The cheapest that helps by itself, or else the cheapest.
            let helps = |&at: &usize| {
                let mut items = absent.clone();
                items.push(stay[at]);
                let mut others = stay.clone();
                others.remove(at);
                self.may_fit(memory, items, &others)
            };
            let cheapest_first = (0..stay.len()).rev();
            let helpful = cheapest_first.clone().find(helps);
            let Some(at) = helpful.or(cheapest_first.clone().next()) else {
                return Err(PlanError::new(PlanErrorKind::Internal).about("an operation's room"));
            };
            let moved = stay.remove(at);
            self.spill(moved);
        }
    }

    /// Takes those of a group out that were placed for this node only.
    fn drop_placed(&mut self, group: &[u32]) {
        for &buffer in group {
            if self.states[buffer as usize].placed == self.now {
                self.drop(buffer);
            }
        }
    }

    /// Whether there is room for all items between the `others`, which stay; false also where the
    /// largest in the tightest stretch first does not find it.
    fn may_fit(&self, memory: u32, mut items: Vec<u32>, others: &[u32]) -> bool {
        let space = &self.spaces[memory as usize];
        let mut taken: Vec<(u64, u64)> = others
            .iter()
            .map(|&buffer| space.block(self.states[buffer as usize].block))
            .map(|block| (block.offset, block.offset + block.size))
            .collect();
        taken.sort_unstable();
        let mut stretches = Vec::with_capacity(taken.len() + 1);
        let mut from = 0;
        for (start, end) in taken {
            stretches.push(start - from);
            from = end;
        }
        stretches.push(self.graph.room(memory) - from);
        items.sort_by_key(|&buffer| Reverse(self.graph.footprint(buffer)));
        items.iter().all(|&buffer| {
            let size = self.graph.footprint(buffer);
            let fitting = stretches.iter_mut().filter(|stretch| **stretch >= size);
            let tightest = fitting.min_by_key(|stretch| **stretch);
            tightest.map(|stretch| *stretch -= size).is_some()
        })
    }

    /// Places absent buffers of a memory side by side; false if those that must stay leave no room.
    fn place_together(&mut self, group: &[u32], memory: u32) -> bool {
        let need = group
            .iter()
            .map(|&buffer| self.graph.footprint(buffer))
            .sum();
        let Some(mut hole) = self.hole(memory, need) else {
            return false;
        };
        for &buffer in group {
            self.put(buffer, hole, End::Low);
            let block = self.states[buffer as usize].block;
            hole = self.spaces[memory as usize].block(block).next;
        }
        true
    }

    fn placed(self) -> Placed {
        let mut offsets = Vec::with_capacity(self.initial.len());
        for buffer in 0..self.graph.buffers() as u32 {
            offsets.push(self.initial[buffer as usize]);
            let first = self.timeline.first_gap(buffer);
            for gap in first..first + self.timeline.events(buffer).len() - 1 {
                if self.spilled[gap] {
                    offsets.push(self.reloaded[gap]);
                }
            }
        }
        Placed {
            spilled: self.spilled,
            offsets,
        }
    }
}

/// A quarter of what the gaps of each memory's buffers are long in the mean, in positions.
fn soon(graph: &Graph, timeline: &Timeline) -> Vec<u32> {
    let mut sums = vec![(0u64, 0u64); graph.memories().len()];
    for buffer in 0..graph.buffers() as u32 {
        let events = timeline.events(buffer);
        let (length, count) = &mut sums[graph.memory(buffer) as usize];
        *length += u64::from(events[events.len() - 1] - events[0]);
        *count += events.len() as u64 - 1;
    }
    let quarter = |(length, count): (u64, u64)| length.checked_div(4 * count).unwrap_or(0) as u32;
    sums.into_iter().map(quarter).collect()
}

/// Bytes moved over positions won, as a fixed-point number.
fn cost(traffic: u64, distance: u64) -> u128 {
    const BITS: u32 = 24;
    match traffic >> (u64::BITS - BITS) {
        0 => u128::from((traffic << BITS) / distance),
        _ => (u128::from(traffic) << BITS) / u128::from(distance),
    }
}
