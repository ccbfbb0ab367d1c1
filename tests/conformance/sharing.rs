//! The cache, the figures, and threads.

use crate::blocks::{fill, holds};
use crate::fixture::{Case, KIB, MIB};

pub fn an_empty_cache_holds_nothing(case: &Case) {
    let at = case.pool(256 * MIB, 0);
    assert_eq!(at.empty_cache(), 0);
    let blocks: Vec<_> = (1..20).map(|step| at.alloc(step * 300 * KIB)).collect();
    let reserved = at.used();
    assert!(reserved > 0);
    blocks.into_iter().for_each(|addr| at.free(addr));
    assert_eq!(at.used(), reserved, "a free gives nothing back");
    assert_eq!(at.empty_cache(), reserved);
    let stats = at.stats();
    assert_eq!((at.used(), stats.reserved_bytes, stats.segments), (0, 0, 0));
    assert_eq!((stats.free_blocks, stats.largest_free_block), (0, 0));
    assert_eq!(stats.backend_allocations, stats.backend_releases);
    assert_eq!(at.empty_cache(), 0);
}

pub fn calls_balance(case: &Case) {
    let at = case.pool(64 * MIB, 0);
    let sizes = [1, 700, 4 * KIB, 768, MIB];
    let blocks: Vec<_> = sizes.iter().map(|&bytes| at.alloc(bytes)).collect();
    let stats = at.stats();
    assert_eq!(
        (stats.alloc_calls, stats.free_calls, stats.live_blocks),
        (5, 0, 5)
    );
    assert_eq!(stats.requested_bytes, sizes.iter().sum::<u64>());
    let usable = blocks
        .iter()
        .map(|&addr| at.pool.usable_size(addr).expect("live"));
    assert_eq!(stats.allocated_bytes, usable.sum::<u64>());
    blocks.into_iter().for_each(|addr| at.free(addr));
    let stats = at.stats();
    assert_eq!(
        (stats.alloc_calls, stats.free_calls, stats.live_blocks),
        (5, 5, 0)
    );
    assert_eq!((stats.allocated_bytes, stats.requested_bytes), (0, 0));
    assert_eq!((stats.out_of_memory_count, stats.pending_bytes), (0, 0));
    assert!(
        stats.free_blocks <= stats.segments,
        "a segment with nothing live is one free block"
    );
}

pub fn peaks_follow(case: &Case) {
    let at = case.pool(64 * MIB, 0);
    let (one, other) = (at.alloc(6 * MIB), at.alloc(3 * MIB));
    let high = at.stats();
    assert_eq!(high.peak_bytes, high.allocated_bytes);
    assert_eq!(high.peak_reserved_bytes, high.reserved_bytes);
    at.free(one);
    at.empty_cache();
    let low = at.stats();
    assert_eq!(low.peak_bytes, high.allocated_bytes);
    assert_eq!(low.peak_reserved_bytes, high.reserved_bytes);
    at.pool.reset_peak().expect("an open pool");
    let reset = at.stats();
    assert_eq!(reset.peak_bytes, low.allocated_bytes);
    assert_eq!(reset.peak_reserved_bytes, low.reserved_bytes);
    at.free(other);
    assert_eq!(at.stats().peak_bytes, low.allocated_bytes);
}

/// Sizes that follow from a seed.
fn next(state: &mut u64) -> u64 {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    *state
}

pub fn threads_keep_their_contents(case: &Case) {
    const THREADS: u64 = 4;
    const CALLS: u64 = 600;
    let at = case.pool(256 * MIB, 0);
    let at = &at;
    std::thread::scope(|scope| {
        for thread in 1..=THREADS {
            scope.spawn(move || {
                let mut state = thread * 0x9E37_79B9;
                let mut live: Vec<(u64, u64, u8)> = Vec::new();
                for call in 0..CALLS {
                    let bytes = 1 + next(&mut state) % (256 << (next(&mut state) % 10));
                    let addr = at.alloc_aligned(bytes, 256 << (next(&mut state) % 5));
                    // No two threads write the same values at the same time.
                    let value = (call % 60 * THREADS + thread) as u8;
                    if case.is_writable() {
                        fill(case, addr, bytes, value);
                    }
                    live.push((addr, bytes, value));
                    if live.len() > 40 || next(&mut state) % 2 == 0 {
                        let place = next(&mut state) as usize % live.len();
                        let (addr, bytes, value) = live.swap_remove(place);
                        assert!(!case.is_writable() || holds(case, addr, bytes, value));
                        at.free(addr);
                    }
                    if call % 100 == 99 {
                        at.empty_cache();
                        at.pool.check().expect("no broken invariant");
                    }
                }
                for (addr, bytes, value) in live {
                    assert!(!case.is_writable() || holds(case, addr, bytes, value));
                    at.free(addr);
                }
            });
        }
    });
    let stats = at.stats();
    assert_eq!(stats.alloc_calls, THREADS * CALLS);
    assert_eq!(stats.free_calls, THREADS * CALLS);
    assert_eq!((stats.allocated_bytes, stats.live_blocks), (0, 0));
    at.check();
    at.empty_cache();
    assert_eq!(at.used(), 0);
}
