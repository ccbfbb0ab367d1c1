#![forbid(unsafe_code)]
//! Searches of growing length in different orders, each learning from those before.

use super::instance::Item;
use super::problem::Problem;
use super::search::{Outcome, Search};
use crate::plan::Stopped;

/// Runs between two that start with nothing learned: what was learned can be misleading.
const RUNS_PER_STYLE: u64 = 24;
/// Runs of a cycle of all styles. The last is longer, twice as long as that of the cycle before.
const RUNS_PER_CYCLE: u64 = 3 * RUNS_PER_STYLE;
/// Nodes of a short run, and of the first long one.
const SHORT: u64 = 1_000;
const LONG: u64 = 64_000;
/// What seed 0 stands for: a sequence that is short on the benchmark of MiniMalloc.
const FIRST_SEED: u64 = 2;

/// The search of one component for a placement within a capacity.
pub(super) struct Effort<'a> {
    problem: &'a Problem<'a>,
    search: Search<'a>,
    seed: u64,
    runs: u64,
    /// How much trouble each section was, lately.
    trouble: Vec<u64>,
}

impl<'a> Effort<'a> {
    pub fn new(problem: &'a Problem<'a>, seed: u64) -> Self {
        Self {
            search: Search::new(problem),
            seed: seed.wrapping_add(FIRST_SEED),
            runs: 0,
            trouble: vec![0; problem.load.len()],
            problem,
        }
    }

    /// The offsets after [`Outcome::Found`].
    pub fn offsets(&self) -> &[u64] {
        &self.search.offsets
    }

    /// One run within `capacity`, of at most `most` nodes; adds those it took to `work`.
    pub fn run(
        &mut self,
        capacity: u64,
        most: u64,
        work: &mut u64,
        stop: impl Fn(u64) -> Option<Stopped>,
    ) -> Outcome {
        let run = self.runs;
        if run % RUNS_PER_STYLE == 0 {
            self.trouble.fill(0);
        }
        self.runs += 1;
        let (order, limit) = self.plan(run);
        let before = *work;
        let mut spent = 0;
        let limit = limit.min(most);
        let outcome = self
            .search
            .run(&order, capacity, limit, &mut spent, |spent| {
                stop(before + spent)
            });
        *work = before + spent.min(limit);
        for (trouble, failures) in self.trouble.iter_mut().zip(&mut self.search.failures) {
            *trouble = *trouble / 5 * 4 + *failures * 1024;
            *failures = 0;
        }
        outcome
    }

    /// The order and the length of a run.
    fn plan(&self, run: u64) -> (Vec<u32>, u64) {
        if run % RUNS_PER_CYCLE == RUNS_PER_CYCLE - 1 {
            let cycle = run / RUNS_PER_CYCLE;
            return (self.given(cycle), LONG << cycle.min(40));
        }
        match run / RUNS_PER_STYLE % 3 {
            0 if run < 3 => (self.given(run), 2 * SHORT),
            0 => (self.by_trouble(run), SHORT),
            1 => (self.by_area(run), 2 * SHORT),
            _ => (self.by_length_of_trouble(run), 2 * SHORT),
        }
    }

    /// By the load around an item, its length in time and its area, in different turns.
    fn given(&self, turn: u64) -> Vec<u32> {
        let problem = self.problem;
        let crowd = |id: u32| u128::from(problem.crowd[id as usize]);
        let length = |id: u32| u128::from(problem.items[id as usize].length);
        let area = |id: u32| area(&problem.items[id as usize]);
        match turn % 3 {
            0 => problem.order(|id| (crowd(id), length(id), area(id))),
            1 => problem.order(|id| (length(id), crowd(id), area(id))),
            _ => problem.order(|id| (crowd(id), area(id), length(id))),
        }
    }

    /// By the trouble of an item's sections, their sum and the worst alike.
    fn by_trouble(&self, run: u64) -> Vec<u32> {
        let problem = self.problem;
        let most = u128::from(self.trouble.iter().copied().max().unwrap_or(0)).max(1);
        problem.order(|id| {
            let (sum, worst) = self.trouble_of(id);
            let key = (sum * worst / most).saturating_mul(self.chance(run, id, 103));
            (
                key,
                problem.crowd[id as usize],
                area(&problem.items[id as usize]),
            )
        })
    }

    /// By the sum of the trouble of an item's sections.
    fn by_length_of_trouble(&self, run: u64) -> Vec<u32> {
        self.problem.order(|id| {
            let (sum, _) = self.trouble_of(id);
            let item = &self.problem.items[id as usize];
            (
                sum.saturating_mul(self.chance(run, id, 103)),
                item.length,
                item.size,
            )
        })
    }

    /// By area, with much chance in it.
    fn by_area(&self, run: u64) -> Vec<u32> {
        self.problem.order(|id| {
            let area = area(&self.problem.items[id as usize]);
            (
                area.saturating_mul(self.chance(run, id, 410)),
                self.problem.crowd[id as usize],
            )
        })
    }

    /// The trouble of the sections of an item: the sum, and the worst.
    fn trouble_of(&self, id: u32) -> (u128, u128) {
        let item = &self.problem.items[id as usize];
        let sections = &self.trouble[item.first as usize..item.end as usize];
        let sum = sections.iter().copied().map(u128::from).sum();
        (sum, sections.iter().copied().max().map_or(0, u128::from))
    }

    /// A random factor, in 1024ths: at least 1024, below 1024 + `spread`.
    fn chance(&self, run: u64, id: u32, spread: u64) -> u128 {
        u128::from(1024 + scramble(self.seed, run, id) % spread)
    }
}

fn area(item: &Item) -> u128 {
    u128::from(item.length) * u128::from(item.size)
}

/// A random number for each seed, run and item: the finish of splitmix64 (Steele, Lea, Flood, 2014).
pub(super) fn scramble(seed: u64, run: u64, id: u32) -> u64 {
    let mut bits = seed
        .wrapping_add(run.wrapping_mul(0xd134_2543_de82_ef95))
        .wrapping_add(
            u64::from(id)
                .wrapping_add(1)
                .wrapping_mul(0x9e37_79b9_7f4a_7c15),
        );
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}
