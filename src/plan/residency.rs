#![forbid(unsafe_code)]
//! From spilled gaps and offsets to a plan.

use super::graph::{Graph, NodeKind};
use super::makespan::makespan;
use super::result::{Plan, Spill, Stopped};
use super::timeline::Timeline;

/// A buffer between two spills: from its ALLOC or a SPILL_IN to a SPILL_OUT or its FREE.
///
/// A SPILL_OUT runs right after the event before its gap and a SPILL_IN right before the event
/// after it, so a residency takes part in the positions of both its first and its last event: two
/// of one memory that share a position must not share a byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Residency {
    /// The buffer.
    pub buffer: u32,
    /// The position of its first event.
    pub first: u32,
    /// The position of its last event.
    pub last: u32,
    /// What it takes of the room of its memory, see [`Graph::footprint`].
    pub size: u64,
}

/// The residencies that spilling these gaps leaves: by ascending buffer, then by position.
/// `spilled` has an entry for each gap of the timeline.
#[must_use]
pub fn residencies(graph: &Graph, timeline: &Timeline, spilled: &[bool]) -> Vec<Residency> {
    let count = spilled.iter().filter(|&&gap| gap).count();
    let mut list = Vec::with_capacity(graph.buffers() + count);
    for buffer in 0..graph.buffers() as u32 {
        let events = timeline.events(buffer);
        let spilled = &spilled[timeline.first_gap(buffer)..];
        let mut first = 0;
        for at in 0..events.len() {
            if at + 1 == events.len() || spilled[at] {
                list.push(Residency {
                    buffer,
                    first: events[first],
                    last: events[at],
                    size: graph.footprint(buffer),
                });
                first = at + 1;
            }
        }
    }
    list
}

/// The plan that spills these gaps and puts each residency at its offset. `offsets` has an entry for
/// each of [`residencies`], such that no two conflict; a residency in a memory for one buffer at a
/// time, or of no bytes, is put at 0.
///
/// # Panics
/// Where an array is shorter than it says above.
#[must_use]
pub fn emit(graph: &Graph, timeline: &Timeline, spilled: &[bool], offsets: &[u64]) -> Plan {
    Emitter::new(graph, timeline, spilled, offsets).run()
}

/// Where a residency is put for good.
fn offset_of(graph: &Graph, buffer: u32, offset: u64) -> u64 {
    let single = graph.memories()[graph.memory(buffer) as usize].single;
    match single || graph.size(buffer) == 0 {
        true => 0,
        false => offset,
    }
}

struct Emitter<'a> {
    graph: &'a Graph,
    timeline: &'a Timeline,
    spilled: &'a [bool],
    offsets: &'a [u64],
    /// Of each buffer: events seen.
    seen: Vec<usize>,
    /// Of each buffer: the residency that it is in, or was in last.
    residency: Vec<usize>,
    /// Of each buffer: the number of its latest spill.
    spill: Vec<u32>,
    resident: Vec<u64>,
    plan: Plan,
}

impl<'a> Emitter<'a> {
    fn new(
        graph: &'a Graph,
        timeline: &'a Timeline,
        spilled: &'a [bool],
        offsets: &'a [u64],
    ) -> Self {
        let buffers = graph.buffers();
        let count = spilled.iter().filter(|&&gap| gap).count();
        let mut residency = Vec::with_capacity(buffers);
        let mut next = 0;
        for buffer in 0..buffers as u32 {
            residency.push(next);
            let gaps = timeline.first_gap(buffer)..;
            let gaps = &spilled[gaps][..timeline.events(buffer).len() - 1];
            next += 1 + gaps.iter().filter(|&&gap| gap).count();
        }
        let initial = (0..buffers as u32)
            .map(|buffer| offset_of(graph, buffer, offsets[residency[buffer as usize]]))
            .collect();
        Self {
            graph,
            timeline,
            spilled,
            offsets,
            seen: vec![0; buffers],
            residency,
            spill: vec![0; buffers],
            resident: vec![0; graph.memories().len()],
            plan: Plan {
                offsets: initial,
                spills: Vec::with_capacity(count),
                order: Vec::with_capacity(graph.len() + 2 * count),
                extra_bytes: 0,
                spill_cycles: 0,
                makespan: 0,
                peaks: vec![0; graph.memories().len()],
                lower_bound: 0,
                proved: false,
                stopped: Stopped::Finished,
            },
        }
    }

    fn run(mut self) -> Plan {
        let graph = self.graph;
        for &node in self.timeline.order() {
            match graph.kind(node) {
                NodeKind::Alloc(buffer) => {
                    self.enter(buffer);
                    self.plan.order.push(node);
                    self.after(buffer);
                }
                NodeKind::Free(buffer) => {
                    self.before(buffer);
                    self.plan.order.push(node);
                    self.leave(buffer);
                }
                NodeKind::Operation => {
                    for usage in graph.uses(node) {
                        self.before(usage.buffer);
                    }
                    self.plan.order.push(node);
                    for usage in graph.uses(node) {
                        self.after(usage.buffer);
                    }
                }
            }
        }
        self.plan.makespan = makespan(graph, self.timeline, self.spilled, &self.plan);
        self.plan.proved = self.plan.extra_bytes == 0;
        self.plan
    }

    fn enter(&mut self, buffer: u32) {
        let memory = self.graph.memory(buffer) as usize;
        self.resident[memory] += self.graph.size(buffer);
        self.plan.peaks[memory] = self.plan.peaks[memory].max(self.resident[memory]);
    }

    fn leave(&mut self, buffer: u32) {
        self.resident[self.graph.memory(buffer) as usize] -= self.graph.size(buffer);
    }

    /// Before an event other than the ALLOC: reloads the buffer if the gap was spilled.
    fn before(&mut self, buffer: u32) {
        let at = buffer as usize;
        if !self.spilled[self.timeline.first_gap(buffer) + self.seen[at] - 1] {
            return;
        }
        self.residency[at] += 1;
        let offset = offset_of(self.graph, buffer, self.offsets[self.residency[at]]);
        self.plan.spills[self.spill[at] as usize].offset = offset;
        let node = self.graph.len() as u32 + 2 * self.spill[at] + 1;
        self.plan.order.push(node);
        self.enter(buffer);
    }

    /// After an event other than the FREE: spills the buffer if the gap is to be.
    fn after(&mut self, buffer: u32) {
        let at = buffer as usize;
        let gap = self.seen[at];
        self.seen[at] += 1;
        if !self.spilled[self.timeline.first_gap(buffer) + gap] {
            return;
        }
        let number = self.plan.spills.len() as u32;
        self.spill[at] = number;
        self.plan.spills.push(Spill { buffer, offset: 0 });
        self.plan.order.push(self.graph.len() as u32 + 2 * number);
        let (out, back) = self.timeline.gap_cycles(self.graph, buffer, gap);
        self.plan.extra_bytes += self.timeline.gap_traffic(buffer, gap);
        self.plan.spill_cycles += out + back;
        self.leave(buffer);
    }
}
