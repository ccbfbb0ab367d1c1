//! Book-keeping: no host memory is asked for in steady state, and what is held stays small.

#![cfg(not(miri))]

#[path = "support/counting.rs"]
#[allow(dead_code)]
mod counting;

use luma::backend::simulated::SimulatedBackend;
use luma::{Pool, PoolConfig, Preset};
use std::sync::Arc;

#[global_allocator]
static ALLOCATOR: counting::Counting = counting::Counting;

const PRESETS: [Preset; 3] = [Preset::Default, Preset::Xla, Preset::Luma03];
const CALLS: usize = 100_000;

fn pool(preset: Preset, paged: bool) -> Pool {
    let device = if paged {
        SimulatedBackend::new(1 << 44)
    } else {
        SimulatedBackend::without_pages(1 << 44)
    };
    let config = PoolConfig {
        preset,
        ..PoolConfig::default()
    };
    Pool::with_backend(Arc::new(device), &config).expect("a pool")
}

struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % bound
    }
}

/// Allocates and frees with up to 1,000 blocks live, then frees all. The same each time.
fn pass(pool: &Pool, live: &mut Vec<u64>, alignments: u64) {
    let mut random = Random(0x9E37_79B9_7F4A_7C15);
    for _ in 0..CALLS / 2 {
        let largest = 256 << random.below(12);
        let bytes = 1 + random.below(largest);
        let align = 256 << random.below(alignments);
        live.push(pool.allocate(bytes, align).expect("room").expect("bytes"));
        if live.len() == 1000 || random.below(2) == 0 {
            let place = random.below(live.len() as u64) as usize;
            pool.free(live.swap_remove(place)).expect("a live block");
        }
    }
    for addr in live.drain(..) {
        pool.free(addr).expect("a live block");
    }
}

fn no_allocation_in_steady_state(alignments: u64) {
    for preset in PRESETS {
        for paged in [true, false] {
            let pool = pool(preset, paged);
            let mut live = Vec::with_capacity(1000);
            // Until a pass needs the backend no more, and one more for the tables.
            let mut grown = u64::MAX;
            loop {
                pass(&pool, &mut live, alignments);
                let stats = pool.stats().expect("an open pool");
                let now = stats.backend_allocations + stats.peak_reserved_bytes;
                if now == grown {
                    break;
                }
                grown = now;
            }
            let before = counting::calls();
            pass(&pool, &mut live, alignments);
            let made = counting::calls() - before;
            assert_eq!(made, 0, "{preset:?}, paged {paged}: allocations");
        }
    }
}

#[test]
fn calls_ask_the_host_for_nothing() {
    no_allocation_in_steady_state(1);
}

#[test]
fn aligned_calls_ask_the_host_for_nothing() {
    no_allocation_in_steady_state(8);
}

#[test]
fn the_allocator_counts() {
    let (calls, held) = (counting::calls(), counting::held());
    let block = std::hint::black_box(Box::new([0_u8; 1000]));
    assert_eq!(counting::calls(), calls + 1);
    assert_eq!(counting::held(), held + 1000);
    drop(block);
    assert_eq!(counting::held(), held);
}

/// 96 bytes a block and 0.05 % of what is reserved.
fn allowed(pool: &Pool) -> u64 {
    let stats = pool.stats().expect("an open pool");
    96 * (stats.live_blocks + stats.free_blocks) + stats.reserved_bytes / 2000
}

fn book_keeping_is_small(blocks: u64) {
    for preset in PRESETS {
        let empty = counting::held();
        let pool = pool(preset, true);
        let fixed = counting::held() - empty;
        let mut random = Random(7);
        let mut live: Vec<u64> = Vec::with_capacity(blocks as usize);
        let own = (live.capacity() * size_of::<u64>()) as i64;
        for _ in 0..blocks {
            let bytes = 256 * (1 + random.below(16));
            live.push(pool.allocate(bytes, 0).expect("room").expect("bytes"));
        }
        let check = |state: &str| {
            let told = pool.footprint().expect("an open pool") as u64;
            // What the pool does not count: itself, its backend, a few regions.
            let real = counting::held() - empty - own;
            let allowed = allowed(&pool);
            assert!(told <= allowed, "{preset:?}, {state}: {told} of {allowed}");
            assert!(
                real - fixed <= allowed as i64,
                "{preset:?}, {state}: really {real} of {allowed}"
            );
        };
        check("all live");
        for place in (0..live.len()).step_by(2) {
            pool.free(live[place]).expect("a live block");
        }
        check("every second one free");
    }
}

#[test]
fn book_keeping_of_1_000_blocks_is_small() {
    book_keeping_is_small(1_000);
}

#[test]
fn book_keeping_of_100_000_blocks_is_small() {
    book_keeping_is_small(100_000);
}

#[test]
fn book_keeping_of_1_000_000_blocks_is_small() {
    book_keeping_is_small(1_000_000);
}
