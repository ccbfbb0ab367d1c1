#![forbid(unsafe_code)]
//! The gaps of one memory to spill, room being all that counts: the least traffic, proved or not.

use super::layers::Search;
use super::tighten::tighten;
use super::watch::Watch;
use crate::plan::bound::flow::{Flow, Line, solve};
use crate::plan::bound::pressure::Pressure;

/// How many states the last pass keeps a layer, and how many times more each pass does than the last.
const WIDEST: usize = 1 << 14;
const WIDER: usize = 4;

/// What is known of a memory.
#[derive(Clone, Debug)]
pub struct Answer {
    /// The gaps to spill, by their number in the timeline; none if nothing better was found.
    pub gaps: Option<Vec<usize>>,
    /// No choice moves fewer bytes, nor does any that moves fewer than were known if it is those.
    pub lower_bound: u128,
}

/// Looks for the least traffic of a memory, for as long as the watch allows. What moves `known` bytes
/// or more is of no interest.
pub fn choose(pressure: &Pressure, known: u128, watch: &mut Watch<'_>) -> Answer {
    let mut line = pressure.line.clone();
    tighten(&mut line);
    let flow = solve(&line, &mut |visits| watch.go_on(visits / 8));
    let mut best = None;
    let mut lower_bound = flow.cost as i128;
    let scale = u128::from(pressure.scale);
    let limit = known
        .saturating_sub(pressure.forced_traffic)
        .div_ceil(scale) as i128;
    if flow.complete && lower_bound < limit {
        best = whole(&line, &flow);
        if best.is_none() {
            (best, lower_bound) = search(&line, &flow, limit, watch);
        }
    }
    let gaps = best.map(|spilled| {
        let chosen = pressure.gaps.iter().zip(&spilled);
        let chosen = chosen.filter(|(_, spilled)| **spilled).map(|(gap, _)| *gap);
        pressure.forced.iter().copied().chain(chosen).collect()
    });
    let lower_bound = lower_bound as u128 * scale + pressure.forced_traffic;
    Answer {
        gaps,
        lower_bound: lower_bound.min(known),
    }
}

/// The choice that a flow is, if it spills every gap whole or not at all.
fn whole(line: &Line, flow: &Flow) -> Option<Vec<bool>> {
    line.gaps
        .iter()
        .zip(&flow.spilled)
        .map(|(gap, spilled)| match *spilled {
            0 => Some(false),
            spilled => (spilled == gap.weight).then_some(true),
        })
        .collect()
}

/// Passes of rising width, each of which looks for less than the best so far. Answers the best and a
/// lower bound, at most its cost or the limit.
fn search(
    line: &Line,
    flow: &Flow,
    mut limit: i128,
    watch: &mut Watch<'_>,
) -> (Option<Vec<bool>>, i128) {
    let search = Search::new(line, flow);
    let mut lower_bound = search.lower_bound();
    let mut best = None;
    let mut width = 1;
    while width <= WIDEST && lower_bound < limit {
        let Some(pass) = search.pass(width, limit, &mut |states| watch.go_on(states)) else {
            break;
        };
        if let Some(choice) = pass.choice {
            limit = choice.cost;
            best = Some(choice.spilled);
        }
        lower_bound = lower_bound.max(pass.lower_bound);
        width *= WIDER;
    }
    (best, lower_bound)
}
