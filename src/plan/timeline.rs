#![forbid(unsafe_code)]
//! A graph in one order: at which positions each buffer is needed, and what lies between.

use super::error::PlanError;
use super::graph::Graph;
use super::order::positions;

/// The events of every buffer in one order.
///
/// An event of a buffer is the position of its ALLOC, of a use or of its FREE. Gap `k` lies between
/// its events `k` and `k + 1`; over all buffers gaps are numbered from
/// [`first_gap`](Self::first_gap). A buffer is resident at each of its events; a gap may be spilled
/// whatever its length.
#[derive(Clone, Debug)]
pub struct Timeline {
    order: Vec<u32>,
    position: Vec<u32>,
    events: Vec<u32>,
    /// Where the gaps of each buffer start, and where the last one's end. As a buffer has one event
    /// more than gaps, its events start at this plus its id.
    first_gap: Vec<usize>,
    gap_traffic: Vec<u64>,
    /// Of each gap: a copy outside is what the buffer holds.
    gap_backed: Vec<bool>,
}

impl Timeline {
    /// The events of a graph in an order.
    ///
    /// # Errors
    /// Those of [`check_order`](super::check_order).
    pub fn new(graph: &Graph, order: &[u32]) -> Result<Self, PlanError> {
        let position = positions(graph, order)?;
        let mut first_gap = Vec::with_capacity(graph.buffers() + 1);
        let mut gaps = 0;
        for buffer in 0..graph.buffers() as u32 {
            first_gap.push(gaps);
            gaps += graph.users(buffer).len() + 1;
        }
        first_gap.push(gaps);
        let mut timeline = Self {
            order: order.to_vec(),
            position,
            events: vec![0; gaps + graph.buffers()],
            first_gap,
            gap_traffic: vec![0; gaps],
            gap_backed: vec![false; gaps],
        };
        timeline.fill(graph);
        Ok(timeline)
    }

    /// Collects the events in the order's order, which leaves each buffer's ascending.
    fn fill(&mut self, graph: &Graph) {
        let buffers = graph.buffers();
        let mut next: Vec<usize> = (0..buffers).map(|b| self.first_gap[b] + b).collect();
        // Whether the copy outside, if there is one, is what the buffer holds.
        let mut right: Vec<bool> = (0..buffers as u32).map(|b| graph.is_backed(b)).collect();
        for (at, &node) in self.order.iter().enumerate() {
            let mut event = |buffer: u32| {
                let slot = &mut next[buffer as usize];
                self.events[*slot] = at as u32;
                *slot += 1;
                *slot - 1 - buffer as usize
            };
            match graph.kind(node) {
                super::NodeKind::Alloc(buffer) => {
                    let gap = event(buffer);
                    self.gap_traffic[gap] = graph.traffic(buffer);
                    self.gap_backed[gap] = graph.is_backed(buffer);
                }
                super::NodeKind::Free(buffer) => {
                    event(buffer);
                }
                super::NodeKind::Operation => {
                    let copies = graph.is_copy_in(node);
                    for usage in graph.uses(node) {
                        let right = &mut right[usage.buffer as usize];
                        *right = copies || (*right && !usage.writes);
                        let ways = if *right { 1 } else { 2 };
                        let gap = event(usage.buffer);
                        self.gap_traffic[gap] = graph.size(usage.buffer).saturating_mul(ways);
                        self.gap_backed[gap] = *right;
                    }
                }
            }
        }
    }

    /// The order.
    #[must_use]
    pub fn order(&self) -> &[u32] {
        &self.order
    }

    /// The position of a node.
    #[must_use]
    pub fn position(&self, node: u32) -> u32 {
        self.position[node as usize]
    }

    /// The positions at which a buffer must be resident: its ALLOC, its uses, its FREE; ascending.
    #[must_use]
    pub fn events(&self, buffer: u32) -> &[u32] {
        let buffer = buffer as usize;
        &self.events[self.first_gap[buffer] + buffer..=self.first_gap[buffer + 1] + buffer]
    }

    /// The number, over all buffers, of a buffer's first gap.
    #[must_use]
    pub fn first_gap(&self, buffer: u32) -> usize {
        self.first_gap[buffer as usize]
    }

    /// Gaps of all buffers.
    #[must_use]
    pub fn gaps(&self) -> usize {
        self.gap_traffic.len()
    }

    /// Bytes moved if gap `gap` of a buffer is spilled: its size where the copy outside is what
    /// the buffer holds there, else twice its size.
    ///
    /// There is a copy outside if a COPY_IN uses the buffer; an operation that is known to write
    /// the buffer makes it stale, until a COPY_IN.
    #[must_use]
    pub fn gap_traffic(&self, buffer: u32, gap: usize) -> u64 {
        self.gap_traffic[self.first_gap[buffer as usize] + gap]
    }

    /// Cycles of the SPILL_OUT and of the SPILL_IN if gap `gap` of a buffer is spilled.
    #[must_use]
    pub fn gap_cycles(&self, graph: &Graph, buffer: u32, gap: usize) -> (u64, u64) {
        let (cost, size) = (graph.cost(), graph.size(buffer));
        let cycles =
            |per_byte: u64, fixed: u64| size.saturating_mul(per_byte).saturating_add(fixed);
        let right = self.gap_backed[self.first_gap[buffer as usize] + gap];
        let out = match cost.backed_out_is_free && right {
            true => 0,
            false => cycles(cost.out_per_byte, cost.out_fixed),
        };
        (out, cycles(cost.in_per_byte, cost.in_fixed))
    }
}

#[cfg(test)]
mod tests {
    use crate::plan::{
        BufferInput, Graph, GraphInput, MemoryInput, NO_PIPE, NodeInput, NodeKind, Timeline, Use,
        greedy_order,
    };

    /// One buffer of 10 bytes; each operation says whether it is a COPY_IN and what it does.
    fn graph(operations: &[(bool, bool, bool)]) -> Graph {
        let node = |kind, is_copy_in| NodeInput {
            kind,
            pipe: NO_PIPE,
            cycles: 0,
            is_copy_in,
        };
        let mut input = GraphInput {
            nodes: vec![node(NodeKind::Alloc(0), false)],
            buffers: vec![BufferInput {
                size: 10,
                memory: 0,
            }],
            memories: vec![MemoryInput {
                name: "M".to_owned(),
                capacity: 10,
                single: false,
            }],
            ..GraphInput::default()
        };
        for &(copies, reads, writes) in operations {
            let usage = Use {
                buffer: 0,
                reads,
                writes,
            };
            input.uses.push((input.nodes.len() as u32, usage));
            input.nodes.push(node(NodeKind::Operation, copies));
        }
        input.nodes.push(node(NodeKind::Free(0), false));
        Graph::new(&input).expect("a valid graph")
    }

    fn gaps(graph: &Graph) -> Vec<(u64, u64)> {
        let order = greedy_order(graph).expect("no cycle");
        let timeline = Timeline::new(graph, &order).expect("a topological order");
        assert_eq!(timeline.gaps() + 1, timeline.events(0).len());
        (0..timeline.gaps())
            .map(|gap| {
                let (out, _) = timeline.gap_cycles(graph, 0, gap);
                (timeline.gap_traffic(0, gap), out)
            })
            .collect()
    }

    #[test]
    fn a_known_write_makes_the_copy_outside_stale() {
        let (read, write, unknown) = (
            (false, true, false),
            (false, false, true),
            (false, false, false),
        );
        let copy = (true, false, true);
        let (right, stale) = ((10, 0), (20, 170));
        assert_eq!(
            gaps(&graph(&[copy, read, write, read, copy])),
            [right, right, right, stale, stale, right]
        );
        assert_eq!(gaps(&graph(&[copy, unknown])), [right; 3]);
        assert_eq!(gaps(&graph(&[read, unknown, write])), [stale; 4]);
    }
}
