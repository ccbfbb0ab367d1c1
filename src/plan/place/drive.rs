#![forbid(unsafe_code)]
//! From lifetimes to a placement: fast rules first, then search where they leave room.

use super::effort::Effort;
use super::instance::{Component, Instance};
use super::problem::Problem;
use super::rules::{RULES, apply};
use super::search::Outcome;
use super::{Lifetime, Placement};
use crate::plan::control::Progress;
use crate::plan::{Control, PlanError, PlanErrorKind, Stopped};

/// The work done where the caller bounds neither time nor work.
const DEFAULT_WORK: u64 = 2_000_000;
/// Nodes of the search that take as long as placing one item by a rule with chance in it.
const PRICE_OF_CHANCE: u64 = 8;
/// Runs without success after which the next height to try is closer to the best one.
const PATIENCE: u64 = 8;

pub(super) fn place(
    lifetimes: &[Lifetime],
    capacity: Option<u64>,
    control: &Control<'_>,
) -> Result<Placement, PlanError> {
    let instance = Instance::new(lifetimes)?;
    let room = capacity.map(|bytes| bytes / instance.unit);
    if let (Some(room), Some(capacity)) = (room, capacity) {
        if instance.peak > room {
            let needed = instance.peak * instance.unit;
            return Err(PlanError::new(PlanErrorKind::NoPlacement).sizes(needed, capacity));
        }
    }
    let mut drive = Drive::new(&instance, room, control);
    drive.follow_rules()?;
    let stopped = match (room, capacity) {
        (Some(room), Some(capacity)) => drive.search_within(room, capacity)?,
        _ => drive.search_lowest(),
    };
    Ok(drive.placement(lifetimes.len(), stopped))
}

/// What is known of a component.
struct Known<'a> {
    component: &'a Component,
    offsets: Vec<u64>,
    /// In units, as the bound is.
    height: u64,
    bound: u64,
    /// The next of the rules.
    rule: u32,
}

struct Drive<'a> {
    instance: &'a Instance,
    known: Vec<Known<'a>>,
    /// A height of a component that there is no need to improve on.
    goal: u64,
    /// The greatest height that is counted in, in units.
    ceiling: u64,
    control: &'a Control<'a>,
    budget: u64,
    work: u64,
}

impl<'a> Drive<'a> {
    fn new(instance: &'a Instance, room: Option<u64>, control: &'a Control<'a>) -> Self {
        let known = instance.components.iter().map(|component| Known {
            component,
            offsets: Vec::new(),
            height: u64::MAX,
            bound: component.peak,
            rule: 0,
        });
        let bounded = control.deadline.is_some() || control.work.is_some();
        Self {
            instance,
            known: known.collect(),
            goal: room.unwrap_or(instance.peak),
            ceiling: (u64::MAX / instance.unit).min(u64::MAX - 1),
            control,
            budget: if bounded { u64::MAX } else { DEFAULT_WORK },
            work: 0,
        }
    }

    fn should_stop(&self) -> Option<Stopped> {
        if self.work >= self.budget {
            return Some(Stopped::Work);
        }
        self.control.should_stop(self.work)
    }

    /// Nodes that a run may still take.
    fn left(&self) -> u64 {
        self.budget
            .min(self.control.work.unwrap_or(u64::MAX))
            .saturating_sub(self.work)
    }

    fn height(&self) -> u64 {
        self.known
            .iter()
            .map(|known| known.height)
            .max()
            .unwrap_or(0)
    }

    fn bound(&self) -> u64 {
        self.known
            .iter()
            .map(|known| known.bound)
            .max()
            .unwrap_or(0)
    }

    fn report(&self) -> Option<Stopped> {
        self.control.report(Progress {
            extra_bytes: self.height() * self.instance.unit,
            lower_bound: self.bound() * self.instance.unit,
            work: self.work,
        })
    }

    /// Applies the next rule to a component; whether it has become lower.
    fn follow_rule(&mut self, at: usize) -> bool {
        let known = &mut self.known[at];
        let rule = known.rule;
        known.rule = known.rule.saturating_add(1);
        let Some(offsets) = apply(known.component, rule, self.control.seed) else {
            return false;
        };
        let price = if rule < RULES { 1 } else { PRICE_OF_CHANCE };
        self.work += price * known.component.items.len() as u64;
        let items = known.component.items.iter().zip(&offsets);
        let height = items
            .map(|(item, offset)| offset + item.size)
            .max()
            .unwrap_or(0);
        if height >= known.height || height > self.ceiling {
            return false;
        }
        known.height = height;
        known.offsets = offsets;
        true
    }

    /// Gives every component a placement by the fast rules.
    fn follow_rules(&mut self) -> Result<(), PlanError> {
        for at in 0..self.known.len() {
            while self.known[at].rule < RULES && self.known[at].height > self.goal {
                if self.known[at].height < u64::MAX && self.should_stop().is_some() {
                    break;
                }
                self.follow_rule(at);
            }
            if self.known[at].height == u64::MAX {
                return Err(PlanError::new(PlanErrorKind::Overflow).about("the height"));
            }
        }
        Ok(())
    }

    /// Searches until every component is within `room` units.
    fn search_within(&mut self, room: u64, capacity: u64) -> Result<Stopped, PlanError> {
        for at in 0..self.known.len() {
            if self.known[at].height <= room {
                continue;
            }
            let problem = Problem::new(self.known[at].component);
            let mut effort = problem
                .as_ref()
                .map(|problem| Effort::new(problem, self.control.seed));
            while self.known[at].height > room {
                let outcome = match (self.report(), self.should_stop()) {
                    (Some(stopped), _) | (None, Some(stopped)) => Outcome::Stopped(stopped),
                    (None, None) => self.step(at, effort.as_mut(), room),
                };
                let kind = match outcome {
                    Outcome::Exhausted => PlanErrorKind::NoPlacement,
                    Outcome::Stopped(_) => PlanErrorKind::PlacementNotFound,
                    Outcome::Found | Outcome::Limit => continue,
                };
                let needed = if kind == PlanErrorKind::NoPlacement {
                    self.known[at].bound
                } else {
                    self.height()
                };
                let needed = needed * self.instance.unit;
                return Err(PlanError::new(kind).sizes(needed, capacity));
            }
        }
        Ok(Stopped::Finished)
    }

    /// Searches until the height is proved to be the least, or is to stop.
    fn search_lowest(&mut self) -> Stopped {
        // Only the tallest component matters; it changes when another becomes the tallest.
        loop {
            let Some(at) =
                (0..self.known.len()).max_by_key(|&at| (self.known[at].height, usize::MAX - at))
            else {
                return Stopped::Finished;
            };
            if self.height() <= self.bound() {
                return Stopped::Finished;
            }
            if let Some(stopped) = self.lower(at) {
                return stopped;
            }
        }
    }

    /// Searches a component, the tallest, until it is not above the bound or another one. `None`
    /// then; otherwise why the search is to stop.
    fn lower(&mut self, at: usize) -> Option<Stopped> {
        let component = self.known[at].component;
        let problem = Problem::new(component);
        let new = || {
            problem
                .as_ref()
                .map(|problem| Effort::new(problem, self.control.seed))
        };
        // One goes for the bound, one for any improvement.
        let (mut lowest, mut lower) = (new(), new());
        let mut failures = 0;
        for step in 0u64.. {
            let bound = self.bound();
            let others = self
                .known
                .iter()
                .enumerate()
                .filter(|&(other, _)| other != at);
            let others = others.map(|(_, known)| known.height).max().unwrap_or(0);
            let height = self.known[at].height;
            if height <= bound || height < others {
                return None;
            }
            if let Some(stopped) = self.report().or_else(|| self.should_stop()) {
                return Some(stopped);
            }
            let outcome = if step % 2 == 0 {
                self.step(at, lowest.as_mut(), bound)
            } else {
                let shift = (failures / PATIENCE + 1).min(63);
                let target = height - ((height - bound) >> shift).max(1);
                let outcome = self.step(at, lower.as_mut(), target);
                failures = if outcome == Outcome::Limit {
                    failures + 1
                } else {
                    0
                };
                outcome
            };
            if let Outcome::Stopped(stopped) = outcome {
                return Some(stopped);
            }
        }
        None
    }

    /// One run of the search of a component, or, where there is none, one rule.
    fn step(&mut self, at: usize, effort: Option<&mut Effort<'_>>, room: u64) -> Outcome {
        let Some(effort) = effort else {
            self.follow_rule(at);
            return Outcome::Limit;
        };
        let left = self.left();
        let control = self.control;
        let outcome = effort.run(room, left, &mut self.work, |work| control.should_stop(work));
        let known = &mut self.known[at];
        match outcome {
            Outcome::Found => {
                known.offsets.copy_from_slice(effort.offsets());
                let items = known.component.items.iter().zip(&known.offsets);
                known.height = items
                    .map(|(item, offset)| offset + item.size)
                    .max()
                    .unwrap_or(0);
            }
            Outcome::Exhausted => known.bound = known.bound.max(room + 1),
            Outcome::Limit | Outcome::Stopped(_) => {}
        }
        outcome
    }

    fn placement(&self, count: usize, stopped: Stopped) -> Placement {
        let unit = self.instance.unit;
        let mut offsets = vec![0; count];
        for known in &self.known {
            for (&id, &offset) in known.component.ids.iter().zip(&known.offsets) {
                offsets[id as usize] = offset * unit;
            }
        }
        Placement {
            offsets,
            height: self.height() * unit,
            lower_bound: self.bound() * unit,
            proved: self.height() <= self.bound(),
            stopped,
        }
    }
}
