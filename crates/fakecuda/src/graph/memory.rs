//! What allocation and free nodes own.
//!
//! The address of an allocation node stays the same over launches. The memory behind it is the
//! graph's, and that of its executable graph, from the node's making on; a launch allocates it in the
//! sense that a program may use it, and has to free it unless the graph does.

use super::Graphs;
use super::node::{Content, Edge};
use crate::exec::StreamId;
use crate::state::State;
use crate::status::{Code, Result};
use std::collections::BTreeMap;

/// The memory of an allocation node.
#[derive(Debug)]
struct Allocation {
    device: usize,
    bytes: u64,
    /// The handle of the graph with the node.
    graph: u64,
    /// The graph, and executable graphs of it, as long as they exist.
    holders: u32,
    /// Launched, and not freed since.
    is_live: bool,
    /// Free nodes, with their graphs. At most one in a graph, and if its own graph has one no other.
    freed_by: Vec<(u64, u64)>,
}

/// What graphs use of a device's memory, in bytes.
#[derive(Clone, Copy, Debug, Default)]
pub struct MemoryUse {
    pub used: u64,
    pub used_high: u64,
    pub reserved: u64,
    pub reserved_high: u64,
}

/// The memory of all graphs.
#[derive(Debug, Default)]
pub struct GraphMemory {
    allocations: BTreeMap<u64, Allocation>,
    uses: BTreeMap<usize, MemoryUse>,
}

impl GraphMemory {
    fn usage(&mut self, device: usize) -> &mut MemoryUse {
        self.uses.entry(device).or_default()
    }

    fn allocation(&self, address: u64) -> Result<&Allocation> {
        self.allocations.get(&address).ok_or(Code::INVALID_VALUE)
    }

    /// A free node goes with its graph.
    pub fn forget_free(&mut self, address: u64, node: u64) {
        if let Some(allocation) = self.allocations.get_mut(&address) {
            allocation.freed_by.retain(|&(other, _)| other != node);
        }
    }

    /// The number of the device, and the bytes.
    pub fn describe(&self, address: u64) -> Result<(usize, u64)> {
        let allocation = self.allocation(address)?;
        Ok((allocation.device, allocation.bytes))
    }

    /// Whether it was launched and not freed since.
    pub fn is_live(&self, address: u64) -> bool {
        self.allocations
            .get(&address)
            .is_some_and(|found| found.is_live)
    }

    /// Launches or frees it.
    pub fn set_live(&mut self, address: u64, is_live: bool) {
        let Some(allocation) = self.allocations.get_mut(&address) else {
            return;
        };
        if allocation.is_live == is_live {
            return;
        }
        allocation.is_live = is_live;
        let (device, bytes) = (allocation.device, allocation.bytes);
        let usage = self.usage(device);
        if is_live {
            usage.used += bytes;
            usage.used_high = usage.used_high.max(usage.used);
        } else {
            usage.used -= bytes;
        }
    }

    /// An executable graph has it too.
    pub fn hold(&mut self, address: u64) {
        if let Some(allocation) = self.allocations.get_mut(&address) {
            allocation.holders += 1;
        }
    }
}

impl Graphs {
    /// What graphs use of a device's memory.
    pub fn memory_use(&mut self, device: usize) -> &mut MemoryUse {
        self.memory.usage(device)
    }

    /// Where an allocation node's memory is: the number of the device, and the bytes.
    pub fn describe_memory(&self, address: u64) -> Result<(usize, u64)> {
        self.memory.describe(address)
    }
}

impl State {
    /// Adds an allocation node to a graph, and gives the node and the address.
    ///
    /// # Errors
    /// `INVALID_VALUE`: no bytes, no such graph, wrong dependencies. `OUT_OF_MEMORY`.
    pub fn add_allocation(
        &mut self,
        graph: u64,
        device: usize,
        bytes: u64,
        edges: Vec<Edge>,
    ) -> Result<(u64, u64)> {
        self.graphs.graph(graph)?;
        self.graphs.check_edges(graph, &edges)?;
        if bytes == 0 {
            return Err(Code::INVALID_VALUE);
        }
        let address = self.graph_allocate(device, bytes)?;
        let allocation = Allocation {
            device,
            bytes,
            graph,
            holders: 1,
            is_live: false,
            freed_by: Vec::new(),
        };
        self.graphs.memory.allocations.insert(address, allocation);
        let usage = self.graphs.memory.usage(device);
        usage.reserved += bytes;
        usage.reserved_high = usage.reserved_high.max(usage.reserved);
        let node = self
            .graphs
            .add_node(graph, Content::Allocate { address }, edges)?;
        Ok((node, address))
    }

    /// Adds a free node to a graph.
    ///
    /// # Errors
    /// `INVALID_VALUE`: not an allocation node's address, or one that may not be freed there.
    pub fn add_free(&mut self, graph: u64, address: u64, edges: Vec<Edge>) -> Result<u64> {
        self.graphs.graph(graph)?;
        let allocation = self.graphs.memory.allocation(address)?;
        let owning = allocation.graph;
        let mut frees = allocation.freed_by.iter();
        // Either the owning graph frees it, or others do, each once.
        if frees.any(|&(_, by)| by == graph || (by == owning) != (graph == owning)) {
            return Err(Code::INVALID_VALUE);
        }
        let node = self
            .graphs
            .add_node(graph, Content::Free { address }, edges)?;
        let allocation = self.graphs.memory.allocations.get_mut(&address);
        allocation
            .expect("it was found")
            .freed_by
            .push((node, graph));
        Ok(node)
    }

    /// An allocation while a stream captures: a node of its graph.
    pub fn capture_allocation(
        &mut self,
        stream: StreamId,
        device: usize,
        bytes: u64,
    ) -> Result<u64> {
        let (graph, edges) = self.capture_position(stream)?;
        let (node, address) = self.add_allocation(graph, device, bytes, edges)?;
        self.capture_advance(stream, node);
        Ok(address)
    }

    /// A free while a stream captures: a node of its graph.
    pub fn capture_free(&mut self, stream: StreamId, address: u64) -> Result {
        let (graph, edges) = self.capture_position(stream)?;
        let node = self.add_free(graph, address, edges)?;
        self.capture_advance(stream, node);
        Ok(())
    }

    /// A program frees a graph's memory. `None`: no graph owns the address.
    pub fn free_graph_memory(&mut self, address: u64) -> Option<Result> {
        let allocation = self.graphs.memory.allocations.get(&address)?;
        if !allocation.is_live {
            return Some(Err(Code::INVALID_VALUE));
        }
        self.graphs.memory.set_live(address, false);
        self.release_graph_memory(address);
        Some(Ok(()))
    }

    /// A graph or an executable graph with the allocation goes.
    pub(super) fn let_go_graph_memory(&mut self, address: u64) {
        if let Some(allocation) = self.graphs.memory.allocations.get_mut(&address) {
            allocation.holders -= 1;
        }
        self.release_graph_memory(address);
    }

    /// Gives memory back that no graph has and no program uses.
    pub(super) fn release_graph_memory(&mut self, address: u64) {
        let Some(allocation) = self.graphs.memory.allocations.get(&address) else {
            return;
        };
        if allocation.holders > 0 || allocation.is_live {
            return;
        }
        let (device, bytes) = (allocation.device, allocation.bytes);
        self.graphs.memory.allocations.remove(&address);
        self.graphs.memory.usage(device).reserved -= bytes;
        // Nothing can be done about memory that went with its context.
        let _ = self.graph_release(address);
    }
}
