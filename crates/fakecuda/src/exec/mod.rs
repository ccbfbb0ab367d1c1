//! Streams, the threads that run them, events.
//!
//! Everything that is queued is an operation of one stream, and has a number there that grows; a
//! [`Point`] names one. A stream has completed all points up to a number. Whatever waits, an operation
//! of another stream or a caller, waits for points.
//!
//! - `stream`: what a stream is, how programs name it;
//! - `queue`: what an operation waits for, and what happens when it is complete;
//! - `behind`: whether a stream already waits for something;
//! - `runner`: the threads that run operations;
//! - `wait`: callers that wait or ask;
//! - `late`: what is left to chance when work runs as late as it may, and how late that is;
//! - `event`, `shared_event`, `memory_operation`: events, also between processes, and waits for values
//!   in memory.

mod behind;
mod event;
mod late;
pub mod memory_operation;
mod queue;
mod runner;
mod shared_event;
mod stream;
mod wait;

pub use queue::{HostFunction, Step, Submitted, host_step};
pub use runner::spawn_thread;
pub use stream::{Capturing, GREATEST_PRIORITY, LEGACY, NON_BLOCKING, Role};
pub use wait::{end_call, perform, wait, wait_context, wait_device, wait_stream};

use crate::context::ContextId;
use crate::environment::environment;
use crate::handle::Table;
use event::Event;
use late::Chance;
use runner::Runners;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use stream::Stream;

/// Names a stream. Never given twice, other than its handle. It is what `cuStreamGetId` gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StreamId(pub u64);

/// An operation of a stream. It is complete when its stream's completed number has reached it, or the
/// stream is no more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Point {
    pub stream: StreamId,
    pub number: u64,
}

/// What an operation does, without the lock, on a thread of the driver or on that of a caller who
/// waits for it. In a graph it runs once a launch.
pub type Work = Arc<dyn Fn() + Send + Sync>;

/// What kind of work it is: what the node of a captured graph says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Kernel,
    Copy,
    Set,
    /// Anything that has no node type of its own.
    Other,
}

/// All streams and events.
#[derive(Debug)]
pub struct Exec {
    streams: BTreeMap<StreamId, Stream>,
    handles: Table<StreamId>,
    streams_made: u64,
    /// The default stream of each context.
    legacy: BTreeMap<ContextId, StreamId>,
    /// The default streams of threads, by the context and the thread's number.
    per_thread: BTreeMap<(ContextId, u64), StreamId>,
    /// What streams made from now on wait for, by the context (`cuCtxWaitEvent`).
    held: BTreeMap<ContextId, Vec<Point>>,
    events: Table<Event>,
    /// Streams whose first operation may run, in the order in which that came about.
    ready: VecDeque<StreamId>,
    runners: Runners,
    chance: Chance,
    /// In the lazy mode: whether a thread looks whether the program is quiet.
    is_watched: bool,
}

impl Exec {
    /// No streams.
    pub fn new() -> Self {
        Self {
            streams: BTreeMap::new(),
            handles: Table::new(2),
            streams_made: 0,
            legacy: BTreeMap::new(),
            per_thread: BTreeMap::new(),
            held: BTreeMap::new(),
            events: Table::new(3),
            ready: VecDeque::new(),
            runners: Runners::default(),
            chance: Chance::new(environment().seed),
            is_watched: false,
        }
    }

    /// A number below `bound`, which is not 0, left to chance.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.chance.below(bound)
    }

    /// How many streams programs have made and not destroyed.
    pub fn live_streams(&self) -> u64 {
        self.handles.len() as u64
    }

    /// How many events programs have made and not destroyed.
    pub fn live_events(&self) -> u64 {
        self.events.len() as u64
    }
}
