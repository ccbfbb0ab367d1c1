//! Thread caches: whatever threads do, all figures are those of a pool without caches, and nothing fails
//! or grows because a block is in a cache.

use luma::backend::simulated::SimulatedBackend;
use luma::{BackendKind, Pool, PoolConfig, Preset, Status};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Barrier, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;

/// One test at a time: which cache a thread has depends on which other threads there are.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

fn pool_of(capacity: u64, paged: bool, preset: Preset) -> Arc<Pool> {
    let device = if paged {
        SimulatedBackend::new(capacity)
    } else {
        SimulatedBackend::without_pages(capacity)
    };
    let config = PoolConfig {
        preset,
        ..PoolConfig::default()
    };
    Arc::new(Pool::with_backend(Arc::new(device), &config).unwrap())
}

fn cached_pool(capacity: u64) -> Arc<Pool> {
    let pool = pool_of(capacity, true, Preset::Default);
    assert!(pool.start_thread_caches().unwrap());
    // Blocks that come with growth are adopted by no cache.
    let block = pool.allocate(MIB, 0).unwrap().unwrap();
    pool.free(block).unwrap();
    pool
}

type Job = Box<dyn FnOnce() + Send>;

/// A thread that does what it is told, one thing after the other.
struct Worker {
    jobs: Sender<Job>,
    thread: JoinHandle<()>,
}

impl Worker {
    fn new() -> Self {
        let (jobs, todo): (Sender<Job>, Receiver<Job>) = channel();
        let thread = std::thread::spawn(move || todo.into_iter().for_each(|job| job()));
        Self { jobs, thread }
    }

    /// Does something on that thread and waits for it.
    fn run<T: Send + 'static>(&self, job: impl FnOnce() -> T + Send + 'static) -> T {
        let (result, done) = channel();
        let job: Job = Box::new(move || result.send(job()).unwrap());
        self.jobs.send(job).unwrap();
        done.recv().unwrap()
    }

    fn alloc(&self, pool: &Arc<Pool>, bytes: u64) -> u64 {
        let pool = pool.clone();
        self.run(move || pool.allocate(bytes, 0).unwrap().unwrap())
    }

    fn free(&self, pool: &Arc<Pool>, addr: u64) -> Result<(), luma::Error> {
        let pool = pool.clone();
        self.run(move || pool.free(addr))
    }

    /// Ends the thread, to its last destructor.
    fn end(self) {
        drop(self.jobs);
        self.thread.join().unwrap();
    }
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

/// What a pool's figures should be.
#[derive(Default)]
struct Model {
    /// Size and bytes asked for by address.
    live: BTreeMap<u64, (u64, u64)>,
    allocated: u64,
    requested: u64,
    peak: u64,
    allocations: u64,
    frees: u64,
    refused: u64,
}

impl Model {
    fn add(&mut self, addr: u64, bytes: u64) {
        let size = bytes.next_multiple_of(256);
        let before = self.live.range(..addr + size).next_back();
        assert!(before.is_none_or(|(&start, &(size, _))| start + size <= addr));
        self.live.insert(addr, (size, bytes));
        self.allocated += size;
        self.requested += bytes;
        self.peak = self.peak.max(self.allocated);
    }

    fn remove(&mut self, addr: u64) {
        let (size, bytes) = self.live.remove(&addr).unwrap();
        self.allocated -= size;
        self.requested -= bytes;
        self.frees += 1;
    }

    fn nth(&self, n: u64) -> Option<u64> {
        let n = n as usize % self.live.len().max(1);
        self.live.keys().nth(n).copied()
    }

    fn agree(&self, pool: &Pool, what: &str) {
        let stats = pool.stats().unwrap();
        let told = [
            stats.allocated_bytes,
            stats.requested_bytes,
            stats.live_blocks,
            stats.peak_bytes,
            stats.alloc_calls,
            stats.free_calls,
            stats.out_of_memory_count,
        ];
        let expected = [
            self.allocated,
            self.requested,
            self.live.len() as u64,
            self.peak,
            self.allocations,
            self.frees,
            self.refused,
        ];
        assert_eq!(told, expected, "after {what}");
        assert!(stats.largest_free_block <= stats.reserved_bytes - stats.allocated_bytes);
        assert_eq!(
            stats.free_blocks > 0,
            stats.reserved_bytes > stats.allocated_bytes
        );
    }
}

/// Sizes that come again and again, and some that do not.
fn size(random: &mut Random) -> u64 {
    match random.below(8) {
        0 => 1 + random.below(3 * MIB),
        1 => 1 + random.below(256),
        2..5 => 4 * KIB * (1 + random.below(4)) - random.below(200),
        _ => 256 * KIB * (1 + random.below(4)),
    }
}

/// Threads take turns, and after every call all figures are compared with those of the model.
fn lockstep(seed: u64, paged: bool, steps: u64) {
    let pool = pool_of(48 * MIB, paged, Preset::Default);
    assert!(pool.start_thread_caches().unwrap());
    let mut workers: Vec<Worker> = (0..4).map(|_| Worker::new()).collect();
    let (mut random, mut model) = (Random(seed), Model::default());
    let (mut hits, mut freed) = (0, Vec::new());
    for step in 0..steps {
        let at = random.below(4) as usize;
        let before = pool.stats().unwrap();
        let cached = pool.thread_cached_bytes().unwrap();
        let what;
        match random.below(100) {
            0..48 => {
                let bytes = size(&mut random);
                let align = if random.below(10) == 0 { 4096 } else { 0 };
                what = format!("{step}: {at} allocates {bytes}");
                let worker_pool = pool.clone();
                let served = workers[at].run(move || worker_pool.allocate(bytes, align));
                model.allocations += 1;
                match served {
                    Ok(addr) => model.add(addr.unwrap(), bytes),
                    Err(error) => {
                        assert_eq!(error.status(), Status::OutOfMemory, "{what}");
                        model.refused += 1;
                        assert_eq!(pool.thread_cached_bytes().unwrap(), 0, "{what}");
                        let message = error.message().to_owned();
                        let in_use = format!("in {} blocks", model.live.len());
                        assert!(message.contains(&in_use), "{message}");
                    }
                }
                let after = pool.stats().unwrap();
                if after.reserved_bytes > before.reserved_bytes {
                    assert_eq!(pool.thread_cached_bytes().unwrap(), 0, "{what}: grew");
                }
                hits += u64::from(pool.thread_cached_bytes().unwrap() + bytes <= cached);
            }
            48..90 => {
                let Some(addr) = model.nth(random.below(1 << 20)) else {
                    continue;
                };
                what = format!("{step}: {at} frees {addr:#x}");
                workers[at].free(&pool, addr).unwrap();
                model.remove(addr);
                freed.push(addr);
            }
            90..94 => {
                let Some(&addr) = freed.get(random.below(1 << 20) as usize % freed.len().max(1))
                else {
                    continue;
                };
                what = format!("{step}: {at} frees {addr:#x} again");
                if model.live.contains_key(&addr) {
                    continue;
                }
                let error = workers[at].free(&pool, addr).unwrap_err();
                assert_eq!(error.status(), Status::InvalidPointer, "{what}");
                assert_eq!(pool.usable_size(addr), None, "{what}");
            }
            94 => {
                what = format!("{step}: list");
                let listed = pool.live_blocks().unwrap();
                let expected: Vec<_> = model.live.iter().map(|(&a, &(s, r))| (a, s, r)).collect();
                assert_eq!(listed, expected, "{what}");
            }
            95 => {
                what = format!("{step}: reset peak");
                pool.reset_peak().unwrap();
                model.peak = model.allocated;
            }
            96 => {
                what = format!("{step}: empty cache");
                pool.empty_cache().unwrap();
                assert_eq!(pool.thread_cached_bytes().unwrap(), 0);
            }
            97 => {
                what = format!("{step}: limit");
                let lowered = pool.set_limit(model.allocated + 8 * MIB);
                drop(lowered);
                pool.set_limit(0).unwrap();
            }
            98 => {
                what = format!("{step}: thread {at} ends, another one begins");
                std::mem::replace(&mut workers[at], Worker::new()).end();
            }
            _ => {
                what = format!("{step}: sizes");
                for (&addr, &(size, _)) in model.live.iter().take(20) {
                    assert_eq!(pool.usable_size(addr), Some(size), "{what}");
                }
            }
        }
        model.agree(&pool, &what);
        pool.check()
            .unwrap_or_else(|error| panic!("{what}: {error}"));
    }
    if steps > 1000 {
        assert!(hits > steps / 50, "caches served {hits} times");
        assert!(model.refused > 0, "nothing was ever refused");
    }
    for addr in model.live.keys().copied().collect::<Vec<_>>() {
        workers[0].free(&pool, addr).unwrap();
        model.remove(addr);
    }
    model.agree(&pool, "the end");
    pool.empty_cache().unwrap();
    let stats = pool.stats().unwrap();
    assert_eq!(stats.reserved_bytes, 0);
    assert_eq!(stats.backend_allocations, stats.backend_releases);
    workers.into_iter().for_each(Worker::end);
}

#[test]
fn every_figure_is_that_of_a_model() {
    let _alone = alone();
    let steps = if cfg!(miri) { 40 } else { 4000 };
    for seed in 1..=3 {
        lockstep(seed, true, steps);
        lockstep(seed, false, steps);
    }
}

#[test]
fn one_thread_has_no_cache_and_two_get_one() {
    let _alone = alone();
    let pool = pool_of(64 * MIB, true, Preset::Default);
    for _ in 0..1000 {
        let block = pool.allocate(4 * KIB, 0).unwrap().unwrap();
        pool.free(block).unwrap();
    }
    assert_eq!(pool.thread_cached_bytes().unwrap(), 0);
    // Until the threads have met often enough, which chance decides.
    let done = AtomicBool::new(false);
    let mut cached = 0;
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while !done.load(Ordering::Relaxed) {
                    let block = pool.allocate(4 * KIB, 0).unwrap().unwrap();
                    pool.free(block).unwrap();
                }
            });
        }
        let start = std::time::Instant::now();
        while cached == 0 && start.elapsed().as_secs() < 60 {
            cached = pool.thread_cached_bytes().unwrap();
            std::thread::yield_now();
        }
        done.store(true, Ordering::Relaxed);
    });
    assert!(cached > 0, "the threads never had caches");
    pool.check().unwrap();
}

#[test]
fn only_the_default_preset_has_caches() {
    let _alone = alone();
    for preset in [Preset::Xla, Preset::Luma03] {
        assert!(
            !pool_of(64 * MIB, true, preset)
                .start_thread_caches()
                .unwrap()
        );
    }
    let config = PoolConfig {
        min_split: Some(512),
        ..PoolConfig::default()
    };
    let pool = Pool::with_backend(Arc::new(SimulatedBackend::new(64 * MIB)), &config).unwrap();
    assert!(!pool.start_thread_caches().unwrap());
}

#[test]
fn stopped_caches_leave_nothing_behind() {
    let _alone = alone();
    let pool = cached_pool(64 * MIB);
    let worker = Worker::new();
    let blocks: Vec<u64> = (0..8).map(|_| worker.alloc(&pool, 1000)).collect();
    for &addr in &blocks[..4] {
        worker.free(&pool, addr).unwrap();
    }
    assert_eq!(pool.thread_cached_bytes().unwrap(), 4 * 1024);
    let before = pool.stats().unwrap();
    pool.stop_thread_caches().unwrap();
    pool.check().unwrap();
    let after = pool.stats().unwrap();
    assert_eq!(before.free_calls, after.free_calls);
    assert_eq!(before.alloc_calls, after.alloc_calls);
    assert_eq!(before.requested_bytes, after.requested_bytes);
    assert_eq!((after.live_blocks, after.requested_bytes), (4, 4000));
    assert!(!pool.start_thread_caches().unwrap());
    for &addr in &blocks[..4] {
        assert!(worker.free(&pool, addr).is_err());
    }
    for &addr in &blocks[4..] {
        worker.free(&pool, addr).unwrap();
    }
    assert_eq!(pool.thread_cached_bytes().unwrap(), 0);
    assert_eq!(pool.stats().unwrap().live_blocks, 0);
    worker.end();
}

#[test]
fn a_block_may_be_freed_by_any_thread_and_once() {
    let _alone = alone();
    let pool = cached_pool(64 * MIB);
    let (one, two) = (Worker::new(), Worker::new());
    let twice = |worker: &Worker, addr: u64| {
        let error = worker.free(&pool, addr).unwrap_err();
        assert_eq!(error.status(), Status::InvalidPointer);
        assert!(error.message().contains("free already"), "{error}");
    };
    for _ in 0..3 {
        // Freed by its own thread, then by both.
        let addr = one.alloc(&pool, 5000);
        one.free(&pool, addr).unwrap();
        twice(&one, addr);
        twice(&two, addr);
        // Freed by the other one, then by both. The second round goes by what the first one learnt.
        let addr = one.alloc(&pool, 5000);
        two.free(&pool, addr).unwrap();
        twice(&one, addr);
        twice(&two, addr);
        assert_eq!(one.alloc(&pool, 5000), addr, "it went back to its owner");
        // An address inside a block that is handed out, or cached.
        let inside = one.free(&pool, addr + 256).unwrap_err();
        assert!(inside.message().contains("256 bytes inside"), "{inside}");
        one.free(&pool, addr).unwrap();
        twice(&one, addr + 256);
    }
    let stats = pool.stats().unwrap();
    assert_eq!((stats.live_blocks, stats.free_calls), (0, 10));
    pool.check().unwrap();
    one.end();
    two.end();
}

#[test]
fn the_next_thread_inherits_a_cache() {
    let _alone = alone();
    let pool = cached_pool(64 * MIB);
    // The thread of an earlier test may end meanwhile, and its number go to the next thread.
    let mut inherited = 0;
    for _ in 0..200 {
        let first = Worker::new();
        let addr = first.alloc(&pool, 7000);
        first.free(&pool, addr).unwrap();
        first.end();
        assert!(pool.thread_cached_bytes().unwrap() >= 7168);
        let second = Worker::new();
        let next = second.alloc(&pool, 7000);
        inherited += u32::from(next == addr);
        second.end();
        // Its own thread is gone.
        pool.free(next).unwrap();
    }
    assert!(inherited > 190, "{inherited} of 200");
    pool.check().unwrap();
}

#[test]
fn more_threads_than_caches() {
    let _alone = alone();
    let pool = cached_pool(1 << 30);
    let start = Barrier::new(100);
    std::thread::scope(|scope| {
        for _ in 0..100 {
            scope.spawn(|| {
                start.wait();
                for round in 0..if cfg!(miri) { 3 } else { 300 } {
                    let blocks: Vec<u64> = (0..8)
                        .map(|at| pool.allocate(1000 * (1 + at), 0).unwrap().unwrap())
                        .collect();
                    for addr in blocks {
                        pool.free(addr).unwrap();
                    }
                    if round % 100 == 0 {
                        pool.check().unwrap();
                    }
                }
                start.wait();
            });
        }
    });
    pool.check().unwrap();
    let stats = pool.stats().unwrap();
    assert_eq!((stats.live_blocks, stats.allocated_bytes), (0, 0));
    assert_eq!(stats.alloc_calls, stats.free_calls);
    pool.empty_cache().unwrap();
    assert_eq!(pool.stats().unwrap().reserved_bytes, 0);
}

/// Fills a pool of 16 MiB with blocks in the caches of four threads.
fn all_in_caches(pool: &Arc<Pool>) -> Vec<Worker> {
    let workers: Vec<Worker> = (0..4).map(|_| Worker::new()).collect();
    let blocks: Vec<Vec<u64>> = workers
        .iter()
        .map(|worker| (0..64).map(|_| worker.alloc(pool, 64 * KIB)).collect())
        .collect();
    for (worker, blocks) in workers.iter().zip(blocks) {
        for addr in blocks {
            worker.free(pool, addr).unwrap();
        }
    }
    let stats = pool.stats().unwrap();
    assert_eq!((stats.allocated_bytes, stats.reserved_bytes), (0, 16 * MIB));
    // Those that came with growth are in no cache.
    assert!(pool.thread_cached_bytes().unwrap() > 12 * MIB);
    workers
}

#[test]
fn what_others_have_cached_serves_a_request() {
    let _alone = alone();
    for paged in [true, false] {
        let pool = pool_of(16 * MIB, paged, Preset::Default);
        pool.start_thread_caches().unwrap();
        let workers = all_in_caches(&pool);
        let before = pool.stats().unwrap();
        let whole = if paged { 16 * MIB } else { 2 * MIB };
        let block = pool.allocate(whole, 0).unwrap().unwrap();
        let after = pool.stats().unwrap();
        assert_eq!(before.backend_allocations, after.backend_allocations);
        assert_eq!((after.alloc_retries, after.peak_bytes), (0, 16 * MIB));
        pool.free(block).unwrap();
        pool.check().unwrap();
        workers.into_iter().for_each(Worker::end);
    }
}

#[test]
fn a_refusal_is_told_with_the_true_figures() {
    let _alone = alone();
    let pool = pool_of(16 * MIB, true, Preset::Default);
    pool.start_thread_caches().unwrap();
    let workers = all_in_caches(&pool);
    for bytes in [17 * MIB, u64::MAX] {
        let error = pool.allocate(bytes, 0).unwrap_err();
        assert_eq!(error.status(), Status::OutOfMemory);
        assert!(
            error.message().contains("allocated 0 bytes in 0 blocks"),
            "{error}"
        );
    }
    workers.into_iter().for_each(Worker::end);
}

#[test]
fn limits_and_emptying_count_cached_blocks_as_free() {
    let _alone = alone();
    let pool = pool_of(16 * MIB, true, Preset::Default);
    pool.start_thread_caches().unwrap();
    let workers = all_in_caches(&pool);
    pool.set_limit(2 * MIB).unwrap();
    assert!(pool.stats().unwrap().reserved_bytes <= 2 * MIB);
    pool.set_limit(0).unwrap();
    workers.into_iter().for_each(Worker::end);
    let workers = all_in_caches(&pool);
    assert!(pool.empty_cache().unwrap() > 0);
    assert_eq!(pool.stats().unwrap().reserved_bytes, 0);
    workers.into_iter().for_each(Worker::end);
}

#[test]
fn a_pool_ends_with_blocks_in_caches() {
    let _alone = alone();
    let device = Arc::new(SimulatedBackend::new(16 * MIB));
    let pool = Arc::new(Pool::with_backend(device.clone(), &PoolConfig::default()).unwrap());
    pool.start_thread_caches().unwrap();
    let workers = all_in_caches(&pool);
    let live = workers[1].alloc(&pool, 64 * KIB);
    assert_eq!(pool.close().unwrap(), 1);
    for worker in &workers {
        let pool = pool.clone();
        let refused = worker.run(move || pool.allocate(64 * KIB, 0)).unwrap_err();
        assert_eq!(refused.status(), Status::InvalidValue);
    }
    assert!(workers[1].free(&pool, live).is_err());
    assert_eq!((device.used(), device.grants()), (0, 0));
    assert_eq!(device.violations(), [""; 0]);
    workers.into_iter().for_each(Worker::end);
}

/// Threads with blocks of their own and blocks that others free, on real memory, while yet another one
/// looks at everything.
#[cfg(not(miri))]
#[test]
fn contents_stay_with_their_owners() {
    let _alone = alone();
    let pool = Pool::new(&PoolConfig {
        backend: BackendKind::Host,
        capacity: Some(256 << 20),
        ..PoolConfig::default()
    })
    .unwrap();
    assert!(pool.start_thread_caches().unwrap());
    let (done, served) = (AtomicBool::new(false), AtomicU64::new(0));
    let shared: Mutex<Vec<(u64, u64, u64)>> = Mutex::default();
    let mark = |(addr, bytes, mark): (u64, u64, u64)| {
        // SAFETY: the block is this thread's and has so many bytes, a multiple of 8.
        unsafe {
            (addr as *mut u64).write(mark);
            ((addr + bytes - 8) as *mut u64).write(mark);
        }
    };
    let check_and_free = |(addr, bytes, mark): (u64, u64, u64)| {
        // SAFETY: as above.
        let found = unsafe { [*(addr as *mut u64), *((addr + bytes - 8) as *mut u64)] };
        assert_eq!(found, [mark; 2]);
        pool.free(addr).unwrap();
    };
    std::thread::scope(|scope| {
        let looking = scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                let stats = pool.stats().unwrap();
                assert!(stats.allocated_bytes <= stats.peak_bytes);
                assert!(stats.requested_bytes <= stats.allocated_bytes);
                assert!(stats.free_calls <= stats.alloc_calls);
                // A request that waits for the backend is counted, and has no block yet.
                assert!(stats.alloc_calls - stats.free_calls >= stats.live_blocks);
                pool.check().unwrap();
                match stats.alloc_calls % 8 {
                    0 => drop(pool.live_blocks().unwrap()),
                    1 => drop(pool.empty_cache().unwrap()),
                    2 => pool.reset_peak().unwrap(),
                    _ => {}
                }
                std::thread::yield_now();
            }
        });
        let threads: Vec<_> = (1..=6u64)
            .map(|seed| {
                let (pool, shared, served) = (&pool, &shared, &served);
                scope.spawn(move || {
                    let (mut random, mut mine) = (Random(seed), Vec::new());
                    for step in 0..20_000 {
                        if random.below(2) == 0 && mine.len() < 40 {
                            let bytes = match random.below(16) {
                                0 => 8 * (1 + random.below(400_000)),
                                _ => 2048 * (1 + random.below(16)),
                            };
                            let addr = pool.allocate(bytes, 0).unwrap().unwrap();
                            let block = (addr, bytes, seed << 32 | step);
                            mark(block);
                            served.fetch_add(1, Ordering::Relaxed);
                            mine.push(block);
                        } else if let Some(at) = (mine.len() as u64).checked_sub(1) {
                            let block = mine.swap_remove(random.below(at + 1) as usize);
                            let mut shared = shared.lock().unwrap();
                            let out = if random.below(2) == 0 {
                                Some(block)
                            } else {
                                shared.push(block);
                                (shared.len() > 50).then(|| shared.swap_remove(0))
                            };
                            drop(shared);
                            out.into_iter().for_each(check_and_free);
                        }
                    }
                    mine.into_iter().for_each(check_and_free);
                })
            })
            .collect();
        for thread in threads {
            thread.join().unwrap();
        }
        done.store(true, Ordering::Relaxed);
        looking.join().unwrap();
    });
    shared
        .into_inner()
        .unwrap()
        .into_iter()
        .for_each(check_and_free);
    let stats = pool.stats().unwrap();
    let served = served.into_inner();
    assert_eq!((stats.live_blocks, stats.allocated_bytes), (0, 0));
    assert_eq!((stats.alloc_calls, stats.free_calls), (served, served));
    pool.check().unwrap();
}

/// The default pool, forked while threads use their caches: the child goes on with it.
#[cfg(not(miri))]
#[test]
fn a_child_has_whole_caches() {
    use luma::ffi::{
        luma_alloc, luma_backend_t, luma_check, luma_free, luma_init, luma_pool_config_t,
        luma_status_t,
    };
    let _alone = alone();
    // SAFETY: a C struct of integers and pointers that may be NULL.
    let mut config: luma_pool_config_t = unsafe { std::mem::zeroed() };
    config.struct_size = size_of::<luma_pool_config_t>();
    config.backend = luma_backend_t::LUMA_BACKEND_HOST as i32;
    // SAFETY: the configuration is whole and has no callbacks.
    let made = unsafe { luma_init(&config) };
    assert_eq!(made, luma_status_t::LUMA_SUCCESS);
    let pool = luma::pool::defaults::current().unwrap().pool();
    assert!(pool.start_thread_caches().unwrap());
    let block = luma_alloc(5000);
    let (done, mut failures) = (AtomicBool::new(false), Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                while !done.load(Ordering::Relaxed) {
                    let block = luma_alloc(3000);
                    assert_eq!(luma_free(block), luma_status_t::LUMA_SUCCESS);
                }
            });
        }
        for _ in 0..50 {
            // SAFETY: the child calls nothing that other threads of the parent may have locked, but luma,
            // and ends at once.
            unsafe {
                let child = libc::fork();
                if child == 0 {
                    libc::alarm(30);
                    let mut good = luma_check() == luma_status_t::LUMA_SUCCESS;
                    for _ in 0..100 {
                        good &= luma_free(luma_alloc(3000)) == luma_status_t::LUMA_SUCCESS;
                    }
                    good &= luma_free(block) == luma_status_t::LUMA_SUCCESS;
                    good &= luma_free(block) == luma_status_t::LUMA_ERROR_INVALID_POINTER;
                    good &= luma_check() == luma_status_t::LUMA_SUCCESS;
                    libc::_exit(i32::from(!good));
                }
                let mut status = -1;
                libc::waitpid(child, &mut status, 0);
                failures.extend((status != 0).then_some(status));
            }
        }
        done.store(true, Ordering::Relaxed);
    });
    assert_eq!(failures, [0; 0]);
    assert_eq!(luma_free(block), luma_status_t::LUMA_SUCCESS);
    assert_eq!(luma_check(), luma_status_t::LUMA_SUCCESS);
    assert_eq!(pool.stats().unwrap().live_blocks, 0);
}

/// One cache, full by its bytes, with few large blocks and many small sizes.
#[test]
fn a_full_cache_of_mixed_sizes_takes_every_block_back() {
    let _alone = alone();
    let pool = cached_pool(256 * MIB);
    let reserve = pool.allocate(128 * MIB, 0).unwrap().unwrap();
    pool.free(reserve).unwrap();
    let worker = Worker::new();
    let small: Vec<u64> = (1..=100).map(|at| worker.alloc(&pool, at * 256)).collect();
    let large: Vec<u64> = (0..70).map(|_| worker.alloc(&pool, MIB)).collect();
    for addr in small.into_iter().chain(large) {
        worker.free(&pool, addr).unwrap();
    }
    let stats = pool.stats().unwrap();
    assert_eq!((stats.live_blocks, stats.allocated_bytes), (0, 0));
    assert_eq!(stats.free_calls, stats.alloc_calls);
    pool.check().unwrap();
    worker.end();
}

/// A backend that holds up what is given back.
#[derive(Debug)]
struct SlowReturn {
    device: SimulatedBackend,
    is_held: AtomicBool,
    has_begun: AtomicBool,
}

impl luma::backend::Backend for SlowReturn {
    fn name(&self) -> &'static str {
        "slow"
    }

    fn is_host_accessible(&self) -> bool {
        false
    }

    fn memory(&self) -> luma::backend::BackendResult<Option<luma::backend::Memory>> {
        self.device.memory()
    }

    fn segment_align(&self) -> u64 {
        self.device.segment_align()
    }

    fn allocate(&self, bytes: u64) -> luma::backend::BackendResult<u64> {
        self.device.allocate(bytes)
    }

    fn release(&self, addr: u64, bytes: u64) -> luma::backend::BackendResult<()> {
        self.has_begun.store(true, Ordering::Relaxed);
        while self.is_held.load(Ordering::Relaxed) {
            std::thread::yield_now();
        }
        self.device.release(addr, bytes)
    }
}

/// A request that waits for another thread's backend call gets what is freed meanwhile, before the call ends.
fn what_is_freed_serves_who_waits(cached: bool) {
    let device = Arc::new(SlowReturn {
        device: SimulatedBackend::without_pages(4 * MIB),
        is_held: AtomicBool::new(true),
        has_begun: AtomicBool::new(false),
    });
    let pool = Arc::new(Pool::with_backend(device.clone(), &PoolConfig::default()).unwrap());
    if cached {
        pool.start_thread_caches().unwrap();
    }
    // Two segments; the second one is going back, and the first one is full.
    let worker = Worker::new();
    let whole = worker.alloc(&pool, 2 * MIB);
    let idle = worker.alloc(&pool, 2 * MIB);
    worker.free(&pool, whole).unwrap();
    let halves = [worker.alloc(&pool, MIB), worker.alloc(&pool, MIB)];
    worker.free(&pool, idle).unwrap();
    let served = std::thread::scope(|scope| {
        let back = scope.spawn(|| pool.empty_cache().unwrap());
        while !device.has_begun.load(Ordering::Relaxed) {
            std::thread::yield_now();
        }
        let waiting = scope.spawn(|| pool.allocate(MIB, 0).unwrap().unwrap());
        std::thread::sleep(std::time::Duration::from_millis(50));
        assert!(!waiting.is_finished());
        worker.free(&pool, halves[0]).unwrap();
        let start = std::time::Instant::now();
        while !waiting.is_finished() && start.elapsed().as_secs() < 3 {
            std::thread::yield_now();
        }
        let served = waiting.is_finished();
        device.is_held.store(false, Ordering::Relaxed);
        back.join().unwrap();
        waiting.join().unwrap();
        served
    });
    assert!(served, "cached: {cached}: nobody told the request");
    pool.check().unwrap();
    worker.end();
}

#[test]
fn a_request_that_waits_is_told_of_what_is_freed() {
    let _alone = alone();
    what_is_freed_serves_who_waits(false);
    what_is_freed_serves_who_waits(true);
}

/// Blocks are freed while their thread ends, after it gave its cache up.
#[test]
fn a_destructor_of_a_thread_frees_and_allocates() {
    struct Last(std::cell::RefCell<Option<(Arc<Pool>, u64)>>);
    impl Drop for Last {
        fn drop(&mut self) {
            let (pool, addr) = self.0.take().unwrap();
            pool.free(addr).unwrap();
            assert!(pool.free(addr).is_err());
            let next = pool.allocate(3000, 0).unwrap().unwrap();
            pool.free(next).unwrap();
        }
    }
    thread_local!(static LAST: Last = const { Last(std::cell::RefCell::new(None)) });
    let _alone = alone();
    let pool = cached_pool(64 * MIB);
    for early in [false, true] {
        let pool = pool.clone();
        std::thread::spawn(move || {
            if early {
                LAST.with(|_| ());
            }
            let addr = pool.allocate(3000, 0).unwrap().unwrap();
            LAST.with(|last| *last.0.borrow_mut() = Some((pool.clone(), addr)));
        })
        .join()
        .unwrap();
    }
    let stats = pool.stats().unwrap();
    assert_eq!((stats.live_blocks, stats.allocated_bytes), (0, 0));
    pool.check().unwrap();
}

/// Threads in the fast path while another one begins to use a second stream: all stays whole, and each
/// call is counted once.
#[test]
fn a_second_stream_ends_caches_under_threads_that_use_them() {
    use luma::backend::simulated::SimulatedStream;
    let _alone = alone();
    for round in 0..if cfg!(miri) { 1 } else { 40 } {
        let device = Arc::new(SimulatedBackend::new(64 * MIB).with_streams());
        let pool = Arc::new(Pool::with_backend(device.clone(), &PoolConfig::default()).unwrap());
        let block = pool.allocate(MIB, 0).unwrap().unwrap();
        pool.free(block).unwrap();
        assert!(pool.start_thread_caches().unwrap());
        let done = AtomicBool::new(false);
        let calls = AtomicU64::new(1);
        let start = Barrier::new(4);
        std::thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    start.wait();
                    while !done.load(Ordering::Relaxed) {
                        let one = pool.allocate(4 * KIB, 0).unwrap().unwrap();
                        let two = pool.allocate(5 * KIB, 0).unwrap().unwrap();
                        pool.free(one).unwrap();
                        pool.free(two).unwrap();
                        calls.fetch_add(2, Ordering::Relaxed);
                    }
                });
            }
            start.wait();
            std::thread::sleep(std::time::Duration::from_millis(2));
            let stream = SimulatedStream::of(&device);
            let held = pool.allocate(4 * KIB, 0).unwrap().unwrap();
            calls.fetch_add(1, Ordering::Relaxed);
            match round % 3 {
                0 => pool.record_stream(held, stream.handle()).unwrap(),
                1 => {
                    let other = pool
                        .allocate_on(4 * KIB, 0, stream.handle())
                        .unwrap()
                        .unwrap();
                    calls.fetch_add(1, Ordering::Relaxed);
                    pool.free_on(other, stream.handle()).unwrap();
                }
                _ => {
                    let other = pool.allocate(4 * KIB, 0).unwrap().unwrap();
                    calls.fetch_add(1, Ordering::Relaxed);
                    pool.free_on(other, stream.handle()).unwrap();
                }
            }
            pool.check().unwrap();
            pool.free(held).unwrap();
            std::thread::sleep(std::time::Duration::from_millis(2));
            done.store(true, Ordering::Relaxed);
        });
        pool.check().unwrap();
        assert!(!pool.start_thread_caches().unwrap());
        let stats = pool.stats().unwrap();
        let calls = calls.load(Ordering::Relaxed);
        assert_eq!((stats.alloc_calls, stats.free_calls), (calls, calls));
        assert_eq!(
            (
                stats.live_blocks,
                stats.allocated_bytes,
                stats.requested_bytes
            ),
            (0, 0, 0)
        );
    }
}

#[test]
fn a_block_that_its_owner_marks_is_freed_as_any_other() {
    use luma::pool::Marks;
    let _alone = alone();
    let pool = cached_pool(64 * MIB);
    let blocks = [1000, 1000, 4096].map(|bytes| pool.allocate(bytes, 0).unwrap().unwrap());
    for block in blocks {
        pool.mark(block, Marks::ORDERED);
        assert!(pool.marks(block).unwrap().has(Marks::ORDERED));
    }
    pool.check().unwrap();
    assert!(!pool.start_thread_caches().unwrap());
    for block in blocks {
        pool.free(block).unwrap();
        assert_eq!(pool.marks(block), None);
    }
    assert_eq!(pool.stats().unwrap().live_blocks, 0);
    pool.check().unwrap();
}
