#![forbid(unsafe_code)]
//! The message of a request that failed for want of memory.

use super::Bytes;
use super::report::{Action, OomReport};
use crate::backend::streams::StreamKey;
use crate::size::GRAIN;
use std::fmt;

const RAISE: &str = "(luma_pool_set_limit; LUMA_MEMORY_LIMIT for a default pool)";
const OR_A_HANDLER: &str = "or add an out-of-memory handler that frees something";

impl fmt::Display for OomReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "out of memory: {} asked for", Bytes(self.requested))?;
        if self.align > GRAIN {
            write!(f, " at a multiple of {}", self.align)?;
        }
        write!(
            f,
            "; allocated {} in {} blocks, reserved {}, largest free block {}, free behind live blocks {}",
            Bytes(self.allocated),
            self.live_blocks,
            Bytes(self.reserved),
            Bytes(self.largest_free),
            Bytes(self.stuck),
        )?;
        if self.pending.bytes > 0 {
            write!(
                f,
                ", waiting for {} streams {}",
                self.pending.streams,
                Bytes(self.pending.bytes)
            )?;
        }
        match self.limit {
            None => write!(f, "; limit none")?,
            Some(limit) => write!(f, "; limit {}", Bytes(limit))?,
        }
        let name = self.backend;
        match (self.memory, self.device_total) {
            (Some(memory), _) => write!(
                f,
                "; the {name} device has {} free of {}",
                Bytes(memory.free),
                Bytes(memory.total)
            )?,
            (None, Some(total)) => write!(f, "; the {name} device has {}", Bytes(total))?,
            _ => write!(f, "; the {name} backend does not say what it has")?,
        }
        let steps = &self.steps;
        if steps.give_backs > 0 {
            write!(f, "; gave memory back {} times", steps.give_backs)?;
        }
        if steps.waits > 0 {
            write!(
                f,
                "; waited {:.3} s in {} parts",
                steps.wait_ns as f64 / 1e9,
                steps.waits
            )?;
        }
        if steps.handlers > 0 {
            write!(f, "; called {} handlers", steps.handlers)?;
        }
        write!(f, ". ")?;
        self.advise(f)
    }
}

impl OomReport {
    fn advise(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Action::AskForLess { .. } = self.action {
            return f.write_str(match self.backend {
                "host" => {
                    "The request is larger than the device: raise LUMA_HOST_CAPACITY, or ask for less"
                }
                _ => "The request is larger than the device: ask for less",
            });
        }
        if let Some(limit) = self.limit.filter(|&limit| self.rounded > limit) {
            if self.requested <= limit {
                f.write_str("Rounded up to a multiple of 256 bytes, the")?;
            } else {
                f.write_str("The")?;
            }
            f.write_str(" request is larger than the limit: raise it ")?;
            if let Action::RaiseLimit { to } = self.action {
                write!(f, "to {} ", Bytes(to))?;
            }
            return write!(f, "{RAISE}, or ask for less");
        }
        if self.stuck >= self.rounded {
            let (smaller, instead) = if self.has_pages {
                (" that are smaller than a page", "")
            } else {
                ("", ", or use a backend with pages")
            };
            write!(
                f,
                "Enough is free, but in pieces between live blocks{smaller}: free some of those, or allocate what lives longest first{instead}. "
            )?;
        }
        match self.action {
            Action::WaitForStream { stream, bytes } if stream == StreamKey::UNORDERED.0 => write!(
                f,
                "Wait for the work of all streams, after which {} are free; free some blocks, {OR_A_HANDLER}",
                Bytes(bytes)
            ),
            Action::WaitForStream { stream, bytes } => write!(
                f,
                "Wait for the work of stream {stream}, after which {} are free; free some blocks, {OR_A_HANDLER}",
                Bytes(bytes)
            ),
            Action::EmptyOtherPool(other) => write!(
                f,
                "Another pool of the device holds {} that it does not use: empty its cache (luma_pool_empty_cache), free some blocks, {OR_A_HANDLER}",
                Bytes(other.bytes)
            ),
            Action::RaiseLimit { to } => write!(
                f,
                "Free some blocks, raise the limit to {} {RAISE}, {OR_A_HANDLER}",
                Bytes(to)
            ),
            Action::FreeBlock { addr, size } => write!(
                f,
                "Free the block of {} at {addr:#x}, which is enough, {OR_A_HANDLER}",
                Bytes(size)
            ),
            _ if self.live_blocks == 0 => {
                f.write_str("Others hold the device's memory: end them, or ask for less")
            }
            _ => write!(f, "Free some blocks, {OR_A_HANDLER}"),
        }
    }
}
