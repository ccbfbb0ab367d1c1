//! How many blocks of a kernel a multiprocessor holds at once.

use crate::attribute;
use crate::module::{Limits, REGISTERS};

// Numbers of `CUdevice_attribute`.
const WARP: u32 = 10;
const MULTIPROCESSORS: u32 = 16;
const MOST_THREADS: u32 = 39;
const SHARED: u32 = 81;
const REGISTERS_THERE: u32 = 82;
const MOST_BLOCKS: u32 = 106;
const RESERVED_SHARED: u32 = 111;

/// A kernel on a device.
#[derive(Clone, Copy, Debug)]
pub struct Occupancy {
    pub device: usize,
    pub limits: Limits,
}

impl Occupancy {
    fn known(&self, which: u32) -> u64 {
        u64::try_from(attribute::known(which, self.device)).unwrap_or(0)
    }

    /// How many multiprocessors there are.
    pub fn multiprocessors(&self) -> u64 {
        self.known(MULTIPROCESSORS)
    }

    /// How many blocks of so many threads and bytes of dynamic shared memory run on a multiprocessor
    /// at once; none if a block is too large.
    pub fn blocks(&self, threads: u64, dynamic_shared: u64) -> u64 {
        let most_shared = self.limits.dynamic_shared.max(0) as u64;
        if threads == 0 || threads > self.limits.threads as u64 || dynamic_shared > most_shared {
            return 0;
        }
        let threads = threads.next_multiple_of(self.known(WARP));
        let by_threads = self.known(MOST_THREADS) / threads;
        let by_registers = self.known(REGISTERS_THERE) / (threads * REGISTERS as u64);
        let by_shared = self.known(SHARED) / self.shared(dynamic_shared).max(1);
        self.known(MOST_BLOCKS)
            .min(by_threads)
            .min(by_registers)
            .min(by_shared)
    }

    /// Shared memory that a block takes.
    fn shared(&self, dynamic_shared: u64) -> u64 {
        dynamic_shared + self.limits.static_shared as u64 + self.known(RESERVED_SHARED)
    }

    /// Bytes of dynamic shared memory with which so many blocks fit on a multiprocessor; `None`: they do
    /// not fit without any.
    pub fn available_shared(&self, blocks: u64, threads: u64) -> Option<u64> {
        if blocks == 0 || self.blocks(threads, 0) < blocks {
            return None;
        }
        let each = self.known(SHARED) / blocks;
        let most = self.limits.dynamic_shared.max(0) as u64;
        Some(each.saturating_sub(self.shared(0)).min(most))
    }

    /// The fewest threads of a block that keep most threads busy, up to a limit (0: none), and how many
    /// blocks then fill the device. `shared` gives the dynamic shared memory of a block.
    pub fn best(&self, limit: u64, mut shared: impl FnMut(u64) -> u64) -> (u64, u64) {
        let most = self.limits.threads as u64;
        let most = if limit == 0 { most } else { most.min(limit) };
        let warp = self.known(WARP);
        let (mut best, mut best_threads, mut best_blocks) = (0, 0, 0);
        let mut threads = most;
        while threads > 0 {
            let blocks = self.blocks(threads, shared(threads));
            if blocks * threads > best {
                (best, best_threads, best_blocks) = (blocks * threads, threads, blocks);
            }
            threads = (threads - 1) / warp * warp;
        }
        (best_threads, best_blocks * self.multiprocessors())
    }
}
