//! The limit, the device, and how the pool grows.

use crate::fixture::{Case, KIB, MIB, Supply};
use luma::{Preset, Status};

const GRAIN: u64 = 256;

pub fn the_whole_limit_can_be_used(case: &Case) {
    for limit in [MIB, MIB + 256, 5 * MIB, 7 * MIB + 512] {
        let at = case.pool(64 * MIB, limit);
        let addr = at.alloc(limit);
        assert_eq!(at.stats().reserved_bytes, limit);
        at.check();
        let refused = at.pool.allocate(1, 0).expect_err("nothing is left");
        assert_eq!(refused.status(), Status::OutOfMemory);
        at.free(addr);
        at.check();
    }
}

pub fn an_odd_limit_can_be_filled(case: &Case) {
    // The last bytes of a limit that is no multiple of 256 hold no block.
    for limit in [MIB + 256, MIB + 300, 511 * KIB] {
        let at = case.pool(64 * MIB, limit);
        let blocks: Vec<_> = (0..limit / GRAIN).map(|_| at.alloc(GRAIN)).collect();
        assert!(at.pool.allocate(1, 0).is_err());
        let stats = at.stats();
        assert_eq!(stats.allocated_bytes, limit / GRAIN * GRAIN);
        assert_eq!(stats.memory_limit, limit);
        at.check();
        for addr in blocks {
            at.free(addr);
        }
        assert_eq!(at.stats().allocated_bytes, 0);
        at.check();
    }
}

pub fn the_limit_goes_up_and_down(case: &Case) {
    let at = case.pool(64 * MIB, 4 * MIB);
    let small = at.alloc(MIB);
    assert!(at.pool.allocate(8 * MIB, 0).is_err());
    at.pool.set_limit(16 * MIB).expect("a higher limit");
    assert_eq!(at.stats().memory_limit, 16 * MIB);
    let large = at.alloc(8 * MIB);
    at.free(large);
    at.free(small);
    // What is free beyond the new limit goes back.
    at.pool.set_limit(2 * MIB).expect("nothing is live");
    assert!(at.used() <= 2 * MIB);
    at.check();
    assert!(at.pool.allocate(3 * MIB, 0).is_err());
    at.pool.set_limit(0).expect("no limit");
    assert_eq!(at.stats().memory_limit, 0);
    let large = at.alloc(20 * MIB);
    at.free(large);
    at.check();
}

pub fn a_limit_below_what_is_live_is_refused(case: &Case) {
    let at = case.pool(64 * MIB, 0);
    let live = at.alloc(6 * MIB);
    let before = at.stats();
    let refused = at.pool.set_limit(3 * MIB).expect_err("6 MiB are live");
    assert_eq!(refused.status(), Status::InvalidValue);
    assert!(refused.message().contains("live blocks"), "{refused}");
    assert_eq!(at.stats(), before);
    at.free(live);
    at.pool.set_limit(3 * MIB).expect("nothing is live");
    at.check();
}

pub fn the_whole_device_can_be_used(case: &Case) {
    // XLA's steps, each 0.9 of the one before, need not hit just what the device has left, where that is
    // known only by asking for it.
    let misses = case.supply == Supply::Cuda && case.preset == Preset::Xla;
    if !case.knows_capacity() || misses {
        return;
    }
    let capacity = (9 * MIB + 256).next_multiple_of(case.device_unit());
    let at = case.pool(capacity, 0);
    let whole = at.alloc(capacity);
    assert_eq!(at.used(), capacity);
    assert!(at.pool.allocate(1, 0).is_err());
    at.free(whole);
    let blocks: Vec<_> = (0..9).map(|_| at.alloc(MIB)).collect();
    at.check();
    blocks.into_iter().for_each(|addr| at.free(addr));
    at.check();
}

pub fn memory_tells_what_is_left(case: &Case) {
    let at = case.pool(64 * MIB, 16 * MIB);
    let memory = at.pool.memory().expect("known");
    let total = if case.knows_capacity() { 64 } else { 16 } * MIB;
    assert_eq!((memory.free, memory.total), (16 * MIB, total));
    let addr = at.alloc(5 * MIB);
    let memory = at.pool.memory().expect("known");
    assert_eq!(memory.free, 16 * MIB - at.used());
    at.free(addr);
    at.empty_cache();
    assert_eq!(at.pool.memory().expect("known").free, 16 * MIB);
    at.pool.set_limit(0).expect("no limit");
    match at.pool.memory() {
        Ok(memory) => assert_eq!((memory.free, memory.total), (64 * MIB, 64 * MIB)),
        Err(error) => {
            assert!(!case.knows_capacity());
            assert_eq!(error.status(), Status::Unsupported);
        }
    }
}

pub fn no_growth_step_is_larger_than_promised(case: &Case) {
    if case.preset != Preset::Default {
        return;
    }
    // A first step that ends inside a page, then one that begins there.
    let at = case.pool(1 << 30, MIB + 256);
    let first = at.alloc(MIB + 256);
    at.pool.set_limit(0).expect("no limit");
    let request = 40 * MIB;
    let second = at.alloc(request);
    assert!(
        at.largest_step() <= request,
        "{} bytes at once for {request}",
        at.largest_step()
    );
    for addr in [first, second] {
        at.free(addr);
    }
}
