#![forbid(unsafe_code)]
//! A plan as it is put together, memory by memory.

use crate::plan::error::PlanError;
use crate::plan::graph::Graph;
use crate::plan::heuristic;
use crate::plan::residency::emit;
use crate::plan::result::Plan;
use crate::plan::timeline::Timeline;

/// Spilled gaps, and where each residency lies.
#[derive(Clone, Debug)]
pub struct Draft {
    /// Of each gap of the timeline: it is spilled.
    pub spilled: Vec<bool>,
    /// Of each event of the timeline that starts a residency: its offset. Events are numbered like
    /// gaps, with one more a buffer.
    pub offsets: Vec<u64>,
    /// Of each memory: the bytes that its spills move.
    pub traffic: Vec<u128>,
}

/// The number of a buffer's first event.
pub fn first_event(timeline: &Timeline, buffer: u32) -> usize {
    timeline.first_gap(buffer) + buffer as usize
}

impl Draft {
    /// The first level's plan if it starts with these gaps spilled. It spills as many more as it takes
    /// to place what is left.
    pub fn place(
        graph: &Graph,
        timeline: &Timeline,
        spilled: Vec<bool>,
    ) -> Result<Self, PlanError> {
        let placed = heuristic::best(graph, timeline, spilled)?;
        Ok(Self::new(graph, timeline, placed))
    }

    fn new(graph: &Graph, timeline: &Timeline, placed: heuristic::Placed) -> Self {
        let mut draft = Self {
            spilled: placed.spilled,
            offsets: vec![0; timeline.gaps() + graph.buffers()],
            traffic: vec![0; graph.memories().len()],
        };
        let mut offsets = placed.offsets.into_iter();
        for buffer in 0..graph.buffers() as u32 {
            let gaps = timeline.events(buffer).len() - 1;
            let mut starts = true;
            for at in 0..=gaps {
                if starts {
                    let event = first_event(timeline, buffer) + at;
                    draft.offsets[event] = offsets.next().unwrap_or(0);
                }
                starts = at < gaps && draft.spilled[timeline.first_gap(buffer) + at];
                if starts {
                    let traffic = &mut draft.traffic[graph.memory(buffer) as usize];
                    *traffic += u128::from(timeline.gap_traffic(buffer, at));
                }
            }
        }
        draft
    }

    /// Takes over what another draft has for a memory.
    pub fn adopt(&mut self, timeline: &Timeline, memory: u32, buffers: &[u32], other: &Self) {
        for &buffer in buffers {
            let gaps = timeline.events(buffer).len() - 1;
            let first = timeline.first_gap(buffer);
            self.spilled[first..first + gaps].copy_from_slice(&other.spilled[first..first + gaps]);
            let first = first_event(timeline, buffer);
            self.offsets[first..=first + gaps]
                .copy_from_slice(&other.offsets[first..=first + gaps]);
        }
        self.traffic[memory as usize] = other.traffic[memory as usize];
    }

    /// The plan that this is.
    pub fn emit(&self, graph: &Graph, timeline: &Timeline) -> Plan {
        let mut offsets = Vec::new();
        for buffer in 0..graph.buffers() as u32 {
            let gaps = timeline.events(buffer).len() - 1;
            let event = first_event(timeline, buffer);
            offsets.push(self.offsets[event]);
            for gap in 0..gaps {
                if self.spilled[timeline.first_gap(buffer) + gap] {
                    offsets.push(self.offsets[event + gap + 1]);
                }
            }
        }
        emit(graph, timeline, &self.spilled, &offsets)
    }
}

/// The buffers of a memory.
pub fn buffers(graph: &Graph, memory: u32) -> impl Iterator<Item = u32> {
    (0..graph.buffers() as u32).filter(move |buffer| graph.memory(*buffer) == memory)
}

/// The bytes that the spills of a memory move.
pub fn traffic(graph: &Graph, timeline: &Timeline, memory: u32, spilled: &[bool]) -> u128 {
    buffers(graph, memory)
        .flat_map(|buffer| (0..timeline.events(buffer).len() - 1).map(move |gap| (buffer, gap)))
        .filter(|(buffer, gap)| spilled[timeline.first_gap(*buffer) + gap])
        .map(|(buffer, gap)| u128::from(timeline.gap_traffic(buffer, gap)))
        .sum()
}
