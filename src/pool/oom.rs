#![forbid(unsafe_code)]
//! Out of memory: the handlers that a program set, and the message.

use super::Open;
use crate::alloc::Request;
use crate::error::{Error, Result, Status};
use std::cell::Cell;
use std::sync::{Arc, Mutex, PoisonError};

/// Is told how many bytes could not be had; `true`: something was freed, try again.
pub type Handler = Arc<dyn Fn(u64) -> bool + Send + Sync>;

/// What tells handlers apart: the function's and the user's pointer, as numbers.
pub type HandlerKey = (usize, usize);

static HANDLERS: Mutex<Vec<(HandlerKey, Handler)>> = Mutex::new(Vec::new());

thread_local! {
    static IN_HANDLER: Cell<bool> = const { Cell::new(false) };
}

fn handlers() -> std::sync::MutexGuard<'static, Vec<(HandlerKey, Handler)>> {
    HANDLERS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Adds a handler, called after those that are there.
///
/// # Errors
/// `InvalidValue`: it is there already.
pub fn add_handler(key: HandlerKey, handler: Handler) -> Result<()> {
    let mut handlers = handlers();
    if handlers.iter().any(|(other, _)| *other == key) {
        return Err(Error::new(
            Status::InvalidValue,
            "this handler is set already with the same user pointer",
        ));
    }
    handlers.push((key, handler));
    Ok(())
}

/// Takes a handler out. It may still be running in another thread.
///
/// # Errors
/// `InvalidValue`: it is not there.
pub fn remove_handler(key: HandlerKey) -> Result<()> {
    let mut handlers = handlers();
    match handlers.iter().position(|(other, _)| *other == key) {
        Some(at) => {
            handlers.remove(at);
            Ok(())
        }
        None => Err(Error::new(
            Status::InvalidValue,
            "no handler is set with this function and user pointer",
        )),
    }
}

/// Keeps the list from changing, for a fork.
pub(super) fn lock_for_fork() -> std::sync::MutexGuard<'static, Vec<(HandlerKey, Handler)>> {
    handlers()
}

/// The handlers that one request may call, each once.
pub(super) struct HandlerRound {
    left: std::vec::IntoIter<(HandlerKey, Handler)>,
}

impl HandlerRound {
    /// Those that are set now. None inside a handler: an allocation made there fails plainly.
    pub(super) fn begin() -> Self {
        let handlers = if IN_HANDLER.get() {
            Vec::new()
        } else {
            handlers().clone()
        };
        Self {
            left: handlers.into_iter(),
        }
    }

    /// Calls handlers until one says that it freed something. To be called without any lock.
    pub(super) fn call(&mut self, bytes: u64) -> bool {
        self.left.any(|(_, handler)| {
            IN_HANDLER.set(true);
            let freed = handler(bytes);
            IN_HANDLER.set(false);
            freed
        })
    }

    /// Whether none is left.
    pub(super) fn is_over(&self) -> bool {
        self.left.as_slice().is_empty()
    }
}

/// A size for people, with the exact figure where that is another one.
pub(crate) fn bytes(value: u64) -> String {
    const UNITS: [&str; 6] = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    if value < 1024 {
        return format!("{value} bytes");
    }
    let unit = (value.ilog2() / 10) as usize - 1;
    let scaled = value as f64 / (1u64 << (10 * (unit + 1))) as f64;
    format!("{scaled:.2} {} ({value} bytes)", UNITS[unit])
}

impl Open {
    /// The failure of a request that nothing could serve.
    pub(super) fn out_of_memory(&self, request: &Request) -> Error {
        let usage = self.engine.usage();
        let idle: u64 = self
            .engine
            .idle_regions()
            .iter()
            .map(|(_, bytes)| bytes)
            .sum();
        let stuck = self.engine.free_bytes() - idle;
        let mut message = format!("out of memory: {} asked for", bytes(request.requested));
        if request.align > crate::size::GRAIN {
            message += &format!(" at a multiple of {}", request.align);
        }
        message += &format!(
            "; allocated {} in {} blocks, reserved {}, largest free block {}, free behind live blocks {}",
            bytes(usage.allocated),
            usage.live,
            bytes(usage.reserved),
            bytes(self.engine.largest_free()),
            bytes(stuck),
        );
        message += &match self.limit {
            u64::MAX => "; limit none".to_owned(),
            limit => format!("; limit {}", bytes(limit)),
        };
        let memory = self.backend.memory().ok().flatten();
        message += &match memory {
            Some(memory) => format!(
                "; the {} device has {} free of {}",
                self.backend.name(),
                bytes(memory.free),
                bytes(memory.total)
            ),
            None => format!(
                "; the {} backend does not say what it has",
                self.backend.name()
            ),
        };
        message += &format!(
            ". {}",
            self.advice(request, memory.map(|memory| memory.total), stuck)
        );
        Error::new(Status::OutOfMemory, message)
    }

    fn advice(&self, request: &Request, total: Option<u64>, stuck: u64) -> &'static str {
        if request.size > self.limit {
            return "The request is larger than the limit: raise it (luma_pool_set_limit; LUMA_MEMORY_LIMIT for a default pool), or ask for less";
        }
        if total.is_some_and(|total| request.size > total) {
            return match self.backend.name() {
                "host" => {
                    "The request is larger than the device: raise LUMA_HOST_CAPACITY, or ask for less"
                }
                _ => "The request is larger than the device: ask for less",
            };
        }
        if stuck >= request.size {
            return "Enough is free, but in pieces between live blocks: free some of those, allocate what lives longest first, or use a backend with pages";
        }
        if self.limit != u64::MAX {
            return "Free some blocks, raise the limit (luma_pool_set_limit; LUMA_MEMORY_LIMIT for a default pool), or add an out-of-memory handler that frees something";
        }
        "Free some blocks, or add an out-of-memory handler that frees something"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_read_well() {
        assert_eq!(bytes(0), "0 bytes");
        assert_eq!(bytes(1023), "1023 bytes");
        assert_eq!(bytes(1536), "1.50 KiB (1536 bytes)");
        assert_eq!(bytes(5 << 30), "5.00 GiB (5368709120 bytes)");
        assert_eq!(bytes(u64::MAX), "16.00 EiB (18446744073709551615 bytes)");
    }
}
