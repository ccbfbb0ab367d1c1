#![forbid(unsafe_code)]
//! How long a plan runs.

use std::collections::BTreeMap;

use super::graph::{Graph, NO_PIPE, NodeKind};
use super::result::Plan;
use super::timeline::Timeline;

/// Cycles until the last node of a valid plan has run.
///
/// Each pipe runs its nodes in the plan's order, one at a time; a node waits for what it depends
/// on; a buffer that comes into being or is reloaded waits for every earlier residency that touched
/// any of its bytes to have ended. The dependencies of spills are: ALLOC, every earlier user and
/// the previous SPILL_IN before SPILL_OUT before SPILL_IN before every later user and FREE.
#[must_use]
pub fn makespan(graph: &Graph, timeline: &Timeline, spilled: &[bool], plan: &Plan) -> u64 {
    let mut clock = Clock {
        graph,
        pipes: Pipes::new(graph),
        memories: vec![Memory::default(); graph.memories().len()],
        end: vec![0; graph.len()],
        last: vec![0; graph.buffers()],
        reloaded: vec![0; graph.buffers()],
        offset: plan.offsets.clone(),
        total: 0,
    };
    // Of each buffer: the gap that it comes to next.
    let mut gap = vec![0; graph.buffers()];
    let nodes = graph.len() as u32;
    for &node in &plan.order {
        if node < nodes {
            clock.node(node);
            if let NodeKind::Operation = graph.kind(node) {
                for usage in graph.uses(node) {
                    gap[usage.buffer as usize] += 1;
                }
            }
            continue;
        }
        let spill = plan.spills[((node - nodes) / 2) as usize];
        let at = gap[spill.buffer as usize];
        debug_assert!(spilled[timeline.first_gap(spill.buffer) + at]);
        let (out, back) = timeline.gap_cycles(graph, spill.buffer, at);
        match (node - nodes) % 2 {
            0 => clock.spill_out(spill.buffer, out),
            _ => clock.spill_in(spill.buffer, spill.offset, back),
        }
    }
    clock.total
}

struct Clock<'a> {
    graph: &'a Graph,
    pipes: Pipes,
    memories: Vec<Memory>,
    /// When each node has run.
    end: Vec<u64>,
    /// Of each buffer: when everything that used it so far has run.
    last: Vec<u64>,
    /// Of each buffer: when its latest reload has run.
    reloaded: Vec<u64>,
    /// Where each buffer is.
    offset: Vec<u64>,
    total: u64,
}

impl Clock<'_> {
    fn node(&mut self, node: u32) {
        let graph = self.graph;
        let before = graph.predecessors(node).iter();
        let mut start = before
            .map(|&node| self.end[node as usize])
            .max()
            .unwrap_or(0);
        let kind = graph.kind(node);
        match kind {
            NodeKind::Alloc(buffer) => start = start.max(self.free_at(buffer)),
            NodeKind::Free(buffer) => start = start.max(self.reloaded[buffer as usize]),
            NodeKind::Operation => {
                for usage in graph.uses(node) {
                    start = start.max(self.reloaded[usage.buffer as usize]);
                }
            }
        }
        let end = self.run(graph.pipe(node), start, graph.cycles(node));
        self.end[node as usize] = end;
        match kind {
            NodeKind::Alloc(buffer) => self.last[buffer as usize] = end,
            NodeKind::Free(buffer) => self.leave(buffer, end),
            NodeKind::Operation => {
                for usage in graph.uses(node) {
                    let last = &mut self.last[usage.buffer as usize];
                    *last = end.max(*last);
                }
            }
        }
    }

    fn spill_out(&mut self, buffer: u32, cycles: u64) {
        let start = self.last[buffer as usize];
        let end = self.run(self.graph.cost().out_pipe, start, cycles);
        self.last[buffer as usize] = end;
        self.leave(buffer, end);
    }

    fn spill_in(&mut self, buffer: u32, offset: u64, cycles: u64) {
        self.offset[buffer as usize] = offset;
        let start = self.last[buffer as usize].max(self.free_at(buffer));
        let end = self.run(self.graph.cost().in_pipe, start, cycles);
        self.last[buffer as usize] = end;
        self.reloaded[buffer as usize] = end;
    }

    /// Runs a node on its pipe, and says when it has run.
    fn run(&mut self, pipe: u32, start: u64, cycles: u64) -> u64 {
        let end = match self.pipes.get(pipe) {
            Some(ready) => {
                *ready = start.max(*ready).saturating_add(cycles);
                *ready
            }
            None => start.saturating_add(cycles),
        };
        self.total = self.total.max(end);
        end
    }

    /// When the last of those before it in a buffer's place has left.
    fn free_at(&mut self, buffer: u32) -> u64 {
        let offset = self.offset[buffer as usize];
        let end = offset.saturating_add(self.graph.size(buffer));
        self.memories[self.graph.memory(buffer) as usize].latest(offset, end)
    }

    fn leave(&mut self, buffer: u32, time: u64) {
        let offset = self.offset[buffer as usize];
        let end = offset.saturating_add(self.graph.size(buffer));
        self.memories[self.graph.memory(buffer) as usize].set(offset, end, time);
    }
}

/// When each pipe has run what it was given.
struct Pipes {
    /// The pipes that there are, ascending.
    names: Vec<u32>,
    ready: Vec<u64>,
}

impl Pipes {
    fn new(graph: &Graph) -> Self {
        let mut names: Vec<u32> = (0..graph.len() as u32).map(|n| graph.pipe(n)).collect();
        names.extend([graph.cost().out_pipe, graph.cost().in_pipe]);
        names.sort_unstable();
        names.dedup();
        let ready = vec![0; names.len()];
        Self { names, ready }
    }

    fn get(&mut self, pipe: u32) -> Option<&mut u64> {
        if pipe == NO_PIPE {
            return None;
        }
        let at = self.names.binary_search(&pipe).ok()?;
        Some(&mut self.ready[at])
    }
}

/// When each byte of a memory was left for the last time: pieces by their first byte, each up to the
/// next. As in a valid plan a residency ends no earlier than any before it in the same bytes,
/// leaving sets its bytes' time, and the pieces inside become one: over a plan all steps take
/// O(n log n).
#[derive(Clone, Default)]
struct Memory {
    pieces: BTreeMap<u64, u64>,
    /// Scratch.
    inside: Vec<u64>,
}

impl Memory {
    /// The latest time of any byte from `from` up to `to`.
    fn latest(&self, from: u64, to: u64) -> u64 {
        if from >= to {
            return 0;
        }
        let first = self.pieces.range(..=from).next_back();
        let rest = self.pieces.range((
            std::ops::Bound::Excluded(from),
            std::ops::Bound::Excluded(to),
        ));
        first
            .into_iter()
            .chain(rest)
            .map(|(_, &time)| time)
            .max()
            .unwrap_or(0)
    }

    /// Sets the time of the bytes from `from` up to `to`.
    fn set(&mut self, from: u64, to: u64, time: u64) {
        if from >= to {
            return;
        }
        let after = self.pieces.range(..=to).next_back();
        let after = after.map_or(0, |(_, &time)| time);
        self.inside.clear();
        self.inside
            .extend(self.pieces.range(from..to).map(|(&start, _)| start));
        for start in &self.inside {
            self.pieces.remove(start);
        }
        self.pieces.insert(from, time);
        self.pieces.entry(to).or_insert(after);
    }
}

#[cfg(test)]
mod tests {
    use super::Memory;

    #[test]
    fn pieces_say_what_a_map_of_bytes_says() {
        let mut memory = Memory::default();
        let mut bytes = [0u64; 50];
        let mut state = 11u64;
        let mut random = move |bound: u64| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            (state >> 33) % bound
        };
        for time in 1..5_000 {
            let from = random(50);
            let to = from + random(51 - from);
            let inside = &mut bytes[from as usize..to as usize];
            let latest = inside.iter().max().copied().unwrap_or(0);
            assert_eq!(memory.latest(from, to), latest, "{from}..{to}");
            if random(2) == 0 {
                inside.fill(time);
                memory.set(from, to, time);
            }
        }
    }
}
