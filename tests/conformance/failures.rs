//! Calls that fail: they change nothing, and say what was wrong.

use crate::fixture::{Case, Fixture, KIB, MIB};
use luma::{Stats, Status};

/// What a refused call may have changed.
fn without_counters(at: &Fixture) -> Stats {
    Stats {
        alloc_calls: 0,
        out_of_memory_count: 0,
        ..at.stats()
    }
}

pub fn bad_frees_change_nothing(case: &Case) {
    let at = case.pool(64 * MIB, 0);
    let (live, freed) = (at.alloc(10 * KIB), at.alloc(10 * KIB));
    at.free(freed);
    let before = at.stats();
    let cases = [
        (0x10, "is not from this pool".to_owned()),
        (u64::MAX, "is not from this pool".to_owned()),
        (freed, "is free already".to_owned()),
        (
            live + 256,
            format!("is 256 bytes inside the block of {} bytes", 10 * KIB),
        ),
        (
            live + 1,
            format!("is 1 bytes inside the block of {} bytes", 10 * KIB),
        ),
    ];
    for (addr, says) in cases {
        let error = at.pool.free(addr).expect_err("no live block begins there");
        assert_eq!(error.status(), Status::InvalidPointer);
        assert!(error.message().contains(&says), "{error}, not {says}");
        assert_eq!(at.stats(), before);
    }
    at.check();
    at.free(live);
}

pub fn bad_alignments_change_nothing(case: &Case) {
    let at = case.pool(64 * MIB, 0);
    let before = at.stats();
    for align in [3, 255, 257, 384, 1000, u64::MAX, (1 << 63) + 1] {
        for bytes in [0, 1, MIB] {
            let error = at.pool.allocate(bytes, align).expect_err("no power of two");
            assert_eq!(error.status(), Status::InvalidValue);
            assert!(error.message().contains(&align.to_string()), "{error}");
        }
    }
    assert_eq!(at.stats(), before);
}

pub fn absurd_sizes_are_refused(case: &Case) {
    let at = case.pool(64 * MIB, 0);
    let live = at.alloc(MIB);
    let before = without_counters(&at);
    let mut refused = 0;
    for bytes in [
        u64::MAX,
        u64::MAX - 100,
        u64::MAX - 255,
        u64::MAX - 256,
        1 << 63,
        1 << 48,
    ] {
        for align in [0, 4096, 4 * MIB, 1 << 63] {
            let error = at
                .pool
                .allocate(bytes, align)
                .expect_err("no device has so much");
            assert_eq!(
                error.status(),
                Status::OutOfMemory,
                "{bytes} at {align}: {error}"
            );
            refused += 1;
        }
    }
    assert_eq!(without_counters(&at), before);
    assert_eq!(at.stats().out_of_memory_count, refused);
    at.free(live);
    at.check();
}

pub fn out_of_memory_says_what_is_wrong(case: &Case) {
    let limit = 16 * MIB;
    let at = case.pool(64 * MIB, limit);
    let live = at.alloc(3 * MIB);
    let error = at.pool.allocate(20 * MIB, 0).expect_err("beyond the limit");
    assert_eq!(error.status(), Status::OutOfMemory);
    let stats = at.stats();
    let mut parts = vec![
        format!("({} bytes) asked for", 20 * MIB),
        format!("({} bytes) in 1 blocks", stats.allocated_bytes),
        format!("({} bytes), largest free block", stats.reserved_bytes),
        format!("limit 16.00 MiB ({limit} bytes)"),
        "LUMA_MEMORY_LIMIT".to_owned(),
    ];
    if case.knows_capacity() {
        let free = at.device_free();
        parts.push(format!(
            "({free} bytes) free of 64.00 MiB ({} bytes)",
            64 * MIB
        ));
    } else {
        parts.push("does not say what it has".to_owned());
    }
    for part in parts {
        assert!(error.message().contains(&part), "{error}\nlacks: {part}");
    }
    at.free(live);
}

pub fn a_refusal_leaves_the_pool_working(case: &Case) {
    let at = case.pool(64 * MIB, 8 * MIB);
    let kept = at.alloc(2 * MIB);
    for _ in 0..3 {
        assert!(at.pool.allocate(7 * MIB, 0).is_err());
        at.check();
        let other = at.alloc(4 * MIB);
        at.free(other);
    }
    assert_eq!(at.stats().out_of_memory_count, 3);
    assert_eq!(at.stats().live_blocks, 1);
    at.free(kept);
}

pub fn a_closed_pool_refuses_everything(case: &Case) {
    let at = case.pool(64 * MIB, 0);
    let (one, _other) = (at.alloc(MIB), at.alloc(5 * MIB));
    assert_eq!(at.pool.close(), Ok(2));
    assert_eq!(at.used(), 0);
    let answers = [
        at.pool.allocate(1, 0).map(|_| ()),
        at.pool.free(one),
        at.pool.empty_cache().map(|_| ()),
        at.pool.stats().map(|_| ()),
        at.pool.reset_peak(),
        at.pool.check(),
        at.pool.set_limit(MIB),
        at.pool.memory().map(|_| ()),
        at.pool.close().map(|_| ()),
    ];
    for answer in answers {
        let error = answer.expect_err("the pool is closed");
        assert_eq!(error.status(), Status::InvalidValue);
        assert!(error.message().contains("destroyed"), "{error}");
    }
    assert_eq!(at.pool.usable_size(one), None);
}
