#![forbid(unsafe_code)]
//! One of several searches that run side by side: annealing over segments, then over steps.

use std::time::Instant;

use super::construct::Kinship;
use super::decode::Decoder;
use super::moves::Shuffle;
use super::pricer::Pricer;
use super::problem::Problem;
use super::random::Random;
use super::segments::{GROUP, Row, cut, weave};
use super::strung::Strung;

/// An annealing cools by this, [`COOLINGS`] times: to a fiftieth in all.
const COOLING: f64 = 0.969_9;
const COOLINGS: u64 = 128;

/// More segments than this are left in their order at first.
const MOST_BUILT: usize = 4096;

/// What an annealing changes.
#[derive(Debug)]
enum Stage {
    Segments(Box<Strung>),
    Steps,
}

/// A search with its own random numbers.
#[derive(Debug)]
pub(super) struct Lane {
    random: Random,
    pricer: Pricer,
    decoder: Decoder,
    shuffle: Shuffle,
    stage: Stage,
    heat: f64,
    /// Trials of this annealing: done, and between two coolings.
    done: u64,
    cool_after: u64,
    wanted: Vec<u32>,
    steps: Vec<u32>,
    best: Vec<u32>,
    best_total: u64,
}

impl Lane {
    /// A search that starts with `order` and prices by number `rule` of the rules. After `deadline`
    /// it finds nothing more. None, as in [`Pricer::new`]: there is no search.
    pub(super) fn new(
        problem: &Problem,
        order: &[u32],
        random: Random,
        rule: usize,
        deadline: Option<Instant>,
    ) -> Option<Self> {
        let pricer = Pricer::new(problem, order, rule, deadline)?;
        Some(Self {
            random,
            best: order.to_vec(),
            best_total: pricer.total(),
            pricer,
            decoder: Decoder::new(problem),
            shuffle: Shuffle::default(),
            stage: Stage::Steps,
            heat: 0.0,
            done: 0,
            cool_after: 1,
            wanted: Vec::new(),
            steps: Vec::new(),
        })
    }

    /// The best order found, and what it moves.
    pub(super) fn best(&self) -> (&[u32], u64) {
        (&self.best, self.best_total)
    }

    /// Starts again from `order`.
    pub(super) fn restart(&mut self, problem: &Problem, order: &[u32]) {
        if self.pricer.reset(problem, order) {
            self.best.clear();
            self.best.extend_from_slice(order);
            self.best_total = self.pricer.total();
        }
    }

    /// Begins an annealing of `trials` trials over the segments of the present order; of
    /// `variants` rows that are built and the order as it is the best is the start.
    pub(super) fn begin_segments(
        &mut self,
        problem: &Problem,
        trials: u64,
        warmth: f64,
        reach: usize,
        variants: u32,
    ) {
        let segments = cut(problem, &self.pricer.line.order, reach);
        if segments.len() < 2 {
            return self.begin_steps(problem, trials, warmth);
        }
        let row = self.build(problem, &segments, variants);
        let mut strung = Box::new(Strung::new(segments, row));
        strung.decode(
            problem,
            &self.pricer.line.pos,
            &mut self.decoder,
            &mut self.steps,
        );
        // It fails only when it is late, and then nothing more will be tried.
        if self.attempt(problem, 0, u64::MAX) {
            strung.settle(true);
            self.stage = Stage::Segments(strung);
        }
        self.begin(trials, warmth);
    }

    /// Begins an annealing of `trials` trials over the steps of the best order.
    pub(super) fn begin_steps(&mut self, problem: &Problem, trials: u64, warmth: f64) {
        if self.pricer.total() > self.best_total {
            let best = std::mem::take(&mut self.best);
            self.restart(problem, &best);
        }
        self.stage = Stage::Steps;
        self.begin(trials, warmth);
    }

    fn begin(&mut self, trials: u64, warmth: f64) {
        self.heat = warmth * self.pricer.typical();
        self.done = 0;
        self.cool_after = trials.div_ceil(COOLINGS).max(1);
    }

    /// Makes `trials` trials.
    pub(super) fn run(&mut self, problem: &Problem, trials: u64) {
        let mut stage = std::mem::replace(&mut self.stage, Stage::Steps);
        for _ in 0..trials {
            if self.best_total == 0 {
                break;
            }
            match &mut stage {
                Stage::Segments(strung) => self.try_segments(problem, strung),
                Stage::Steps => self.try_steps(problem),
            }
            self.done += 1;
            if self.done % self.cool_after == 0 {
                self.heat *= COOLING;
            }
        }
        self.stage = stage;
    }

    fn try_segments(&mut self, problem: &Problem, strung: &mut Strung) {
        if strung.draw(problem, &self.pricer, &mut self.random, &mut self.shuffle) {
            let pos = &self.pricer.line.pos;
            let start = strung.decode(problem, pos, &mut self.decoder, &mut self.steps);
            let limit = self.limit();
            let kept = self.attempt(problem, start, limit);
            strung.settle(kept);
        }
    }

    fn try_steps(&mut self, problem: &Problem) {
        let places = problem.steps();
        if places < 2 {
            return;
        }
        let drawn = match self.random.below(4) {
            0 => self.shuffle.draw(&mut self.random, places),
            _ => match self.pricer.eviction(problem, &mut self.random) {
                Some((last, next)) => {
                    self.shuffle
                        .close(&mut self.random, places, last as usize, next as usize)
                }
                None => false,
            },
        };
        if drawn {
            let start = self.shuffle.start as u32;
            let order = &self.pricer.line.order;
            self.wanted.clear();
            self.wanted
                .extend(self.shuffle.from.iter().map(|&place| order[place as usize]));
            self.steps.clear();
            self.decoder.begin();
            self.decoder.add(
                problem,
                &self.pricer.line.pos,
                start,
                &self.wanted,
                &mut self.steps,
            );
            let limit = self.limit();
            self.attempt(problem, start, limit);
        }
    }

    /// What an order may move at most to be accepted.
    fn limit(&mut self) -> u64 {
        let more = self.heat * self.random.exponential();
        self.pricer.total().saturating_add(more as u64)
    }

    /// Puts `self.steps` at `start` unless that moves more than `limit`.
    fn attempt(&mut self, problem: &Problem, start: u32, limit: u64) -> bool {
        let order = &self.pricer.line.order[start as usize..start as usize + self.steps.len()];
        let same = |(one, other): &(&u32, &u32)| one == other;
        let head = order.iter().zip(&self.steps).take_while(same).count();
        if head == self.steps.len() {
            return true;
        }
        let tail = order
            .iter()
            .rev()
            .zip(self.steps.iter().rev())
            .take_while(same)
            .count();
        let steps = &self.steps[head..self.steps.len() - tail];
        if !self
            .pricer
            .attempt(problem, start + head as u32, steps, limit)
        {
            return false;
        }
        if self.pricer.total() < self.best_total {
            self.best_total = self.pricer.total();
            self.best.clone_from(&self.pricer.line.order);
        }
        true
    }

    /// The best of several rows of `segments`: as they are, and `variants` that are built.
    fn build(&mut self, problem: &Problem, segments: &[Vec<u32>], variants: u32) -> Row {
        let mut best = (self.pricer.total(), Row::new(segments.len()));
        if segments.len() > MOST_BUILT || variants == 0 {
            return best.1;
        }
        let kinship = Kinship::new(problem, segments);
        let (mut taken, mut order) = (Vec::new(), Vec::new());
        let present = self.pricer.line.order.clone();
        // Groups compared for each place.
        let seeds = (MOST_BUILT * 4 / segments.len()).clamp(4, 64);
        let mut group = 0;
        let mut least = u64::MAX;
        for variant in 0..variants as usize {
            // Each size of group once, then the one that gave the best with ties broken at random.
            let row = match variant {
                0..GROUP => kinship.row(1 + variant, seeds, None),
                _ => kinship.row(group, seeds, Some(&mut self.random)),
            };
            self.decoder.begin();
            order.clear();
            let mut place = 0;
            while place < segments.len() {
                let end = row.group_end(place + 1);
                self.wanted.clear();
                weave(
                    segments,
                    &row.segment[place..end],
                    &mut taken,
                    &mut self.wanted,
                );
                let pos = &self.pricer.line.pos;
                self.decoder.add(problem, pos, 0, &self.wanted, &mut order);
                place = end;
            }
            if !self.pricer.reset(problem, &order) {
                break;
            }
            let total = self.pricer.total();
            if total < least {
                least = total;
                group = if variant < GROUP { 1 + variant } else { group };
            }
            if total < best.0 {
                best = (total, row);
            }
        }
        self.pricer.reset(problem, &present);
        best.1
    }
}
