#![forbid(unsafe_code)]
//! A lower bound for the traffic of every plan that keeps an order.
//!
//! Memories are independent. In each, a gap between consecutive events of a buffer is kept or
//! spilled, and at every event what is kept and what the event needs must fit. Where a gap may be kept
//! in part this is a linear program, and one min-cost flow, see `flow`. Residencies need contiguous
//! room besides, so that a plan may have to move more than the bound.

pub(super) mod flow;
pub(super) mod pressure;

use super::error::PlanError;
use super::graph::Graph;
use super::timeline::Timeline;
use pressure::Pressure;

/// Nodes that [`lower_bound`] visits at most in all memories together, besides some for each gap. Few
/// graphs need more.
const VISITS: u64 = 10_000_000;
const VISITS_A_GAP: u64 = 8;

/// For each memory, bytes that every plan of this order moves at least; at most 2^64 - 1.
///
/// The time is near-linear; where the search for the least cost would take longer, the bound is
/// that for a part of the order.
///
/// # Errors
/// None at present.
pub fn lower_bound(graph: &Graph, timeline: &Timeline) -> Result<Vec<u64>, PlanError> {
    let visits = VISITS + VISITS_A_GAP * timeline.gaps() as u64;
    lower_bound_within(graph, timeline, visits)
}

/// [`lower_bound`] with another limit to the nodes that its search visits, about a microsecond each.
///
/// # Errors
/// None at present.
pub fn lower_bound_within(
    graph: &Graph,
    timeline: &Timeline,
    visits: u64,
) -> Result<Vec<u64>, PlanError> {
    let mut visits = visits;
    let mut go_on = |visited: u64| {
        visits = visits.saturating_sub(visited);
        visits > 0
    };
    Ok(pressure::pressures(graph, timeline)
        .iter()
        .map(|pressure| bytes(pressure, flow::solve(&pressure.line, &mut go_on).cost))
        .collect())
}

/// The bytes that a cost of a memory's line comes to, with the forced spills.
pub(super) fn bytes(pressure: &Pressure, cost: u128) -> u64 {
    let bytes = cost * u128::from(pressure.scale) + pressure.forced_traffic;
    bytes.try_into().unwrap_or(u64::MAX)
}
