#![forbid(unsafe_code)]
//! Streams as a pool knows them: which work must end before freed memory may be used by whom.
//!
//! This is book-keeping only. Events are recorded and asked by [`crate::pool`], without its lock; here it
//! is written down what they stand for, and the engine is told what their end sets free.
//!
//! - [`clock`]: a stream's own time;
//! - [`table`]: the streams that a pool has seen, and blocks that wait for more than one of them;
//! - [`barrier`]: events that stand for all streams;
//! - [`events`]: events that are not in use;
//! - [`captures`]: memory that belongs to graphs.

pub mod barrier;
pub mod captures;
pub mod clock;
pub mod events;
pub mod table;

pub use captures::Captures;
pub use table::{ParkedId, Query, SlotId, Table};
