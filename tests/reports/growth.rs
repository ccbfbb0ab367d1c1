//! Fragmentation and growth.

use super::*;
use luma::alloc::Growth;
use luma::backend::BackendError;
use luma::trace::{Event, Op, Reader};
use std::collections::HashMap;
use std::{fs, io::BufReader};

/// A large segment that small blocks were cut from: what is free of it serves the next large request,
/// and even free pieces between live blocks do, where there are pages.
#[test]
fn r28_small_blocks_in_a_large_segment_do_not_lose_it() {
    for device in [Device::new(12 * GIB), Device::without_pages(12 * GIB)] {
        let large = device.take(11 * GIB);
        device.free(large);
        let small: Vec<u64> = (0..60).map(|_| device.take(16 * MIB)).collect();
        for &block in small.iter().step_by(2) {
            device.free(block);
        }
        device.take(8 * GIB);
    }

    let device = Device::new(12 * GIB);
    let small: Vec<u64> = (0..768).map(|_| device.take(16 * MIB)).collect();
    for &block in small.iter().step_by(2) {
        device.free(block);
    }
    device.take(6 * GIB);
    assert_eq!(device.reserved(), 12 * GIB);
}

/// 10 of 12 GiB cached, 5 in use, 6 asked for: served where there are pages; otherwise refused with the
/// bytes that lie behind live blocks.
#[test]
fn r29_free_memory_behind_a_live_block_is_used_or_named() {
    let scenario = |device: &Device| {
        let large = device.take(10 * GIB);
        device.free(large);
        device.take(5 * GIB);
        device.pool.allocate(6 * GIB, 0)
    };
    scenario(&Device::new(12 * GIB)).expect("pages make room");
    let error = scenario(&Device::without_pages(12 * GIB)).expect_err("nothing can be moved");
    let stuck = "free behind live blocks 5.00 GiB";
    assert!(error.message().contains(stuck), "{error}");
}

/// Three blocks of a quarter of the device: doubling does not take what the third needs.
#[test]
fn r32_growth_leaves_room_for_the_next_large_block() {
    for device in [Device::new(32 * GIB), Device::without_pages(32 * GIB)] {
        for _ in 0..3 {
            device.take(8 * GIB);
        }
        assert!(device.reserved() <= 24 * GIB + 32 * MIB);
    }
    for preset in PRESETS {
        let config = PoolConfig {
            preset,
            ..PoolConfig::default()
        };
        let device = Device::of(SimulatedBackend::without_pages(32 * GIB), &config);
        for _ in 0..3 {
            device.take(8 * GIB);
        }
    }
}

/// The events of a trace that is shipped.
fn shipped(name: &str) -> Vec<Event> {
    let path = support::cc::root().join(format!("examples/traces/{name}.csv"));
    let file = fs::File::open(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    Reader::new(BufReader::new(file))
        .collect::<Result<_, _>>()
        .expect("the trace can be read")
}

/// Whether a device of this capacity completes the trace.
fn completes(events: &[Event], capacity: u64, growth: Growth) -> bool {
    let config = PoolConfig {
        growth: Some(growth),
        ..PoolConfig::default()
    };
    let device = Device::of(SimulatedBackend::new(capacity), &config);
    let mut blocks = HashMap::new();
    for event in events {
        match event.op {
            Op::Pre | Op::Alloc => match device.pool.allocate(event.size, 0) {
                Ok(Some(block)) => {
                    blocks.insert(event.id, block);
                }
                Ok(None) => {}
                Err(_) => return false,
            },
            Op::Free => {
                if let Some(block) = blocks.remove(&event.id) {
                    device.free(block);
                }
            }
            _ => {}
        }
    }
    true
}

/// The same program on a pool that takes everything at once and on one that grows: growing needs at
/// most a twentieth more, and a tenth where there are no pages.
#[test]
fn r35_growing_needs_no_more_than_taking_everything_at_once() {
    for name in ["generated_training", "recorded_train_mlp"] {
        let events = shipped(name);
        let (mut fails, mut holds) = (0, 64 * GIB);
        assert!(completes(&events, holds, Growth::Fixed));
        while holds - fails > (holds / 1000).max(MIB) {
            let middle = fails + (holds - fails) / 2;
            if completes(&events, middle, Growth::Fixed) {
                holds = middle;
            } else {
                fails = middle;
            }
        }
        assert!(
            completes(&events, holds + holds / 20, Growth::Paged),
            "{name}: {holds} bytes at once"
        );
        // Without pages segments cannot grow together, which costs more.
        assert!(
            completes(&events, holds + holds / 10, Growth::Proportional),
            "{name}: {holds} bytes at once, without pages"
        );
    }
}

/// Equal large blocks, one after the other: taken as they come, not in ever larger steps.
#[test]
fn r36_growth_is_not_by_powers_of_two() {
    for device in [Device::new(32 * GIB), Device::without_pages(32 * GIB)] {
        for count in 1..=17 {
            device.take(GIB);
            assert!(device.reserved() <= count * GIB + 32 * MIB);
        }
    }
}

/// One block that is a little larger each time: the cached memory grows with it, or goes back for it.
#[test]
fn r37_slowly_growing_requests_do_not_pile_up() {
    let size = |step: u64| 16 * MIB + step * KIB;
    let device = Device::new(64 * GIB);
    for step in 0..1000 {
        let block = device.take(size(step));
        device.free(block);
        assert!(device.reserved() <= 2 * size(step));
    }
    // Without pages a segment cannot grow, so an old one goes when the device is full.
    let device = Device::without_pages(2 * size(1000));
    for step in 0..1000 {
        let block = device.take(size(step));
        device.free(block);
    }
}

/// Batches of other lengths in turn, each of many tensors: what is reserved follows what is live.
#[test]
fn r38_batches_of_varying_length_do_not_build_stairs() {
    let device = Device::new(64 * GIB);
    for round in 0..40 {
        let tokens = [17_000, 19_000, 20_480, 14_500][round % 4];
        let layers: Vec<u64> = (0..27).map(|_| device.take(tokens * 10 * KIB)).collect();
        for &layer in layers.iter().rev() {
            device.free(layer);
        }
    }
    let stats = device.pool.stats().unwrap();
    assert!(
        stats.peak_reserved_bytes * 10 <= stats.peak_bytes * 13,
        "{stats:?}"
    );
}

/// The backend refuses once although it has the memory: cached memory is given back, the backend asked
/// again, and that is counted.
#[test]
fn r39_a_refusal_that_passes_is_tried_again() {
    let device = Device::without_pages(GIB);
    let cached = device.take(64 * MIB);
    device.free(cached);
    device.backend.fail_call(1, BackendError::OutOfMemory);
    device.take(100 * MIB);
    let stats = device.pool.stats().unwrap();
    assert_eq!((stats.alloc_retries, stats.out_of_memory_count), (1, 0));
    assert_eq!(stats.reserved_bytes, 100 * MIB);
}

/// A cached block of which the failing request needs the memory: nothing keeps it from going back.
#[test]
fn r41_cached_memory_goes_back_for_the_request_that_needs_it() {
    for preset in [Preset::Default, Preset::Luma03] {
        let config = PoolConfig {
            preset,
            ..PoolConfig::default()
        };
        for backend in [
            SimulatedBackend::new(100 * MIB),
            SimulatedBackend::without_pages(100 * MIB),
        ] {
            let device = Device::of(backend, &config);
            device.take(30 * MIB);
            let second = device.take(30 * MIB);
            device.free(second);
            device.take(60 * MIB);
        }
    }
}

/// Many sizes, twice, then some that were never seen: every free merges and is found again.
#[test]
fn r42_free_blocks_of_new_sizes_are_found() {
    for device in [Device::new(8 * GIB), Device::without_pages(8 * GIB)] {
        for _ in 0..2 {
            let blocks: Vec<u64> = (1..=1024).map(|count| device.take(count * 512)).collect();
            for block in blocks {
                device.free(block);
            }
        }
        let (reserved, calls) = (device.reserved(), device.backend.calls());
        let whole = device.take(2048 * 512);
        device.free(whole);
        device.take(1024 * 512);
        let last = device.take(1024);
        device.free(last);
        assert_eq!(
            (device.reserved(), device.backend.calls()),
            (reserved, calls)
        );
        assert_eq!(device.pool.stats().unwrap().allocated_bytes, 1024 * 512);
    }
}
