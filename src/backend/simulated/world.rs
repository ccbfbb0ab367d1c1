#![forbid(unsafe_code)]
//! All simulated streams and events of the process, and what of their work is done.

use crate::backend::streams::{Capture, Event, Stream};
use crate::backend::{BackendError, BackendResult};
use crate::error::Status;
use std::cell::Cell;
use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Handles are multiples of this, as addresses are.
const HANDLE_STEP: usize = 16;

/// Calls that were made, by their kind; those that failed count too.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StreamCalls {
    /// `Streams::place` of other streams than the default one.
    pub places: u64,
    /// `Streams::domain`.
    pub domains: u64,
    /// `Streams::create_event`.
    pub creates: u64,
    /// `Streams::destroy_event`.
    pub destroys: u64,
    /// `Streams::record`, and both calls of a backend that record.
    pub records: u64,
    /// `Streams::is_done`, and a backend's `is_default_idle`.
    pub queries: u64,
    /// `Streams::wait`.
    pub waits: u64,
    /// `Streams::retain`.
    pub retains: u64,
    /// A backend's `synchronize`.
    pub synchronizations: u64,
}

/// A moment of a stream: so many operations were queued.
#[derive(Clone, Copy, Debug)]
pub(super) struct Point {
    stream: u64,
    number: u64,
}

#[derive(Debug)]
pub(super) enum Operation {
    /// Whether it has been let run.
    Work(bool),
    Wait(Vec<Point>),
}

#[derive(Debug)]
pub(super) struct StreamState {
    pub(super) context: usize,
    pub(super) queued: u64,
    /// What is not done, in order.
    pub(super) queue: VecDeque<Operation>,
    pub(super) capture: Option<u64>,
    pub(super) is_destroyed: bool,
}

impl StreamState {
    fn in_context(context: usize) -> Self {
        Self {
            context,
            queued: 0,
            queue: VecDeque::new(),
            capture: None,
            is_destroyed: false,
        }
    }

    fn done(&self) -> u64 {
        self.queued - self.queue.len() as u64
    }

    pub(super) fn push(&mut self, operation: Operation) {
        self.queued += 1;
        self.queue.push_back(operation);
    }

    fn run(&mut self, count: usize) {
        let waiting = self
            .queue
            .iter_mut()
            .filter(|operation| matches!(operation, Operation::Work(false)));
        for operation in waiting.take(count) {
            *operation = Operation::Work(true);
        }
    }
}

#[derive(Debug)]
pub(super) struct ContextState {
    default_stream: u64,
    pub(super) calls: StreamCalls,
    /// Calls that could fail, so far.
    counted: u64,
    failure: Option<(u64, BackendError)>,
    violations: Vec<String>,
    /// Handles that are free, the last one to come again first.
    free_handles: Vec<usize>,
    pub(super) events: usize,
    /// Whether an event can stand for all streams.
    has_barriers: bool,
}

#[derive(Debug)]
pub(super) struct EventState {
    pub(super) context: usize,
    pub(super) points: Vec<Point>,
}

/// What a graph keeps. All that is made from a graph shares it.
#[derive(Debug, Default)]
pub(super) struct Objects(Mutex<Vec<Arc<AtomicBool>>>);

impl Objects {
    pub(super) fn flags(&self) -> MutexGuard<'_, Vec<Arc<AtomicBool>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How many there are.
    pub(super) fn count(&self) -> usize {
        self.flags().len()
    }
}

impl Drop for Objects {
    fn drop(&mut self) {
        for ended in self.flags().drain(..) {
            ended.store(true, Ordering::Release);
        }
    }
}

#[derive(Debug)]
pub(super) struct CaptureState {
    pub(super) graph: usize,
    pub(super) objects: Arc<Objects>,
    pub(super) is_invalid: bool,
}

#[derive(Debug)]
pub(super) struct World {
    pub(super) contexts: BTreeMap<usize, ContextState>,
    /// By number, which is never given twice.
    pub(super) streams: BTreeMap<u64, StreamState>,
    /// The stream that a handle means, or meant last, and its context.
    pub(super) handles: BTreeMap<usize, (u64, usize)>,
    pub(super) events: BTreeMap<usize, EventState>,
    pub(super) captures: BTreeMap<u64, CaptureState>,
    /// Numbers and handles given so far.
    given: u64,
}

static WORLD: Mutex<World> = Mutex::new(World {
    contexts: BTreeMap::new(),
    streams: BTreeMap::new(),
    handles: BTreeMap::new(),
    events: BTreeMap::new(),
    captures: BTreeMap::new(),
    given: 0,
});

thread_local!(static CURRENT: Cell<usize> = const { Cell::new(0) });

/// The streams of the process.
pub(super) fn world() -> MutexGuard<'static, World> {
    WORLD.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Makes a context the calling thread's current one.
pub(super) fn set_current(context: usize) {
    CURRENT.set(context);
}

/// The calling thread's current context, made if it has none.
pub(super) fn current(world: &mut World) -> usize {
    if CURRENT.get() == 0 {
        CURRENT.set(world.create_context());
    }
    CURRENT.get()
}

impl World {
    fn number(&mut self) -> u64 {
        self.given += 1;
        self.given
    }

    pub(super) fn handle(&mut self) -> usize {
        (self.number() as usize + 16) * HANDLE_STEP
    }

    pub(super) fn create_context(&mut self) -> usize {
        let context = self.number() as usize;
        let default_stream = self.add_stream(context);
        self.contexts.insert(
            context,
            ContextState {
                default_stream,
                calls: StreamCalls::default(),
                counted: 0,
                failure: None,
                violations: Vec::new(),
                free_handles: Vec::new(),
                events: 0,
                has_barriers: true,
            },
        );
        context
    }

    pub(super) fn end_barriers(&mut self, context: usize) {
        if let Some(state) = self.contexts.get_mut(&context) {
            state.has_barriers = false;
        }
    }

    pub(super) fn context(&mut self, context: usize) -> &mut ContextState {
        self.contexts
            .get_mut(&context)
            .expect("contexts stay for ever")
    }

    pub(super) fn stream_mut(&mut self, stream: u64) -> &mut StreamState {
        self.streams
            .get_mut(&stream)
            .expect("streams stay for ever")
    }

    pub(super) fn default_stream(&mut self, context: usize) -> u64 {
        self.context(context).default_stream
    }

    pub(super) fn calls(&mut self, context: usize) -> StreamCalls {
        self.context(context).calls
    }

    pub(super) fn events(&mut self, context: usize) -> usize {
        self.context(context).events
    }

    pub(super) fn violations(&mut self, context: usize) -> Vec<String> {
        self.context(context).violations.clone()
    }

    pub(super) fn fail_call(&mut self, context: usize, n: u64, error: BackendError) {
        let context = self.context(context);
        context.failure = Some((context.counted + n, error));
    }

    fn add_stream(&mut self, context: usize) -> u64 {
        let stream = self.number();
        self.streams
            .insert(stream, StreamState::in_context(context));
        stream
    }

    /// A stream, and its handle.
    pub(super) fn create_stream(&mut self, context: usize) -> (u64, usize) {
        let stream = self.add_stream(context);
        let handle = match self.context(context).free_handles.pop() {
            Some(handle) => handle,
            None => self.handle(),
        };
        self.handles.insert(handle, (stream, context));
        (stream, handle)
    }

    pub(super) fn destroy_stream(&mut self, stream: u64, handle: usize) {
        let state = self.stream_mut(stream);
        if !state.is_destroyed {
            state.is_destroyed = true;
            let context = state.context;
            if let Some(capture) = state.capture.take() {
                self.end_capture(capture);
            }
            self.context(context).free_handles.push(handle);
        }
    }

    /// Nobody can let a destroyed stream's work run any more: what is queued is done once what it waits
    /// for is.
    pub(super) fn forget_stream(&mut self, stream: u64) {
        self.run(stream, usize::MAX);
        if self.is_idle(stream) {
            self.streams.remove(&stream);
        }
    }

    pub(super) fn queue(&mut self, stream: u64) {
        self.stream_mut(stream).push(Operation::Work(false));
    }

    /// Lets so many pieces of a stream's work run, the first ones. Those that wait for other streams'
    /// work are done only when that is.
    pub(super) fn run(&mut self, stream: u64, count: usize) {
        self.stream_mut(stream).run(count);
        self.settle();
    }

    pub(super) fn is_idle(&self, stream: u64) -> bool {
        self.streams[&stream].queue.is_empty()
    }

    pub(super) fn is_complete(&self, point: Point) -> bool {
        // A stream that is not there any more has done its work.
        let stream = self.streams.get(&point.stream);
        stream.is_none_or(|stream| stream.done() >= point.number)
    }

    fn settle(&mut self) {
        loop {
            let ready = self.streams.iter().find_map(|(&number, stream)| {
                let is_ready = match stream.queue.front()? {
                    Operation::Work(has_run) => *has_run,
                    Operation::Wait(points) => points.iter().all(|&point| self.is_complete(point)),
                };
                is_ready.then_some(number)
            });
            match ready {
                Some(number) => self.stream_mut(number).queue.pop_front(),
                None => return,
            };
        }
    }

    /// Whether what is queued on a stream from now on starts after a point.
    pub(super) fn follows(&self, stream: u64, point: Point) -> bool {
        let mut before = vec![self.last_point(stream)];
        while let Some(at) = before.pop() {
            if at.stream == point.stream && at.number >= point.number {
                return true;
            }
            let Some(state) = self.streams.get(&at.stream) else {
                continue;
            };
            let left = at.number.saturating_sub(state.done()) as usize;
            for operation in state.queue.iter().take(left) {
                if let Operation::Wait(points) = operation {
                    before.extend(points);
                }
            }
        }
        self.is_complete(point)
    }

    pub(super) fn last_point(&self, stream: u64) -> Point {
        Point {
            stream,
            number: self.streams[&stream].queued,
        }
    }

    /// Lets all work of a context run, and all that it waits for.
    fn finish_context(&mut self, context: usize) {
        let in_context = |(_, stream): &(&u64, &StreamState)| stream.context == context;
        let mut due: Vec<u64> = self
            .streams
            .iter()
            .filter(in_context)
            .map(|s| *s.0)
            .collect();
        let mut at = 0;
        while let Some(&stream) = due.get(at) {
            let state = self.stream_mut(stream);
            state.run(usize::MAX);
            let waited: Vec<u64> = state
                .queue
                .iter()
                .filter_map(|operation| match operation {
                    Operation::Wait(points) => Some(points.iter().map(|point| point.stream)),
                    Operation::Work(_) => None,
                })
                .flatten()
                .collect();
            due.extend(
                waited
                    .into_iter()
                    .filter(|s| !due.contains(s))
                    .collect::<Vec<_>>(),
            );
            at += 1;
        }
        self.settle();
    }

    pub(super) fn begin_capture(&mut self, stream: u64) -> Capture {
        let (capture, graph) = (self.number(), self.handle());
        self.captures.insert(
            capture,
            CaptureState {
                graph,
                objects: Arc::default(),
                is_invalid: false,
            },
        );
        self.stream_mut(stream).capture = Some(capture);
        Capture { id: capture, graph }
    }

    /// Another stream becomes a part of a stream's capture.
    pub(super) fn join_capture(&mut self, stream: u64, origin: u64) {
        self.stream_mut(stream).capture = self.streams[&origin].capture;
    }

    pub(super) fn invalidate_capture(&mut self, stream: u64) {
        let capture = self.streams[&stream].capture;
        if let Some(state) = capture.and_then(|capture| self.captures.get_mut(&capture)) {
            state.is_invalid = true;
        }
    }

    /// What the graph keeps; `None`: the stream is in no capture, or the capture is invalid.
    pub(super) fn end_capture_of(&mut self, stream: u64) -> Option<Arc<Objects>> {
        let capture = self.streams[&stream].capture?;
        self.end_capture(capture)
    }

    fn end_capture(&mut self, capture: u64) -> Option<Arc<Objects>> {
        for stream in self.streams.values_mut() {
            if stream.capture == Some(capture) {
                stream.capture = None;
            }
        }
        let state = self.captures.remove(&capture)?;
        (!state.is_invalid).then_some(state.objects)
    }

    pub(super) fn begin_call(
        &mut self,
        context: usize,
        count: impl FnOnce(&mut StreamCalls),
    ) -> BackendResult<()> {
        let context = self.context(context);
        count(&mut context.calls);
        context.counted += 1;
        match context
            .failure
            .take_if(|(call, _)| *call == context.counted)
        {
            Some((_, error)) => Err(error),
            None => Ok(()),
        }
    }

    pub(super) fn violation<T>(&mut self, context: usize, what: String) -> BackendResult<T> {
        self.context(context).violations.push(what.clone());
        Err(BackendError::failed(Status::Driver, what))
    }

    /// The stream of a handle, for a call of this name. The default stream is the current context's.
    pub(super) fn stream(&mut self, stream: Stream, call: &str) -> BackendResult<u64> {
        if stream.is_default() {
            let context = current(self);
            return Ok(self.default_stream(context));
        }
        let Some(&(number, context)) = self.handles.get(&stream.0) else {
            let context = current(self);
            return self.violation(
                context,
                format!("{call}: no stream has handle {:#x}", stream.0),
            );
        };
        match self.streams.get(&number) {
            Some(state) if !state.is_destroyed => Ok(number),
            _ => self.violation(
                context,
                format!(
                    "{call}: the stream with handle {:#x} was destroyed",
                    stream.0
                ),
            ),
        }
    }

    /// The same, for a call that queues something.
    pub(super) fn stream_to_use(&mut self, stream: Stream, call: &str) -> BackendResult<u64> {
        let number = self.stream(stream, call)?;
        let state = &self.streams[&number];
        if state.capture.is_some() {
            let context = state.context;
            return self.violation(context, format!("{call}: the stream is being captured"));
        }
        Ok(number)
    }

    /// Checks that an event is there.
    pub(super) fn check_event(&mut self, event: Event, call: &str) -> BackendResult<()> {
        let found = self.events.get(&event.handle).map(|state| state.context);
        if found == Some(event.domain) {
            return Ok(());
        }
        let context = if self.contexts.contains_key(&event.domain) {
            event.domain
        } else {
            current(self)
        };
        self.violation(context, format!("{call}: no such event: {event:?}"))
    }

    fn set_event(&mut self, event: Event, points: Vec<Point>) {
        if let Some(state) = self.events.get_mut(&event.handle) {
            state.points = points;
        }
    }

    pub(super) fn record(&mut self, event: Event, stream: u64) -> BackendResult<()> {
        self.check_event(event, "record")?;
        let context = self.streams[&stream].context;
        if context != event.domain {
            return self.violation(context, "record: the event is another context's".to_owned());
        }
        let point = self.last_point(stream);
        self.set_event(event, vec![point]);
        Ok(())
    }

    pub(super) fn is_default_idle(&mut self, context: usize) -> BackendResult<bool> {
        self.begin_call(context, |calls| calls.queries += 1)?;
        let stream = self.default_stream(context);
        Ok(self.is_idle(stream))
    }

    pub(super) fn record_default(&mut self, context: usize, event: Event) -> BackendResult<()> {
        self.begin_call(context, |calls| calls.records += 1)?;
        let stream = self.default_stream(context);
        self.record(event, stream)
    }

    pub(super) fn record_all(&mut self, context: usize, event: Event) -> BackendResult<()> {
        self.begin_call(context, |calls| calls.records += 1)?;
        self.check_event(event, "record_all")?;
        if !self.contexts[&context].has_barriers {
            return Err(BackendError::failed(
                Status::Unsupported,
                "no event stands for all streams here",
            ));
        }
        self.check_no_capture(context, "record_all")?;
        let in_context = |(_, stream): &(&u64, &StreamState)| stream.context == context;
        let streams: Vec<u64> = self
            .streams
            .iter()
            .filter(in_context)
            .map(|s| *s.0)
            .collect();
        let points = streams.iter().map(|&stream| self.last_point(stream));
        let points = points.collect();
        self.set_event(event, points);
        Ok(())
    }

    pub(super) fn synchronize(
        &mut self,
        context: usize,
        spares_captures: bool,
    ) -> BackendResult<()> {
        self.begin_call(context, |calls| calls.synchronizations += 1)?;
        if !spares_captures {
            self.check_no_capture(context, "synchronize")?;
        }
        self.finish_context(context);
        Ok(())
    }

    pub(super) fn wait_for_default(&mut self, context: usize) -> BackendResult<()> {
        self.begin_call(context, |calls| calls.synchronizations += 1)?;
        let stream = self.default_stream(context);
        self.run(stream, usize::MAX);
        Ok(())
    }

    fn check_no_capture(&mut self, context: usize, call: &str) -> BackendResult<()> {
        let is_captured =
            |stream: &StreamState| stream.context == context && stream.capture.is_some();
        if self.streams.values().any(is_captured) {
            return self.violation(context, format!("{call}: a stream is being captured"));
        }
        Ok(())
    }
}
