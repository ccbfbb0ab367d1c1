//! What a stream is, and how programs name it.

use super::queue::{Operation, Step};
use super::{Exec, Point, StreamId};
use crate::context::ContextId;
use crate::environment::environment;
use crate::graph::{Edge, EdgeData};
use crate::process;
use crate::state::{self, State};
use crate::status::{Code, Result};
use crate::thread::{self, NullStream};
use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// `CU_STREAM_NON_BLOCKING`, the only flag.
pub const NON_BLOCKING: u32 = 1;
/// `CU_STREAM_LEGACY`: the handle of the legacy default stream.
pub const LEGACY: u64 = 1;
/// `CU_STREAM_PER_THREAD`.
const PER_THREAD: u64 = 2;
/// The priority that goes before all others. The least is 0.
pub const GREATEST_PRIORITY: i32 = -5;

/// Why a stream exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// The context's default stream, which waits for all blocking streams and they for it.
    Legacy,
    /// The default stream of the thread with this number.
    PerThread(u64),
    /// A program made it; its handle.
    Created(u64),
}

/// Where a stream stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// Nothing is queued, or nobody has asked for what is.
    Idle,
    /// Its first operation waits for a point.
    Blocked,
    /// Its first operation may run, and it is in the list of ready streams.
    Ready,
    /// Its first operation runs.
    Running,
}

/// A stream's part in a capture.
#[derive(Clone, Debug)]
pub struct Capturing {
    /// The capture's number.
    pub capture: u64,
    /// Nodes on which the next one depends.
    pub dependencies: Vec<u64>,
    /// The data of each of these dependencies. Programs get pointers to both.
    pub data: Vec<EdgeData>,
}

impl Capturing {
    /// With what the next node depends on.
    pub fn new(capture: u64, edges: &[Edge]) -> Self {
        Self {
            capture,
            dependencies: edges.iter().map(|edge| edge.from).collect(),
            data: edges.iter().map(|edge| edge.data).collect(),
        }
    }

    /// The next node depends on more.
    pub fn add(&mut self, edges: &[Edge]) {
        for edge in edges {
            if !self.dependencies.contains(&edge.from) {
                self.dependencies.push(edge.from);
                self.data.push(edge.data);
            }
        }
    }

    /// What the next node depends on.
    pub fn edges(&self) -> Vec<Edge> {
        let edges = self.dependencies.iter().zip(&self.data);
        edges.map(|(&from, &data)| Edge { from, data }).collect()
    }
}

/// A stream.
#[derive(Debug)]
pub struct Stream {
    pub context: ContextId,
    pub role: Role,
    pub flags: u32,
    pub priority: i32,
    /// `cuStreamSetAttribute`: values by the attribute's number.
    pub attributes: BTreeMap<u32, [u8; 64]>,
    /// The last operation. The first one of a stream is 1.
    pub queued: u64,
    /// All operations up to here are complete.
    pub completed: u64,
    /// Operations up to here may run: all of them, or in the lazy mode those that were asked for.
    pub demanded: u64,
    /// What is not complete. The first one is still here while it runs.
    pub queue: VecDeque<Operation>,
    pub standing: Standing,
    /// Streams whose first operation waits for this stream to reach a number.
    pub dependents: Vec<(u64, StreamId)>,
    /// Numbers that callers wait for.
    pub watched: Vec<u64>,
    /// How many more queries are told that the work is not done before it is asked for.
    pub patience: Option<u64>,
    /// Nothing will be queued any more; the stream goes when its queue is empty.
    pub is_closed: bool,
    pub capturing: Option<Capturing>,
}

impl Stream {
    /// Whether it and the legacy default stream wait for each other.
    pub fn is_blocking(&self) -> bool {
        self.role != Role::Legacy && self.flags & NON_BLOCKING == 0
    }

    /// Whether all that was queued is done.
    pub fn is_drained(&self) -> bool {
        self.queue.is_empty()
    }
}

/// Ends a thread's default streams with the thread.
struct ThreadEnd(Cell<u64>);

impl Drop for ThreadEnd {
    fn drop(&mut self) {
        // In a forked child the lock may be held by a thread that does not exist there.
        if self.0.get() != 0 && process::is_ready() {
            state::lock().close_streams_of_thread(self.0.get());
        }
    }
}

thread_local! {
    static THREAD_END: ThreadEnd = const { ThreadEnd(Cell::new(0)) };
}

impl Exec {
    /// A context was made: it has a legacy default stream.
    pub fn open_context(&mut self, context: ContextId) {
        let stream = self.add_stream(context, Role::Legacy, 0, 0);
        self.legacy.insert(context, stream);
    }

    fn add_stream(
        &mut self,
        context: ContextId,
        role: Role,
        flags: u32,
        priority: i32,
    ) -> StreamId {
        self.streams_made += 1;
        let id = StreamId(self.streams_made);
        self.streams.insert(
            id,
            Stream {
                context,
                role,
                flags,
                priority: priority.clamp(GREATEST_PRIORITY, 0),
                attributes: BTreeMap::new(),
                queued: 0,
                completed: 0,
                demanded: if environment().lazy { 0 } else { u64::MAX },
                queue: VecDeque::new(),
                standing: Standing::Idle,
                dependents: Vec::new(),
                watched: Vec::new(),
                patience: None,
                is_closed: false,
                capturing: None,
            },
        );
        if let Some(points) = self.held.get(&context).cloned() {
            self.push(id, Step::Nothing, points);
        }
        id
    }

    /// Streams that are made from now on start after some points.
    pub(super) fn hold_new_streams(&mut self, context: ContextId, points: Vec<Point>) {
        let held = self.held.remove(&context).unwrap_or_default();
        let mut points = [held, points].concat();
        points.retain(|&point| !self.is_complete(point));
        if !points.is_empty() {
            self.held.insert(context, points);
        }
    }

    /// Makes a stream for a program and gives its handle.
    pub fn create_stream(&mut self, context: ContextId, flags: u32, priority: i32) -> u64 {
        let id = StreamId(self.streams_made + 1);
        let handle = self.handles.insert(id);
        let added = self.add_stream(context, Role::Created(handle), flags, priority);
        debug_assert_eq!(added, id);
        handle
    }

    fn per_thread_stream(&mut self, context: ContextId) -> StreamId {
        let thread = thread::id();
        if let Some(&stream) = self.per_thread.get(&(context, thread)) {
            return stream;
        }
        let stream = self.add_stream(context, Role::PerThread(thread), 0, 0);
        self.per_thread.insert((context, thread), stream);
        // A thread that is on its way out has no thread-local values any more: its stream goes with the
        // context.
        let _ = THREAD_END.try_with(|end| end.0.set(thread));
        stream
    }

    /// A stream that is there: ids come from [`State::stream`] and are used under the same lock.
    pub(super) fn stream_mut(&mut self, id: StreamId) -> &mut Stream {
        self.streams.get_mut(&id).expect("the stream exists")
    }

    /// Nothing more will be queued, and what is queued is done. The stream goes at once if nothing is queued.
    pub(super) fn close_stream(&mut self, id: StreamId) {
        let Some(stream) = self.streams.get_mut(&id) else {
            return;
        };
        stream.is_closed = true;
        match stream.role {
            Role::Legacy => {
                self.legacy.remove(&stream.context);
            }
            Role::PerThread(thread) => {
                self.per_thread.remove(&(stream.context, thread));
            }
            Role::Created(handle) => {
                self.handles.remove(handle);
            }
        }
        self.remove_if_done(id);
    }

    /// Forgets a stream that is closed and empty.
    pub(super) fn remove_if_done(&mut self, id: StreamId) {
        let Some(stream) = self.streams.get(&id) else {
            return;
        };
        if stream.is_closed && stream.is_drained() {
            self.streams.remove(&id);
        }
    }

    /// Sets a stream's part in a capture.
    pub fn set_capturing(&mut self, id: StreamId, capturing: Option<Capturing>) {
        if let Some(stream) = self.streams.get_mut(&id) {
            stream.capturing = capturing;
        }
    }

    /// Numbers of the captures in streams that are meant, by their context and whether they are blocking.
    pub fn captures_in(&self, is_meant: impl Fn(ContextId, bool) -> bool) -> BTreeSet<u64> {
        let streams = self.streams.values();
        streams
            .filter(|stream| is_meant(stream.context, stream.is_blocking()))
            .filter_map(|stream| Some(stream.capturing.as_ref()?.capture))
            .collect()
    }

    /// Nodes on which the next one depends, in all streams of a capture.
    pub fn capture_dependencies(&self, capture: u64) -> Vec<u64> {
        let capturing = self.streams.values();
        let capturing = capturing.filter_map(|stream| stream.capturing.as_ref());
        let capturing = capturing.filter(|capturing| capturing.capture == capture);
        capturing
            .flat_map(|own| own.dependencies.iter().copied())
            .collect()
    }

    /// A capture has ended: its streams are like others again.
    pub fn forget_capture(&mut self, capture: u64) {
        for stream in self.streams.values_mut() {
            let own = stream.capturing.as_ref();
            if own.is_some_and(|own| own.capture == capture) {
                stream.capturing = None;
            }
        }
    }

    pub(super) fn streams_of(&self, context: ContextId) -> impl Iterator<Item = StreamId> {
        let streams = self.streams.iter();
        streams
            .filter(move |(_, stream)| stream.context == context)
            .map(|(&id, _)| id)
    }
}

impl State {
    /// The stream of a handle that a program gave: 0 as the call means it, 1 and 2 as the header
    /// says (legacy, per thread), otherwise a handle. Needs a current context for 0, 1 and 2.
    pub fn stream(&mut self, handle: u64) -> Result<StreamId> {
        match (handle, thread::null_stream()) {
            (LEGACY, _) | (0, NullStream::Legacy) => {
                let context = self.current()?;
                self.legacy_stream(context)
            }
            (PER_THREAD, _) | (0, NullStream::PerThread) => {
                let context = self.current()?;
                Ok(self.exec.per_thread_stream(context))
            }
            _ => {
                let id = self.exec.handles.get(handle).copied();
                id.ok_or(Code::INVALID_HANDLE)
            }
        }
    }

    /// The default stream of a context.
    pub fn legacy_stream(&self, context: ContextId) -> Result<StreamId> {
        let id = self.exec.legacy.get(&context).copied();
        id.ok_or(Code::CONTEXT_IS_DESTROYED)
    }

    /// A stream that is there.
    ///
    /// # Errors
    /// `INVALID_HANDLE`: it is gone.
    pub fn stream_ref(&self, id: StreamId) -> Result<&Stream> {
        self.exec.streams.get(&id).ok_or(Code::INVALID_HANDLE)
    }

    /// The context of a stream.
    pub fn stream_context(&self, id: StreamId) -> Result<ContextId> {
        Ok(self.stream_ref(id)?.context)
    }

    /// The number of a stream's device.
    pub fn stream_device(&self, id: StreamId) -> Result<usize> {
        Ok(self.context(self.stream_context(id)?)?.device)
    }

    /// Sets an attribute's value.
    pub fn set_stream_attribute(&mut self, id: StreamId, attribute: u32, value: [u8; 64]) {
        if let Some(stream) = self.exec.streams.get_mut(&id) {
            stream.attributes.insert(attribute, value);
        }
    }

    /// Sets the priority of work to come.
    pub fn set_stream_priority(&mut self, id: StreamId, priority: i32) {
        if let Some(stream) = self.exec.streams.get_mut(&id) {
            stream.priority = priority.clamp(GREATEST_PRIORITY, 0);
        }
    }

    /// The last operation of a stream so far; `None`: it never had one, or is gone.
    pub fn last_point(&self, stream: StreamId) -> Option<Point> {
        let number = self.exec.streams.get(&stream)?.queued;
        (number > 0).then_some(Point { stream, number })
    }

    /// A program destroys a stream: what is queued is still done.
    ///
    /// # Errors
    /// `INVALID_HANDLE`: not a stream, or a default stream.
    pub fn destroy_stream(&mut self, handle: u64) -> Result {
        let id = self.exec.handles.get(handle).copied();
        let id = id.ok_or(Code::INVALID_HANDLE)?;
        self.leave_capture(id);
        self.exec.close_stream(id);
        Ok(())
    }

    /// A context goes: its streams and events with it. Their work is done.
    pub fn close_streams(&mut self, context: ContextId) {
        let streams: Vec<StreamId> = self.exec.streams_of(context).collect();
        for id in streams {
            self.leave_capture(id);
            self.exec.close_stream(id);
            // Nobody is left who could ask for work that another thread has queued in the meantime.
            let number = u64::MAX;
            self.exec.demand(Point { stream: id, number });
        }
        self.exec.wake_runners(0);
        self.exec.close_events(context);
        self.exec.held.remove(&context);
    }

    fn close_streams_of_thread(&mut self, thread: u64) {
        let of_thread = |&(&(_, owner), _): &(&(ContextId, u64), &StreamId)| owner == thread;
        let streams = self.exec.per_thread.iter().filter(of_thread);
        let streams: Vec<StreamId> = streams.map(|(_, &id)| id).collect();
        for id in streams {
            self.leave_capture(id);
            self.exec.close_stream(id);
        }
    }
}
