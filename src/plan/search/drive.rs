#![forbid(unsafe_code)]
//! Lanes side by side, in rounds: what they find depends on the seed and the work, not on how many
//! threads run them or how fast.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use super::super::control::{Control, Progress};
use super::super::result::Stopped;
use super::lane::Lane;
use super::problem::Problem;
use super::random::Random;

/// Searches side by side.
const LANES: u64 = 4;
/// Trials of a lane between two looks at the clock and at the other lanes, on a graph of up to
/// [`SLICE_STEPS`] steps; fewer on a larger one, so that the time between does not grow.
const SLICE: u64 = 256;
const SLICE_STEPS: u64 = 2048;
/// Trials of each of a lane's two annealings in the first round. A round is twice as long as the
/// one before.
const FIRST_ROUND: u64 = 4096;
/// Trials of all lanes, where the caller bounds neither time nor work.
pub(super) const DEFAULT_WORK: u64 = 1 << 20;

/// What the search of orders found.
#[derive(Debug)]
pub(super) struct Found {
    /// The best order of steps, and what it moves by the rules that price orders.
    pub(super) steps: Vec<u32>,
    total: u64,
    /// Trials made.
    work: u64,
    stopped: Stopped,
}

/// Makes plans of the orders found.
pub(super) trait Host {
    /// Plans the best order found so far, and gives what the best of all plans moves.
    fn plan(&mut self, problem: &Problem, found: &Found) -> u64;
    /// When the search must end, so that a last plan can be made in time.
    fn deadline(&self) -> Option<Instant>;
}

/// A round of a lane: how it begins its annealings.
#[derive(Clone, Copy, Debug)]
struct Recipe {
    /// From the best order of all, or else from the first.
    resume: bool,
    reach: usize,
    variants: u32,
    warmth_segments: f64,
    warmth_steps: f64,
}

impl Recipe {
    fn new(lane: u64, round: u32) -> Self {
        const REACHES: [usize; 6] = [12, 32, 64, 6, 128, 24];
        const WARMTHS: [f64; 4] = [1.0, 2.0, 0.5, 4.0];
        let resume = round > 0 && lane < LANES / 2;
        let turn = lane as usize + round as usize;
        Self {
            resume,
            reach: REACHES[turn % REACHES.len()],
            variants: if resume { 0 } else { 16 },
            warmth_segments: WARMTHS[turn % WARMTHS.len()] * if resume { 0.5 } else { 1.0 },
            warmth_steps: [0.3, 0.15, 0.6][turn % 3],
        }
    }
}

/// Searches for an order of steps that moves little, from `first` on; from time to time `host` plans
/// what was found so far. None: it ended before it began.
pub(super) fn search(
    problem: &Problem,
    first: &[u32],
    control: &Control<'_>,
    host: &mut dyn Host,
) -> Option<Stopped> {
    let lane = |lane: u64| {
        let random = Random::new(control.seed, lane);
        Lane::new(problem, first, random, lane as usize, control.deadline).map(Mutex::new)
    };
    let lanes: Vec<Mutex<Lane>> = (0..LANES).map(lane).collect::<Option<_>>()?;
    let mut driver = Driver {
        problem,
        first,
        control,
        host,
        lanes,
        threads: threads(control),
        slice: (SLICE * SLICE_STEPS / (problem.steps() as u64).max(SLICE_STEPS)).max(1),
        found: Found {
            steps: first.to_vec(),
            total: u64::MAX,
            work: 0,
            stopped: Stopped::Finished,
        },
        planned: u64::MAX,
        plan_at: 0,
        extra_bytes: u64::MAX,
    };
    driver.gather();
    driver.run();
    driver.plan_at = 0;
    driver.plan();
    Some(driver.found.stopped)
}

fn threads(control: &Control<'_>) -> usize {
    let threads = match control.threads {
        0 => std::thread::available_parallelism().map_or(1, usize::from),
        threads => threads,
    };
    threads.min(LANES as usize)
}

struct Driver<'a> {
    problem: &'a Problem,
    first: &'a [u32],
    control: &'a Control<'a>,
    host: &'a mut dyn Host,
    lanes: Vec<Mutex<Lane>>,
    threads: usize,
    slice: u64,
    found: Found,
    /// What the order planned last moves by the rules, when to plan the next, and what the best
    /// plan moves.
    planned: u64,
    plan_at: u64,
    extra_bytes: u64,
}

impl Driver<'_> {
    fn run(&mut self) {
        if self.problem.steps() < 2 {
            return;
        }
        for round in 0.. {
            let trials = FIRST_ROUND << round.min(24);
            for segments in [true, false] {
                if self.found.total == 0 {
                    return;
                }
                let (problem, first, found) = (self.problem, self.first, &self.found);
                each(&self.lanes, self.threads, |index, lane| {
                    let recipe = Recipe::new(index as u64, round);
                    if segments {
                        if round > 0 {
                            lane.restart(problem, if recipe.resume { &found.steps } else { first });
                        }
                        let warmth = recipe.warmth_segments;
                        lane.begin_segments(problem, trials, warmth, recipe.reach, recipe.variants);
                    } else {
                        lane.begin_steps(problem, trials, recipe.warmth_steps);
                    }
                });
                if let Some(stopped) = self.anneal(trials) {
                    self.found.stopped = stopped;
                    return;
                }
            }
        }
    }

    /// Runs all lanes for `trials` trials each; what stopped them, if something did.
    fn anneal(&mut self, trials: u64) -> Option<Stopped> {
        let mut left = trials;
        while left > 0 && self.found.total > 0 {
            let slice = self
                .slice
                .min(left)
                .min((self.budget() - self.found.work) / LANES);
            if slice == 0 {
                return Some(Stopped::Work);
            }
            if self.late() {
                return Some(Stopped::TimeLimit);
            }
            let problem = self.problem;
            each(&self.lanes, self.threads, |_, lane| {
                lane.run(problem, slice);
            });
            if self.late() {
                // How far each lane got by now is chance: what it found since does not count.
                return Some(Stopped::TimeLimit);
            }
            left -= slice;
            self.found.work += slice * LANES;
            self.gather();
            self.plan();
            let (extra_bytes, work) = (self.extra_bytes, self.found.work);
            let progress = Progress {
                extra_bytes,
                lower_bound: 0,
                work,
            };
            if let Some(stopped) = self.control.report(progress) {
                return Some(stopped);
            }
        }
        None
    }

    fn late(&self) -> bool {
        let deadline = self.host.deadline();
        deadline.is_some_and(|deadline| Instant::now() >= deadline)
    }

    fn budget(&self) -> u64 {
        let control = self.control;
        let bounded = control.deadline.is_some() || control.progress.is_some();
        control
            .work
            .unwrap_or(if bounded { u64::MAX } else { DEFAULT_WORK })
    }

    /// Has the best order planned if it is better than the one before. Plans take time: they are
    /// made at amounts of work that grow by a quarter.
    fn plan(&mut self) {
        if self.found.work >= self.plan_at && self.found.total < self.planned {
            self.planned = self.found.total;
            self.plan_at = self.found.work + self.found.work / 4;
            self.extra_bytes = self.host.plan(self.problem, &self.found);
        }
    }

    /// Takes over the best that a lane has; the first of several.
    fn gather(&mut self) {
        for lane in &self.lanes {
            let Ok(lane) = lane.lock() else { continue };
            let (steps, total) = lane.best();
            if total < self.found.total {
                self.found.total = total;
                self.found.steps.clear();
                self.found.steps.extend_from_slice(steps);
            }
        }
    }
}

/// Does something with every lane, several at a time.
fn each(lanes: &[Mutex<Lane>], threads: usize, work: impl Fn(usize, &mut Lane) + Sync) {
    let next = AtomicUsize::new(0);
    let run = || {
        while let Some((index, lane)) = {
            let index = next.fetch_add(1, Ordering::Relaxed);
            lanes.get(index).map(|lane| (index, lane))
        } {
            if let Ok(mut lane) = lane.lock() {
                work(index, &mut lane);
            }
        }
    };
    if threads < 2 {
        return run();
    }
    std::thread::scope(|scope| {
        for _ in 1..threads {
            scope.spawn(run);
        }
        run();
    });
}
