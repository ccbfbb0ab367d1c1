#![forbid(unsafe_code)]
//! The first level: a pass over the order, in near-linear time.
//!
//! A buffer gets the best-fitting hole when it comes into being and when it is reloaded, which is
//! right before the event that needs it. Where no hole fits, one is made of neighbours: among the
//! stretches of residents and holes that are long enough, that which costs least, a resident's cost
//! being what its spill moves over how long it is not needed. With equal sizes and costs that
//! is the choice of L. A. Belady ("A study of replacement algorithms for a virtual-storage computer",
//! 1966): the one needed last. What the node that is about to run needs is never taken. A spilled
//! buffer leaves right after the event before, not where the space ran out.
//!
//! Every order has a plan, as [`Graph`] has made sure that the buffers of each operation fit
//! together: where those that are resident already leave the others no stretch, some of them, in the
//! end all, are spilled and reloaded to another place.
//!
//! A graph that is not too large gets further passes, and the best of their plans is taken. Some put
//! buffers at other ends of the holes. And after each, of its spills those that the bytes alone do
//! not ask for are taken back, and the next pass knows the rest from the start, so that it finds
//! their space free where the pass before had not yet.

mod bits;
mod next_uses;
mod pass;
mod restore;
mod space;
mod window;

use super::control::Control;
use super::error::PlanError;
use super::graph::Graph;
use super::residency::emit;
use super::result::Plan;
use super::timeline::Timeline;
use pass::Ends;

/// Passes after the first for graphs of up to so many gaps, as long as each is better.
const FURTHER_PASSES: [(usize, u32); 2] = [(100_000, 3), (400_000, 1)];

/// What is tried after [`Ends::Low`] for graphs of up to so many gaps.
const OTHER_ENDS: [Ends; 3] = [Ends::LateHigh, Ends::SmallHigh(4), Ends::SmallHigh(8)];
const OTHER_ENDS_GAPS: usize = 20_000;

/// Which gaps are spilled, with an offset for each of [`residencies`](super::residencies).
#[derive(Clone, Debug)]
pub(super) struct Placed {
    pub(super) spilled: Vec<bool>,
    pub(super) offsets: Vec<u64>,
}

/// Plans an order; equal input gives an equal plan. What there is to control does not apply.
///
/// # Errors
/// [`PlanErrorKind::Internal`](super::PlanErrorKind::Internal) only: every order of a valid graph
/// has a plan.
pub fn plan(graph: &Graph, timeline: &Timeline, _: &Control<'_>) -> Result<Plan, PlanError> {
    let best = best(graph, timeline, vec![false; timeline.gaps()])?;
    Ok(emit(graph, timeline, &best.spilled, &best.offsets))
}

/// What [`plan`] comes to if it starts with these gaps spilled.
pub(super) fn best(
    graph: &Graph,
    timeline: &Timeline,
    spilled: Vec<bool>,
) -> Result<Placed, PlanError> {
    let further = FURTHER_PASSES.iter();
    let further = further.filter(|(gaps, _)| timeline.gaps() <= *gaps);
    let further = further.map(|(_, passes)| *passes).max().unwrap_or(0);
    let (mut least, mut best) = improved(graph, timeline, spilled.clone(), Ends::Low, further)?;
    for ends in OTHER_ENDS {
        if timeline.gaps() > OTHER_ENDS_GAPS || least == 0 {
            break;
        }
        let (bytes, placed) = improved(graph, timeline, spilled.clone(), ends, further)?;
        if bytes < least {
            (least, best) = (bytes, placed);
        }
    }
    Ok(best)
}

/// The best of a first pass and up to so many further ones, with the bytes that it moves.
fn improved(
    graph: &Graph,
    timeline: &Timeline,
    spilled: Vec<bool>,
    ends: Ends,
    further: u32,
) -> Result<(u64, Placed), PlanError> {
    let mut best = pass::run(graph, timeline, spilled, ends)?;
    let mut least = traffic(graph, timeline, &best.spilled);
    for _ in 0..further {
        let mut spilled = best.spilled.clone();
        if !restore::restore(graph, timeline, &mut spilled) {
            break;
        }
        let next = pass::run(graph, timeline, spilled, ends)?;
        let bytes = traffic(graph, timeline, &next.spilled);
        if bytes >= least {
            break;
        }
        (best, least) = (next, bytes);
    }
    Ok((least, best))
}

/// Bytes that spilling these gaps moves.
fn traffic(graph: &Graph, timeline: &Timeline, spilled: &[bool]) -> u64 {
    (0..graph.buffers() as u32)
        .map(|buffer| {
            let spilled = &spilled[timeline.first_gap(buffer)..];
            (0..timeline.events(buffer).len() - 1)
                .filter(|&gap| spilled[gap])
                .map(|gap| timeline.gap_traffic(buffer, gap))
                .sum::<u64>()
        })
        .sum()
}
