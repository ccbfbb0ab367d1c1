#![forbid(unsafe_code)]
//! The second level: the fewest bytes for an order.
//!
//! The plan of the first level is improved memory by memory. As long as only room counts, which gaps to
//! spill is a flow with whole gaps (`choose`), and its cost bounds what any plan moves. The
//! residencies that are left are then placed like static lifetimes ([`place`](super::place)).
//! Where that fails, more gaps are spilled.

mod choose;
mod draft;
mod layers;
mod pack;
mod states;
mod subsets;
mod tighten;
mod watch;

use super::bound::pressure::pressures;
use super::control::Control;
use super::error::PlanError;
use super::graph::Graph;
use super::result::{Plan, Stopped};
use super::timeline::Timeline;
use draft::Draft;
use pack::Memory;
use watch::Watch;

/// Plans an order such that few bytes move; `proved` if it is the least there is for the order.
///
/// The result is never worse than the first level's, whenever `control` ends the search: its
/// deadline, its callback, or its `work`, which counts states and visits of nodes.
///
/// # Errors
/// [`PlanErrorKind::Internal`](super::PlanErrorKind::Internal) only: every order of a valid graph
/// has a plan.
pub fn plan(graph: &Graph, timeline: &Timeline, control: &Control<'_>) -> Result<Plan, PlanError> {
    let mut draft = Draft::place(graph, timeline, vec![false; timeline.gaps()])?;
    let mut watch = Watch::new(control, draft.traffic.iter().sum());
    let mut lower_bound = 0;
    for (memory, pressure) in pressures(graph, timeline).iter().enumerate() {
        let known = draft.traffic[memory];
        let mut answer = choose::choose(pressure, known, &mut watch);
        watch.lower_bound = lower_bound + answer.lower_bound;
        if let Some(gaps) = answer.gaps {
            let memory = Memory::new(graph, timeline, memory as u32);
            answer.lower_bound =
                memory.improve(&gaps, answer.lower_bound, &mut draft, &mut watch)?;
            watch.extra_bytes = draft.traffic.iter().sum();
        }
        lower_bound += answer.lower_bound;
        watch.lower_bound = lower_bound;
    }
    let mut plan = draft.emit(graph, timeline);
    plan.lower_bound = u64::try_from(lower_bound).unwrap_or(u64::MAX);
    plan.proved = plan.extra_bytes == plan.lower_bound;
    plan.stopped = match plan.proved {
        true => Stopped::Finished,
        false => watch.stopped().unwrap_or(Stopped::Finished),
    };
    Ok(plan)
}
