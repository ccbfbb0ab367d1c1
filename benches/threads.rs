//! How the rate of allocations and frees grows with threads, on the host backend through the C
//! interface.
//!
//! `cargo bench --bench threads [-- WORD...]` prints a table; with words, only rows whose name holds one
//! of them. `luma` is the default pool by `luma_alloc` and `luma_free`. `one lock` is a pool that was kept
//! from having thread caches, so that each call takes its lock: what luma does while one thread
//! allocates, and what PyTorch's and XLA's allocators do always. Rates are pairs of an allocation and a
//! free, of all threads together; medians over rounds in which everything is timed in turn, and so are
//! the ratios, each to one thread of the same round. One thread is that of `one lock`, or, in the last
//! column, one with a cache.

use luma::ffi::{
    luma_alloc, luma_free, luma_pool_alloc, luma_pool_free, luma_pool_t, luma_status_t,
};
use luma::pool::{defaults, registry};
use luma::{BackendKind, PoolConfig};
use std::ffi::c_void;
use std::hint::black_box;
use std::sync::{Barrier, Mutex};
use std::time::Instant;

const ROUNDS: usize = 15;
const PAIRS: usize = 200_000;
const THREADS: [usize; 4] = [1, 2, 4, 8];

/// Where blocks come from.
#[derive(Clone, Copy)]
enum Source {
    Default,
    Pool(usize),
}

impl Source {
    #[inline]
    fn alloc(self, bytes: usize) -> usize {
        let block = match self {
            Self::Default => luma_alloc(bytes),
            Self::Pool(pool) => {
                luma_pool_alloc(pool as *mut luma_pool_t, bytes, 0, std::ptr::null_mut())
            }
        };
        assert!(!block.is_null());
        block as usize
    }

    #[inline]
    fn free(self, block: usize) {
        let block = block as *mut c_void;
        let status = match self {
            Self::Default => luma_free(block),
            Self::Pool(pool) => {
                luma_pool_free(pool as *mut luma_pool_t, block, std::ptr::null_mut())
            }
        };
        assert_eq!(status, luma_status_t::LUMA_SUCCESS);
    }
}

/// xorshift64* (Vigna 2014).
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 33) as usize % bound
    }
}

#[derive(Clone, Copy)]
enum Workload {
    /// One block of a size after the other.
    Pairs { bytes: usize },
    /// So many live blocks a thread, of which one at random goes and another one comes; `sizes` sizes.
    Live {
        blocks: usize,
        sizes: usize,
        step: usize,
    },
    /// Blocks that the next thread frees, by stacks of so many.
    Handed { stack: usize },
}

/// What one thread does. `desks`: one for each thread, where the thread before it puts blocks.
fn work(source: Source, workload: Workload, thread: usize, desks: &[Mutex<Vec<usize>>]) {
    let mut random = Random(0x9E37_79B9 + thread as u64);
    match workload {
        Workload::Pairs { bytes } => {
            for _ in 0..PAIRS {
                source.free(black_box(source.alloc(bytes)));
            }
        }
        Workload::Live {
            blocks,
            sizes,
            step,
        } => {
            let size = |random: &mut Random| step * (1 + random.below(sizes));
            let mut live: Vec<usize> = (0..blocks)
                .map(|_| source.alloc(size(&mut random)))
                .collect();
            for _ in 0..PAIRS - blocks {
                let at = random.below(blocks);
                source.free(live[at]);
                live[at] = source.alloc(size(&mut random));
            }
            for block in live {
                source.free(block);
            }
        }
        Workload::Handed { stack } => {
            let mut out = Vec::with_capacity(stack);
            let mut taken = Vec::new();
            let next = &desks[(thread + 1) % desks.len()];
            for _ in 0..PAIRS / stack {
                out.extend((0..stack).map(|at| source.alloc(4096 * (1 + at % 8))));
                let mut desk = next.lock().expect("no panic");
                if desk.len() < 16 * stack {
                    desk.append(&mut out);
                }
                drop(desk);
                // The next thread does not run: its desk is full.
                out.drain(..).for_each(|block| source.free(block));
                taken.append(&mut desks[thread].lock().expect("no panic"));
                for block in taken.drain(..) {
                    source.free(block);
                }
            }
        }
    }
}

/// Million pairs a second of all threads together.
fn rate(source: Source, workload: Workload, threads: usize) -> f64 {
    let desks: Vec<_> = (0..threads).map(|_| Mutex::default()).collect();
    let barrier = Barrier::new(threads + 1);
    let seconds = std::thread::scope(|scope| {
        for thread in 0..threads {
            let (desks, barrier) = (&desks, &barrier);
            scope.spawn(move || {
                barrier.wait();
                work(source, workload, thread, desks);
                barrier.wait();
            });
        }
        barrier.wait();
        let start = Instant::now();
        barrier.wait();
        start.elapsed().as_secs_f64()
    });
    for block in desks
        .into_iter()
        .flat_map(|desk| desk.into_inner())
        .flatten()
    {
        source.free(block);
    }
    (threads * PAIRS) as f64 / seconds / 1e6
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    values[values.len() / 2]
}

fn main() {
    let words: Vec<String> = std::env::args()
        .skip(1)
        .filter(|word| !word.starts_with('-'))
        .collect();
    let host = PoolConfig {
        backend: BackendKind::Host,
        ..PoolConfig::default()
    };
    defaults::init(&host).expect("host memory");
    let pool = registry::create(&host).expect("host memory");
    let one_lock = registry::pool(pool).expect("a pool");
    one_lock.stop_thread_caches().expect("an open pool");
    let default = defaults::current().expect("a default pool").pool();
    default.start_thread_caches().expect("host memory");
    let live = |blocks, sizes, step| Workload::Live {
        blocks,
        sizes,
        step,
    };
    let workloads = [
        ("pairs of 4 KiB", Workload::Pairs { bytes: 4096 }),
        ("pairs of 1 MiB", Workload::Pairs { bytes: 1 << 20 }),
        ("32 live, 8 sizes", live(32, 8, 4096)),
        ("200 live, 32 sizes", live(200, 32, 2048)),
        ("1000 live, 256 sizes", live(1000, 256, 256)),
        ("handed on by 64", Workload::Handed { stack: 64 }),
    ];
    println!(
        "million pairs a second, medians of {ROUNDS} rounds; (ratio to one thread without caches)"
    );
    print!("{:<22}", "workload");
    for source in ["one lock", "luma"] {
        for threads in THREADS {
            print!(" {:>14}", format!("{source} {threads}"));
        }
    }
    println!(" {:>14}", "luma 2 to 1");
    for (name, workload) in workloads {
        if !words.is_empty() && !words.iter().any(|word| name.contains(word.as_str())) {
            continue;
        }
        let subjects: Vec<(Source, usize)> = [Source::Pool(pool), Source::Default]
            .into_iter()
            .flat_map(|source| THREADS.map(|threads| (source, threads)))
            .collect();
        let mut rates = vec![Vec::new(); subjects.len()];
        for round in 0..=ROUNDS {
            for (at, &(source, threads)) in subjects.iter().enumerate() {
                let rate = rate(source, workload, threads);
                // The first round makes the pools as large as they get.
                if round > 0 {
                    rates[at].push(rate);
                }
            }
        }
        let ratio = |over: &[f64], under: &[f64]| {
            median(over.iter().zip(under).map(|(a, b)| a / b).collect())
        };
        print!("{name:<22}");
        for own in &rates {
            let shown = format!("{:.1} ({:.2})", median(own.clone()), ratio(own, &rates[0]));
            print!(" {shown:>14}");
        }
        let with_cache = THREADS.len();
        println!(
            " {:>14.2}",
            ratio(&rates[with_cache + 1], &rates[with_cache])
        );
    }
    default.check().expect("whole");
    let stats = default.stats().expect("an open pool");
    assert_eq!((stats.live_blocks, stats.allocated_bytes), (0, 0));
}
