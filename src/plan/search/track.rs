#![forbid(unsafe_code)]
//! The traffic of one memory under one order and one rule of eviction, kept so that a change to a stretch of the order is priced
//! without running the whole order again.
//!
//! The rules are greedy in the manner of Belady (A study of replacement algorithms for a virtual-storage computer, 1966): when a
//! buffer does not fit, the resident whose next use is farthest goes, weighed by what it costs to bring back and by its size.

use super::line::Line;
use super::problem::{NONE, Problem};
use super::random::Random;
use super::residents::Residents;

/// Positions between two marks.
const STRIDE: u32 = 32;

/// Which resident leaves when a buffer does not fit: the one with the largest key, `major + factor * (next use - now)`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Rule {
    /// The farthest next use.
    Farthest,
    /// The distance of the next use for each byte of traffic.
    Weighted,
    /// What costs its size before what costs twice its size, then the farthest.
    CheapFirst,
    /// The largest, then the farthest.
    LargeFirst,
}

/// Above any distance times any factor, so that `major` decides first.
const FAR: u64 = 1 << 34;

#[derive(Debug, Default, Clone)]
struct Eviction {
    position: u32,
    victim: u32,
    /// At most the victim's key, and at least the largest key among those that stayed.
    key: u64,
    second: u64,
}

/// The state just before one position, and what was evicted from there to the next mark.
#[derive(Debug, Default, Clone)]
struct Mark {
    cost: u64,
    hash: u64,
    /// A use of each resident: its latest one when the mark was made, which changes to the order may have moved since.
    residents: Vec<u32>,
    evictions: Vec<Eviction>,
}

/// One memory under one rule.
#[derive(Debug)]
pub(super) struct Track {
    memory: usize,
    rule: Rule,
    total: u64,
    marks: Vec<Mark>,
    /// The last trial: its marks, of which the one for mark `first` is at 0, and the bytes.
    trial: Vec<Mark>,
    first: usize,
    count: usize,
    trial_total: u64,
}

impl Track {
    pub(super) fn new(memory: usize, rule: Rule) -> Track {
        Track {
            memory,
            rule,
            total: 0,
            marks: Vec::new(),
            trial: Vec::new(),
            first: 0,
            count: 0,
            trial_total: 0,
        }
    }

    /// How often something is evicted under the order last accepted.
    pub(super) fn evictions(&self) -> u64 {
        self.marks
            .iter()
            .map(|mark| mark.evictions.len() as u64)
            .sum()
    }

    /// An eviction under the order last accepted, found from a random position on: the positions of
    /// the victim's last use before it and of its next use. None: there is none.
    pub(super) fn eviction(
        &self,
        problem: &Problem,
        line: &Line,
        random: &mut Random,
    ) -> Option<(u32, u32)> {
        if self.total == 0 {
            return None;
        }
        let from = random.below(self.marks.len() as u32) as usize;
        let (early, late) = self.marks.split_at(from);
        let mark = late
            .iter()
            .chain(early)
            .find(|mark| !mark.evictions.is_empty())?;
        let eviction = &mark.evictions[random.below(mark.evictions.len() as u32) as usize];
        let mut next = line.first_use(eviction.victim);
        while line.position(problem, next) <= eviction.position {
            next = line.next[next as usize];
        }
        let last = line.prev[next as usize];
        Some((line.position(problem, last), line.position(problem, next)))
    }

    /// Prices the whole order. None: some step's buffers do not fit together.
    pub(super) fn reset(
        &mut self,
        problem: &Problem,
        line: &Line,
        residents: &mut Residents,
    ) -> Option<u64> {
        self.marks.clear();
        self.marks.resize(
            (line.order.len() as u32).div_ceil(STRIDE) as usize,
            Mark::default(),
        );
        self.total = 0;
        let total = self.run(problem, line, residents, 0, u32::MAX, u64::MAX)?;
        self.accept();
        Some(total)
    }

    /// Prices the order after a change to the open stretch of `line`; None where it moves more than `limit` bytes.
    pub(super) fn attempt(
        &mut self,
        problem: &Problem,
        line: &Line,
        residents: &mut Residents,
        limit: u64,
    ) -> Option<u64> {
        let restart = self.restart(problem, line);
        self.run(problem, line, residents, restart, line.settled, limit)
    }

    /// Makes the last trial, which was within its limit, the state.
    pub(super) fn accept(&mut self) {
        for (mark, trial) in self.marks[self.first..]
            .iter_mut()
            .zip(&mut self.trial[..self.count])
        {
            std::mem::swap(mark, trial);
        }
        // A mark is the state before its position: what follows the last one made here moves by the same amount.
        let rest = self.first + self.count;
        if self.trial_total != self.total {
            for mark in &mut self.marks[rest..] {
                mark.cost = mark
                    .cost
                    .wrapping_add(self.trial_total)
                    .wrapping_sub(self.total);
            }
            self.total = self.trial_total;
        }
    }

    fn weight(&self, problem: &Problem, buffer: u32, dirty: bool) -> (u64, u64) {
        match self.rule {
            Rule::Farthest => (0, 1),
            Rule::Weighted => (0, 2 - u64::from(dirty)),
            Rule::CheapFirst => (u64::from(!dirty) * FAR, 1),
            Rule::LargeFirst => (u64::from(problem.size_rank[buffer as usize]) * FAR, 1),
        }
    }

    /// The last mark before which the change makes no difference. Evictions before the stretch look at what comes in it.
    fn restart(&mut self, problem: &Problem, line: &Line) -> usize {
        let start = (line.start / STRIDE) as usize;
        let mut earliest = line.start;
        for &buffer in &line.touched {
            if problem.memory[buffer as usize] as usize == self.memory {
                if let Some((before, _)) = line.across(buffer) {
                    earliest = earliest.min(line.position(problem, before));
                }
            }
        }
        for mark in (earliest / STRIDE) as usize..=start {
            for at in 0..self.marks[mark].evictions.len() {
                let now = self.marks[mark].evictions[at].position;
                if now > earliest && now < line.start && self.changes(problem, line, mark, at) {
                    return mark;
                }
            }
        }
        start
    }

    /// Whether an eviction before the stretch would choose otherwise. Where it would not, its keys
    /// are moved towards each other by what the change does to them, so that they stay on the safe
    /// side whether or not the change is accepted.
    fn changes(&mut self, problem: &Problem, line: &Line, mark: usize, at: usize) -> bool {
        let eviction = &self.marks[mark].evictions[at];
        let now = eviction.position;
        let key = |buffer: u32| {
            let (before, first) = line.across(buffer)?;
            if line.position(problem, before) >= now {
                return None;
            }
            let (major, factor) = self.weight(problem, buffer, line.dirty[before as usize]);
            Some(major + factor * u64::from(line.position(problem, first) - now))
        };
        let victim = eviction.victim;
        let touched = line.is_touched(victim);
        let bar = touched
            .then(|| key(victim))
            .flatten()
            .unwrap_or(eviction.key);
        let mut second = eviction.second;
        for &buffer in &line.touched {
            if problem.memory[buffer as usize] as usize == self.memory && buffer != victim {
                second = second.max(key(buffer).unwrap_or(0));
            }
        }
        let eviction = &mut self.marks[mark].evictions[at];
        if bar <= second {
            return true;
        }
        eviction.key = eviction.key.min(bar);
        eviction.second = second;
        false
    }

    fn run(
        &mut self,
        problem: &Problem,
        line: &Line,
        residents: &mut Residents,
        restart: usize,
        settled: u32,
        limit: u64,
    ) -> Option<u64> {
        residents.clear();
        let mut position = restart as u32 * STRIDE;
        let mut cost = 0;
        if restart > 0 {
            let mark = &self.marks[restart];
            cost = mark.cost;
            for &hint in &mark.residents {
                let last = latest_before(problem, line, hint, position);
                let buffer = problem.use_buffer[last as usize];
                let dirty = line.dirty[last as usize];
                let next = line.position(problem, line.next[last as usize]);
                residents.add(
                    problem,
                    buffer,
                    last,
                    next,
                    problem.moved(buffer, dirty),
                    self.weight(problem, buffer, dirty),
                );
            }
        }
        self.first = restart;
        self.count = 0;
        let end = line.order.len() as u32;
        let capacity = problem.room[self.memory];
        while position < end {
            let index = (position / STRIDE) as usize;
            if position >= settled && residents.hash() == self.marks[index].hash {
                // The same residents and the same steps to come: the rest costs what it did.
                self.trial_total = cost
                    .wrapping_add(self.total)
                    .wrapping_sub(self.marks[index].cost);
                return (self.trial_total <= limit).then_some(self.trial_total);
            }
            if self.count == self.trial.len() {
                self.trial.push(Mark::default());
            }
            let mark = &mut self.trial[self.count];
            self.count += 1;
            mark.cost = cost;
            mark.hash = residents.hash();
            mark.residents.clear();
            mark.residents.extend_from_slice(residents.uses());
            mark.evictions.clear();
            for now in position..end.min(position + STRIDE) {
                let uses = problem.uses_in(line.order[now as usize], self.memory);
                if uses.is_empty() {
                    continue;
                }
                for &used in uses {
                    residents.pin(problem.use_buffer[used as usize], now);
                }
                for &used in uses {
                    let buffer = problem.use_buffer[used as usize];
                    if residents.holds(buffer) {
                        continue;
                    }
                    while capacity - residents.used() < problem.size[buffer as usize] {
                        let (slot, key, second) = residents.victim(now)?;
                        cost = residents.bytes(slot).saturating_add(cost);
                        if cost > limit {
                            return None;
                        }
                        let victim = residents.remove(problem, slot);
                        self.trial[self.count - 1].evictions.push(Eviction {
                            position: now,
                            victim,
                            key,
                            second,
                        });
                    }
                    residents.add(problem, buffer, used, now, 0, (0, 0));
                }
                for &used in uses {
                    let buffer = problem.use_buffer[used as usize];
                    let next = line.next[used as usize];
                    if next == NONE {
                        residents.drop_buffer(problem, buffer);
                    } else {
                        let dirty = line.dirty[used as usize];
                        let weight = self.weight(problem, buffer, dirty);
                        residents.used_at(
                            buffer,
                            used,
                            line.position(problem, next),
                            problem.moved(buffer, dirty),
                            weight,
                        );
                    }
                }
            }
            position += STRIDE;
        }
        self.trial_total = cost;
        (cost <= limit).then_some(cost)
    }
}

/// The last use before `position` of the buffer that `hint` is a use of; there is one.
fn latest_before(problem: &Problem, line: &Line, hint: u32, position: u32) -> u32 {
    let mut last = hint;
    while line.position(problem, last) >= position {
        last = line.prev[last as usize];
    }
    loop {
        let next = line.next[last as usize];
        if next == NONE || line.position(problem, next) >= position {
            return last;
        }
        last = next;
    }
}
