//! Threads that grow, give back, reset and wait at once.

mod support;

use luma::backend::simulated::SimulatedBackend;
use luma::backend::{Backend, BackendError, BackendResult, Memory};
use luma::config::Limit;
use luma::{BackendKind, Pool, PoolConfig, Preset, Status};
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Barrier, Condvar, Mutex};
use std::time::{Duration, Instant};

/// Hands out the same few addresses again and again, the next user sometimes before the call that
/// gave them back has returned: as malloc, mmap and cudaMalloc do.
#[derive(Debug, Default)]
struct Recycling {
    state: Mutex<Recycled>,
}

#[derive(Debug, Default)]
struct Recycled {
    next: u64,
    idle: HashMap<u64, Vec<u64>>,
    out: u64,
}

impl Backend for Recycling {
    fn name(&self) -> &'static str {
        "recycling"
    }
    fn is_host_accessible(&self) -> bool {
        false
    }
    fn memory(&self) -> BackendResult<Option<Memory>> {
        Ok(None)
    }
    fn allocate(&self, bytes: u64) -> BackendResult<u64> {
        let mut state = self.state.lock().unwrap();
        state.out += bytes;
        if let Some(addr) = state.idle.get_mut(&bytes).and_then(Vec::pop) {
            return Ok(addr);
        }
        state.next += bytes.next_multiple_of(1 << 20);
        Ok(state.next - bytes.next_multiple_of(1 << 20) + (1 << 30))
    }
    fn release(&self, addr: u64, bytes: u64) -> BackendResult<()> {
        let mut state = self.state.lock().unwrap();
        state.out -= bytes;
        state.idle.entry(bytes).or_default().push(addr);
        drop(state);
        // Long enough for another thread to be given the address.
        std::thread::sleep(Duration::from_micros(50));
        Ok(())
    }
}

#[test]
fn an_address_may_be_granted_anew_before_its_release_returns() {
    let backend = Arc::new(Recycling::default());
    let config = PoolConfig {
        preset: Preset::Luma03,
        ..PoolConfig::default()
    };
    let pool = Pool::with_backend(backend.clone(), &config).unwrap();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..if cfg!(miri) { 5 } else { 300 } {
                    let block = pool.allocate(1 << 20, 0).unwrap().unwrap();
                    pool.free(block).unwrap();
                    pool.empty_cache().unwrap();
                }
            });
        }
    });
    pool.empty_cache().unwrap();
    pool.check().unwrap();
    let stats = pool.stats().unwrap();
    assert_eq!(stats.reserved_bytes, 0);
    assert_eq!(stats.backend_allocations, stats.backend_releases);
    assert_eq!(backend.state.lock().unwrap().out, 0);
}

#[test]
fn first_allocations_at_once_share_one_range() {
    for _ in 0..if cfg!(miri) { 2 } else { 100 } {
        let pool = Pool::with_backend(
            Arc::new(SimulatedBackend::new(1 << 30)),
            &PoolConfig::default(),
        )
        .unwrap();
        let start = Barrier::new(8);
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    start.wait();
                    pool.allocate(1000, 0).unwrap().unwrap();
                });
            }
        });
        pool.check().unwrap();
        assert_eq!(pool.stats().unwrap().segments, 1);
    }
}

/// A backend whose growth can be held up, until it is let go.
#[derive(Debug)]
struct Gated {
    device: SimulatedBackend,
    closed: Mutex<bool>,
    changed: Condvar,
}

impl Gated {
    fn new(capacity: u64) -> Arc<Self> {
        Arc::new(Self {
            device: SimulatedBackend::without_pages(capacity),
            closed: Mutex::new(false),
            changed: Condvar::new(),
        })
    }
    fn set_closed(&self, closed: bool) {
        *self.closed.lock().unwrap() = closed;
        self.changed.notify_all();
    }
}

impl Backend for Gated {
    fn name(&self) -> &'static str {
        "gated"
    }
    fn is_host_accessible(&self) -> bool {
        false
    }
    fn memory(&self) -> BackendResult<Option<Memory>> {
        self.device.memory()
    }
    fn known_free(&self) -> Option<u64> {
        self.device.known_free()
    }
    fn segment_align(&self) -> u64 {
        self.device.segment_align()
    }
    fn allocate(&self, bytes: u64) -> Result<u64, BackendError> {
        let granted = self.device.allocate(bytes);
        let closed = self.closed.lock().unwrap();
        drop(self.changed.wait_while(closed, |closed| *closed).unwrap());
        granted
    }
    fn release(&self, addr: u64, bytes: u64) -> BackendResult<()> {
        self.device.release(addr, bytes)
    }
}

/// Begins an allocation of `bytes` in another thread and waits until its backend call is under way.
fn held_up<'scope>(
    scope: &'scope std::thread::Scope<'scope, '_>,
    gate: &'scope Gated,
    pool: &'scope Pool,
    bytes: u64,
) -> std::thread::ScopedJoinHandle<'scope, u64> {
    let used = gate.device.used();
    gate.set_closed(true);
    let thread = scope.spawn(move || pool.allocate(bytes, 0).unwrap().unwrap());
    while gate.device.used() == used {
        std::thread::yield_now();
    }
    thread
}

#[test]
fn a_request_waits_for_what_another_thread_is_bringing() {
    let gate = Gated::new(2 << 20);
    let pool = Pool::with_backend(gate.clone(), &PoolConfig::default()).unwrap();
    std::thread::scope(|scope| {
        // The device's only segment is on its way; it has room for both.
        let first = held_up(scope, &gate, &pool, 1 << 10);
        let second = scope.spawn(|| pool.allocate(1 << 10, 0));
        std::thread::sleep(Duration::from_millis(20));
        assert!(!second.is_finished());
        gate.set_closed(false);
        assert_ne!(
            second.join().unwrap().unwrap().unwrap(),
            first.join().unwrap()
        );
    });
    assert_eq!(pool.stats().unwrap().out_of_memory_count, 0);
}

#[test]
fn a_request_that_nothing_could_serve_does_not_wait() {
    let gate = Gated::new(64 << 20);
    let pool = Pool::with_backend(gate.clone(), &PoolConfig::default()).unwrap();
    std::thread::scope(|scope| {
        let first = held_up(scope, &gate, &pool, 1 << 10);
        let start = Instant::now();
        let refused = pool.allocate(1 << 40, 0).unwrap_err();
        assert_eq!(refused.status(), Status::OutOfMemory);
        // Far from the ten seconds that a request may wait.
        assert!(start.elapsed() < Duration::from_secs(5));
        assert!(!first.is_finished());
        gate.set_closed(false);
        first.join().unwrap();
    });
}

#[test]
fn a_limit_is_not_refused_for_memory_on_its_way_back() {
    let pool = Pool::with_backend(
        Arc::new(Recycling::default()),
        &PoolConfig {
            preset: Preset::Luma03,
            ..PoolConfig::default()
        },
    )
    .unwrap();
    let done = AtomicBool::new(false);
    let rounds = if cfg!(miri) { 3 } else { 200 };
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                pool.empty_cache().unwrap();
            }
        });
        for _ in 0..rounds {
            pool.set_limit(0).unwrap();
            let block = pool.allocate(8 << 20, 0).unwrap().unwrap();
            pool.free(block).unwrap();
            // Nothing is live, whoever gives the segment back.
            pool.set_limit(1 << 20).unwrap();
        }
        done.store(true, Ordering::Relaxed);
    });
}

/// Memory that goes back to the pool's owner while others allocate: nothing overlaps, and the books
/// are balanced in the end.
#[test]
fn everything_at_once() {
    for preset in [Preset::Default, Preset::Xla, Preset::Luma03] {
        let device = Arc::new(SimulatedBackend::new(256 << 20));
        let config = PoolConfig {
            preset,
            memory_limit: Some(Limit::Bytes(200 << 20)),
            ..PoolConfig::default()
        };
        let pool = Pool::with_backend(device.clone(), &config).unwrap();
        let owned = Mutex::new(std::collections::BTreeMap::new());
        std::thread::scope(|scope| {
            for seed in 1..=4u64 {
                let (pool, owned) = (&pool, &owned);
                scope.spawn(move || {
                    let mut random = seed;
                    let mut next = move || {
                        random ^= random << 13;
                        random ^= random >> 7;
                        random ^= random << 17;
                        random
                    };
                    let (mut mine, mut served, mut refused) = (Vec::new(), 0, 0);
                    for _ in 0..if cfg!(miri) { 20 } else { 2000 } {
                        // Few enough that all threads' blocks fit, but for the lower limits.
                        match next() % 8 {
                            0..4 if mine.len() < 8 => {
                                let bytes = 1 + next() % (6 << 20);
                                let addr = match pool.allocate(bytes, 1 << (next() % 16)) {
                                    Ok(block) => block.unwrap(),
                                    Err(error) => {
                                        assert_eq!(error.status(), Status::OutOfMemory);
                                        refused += 1;
                                        continue;
                                    }
                                };
                                served += 1;
                                let size = pool.usable_size(addr).unwrap();
                                let mut owned = owned.lock().unwrap();
                                let before = owned.range(..addr + size).next_back();
                                assert!(before.is_none_or(|(start, size)| start + size <= addr));
                                owned.insert(addr, size);
                                mine.push(addr);
                            }
                            0..7 if !mine.is_empty() => {
                                let at = next() as usize % mine.len();
                                let addr = mine.swap_remove(at);
                                owned.lock().unwrap().remove(&addr);
                                pool.free(addr).unwrap();
                            }
                            7 if next() % 8 == 0 => drop(pool.empty_cache().unwrap()),
                            7 => drop(pool.set_limit((100 + next() % 100) << 20)),
                            _ => {}
                        }
                    }
                    assert!(served > refused, "{served} served, {refused} refused");
                    for addr in mine {
                        owned.lock().unwrap().remove(&addr);
                        pool.free(addr).unwrap();
                    }
                });
            }
        });
        pool.check().unwrap();
        pool.empty_cache().unwrap();
        let stats = pool.stats().unwrap();
        assert_eq!(
            (stats.live_blocks, stats.reserved_bytes),
            (0, 0),
            "{preset:?}"
        );
        assert_eq!(stats.backend_allocations, stats.backend_releases);
        assert_eq!(device.violations(), [""; 0]);
        assert_eq!((device.used(), device.grants()), (0, 0));
    }
}

#[cfg(not(miri))]
#[test]
fn a_pool_can_be_closed_while_others_use_it() {
    let pool = Pool::new(&PoolConfig {
        backend: BackendKind::Host,
        capacity: Some(256 << 20),
        ..PoolConfig::default()
    })
    .unwrap();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                loop {
                    match pool.allocate(3 << 20, 0) {
                        Ok(block) => drop(pool.free(block.unwrap())),
                        Err(error) if error.status() == Status::OutOfMemory => {}
                        Err(error) => break assert_eq!(error.status(), Status::InvalidValue),
                    }
                    drop(pool.empty_cache());
                }
            });
        }
        std::thread::sleep(Duration::from_millis(20));
        pool.close().unwrap();
    });
    assert_eq!(pool.close().unwrap_err().status(), Status::InvalidValue);
}

/// A backend that panics in its second call.
#[derive(Debug, Default)]
struct Panicking {
    calls: std::sync::atomic::AtomicU64,
}

impl Backend for Panicking {
    fn name(&self) -> &'static str {
        "panicking"
    }
    fn is_host_accessible(&self) -> bool {
        false
    }
    fn memory(&self) -> BackendResult<Option<Memory>> {
        Ok(None)
    }
    fn allocate(&self, _: u64) -> BackendResult<u64> {
        let call = self.calls.fetch_add(1, Ordering::Relaxed);
        assert!(call == 0, "the second call");
        Ok(1 << 30)
    }
    fn release(&self, _: u64, _: u64) -> BackendResult<()> {
        Ok(())
    }
}

#[test]
fn after_a_panic_every_call_is_refused_and_none_hangs() {
    let pool = Pool::with_backend(Arc::new(Panicking::default()), &PoolConfig::default()).unwrap();
    let block = pool.allocate(1000, 0).unwrap().unwrap();
    std::thread::scope(|scope| {
        let panicked = scope.spawn(|| drop(pool.allocate(64 << 20, 0))).join();
        assert!(panicked.is_err());
    });
    let internal = |status| assert_eq!(status, Status::Internal);
    internal(pool.allocate(1000, 0).unwrap_err().status());
    internal(pool.free(block).unwrap_err().status());
    internal(pool.stats().unwrap_err().status());
    internal(pool.empty_cache().unwrap_err().status());
    internal(pool.set_limit(1 << 20).unwrap_err().status());
    internal(pool.close().unwrap_err().status());
}

/// The default pool of this process, reset while threads allocate from it.
#[cfg(not(miri))]
#[test]
fn a_device_is_reset_while_others_use_it() {
    use luma::ffi::{luma_alloc, luma_check, luma_device_reset, luma_free, luma_status_t};
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                while !done.load(Ordering::Relaxed) {
                    let block = luma_alloc(3 << 20);
                    assert!(!block.is_null());
                    // Its own block, one that was reset away, or one of another thread that was
                    // given the same address: whatever it is, nothing breaks.
                    let freed = luma_free(block);
                    assert!(matches!(
                        freed,
                        luma_status_t::LUMA_SUCCESS | luma_status_t::LUMA_ERROR_INVALID_POINTER
                    ));
                }
            });
        }
        for _ in 0..200 {
            assert_eq!(luma_device_reset(0), luma_status_t::LUMA_SUCCESS);
            assert_eq!(luma_check(), luma_status_t::LUMA_SUCCESS);
        }
        done.store(true, Ordering::Relaxed);
    });
}
