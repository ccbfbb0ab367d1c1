//! The host's own allocator fails at the n-th allocation, for every n of a program: a call succeeds
//! or says that the host has no memory, and nothing panics, ends the process, or is half done.

#![cfg(not(miri))]

#[path = "support/counting.rs"]
#[allow(dead_code)]
mod counting;

use luma::backend::{Backend, BackendError, BackendResult, Memory, Pages};
use luma::{Pool, PoolConfig, Preset, Status};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

#[global_allocator]
static ALLOCATOR: counting::Counting = counting::Counting;

const MIB: u64 = 1 << 20;
const CAPACITY: u64 = 64 * MIB;

/// A device that asks the host for nothing, so that only the pool does.
#[derive(Debug)]
struct Plain {
    paged: bool,
    next: AtomicU64,
    used: AtomicU64,
}

impl Plain {
    fn take(&self, bytes: u64) -> BackendResult<()> {
        let taken = self
            .used
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |used| {
                used.checked_add(bytes).filter(|&sum| sum <= CAPACITY)
            });
        taken.map(|_| ()).map_err(|_| BackendError::OutOfMemory)
    }

    fn put(&self, bytes: u64) {
        self.used.fetch_sub(bytes, Ordering::Relaxed);
    }

    fn addresses(&self, bytes: u64) -> u64 {
        self.next
            .fetch_add(bytes.next_multiple_of(2 * MIB) + 2 * MIB, Ordering::Relaxed)
    }
}

impl Backend for Plain {
    fn name(&self) -> &'static str {
        "plain"
    }
    fn is_host_accessible(&self) -> bool {
        false
    }
    fn memory(&self) -> BackendResult<Option<Memory>> {
        Ok(Some(Memory {
            free: CAPACITY - self.used.load(Ordering::Relaxed),
            total: CAPACITY,
        }))
    }
    fn segment_align(&self) -> u64 {
        2 * MIB
    }
    fn allocate(&self, bytes: u64) -> BackendResult<u64> {
        self.take(bytes)?;
        Ok(self.addresses(bytes))
    }
    fn release(&self, _: u64, bytes: u64) -> BackendResult<()> {
        self.put(bytes);
        Ok(())
    }
    fn pages(&self) -> Option<Pages> {
        self.paged.then_some(Pages::of(2 * MIB))
    }
    fn reserve(&self, least: u64) -> BackendResult<(u64, u64)> {
        let span = least.max(4 * CAPACITY).next_multiple_of(2 * MIB);
        Ok((self.addresses(span), span))
    }
    fn unreserve(&self, _: u64, _: u64, mapped: u64) -> BackendResult<()> {
        self.put(mapped);
        Ok(())
    }
    fn map(&self, _: u64, bytes: u64) -> BackendResult<()> {
        self.take(bytes)
    }
    fn unmap(&self, _: u64, bytes: u64) -> BackendResult<()> {
        self.put(bytes);
        Ok(())
    }
}

#[derive(Clone, Copy, Debug)]
enum Call {
    Alloc(u64, u64),
    /// Frees the block of a place in the list of those that are live.
    Free(usize),
    BadFree(u64),
    EmptyCache,
    SetLimit(u64),
}

/// Reaches growth, giving back, pages of other ranges, refusals and their messages.
const PROGRAM: &[Call] = &[
    Call::Alloc(100, 0),
    Call::Alloc(20 * MIB, 0),
    Call::Alloc(300, 4096),
    Call::Alloc(20 * MIB, 0),
    Call::Alloc(700, 4 * MIB),
    Call::BadFree(0x10),
    Call::Free(1),
    Call::Free(1),
    Call::Alloc(35 * MIB, 0),
    Call::Alloc(60 * MIB, 0),
    Call::Free(0),
    Call::EmptyCache,
    Call::SetLimit(48 * MIB),
    Call::Alloc(1000, 0),
    Call::SetLimit(MIB),
    Call::SetLimit(0),
];

fn make(pool: &Pool, live: &mut Vec<u64>, call: Call) -> Result<(), Status> {
    let result = match call {
        Call::Alloc(bytes, align) => pool.allocate(bytes, align).map(|addr| live.extend(addr)),
        Call::Free(place) => {
            let place = place % live.len();
            // A free needs no memory, so it cannot fail.
            let freed = pool.free(live[place]);
            live.swap_remove(place);
            freed
        }
        Call::BadFree(addr) => pool.free(addr),
        Call::EmptyCache => pool.empty_cache().map(|_| ()),
        Call::SetLimit(bytes) => pool.set_limit(bytes),
    };
    result.map_err(|error| error.status())
}

/// Runs the program, with the `n`-th allocation failing that the call at `failing` makes. Gives
/// how each call ended, and whether there was such an allocation.
fn run(preset: Preset, paged: bool, failing: usize, n: u64) -> (Vec<Result<(), Status>>, bool) {
    let device = Arc::new(Plain {
        paged,
        next: AtomicU64::new(1 << 32),
        used: AtomicU64::new(0),
    });
    let config = PoolConfig {
        preset,
        ..PoolConfig::default()
    };
    let pool = Pool::with_backend(device.clone(), &config).expect("a pool");
    let mut live = Vec::with_capacity(PROGRAM.len());
    let mut results = Vec::with_capacity(PROGRAM.len());
    let mut failed = false;
    for (at, &call) in PROGRAM.iter().enumerate() {
        if at == failing {
            counting::fail_in(n);
        }
        let mut result = make(&pool, &mut live, call);
        if at == failing {
            failed = counting::stop_failing();
        }
        let checked = pool.check();
        assert_eq!(checked, Ok(()), "{preset:?}, {paged}, {call:?}, {n}");
        if at == failing && failed && result == Err(Status::OutOfMemory) {
            result = make(&pool, &mut live, call);
        }
        results.push(result);
    }
    for addr in live {
        pool.free(addr).expect("a live block");
    }
    pool.set_limit(0).expect("no limit");
    // An empty cache gives back what an earlier one could not.
    pool.empty_cache().expect("an open pool");
    let stats = pool.stats().expect("an open pool");
    assert_eq!((stats.reserved_bytes, stats.live_blocks), (0, 0));
    assert_eq!(stats.backend_allocations, stats.backend_releases);
    assert_eq!(device.used.load(Ordering::Relaxed), 0);
    (results, failed)
}

fn fail_every_allocation(preset: Preset) {
    for paged in [true, false] {
        let (expected, _) = run(preset, paged, usize::MAX, 0);
        let mut failures = 0;
        for (at, call) in PROGRAM.iter().enumerate() {
            for n in 1.. {
                let (results, failed) = run(preset, paged, at, n);
                assert_eq!(results, expected, "{preset:?}, {paged}, {call:?}, {n}");
                if !failed {
                    break;
                }
                failures += 1;
            }
        }
        assert!(failures > 0, "the program never asks the host for memory");
    }
}

#[test]
fn the_default_preset_survives_every_failed_allocation() {
    fail_every_allocation(Preset::Default);
}

#[test]
fn the_xla_preset_survives_every_failed_allocation() {
    fail_every_allocation(Preset::Xla);
}

#[test]
fn the_luma_0_3_preset_survives_every_failed_allocation() {
    fail_every_allocation(Preset::Luma03);
}
