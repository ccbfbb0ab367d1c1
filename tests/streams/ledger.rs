//! Whose every byte was last, and what of its work must be over before somebody else may have it.

use crate::intervals::{Interval, Intervals};
use luma::backend::simulated::SimulatedMoment;
use luma::size::round_up;

/// A stream of a program, also one that was destroyed. The default stream is the first.
pub type StreamId = usize;
pub type CaptureId = usize;

/// In the place of a stream: in no stream's order.
pub const UNORDERED: StreamId = StreamId::MAX;

/// On whose behalf a call is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Turn {
    pub stream: StreamId,
    pub capture: Option<CaptureId>,
}

/// Work of a stream that the pool waits for.
#[derive(Clone, Copy, Debug)]
pub struct Wait {
    pub stream: StreamId,
    /// What an event stands for that the pool has by now.
    pub recorded: Option<SimulatedMoment>,
}

/// Memory that was freed.
#[derive(Clone, Debug)]
pub struct Freed {
    /// What must be done before anybody else's work uses it.
    pub uses: Vec<SimulatedMoment>,
    /// The stream that may have it at once.
    pub stream: StreamId,
    /// Graphs that use it.
    pub captures: Vec<CaptureId>,
    /// The capture in which its stream may have it at once.
    pub inside: Option<CaptureId>,
    /// Whether more than its stream has to be waited for.
    pub is_used: bool,
    /// Of what the pool has to know that it is done.
    pub waits: Vec<Wait>,
    /// Whether it is certain that the pool knows of all work that is done. No demands are made
    /// otherwise.
    pub is_certain: bool,
}

/// What the world is at the moment.
pub trait World {
    fn follows(&self, stream: StreamId, moment: SimulatedMoment) -> bool;
    fn is_alive(&self, capture: CaptureId) -> bool;
}

impl Freed {
    pub fn is_finished(&self, world: &dyn World) -> bool {
        self.uses.iter().all(|moment| moment.is_done())
            && !self.captures.iter().any(|&capture| world.is_alive(capture))
    }

    /// Why a request may not have it.
    pub fn fault(&self, turn: Turn, world: &dyn World) -> Option<String> {
        for &capture in &self.captures {
            let is_own = turn.capture == Some(capture)
                && self.inside == Some(capture)
                && self.stream == turn.stream;
            if world.is_alive(capture) && !is_own {
                return Some(format!("capture {capture} may use it"));
            }
        }
        let is_over = |&&moment: &&SimulatedMoment| {
            moment.is_done() || (turn.capture.is_none() && world.follows(turn.stream, moment))
        };
        let unfinished = self.uses.iter().find(|moment| !is_over(moment));
        unfinished.map(|moment| format!("{moment:?} is not done"))
    }

    /// Whether the pool knows, when it asks, that anybody may have it.
    pub fn is_settled(&self, world: &dyn World) -> bool {
        let is_known = |wait: &Wait| wait.recorded.is_some_and(SimulatedMoment::is_done);
        self.is_certain && self.is_finished(world) && self.waits.iter().all(is_known)
    }

    /// Whether a request must be served from it.
    pub fn is_ready(&self, turn: Turn, world: &dyn World) -> bool {
        let is_own = match turn.capture {
            Some(capture) => self.inside == Some(capture) && !self.is_used,
            None => self.captures.is_empty() && !self.is_used && self.is_certain,
        };
        (is_own && self.stream == turn.stream) || self.is_settled(world)
    }
}

/// All memory that is free and was used.
#[derive(Debug, Default)]
pub struct Ledger {
    pub freed: Vec<(Interval, Freed)>,
}

impl Ledger {
    /// What lies in an interval.
    pub fn within(&self, (from, to): Interval) -> impl Iterator<Item = &(Interval, Freed)> {
        self.freed
            .iter()
            .filter(move |((a, b), _)| *a < to && from < *b)
    }

    /// Memory has a new owner, or is gone.
    pub fn take(&mut self, (from, to): Interval) {
        let mut left = Vec::new();
        for ((a, b), freed) in self.freed.drain(..) {
            if b <= from || to <= a {
                left.push(((a, b), freed));
                continue;
            }
            if a < from {
                left.push(((a, from), freed.clone()));
            }
            if to < b {
                left.push(((to, b), freed));
            }
        }
        self.freed = left;
    }

    /// Adds what was freed. Where it touches memory of the same stream, they wait for one another.
    pub fn put(&mut self, interval: Interval, mut freed: Freed) {
        let (mut from, mut to) = interval;
        loop {
            let mut grew = false;
            for ((a, b), other) in &mut self.freed {
                let touches = *b == from || *a == to;
                let is_one = other.stream == freed.stream && other.inside == freed.inside;
                if touches && is_one {
                    if other.is_used || freed.is_used {
                        other.is_certain = false;
                        freed.is_certain = false;
                    }
                    other.waits.extend(freed.waits.iter().copied());
                    (from, to) = (from.min(*a), to.max(*b));
                    grew = true;
                }
            }
            if !grew {
                break;
            }
        }
        self.freed.push((interval, freed));
    }

    /// An event was recorded on a stream.
    pub fn recorded(&mut self, stream: StreamId, moment: SimulatedMoment) {
        for wait in self
            .freed
            .iter_mut()
            .flat_map(|(_, freed)| &mut freed.waits)
        {
            if wait.stream == stream {
                wait.recorded.get_or_insert(moment);
            }
        }
    }

    /// A call failed that might have told the pool of something.
    pub fn doubt(&mut self) {
        for (_, freed) in &mut self.freed {
            freed.is_certain = false;
        }
    }

    pub fn intervals(&self, wanted: impl Fn(&Freed) -> bool) -> Intervals {
        let wanted = |(interval, freed): &(Interval, Freed)| wanted(freed).then_some(*interval);
        Intervals::of(self.freed.iter().filter_map(wanted))
    }
}

/// Whether a request has a place in a set of addresses.
pub fn fits(places: &Intervals, size: u64, align: u64) -> bool {
    places.iter().any(|(from, to)| {
        round_up(from, align)
            .and_then(|start| start.checked_add(size))
            .is_some_and(|end| end <= to)
    })
}
