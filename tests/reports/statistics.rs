//! Statistics and limits.

use super::*;
use luma::backend::host::{HostBackend, HostDevice};
use luma::backend::{Backend, BackendError, BackendResult, Memory};
use luma::config::Limit;
use luma::{BackendKind, Status};
use std::sync::atomic::{AtomicBool, Ordering};

fn limited(backend: SimulatedBackend, limit: Limit) -> Device {
    let config = PoolConfig {
        memory_limit: Some(limit),
        ..PoolConfig::default()
    };
    Device::of(backend, &config)
}

/// A limit below what is in use: refused, and what is left is never a huge number.
#[test]
fn r66_what_is_left_under_a_limit_never_underflows() {
    let device = Device::new(GIB);
    let block = device.take(100 * MIB);
    let error = device.pool.set_limit(50 * MIB).expect_err("100 are in use");
    assert_eq!(error.status(), Status::InvalidValue);
    device.pool.set_limit(100 * MIB).unwrap();
    let memory = device.pool.memory().unwrap();
    assert_eq!(
        memory,
        Memory {
            free: 0,
            total: GIB
        }
    );
    assert_eq!(
        refused(&device.pool, MIB).status(),
        luma::Status::OutOfMemory
    );
    device.free(block);
    device.take(100 * MIB);
}

/// Blocks of a size that is rounded, all freed: every sum is back at exactly nothing.
#[test]
fn r67_rounded_and_asked_for_bytes_are_not_mixed() {
    for preset in PRESETS {
        let config = PoolConfig {
            preset,
            ..PoolConfig::default()
        };
        let device = Device::of(SimulatedBackend::new(GIB), &config);
        for bytes in [768, 700, 1, 3 * MIB + 1] {
            let blocks = [(); 4].map(|()| device.take(bytes));
            let stats = device.pool.stats().unwrap();
            assert_eq!(stats.requested_bytes, 4 * bytes);
            assert!(stats.allocated_bytes >= 4 * bytes);
            for block in blocks {
                device.free(block);
            }
            let stats = device.pool.stats().unwrap();
            assert_eq!(
                (
                    stats.allocated_bytes,
                    stats.requested_bytes,
                    stats.live_blocks
                ),
                (0, 0, 0)
            );
        }
    }
}

/// Two pools on one device: what is missing from the device is the sum of what they hold.
#[test]
fn r68_the_device_lacks_what_all_pools_hold() {
    let device = HostDevice::new(GIB);
    let pool = || {
        let backend = Arc::new(HostBackend::new(device.clone()));
        Pool::with_backend(backend, &PoolConfig::default()).unwrap()
    };
    let (one, two) = (pool(), pool());
    take(&one, 100 * MIB);
    take(&two, 200 * MIB);
    let held = |pool: &Pool| pool.stats().unwrap().reserved_bytes;
    for pool in [&one, &two] {
        let memory = pool.memory().unwrap();
        assert_eq!(memory.total, GIB);
        assert_eq!(memory.total - memory.free, held(&one) + held(&two));
    }
    refused(&one, 800 * MIB);
    drop(two);
    take(&one, 800 * MIB);
}

/// A source of memory that does not say how much it has.
#[derive(Debug)]
struct Unknown;

impl Backend for Unknown {
    fn name(&self) -> &'static str {
        "unknown"
    }
    fn is_host_accessible(&self) -> bool {
        false
    }
    fn memory(&self) -> BackendResult<Option<Memory>> {
        Ok(None)
    }
    fn allocate(&self, _: u64) -> BackendResult<u64> {
        Err(BackendError::OutOfMemory)
    }
    fn release(&self, _: u64, _: u64) -> BackendResult<()> {
        Ok(())
    }
}

/// A fraction of a device whose size nobody knows: refused with the reason, not silently no limit.
#[test]
fn r69_a_fraction_of_an_unknown_size_is_refused() {
    let config = PoolConfig {
        memory_limit: Some(Limit::Fraction(0.8)),
        ..PoolConfig::default()
    };
    let error = Pool::with_backend(Arc::new(Unknown), &config).expect_err("0.8 of what?");
    assert_eq!(error.status(), Status::InvalidValue);
    assert!(error.message().contains("set it in bytes"), "{error}");
    let config = PoolConfig {
        memory_limit: Some(Limit::Bytes(MIB)),
        ..config
    };
    Pool::with_backend(Arc::new(Unknown), &config).expect("bytes need no device");
    let config = PoolConfig {
        backend: BackendKind::Simulated,
        memory_limit: Some(Limit::Fraction(0.8)),
        capacity: Some(10 * MIB),
        ..PoolConfig::default()
    };
    let pool = Pool::new(&config).unwrap();
    assert_eq!(pool.stats().unwrap().memory_limit, 8 * MIB);
}

/// A limit of half the device, and exactly that asked for: not a byte is lost to rounding.
#[test]
fn r70_a_fraction_is_exact_to_the_byte() {
    for (fraction, capacity, half) in [
        (0.5, 10 * GIB, 5 * GIB),
        (0.5, 512, 256),
        (0.3, 10 * MIB, 3 * MIB),
        (0.7, 1000 * 256, 700 * 256),
        (1.0, 7 * GIB + 256, 7 * GIB + 256),
    ] {
        let device = limited(SimulatedBackend::new(capacity), Limit::Fraction(fraction));
        assert_eq!(device.pool.stats().unwrap().memory_limit, half);
        device.take(half);
        refused(&device.pool, 1);
    }
}

/// A pool that is full to the last byte: every figure is finite, and so is the message.
#[test]
fn r71_figures_of_a_full_pool_are_finite() {
    for preset in PRESETS {
        let config = PoolConfig {
            preset,
            ..PoolConfig::default()
        };
        let device = Device::of(SimulatedBackend::new(4 * MIB), &config);
        let block = device.take(4 * MIB);
        let stats = device.pool.stats().unwrap();
        assert_eq!((stats.largest_free_block, stats.free_blocks), (0, 0));
        let message = refused(&device.pool, 256).message().to_owned();
        assert!(message.contains("largest free block 0 bytes"), "{message}");
        assert!(!message.contains("NaN") && !message.contains("inf"));
        device.free(block);
    }
}

/// One thread asks for more than the limit over and over; another, whose block always fits, is never
/// refused for it.
#[test]
fn r72_a_doomed_request_does_not_count_against_others() {
    for backend in [
        SimulatedBackend::new(GIB),
        SimulatedBackend::without_pages(GIB),
    ] {
        let device = limited(backend, Limit::Bytes(100 * MIB));
        let done = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !done.load(Ordering::Relaxed) {
                    refused(&device.pool, 200 * MIB);
                }
            });
            for _ in 0..500 {
                let block = device.take(30 * MIB);
                device.free(block);
                device.pool.empty_cache().unwrap();
            }
            done.store(true, Ordering::Relaxed);
        });
    }
}
