//! Streams whose work becomes a graph's nodes.
//!
//! A capture begins in one stream, spreads to those that wait for events recorded in it, and ends in
//! the stream in which it began. What may not be done in the meantime fails, and invalidates the
//! captures with which it conflicts: they end without a graph.

use super::node::{Content, Edge};
use super::structure::Owner;
use crate::context::ContextId;
use crate::exec::{Capturing, Role, StreamId};
use crate::state::State;
use crate::status::{Code, Result};
use crate::thread;
use std::collections::BTreeSet;

/// `CUstreamCaptureMode`.
pub mod mode {
    pub const GLOBAL: u32 = 0;
    pub const RELAXED: u32 = 2;
}

/// `CUstreamCaptureStatus`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CaptureStatus {
    None = 0,
    Active = 1,
    Invalidated = 2,
}

/// What is being captured.
#[derive(Debug)]
pub struct Capture {
    graph: u64,
    mode: u32,
    /// The number of the thread that began it.
    thread: u64,
    /// The stream in which it began.
    origin: StreamId,
    is_invalid: bool,
    /// Whether the graph was there before, and stays if the capture fails.
    is_into_existing: bool,
    /// Nodes that a program took out of a stream's dependencies: they need not be joined.
    let_go: BTreeSet<u64>,
}

/// What `cuStreamGetCaptureInfo` tells of an active capture.
#[derive(Debug)]
pub struct CaptureInfo {
    pub number: u64,
    pub graph: u64,
    /// Where the dependencies and their data are, until the next call that works on the stream.
    pub dependencies: *const u64,
    pub data: *const [u8; 8],
    pub count: usize,
    /// Whether the data of a dependency is not zero.
    pub has_data: bool,
}

impl State {
    /// Whether a stream is capturing.
    pub fn is_capturing(&self, stream: StreamId) -> bool {
        self.capturing(stream).is_some()
    }

    fn capturing(&self, stream: StreamId) -> Option<&Capturing> {
        let stream = self.stream_ref(stream).ok()?;
        stream.capturing.as_ref()
    }

    /// Numbers of the captures in streams that are meant.
    fn captures_in(&self, is_meant: impl Fn(ContextId, bool) -> bool) -> BTreeSet<u64> {
        self.exec.captures_in(is_meant)
    }

    fn invalidate(&mut self, captures: &BTreeSet<u64>) {
        for number in captures {
            if let Some(capture) = self.graphs.captures.get_mut(number) {
                capture.is_invalid = true;
            }
        }
    }

    /// Something that a capture does not permit was asked of a stream.
    pub fn invalidate_capture_of(&mut self, stream: StreamId) {
        let capture = self.capturing(stream).map(|capturing| capturing.capture);
        self.invalidate(&capture.into_iter().collect());
    }

    /// Captures on which the legacy default stream would depend.
    fn implied_captures(&self, stream: StreamId) -> BTreeSet<u64> {
        match self.stream_ref(stream) {
            Ok(own) if own.role == Role::Legacy => {
                let context = own.context;
                self.captures_in(|other, is_blocking| other == context && is_blocking)
            }
            _ => BTreeSet::new(),
        }
    }

    /// Whether an operation on a stream is to be captured, and where it stands then.
    ///
    /// # Errors
    /// `STREAM_CAPTURE_INVALIDATED`: something went wrong in the capture before.
    /// `STREAM_CAPTURE_IMPLICIT`: it is the legacy default stream, and would depend on a capture.
    pub fn capture_for_operation(&mut self, stream: StreamId) -> Result<Option<Capturing>> {
        if self.graphs.captures.is_empty() {
            return Ok(None);
        }
        if let Some(capturing) = self.capturing(stream) {
            return if self.graphs.captures[&capturing.capture].is_invalid {
                Err(Code::STREAM_CAPTURE_INVALIDATED)
            } else {
                Ok(Some(capturing.clone()))
            };
        }
        let implied = self.implied_captures(stream);
        if implied.is_empty() {
            return Ok(None);
        }
        self.invalidate(&implied);
        Err(Code::STREAM_CAPTURE_IMPLICIT)
    }

    /// A call waits for a stream, or asks for it: that is not possible while it is capturing.
    ///
    /// # Errors
    /// As [`State::capture_for_operation`]. `STREAM_CAPTURE_UNSUPPORTED`: it is capturing.
    pub fn refuse_wait_on(&mut self, stream: StreamId) -> Result {
        if self.capture_for_operation(stream)?.is_none() {
            return Ok(());
        }
        self.invalidate_capture_of(stream);
        Err(Code::STREAM_CAPTURE_UNSUPPORTED)
    }

    /// A call waits for a whole context.
    ///
    /// # Errors
    /// `STREAM_CAPTURE_UNSUPPORTED`: a stream there is capturing, or the thread's mode forbids it.
    pub fn refuse_context_wait(&mut self, context: ContextId) -> Result {
        if self.graphs.captures.is_empty() {
            return Ok(());
        }
        let captures = self.captures_in(|other, _| other == context);
        if !captures.is_empty() {
            self.invalidate(&captures);
            return Err(Code::STREAM_CAPTURE_UNSUPPORTED);
        }
        self.refuse_in_capture()
    }

    /// A call that the documentation calls unsafe while a stream captures, in the calling thread's
    /// mode (cuMemAlloc, cuMemFree, synchronisation, ...): invalidates the captures it must and fails.
    ///
    /// # Errors
    /// `STREAM_CAPTURE_UNSUPPORTED`: there are such captures.
    pub fn refuse_in_capture(&mut self) -> Result {
        let own_mode = thread::capture_mode();
        if self.graphs.captures.is_empty() || own_mode == mode::RELAXED {
            return Ok(());
        }
        let thread = thread::id();
        let forbids = |capture: &Capture| {
            if capture.thread == thread {
                capture.mode != mode::RELAXED
            } else {
                capture.mode == mode::GLOBAL && own_mode == mode::GLOBAL
            }
        };
        let captures = self.graphs.captures.iter();
        let captures = captures.filter(|(_, capture)| forbids(capture));
        let captures: BTreeSet<u64> = captures.map(|(&number, _)| number).collect();
        if captures.is_empty() {
            return Ok(());
        }
        self.invalidate(&captures);
        Err(Code::STREAM_CAPTURE_UNSUPPORTED)
    }

    /// `cuStreamBeginCapture`, into a new graph or into one that is there.
    ///
    /// # Errors
    /// `STREAM_CAPTURE_UNSUPPORTED`: the legacy default stream. `ILLEGAL_STATE`: it is capturing.
    /// `INVALID_VALUE`: no such mode or graph, dependencies of another graph, or one that another
    /// capture adds to.
    pub fn begin_capture(
        &mut self,
        stream: StreamId,
        mode: u32,
        into: Option<(u64, Vec<Edge>)>,
    ) -> Result {
        if mode > mode::RELAXED {
            return Err(Code::INVALID_VALUE);
        }
        if self.stream_ref(stream)?.role == Role::Legacy {
            return Err(Code::STREAM_CAPTURE_UNSUPPORTED);
        }
        if self.is_capturing(stream) {
            return Err(Code::ILLEGAL_STATE);
        }
        let is_into_existing = into.is_some();
        let (graph, edges) = match into {
            Some((graph, edges)) => {
                self.graphs.check_edges(graph, &edges)?;
                if self.graphs.graph(graph)?.capture.is_some() {
                    return Err(Code::INVALID_VALUE);
                }
                (graph, edges)
            }
            None => (self.graphs.create(Owner::Capture), Vec::new()),
        };
        let number = self.graphs.number();
        self.graphs.graph_mut(graph)?.capture = Some(number);
        let capture = Capture {
            graph,
            mode,
            thread: thread::id(),
            origin: stream,
            is_invalid: false,
            is_into_existing,
            let_go: BTreeSet::new(),
        };
        self.graphs.captures.insert(number, capture);
        self.exec
            .set_capturing(stream, Some(Capturing::new(number, &edges)));
        Ok(())
    }

    /// `cuStreamEndCapture`.
    ///
    /// # Errors
    /// `ILLEGAL_STATE`: it is not capturing. `STREAM_CAPTURE_UNMATCHED`: the capture began in another
    /// stream. `STREAM_CAPTURE_WRONG_THREAD`: in another thread. With the others the capture has ended
    /// and there is no graph: `STREAM_CAPTURE_INVALIDATED`, `STREAM_CAPTURE_UNJOINED`.
    pub fn end_capture(&mut self, stream: StreamId) -> Result<u64> {
        let capturing = self.capturing(stream).ok_or(Code::ILLEGAL_STATE)?;
        let number = capturing.capture;
        let joined = self.graphs.ancestors(&capturing.dependencies);
        let capture = &self.graphs.captures[&number];
        if capture.origin != stream {
            self.invalidate_capture_of(stream);
            return Err(Code::STREAM_CAPTURE_UNMATCHED);
        }
        if capture.mode != mode::RELAXED && capture.thread != thread::id() {
            return Err(Code::STREAM_CAPTURE_WRONG_THREAD);
        }
        let is_joined = |node: &u64| joined.contains(node) || capture.let_go.contains(node);
        let are_joined = self.exec.capture_dependencies(number).iter().all(is_joined);
        let outcome = match (capture.is_invalid, are_joined) {
            (true, _) => Err(Code::STREAM_CAPTURE_INVALIDATED),
            (false, false) => Err(Code::STREAM_CAPTURE_UNJOINED),
            (false, true) => Ok(capture.graph),
        };
        self.close_capture(number, outcome.is_ok());
        outcome
    }

    fn close_capture(&mut self, number: u64, is_kept: bool) {
        let Some(capture) = self.graphs.captures.remove(&number) else {
            return;
        };
        self.exec.forget_capture(number);
        if is_kept || capture.is_into_existing {
            if let Ok(graph) = self.graphs.graph_mut(capture.graph) {
                graph.capture = None;
                if graph.owner == Owner::Capture {
                    graph.owner = Owner::Program;
                }
            }
        } else {
            self.drop_graph(capture.graph);
        }
    }

    /// A stream goes. A capture that began in it ends, one that reached it can no more be joined.
    pub fn leave_capture(&mut self, stream: StreamId) {
        let Some(capturing) = self.capturing(stream) else {
            return;
        };
        let number = capturing.capture;
        if self.graphs.captures[&number].origin == stream {
            self.close_capture(number, false);
        } else {
            self.invalidate_capture_of(stream);
            self.exec.set_capturing(stream, None);
        }
    }

    /// The graph that a stream is capturing, and on what the next node there depends.
    ///
    /// # Errors
    /// `ILLEGAL_STATE`: it is not capturing; those of [`State::capture_for_operation`].
    pub(super) fn capture_position(&mut self, stream: StreamId) -> Result<(u64, Vec<Edge>)> {
        let capturing = self.capture_for_operation(stream)?;
        let capturing = capturing.ok_or(Code::ILLEGAL_STATE)?;
        Ok((
            self.graphs.captures[&capturing.capture].graph,
            capturing.edges(),
        ))
    }

    /// What follows in a stream depends on a node.
    pub(super) fn capture_advance(&mut self, stream: StreamId, node: u64) {
        if let Some(capturing) = self.capturing(stream) {
            let next = Capturing::new(capturing.capture, &[Edge::plain(node)]);
            self.exec.set_capturing(stream, Some(next));
        }
    }

    /// Adds a node where a capturing stream stands, and gives its handle.
    pub fn capture_node(&mut self, stream: StreamId, content: Content) -> Result<u64> {
        let (graph, edges) = self.capture_position(stream)?;
        let node = self.graphs.add_node(graph, content, edges)?;
        self.capture_advance(stream, node);
        Ok(node)
    }

    /// A stream waits for an event that was recorded in a capture: the capture spreads to it.
    ///
    /// # Errors
    /// `CAPTURED_EVENT`: that capture has ended. `STREAM_CAPTURE_ISOLATION`: so it has, and the stream is
    /// in another. `STREAM_CAPTURE_MERGE`: the stream is in another that goes on.
    /// `STREAM_CAPTURE_UNSUPPORTED`: the legacy default stream cannot be captured.
    pub fn capture_wait(&mut self, stream: StreamId, number: u64, nodes: &[Edge]) -> Result {
        let own = self.capture_for_operation(stream)?;
        let Some(capture) = self.graphs.captures.get(&number) else {
            self.invalidate_capture_of(stream);
            return Err(match own {
                Some(_) => Code::STREAM_CAPTURE_ISOLATION,
                None => Code::CAPTURED_EVENT,
            });
        };
        if capture.is_invalid {
            return Err(Code::STREAM_CAPTURE_INVALIDATED);
        }
        match own {
            None if self.stream_ref(stream)?.role == Role::Legacy => {
                self.invalidate(&BTreeSet::from([number]));
                Err(Code::STREAM_CAPTURE_UNSUPPORTED)
            }
            None => {
                self.exec
                    .set_capturing(stream, Some(Capturing::new(number, nodes)));
                Ok(())
            }
            Some(mut capturing) if capturing.capture == number => {
                capturing.add(nodes);
                self.exec.set_capturing(stream, Some(capturing));
                Ok(())
            }
            Some(capturing) => {
                self.invalidate(&BTreeSet::from([number, capturing.capture]));
                Err(Code::STREAM_CAPTURE_MERGE)
            }
        }
    }

    /// Whether a stream is capturing, and whether that still can succeed.
    ///
    /// # Errors
    /// `STREAM_CAPTURE_IMPLICIT`: it is the legacy default stream, and would depend on a capture.
    pub fn capture_status(&self, stream: StreamId) -> Result<CaptureStatus> {
        match self.capturing(stream) {
            Some(capturing) if self.graphs.captures[&capturing.capture].is_invalid => {
                Ok(CaptureStatus::Invalidated)
            }
            Some(_) => Ok(CaptureStatus::Active),
            None if self.implied_captures(stream).is_empty() => Ok(CaptureStatus::None),
            None => Err(Code::STREAM_CAPTURE_IMPLICIT),
        }
    }

    /// What `cuStreamGetCaptureInfo` tells. `None`: the stream is not capturing.
    pub fn capture_info(&self, stream: StreamId) -> Option<CaptureInfo> {
        let capturing = self.capturing(stream)?;
        Some(CaptureInfo {
            number: capturing.capture,
            graph: self.graphs.captures[&capturing.capture].graph,
            dependencies: capturing.dependencies.as_ptr(),
            data: capturing.data.as_ptr(),
            count: capturing.dependencies.len(),
            has_data: capturing.data.iter().any(|data| *data != [0; 8]),
        })
    }

    /// `cuStreamUpdateCaptureDependencies`: adds to what the next node depends on, or replaces it.
    ///
    /// # Errors
    /// `ILLEGAL_STATE`: the stream is not capturing. `INVALID_VALUE`: nodes of another graph.
    pub fn update_capture(
        &mut self,
        stream: StreamId,
        edges: &[Edge],
        is_replaced: bool,
    ) -> Result {
        let capturing = self.capture_for_operation(stream)?;
        let mut capturing = capturing.ok_or(Code::ILLEGAL_STATE)?;
        let capture = &self.graphs.captures[&capturing.capture];
        self.graphs.check_edges(capture.graph, edges)?;
        if is_replaced {
            let let_go = std::mem::take(&mut capturing.dependencies);
            let capture = self.graphs.captures.get_mut(&capturing.capture);
            capture.expect("it is active").let_go.extend(let_go);
            capturing = Capturing::new(capturing.capture, edges);
        } else {
            capturing.add(edges);
        }
        self.exec.set_capturing(stream, Some(capturing));
        Ok(())
    }
}
