#![forbid(unsafe_code)]
//! Planning spills: every buffer of a graph gets a place in a memory too small for all of them.
//!
//! A graph's operations use buffers; each buffer lives from its ALLOC to its FREE, in one of several
//! memories. Where they do not all fit, a buffer is spilled: moved out (SPILL_OUT) and back
//! (SPILL_IN), perhaps to another place, before it is needed again. A plan says where and when, such
//! that residents of a memory never overlap and every operation finds its buffers; the fewer bytes
//! it moves, the better.
//!
//! [`Graph`] is the validated input, [`Timeline`] a graph in one order, [`Plan`] the result.
//! [`plan_spills`] makes one, at a [`Level`] of effort.

pub mod added;
pub mod bound;
pub mod check;
mod control;
mod csr;
mod error;
pub mod exact;
mod graph;
pub mod heuristic;
mod makespan;
mod order;
pub mod place;
mod residency;
mod result;
pub mod search;
mod timeline;
mod validate;

pub use control::{Control, OnProgress, Progress};
pub use error::{PlanError, PlanErrorKind};
pub use graph::{
    BufferInput, Graph, GraphInput, MTE2, MTE3, MemoryInput, NO_PIPE, NodeInput, NodeKind,
    SpillCost, Use,
};
pub use makespan::makespan;
pub use order::{check_order, greedy_order};
pub use residency::{Residency, emit, residencies};
pub use result::{Plan, Spill, Stopped};
pub use timeline::Timeline;

/// How much effort a plan is worth.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Level {
    /// One pass over the order, near-linear time.
    #[default]
    Heuristic,
    /// The fewest bytes for the order, with a proof where there is one.
    Exact,
    /// Order and spills are searched together until the time is up, if the order may be changed;
    /// else as [`Level::Exact`].
    Search,
}

/// What [`plan_spills`] is to do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// The level.
    pub level: Level,
    /// The order may be changed. [`Level::Search`] takes the given one to start from; the other levels
    /// plan it and the [greedy](greedy_order) one, and give the better plan.
    pub reorder: bool,
}

/// The heuristic level does without a lower bound for graphs of more gaps, and with a weaker one where
/// its search would visit more nodes: it is to stay quick.
const BOUNDED_GAPS: usize = 400_000;
const BOUND_VISITS: u64 = 1_000_000;

/// Plans the spills of a graph, by default in the given order.
///
/// # Errors
/// Those of [`check_order`]; [`PlanErrorKind::Stopped`] where a search was stopped before it had a
/// plan.
pub fn plan_spills(
    graph: &Graph,
    order: &[u32],
    options: &Options,
    control: &Control<'_>,
) -> Result<Plan, PlanError> {
    let timeline = Timeline::new(graph, order)?;
    if options.level == Level::Search && options.reorder {
        return search::plan(graph, order, control);
    }
    let plan = plan_in_order(graph, &timeline, options.level, control)?;
    if !options.reorder {
        return Ok(plan);
    }
    let greedy = greedy_order(graph)?;
    let mut best = plan;
    if greedy != order {
        let timeline = Timeline::new(graph, &greedy)?;
        let other = plan_in_order(graph, &timeline, options.level, control)?;
        if (other.extra_bytes, other.makespan) < (best.extra_bytes, best.makespan) {
            best = other;
        }
    }
    // What is known of one order is not true of all.
    best.lower_bound = 0;
    best.proved = best.extra_bytes == 0;
    Ok(best)
}

fn plan_in_order(
    graph: &Graph,
    timeline: &Timeline,
    level: Level,
    control: &Control<'_>,
) -> Result<Plan, PlanError> {
    if level != Level::Heuristic {
        return exact::plan(graph, timeline, control);
    }
    let mut plan = heuristic::plan(graph, timeline, control)?;
    if plan.extra_bytes > 0 && timeline.gaps() <= BOUNDED_GAPS {
        let bounds = bound::lower_bound_within(graph, timeline, BOUND_VISITS)?;
        plan.lower_bound = bounds.iter().sum();
        plan.proved = plan.lower_bound == plan.extra_bytes;
    }
    Ok(plan)
}
