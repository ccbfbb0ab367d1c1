#![forbid(unsafe_code)]
//! What the search reorders: steps, and what they use of memories that can be short.

use super::super::csr::Lists;
use super::super::graph::{Graph, NodeKind};
use super::track::Rule;

/// No use, no step, no position.
pub(super) const NONE: u32 = u32::MAX;

/// What a use does to the copy that a buffer may have outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Access {
    /// The copy is what the buffer holds.
    Fills,
    /// The copy is stale.
    Writes,
    /// As it was.
    Keeps,
}

/// The graph as the search sees it.
///
/// A step is an operation, or a cache node that a dependency ties to something else than its own
/// buffer's uses; all other cache nodes go next to the steps that need them. Memories that hold all
/// of their buffers at once are left out, and so are buffers that take no room.
#[derive(Debug)]
pub(super) struct Problem {
    /// The node of each step, ascending.
    pub(super) node: Vec<u32>,
    /// The steps that each step depends on, ascending.
    pub(super) before: Lists<u32>,
    /// The uses of each step.
    uses: Lists<u32>,
    /// The same, by step and memory: `step * memories + memory`.
    uses_in: Lists<u32>,
    /// The step of each use.
    pub(super) use_step: Vec<u32>,
    /// The buffer of each use.
    pub(super) use_buffer: Vec<u32>,
    /// What each use does.
    pub(super) use_access: Vec<Access>,
    /// What each buffer takes of its memory's room.
    pub(super) size: Vec<u64>,
    /// Bytes of each buffer.
    bytes: Vec<u64>,
    /// Whether each buffer has a copy outside.
    pub(super) backed: Vec<bool>,
    /// The memory of each buffer, as an index into `room`; [`NONE`] if it is left out.
    pub(super) memory: Vec<u32>,
    /// The rank of each buffer's size among all sizes.
    pub(super) size_rank: Vec<u32>,
    /// The room of each memory that takes part.
    pub(super) room: Vec<u64>,
    /// The rules that each memory can be priced by; one at least.
    pub(super) rules: Vec<Vec<Rule>>,
}

impl Problem {
    pub(super) fn new(graph: &Graph) -> Self {
        let buffers = graph.buffers();
        let node: Vec<u32> = (0..graph.len() as u32)
            .filter(|&node| is_step(graph, node))
            .collect();
        let mut step_of = vec![NONE; graph.len()];
        for (step, &node) in node.iter().enumerate() {
            step_of[node as usize] = step as u32;
        }
        let before = Lists::new(node.len(), || {
            node.iter().enumerate().flat_map(|(step, &node)| {
                let needs = graph
                    .predecessors(node)
                    .iter()
                    .map(|&need| step_of[need as usize]);
                needs
                    .filter(|&need| need != NONE)
                    .map(move |need| (step as u32, need))
            })
        });
        let (memory, room) = short_memories(graph);
        let mut problem = Self {
            before,
            uses: Lists::new(0, std::iter::empty),
            uses_in: Lists::new(0, std::iter::empty),
            use_step: Vec::new(),
            use_buffer: Vec::new(),
            use_access: Vec::new(),
            size: (0..buffers as u32)
                .map(|buffer| graph.footprint(buffer))
                .collect(),
            bytes: (0..buffers as u32)
                .map(|buffer| graph.size(buffer))
                .collect(),
            backed: (0..buffers as u32)
                .map(|buffer| graph.is_backed(buffer))
                .collect(),
            size_rank: size_ranks(graph),
            rules: Vec::new(),
            memory,
            room,
            node,
        };
        problem.add_uses(graph);
        problem.rules = (0..problem.room.len() as u32)
            .map(|memory| problem.rules_for(memory))
            .collect();
        problem
    }

    fn add_uses(&mut self, graph: &Graph) {
        for (step, &node) in self.node.iter().enumerate() {
            let mut add = |buffer: u32, access: Access| {
                if self.memory[buffer as usize] != NONE {
                    self.use_step.push(step as u32);
                    self.use_buffer.push(buffer);
                    self.use_access.push(access);
                }
            };
            match graph.kind(node) {
                NodeKind::Alloc(buffer) | NodeKind::Free(buffer) => add(buffer, Access::Keeps),
                NodeKind::Operation => {
                    for usage in graph.uses(node) {
                        let access = match (graph.is_copy_in(node), usage.writes) {
                            (true, _) => Access::Fills,
                            (false, true) => Access::Writes,
                            (false, false) => Access::Keeps,
                        };
                        add(usage.buffer, access);
                    }
                }
            }
        }
        let memories = self.room.len() as u32;
        let step = |used: usize| self.use_step[used];
        let cell =
            |used: usize| step(used) * memories + self.memory[self.use_buffer[used] as usize];
        let count = self.use_step.len();
        self.uses = Lists::new(self.node.len(), || {
            (0..count).map(|used| (step(used), used as u32))
        });
        self.uses_in = Lists::new(self.node.len() * memories as usize, || {
            (0..count).map(|used| (cell(used), used as u32))
        });
    }

    fn rules_for(&self, memory: u32) -> Vec<Rule> {
        let mut ranks = (NONE, 0);
        let (mut cheap, mut dear) = (false, false);
        for (used, &buffer) in self.use_buffer.iter().enumerate() {
            if self.memory[buffer as usize] == memory {
                let rank = self.size_rank[buffer as usize];
                ranks = (ranks.0.min(rank), ranks.1.max(rank));
                let backed = self.backed[buffer as usize];
                cheap |= backed;
                dear |= !backed || self.use_access[used] == Access::Writes;
            }
        }
        match (ranks.0 < ranks.1, cheap && dear) {
            (false, false) => vec![Rule::Farthest],
            (false, true) => vec![Rule::Weighted, Rule::CheapFirst],
            (true, false) => vec![Rule::Farthest, Rule::LargeFirst],
            (true, true) => vec![Rule::Weighted, Rule::LargeFirst, Rule::CheapFirst],
        }
    }

    /// Steps.
    pub(super) fn steps(&self) -> usize {
        self.node.len()
    }

    /// The uses of a step.
    #[inline]
    pub(super) fn uses(&self, step: u32) -> &[u32] {
        self.uses.list(step)
    }

    /// The uses of a step in one memory.
    #[inline]
    pub(super) fn uses_in(&self, step: u32, memory: usize) -> &[u32] {
        self.uses_in
            .list(step * self.room.len() as u32 + memory as u32)
    }

    /// Bytes moved by a spill of a buffer.
    #[inline]
    pub(super) fn moved(&self, buffer: u32, dirty: bool) -> u64 {
        self.bytes[buffer as usize].saturating_mul(1 + u64::from(dirty))
    }
}

/// Whether a node's place in the order is not given by its buffer's uses.
fn is_step(graph: &Graph, node: u32) -> bool {
    let stranger = |other: &u32, buffer: u32, own: u32| {
        let uses = graph.uses(*other);
        *other != own
            && uses
                .binary_search_by_key(&buffer, |usage| usage.buffer)
                .is_err()
    };
    match graph.kind(node) {
        NodeKind::Operation => true,
        NodeKind::Alloc(buffer) => {
            let own = graph.free(buffer);
            !graph.predecessors(node).is_empty()
                || graph
                    .successors(node)
                    .iter()
                    .any(|other| stranger(other, buffer, own))
        }
        NodeKind::Free(buffer) => {
            let own = graph.alloc(buffer);
            !graph.successors(node).is_empty()
                || graph
                    .predecessors(node)
                    .iter()
                    .any(|other| stranger(other, buffer, own))
        }
    }
}

/// For each buffer its memory among those that do not hold all of their buffers at once, and the
/// room of these.
fn short_memories(graph: &Graph) -> (Vec<u32>, Vec<u64>) {
    let mut sum = vec![0u64; graph.memories().len()];
    for buffer in 0..graph.buffers() as u32 {
        let sum = &mut sum[graph.memory(buffer) as usize];
        *sum = sum.saturating_add(graph.footprint(buffer));
    }
    let mut index = vec![NONE; sum.len()];
    let mut room = Vec::new();
    for (memory, &sum) in sum.iter().enumerate() {
        if sum > graph.room(memory as u32) {
            index[memory] = room.len() as u32;
            room.push(graph.room(memory as u32));
        }
    }
    let memory = (0..graph.buffers() as u32)
        .map(|buffer| match graph.footprint(buffer) {
            0 => NONE,
            _ => index[graph.memory(buffer) as usize],
        })
        .collect();
    (memory, room)
}

fn size_ranks(graph: &Graph) -> Vec<u32> {
    let size = |buffer: u32| graph.footprint(buffer);
    let mut sizes: Vec<u64> = (0..graph.buffers() as u32).map(size).collect();
    sizes.sort_unstable();
    sizes.dedup();
    (0..graph.buffers() as u32)
        .map(|buffer| sizes.partition_point(|&other| other < size(buffer)) as u32)
        .collect()
}
