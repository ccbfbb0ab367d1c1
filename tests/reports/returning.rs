//! Giving memory back, and what calls of the backend cost: they are counted, never timed.

use super::*;
use luma::backend::host::{HostBackend, HostDevice};
use std::sync::atomic::{AtomicBool, Ordering};

/// A large cache is cut down while another thread goes on: what is beyond goes back, and the other
/// thread is served all the time.
#[test]
fn r83_a_cache_can_be_cut_down_while_others_allocate() {
    let device = Device::new(32 * GIB);
    let blocks: Vec<u64> = (0..20).map(|_| device.take(GIB)).collect();
    for block in blocks {
        device.free(block);
    }
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                let block = device.take(MIB);
                device.free(block);
            }
        });
        device.pool.set_limit(2 * GIB).unwrap();
        assert!(device.reserved() <= 2 * GIB);
        device.pool.set_limit(0).unwrap();
        done.store(true, Ordering::Relaxed);
    });
}

/// A pool of most of the device, made and ended twice: the second one has the memory of the first.
#[test]
fn r84_an_ended_pool_gives_its_memory_back() {
    let device = HostDevice::new(20 * GIB);
    for live in [false, true, false] {
        let backend = Arc::new(HostBackend::new(device.clone()));
        let pool = Pool::with_backend(backend, &PoolConfig::default()).unwrap();
        let block = take(&pool, 15 * GIB);
        if !live {
            pool.free(block).unwrap();
        }
    }
}

/// The same large block over and over: the backend is asked once.
#[test]
fn r85_a_cached_block_costs_no_backend_call() {
    for preset in PRESETS {
        let config = PoolConfig {
            preset,
            ..PoolConfig::default()
        };
        let device = Device::of(SimulatedBackend::new(8 * GIB), &config);
        let block = device.take(GIB);
        device.free(block);
        let calls = device.backend.calls();
        for _ in 0..100 {
            let block = device.take(GIB);
            device.free(block);
        }
        assert_eq!(device.backend.calls(), calls);
        assert_eq!(device.pool.stats().unwrap().backend_allocations, 1);
    }
}

/// A pool filled to its limit, then steady work in it: no backend call any more.
#[test]
fn r86_steady_work_at_the_limit_makes_no_backend_calls() {
    for device in [Device::new(4 * GIB), Device::without_pages(4 * GIB)] {
        let mut blocks: Vec<u64> = (0..4096).map(|_| device.take(MIB)).collect();
        refused(&device.pool, 1);
        let calls = device.backend.calls();
        let mut numbers = Numbers(1);
        for _ in 0..10_000 {
            let at = numbers.below(4096) as usize;
            device.free(blocks[at]);
            blocks[at] = device.take(MIB);
        }
        assert_eq!(device.backend.calls(), calls);
    }
}

/// The cache emptied in every round of a loop: it does what it says, and says what that costs.
#[test]
fn r87_emptying_the_cache_in_a_loop_reports_its_cost() {
    let device = Device::new(4 * GIB);
    for round in 1..=100 {
        let blocks: Vec<u64> = (0..50).map(|_| device.take(3 * MIB)).collect();
        for block in blocks {
            device.free(block);
        }
        let reserved = device.reserved();
        assert!(reserved >= 150 * MIB);
        assert_eq!(device.pool.empty_cache().unwrap(), reserved);
        let stats = device.pool.stats().unwrap();
        assert_eq!(stats.backend_allocations, stats.backend_releases);
        assert_eq!((stats.reserved_bytes, stats.backend_releases), (0, round));
    }
    assert_eq!(device.pool.empty_cache().unwrap(), 0);
}

/// A working set of 95 % of the device whose sizes vary from step to step: after the first steps few
/// requests ask the backend. Where blocks of many sizes replace each other at random, pages have to move;
/// every request is served all the same, and the cache is not flushed for it.
#[test]
fn r88_a_nearly_full_device_is_not_flushed_over_and_over() {
    let device = Device::new(1000 * MIB);
    let mut numbers = Numbers(7);
    let mut calls_before = 0;
    for step in 0..60_usize {
        if step == 10 {
            calls_before = device.backend.calls();
        }
        let sizes = [[14, 31, 20, 8], [16, 29, 22, 6], [12, 33, 19, 9]][step % 3];
        let blocks = (0..13).flat_map(|_| sizes.map(|size| device.take(size * MIB)));
        let mut blocks: Vec<u64> = blocks.collect();
        while !blocks.is_empty() {
            let at = numbers.below(blocks.len() as u64) as usize;
            device.free(blocks.swap_remove(at));
        }
    }
    let (calls, operations) = (device.backend.calls() - calls_before, 50 * 13 * 4 * 2);
    assert!(
        calls * 1000 < operations * 10,
        "{calls} backend calls in {operations} operations"
    );

    let (mut held, mut live) = (Vec::new(), 0);
    for _ in 0..5000 {
        let bytes = 2 * MIB * (1 + numbers.below(8));
        while live + bytes > 950 * MIB {
            let at = numbers.below(held.len() as u64) as usize;
            let (block, size) = held.swap_remove(at);
            device.free(block);
            live -= size;
        }
        held.push((device.take(bytes), bytes));
        live += bytes;
        assert!(device.reserved() >= 900 * MIB);
    }
}
