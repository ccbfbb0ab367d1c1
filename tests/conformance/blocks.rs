//! Sizes, alignments, reuse, contents.

use crate::fixture::{Case, Fixture, KIB, MIB};
use luma::alloc::Located;

const GRAIN: u64 = 256;

fn fixture(case: &Case) -> Fixture {
    case.pool(256 * MIB, 0)
}

pub fn no_bytes_are_no_block(case: &Case) {
    let at = fixture(case);
    for align in [0, 256, 4096] {
        assert_eq!(at.pool.allocate(0, align), Ok(None));
    }
    assert_eq!(at.stats(), fixture(case).stats());
}

pub fn sizes_are_rounded_up(case: &Case) {
    let at = fixture(case);
    let edges = [GRAIN, 4 * KIB, MIB, 2 * MIB, 3 * MIB];
    for bytes in edges
        .into_iter()
        .flat_map(|edge| [edge - 1, edge, edge + 1])
        .chain([1, 2])
    {
        let rounded = bytes.div_ceil(GRAIN) * GRAIN;
        let addr = at.alloc(bytes);
        let usable = at.pool.usable_size(addr).expect("a live block");
        if case.splits_exactly() {
            assert_eq!(usable, rounded, "{bytes}");
        } else {
            // A rest as large as the request is split off.
            assert!(
                (rounded..2 * rounded).contains(&usable),
                "{bytes}: {usable}"
            );
        }
        let stats = at.stats();
        assert_eq!(
            (stats.allocated_bytes, stats.requested_bytes),
            (usable, bytes)
        );
        at.free(addr);
    }
    assert_eq!(at.stats().allocated_bytes, 0);
    at.check();
}

pub fn addresses_are_aligned(case: &Case) {
    let at = fixture(case);
    let mut live = Vec::new();
    for align in [0, 1, 2, 128, 256, 512, 4 * KIB, 64 * KIB, 2 * MIB, 4 * MIB] {
        for bytes in [1, 300, 5000, MIB + 1] {
            let addr = at.alloc_aligned(bytes, align);
            assert_eq!(
                addr % align.max(GRAIN),
                0,
                "{addr:#x} for {bytes} at {align}"
            );
            live.push(addr);
            at.check();
        }
    }
    // Every second one first, so that blocks lie between free ones.
    for &addr in live.iter().step_by(2).chain(live.iter().skip(1).step_by(2)) {
        at.free(addr);
        at.check();
    }
    at.empty_cache();
    assert_eq!(at.used(), 0);
}

pub fn a_freed_block_is_used_again(case: &Case) {
    let at = fixture(case);
    let first = at.alloc(10 * KIB);
    at.free(first);
    let calls = at.stats().backend_allocations;
    for _ in 0..100 {
        let again = at.alloc(10 * KIB);
        assert_eq!(again, first);
        at.free(again);
    }
    assert_eq!(at.stats().backend_allocations, calls);
}

pub fn neighbours_coalesce(case: &Case) {
    // In every order of three neighbours.
    for order in [
        [0, 1, 2],
        [0, 2, 1],
        [1, 0, 2],
        [1, 2, 0],
        [2, 0, 1],
        [2, 1, 0],
    ] {
        let at = case.pool((3 * MIB).next_multiple_of(case.device_unit()), 3 * MIB);
        // The block that covers everything makes one segment of three.
        let whole = at.alloc(3 * MIB);
        at.free(whole);
        let parts: Vec<_> = (0..3).map(|_| at.alloc(MIB)).collect();
        for place in order {
            at.free(parts[place]);
            at.check();
        }
        let stats = at.stats();
        assert_eq!((stats.free_blocks, stats.largest_free_block), (1, 3 * MIB));
        assert_eq!(at.alloc(3 * MIB), whole);
    }
}

pub fn an_aligned_block_leaves_the_rest_usable(case: &Case) {
    let at = case.pool(8 * MIB, 0);
    let whole = at.alloc(2 * MIB);
    at.free(whole);
    // Moves what follows off its alignment.
    let small = at.alloc(GRAIN);
    let aligned = at.alloc_aligned(768, 512);
    at.check();
    for addr in [small, aligned] {
        at.free(addr);
    }
    assert_eq!(at.alloc(2 * MIB), whole);
    at.check();
}

pub fn usable_size_is_of_starts(case: &Case) {
    let at = fixture(case);
    let addr = at.alloc(1000);
    let size = at.pool.usable_size(addr).expect("a live block");
    assert!(size >= 1000);
    for other in [0, 1, addr - 1, addr + 1, addr + 256, addr + size, u64::MAX] {
        assert_eq!(at.pool.usable_size(other), None, "{other:#x}");
    }
    assert!(matches!(at.pool.locate(addr + 1), Located::Inside { block } if block.addr == addr));
    at.free(addr);
    assert_eq!(at.pool.usable_size(addr), None);
    assert_eq!(at.pool.locate(addr), Located::Free);
}

/// Fills a block that the test can write, to its last byte.
pub fn fill(case: &Case, addr: u64, bytes: u64, value: u8) {
    // SAFETY: a live block of at least so many bytes that nobody else uses.
    unsafe { std::ptr::write_bytes(case.bytes_of(addr), value, bytes as usize) };
}

/// Whether all of a block that was filled is as it was.
pub fn holds(case: &Case, addr: u64, bytes: u64, value: u8) -> bool {
    // SAFETY: a live block that `fill` wrote.
    let block = unsafe { std::slice::from_raw_parts(case.bytes_of(addr), bytes as usize) };
    block.iter().all(|&byte| byte == value)
}

pub fn contents_stay(case: &Case) {
    let at = fixture(case);
    assert_eq!(at.pool.is_host_accessible(), Ok(case.is_host_accessible()));
    if !case.is_writable() {
        return;
    }
    let mut live: Vec<(u64, u64, u8)> = Vec::new();
    for round in 0..200_u64 {
        let bytes = [1, 255, 4 * KIB, 70_000, MIB + 3][round as usize % 5];
        let addr = at.alloc_aligned(bytes, 256 << (round % 6));
        let usable = at.pool.usable_size(addr).expect("a live block");
        let value = round as u8;
        fill(case, addr, usable, value);
        live.push((addr, usable, value));
        if round % 3 == 2 {
            let place = (round * 7) as usize % live.len();
            let (addr, usable, value) = live.swap_remove(place);
            assert!(
                holds(case, addr, usable, value),
                "{addr:#x} was overwritten"
            );
            at.free(addr);
        }
        if round % 50 == 49 {
            at.empty_cache();
        }
    }
    for (addr, usable, value) in live {
        assert!(
            holds(case, addr, usable, value),
            "{addr:#x} was overwritten"
        );
        at.free(addr);
    }
    at.check();
}
