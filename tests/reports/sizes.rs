//! Arithmetic, sizes, alignment.

use super::*;
use luma::Status;
use luma::backend::host::{HostBackend, HostDevice};
use luma::config::Limit;
use luma::ffi;

/// A size just below the largest number, on a pool with a limit: refused, and nothing but the counts of
/// calls changes.
#[test]
fn r03_a_size_that_wraps_when_rounded_is_refused() {
    for preset in PRESETS {
        let config = PoolConfig {
            preset,
            memory_limit: Some(Limit::Bytes(MIB)),
            ..PoolConfig::default()
        };
        let device = Device::of(SimulatedBackend::new(GIB), &config);
        device.take(1000);
        let before = device.pool.stats().unwrap();
        for bytes in [u64::MAX, u64::MAX - 100, u64::MAX - 255, u64::MAX - 256] {
            assert_eq!(refused(&device.pool, bytes).status(), Status::OutOfMemory);
        }
        let mut after = device.pool.stats().unwrap();
        assert_eq!((after.alloc_calls, after.out_of_memory_count), (5, 4));
        (after.alloc_calls, after.out_of_memory_count) =
            (before.alloc_calls, before.out_of_memory_count);
        assert_eq!(after, before);
    }
}

/// The same absurd size through every function that allocates: the same refusal.
#[test]
fn r04_every_entry_point_refuses_an_absurd_size() {
    let refused = |ptr: *mut core::ffi::c_void| {
        assert!(ptr.is_null());
        assert_eq!(
            ffi::luma_last_status(),
            ffi::luma_status_t::LUMA_ERROR_OUT_OF_MEMORY
        );
    };
    for bytes in [usize::MAX, usize::MAX / 2, 1 << 60] {
        refused(ffi::luma_alloc(bytes));
        refused(ffi::luma_alloc_aligned(bytes, 512));
        let null = std::ptr::null_mut();
        refused(ffi::luma_pool_alloc(
            ffi::luma_default_pool(0),
            bytes,
            0,
            null,
        ));
        assert!(Device::new(GIB).pool.allocate(bytes as u64, 0).is_err());
    }
}

/// An aligned block cut from the middle of a hole: no rest smaller than what is worth splitting off.
#[test]
fn r07_an_aligned_cut_leaves_no_slivers() {
    for (min_split, size) in [(256, 768), (1024, 1024)] {
        let config = PoolConfig {
            min_split: Some(min_split),
            ..PoolConfig::default()
        };
        let device = Device::of(SimulatedBackend::new(MIB), &config);
        let blocks = [256, 1280, 1024].map(|bytes| device.take(bytes));
        device.free(blocks[1]);
        let block = device.pool.allocate(768, 512).unwrap().unwrap();
        assert_eq!(block, blocks[0] + 512);
        assert_eq!(device.pool.usable_size(block), Some(size));
        sound(&device.pool);
        device.free(block);
        // The hole is one again, so that the same size fits exactly.
        assert_eq!(device.take(1280), blocks[1]);
    }
}

/// Requests of exactly a segment's size and multiples of it: one segment each, no more.
#[test]
fn r08_a_request_of_exactly_one_segment_takes_one_segment() {
    for preset in PRESETS {
        for bytes in [MIB, 2 * MIB, 4 * MIB, 32 * MIB, 64 * MIB] {
            for backend in [
                SimulatedBackend::new(GIB),
                SimulatedBackend::without_pages(GIB),
            ] {
                let config = PoolConfig {
                    preset,
                    ..PoolConfig::default()
                };
                let device = Device::of(backend, &config);
                device.take(bytes);
                let stats = device.pool.stats().unwrap();
                assert_eq!(stats.segments, 1, "{preset:?}, {bytes}");
                assert!(
                    stats.reserved_bytes <= bytes.max(2 * MIB),
                    "{preset:?}, {bytes}"
                );
            }
        }
    }
}

/// Nothing asked for twice and given back twice, from two threads: never an error, no block.
#[test]
fn r09_nothing_can_be_allocated_and_freed_by_many() {
    let device = Device::new(MIB);
    let before = device.pool.stats().unwrap();
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                for _ in 0..1000 {
                    assert_eq!(device.pool.allocate(0, 0).unwrap(), None);
                    let none = ffi::luma_alloc(0);
                    assert!(none.is_null());
                    assert_eq!(ffi::luma_free(none), ffi::luma_status_t::LUMA_SUCCESS);
                }
            });
        }
    });
    assert_eq!(device.pool.stats().unwrap(), before);
}

/// A setting of a value that cannot be honoured: refused with its name, never silently without effect.
#[test]
fn r10_a_setting_is_honoured_or_refused() {
    for value in [1, 100, 257] {
        let config = PoolConfig {
            min_segment: Some(value),
            ..PoolConfig::default()
        };
        let error = Pool::new(&config).expect_err("no multiple of 256");
        assert_eq!(error.status(), Status::InvalidValue);
        assert!(error.message().contains("min_segment_bytes"), "{error}");
        let config = PoolConfig {
            min_split: Some(value),
            ..PoolConfig::default()
        };
        let error = Pool::new(&config).expect_err("no multiple of 256");
        assert!(error.message().contains("min_split_bytes"), "{error}");
    }
    let config = PoolConfig {
        preset: Preset::Luma03,
        min_segment: Some(514 * MIB),
        min_split: Some(MIB),
        ..PoolConfig::default()
    };
    let device = Device::of(SimulatedBackend::new(GIB), &config);
    let block = device.take(514 * MIB - 512 * KIB);
    assert_eq!(device.reserved(), 514 * MIB);
    assert_eq!(device.pool.usable_size(block), Some(514 * MIB));
}

/// A little over a power of two of host memory: no doubling; and a small block does not use up the
/// large cached one.
#[test]
fn r11_large_blocks_are_not_rounded_to_powers_of_two() {
    let backend = Arc::new(HostBackend::new(HostDevice::new(16 * GIB)));
    let pool = Pool::with_backend(backend, &PoolConfig::default()).unwrap();
    let large = take(&pool, 4 * GIB + 1);
    let most = (4 * GIB + 1) * 9 / 8;
    assert!(pool.stats().unwrap().reserved_bytes <= most);
    pool.free(large).unwrap();
    take(&pool, 10 * KIB);
    take(&pool, 4 * GIB);
    assert!(pool.stats().unwrap().reserved_bytes <= most);
    sound(&pool);
}

/// More than 32 bits hold: the block is as large as was asked for.
#[test]
fn r12_sizes_are_not_cut_to_32_bits() {
    for preset in PRESETS {
        let config = PoolConfig {
            preset,
            ..PoolConfig::default()
        };
        let device = Device::of(SimulatedBackend::new(64 * GIB), &config);
        for bytes in [(1 << 32) + 1, (1 << 32) - 1, (1 << 33) + 256] {
            let block = device.take(bytes);
            assert!(device.pool.usable_size(block) >= Some(bytes));
            device.free(block);
        }
    }
}
