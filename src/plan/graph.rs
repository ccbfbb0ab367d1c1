#![forbid(unsafe_code)]
//! The graph that is planned: operations, buffers with their ALLOC and FREE, memories, costs.
//!
//! [`GraphInput`] is what a caller has; [`Graph`] is the same, validated, with what the levels look
//! up stored so that each look-up is one index.

use super::csr::Lists;
use super::error::{PlanError, PlanErrorKind};
use super::validate;

/// The pipe of a node that runs on none.
pub const NO_PIPE: u32 = u32::MAX;
/// The pipe of a reload in [`SpillCost::contest`].
pub const MTE2: u32 = 2;
/// The pipe of a spill in [`SpillCost::contest`].
pub const MTE3: u32 = 3;

/// A buffer that an operation uses. With both flags false the access is unknown: it may do both,
/// and what [`Graph::is_backed`] says of the buffer is left as it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Use {
    /// The buffer.
    pub buffer: u32,
    /// The operation reads it.
    pub reads: bool,
    /// The operation writes it.
    pub writes: bool,
}

/// What a node is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NodeKind {
    /// It computes or copies.
    Operation,
    /// The buffer comes into being.
    Alloc(u32),
    /// The buffer is gone.
    Free(u32),
}

/// A node; its id is its index.
#[derive(Clone, Copy, Debug)]
pub struct NodeInput {
    /// What it is.
    pub kind: NodeKind,
    /// The pipe that it runs on, one node at a time; or [`NO_PIPE`].
    pub pipe: u32,
    /// How long it runs.
    pub cycles: u64,
    /// It copies from outside into the buffers that it uses, so that these need not be written
    /// out when they are spilled.
    pub is_copy_in: bool,
}

/// A buffer; its id is its index.
#[derive(Clone, Copy, Debug)]
pub struct BufferInput {
    /// Bytes.
    pub size: u64,
    /// The index of its memory.
    pub memory: u32,
}

/// A memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemoryInput {
    /// Its name in messages.
    pub name: String,
    /// Bytes.
    pub capacity: u64,
    /// It holds one buffer at a time, whatever the sizes.
    pub single: bool,
}

/// What a spill costs in cycles, and where it runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SpillCost {
    /// Cycles of a SPILL_OUT for each byte.
    pub out_per_byte: u64,
    /// Cycles of a SPILL_OUT besides.
    pub out_fixed: u64,
    /// Cycles of a SPILL_IN for each byte.
    pub in_per_byte: u64,
    /// Cycles of a SPILL_IN besides.
    pub in_fixed: u64,
    /// A SPILL_OUT takes no cycles where the copy outside is still right.
    pub backed_out_is_free: bool,
    /// The pipe of every SPILL_OUT.
    pub out_pipe: u32,
    /// The pipe of every SPILL_IN.
    pub in_pipe: u32,
}

impl SpillCost {
    /// The costs of the contest that the kernels of the NPU come from: 2 * size + 150 cycles each
    /// way, on [`MTE3`] and [`MTE2`], and nothing for what has a copy outside.
    #[must_use]
    pub const fn contest() -> Self {
        Self {
            out_per_byte: 2,
            out_fixed: 150,
            in_per_byte: 2,
            in_fixed: 150,
            backed_out_is_free: true,
            out_pipe: MTE3,
            in_pipe: MTE2,
        }
    }
}

impl Default for SpillCost {
    fn default() -> Self {
        Self::contest()
    }
}

/// A graph as a caller has it.
#[derive(Clone, Debug, Default)]
pub struct GraphInput {
    /// The nodes; an id is an index.
    pub nodes: Vec<NodeInput>,
    /// The uses, each with the operation that it belongs to, in any order.
    pub uses: Vec<(u32, Use)>,
    /// The dependencies: the first runs before the second. That a buffer's ALLOC runs before its
    /// uses and these before its FREE is understood.
    pub edges: Vec<(u32, u32)>,
    /// The buffers; an id is an index.
    pub buffers: Vec<BufferInput>,
    /// The memories.
    pub memories: Vec<MemoryInput>,
    /// What spills cost.
    pub cost: SpillCost,
}

/// A valid graph.
///
/// Every buffer fits its memory, the buffers of every operation fit together, the dependencies have
/// no cycle, and all sums that a plan can need fit: bytes moved into an `i64`, cycles into a
/// `u64`, node ids (with those of all spills) into a `u32`.
#[derive(Clone, Debug)]
pub struct Graph {
    nodes: Vec<NodeInput>,
    buffers: Vec<BufferInput>,
    memories: Vec<MemoryInput>,
    cost: SpillCost,
    uses: Lists<Use>,
    successors: Lists<u32>,
    predecessors: Lists<u32>,
    users: Lists<u32>,
    alloc: Vec<u32>,
    free: Vec<u32>,
    backed: Vec<bool>,
}

impl Graph {
    /// Checks a graph and stores it.
    ///
    /// # Errors
    /// Whatever is wrong with it, see [`PlanErrorKind`]; [`PlanErrorKind::BufferTooLarge`] and
    /// [`PlanErrorKind::OperandsTooLarge`] where no order and no spills could help.
    pub fn new(input: &GraphInput) -> Result<Self, PlanError> {
        validate::counts(input)?;
        let (alloc, free) = validate::lifetimes(input)?;
        let uses = validate::uses(input)?;
        let users = users(input.buffers.len(), &uses);
        let mut backed = vec![false; input.buffers.len()];
        for (node, list) in uses.iter().enumerate() {
            if input.nodes[node].is_copy_in {
                for usage in list {
                    backed[usage.buffer as usize] = true;
                }
            }
        }
        let (successors, predecessors) = validate::dependencies(input, &users, &alloc, &free)?;
        let graph = Self {
            nodes: input.nodes.clone(),
            buffers: input.buffers.clone(),
            memories: input.memories.clone(),
            cost: input.cost,
            uses,
            successors,
            predecessors,
            users,
            alloc,
            free,
            backed,
        };
        validate::sizes(&graph)?;
        validate::sums(&graph)?;
        Ok(graph)
    }

    /// Nodes.
    #[must_use]
    #[allow(clippy::len_without_is_empty)]
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// What a node is.
    #[must_use]
    pub fn kind(&self, node: u32) -> NodeKind {
        self.nodes[node as usize].kind
    }

    /// The pipe of a node, or [`NO_PIPE`].
    #[must_use]
    pub fn pipe(&self, node: u32) -> u32 {
        self.nodes[node as usize].pipe
    }

    /// How long a node runs.
    #[must_use]
    pub fn cycles(&self, node: u32) -> u64 {
        self.nodes[node as usize].cycles
    }

    /// Whether an operation copies from outside into its buffers.
    #[must_use]
    pub fn is_copy_in(&self, node: u32) -> bool {
        self.nodes[node as usize].is_copy_in
    }

    /// The buffers of an operation, by ascending id, each once; none of an ALLOC or a FREE.
    #[must_use]
    pub fn uses(&self, node: u32) -> &[Use] {
        self.uses.list(node)
    }

    /// The nodes that depend on one, by ascending id, each once. ALLOC before use before FREE is
    /// among the dependencies.
    #[must_use]
    pub fn successors(&self, node: u32) -> &[u32] {
        self.successors.list(node)
    }

    /// The nodes that one depends on, as [`Self::successors`].
    #[must_use]
    pub fn predecessors(&self, node: u32) -> &[u32] {
        self.predecessors.list(node)
    }

    /// Buffers.
    #[must_use]
    pub fn buffers(&self) -> usize {
        self.buffers.len()
    }

    /// Bytes of a buffer.
    #[must_use]
    pub fn size(&self, buffer: u32) -> u64 {
        self.buffers[buffer as usize].size
    }

    /// The index of a buffer's memory.
    #[must_use]
    pub fn memory(&self, buffer: u32) -> u32 {
        self.buffers[buffer as usize].memory
    }

    /// What a buffer takes of the [room](Self::room) of its memory: its bytes, or in a memory for
    /// one buffer at a time 1.
    #[must_use]
    pub fn footprint(&self, buffer: u32) -> u64 {
        let buffer = &self.buffers[buffer as usize];
        match self.memories[buffer.memory as usize].single {
            true => 1,
            false => buffer.size,
        }
    }

    /// What the footprints of the buffers that are resident in a memory may come to: its capacity,
    /// or 1 where it holds one buffer at a time.
    #[must_use]
    pub fn room(&self, memory: u32) -> u64 {
        let memory = &self.memories[memory as usize];
        match memory.single {
            true => 1,
            false => memory.capacity,
        }
    }

    /// The node where a buffer comes into being.
    #[must_use]
    pub fn alloc(&self, buffer: u32) -> u32 {
        self.alloc[buffer as usize]
    }

    /// The node where a buffer is gone.
    #[must_use]
    pub fn free(&self, buffer: u32) -> u32 {
        self.free[buffer as usize]
    }

    /// The operations that use a buffer, by ascending id, each once.
    #[must_use]
    pub fn users(&self, buffer: u32) -> &[u32] {
        self.users.list(buffer)
    }

    /// Whether a COPY_IN uses the buffer, so that it has a copy outside.
    #[must_use]
    pub fn is_backed(&self, buffer: u32) -> bool {
        self.backed[buffer as usize]
    }

    /// Bytes that a spill of the buffer moves: its size if it has a copy outside, else twice its
    /// size. [`Timeline::gap_traffic`](super::Timeline::gap_traffic) knows of later writes too.
    #[must_use]
    pub fn traffic(&self, buffer: u32) -> u64 {
        let ways = if self.is_backed(buffer) { 1 } else { 2 };
        self.size(buffer).saturating_mul(ways)
    }

    /// The memories.
    #[must_use]
    pub fn memories(&self) -> &[MemoryInput] {
        &self.memories
    }

    /// What spills cost.
    #[must_use]
    pub fn cost(&self) -> &SpillCost {
        &self.cost
    }

    /// An error about a buffer, with its memory's name.
    pub(super) fn error(&self, kind: PlanErrorKind, buffer: u32) -> PlanError {
        let memory = &self.memories[self.memory(buffer) as usize];
        PlanError::new(kind).of(buffer).within(&memory.name)
    }
}

fn users(buffers: usize, uses: &Lists<Use>) -> Lists<u32> {
    let pairs = || {
        uses.iter()
            .enumerate()
            .flat_map(|(node, list)| list.iter().map(move |usage| (usage.buffer, node as u32)))
    };
    Lists::new(buffers, pairs)
}
