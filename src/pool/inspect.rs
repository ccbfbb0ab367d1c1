#![forbid(unsafe_code)]
//! What a pool says of itself.

use super::{Open, Pool, caches};
use crate::alloc::Located;
use crate::backend::Memory;
use crate::error::{Error, Result, Status};
use crate::stats::{BackendTime, Stats};
use crate::text::text;

/// What a pool holds and may hold. In bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Room {
    /// Obtained from the backend and not given back.
    pub reserved: u64,
    /// In live blocks.
    pub allocated: u64,
    /// The most that may be reserved; `None`: no limit.
    pub limit: Option<u64>,
}

/// What a pool says of itself when it is not waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Snapshot {
    /// The name of its backend.
    pub backend: &'static str,
    /// Its figures.
    pub stats: Stats,
    /// What the backend's calls took.
    pub time: BackendTime,
}

impl Pool {
    /// The bytes of the live block that begins at `addr`; `None` if none does.
    pub fn usable_size(&self, addr: u64) -> Option<u64> {
        self.lock().ok()?.block_at(addr).map(|block| block.size)
    }

    /// Whether the pool takes calls.
    pub(crate) fn is_open(&self) -> bool {
        self.lock().is_ok()
    }

    /// What lies at `addr`.
    pub fn locate(&self, addr: u64) -> Located {
        self.lock()
            .map_or(Located::Foreign, |guard| guard.locate(addr))
    }

    /// Where `addr` lies in the pool's memory, when the pool last got a region: the larger the later.
    pub(super) fn claim(&self, addr: u64) -> Option<u64> {
        let guard = self.lock().ok()?;
        (guard.engine.locate(addr) != Located::Foreign).then_some(guard.grown)
    }

    /// The figures at this moment. Blocks whose work has ended are taken in first.
    pub fn stats(&self) -> Result<Stats> {
        let (guard, _) = self.collect(self.lock()?)?;
        Ok(guard.figures(&guard.cached()))
    }

    /// As [`Pool::stats`] with what the backend's calls took, without a wait and without a call of the
    /// backend: for a process that ends. `None`: a call is in progress, in another thread or in one that a
    /// signal has interrupted, or the pool takes no calls.
    pub fn peek(&self) -> Option<Snapshot> {
        let state = self.state.try_lock().ok()?;
        let open = state.as_ref()?;
        let cached = open.try_cached()?;
        Some(Snapshot {
            backend: open.backend.name(),
            stats: open.figures(&cached),
            time: open.calls.backend,
        })
    }

    /// What the pool holds and may hold, without asking anybody.
    pub fn room(&self) -> Result<Room> {
        let guard = self.lock()?;
        let (usage, cached) = (guard.engine.usage(), guard.cached());
        Ok(Room {
            reserved: usage.reserved,
            allocated: usage.allocated - cached.room,
            limit: (guard.limit != u64::MAX).then_some(guard.limit),
        })
    }

    /// Begins both peaks anew at what is held now.
    pub fn reset_peak(&self) -> Result<()> {
        self.lock()?.reset_peak();
        Ok(())
    }

    /// Host bytes that book-keeping takes.
    pub fn footprint(&self) -> Result<usize> {
        Ok(self.lock()?.footprint())
    }

    /// Live blocks in the order of addresses: address, size, bytes asked for.
    pub fn live_blocks(&self) -> Result<Vec<(u64, u64, u64)>> {
        Ok(self.lock()?.live_blocks())
    }

    /// Whether the host may read and write the pool's memory.
    pub fn is_host_accessible(&self) -> Result<bool> {
        Ok(self.lock()?.backend.is_host_accessible())
    }

    /// The name of the pool's backend.
    pub fn backend_name(&self) -> Result<&'static str> {
        Ok(self.lock()?.backend.name())
    }

    /// The device's memory: what this pool may still take from it, and all of it. Where the backend
    /// does not say, the limit counts as all.
    ///
    /// # Errors
    /// `Unsupported`: neither is known.
    pub fn memory(&self) -> Result<Memory> {
        let guard = self.lock()?;
        let backend = guard.backend.clone();
        let (limit, held) = (guard.limit, guard.engine.usage().reserved);
        drop(guard);
        let left = limit.saturating_sub(held);
        match backend.memory() {
            Ok(Some(memory)) => Ok(Memory {
                free: memory.free.min(left),
                total: memory.total,
            }),
            Ok(None) if limit != u64::MAX => Ok(Memory {
                free: left,
                total: limit,
            }),
            Ok(None) => Err(Error::new(
                Status::Unsupported,
                text!(
                    "the {} backend does not say how much memory it has, and the pool has no limit",
                    backend.name()
                ),
            )),
            Err(error) => Err(Error::new(error.status(), text!("{error}"))),
        }
    }
}

impl Open {
    /// The figures at this moment, with what thread caches add up to.
    fn figures(&self, cached: &caches::Sums) -> Stats {
        let (usage, calls) = (self.engine.usage(), &self.calls);
        Stats {
            allocated_bytes: usage.allocated - cached.room,
            reserved_bytes: usage.reserved,
            peak_bytes: usage.peak_allocated,
            live_blocks: usage.live - cached.blocks,
            free_blocks: self.engine.free_blocks() as u64 + cached.blocks,
            segments: self.engine.segments() as u64,
            backend_allocations: calls.backend_allocations,
            backend_releases: calls.backend_releases,
            requested_bytes: usage.requested + cached.requested,
            peak_reserved_bytes: usage.peak_reserved,
            largest_free_block: self.engine.largest_settled().max(cached.largest),
            memory_limit: if self.limit == u64::MAX {
                0
            } else {
                self.limit
            },
            alloc_calls: calls.allocations + cached.allocations,
            free_calls: calls.frees + cached.frees,
            alloc_retries: calls.retries,
            out_of_memory_count: calls.out_of_memory,
            pending_bytes: self.engine.pending_bytes() + self.quarantined(),
            event_records: calls.event_records,
            event_queries: calls.event_queries,
            stream_waits: calls.stream_waits,
            oom_waits: calls.oom_waits,
            oom_wait_ns: calls.oom_wait_ns,
            handler_calls: calls.handlers,
        }
    }

    /// Bytes in quarantine. In a pool that is separate there are none.
    fn quarantined(&self) -> u64 {
        let checked = self.checked.as_ref();
        checked.map_or(0, |checked| checked.quarantined())
    }

    /// Why `addr` cannot be freed.
    #[cold]
    pub(super) fn describe_bad_free(&self, addr: u64) -> Error {
        let message = match self.locate(addr) {
            Located::Foreign => text!("{addr:#x} is not from this pool"),
            Located::Free => {
                let checked = self.checked.as_ref();
                checked
                    .and_then(|checked| checked.describe(addr, self.calls.allocations))
                    .unwrap_or_else(|| caches::free_already_message(addr))
            }
            Located::Start { block } | Located::Inside { block } => text!(
                "{addr:#x} is {} bytes inside the block of {} bytes at {:#x}; only that address frees it",
                addr - block.addr,
                block.size,
                block.addr
            ),
        };
        Error::new(Status::InvalidPointer, message)
    }
}

#[cfg(test)]
mod tests {
    use crate::backend::simulated::SimulatedBackend;
    use crate::pool::{Pool, PoolConfig};
    use std::sync::Arc;

    fn pool() -> Pool {
        let device = Arc::new(SimulatedBackend::new(256 << 20));
        Pool::with_backend(device, &PoolConfig::default()).unwrap()
    }

    #[test]
    fn a_peek_gives_the_figures_and_waits_for_nobody() {
        let pool = pool();
        let block = pool.allocate(1000, 0).unwrap().unwrap();
        pool.start_thread_caches().unwrap();
        for _ in 0..100 {
            let cached = pool.allocate(4096, 0).unwrap().unwrap();
            pool.free(cached).unwrap();
        }
        let peek = pool.peek().unwrap();
        assert_eq!(peek.stats, pool.stats().unwrap());
        assert_eq!((peek.stats.alloc_calls, peek.stats.live_blocks), (101, 1));
        assert_eq!(peek.backend, "simulated");

        let guard = pool.lock().unwrap();
        assert_eq!(pool.peek(), None);
        let caches = guard.caches.clone().unwrap();
        let locked = caches.lock_all();
        drop(guard);
        assert_eq!(pool.peek(), None);
        drop(locked);
        assert!(pool.peek().is_some());

        pool.free(block).unwrap();
        pool.close().unwrap();
        assert_eq!(pool.peek(), None);
    }

    #[test]
    fn calls_of_the_backend_are_timed_where_they_moved_memory() {
        let pool = pool();
        let time = || pool.peek().unwrap().time;
        assert_eq!(time(), Default::default());
        let block = pool.allocate(8 << 20, 0).unwrap().unwrap();
        let grown = time();
        assert!(grown.grants > 0 && grown.returns == 0, "{grown:?}");
        assert!(pool.allocate(1 << 40, 0).is_err());
        assert_eq!(time().grants, grown.grants);
        pool.free(block).unwrap();
        pool.empty_cache().unwrap();
        let emptied = time();
        assert!(emptied.returns > 0, "{emptied:?}");
        assert_eq!(emptied.grants, grown.grants);
    }
}
