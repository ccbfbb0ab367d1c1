//! The planner as C has it, for tests in Rust.

use luma::ffi::{
    luma_access_t, luma_buffer_t, luma_edge_set_t, luma_edge_t, luma_graph_t, luma_last_error,
    luma_last_status, luma_memory_t, luma_node_kind_t, luma_node_t, luma_plan_edges,
    luma_plan_free, luma_plan_options_t, luma_plan_spills, luma_plan_t, luma_plan_view,
    luma_plan_view_t, luma_spill_cost_t, luma_status_t, luma_use_t,
};
use luma::plan::{GraphInput, NodeKind};
use std::ffi::{CStr, CString};
use std::ptr::{null, null_mut};

/// A graph in C's arrays.
#[derive(Clone, Debug, PartialEq)]
pub struct CGraph {
    pub nodes: Vec<luma_node_t>,
    pub uses: Vec<luma_use_t>,
    pub edges: Vec<luma_edge_t>,
    pub buffers: Vec<luma_buffer_t>,
    pub memories: Vec<(CString, u64, i32)>,
    pub cost: luma_spill_cost_t,
}

/// A status that is no success, with its message.
pub type Failure = (luma_status_t, String);

fn outcome(status: luma_status_t) -> Result<(), Failure> {
    assert_eq!(status, luma_last_status(), "the last status is the call's");
    // SAFETY: it is a string that ends in NUL and stays until the next call.
    let message = unsafe { CStr::from_ptr(luma_last_error()) };
    let message = message.to_str().expect("UTF-8").to_owned();
    match status {
        luma_status_t::LUMA_SUCCESS => Ok(()),
        status => Err((status, message)),
    }
}

impl CGraph {
    pub fn new(input: &GraphInput) -> CGraph {
        let nodes = input.nodes.iter().map(|node| {
            let (kind, buffer) = match node.kind {
                NodeKind::Alloc(buffer) => (luma_node_kind_t::LUMA_NODE_ALLOC, buffer),
                NodeKind::Free(buffer) => (luma_node_kind_t::LUMA_NODE_FREE, buffer),
                NodeKind::Operation if node.is_copy_in => (luma_node_kind_t::LUMA_NODE_COPY_IN, 0),
                NodeKind::Operation => (luma_node_kind_t::LUMA_NODE_OPERATION, 0),
            };
            luma_node_t {
                kind: kind as i32,
                buffer,
                pipe: node.pipe,
                reserved: 0,
                cycles: node.cycles,
            }
        });
        let uses = input.uses.iter().map(|&(node, used)| luma_use_t {
            node,
            buffer: used.buffer,
            access: match (used.reads, used.writes) {
                (false, false) => luma_access_t::LUMA_ACCESS_UNKNOWN,
                (true, false) => luma_access_t::LUMA_ACCESS_READ,
                (false, true) => luma_access_t::LUMA_ACCESS_WRITE,
                (true, true) => luma_access_t::LUMA_ACCESS_READ_WRITE,
            } as i32,
        });
        let cost = &input.cost;
        CGraph {
            nodes: nodes.collect(),
            uses: uses.collect(),
            edges: input
                .edges
                .iter()
                .map(|&(from, to)| luma_edge_t { from, to })
                .collect(),
            buffers: input
                .buffers
                .iter()
                .map(|buffer| luma_buffer_t {
                    size: buffer.size,
                    memory: buffer.memory,
                    reserved: 0,
                })
                .collect(),
            memories: input
                .memories
                .iter()
                .map(|memory| {
                    let name = CString::new(memory.name.clone()).expect("no NUL");
                    (name, memory.capacity, i32::from(memory.single))
                })
                .collect(),
            cost: luma_spill_cost_t {
                struct_size: size_of::<luma_spill_cost_t>(),
                out_cycles_per_byte: cost.out_per_byte,
                out_fixed_latency: cost.out_fixed,
                in_cycles_per_byte: cost.in_per_byte,
                in_fixed_latency: cost.in_fixed,
                out_pipe: cost.out_pipe,
                in_pipe: cost.in_pipe,
                charge_backed_out: i32::from(!cost.backed_out_is_free),
                reserved: 0,
            },
        }
    }

    /// Calls `body` with the graph as C passes it.
    pub fn pass<T>(&self, body: impl FnOnce(*const luma_graph_t) -> T) -> T {
        let memories: Vec<luma_memory_t> = self
            .memories
            .iter()
            .map(|(name, capacity, single)| luma_memory_t {
                name: name.as_ptr(),
                capacity: *capacity,
                single: *single,
                reserved: 0,
            })
            .collect();
        body(&luma_graph_t {
            struct_size: size_of::<luma_graph_t>(),
            nodes: self.nodes.as_ptr(),
            node_count: self.nodes.len(),
            uses: self.uses.as_ptr(),
            use_count: self.uses.len(),
            edges: self.edges.as_ptr(),
            edge_count: self.edges.len(),
            buffers: self.buffers.as_ptr(),
            buffer_count: self.buffers.len(),
            memories: memories.as_ptr(),
            memory_count: memories.len(),
            cost: &self.cost,
        })
    }

    /// Plans at the default options, in the greedy order where none is given.
    pub fn plan(&self, order: Option<&[u32]>) -> Result<CPlan, Failure> {
        self.plan_with(order, null())
    }

    /// Plans at other options.
    pub fn plan_with(
        &self,
        order: Option<&[u32]>,
        options: *const luma_plan_options_t,
    ) -> Result<CPlan, Failure> {
        let (ids, count) = order.map_or((null(), 0), |order| (order.as_ptr(), order.len()));
        let mut plan = null_mut();
        // SAFETY: the arrays are as long as they say.
        let status = self
            .pass(|graph| unsafe { luma_plan_spills(graph, ids, count, options, &raw mut plan) });
        outcome(status).inspect_err(|_| assert!(plan.is_null(), "written on failure"))?;
        Ok(CPlan(plan))
    }
}

/// A plan that C holds.
#[derive(Debug)]
pub struct CPlan(*mut luma_plan_t);

impl CPlan {
    pub fn view(&self) -> luma_plan_view_t {
        // SAFETY: any bytes are a valid value of the struct.
        let mut view: luma_plan_view_t = unsafe { std::mem::zeroed() };
        view.struct_size = size_of::<luma_plan_view_t>();
        // SAFETY: the plan is live, and the struct as large as it says.
        outcome(unsafe { luma_plan_view(self.0, &raw mut view) }).expect("it is a plan");
        view
    }

    pub fn edges(&self, set: luma_edge_set_t) -> &[luma_edge_t] {
        let (mut edges, mut count) = (null(), 0);
        // SAFETY: the plan is live.
        let status = unsafe { luma_plan_edges(self.0, set as i32, &raw mut edges, &raw mut count) };
        outcome(status).expect("there are edges");
        // SAFETY: the plan's own array, which stays as long as it does.
        unsafe { std::slice::from_raw_parts(edges, count) }
    }
}

impl Drop for CPlan {
    fn drop(&mut self) {
        let status = luma_plan_free(self.0);
        assert_eq!(status, luma_status_t::LUMA_SUCCESS);
    }
}
