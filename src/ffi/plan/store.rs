//! Plans that C holds, in the form that C reads.

use super::control;
use super::types::{
    luma_allocation_t, luma_edge_set_t, luma_edge_t, luma_node_kind_t, luma_node_t, luma_plan_t,
    luma_plan_view_t, luma_spill_t,
};
use crate::error::{Error, Result, Status};
use crate::ffi::boundary::null;
use crate::plan::{Graph, Plan, added};
use crate::text::text;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

/// The plans that were handed out and not freed. A handle is a number, not an address, and never
/// used again, so that one that was freed does not mean a plan that came after it.
struct Live {
    plans: BTreeMap<usize, Arc<Stored>>,
    last: usize,
}

static LIVE: Mutex<Live> = Mutex::new(Live {
    plans: BTreeMap::new(),
    last: 0,
});

/// Handles look like aligned pointers.
const STEP: usize = 16;

fn live() -> MutexGuard<'static, Live> {
    // Nothing panics while it is locked.
    LIVE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Keeps other threads away from the table while a process forks.
pub(in crate::ffi) struct ForkGuard {
    _live: MutexGuard<'static, Live>,
}

/// Waits for the table, so that a child of a fork finds it whole.
pub(in crate::ffi) fn lock_for_fork() -> ForkGuard {
    ForkGuard { _live: live() }
}

/// A plan with its graph.
pub(super) struct Stored {
    graph: Graph,
    plan: Plan,
    allocations: Vec<luma_allocation_t>,
    spills: Vec<luma_spill_t>,
    added_nodes: Vec<luma_node_t>,
    /// Made when they are asked for.
    direct_edges: OnceLock<Vec<luma_edge_t>>,
    /// Made when they are asked for: there can be very many.
    all_edges: OnceLock<Vec<luma_edge_t>>,
}

/// Keeps a plan and gives its handle.
pub(super) fn keep(graph: Graph, plan: Plan) -> Result<*mut luma_plan_t> {
    let nodes = graph.len() as u32;
    let cycles = added::spill_cycles(&graph, &plan)?;
    let allocations = (0u32..)
        .zip(&plan.offsets)
        .map(|(buffer, &offset)| luma_allocation_t {
            buffer,
            memory: graph.memory(buffer),
            offset,
            size: graph.size(buffer),
        });
    let spills = (0u32..)
        .zip(&plan.spills)
        .map(|(number, spill)| luma_spill_t {
            buffer: spill.buffer,
            out_node: nodes + 2 * number,
            in_node: nodes + 2 * number + 1,
            reserved: 0,
            offset: spill.offset,
        });
    let added_nodes = plan.spills.iter().zip(&cycles).flat_map(|(spill, cycles)| {
        let node = |kind: luma_node_kind_t, pipe, cycles| luma_node_t {
            kind: kind as i32,
            buffer: spill.buffer,
            pipe,
            reserved: 0,
            cycles,
        };
        [
            node(
                luma_node_kind_t::LUMA_NODE_SPILL_OUT,
                graph.cost().out_pipe,
                cycles.0,
            ),
            node(
                luma_node_kind_t::LUMA_NODE_SPILL_IN,
                graph.cost().in_pipe,
                cycles.1,
            ),
        ]
    });
    let stored = Arc::new(Stored {
        allocations: allocations.collect(),
        spills: spills.collect(),
        added_nodes: added_nodes.collect(),
        direct_edges: OnceLock::new(),
        all_edges: OnceLock::new(),
        graph,
        plan,
    });
    let mut live = live();
    live.last += STEP;
    let handle = live.last;
    live.plans.insert(handle, stored);
    Ok(handle as *mut luma_plan_t)
}

/// The plan of a handle.
pub(super) fn find(handle: *const luma_plan_t) -> Result<Arc<Stored>> {
    if handle.is_null() {
        return Err(null("plan"));
    }
    let live = live();
    live.plans
        .get(&(handle as usize))
        .cloned()
        .ok_or_else(unknown)
}

/// Lets a plan go.
pub(super) fn drop_plan(handle: *mut luma_plan_t) -> Result<()> {
    let removed = live().plans.remove(&(handle as usize));
    // Dropped here, where nothing is locked.
    removed.map(drop).ok_or_else(unknown)
}

fn unknown() -> Error {
    Error::new(
        Status::InvalidPointer,
        "not a plan of luma_plan_spills, or one that was freed already",
    )
}

impl Stored {
    /// Its arrays stay where they are for as long as the plan is kept.
    pub(super) fn view(&self) -> luma_plan_view_t {
        let plan = &self.plan;
        luma_plan_view_t {
            struct_size: size_of::<luma_plan_view_t>(),
            order: plan.order.as_ptr(),
            order_count: plan.order.len(),
            offsets: plan.offsets.as_ptr(),
            offset_count: plan.offsets.len(),
            spills: self.spills.as_ptr(),
            spill_count: self.spills.len(),
            allocations: self.allocations.as_ptr(),
            allocation_count: self.allocations.len(),
            added_nodes: self.added_nodes.as_ptr(),
            added_node_count: self.added_nodes.len(),
            peaks: plan.peaks.as_ptr(),
            peak_count: plan.peaks.len(),
            extra_bytes: plan.extra_bytes,
            lower_bound: plan.lower_bound,
            spill_cycles: plan.spill_cycles,
            makespan: plan.makespan,
            proved: i32::from(plan.proved),
            stopped: control::stopped(plan.stopped),
        }
    }

    /// The dependencies of the plan's spills.
    pub(super) fn edges(&self, set: luma_edge_set_t) -> Result<&[luma_edge_t]> {
        let (graph, plan) = (&self.graph, &self.plan);
        let slot = match set {
            luma_edge_set_t::LUMA_EDGES_ALL => &self.all_edges,
            luma_edge_set_t::LUMA_EDGES_DIRECT => &self.direct_edges,
        };
        if let Some(edges) = slot.get() {
            return Ok(edges);
        }
        let mut edges = Vec::new();
        let add = |from, to| -> Result<()> {
            edges.try_reserve(1).map_err(|_| {
                let count = edges.len();
                let message = text!("the host has no memory for more than {count} edges of spills");
                Error::new(Status::OutOfMemory, message)
            })?;
            edges.push(luma_edge_t { from, to });
            Ok(())
        };
        match set {
            luma_edge_set_t::LUMA_EDGES_ALL => added::all_edges(graph, plan, add)?,
            luma_edge_set_t::LUMA_EDGES_DIRECT => added::direct_edges(graph, plan, add)?,
        }
        Ok(slot.get_or_init(|| edges))
    }
}
