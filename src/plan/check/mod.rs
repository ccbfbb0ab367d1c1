#![forbid(unsafe_code)]
//! The checker of plans. It shares no code with the planner: it reads the caller's graph and the plan's
//! plain arrays, rebuilds from them what is resident where and when, and names the first rule that is
//! broken. Time O((n + k) log n) and memory O(n + k), for a graph of n nodes, uses and edges and k
//! spills.
//!
//! The rules are checked in the order of [`Class`], so that of a plan with several faults the most
//! basic one is told; of faults of one class, the one that is met first in the plan's order.
//!
//! # Times
//! The makespan follows from the plan alone: each pipe runs its nodes in the plan's order, one at a
//! time; a node waits for its predecessors, an operation for the ALLOC or SPILL_IN that made each of
//! its buffers resident, a SPILL_OUT or FREE for that and for the buffer's operations since; and the
//! start of a residency waits for the end of every earlier one that touched any of its bytes.

mod model;
mod residency;
mod structure;
mod timing;
mod traffic;
mod violation;

pub use violation::{Class, Violation};

use super::graph::GraphInput;
use model::Model;

/// In an array of offsets: the buffer has none.
pub const NO_OFFSET: u64 = u64::MAX;

/// What a valid plan costs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Bytes that the spills move: of each spill the buffer's size where the copy outside is valid, and
    /// twice its size elsewhere.
    pub extra_bytes: u64,
    /// Cycles of all SPILL_OUT and SPILL_IN nodes together.
    pub spill_cycles: u64,
    /// The cycle in which the last node ends.
    pub makespan: u64,
    /// The most bytes resident at once, of each memory.
    pub peaks: Vec<u64>,
}

/// Checks a plan for the graph `input` of N nodes: `order` with the node ids of the graph and, of
/// spill k, N + 2k (SPILL_OUT) and N + 2k + 1 (SPILL_IN); `offsets` with the first place of each
/// buffer; `spills` with each spill's buffer and the place that its SPILL_IN brings it back to. With
/// `given_order`, the plan must keep that order of the graph's own nodes.
///
/// # Errors
/// The first rule that is broken.
pub fn check_plan(
    input: &GraphInput,
    given_order: Option<&[u32]>,
    order: &[u32],
    offsets: &[u64],
    spills: &[(u32, u64)],
) -> Result<Report, Violation> {
    let model = Model::new(input, spills.len())?;
    let positions = structure::positions(&model, order, spills)?;
    structure::check_offsets(&model, offsets, spills)?;
    structure::check_edges(&model, &positions)?;
    let history = residency::History::new(&model, &positions, spills)?;
    let homes = history.check_uses(&model, &positions)?;
    let peaks = residency::sweep(&model, &history, order, offsets, spills)?;
    structure::check_numbering(&model, &positions, spills)?;
    if let Some(given) = given_order {
        structure::check_given_order(&model, order, given)?;
    }
    let costs = traffic::costs(&model, order, spills)?;
    let makespan = timing::makespan(&model, &history, &homes, &costs, order, offsets, spills)?;
    Ok(Report {
        extra_bytes: costs.extra_bytes,
        spill_cycles: costs.spill_cycles,
        makespan,
        peaks,
    })
}
