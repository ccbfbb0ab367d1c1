//! Callers that wait or ask.

use super::late;
use super::queue::Step;
use super::runner;
use super::stream::Standing;
use super::{Exec, Point, StreamId, Work};
use crate::context::ContextId;
use crate::environment::environment;
use crate::state::{self, Guard, State};
use crate::status::Result;
use std::cell::Cell;

/// A stream takes this many operations; then callers wait until there is room, as with the driver.
const ROOM: usize = 1024;
/// In the lazy mode a query of work that was not asked for says so at most this often.
const PATIENCE: u64 = 3;

thread_local! {
    /// Whether this thread's call may have made streams ready for which no runner comes yet.
    static HAS_READY: Cell<bool> = const { Cell::new(false) };
    /// A stream on which this thread's call queued more than there is room for.
    static OVERFULL: Cell<Option<StreamId>> = const { Cell::new(None) };
}

impl Exec {
    /// The first operation of a stream, if it is one that a waiting caller may run.
    fn claim_for_caller(&mut self, id: StreamId) -> Option<Step> {
        let stream = self.streams.get(&id)?;
        let is_ready = stream.standing == Standing::Ready;
        (is_ready && matches!(stream.queue[0].step, Step::Work(_))).then(|| self.claim(id))
    }

    /// Whether a point is complete, for a program that asks. In the lazy mode it may take a few questions
    /// until the work is started.
    pub fn query(&mut self, point: Point) -> bool {
        if self.is_complete(point) {
            return true;
        }
        let stream = &self.streams[&point.stream];
        if stream.demanded < point.number {
            let patience = match stream.patience {
                Some(patience) => patience,
                None => self.chance.below(PATIENCE + 1),
            };
            self.stream_mut(point.stream).patience = patience.checked_sub(1);
            if patience == 0 {
                self.demand(point);
            }
        }
        self.is_complete(point)
    }

    /// Remembers for [`end_call`] that a stream has become too long. A single call may have added
    /// `allowed` operations.
    pub fn note_length(&self, id: StreamId, allowed: usize) {
        let length = self.streams.get(&id).map_or(0, |stream| stream.queue.len());
        if length > ROOM + allowed {
            OVERFULL.set(Some(id));
        }
    }
}

/// Waits until a point is complete; in the lazy mode that makes it run.
pub fn wait(mut guard: Guard, point: Point) -> Guard {
    guard.exec.demand(point);
    loop {
        if guard.exec.is_complete(point) {
            guard.exec.wake_runners(0);
            return guard;
        }
        if let Some(step) = guard.exec.claim_for_caller(point.stream) {
            guard.exec.wake_runners(0);
            guard = runner::run(guard, point.stream, step);
            // The next one may be for this thread too.
            guard.exec.wake_runners(1);
            continue;
        }
        guard.exec.wake_runners(0);
        let watched = &mut guard.exec.stream_mut(point.stream).watched;
        if !watched.contains(&point.number) {
            watched.push(point.number);
        }
        guard = state::wait_for_change(guard);
    }
}

/// Waits for points one after another, in the lazy mode in an order left to chance.
fn wait_all(mut guard: Guard, mut points: Vec<Point>) -> Guard {
    if environment().lazy {
        guard.exec.chance.shuffle(&mut points);
    }
    for point in points {
        guard = wait(guard, point);
    }
    guard
}

/// What is queued on the streams of some contexts.
fn pending(state: &State, is_meant: impl Fn(ContextId) -> bool) -> Vec<Point> {
    let streams = state.exec.streams.iter();
    streams
        .filter(|(_, stream)| !stream.is_drained() && is_meant(stream.context))
        .map(|(&id, stream)| Point {
            stream: id,
            number: stream.queued,
        })
        .collect()
}

impl State {
    /// What is queued on the streams of a device.
    pub fn pending_on(&self, device: usize) -> Vec<Point> {
        pending(self, |context| {
            self.context(context)
                .is_ok_and(|context| context.device == device)
        })
    }
}

/// Waits for all that is queued on a stream.
pub fn wait_stream(mut guard: Guard, stream: StreamId) -> Guard {
    if let Some(point) = guard.last_point(stream) {
        guard = wait(guard, point);
    }
    guard.trim_pools(Some(stream));
    guard
}

/// Waits for all that is queued in a context.
pub fn wait_context(guard: Guard, context: ContextId) -> Guard {
    let points = pending(&guard, |other| other == context);
    let mut guard = wait_all(guard, points);
    guard.trim_pools(None);
    guard
}

/// Waits for all that is queued on a device, in whatever context.
pub fn wait_device(guard: Guard, device: usize) -> Guard {
    let points = guard.pending_on(device);
    let mut guard = wait_all(guard, points);
    guard.trim_pools(None);
    guard
}

/// Does work on a stream and waits for it: what a synchronous call is. If nothing is in the way it is
/// done on this thread.
///
/// # Errors
/// `INVALID_HANDLE`: the stream is gone. Those of [`State::refuse_wait_on`].
pub fn perform(mut guard: Guard, stream: StreamId, work: Work) -> Result<Guard> {
    guard.stream_ref(stream)?;
    guard.refuse_wait_on(stream)?;
    let point = guard.exec.enqueue(stream, Step::Work(work), Vec::new());
    Ok(wait(guard, point))
}

/// Remembers for [`end_call`] that there may be a ready stream.
pub(super) fn note_ready() {
    HAS_READY.set(true);
}

/// The end of each call, without the lock: runners come for what it has queued, unless the call has
/// waited for that and done it itself, and it waits for room on a stream that it made too long.
pub fn end_call() {
    if environment().lazy {
        late::count_call();
    }
    if !HAS_READY.take() && OVERFULL.get().is_none() {
        return;
    }
    let mut guard = state::lock();
    guard.exec.wake_runners(0);
    let Some(id) = OVERFULL.take() else {
        return;
    };
    let Some(stream) = guard.exec.streams.get(&id) else {
        return;
    };
    let number = stream.queued.saturating_sub(ROOM as u64 / 2);
    drop(wait(guard, Point { stream: id, number }));
}
