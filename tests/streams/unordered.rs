//! Allocating and freeing in no stream's order.

use crate::ledger::{Turn, UNORDERED};
use crate::op::MIB;
use crate::run::{Checked, Run, pick};
use crate::scenarios::Fixture;
use luma::pool::Marks;
use luma::size::{GRAIN, round_up};
use luma::{Pool, Status};

const TURN: Turn = Turn {
    stream: UNORDERED,
    capture: None,
};

impl Run {
    /// An unordered call came as far as the pool's books.
    fn pass_unordered(&self) {
        let memory = self.device.seen().memory.clone();
        let mut state = self.state();
        state.home.get_or_insert(0);
        state.separate(&memory);
    }

    pub(super) fn allocate_unordered(&mut self, bytes: u64, align: u64) -> Checked {
        let (size, align) = (round_up(bytes, GRAIN).unwrap_or(u64::MAX), align.max(GRAIN));
        let held = self.device.seen().memory.bytes();
        let must = self.can_grow(held, size, align);
        self.alloc_calls += 1;
        let answer = self.pool.allocate_unordered(bytes, align);
        self.forget_lost();
        match answer {
            Ok(addr) => {
                let addr = addr.ok_or("no address for some bytes")?;
                // What was free until now waits for the stream that it was freed on.
                self.pass_unordered();
                self.handed_out(TURN, addr, bytes, align)
            }
            Err(error) => {
                require!(
                    !must || self.fired(),
                    "refused what there is room for: {error}"
                );
                if error.status() == Status::OutOfMemory {
                    self.out_of_memory += 1;
                } else {
                    require!(self.fired(), "failed without a failure: {error}");
                }
                self.pass_unordered();
                Ok(())
            }
        }
    }

    pub(super) fn free_unordered(&mut self, place: usize) -> Checked {
        let state = self.state();
        let Some(at) = pick(&state.live, place) else {
            return Ok(());
        };
        let block = state.live[at].clone();
        drop(state);
        let calls = self.device.simulated.calls();
        self.pool
            .free_unordered(block.addr)
            .map_err(|error| format!("not freed: {error}"))?;
        agree!(
            self.device.simulated.calls(),
            calls,
            "backend calls of a free"
        );
        self.free_calls += 1;
        let mut memory = self.device.seen().memory.clone();
        memory.remove(block.interval());
        let mut state = self.state();
        state.home.get_or_insert(0);
        state.separate(&memory);
        let block = state.live.swap_remove(at);
        let freed = state.freed_unordered(&block);
        state.ledger.put(block.interval(), freed);
        Ok(())
    }
}

fn allocate(pool: &Pool, bytes: u64) -> u64 {
    pool.allocate_unordered(bytes, 512).unwrap().unwrap()
}

/// A pool with one block of a size that was allocated unordered, and freed so while streams had work.
fn with_a_free(bytes: u64) -> (Fixture, u64, [luma::backend::simulated::SimulatedStream; 2]) {
    let it = Fixture::new(256 * MIB);
    let streams = [(); 2].map(|()| it.stream());
    let block = allocate(&it.pool, bytes);
    streams.iter().for_each(|stream| stream.queue());
    it.pool.free_unordered(block).unwrap();
    (it, block, streams)
}

#[test]
fn a_free_serves_nobody_while_any_stream_has_work() {
    let (it, block, streams) = with_a_free(8 * MIB);
    assert_eq!(it.stats().pending_bytes, 8 * MIB);
    // Neither an unordered request nor one of a stream that has work, be it its own.
    let other = allocate(&it.pool, 8 * MIB);
    let ordered = it.allocate(8 * MIB, &streams[0]);
    assert!(other != block && ordered != block);
    // All of it has to be done.
    streams[0].finish();
    assert_ne!(allocate(&it.pool, 8 * MIB), block);
    streams[1].finish();
    assert_eq!(allocate(&it.pool, 8 * MIB), block);
    it.close();
}

#[test]
fn an_event_is_recorded_when_memory_is_lacked_and_not_before() {
    let it = Fixture::new(256 * MIB);
    let first = allocate(&it.pool, 8 * MIB);
    let calls = it.calls();
    it.pool.free_unordered(first).unwrap();
    for _ in 0..100 {
        // There is memory beside what waits.
        let block = allocate(&it.pool, 512);
        it.pool.free_unordered(block).unwrap();
    }
    let records = it.calls().records - calls.records;
    assert!(records <= 1, "{records} records");
    // Nor for what the pool has beside that.
    let before = it.stats();
    let again = allocate(&it.pool, 7 * MIB);
    let now = it.stats();
    assert_eq!(now.event_records, before.event_records);
    assert_eq!(
        now.reserved_bytes, before.reserved_bytes,
        "nothing was asked for"
    );
    it.pool.free_unordered(again).unwrap();
    it.close();
}

#[test]
fn events_are_used_again() {
    let it = Fixture::new(64 * MIB);
    for _ in 0..50 {
        let block = allocate(&it.pool, 32 * MIB);
        it.pool.free_unordered(block).unwrap();
    }
    assert!(it.calls().creates <= 2, "{:?}", it.calls());
    it.close();
}

/// In a process that may wait for the device, a program that frees faster than it works gets no more than
/// twice what it uses, and what is spare.
#[test]
fn memory_that_waits_is_bounded() {
    let it = Fixture::new(1 << 30);
    let stream = it.stream();
    let kept = allocate(&it.pool, 16 * MIB);
    let done = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(std::sync::atomic::Ordering::Relaxed) {
                std::thread::sleep(std::time::Duration::from_millis(1));
                stream.finish();
            }
        });
        for _ in 0..100 {
            stream.queue();
            let block = allocate(&it.pool, 16 * MIB);
            stream.queue();
            it.pool.free_unordered(block).unwrap();
        }
        done.store(true, std::sync::atomic::Ordering::Relaxed);
    });
    let stats = it.stats();
    assert!(
        stats.peak_reserved_bytes <= 3 * 64 * MIB,
        "{} MiB",
        stats.peak_reserved_bytes / MIB
    );
    assert_eq!(stats.oom_waits, 0, "it was not for want of memory");
    stream.finish();
    it.pool.free_unordered(kept).unwrap();
    it.close();
}

#[test]
fn where_no_event_stands_for_everything_the_work_is_waited_for() {
    let it = Fixture::with_barriers(64 * MIB, false);
    let stream = it.stream();
    let block = allocate(&it.pool, 32 * MIB);
    stream.queue();
    it.pool.free_unordered(block).unwrap();
    let waits = it.calls().synchronizations;
    std::thread::scope(|scope| {
        scope.spawn(|| {
            std::thread::sleep(std::time::Duration::from_millis(5));
            stream.finish();
        });
        assert_eq!(allocate(&it.pool, 32 * MIB), block);
    });
    assert_eq!(it.calls().synchronizations, waits + 1);
    it.close();
}

#[test]
fn memory_of_streams_comes_when_their_work_is_done() {
    let it = Fixture::new(24 * MIB);
    let stream = it.stream();
    let ordered = it.allocate(16 * MIB, &stream);
    stream.queue();
    it.free(ordered, &stream);
    assert_eq!(
        it.pool
            .allocate(4 * MIB, 0)
            .unwrap()
            .map(|block| it.pool.free(block).is_ok()),
        Some(true)
    );
    stream.finish();
    let block = allocate(&it.pool, 20 * MIB);
    it.pool.free_unordered(block).unwrap();
    it.close();
}

#[test]
fn a_bad_free_changes_nothing() {
    let it = Fixture::new(64 * MIB);
    let block = allocate(&it.pool, MIB);
    for addr in [block + 256, block - 256, 4096] {
        let refused = it.pool.free_unordered(addr).unwrap_err();
        assert_eq!(refused.status(), Status::InvalidPointer);
    }
    it.pool.free_unordered(block).unwrap();
    let refused = it.pool.free_unordered(block).unwrap_err();
    assert!(refused.message().contains("free"), "{refused}");
    it.close();
}

#[test]
fn blocks_know_what_was_noted_of_them() {
    let it = Fixture::new(64 * MIB);
    let is_ordered = |block| it.pool.marks(block).map(|marks| marks.has(Marks::ORDERED));
    let stream = it.stream();
    let ordered = it.allocate(512, &stream);
    it.pool.mark(ordered, Marks::ORDERED);
    let plain = allocate(&it.pool, 512);
    assert_eq!(is_ordered(ordered), Some(true));
    assert_eq!(is_ordered(plain), Some(false));
    assert_eq!(is_ordered(plain + 256), None);
    it.pool.free_unordered(ordered).unwrap();
    assert_eq!(is_ordered(ordered), None);
    it.free(plain, &stream);
    // The mark does not stay with the memory.
    let block = allocate(&it.pool, 512);
    assert_eq!(is_ordered(block), Some(false));
    it.pool.free_unordered(block).unwrap();
    it.close();
}

#[test]
fn little_that_waits_is_no_question_but_where_memory_is_short() {
    let it = Fixture::new(64 * MIB);
    let stream = it.stream();
    let kept = allocate(&it.pool, 48 * MIB);
    // An eighth of what is held is less than a step.
    let records = it.calls().records;
    for _ in 0..4 {
        let block = allocate(&it.pool, MIB);
        it.pool.free_unordered(block).unwrap();
    }
    assert_eq!(it.calls().records, records);
    // No more can be had than this: what waits is asked about, and waited for where it is not done.
    stream.queue();
    let rest = allocate(&it.pool, 10 * MIB);
    it.pool.free_unordered(rest).unwrap();
    assert_eq!(it.stats().out_of_memory_count, 0);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            std::thread::sleep(std::time::Duration::from_millis(5));
            stream.finish();
        });
        let rest = allocate(&it.pool, 16 * MIB);
        it.pool.free_unordered(rest).unwrap();
    });
    assert!(it.calls().records > records);
    it.pool.free_unordered(kept).unwrap();
    it.close();
}

#[test]
fn whole_segments_serve_what_they_are_a_good_fit_for() {
    let config = luma::PoolConfig {
        growth: Some(luma::alloc::Growth::Exact),
        min_segment: Some(2 * MIB),
        whole_segments: true,
        ..luma::PoolConfig::default()
    };
    for is_separate in [false, true] {
        let device = luma::backend::simulated::SimulatedBackend::without_pages(64 * MIB);
        let device = std::sync::Arc::new(device.with_streams());
        let pool = Pool::with_backend(device, &config).unwrap();
        let take = |bytes| match is_separate {
            true => allocate(&pool, bytes),
            false => pool.allocate(bytes, 0).unwrap().unwrap(),
        };
        let give = |block| match is_separate {
            true => pool.free_unordered(block).unwrap(),
            false => pool.free(block).unwrap(),
        };
        let large = take(40 * MIB);
        give(large);
        let small = take(2 * MIB);
        assert_eq!(pool.usable_size(small), Some(2 * MIB));
        assert_eq!(take(39 * MIB), large);
        assert_eq!(pool.stats().unwrap().reserved_bytes, 42 * MIB);
        give(large);
        give(small);
        // What fits nothing else makes room.
        give(take(60 * MIB));
        pool.check().unwrap();
    }
}
