//! Threads, lifetime, configuration.

use super::*;
use luma::backend::host::{HostBackend, HostDevice};
use std::sync::atomic::{AtomicBool, Ordering};
use support::{cc::Build, tools};

/// One thread uses a pool of its own: what other threads allocate meanwhile does not land there.
#[test]
fn r74_a_pool_holds_only_what_was_asked_of_it() {
    let (own, others) = (Device::new(GIB), Device::new(GIB));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for _ in 0..1000 {
                others.take(1000);
            }
        });
        for _ in 0..1000 {
            own.take(100_000);
        }
    });
    let live = own.pool.live_blocks().unwrap();
    assert_eq!(live.len(), 1000);
    assert!(live.iter().all(|&(_, _, asked)| asked == 100_000));
}

/// A device is reset under its pool: the cache holds no dead pointers, and old ones are refused.
#[test]
fn r79_a_reset_device_leaves_no_dead_pointers() {
    if !tools::available(&["cc"]) {
        return;
    }
    let build = Build::c("c99").source("c_tests/device_reset.c");
    build.compile().env("LUMA_BACKEND", "host").run();
}

/// Threads allocate, write and free while another gives memory back and moves the limit, so that pages
/// go and come under them: no block changes, and at the end everything is as at the beginning.
#[test]
fn r82_giving_back_and_moving_pages_disturbs_nobody() {
    let device = HostDevice::new(96 * MIB);
    let backend = Arc::new(HostBackend::new(device));
    let pool = Pool::with_backend(backend, &PoolConfig::default()).unwrap();
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let workers: Vec<_> = (1..=8_u8)
            .map(|own| {
                let pool = &pool;
                scope.spawn(move || {
                    let mut numbers = Numbers(u64::from(own));
                    let mut held: Vec<(u64, usize)> = Vec::new();
                    let whole = vec![own; 3 * MIB as usize];
                    for _ in 0..1500 {
                        let bytes = 1 + numbers.below(3 * MIB) as usize;
                        // A refusal is all right: others hold the rest.
                        if let Ok(Some(block)) = pool.allocate(bytes as u64, 0) {
                            // SAFETY: the block is this thread's, of host memory, and that large.
                            unsafe { std::ptr::write_bytes(block as *mut u8, own, bytes) };
                            held.push((block, bytes));
                        }
                        if held.len() > numbers.below(6) as usize {
                            let at = numbers.below(held.len() as u64) as usize;
                            give_back(pool, held.swap_remove(at), &whole);
                        }
                    }
                    for block in held {
                        give_back(pool, block, &whole);
                    }
                })
            })
            .collect();
        scope.spawn(|| {
            let mut numbers = Numbers(99);
            while !done.load(Ordering::Relaxed) {
                pool.empty_cache().unwrap();
                // Refused where too much is in use.
                let _ = pool.set_limit(40 * MIB + numbers.below(56 * MIB));
            }
            pool.set_limit(0).unwrap();
        });
        for worker in workers {
            worker.join().expect("no block changed");
        }
        done.store(true, Ordering::Relaxed);
    });
    sound(&pool);
    pool.empty_cache().unwrap();
    let stats = pool.stats().unwrap();
    assert_eq!(
        (
            stats.live_blocks,
            stats.allocated_bytes,
            stats.reserved_bytes
        ),
        (0, 0, 0)
    );
    assert_eq!(stats.backend_allocations, stats.backend_releases);
}

/// Frees a block of host memory that must hold what `whole` begins with.
fn give_back(pool: &Pool, (block, bytes): (u64, usize), whole: &[u8]) {
    // SAFETY: the block is the caller's, of host memory, and that large.
    let contents = unsafe { std::slice::from_raw_parts(block as *const u8, bytes) };
    assert!(contents == &whole[..bytes]);
    pool.free(block).unwrap();
}

/// A backend in the environment that does not exist: one clear warning, and the choice is told.
#[test]
fn r95_an_unknown_choice_in_the_environment_is_told() {
    if !tools::available(&["cc"]) {
        return;
    }
    let program = Build::c("c99").source("c_tests/env.c").compile();
    let told = program
        .arg("defaults")
        .env("LUMA_BACKEND", "rocm")
        .env("LUMA_LOG", "info")
        .finish();
    assert!(told.status.success(), "{}", told.stderr);
    let count = |text: &str| told.stderr.matches(text).count();
    assert_eq!(count("warn: LUMA_BACKEND=rocm is ignored"), 1);
    assert_eq!(count("uses the host backend"), 1, "{}", told.stderr);
}
