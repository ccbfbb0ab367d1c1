#![forbid(unsafe_code)]
//! A row of segments that keeps together what shares buffers.

use super::super::csr::Lists;
use super::problem::Problem;
use super::random::Random;
use super::segments::Row;

/// What segments share and how they depend on each other.
#[derive(Debug)]
pub(super) struct Kinship {
    /// The buffers of each segment that others use too.
    shared: Lists<u32>,
    /// The segments that use each of these buffers.
    users: Lists<u32>,
    /// What a spill of each buffer moves.
    weight: Vec<u64>,
    /// The segments that depend on each one, and how many each depends on.
    after: Lists<u32>,
    waiting: Vec<u32>,
}

impl Kinship {
    /// `segments` are stretches of one order that keeps the dependencies, in its order.
    pub(super) fn new(problem: &Problem, segments: &[Vec<u32>]) -> Self {
        let count = segments.len();
        let mut segment_of = vec![0u32; problem.steps()];
        for (segment, steps) in segments.iter().enumerate() {
            for &step in steps {
                segment_of[step as usize] = segment as u32;
            }
        }
        let mut edges = Vec::new();
        let mut pairs = Vec::new();
        for (segment, steps) in segments.iter().enumerate() {
            let segment = segment as u32;
            for &step in steps {
                // What waits for nothing itself, such as a load, comes whenever it is wanted.
                let bound = |need: &&u32| !problem.before.list(**need).is_empty();
                let needs = problem.before.list(step).iter().filter(bound);
                let needs = needs.map(|&need| segment_of[need as usize]);
                edges.extend(
                    needs
                        .filter(|&need| need != segment)
                        .map(|need| (need, segment)),
                );
                pairs.extend(
                    problem
                        .uses(step)
                        .iter()
                        .map(|&used| (problem.use_buffer[used as usize], segment)),
                );
            }
        }
        edges.sort_unstable();
        edges.dedup();
        pairs.sort_unstable();
        pairs.dedup();
        let mut waiting = vec![0; count];
        for &(_, segment) in &edges {
            waiting[segment as usize] += 1;
        }
        let mut users = vec![0u32; problem.size.len()];
        for &(buffer, _) in &pairs {
            users[buffer as usize] += 1;
        }
        pairs.retain(|&(buffer, _)| users[buffer as usize] > 1);
        Self {
            shared: Lists::new(count, || {
                pairs.iter().map(|&(buffer, segment)| (segment, buffer))
            }),
            users: Lists::new(problem.size.len(), || pairs.iter().copied()),
            weight: (0..problem.size.len())
                .map(|b| problem.moved(b as u32, !problem.backed[b]))
                .collect(),
            after: Lists::new(count, || edges.iter().copied()),
            waiting,
        }
    }

    /// A row of groups of `group` woven segments: next comes always the group that needs the fewest
    /// bytes which the one before did not use, among groups that are begun with one of `seeds`
    /// segments of least need. Of equal ones comes what was nearest in the order that the segments
    /// are cut from, or with `random` any.
    pub(super) fn row(&self, group: usize, seeds: usize, mut random: Option<&mut Random>) -> Row {
        let mut build = Build {
            kinship: self,
            waiting: self.waiting.clone(),
            ready: (0..self.waiting.len() as u32)
                .filter(|&segment| self.waiting[segment as usize] == 0)
                .collect(),
            lacking: (0..self.waiting.len() as u32)
                .map(|segment| {
                    self.shared
                        .list(segment)
                        .iter()
                        .map(|&buffer| self.weight[buffer as usize])
                        .sum()
                })
                .collect(),
            at_hand: vec![0; self.weight.len()],
        };
        let mut row = Row::new(0);
        let mut before: Vec<u32> = Vec::new();
        let (mut members, mut best) = (Vec::new(), Vec::new());
        let (mut tied, mut anchor) = (Vec::new(), 0);
        while !build.ready.is_empty() {
            build.least(&[], &mut tied);
            near_first(&mut tied, anchor, random.as_deref_mut());
            let mut least = u64::MAX;
            let seeds = tied.len().min(if group == 1 { 1 } else { seeds });
            let choice: Vec<u32> = tied[..seeds].to_vec();
            for seed in choice {
                members.clear();
                let mut needs = 0;
                let mut next = Some(seed);
                while let Some(segment) = next {
                    needs += build.lacking[segment as usize];
                    members.push(segment);
                    build.take(segment);
                    if members.len() == group {
                        break;
                    }
                    build.least(&members, &mut tied);
                    near_first(&mut tied, segment, random.as_deref_mut());
                    next = tied.first().copied();
                }
                for &segment in &members {
                    build.leave(segment);
                }
                if needs < least {
                    least = needs;
                    best.clone_from(&members);
                }
            }
            for &segment in &best {
                build.take(segment);
            }
            for &segment in &before {
                build.leave(segment);
            }
            for (index, &segment) in best.iter().enumerate() {
                row.segment.push(segment);
                row.woven.push(index > 0);
                build.done(segment);
            }
            anchor = best.last().copied().unwrap_or(anchor);
            before.clone_from(&best);
        }
        row
    }
}

/// Puts those first that are nearest to `anchor`, or shuffles.
fn near_first(tied: &mut [u32], anchor: u32, random: Option<&mut Random>) {
    match random {
        None => tied.sort_unstable_by_key(|&segment| (segment.abs_diff(anchor), segment)),
        Some(random) => {
            for place in (1..tied.len()).rev() {
                tied.swap(place, random.below(place as u32 + 1) as usize);
            }
        }
    }
}

/// A row that is being built.
struct Build<'a> {
    kinship: &'a Kinship,
    waiting: Vec<u32>,
    ready: Vec<u32>,
    /// Bytes that each segment needs and would not find.
    lacking: Vec<u64>,
    /// How many of the segments taken and not left use each buffer.
    at_hand: Vec<u32>,
}

impl Build<'_> {
    /// Sets `tied` to the ready segments of least need, but for `members`.
    fn least(&self, members: &[u32], tied: &mut Vec<u32>) {
        let mut least = u64::MAX;
        tied.clear();
        for &segment in &self.ready {
            let lacking = self.lacking[segment as usize];
            if lacking > least || members.contains(&segment) {
                continue;
            }
            if lacking < least {
                least = lacking;
                tied.clear();
            }
            tied.push(segment);
        }
    }

    /// The buffers of `segment` are at hand.
    fn take(&mut self, segment: u32) {
        for &buffer in self.kinship.shared.list(segment) {
            self.at_hand[buffer as usize] += 1;
            if self.at_hand[buffer as usize] == 1 {
                for &user in self.kinship.users.list(buffer) {
                    self.lacking[user as usize] -= self.kinship.weight[buffer as usize];
                }
            }
        }
    }

    /// The reverse of [`Self::take`].
    fn leave(&mut self, segment: u32) {
        for &buffer in self.kinship.shared.list(segment) {
            self.at_hand[buffer as usize] -= 1;
            if self.at_hand[buffer as usize] == 0 {
                for &user in self.kinship.users.list(buffer) {
                    self.lacking[user as usize] += self.kinship.weight[buffer as usize];
                }
            }
        }
    }

    fn done(&mut self, segment: u32) {
        self.ready.retain(|&other| other != segment);
        for &next in self.kinship.after.list(segment) {
            self.waiting[next as usize] -= 1;
            if self.waiting[next as usize] == 0 {
                self.ready.push(next);
            }
        }
    }
}
