#![forbid(unsafe_code)]
//! Allocation traces: the record of what a program asked for and gave back.
//!
//! A trace is a CSV file, described in `docs/traces.md`. [`Writer`] records calls as they are made,
//! [`Reader`] yields a file's events and refuses what cannot have happened. Nothing here knows a
//! pool: a trace is replayed by whoever has both.

mod error;
mod format;
mod read;
mod write;

pub use error::{Problem, ReadError};
pub use format::{Event, HEADER, Op};
pub use read::Reader;
pub use write::Writer;
