#![forbid(unsafe_code)]
//! Out of memory: the handlers that a program set, and the message.

use super::Open;
use crate::alloc::Request;
use crate::backend::Memory;
use crate::error::{Error, Result, Status};
use crate::flag::Raised;
use crate::size::GRAIN;
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

/// What a message says about a request that nothing could serve.
struct OutOfMemory<'a> {
    open: &'a Open,
    request: &'a Request,
    /// What the backend said that it has.
    memory: Option<Memory>,
}

impl Open {
    /// The failure of a request that nothing could serve. `memory`: what the backend said.
    pub(super) fn out_of_memory(&self, request: &Request, memory: Option<Memory>) -> Error {
        let report = OutOfMemory {
            open: self,
            request,
            memory,
        };
        Error::new(Status::OutOfMemory, text!("{report}"))
    }
}

impl fmt::Display for OutOfMemory<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            open,
            request,
            memory,
        } = self;
        let engine = &open.engine;
        let usage = engine.usage();
        let stuck = engine.free_bytes() - engine.idle_bytes();
        write!(f, "out of memory: {} asked for", Bytes(request.requested))?;
        if request.align > GRAIN {
            write!(f, " at a multiple of {}", request.align)?;
        }
        write!(
            f,
            "; allocated {} in {} blocks, reserved {}, largest free block {}, free behind live blocks {}",
            Bytes(usage.allocated),
            usage.live,
            Bytes(usage.reserved),
            Bytes(engine.largest_free()),
            Bytes(stuck),
        )?;
        match open.limit {
            u64::MAX => write!(f, "; limit none")?,
            limit => write!(f, "; limit {}", Bytes(limit))?,
        }
        let name = open.backend.name();
        match (memory, open.device_total) {
            (Some(memory), _) => write!(
                f,
                "; the {name} device has {} free of {}",
                Bytes(memory.free),
                Bytes(memory.total)
            )?,
            (None, Some(total)) => write!(f, "; the {name} device has {}", Bytes(total))?,
            _ => write!(f, "; the {name} backend does not say what it has")?,
        }
        write!(f, ". {}", self.advice(open.device_total, stuck))
    }
}

impl OutOfMemory<'_> {
    fn advice(&self, total: Option<u64>, stuck: u64) -> &'static str {
        let Self { open, request, .. } = self;
        if request.size > open.limit && request.requested <= open.limit {
            return "Rounded up to a multiple of 256 bytes, the request is larger than the limit: raise it (luma_pool_set_limit; LUMA_MEMORY_LIMIT for a default pool), or ask for less";
        }
        if request.size > open.limit {
            return "The request is larger than the limit: raise it (luma_pool_set_limit; LUMA_MEMORY_LIMIT for a default pool), or ask for less";
        }
        if total.is_some_and(|total| request.size > total) {
            return match open.backend.name() {
                "host" => {
                    "The request is larger than the device: raise LUMA_HOST_CAPACITY, or ask for less"
                }
                _ => "The request is larger than the device: ask for less",
            };
        }
        if stuck >= request.size {
            return match open.pages {
                None => {
                    "Enough is free, but in pieces between live blocks: free some of those, allocate what lives longest first, or use a backend with pages"
                }
                Some(_) => {
                    "Enough is free, but in pieces between live blocks that are smaller than a page: free some of those, or allocate what lives longest first"
                }
            };
        }
        if open.limit != u64::MAX {
            return "Free some blocks, raise the limit (luma_pool_set_limit; LUMA_MEMORY_LIMIT for a default pool), or add an out-of-memory handler that frees something";
        }
        "Free some blocks, or add an out-of-memory handler that frees something"
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
