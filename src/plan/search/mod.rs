#![forbid(unsafe_code)]
//! The third level: order and spills together, until the time is up.
//!
//! An order is a permutation of steps that is decoded on demand: each step is preceded by what it
//! still needs (`decode`), an ALLOC comes just before the first step that needs it, a FREE as soon as
//! it can (`expand`). It is priced by rules of eviction in the manner of Belady, incrementally
//! (`track`). Orders are changed by simulated annealing (S. Kirkpatrick, C. D. Gelatt, M. P. Vecchi:
//! "Optimization by simulated annealing", 1983), first segment by segment (`strung`), where segments
//! are cut at minima of what only the memories hold (`segments`) and first strung by what they share
//! (`construct`), then step by step, most of the changes aimed at gaps that are spilled
//! (`moves`). Several such searches run side by side and meet between rounds (`drive`). The
//! orders found are planned at the second level.

mod construct;
mod decode;
mod drive;
mod expand;
mod lane;
mod line;
mod moves;
mod pricer;
mod problem;
mod random;
mod residents;
mod segments;
mod strung;
#[cfg(test)]
mod tests;
mod track;

use std::time::{Duration, Instant};

use super::control::Control;
use super::error::PlanError;
use super::exact;
use super::graph::Graph;
use super::result::{Plan, Stopped};
use super::timeline::Timeline;
use drive::{Found, Host};
use problem::Problem;

/// What the second level may do for one order, in its own steps.
const PLANNING_WORK: u64 = 1 << 23;

/// Plans a graph in whatever order moves few bytes; `start_order` is the first that is tried, and no
/// plan of it that the second level finds is better than the result.
///
/// The search goes on until `control` ends it: by its deadline, its callback, or its `work`, which
/// counts changes tried. Without any of these it is about a million changes. For a seed it finds the
/// same on every machine and with any number of threads, so that equal work gives an equal plan; a
/// deadline only says how far it gets. It ends by itself only with a plan that moves nothing, which
/// alone is known to be optimal: the `lower_bound` is 0.
///
/// # Errors
/// Those of [`check_order`](super::check_order).
pub fn plan(graph: &Graph, start_order: &[u32], control: &Control<'_>) -> Result<Plan, PlanError> {
    let began = Instant::now();
    let timeline = Timeline::new(graph, start_order)?;
    let mut best = Best {
        graph,
        control,
        plan: plan_order(graph, &timeline, &within(control, began, 4))?,
        began,
        spent: began.elapsed(),
    };
    let problem = Problem::new(graph);
    let first = expand::contract(graph, &problem, start_order);
    let mut stopped = Stopped::Finished;
    if best.plan.extra_bytes > 0 {
        let ended = drive::search(&problem, &first, control, &mut best);
        stopped = ended.unwrap_or(Stopped::TimeLimit);
    }
    let mut plan = best.plan;
    plan.lower_bound = 0;
    plan.proved = plan.extra_bytes == 0;
    plan.stopped = if plan.proved {
        Stopped::Finished
    } else {
        stopped
    };
    Ok(plan)
}

/// As `control`, with one part in `parts` of the time that is left at `now`.
fn within<'a>(control: &Control<'a>, now: Instant, parts: u32) -> Control<'a> {
    let part = |deadline: Instant| deadline.saturating_duration_since(now) / parts;
    Control {
        deadline: control
            .deadline
            .and_then(|deadline| now.checked_add(part(deadline))),
        ..*control
    }
}

/// The second level's plan of one order, within a bound of its own that no clock shifts.
fn plan_order(
    graph: &Graph,
    timeline: &Timeline,
    control: &Control<'_>,
) -> Result<Plan, PlanError> {
    let bounded = Control {
        work: Some(PLANNING_WORK),
        progress: None,
        ..*control
    };
    exact::plan(graph, timeline, &bounded)
}

/// The best plan so far.
struct Best<'a> {
    graph: &'a Graph,
    control: &'a Control<'a>,
    plan: Plan,
    began: Instant,
    /// How long the last plan took to make.
    spent: Duration,
}

impl Best<'_> {
    fn take(&mut self, problem: &Problem, found: &Found) -> Result<(), PlanError> {
        let began = Instant::now();
        let order = expand::expand(self.graph, problem, &found.steps);
        let timeline = Timeline::new(self.graph, &order)?;
        let plan = plan_order(self.graph, &timeline, self.control)?;
        if plan.extra_bytes < self.plan.extra_bytes {
            self.plan = plan;
        }
        self.spent = began.elapsed();
        Ok(())
    }
}

impl Host for Best<'_> {
    fn plan(&mut self, problem: &Problem, found: &Found) -> u64 {
        // An order of steps expands to a valid order; if one did not, the plan before stands.
        let taken = self.take(problem, found);
        debug_assert!(taken.is_ok());
        self.plan.extra_bytes
    }

    fn deadline(&self) -> Option<Instant> {
        // The last plan must be made before the time is up.
        let deadline = self.control.deadline?;
        let last = deadline.saturating_duration_since(self.began) / 2;
        deadline.checked_sub((2 * self.spent).min(last))
    }
}
