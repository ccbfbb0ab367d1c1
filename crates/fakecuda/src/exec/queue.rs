//! What an operation waits for, and what happens when it is complete.
//!
//! An operation waits for the one before it in its stream, for the points that it was given, and by
//! the rules of the legacy default stream: an operation there for all that was queued on the blocking
//! streams of its context, an operation on one of those for all that was queued there. So every wait
//! is for something that was queued earlier, and no two can wait for each other.

use super::stream::{Role, Standing};
use super::wait::note_ready;
use super::{Exec, Kind, Point, StreamId, Work};
use crate::environment::environment;
use crate::graph::{Content, Held, Params};
use crate::state::{CHANGED, State};
use crate::status::Result;
use std::collections::VecDeque;
use std::ffi::c_void;
use std::fmt;
use std::mem;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock};
use std::time::Instant;

/// What became of submitted work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Submitted {
    /// It is queued.
    Queued(Point),
    /// The stream is capturing: it became a node of the graph, by its handle.
    Captured(u64),
}

/// What is done when an operation's turn has come.
#[derive(Clone)]
pub enum Step {
    /// Nothing: it only waits for others.
    Nothing,
    /// Nothing, but what it has is kept until its turn has come.
    Keep(Arc<Vec<Held>>),
    /// The time is noted, in nanoseconds since some moment and never 0.
    Stamp(Arc<AtomicU64>),
    /// What a device would do. A caller who waits for it may run it.
    Work(Work),
    /// A program's function, which may not run on a thread that is inside a call.
    Host(Work),
}

impl fmt::Debug for Step {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Nothing => formatter.write_str("Nothing"),
            Self::Keep(objects) => write!(formatter, "Keep {objects:?}"),
            Self::Stamp(_) => formatter.write_str("Stamp"),
            Self::Work(_) => formatter.write_str("Work"),
            Self::Host(_) => formatter.write_str("Host"),
        }
    }
}

/// A program's function, with its argument.
pub type HostFunction = unsafe extern "C" fn(*mut c_void);

/// Something that is queued on a stream.
#[derive(Debug)]
pub struct Operation {
    pub step: Step,
    /// Points of other streams that have to be complete before it starts.
    pub after: Vec<Point>,
}

/// Nanoseconds since some moment; never 0.
fn now() -> u64 {
    static START: LazyLock<Instant> = LazyLock::new(Instant::now);
    START.elapsed().as_nanos() as u64 + 1
}

impl Exec {
    /// Queues an operation that waits for `after` and what the rules ask for. Runners come for it at the
    /// end of the call.
    pub fn enqueue(&mut self, id: StreamId, step: Step, mut after: Vec<Point>) -> Point {
        after.retain(|&point| point.stream != id && !self.is_complete(point));
        self.add_default_stream_order(id, &mut after);
        let stream = self.stream_mut(id);
        stream.queued += 1;
        let number = stream.queued;
        stream.queue.push_back(Operation { step, after });
        if stream.queue.len() == 1 {
            self.advance(id);
            note_ready();
            if environment().lazy {
                self.watch();
            }
        }
        Point { stream: id, number }
    }

    /// As [`Exec::enqueue`], in a call that may then have to wait for room.
    pub fn push(&mut self, id: StreamId, step: Step, after: Vec<Point>) -> Point {
        let point = self.enqueue(id, step, after);
        self.note_length(id, 0);
        point
    }

    fn add_default_stream_order(&self, id: StreamId, after: &mut Vec<Point>) {
        let own = &self.streams[&id];
        let mut add = |stream: StreamId| {
            let other = &self.streams[&stream];
            if !other.is_drained() {
                let number = other.queued;
                after.push(Point { stream, number });
            }
        };
        if own.role == Role::Legacy {
            let in_context = self.streams.iter().filter(|(other, stream)| {
                **other != id && stream.context == own.context && stream.is_blocking()
            });
            in_context.for_each(|(&other, _)| add(other));
        } else if own.is_blocking() {
            if let Some(&legacy) = self.legacy.get(&own.context) {
                add(legacy);
            }
        }
    }

    /// Whether a point is complete. Never makes anything run.
    pub fn is_complete(&self, point: Point) -> bool {
        let stream = self.streams.get(&point.stream);
        stream.is_none_or(|stream| stream.completed >= point.number)
    }

    /// Lets operations up to a point run, if they were not asked for before.
    pub(super) fn demand(&mut self, point: Point) {
        let Some(stream) = self.streams.get_mut(&point.stream) else {
            return;
        };
        if stream.demanded < point.number {
            stream.demanded = point.number;
            self.advance(point.stream);
            note_ready();
        }
    }

    /// Whether anything is queued.
    pub(super) fn has_pending(&self) -> bool {
        self.streams.values().any(|stream| !stream.is_drained())
    }

    /// Lets all that is queued run.
    pub(super) fn demand_all(&mut self) {
        let streams = self.streams.iter();
        let points: Vec<Point> = streams
            .map(|(&id, stream)| Point {
                stream: id,
                number: stream.queued,
            })
            .collect();
        for point in points {
            self.demand(point);
        }
        self.wake_runners(0);
    }

    /// Looks whether a stream's first operation may run, after anything has changed for it. What takes
    /// no time is done at once.
    pub(super) fn advance(&mut self, id: StreamId) {
        self.advance_all(vec![id]);
    }

    fn advance_all(&mut self, mut todo: Vec<StreamId>) {
        while let Some(id) = todo.pop() {
            while self.advance_by_one(id, &mut todo) {}
        }
    }

    /// Whether the stream's first operation was completed. Other streams that got on are put on the list.
    fn advance_by_one(&mut self, id: StreamId, todo: &mut Vec<StreamId>) -> bool {
        let Some(stream) = self.streams.get(&id) else {
            return false;
        };
        let has_turn = matches!(stream.standing, Standing::Idle | Standing::Blocked);
        if !has_turn || stream.completed >= stream.demanded {
            return false;
        }
        let Some(first) = stream.queue.front() else {
            return false;
        };
        let missing = first.after.iter().find(|&&point| !self.is_complete(point));
        if let Some(&point) = missing {
            self.stream_mut(id).standing = Standing::Blocked;
            let on = self.stream_mut(point.stream);
            let entry = (point.number, id);
            if !on.dependents.contains(&entry) {
                on.dependents.push(entry);
            }
            if on.demanded < point.number {
                on.demanded = point.number;
                todo.push(point.stream);
            }
            return false;
        }
        match &first.step {
            Step::Nothing | Step::Keep(_) => {}
            Step::Stamp(time) => time.store(now(), Ordering::Release),
            Step::Work(_) | Step::Host(_) => {
                self.stream_mut(id).standing = Standing::Ready;
                self.ready.push_back(id);
                return false;
            }
        }
        self.complete_first(id, todo);
        true
    }

    /// Takes a ready stream's first operation to run it. Its step is the caller's, so that what it holds
    /// goes without the lock.
    pub(super) fn start(&mut self, id: StreamId) -> Step {
        let stream = self.stream_mut(id);
        stream.standing = Standing::Running;
        mem::replace(&mut stream.queue[0].step, Step::Nothing)
    }

    /// The operation that was started has ended.
    pub(super) fn finish(&mut self, id: StreamId) {
        let mut todo = Vec::new();
        self.complete_first(id, &mut todo);
        todo.push(id);
        self.advance_all(todo);
    }

    fn complete_first(&mut self, id: StreamId, todo: &mut Vec<StreamId>) {
        let stream = self.stream_mut(id);
        stream.standing = Standing::Idle;
        stream.queue.pop_front();
        shrink(&mut stream.queue);
        stream.completed += 1;
        stream.patience = None;
        let completed = stream.completed;
        stream.dependents.retain(|&(number, dependent)| {
            let is_met = number <= completed;
            if is_met {
                todo.push(dependent);
            }
            !is_met
        });
        let watchers = stream.watched.len();
        stream.watched.retain(|&number| number > completed);
        if stream.watched.len() < watchers {
            CHANGED.notify_all();
        }
        self.remove_if_done(id);
    }
}

/// The step that calls a program's function.
pub fn host_step(function: HostFunction, data: u64) -> Step {
    // SAFETY: the program gave both for this call, on a thread of the driver's.
    Step::Host(Arc::new(move || unsafe { function(data as *mut c_void) }))
}

/// Gives back the memory of a queue that was once long.
fn shrink(queue: &mut VecDeque<Operation>) {
    const KEPT: usize = 64;
    if queue.is_empty() && queue.capacity() > KEPT {
        queue.shrink_to(KEPT);
    }
}

impl State {
    /// Queues work on a stream, after all that the ordering rules say (legacy default stream
    /// included), or adds it to the graph that the stream is capturing.
    pub fn submit(&mut self, stream: StreamId, work: Work) -> Result<Submitted> {
        self.submit_as(stream, Kind::Other, work)
    }

    /// As [`State::submit`]; a captured node says what kind of work it is.
    pub fn submit_as(&mut self, stream: StreamId, kind: Kind, work: Work) -> Result<Submitted> {
        self.submit_described(stream, kind, work, None)
    }

    /// As [`State::submit_as`]; a captured node can be asked for the structure that describes it.
    pub fn submit_described(
        &mut self,
        stream: StreamId,
        kind: Kind,
        work: Work,
        params: Option<Params>,
    ) -> Result<Submitted> {
        let context = self.stream_context(stream)?;
        if self.capture_for_operation(stream)?.is_some() {
            let content = Content::Work {
                kind,
                work,
                params,
                context: Some(context),
            };
            return Ok(Submitted::Captured(self.capture_node(stream, content)?));
        }
        let point = self.exec.push(stream, Step::Work(work), Vec::new());
        Ok(Submitted::Queued(point))
    }

    /// Queues a program's function, or captures it. The program keeps `data` until it has run.
    pub fn submit_host(
        &mut self,
        stream: StreamId,
        function: HostFunction,
        data: u64,
    ) -> Result<Submitted> {
        if self.capture_for_operation(stream)?.is_some() {
            let node = self.capture_node(stream, Content::Host { function, data })?;
            return Ok(Submitted::Captured(node));
        }
        let point = self
            .exec
            .push(stream, host_step(function, data), Vec::new());
        Ok(Submitted::Queued(point))
    }

    /// Whether a point is complete. Never makes anything run.
    pub fn is_complete(&self, point: Point) -> bool {
        self.exec.is_complete(point)
    }
}
