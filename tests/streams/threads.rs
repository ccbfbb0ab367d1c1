//! Threads with streams of their own on one pool.

use crate::op::MIB;
use crate::scenarios::Fixture;
use luma::backend::simulated::{SimulatedMoment, SimulatedStream};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

#[test]
fn a_request_that_waits_is_served_by_another_threads_free() {
    let it = Fixture::new(8 * MIB);
    let [blocked, owner, other] = [(); 3].map(|()| it.stream());
    let live = it.allocate(3 * MIB, &owner);
    it.pending(4 * MIB, &blocked);
    let begun = Instant::now();
    thread::scope(|scope| {
        let waiting = scope.spawn(|| it.allocate(3 * MIB, &other));
        thread::sleep(Duration::from_millis(50));
        it.free(live, &owner);
        assert_eq!(waiting.join().unwrap(), live);
    });
    assert!(begun.elapsed() < Duration::from_secs(5));
    assert!(it.stats().oom_waits >= 1);
    it.close();
}

#[test]
fn a_request_waits_for_work_that_ends() {
    let it = Fixture::new(4 * MIB);
    let [blocked, other] = [(); 2].map(|()| it.stream());
    it.free(it.allocate(512, &other), &other);
    let block = it.pending(3 * MIB, &blocked);
    thread::scope(|scope| {
        let waiting = scope.spawn(|| it.allocate(3 * MIB, &other));
        thread::sleep(Duration::from_millis(20));
        blocked.finish();
        assert_eq!(waiting.join().unwrap(), block);
    });
    assert_eq!(it.stats().stream_waits, 0);
    it.close();
}

/// Where memory was freed, and what must be done before others use it.
type Freed = Vec<(u64, u64, SimulatedMoment)>;

/// One thread's share: nobody gets memory that is in use.
fn work(it: &Fixture, stream: &SimulatedStream, freed: &Mutex<Freed>, seed: u64) {
    let mut random = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    let mut next = move || {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        random
    };
    let mut live: Vec<(u64, u64)> = Vec::new();
    for _ in 0..800 {
        match next() % 8 {
            0..=3 if live.len() < 12 => {
                let bytes = 256 << (next() % 12);
                let Ok(Some(block)) = it.pool.allocate_on(bytes, 0, stream.handle()) else {
                    continue;
                };
                let mut freed = freed.lock().unwrap();
                freed.retain(|&(from, to, moment)| {
                    let touches = from < block + bytes && block < to;
                    assert!(
                        !touches || stream.follows(moment),
                        "{block:#x} is in use: {moment:?}"
                    );
                    !moment.is_done()
                });
                live.push((block, bytes));
            }
            4 | 5 if !live.is_empty() => {
                let (block, bytes) = live.swap_remove(next() as usize % live.len());
                freed
                    .lock()
                    .unwrap()
                    .push((block, block + bytes, stream.now()));
                it.free(block, stream);
            }
            6 => stream.queue(),
            _ => stream.finish_one(),
        }
    }
    for (block, _) in live {
        it.free(block, stream);
    }
}

with_wait! {
    "0.002" threads_never_get_memory_in_use {
        for round in 0..4 {
            let it = Fixture::new(if round % 2 == 0 { 4 * MIB } else { 64 * MIB });
            let streams = [(); 4].map(|()| it.stream());
            let freed = Mutex::new(Freed::new());
            let ends = AtomicBool::new(false);
            thread::scope(|scope| {
                // The last stream is that of two threads.
                let workers: Vec<_> = (0..5)
                    .map(|at| {
                        let (it, freed, stream) = (&it, &freed, &streams[at.min(3)]);
                        scope.spawn(move || work(it, stream, freed, 1 + round * 5 + at as u64))
                    })
                    .collect();
                scope.spawn(|| {
                    while !ends.load(Ordering::Relaxed) {
                        it.pool.check().unwrap();
                        it.stats();
                        it.pool.empty_cache().unwrap();
                        thread::sleep(Duration::from_millis(1));
                    }
                });
                let ended: Vec<_> = workers.into_iter().map(|worker| worker.join()).collect();
                ends.store(true, Ordering::Relaxed);
                ended.into_iter().for_each(|outcome| outcome.unwrap());
            });
            streams.iter().for_each(SimulatedStream::finish);
            for stream in &streams {
                it.pool.release_stream(stream.handle()).unwrap();
            }
            it.pool.empty_cache().unwrap();
            let stats = it.stats();
            assert_eq!((stats.pending_bytes, stats.reserved_bytes), (0, 0));
            it.close();
        }
    }
}
