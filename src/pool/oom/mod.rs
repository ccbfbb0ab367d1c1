#![forbid(unsafe_code)]
//! Out of memory: the handlers that a program set; what is said of a request that failed.
//!
//! - [`report`]: the figures;
//! - `advice`: what would have helped;
//! - `message`: both in words.

mod advice;
mod message;
pub mod report;

pub use report::{
    Action, Elsewhere, Inputs, OomReport, Pending, Steps, StreamPending, last_report,
};

use super::Open;
use crate::alloc::Request;
use crate::error::{Error, Result, Status};
use crate::flag::Raised;
use crate::text::text;
use std::cell::Cell;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Is told how many bytes could not be had; `true`: something was freed, try again.
pub type Handler = Arc<dyn Fn(u64) -> bool + Send + Sync>;

/// What tells handlers apart: the function's and the user's pointer, as numbers.
pub type HandlerKey = (usize, usize);

/// The handlers in the order in which they were added.
#[derive(Default)]
pub(super) struct Handlers {
    list: Vec<Entry>,
    /// How many were ever added.
    added: u64,
}

struct Entry {
    key: HandlerKey,
    /// Larger than that of any handler added before.
    serial: u64,
    handler: Handler,
}

static HANDLERS: Mutex<Handlers> = Mutex::new(Handlers {
    list: Vec::new(),
    added: 0,
});

thread_local! {
    static IN_HANDLER: Cell<bool> = const { Cell::new(false) };
}

fn handlers() -> MutexGuard<'static, Handlers> {
    HANDLERS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Adds a handler, called after those that are there.
///
/// # Errors
/// `InvalidValue`: it is there already.
pub fn add_handler(key: HandlerKey, handler: Handler) -> Result<()> {
    let mut handlers = handlers();
    if handlers.list.iter().any(|entry| entry.key == key) {
        return Err(Error::new(
            Status::InvalidValue,
            "this handler is set already with the same user pointer",
        ));
    }
    handlers
        .list
        .try_reserve(1)
        .map_err(|_| Error::host_memory())?;
    handlers.added += 1;
    let serial = handlers.added;
    handlers.list.push(Entry {
        key,
        serial,
        handler,
    });
    Ok(())
}

/// Takes a handler out. It may still be running in another thread.
///
/// # Errors
/// `InvalidValue`: it is not there.
pub fn remove_handler(key: HandlerKey) -> Result<()> {
    let mut handlers = handlers();
    match handlers.list.iter().position(|entry| entry.key == key) {
        Some(at) => {
            let removed = handlers.list.remove(at);
            // What the handler owns may call luma when it goes.
            drop(handlers);
            drop(removed);
            Ok(())
        }
        None => Err(Error::new(
            Status::InvalidValue,
            "no handler is set with this function and user pointer",
        )),
    }
}

/// Keeps the list from changing, for a fork.
pub(super) fn lock_for_fork() -> MutexGuard<'static, Handlers> {
    handlers()
}

/// The handlers that one request may call, each once.
pub(super) struct HandlerRound {
    /// The serial of the last one called.
    last: u64,
    /// The serial of the last one that may be called.
    most: u64,
}

impl HandlerRound {
    /// Those that are set now. None inside a handler: an allocation made there fails plainly.
    pub(super) fn begin() -> Self {
        let most = if IN_HANDLER.get() {
            0
        } else {
            handlers().added
        };
        Self { last: 0, most }
    }

    /// Takes the next handler, if one is left.
    pub(super) fn next(&mut self) -> Option<Handler> {
        if self.last >= self.most {
            return None;
        }
        let handlers = handlers();
        let entry = handlers
            .list
            .iter()
            .find(|entry| entry.serial > self.last && entry.serial <= self.most);
        self.last = entry.map_or(self.most, |entry| entry.serial);
        entry.map(|entry| entry.handler.clone())
    }
}

/// Calls a handler. To be done without any lock.
pub(super) fn call(handler: &Handler, bytes: u64) -> bool {
    let _inside = Raised::new(&IN_HANDLER);
    handler(bytes)
}

/// A size for people, with the exact figure where that is another one.
pub(crate) struct Bytes(pub(crate) u64);

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const UNITS: [&str; 6] = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
        let value = self.0;
        if value < 1024 {
            return write!(f, "{value} bytes");
        }
        let unit = (value.ilog2() / 10) as usize - 1;
        let scaled = value as f64 / (1u64 << (10 * (unit + 1))) as f64;
        write!(f, "{scaled:.2} {} ({value} bytes)", UNITS[unit])
    }
}

impl Open {
    /// The failure of a request that nothing could serve, and its report.
    pub(super) fn out_of_memory(&self, request: &Request, inputs: &Inputs) -> Error {
        let report = OomReport::make(self, request, inputs);
        Error::new(Status::OutOfMemory, text!("{report}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(value: u64) -> String {
        Bytes(value).to_string()
    }

    #[test]
    fn sizes_read_well() {
        assert_eq!(shown(0), "0 bytes");
        assert_eq!(shown(1023), "1023 bytes");
        assert_eq!(shown(1536), "1.50 KiB (1536 bytes)");
        assert_eq!(shown(5 << 30), "5.00 GiB (5368709120 bytes)");
        assert_eq!(shown(u64::MAX), "16.00 EiB (18446744073709551615 bytes)");
    }
}
