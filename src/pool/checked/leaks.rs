#![forbid(unsafe_code)]
//! Blocks that are live at the end of the process, or of their pool.

use super::ledger::{Age, Stack};
use crate::alloc::host_memory::TryPush;
use crate::log::{self, Level};
use crate::pool::{Open, Pool, registry};
use crate::text::{Text, text};
use std::cmp::Reverse;
use std::sync::TryLockError;
use std::time::Duration;

/// The most blocks of a pool that are listed one by one, the largest first.
const MOST_LISTED: usize = 100;
/// How often a pool's lock is tried at exit, where another thread may have it for ever, and how long it is
/// slept in between.
const TRIES: u32 = 100;
const BETWEEN_TRIES: Duration = Duration::from_millis(1);

/// A block that nobody freed.
struct Leak {
    addr: u64,
    size: u64,
    requested: u64,
    age: Option<Age>,
    stack: Option<Stack>,
}

/// The live blocks of a pool.
pub(in crate::pool) struct Leaks {
    pool: u64,
    backend: &'static str,
    blocks: u64,
    bytes: u64,
    /// The largest of them.
    listed: Vec<Leak>,
}

impl Open {
    /// The live blocks; `None` where nobody asked to know.
    pub(in crate::pool) fn leaks(&self) -> Option<Leaks> {
        let checked = self.checked.as_ref()?;
        let usage = self.engine.usage();
        let allocations = self.calls.allocations;
        let mut largest = Vec::new();
        for (block, requested) in self.engine.live_blocks() {
            if largest
                .try_push((Reverse(block.size), block.addr, requested))
                .is_err()
            {
                break;
            }
        }
        largest.sort_unstable();
        largest.truncate(MOST_LISTED);
        let mut listed = Vec::new();
        for (Reverse(size), addr, requested) in largest {
            let made = checked.ledger.get(addr);
            let leak = Leak {
                addr,
                size,
                requested,
                age: made.map(|made| made.age(allocations)),
                stack: made.and_then(|made| made.stack.clone()),
            };
            if listed.try_push(leak).is_err() {
                break;
            }
        }
        Some(Leaks {
            pool: self.id,
            backend: self.backend.name(),
            blocks: usage.live,
            bytes: usage.allocated,
            listed,
        })
    }
}

impl Pool {
    /// The live blocks, unless another thread does not let go of the pool.
    fn leaks_at_exit(&self) -> Option<Leaks> {
        for _ in 0..TRIES {
            match self.state.try_lock() {
                Ok(state) => return state.as_ref().and_then(Open::leaks),
                Err(TryLockError::WouldBlock) => std::thread::sleep(BETWEEN_TRIES),
                Err(TryLockError::Poisoned(_)) => return None,
            }
        }
        None
    }
}

/// Tells of each block. To be done without any lock.
pub(in crate::pool) fn tell_leaks(leaks: &Leaks) {
    let Leaks {
        pool,
        backend,
        blocks,
        bytes,
        listed,
    } = leaks;
    for leak in listed {
        log::log(Level::Warning, || {
            let age = match leak.age {
                Some(age) => text!(", allocated {age}"),
                None => Text::default(),
            };
            let by = match &leak.stack {
                Some(stack) => text!("{}", stack.named("allocated by")),
                None => Text::default(),
            };
            text!(
                "live in pool {pool} ({backend}): {} bytes at {:#x} ({} asked for){age}{by}",
                leak.size,
                leak.addr,
                leak.requested
            )
        });
    }
    let listed_bytes: u64 = listed.iter().map(|leak| leak.size).sum();
    let left = blocks.saturating_sub(listed.len() as u64);
    if left > 0 {
        log::log(Level::Warning, || {
            text!(
                "live in pool {pool} ({backend}): {left} smaller blocks of {} bytes in all",
                bytes.saturating_sub(listed_bytes)
            )
        });
    }
}

/// Tells of the blocks that are live in any pool of the C interface as the process ends.
pub fn list_at_exit() {
    let (mut pools, mut blocks, mut bytes) = (0u64, 0, 0);
    for pool in registry::pools() {
        if let Some(leaks) = pool.leaks_at_exit().filter(|leaks| leaks.blocks > 0) {
            tell_leaks(&leaks);
            pools += 1;
            blocks += leaks.blocks;
            bytes += leaks.bytes;
        }
    }
    if blocks > 0 {
        log::log(Level::Warning, || {
            text!("{blocks} blocks of {bytes} bytes in all are live at exit, in {pools} pools")
        });
    }
}
