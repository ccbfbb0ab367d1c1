#![forbid(unsafe_code)]
//! From the gaps of a memory to spill to offsets.

use std::cmp::Reverse;

use super::draft::{Draft, buffers, first_event, traffic};
use super::subsets::Subsets;
use super::watch::Watch;
use crate::plan::control::Control;
use crate::plan::error::{PlanError, PlanErrorKind};
use crate::plan::graph::Graph;
use crate::plan::place::{Lifetime, place};
use crate::plan::timeline::Timeline;

/// Searches for a place for everything, each from another seed, and the steps of each. Such searches
/// end soon or never, so that it is better to start afresh than to go on (Gomes, Selman and Kautz,
/// "Boosting combinatorial search through randomization", AAAI 1998).
const SEARCHES: u64 = 12;
const STEPS: u64 = 1 << 17;
/// Choices of further gaps that are tried, the gaps that they are made of, and the steps of each.
const TRIALS: usize = 48;
const FURTHER: usize = 16;
const TRIAL_STEPS: u64 = 1 << 15;
/// Memories with so many gaps at most are gone through for all choices; so many at most.
const ALL_GAPS: usize = 48;
const ALL_CHOICES: usize = 1 << 16;

/// One memory's part of a plan.
pub struct Memory<'a> {
    graph: &'a Graph,
    timeline: &'a Timeline,
    memory: u32,
    buffers: Vec<u32>,
}

/// A residency: its first event, and what must be placed.
struct Piece {
    event: usize,
    lifetime: Lifetime,
}

/// What became of an attempt to place all residencies.
enum Attempt {
    /// Offsets for the events that start a residency.
    Placed(Vec<(usize, u64)>),
    /// There is no way.
    Impossible,
    /// None was found.
    Unknown,
}

impl<'a> Memory<'a> {
    pub fn new(graph: &'a Graph, timeline: &'a Timeline, memory: u32) -> Self {
        Self {
            graph,
            timeline,
            memory,
            buffers: buffers(graph, memory).collect(),
        }
    }

    /// Looks for a place for what is left when these gaps are spilled, and takes it over into the
    /// draft if that moves less; spills more gaps where it must. Answers what no plan for the memory
    /// falls below, which is at least `lower_bound`.
    pub fn improve(
        &self,
        gaps: &[usize],
        lower_bound: u128,
        draft: &mut Draft,
        watch: &mut Watch<'_>,
    ) -> Result<u128, PlanError> {
        let mut spilled = draft.spilled.clone();
        self.clear(&mut spilled);
        for &gap in gaps {
            spilled[gap] = true;
        }
        let least = traffic(self.graph, self.timeline, self.memory, &spilled);
        let swept = Draft::place(self.graph, self.timeline, spilled.clone())?;
        self.adopt_if_better(draft, &swept);
        if self.traffic(draft) <= least {
            return Ok(lower_bound);
        }
        for search in 0..SEARCHES {
            match self.attempt(&spilled, STEPS, search, watch) {
                Attempt::Placed(offsets) => {
                    self.take(draft, &spilled, &offsets);
                    return Ok(lower_bound);
                }
                Attempt::Impossible => break,
                Attempt::Unknown => {}
            }
            if watch.stopped().is_some() {
                return Ok(lower_bound);
            }
        }
        self.spill_further(&spilled, least, &swept, draft, watch);
        Ok(self.try_all(lower_bound, draft, watch))
    }

    fn traffic(&self, draft: &Draft) -> u128 {
        draft.traffic[self.memory as usize]
    }

    fn adopt_if_better(&self, draft: &mut Draft, other: &Draft) {
        if self.traffic(other) < self.traffic(draft) {
            draft.adopt(self.timeline, self.memory, &self.buffers, other);
        }
    }

    /// Every gap of the memory, as its buffer and its index among the buffer's.
    fn gaps(&self) -> impl Iterator<Item = (u32, usize)> {
        let gaps = |buffer: u32| 0..self.timeline.events(buffer).len() - 1;
        let buffers = self.buffers.iter().copied();
        let buffers = buffers.filter(|buffer| self.graph.footprint(*buffer) > 0);
        buffers.flat_map(move |buffer| gaps(buffer).map(move |gap| (buffer, gap)))
    }

    fn number(&self, (buffer, gap): (u32, usize)) -> usize {
        self.timeline.first_gap(buffer) + gap
    }

    fn clear(&self, spilled: &mut [bool]) {
        for gap in self.gaps() {
            spilled[self.number(gap)] = false;
        }
    }

    fn pieces(&self, spilled: &[bool]) -> Vec<Piece> {
        let mut pieces = Vec::new();
        for &buffer in &self.buffers {
            let events = self.timeline.events(buffer);
            let size = self.graph.footprint(buffer);
            if size == 0 {
                continue;
            }
            let mut first = 0;
            for at in 0..events.len() {
                if at + 1 == events.len() || spilled[self.number((buffer, at))] {
                    pieces.push(Piece {
                        event: first_event(self.timeline, buffer) + first,
                        lifetime: Lifetime {
                            lower: events[first].into(),
                            upper: u64::from(events[at]) + 1,
                            size,
                        },
                    });
                    first = at + 1;
                }
            }
        }
        pieces
    }

    /// Tries to place what is left when these gaps are spilled.
    fn attempt(&self, spilled: &[bool], steps: u64, search: u64, watch: &mut Watch<'_>) -> Attempt {
        let pieces = self.pieces(spilled);
        if !watch.go_on(pieces.len() as u64) {
            return Attempt::Unknown;
        }
        let (events, lifetimes): (Vec<_>, Vec<_>) = pieces
            .into_iter()
            .map(|piece| (piece.event, piece.lifetime))
            .unzip();
        let room = self.graph.room(self.memory);
        let found = watch.lend(steps, |control| {
            let seed = control.seed.wrapping_add(search);
            place(&lifetimes, Some(room), &Control { seed, ..*control })
        });
        match found {
            Ok(placement) => Attempt::Placed(events.into_iter().zip(placement.offsets).collect()),
            Err(error) if error.kind == PlanErrorKind::NoPlacement => Attempt::Impossible,
            Err(_) => Attempt::Unknown,
        }
    }

    /// Takes over a choice of gaps and its offsets.
    fn take(&self, draft: &mut Draft, spilled: &[bool], offsets: &[(usize, u64)]) {
        for gap in self.gaps() {
            let number = self.number(gap);
            draft.spilled[number] = spilled[number];
        }
        for (event, offset) in offsets {
            draft.offsets[*event] = *offset;
        }
        draft.traffic[self.memory as usize] =
            traffic(self.graph, self.timeline, self.memory, &draft.spilled);
    }

    /// Spills, besides a choice that moves `least` bytes, as few bytes more as will do, near those
    /// gaps that a sweep had to spill besides.
    fn spill_further(
        &self,
        spilled: &[bool],
        least: u128,
        swept: &Draft,
        draft: &mut Draft,
        watch: &mut Watch<'_>,
    ) {
        let span = |(buffer, gap): (u32, usize)| {
            let events = self.timeline.events(buffer);
            (events[gap], events[gap + 1])
        };
        let is_further = |gap: &(u32, usize)| {
            let number = self.number(*gap);
            swept.spilled[number] && !spilled[number]
        };
        let trouble: Vec<_> = self.gaps().filter(is_further).collect();
        let size = |(buffer, _): &(u32, usize)| self.graph.footprint(*buffer);
        let least_size = trouble.iter().map(size).min().unwrap_or(0);
        let trouble: Vec<_> = trouble.into_iter().map(span).collect();
        let mut further: Vec<_> = self
            .gaps()
            .filter(|gap| !spilled[self.number(*gap)] && size(gap) >= least_size)
            .filter(|gap| {
                let (from, to) = span(*gap);
                trouble
                    .iter()
                    .any(|(first, last)| from < *last && *first < to)
            })
            .collect();
        // Those that win most for what they move.
        further.sort_by_key(|&(buffer, gap)| {
            let (from, to) = span((buffer, gap));
            let wins = u128::from(size(&(buffer, gap))) * u128::from(to - from);
            Reverse(wins / u128::from(self.timeline.gap_traffic(buffer, gap).max(1)))
        });
        further.truncate(FURTHER);
        let costs: Vec<_> = further
            .iter()
            .map(|(buffer, gap)| self.timeline.gap_traffic(*buffer, *gap))
            .collect();
        for (cost, set) in Subsets::new(&costs).skip(1).take(TRIALS) {
            if least + cost >= self.traffic(draft) || watch.stopped().is_some() {
                break;
            }
            let mut more = spilled.to_vec();
            for (at, gap) in further.iter().enumerate() {
                more[self.number(*gap)] |= set >> at & 1 != 0;
            }
            if let Attempt::Placed(offsets) = self.attempt(&more, TRIAL_STEPS, 0, watch) {
                self.take(draft, &more, &offsets);
                break;
            }
        }
    }

    /// Where the memory has few gaps: tries all choices, the cheapest first. Answers what none falls
    /// below.
    fn try_all(&self, lower_bound: u128, draft: &mut Draft, watch: &mut Watch<'_>) -> u128 {
        let gaps: Vec<_> = self.gaps().collect();
        if gaps.len() > ALL_GAPS {
            return lower_bound;
        }
        let costs: Vec<_> = gaps
            .iter()
            .map(|(buffer, gap)| self.timeline.gap_traffic(*buffer, *gap))
            .collect();
        let mut bound = None;
        let mut spilled = draft.spilled.clone();
        for (cost, set) in Subsets::new(&costs).take(ALL_CHOICES) {
            if cost >= self.traffic(draft) {
                return bound.unwrap_or(cost.min(self.traffic(draft)));
            }
            if !watch.go_on(1) {
                return bound.unwrap_or(cost).max(lower_bound);
            }
            if cost < lower_bound {
                continue;
            }
            for (at, gap) in gaps.iter().enumerate() {
                spilled[self.number(*gap)] = set >> at & 1 != 0;
            }
            match self.attempt(&spilled, TRIAL_STEPS, 0, watch) {
                Attempt::Placed(offsets) => {
                    self.take(draft, &spilled, &offsets);
                    return bound.unwrap_or(cost);
                }
                Attempt::Impossible => {}
                Attempt::Unknown => bound = bound.or(Some(cost)),
            }
        }
        lower_bound
    }
}
