#![forbid(unsafe_code)]
//! The traffic of an order, and of orders that differ from it in one stretch: the sum over the memories.

use std::time::Instant;

use super::line::Line;
use super::problem::Problem;
use super::random::Random;
use super::residents::Residents;
use super::track::Track;

/// An order with its traffic under one rule for each memory.
#[derive(Debug)]
pub(super) struct Pricer {
    pub(super) line: Line,
    /// One for each memory.
    tracks: Vec<Track>,
    residents: Residents,
    /// The steps that the trial replaced.
    replaced: Vec<u32>,
    total: u64,
}

impl Pricer {
    /// Prices `order`; where a memory has several rules, by number `rule` of them, counted round.
    /// After `deadline` no order is priced. None: that, or some step's buffers do not fit together.
    pub(super) fn new(
        problem: &Problem,
        order: &[u32],
        rule: usize,
        deadline: Option<Instant>,
    ) -> Option<Self> {
        let rules = problem.rules.iter().enumerate();
        let mut pricer = Self {
            line: Line::new(problem, order),
            tracks: rules
                .map(|(memory, rules)| Track::new(memory, rules[rule % rules.len()]))
                .collect(),
            residents: Residents::new(problem, deadline),
            replaced: Vec::new(),
            total: 0,
        };
        pricer.price_all(problem).then_some(pricer)
    }

    /// Takes up another order; false, as in [`Self::new`]: nothing can be done with this any more.
    pub(super) fn reset(&mut self, problem: &Problem, order: &[u32]) -> bool {
        self.line.open(problem, 0, order.len() as u32);
        self.line.put(problem, order);
        self.price_all(problem)
    }

    fn price_all(&mut self, problem: &Problem) -> bool {
        self.total = 0;
        for track in &mut self.tracks {
            match track.reset(problem, &self.line, &mut self.residents) {
                Some(total) => self.total = self.total.saturating_add(total),
                None => return false,
            }
        }
        true
    }

    /// Bytes moved under the present order.
    pub(super) fn total(&self) -> u64 {
        self.total
    }

    /// Bytes moved by a spill, on average.
    pub(super) fn typical(&self) -> f64 {
        let evictions: u64 = self.tracks.iter().map(Track::evictions).sum();
        self.total as f64 / evictions.max(1) as f64
    }

    /// A gap that is spilled, see [`Track::eviction`].
    pub(super) fn eviction(&self, problem: &Problem, random: &mut Random) -> Option<(u32, u32)> {
        let from = random.below(self.tracks.len().max(1) as u32) as usize;
        let (early, late) = self.tracks.split_at(from);
        let mut tracks = late.iter().chain(early);
        tracks.find_map(|track| track.eviction(problem, &self.line, random))
    }

    /// Puts `steps`, a reordering of those from position `start` on, in their place. If that moves at
    /// most `limit` bytes it stays, and the result is true.
    pub(super) fn attempt(
        &mut self,
        problem: &Problem,
        start: u32,
        steps: &[u32],
        limit: u64,
    ) -> bool {
        let end = start + steps.len() as u32;
        self.replaced.clear();
        self.replaced
            .extend_from_slice(&self.line.order[start as usize..end as usize]);
        self.line.open(problem, start, end);
        self.line.put(problem, steps);
        let mut total = 0u64;
        for track in &mut self.tracks {
            match track.attempt(problem, &self.line, &mut self.residents, limit - total) {
                Some(price) => total += price,
                None => {
                    self.line.put(problem, &self.replaced);
                    return false;
                }
            }
        }
        for track in &mut self.tracks {
            track.accept();
        }
        self.total = total;
        true
    }
}
