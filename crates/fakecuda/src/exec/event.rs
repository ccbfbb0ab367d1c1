//! Events.

use super::shared_event::Shared;
use super::{Exec, Point, Step, StreamId};
use crate::abi::memory::Opaque64;
use crate::context::ContextId;
use crate::graph::{Content, Edge};
use crate::state::State;
use crate::status::{Code, Result};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// `CU_EVENT_DISABLE_TIMING`.
const DISABLE_TIMING: u32 = 2;
/// `CU_EVENT_INTERPROCESS`.
const INTERPROCESS: u32 = 4;
/// All flags of `cuEventCreate`.
const CREATE_FLAGS: u32 = 7;
/// `CU_EVENT_RECORD_EXTERNAL` and `CU_EVENT_WAIT_EXTERNAL`: in a capture, a node of the graph.
const EVENT_EXTERNAL: u32 = 1;

/// What an event stands for.
#[derive(Clone, Debug)]
pub enum EventState {
    /// It was never recorded: no work.
    Never,
    /// All up to some points.
    Recorded {
        points: Vec<Point>,
        /// When that was complete; 0 as long as it is not. Only if the event keeps time.
        time: Option<Arc<AtomicU64>>,
    },
    /// Nodes of a graph that was being captured.
    Captured { capture: u64, nodes: Vec<Edge> },
}

/// An event.
#[derive(Debug)]
pub struct Event {
    pub context: ContextId,
    pub flags: u32,
    pub state: EventState,
    /// What other processes see of it.
    shared: Option<Arc<Shared>>,
}

impl Exec {
    /// An event by its handle.
    pub fn event(&self, handle: u64) -> Result<&Event> {
        self.events.get(handle).ok_or(Code::INVALID_HANDLE)
    }

    /// A context goes with its events.
    pub(super) fn close_events(&mut self, context: ContextId) {
        let of_context = |(_, event): &(u64, &Event)| event.context == context;
        let events: Vec<u64> = self.events.iter().filter(of_context).map(|e| e.0).collect();
        for handle in events {
            self.events.remove(handle);
        }
    }

    fn set_event(&mut self, handle: u64, state: EventState) {
        if let Some(event) = self.events.get_mut(handle) {
            event.state = state;
        }
    }
}

impl State {
    /// Makes an event of the current context.
    ///
    /// # Errors
    /// `INVALID_VALUE`: flags that do not exist, or an interprocess event that keeps time.
    pub fn create_event(&mut self, flags: u32) -> Result<u64> {
        let keeps_time = flags & DISABLE_TIMING == 0;
        if flags & !CREATE_FLAGS != 0 || flags & INTERPROCESS != 0 && keeps_time {
            return Err(Code::INVALID_VALUE);
        }
        let shared = match flags & INTERPROCESS {
            0 => None,
            _ => Some(Arc::new(Shared::new()?)),
        };
        self.insert_event(flags, shared)
    }

    fn insert_event(&mut self, flags: u32, shared: Option<Arc<Shared>>) -> Result<u64> {
        let context = self.current()?;
        Ok(self.exec.events.insert(Event {
            context,
            flags,
            state: EventState::Never,
            shared,
        }))
    }

    /// `cuIpcGetEventHandle`.
    ///
    /// # Errors
    /// `INVALID_HANDLE`: no such event, or not one between processes.
    pub fn export_event(&self, handle: u64) -> Result<Opaque64> {
        let event = self.exec.event(handle)?;
        let shared = event.shared.as_ref().ok_or(Code::INVALID_HANDLE)?;
        shared.export(self.context(event.context)?.device)
    }

    /// `cuIpcOpenEventHandle`: an event of the current context.
    pub fn import_event(&mut self, handle: &Opaque64) -> Result<u64> {
        self.current()?;
        let shared = Some(Arc::new(Shared::import(handle)?));
        self.insert_event(DISABLE_TIMING | INTERPROCESS, shared)
    }

    /// Destroys an event. Whoever waits for it goes on waiting.
    pub fn destroy_event(&mut self, handle: u64) -> Result {
        let event = self.exec.events.remove(handle);
        event.map(drop).ok_or(Code::INVALID_HANDLE)
    }

    /// `cuEventRecordWithFlags`.
    pub fn record_event(&mut self, handle: u64, stream: StreamId, flags: u32) -> Result {
        if flags & !EVENT_EXTERNAL != 0 {
            return Err(Code::INVALID_VALUE);
        }
        let event = self.exec.event(handle)?;
        if event.context != self.stream_context(stream)? {
            return Err(Code::INVALID_HANDLE);
        }
        if let Some(capturing) = self.capture_for_operation(stream)? {
            if flags & EVENT_EXTERNAL != 0 {
                let content = Content::EventRecord { event: handle };
                return self.capture_node(stream, content).map(drop);
            }
            let state = EventState::Captured {
                capture: capturing.capture,
                nodes: capturing.edges(),
            };
            self.exec.set_event(handle, state);
            return Ok(());
        }
        if flags & EVENT_EXTERNAL != 0 {
            return Err(Code::INVALID_VALUE);
        }
        self.record_event_now(handle, stream)
    }

    /// Queues the record of an event.
    pub fn record_event_now(&mut self, handle: u64, stream: StreamId) -> Result {
        let event = self.exec.event(handle)?;
        let keeps_time = event.flags & DISABLE_TIMING == 0;
        let shared = event.shared.clone();
        let time = keeps_time.then(|| Arc::new(AtomicU64::new(0)));
        let step = match (&time, shared) {
            (Some(time), _) => Step::Stamp(time.clone()),
            (None, None) => Step::Nothing,
            (None, Some(shared)) => {
                let record = shared.record();
                Step::Work(Arc::new(move || shared.complete(record)))
            }
        };
        let is_shared = matches!(step, Step::Work(_));
        let point = self.exec.push(stream, step, Vec::new());
        if is_shared {
            // Another process cannot ask for it.
            self.exec.demand(point);
        }
        let points = vec![point];
        self.exec
            .set_event(handle, EventState::Recorded { points, time });
        Ok(())
    }

    /// `cuStreamWaitEvent`.
    pub fn wait_event(&mut self, stream: StreamId, handle: u64, flags: u32) -> Result {
        if flags & !EVENT_EXTERNAL != 0 {
            return Err(Code::INVALID_VALUE);
        }
        let state = self.exec.event(handle)?.state.clone();
        if let EventState::Captured { capture, nodes } = state {
            return self.capture_wait(stream, capture, &nodes);
        }
        let is_capturing = self.capture_for_operation(stream)?.is_some();
        if is_capturing && flags & EVENT_EXTERNAL != 0 {
            let content = Content::EventWait { event: handle };
            return self.capture_node(stream, content).map(drop);
        }
        if flags & EVENT_EXTERNAL != 0 {
            return Err(Code::INVALID_VALUE);
        }
        match state {
            EventState::Recorded { .. } if is_capturing => {
                self.invalidate_capture_of(stream);
                Err(Code::STREAM_CAPTURE_ISOLATION)
            }
            _ => self.wait_event_now(stream, handle),
        }
    }

    /// Queues a wait for what an event stands for now, outside of any capture.
    pub fn wait_event_now(&mut self, stream: StreamId, handle: u64) -> Result {
        let event = self.exec.event(handle)?;
        let shared = event.shared.clone();
        if let EventState::Recorded { points, .. } = event.state.clone() {
            self.wait_points(stream, points);
        }
        if let Some(shared) = shared {
            let record = shared.last();
            if !shared.is_complete(record) {
                // It may take long, so that no caller should run it.
                let wait = Arc::new(move || shared.wait(record));
                self.exec.push(stream, Step::Host(wait), Vec::new());
            }
        }
        Ok(())
    }

    fn wait_points(&mut self, stream: StreamId, mut points: Vec<Point>) {
        points.retain(|&point| point.stream != stream && !self.exec.is_complete(point));
        if !points.is_empty() {
            self.exec.push(stream, Step::Nothing, points);
        }
    }

    /// What a program that asks for an event, or waits for it, asks or waits for.
    ///
    /// # Errors
    /// `INVALID_HANDLE`: there is no such event. `CAPTURED_EVENT`: it was last recorded in a capture.
    pub fn event_points(&self, handle: u64) -> Result<Vec<Point>> {
        match &self.exec.event(handle)?.state {
            EventState::Never => Ok(Vec::new()),
            EventState::Recorded { points, .. } => Ok(points.clone()),
            EventState::Captured { .. } => Err(Code::CAPTURED_EVENT),
        }
    }

    /// What other processes see of an event, and its last record.
    pub fn event_shared(&self, handle: u64) -> Result<Option<(Arc<Shared>, u64)>> {
        let shared = self.exec.event(handle)?.shared.clone();
        Ok(shared.map(|shared| {
            let record = shared.last();
            (shared, record)
        }))
    }

    /// `cuCtxRecordEvent`: the event stands for all that is queued in a context.
    pub fn record_context_event(&mut self, handle: u64, context: ContextId) -> Result {
        if self.exec.event(handle)?.context != context {
            return Err(Code::INVALID_HANDLE);
        }
        let streams: Vec<StreamId> = self.exec.streams_of(context).collect();
        let points = streams.iter().filter_map(|&id| self.last_point(id));
        let state = EventState::Recorded {
            points: points.collect(),
            time: None,
        };
        self.exec.set_event(handle, state);
        Ok(())
    }

    /// `cuCtxWaitEvent`: all that is queued in a context from now on waits for the event.
    pub fn wait_context_event(&mut self, handle: u64, context: ContextId) -> Result {
        let points = self.event_points(handle)?;
        let streams: Vec<StreamId> = self.exec.streams_of(context).collect();
        for id in streams {
            self.wait_points(id, points.clone());
        }
        self.exec.hold_new_streams(context, points);
        Ok(())
    }

    /// Milliseconds between two events.
    ///
    /// # Errors
    /// `INVALID_HANDLE`: one is no event, keeps no time, was not recorded, or they are of different
    /// contexts. `NOT_READY`: one is not complete. `CAPTURED_EVENT`: one was recorded in a capture.
    pub fn elapsed(&self, start: u64, end: u64) -> Result<f32> {
        let time = |handle: u64| -> Result<u64> {
            match &self.exec.event(handle)?.state {
                EventState::Captured { .. } => Err(Code::CAPTURED_EVENT),
                EventState::Recorded {
                    time: Some(time), ..
                } => Ok(time.load(Ordering::Acquire)),
                _ => Err(Code::INVALID_HANDLE),
            }
        };
        if self.exec.event(start)?.context != self.exec.event(end)?.context {
            return Err(Code::INVALID_HANDLE);
        }
        let (start, end) = (time(start)?, time(end)?);
        if start == 0 || end == 0 {
            return Err(Code::NOT_READY);
        }
        let nanoseconds = end as i64 - start as i64;
        Ok((nanoseconds as f64 / 1e6) as f32)
    }
}
