//! Out of memory: what is tried first, who is asked, what is said, and that nothing is left behind.

use super::*;
use luma::backend::{Backend, BackendError, BackendResult, Memory};
use luma::ffi::{self, luma_status_t};
use luma::{Status, log};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Condvar, Mutex, OnceLock};
use std::time::Duration;

/// A source that calls the pool it belongs to whenever it is called itself.
#[derive(Debug)]
struct Inward {
    source: SimulatedBackend,
    pool: OnceLock<Arc<Pool>>,
}

impl Inward {
    fn call_inside(&self) {
        if let Some(pool) = self.pool.get() {
            let block = take(pool, 1000);
            pool.free(block).unwrap();
            pool.stats().unwrap();
            pool.check().unwrap();
        }
    }
}

impl Backend for Inward {
    fn name(&self) -> &'static str {
        "inward"
    }
    fn is_host_accessible(&self) -> bool {
        false
    }
    fn memory(&self) -> BackendResult<Option<Memory>> {
        self.source.memory()
    }
    fn allocate(&self, bytes: u64) -> BackendResult<u64> {
        self.call_inside();
        self.source.allocate(bytes)
    }
    fn release(&self, addr: u64, bytes: u64) -> BackendResult<()> {
        self.call_inside();
        self.source.release(addr, bytes)
    }
}

/// Callbacks (of the backend, and for messages) that use the very pool they are called from: they work,
/// and nothing waits for itself.
#[test]
fn r45_callbacks_may_use_the_pool_they_are_called_from() {
    let backend = Arc::new(Inward {
        source: SimulatedBackend::without_pages(GIB),
        pool: OnceLock::new(),
    });
    let pool = Arc::new(Pool::with_backend(backend.clone(), &PoolConfig::default()).unwrap());
    take(&pool, MIB); // so that there is room for what is asked inside
    backend.pool.set(pool.clone()).expect("it is set once");
    let block = take(&pool, 100 * MIB);
    pool.free(block).unwrap();
    assert!(pool.empty_cache().unwrap() >= 100 * MIB);
    sound(&pool);

    let (heard, inside) = (Arc::new(AtomicU32::new(0)), pool.clone());
    let count = heard.clone();
    log::set_sink(Some(Arc::new(move |_, _: &str| {
        count.fetch_add(1, Ordering::Relaxed);
        let block = take(&inside, 1000);
        inside.free(block).unwrap();
        inside.stats().unwrap();
    })));
    refused(&pool, 2 * GIB);
    log::set_sink(None);
    assert!(heard.load(Ordering::Relaxed) >= 1);
    sound(&pool);
}

unsafe extern "C" fn give_nothing(_: usize, _: *mut core::ffi::c_void) -> *mut core::ffi::c_void {
    std::ptr::null_mut()
}

unsafe extern "C" fn take_nothing_back(
    _: *mut core::ffi::c_void,
    _: usize,
    _: *mut core::ffi::c_void,
) {
    unreachable!("nothing was given");
}

/// A source of the user's that has nothing left: that is out of memory by its number and in words, with
/// the sizes.
#[test]
fn r46_a_source_that_has_nothing_is_out_of_memory() {
    // SAFETY: the functions may be called with any arguments from any thread.
    let callbacks = unsafe {
        luma::backend::callbacks::Callbacks::new(
            give_nothing,
            take_nothing_back,
            std::ptr::null_mut(),
        )
    };
    let pool = Pool::new(&PoolConfig {
        backend: luma::BackendKind::Callbacks,
        callbacks: Some(callbacks),
        ..PoolConfig::default()
    })
    .unwrap();
    let error = refused(&pool, 5 * MIB);
    assert_eq!(error.status(), Status::OutOfMemory);
    for part in ["5.00 MiB (5242880 bytes) asked for", "reserved 0 bytes"] {
        assert!(error.message().contains(part), "{error}");
    }
    assert_eq!(pool.stats().unwrap().out_of_memory_count, 1);
}

/// A refused request: the next call that succeeds says so, and no failure is left to be found later.
#[test]
fn r48_a_refusal_does_not_stick() {
    assert!(ffi::luma_alloc(usize::MAX).is_null());
    assert_eq!(
        ffi::luma_last_status(),
        luma_status_t::LUMA_ERROR_OUT_OF_MEMORY
    );
    let block = ffi::luma_alloc(1000);
    assert!(!block.is_null());
    assert_eq!(ffi::luma_last_status(), luma_status_t::LUMA_SUCCESS);
    assert_eq!(ffi::luma_free(block), luma_status_t::LUMA_SUCCESS);
    assert_eq!(ffi::luma_last_status(), luma_status_t::LUMA_SUCCESS);
}

/// A refusal while two fifths are free in splinters: the message says how much that is, the largest
/// piece, and what to do.
#[test]
fn r49_the_message_tells_fragmentation_from_want() {
    let device = Device::without_pages(100 * MIB);
    let whole = device.take(100 * MIB);
    device.free(whole);
    let blocks: Vec<u64> = (0..100).map(|_| device.take(MIB)).collect();
    for block in blocks.chunks(5) {
        device.free(block[1]);
        device.free(block[3]);
    }
    let message = refused(&device.pool, 30 * MIB).message().to_owned();
    for part in [
        "30.00 MiB (31457280 bytes) asked for",
        "allocated 60.00 MiB (62914560 bytes) in 60 blocks",
        "reserved 100.00 MiB",
        "largest free block 1.00 MiB",
        "free behind live blocks 40.00 MiB",
        "simulated device has 0 bytes free of 100.00 MiB",
        "Enough is free, but in pieces between live blocks: free some",
    ] {
        assert!(message.contains(part), "no {part:?} in: {message}");
    }
}

/// One byte more than the device has, as the very first request: an error, for every preset.
#[test]
fn r50_more_than_the_device_has_is_an_error() {
    for preset in PRESETS {
        for backend in [
            SimulatedBackend::new(GIB),
            SimulatedBackend::without_pages(GIB),
        ] {
            let config = PoolConfig {
                preset,
                ..PoolConfig::default()
            };
            let device = Device::of(backend, &config);
            let error = refused(&device.pool, GIB + 1);
            assert_eq!(error.status(), Status::OutOfMemory);
            assert!(
                error.message().contains("larger than the device"),
                "{error}"
            );
            device.take(GIB);
        }
    }
}

/// A bad free, then a good one from another thread: no lock is left behind.
#[test]
fn r51_a_bad_free_leaves_nothing_locked() {
    let device = Device::new(GIB);
    let block = device.take(1000);
    let error = device.pool.free(block + 1).expect_err("not its start");
    assert_eq!(error.status(), Status::InvalidPointer);
    std::thread::scope(|scope| {
        scope.spawn(|| device.free(block));
    });
}

/// A failure after the backend gave memory, at every call of it: the memory goes back, the figures say
/// what is held, and the next request is served.
#[test]
fn r52_a_failure_half_way_is_rolled_back() {
    let failures = [
        BackendError::OutOfMemory,
        BackendError::failed(Status::Driver, "injected"),
    ];
    for failure in failures {
        for call in 1..8 {
            for device in [Device::new(GIB), Device::without_pages(GIB)] {
                device.backend.fail_call(call, failure.clone());
                let mut blocks = Vec::new();
                for bytes in [MIB, 40 * MIB, 3 * MIB] {
                    blocks.extend(device.pool.allocate(bytes, 0).ok().flatten());
                    sound(&device.pool);
                    assert_eq!(device.reserved(), device.backend.used());
                }
                for block in blocks {
                    device.free(block);
                }
                // The call that fails may be one of those that give back, or a later one.
                while device.backend.calls() < call || device.reserved() > 0 {
                    let block = device.pool.allocate(MIB, 0).ok().flatten();
                    if let Some(block) = block {
                        device.free(block);
                    }
                    let _ = device.pool.empty_cache();
                    sound(&device.pool);
                    assert_eq!(device.reserved(), device.backend.used());
                }
                let block = device.take(GIB - 64 * MIB);
                device.free(block);
                device.pool.empty_cache().unwrap();
                let stats = device.pool.stats().unwrap();
                assert_eq!(stats.backend_allocations, stats.backend_releases);
                assert_eq!((stats.reserved_bytes, device.backend.grants()), (0, 0));
            }
        }
    }
}

/// A source whose releases wait until they are let through.
#[derive(Debug)]
struct Gated {
    source: SimulatedBackend,
    open: Mutex<bool>,
    opened: Condvar,
    releasing: AtomicBool,
}

impl Backend for Gated {
    fn name(&self) -> &'static str {
        "gated"
    }
    fn is_host_accessible(&self) -> bool {
        false
    }
    fn memory(&self) -> BackendResult<Option<Memory>> {
        self.source.memory()
    }
    fn allocate(&self, bytes: u64) -> BackendResult<u64> {
        self.source.allocate(bytes)
    }
    fn release(&self, addr: u64, bytes: u64) -> BackendResult<()> {
        self.releasing.store(true, Ordering::Release);
        let gate = self.open.lock().unwrap();
        drop(self.opened.wait_while(gate, |open| !*open).unwrap());
        self.source.release(addr, bytes)
    }
}

/// Memory that is on its way back while a request needs it: the request waits for it, and succeeds.
#[test]
fn r53_a_request_waits_for_memory_that_is_about_to_be_free() {
    let backend = Arc::new(Gated {
        source: SimulatedBackend::without_pages(100 * MIB),
        open: Mutex::new(false),
        opened: Condvar::new(),
        releasing: AtomicBool::new(false),
    });
    let pool = Pool::with_backend(backend.clone(), &PoolConfig::default()).unwrap();
    let block = take(&pool, 80 * MIB);
    pool.free(block).unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| pool.empty_cache().unwrap());
        while !backend.releasing.load(Ordering::Acquire) {
            std::thread::yield_now();
        }
        let waiting = scope.spawn(|| take(&pool, 90 * MIB));
        // Long enough for the request to find that there is nothing; it does not hang on it.
        std::thread::sleep(Duration::from_millis(50));
        assert!(!waiting.is_finished());
        *backend.open.lock().unwrap() = true;
        backend.opened.notify_all();
        waiting.join().expect("the request is served");
    });
    assert_eq!(pool.stats().unwrap().out_of_memory_count, 0);
    sound(&pool);
}
