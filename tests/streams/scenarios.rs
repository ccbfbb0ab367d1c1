//! Single behaviours, by name.

use crate::device::Device;
use crate::op::MIB;
use luma::backend::simulated::{SimulatedBackend, SimulatedStream, StreamCalls};
use luma::backend::{BackendError, Pages};
use luma::{Pool, PoolConfig, Stats, Status};
use std::sync::Arc;

pub struct Fixture {
    pub device: Arc<Device>,
    pub pool: Arc<Pool>,
}

impl Fixture {
    pub fn new(capacity: u64) -> Self {
        Self::with_barriers(capacity, true)
    }

    pub fn with_barriers(capacity: u64, has_barriers: bool) -> Self {
        let simulated = SimulatedBackend::with_pages(capacity, Pages::of(2 * MIB));
        let device = Arc::new(Device::new(simulated, has_barriers));
        let pool = Pool::with_backend(device.clone(), &PoolConfig::default()).unwrap();
        let pool = Arc::new(pool);
        Self { device, pool }
    }

    pub fn stream(&self) -> SimulatedStream {
        SimulatedStream::of(&self.device.simulated)
    }

    pub fn stats(&self) -> Stats {
        self.pool.stats().unwrap()
    }

    pub fn calls(&self) -> StreamCalls {
        self.device.simulated.context().calls()
    }

    pub fn allocate(&self, bytes: u64, stream: &SimulatedStream) -> u64 {
        let block = self.pool.allocate_on(bytes, 0, stream.handle());
        block.unwrap().unwrap()
    }

    pub fn refuse(&self, bytes: u64, stream: &SimulatedStream) {
        let refused = self.pool.allocate_on(bytes, 0, stream.handle());
        assert_eq!(refused.unwrap_err().status(), Status::OutOfMemory);
    }

    pub fn free(&self, block: u64, stream: &SimulatedStream) {
        self.pool.free_on(block, stream.handle()).unwrap();
    }

    /// A block that was allocated and freed on a stream whose work goes on.
    pub fn pending(&self, bytes: u64, stream: &SimulatedStream) -> u64 {
        let block = self.allocate(bytes, stream);
        stream.queue();
        self.free(block, stream);
        block
    }

    /// A block that a stream used which is destroyed by now, and that waits for it; its owner, its user, and
    /// another stream.
    fn block_of_a_destroyed_user(&self) -> (u64, [SimulatedStream; 3]) {
        let [owner, user, other] = [(); 3].map(|()| self.stream());
        self.free(self.allocate(512, &other), &other);
        let block = self.allocate(3 * MIB, &owner);
        self.pool.record_stream(block, user.handle()).unwrap();
        user.queue();
        user.destroy();
        self.free(block, &owner);
        assert_eq!(self.stats().pending_bytes, 3 * MIB);
        (block, [owner, user, other])
    }

    /// Closes the pool. Nothing may be left.
    pub fn close(self) {
        self.pool.check().unwrap();
        self.pool.close().unwrap();
        let simulated = &self.device.simulated;
        assert_eq!(simulated.violations(), [""; 0]);
        assert_eq!(simulated.context().violations(), [""; 0]);
        assert_eq!(simulated.context().events(), 0, "events");
        assert_eq!((simulated.used(), simulated.grants()), (0, 0));
    }
}

#[test]
fn one_blocked_stream_holds_up_no_other_ones_memory() {
    let it = Fixture::new(1 << 30);
    let [blocked, done, other] = [(); 3].map(|()| it.stream());
    let pairs: Vec<_> = (0..1000)
        .map(|_| (it.allocate(4096, &blocked), it.allocate(4096, &done)))
        .collect();
    blocked.queue();
    for &(first, second) in &pairs {
        it.free(first, &blocked);
        it.free(second, &done);
    }
    let before = it.stats();
    assert_eq!(before.pending_bytes, 1000 * 4096);
    let mut again: Vec<_> = pairs.iter().map(|_| it.allocate(4096, &other)).collect();
    let after = it.stats();
    assert_eq!(after.reserved_bytes, before.reserved_bytes);
    assert_eq!((after.stream_waits, after.oom_waits), (0, 0));
    again.retain(|block| pairs.iter().all(|(_, second)| second != block));
    // What was never used lies behind the pairs.
    assert!(
        again.iter().all(|block| *block > pairs[999].1),
        "{again:x?}"
    );
    it.close();
}

#[test]
fn a_free_takes_one_event_from_the_second_stream_on() {
    let it = Fixture::new(1 << 30);
    let [first, second] = [(); 2].map(|()| it.stream());
    let blocks = [(); 3].map(|()| it.allocate(4096, &first));
    it.free(blocks[0], &first);
    it.pool
        .free_on(it.allocate(512, &first), first.handle())
        .unwrap();
    let calls = it.calls();
    assert_eq!((calls.creates, calls.records, calls.queries), (0, 0, 0));
    let other = it.allocate(4096, &second);
    for (freed, (block, stream)) in [(blocks[1], &first), (blocks[2], &first), (other, &second)]
        .into_iter()
        .enumerate()
    {
        it.free(block, stream);
        assert_eq!(it.calls().records, freed as u64 + 1);
    }
    let block = it.pool.allocate(4096, 0).unwrap().unwrap();
    let records = it.calls().records;
    it.pool.free(block).unwrap();
    assert_eq!(it.calls().records, records, "none for the default stream");
    it.close();
}

with_wait! {
    "0" what_the_default_stream_freed_crosses_by_a_question_or_an_event {
        let it = Fixture::new(4 * MIB);
        let stream = it.stream();
        let default = it.device.simulated.default_stream();
        it.free(it.allocate(512, &stream), &stream);
        let block = it.pool.allocate(3 * MIB, 0).unwrap().unwrap();
        it.pool.free(block).unwrap();
        let records = it.calls().records;
        let block = it.allocate(3 * MIB, &stream);
        assert_eq!(it.calls().records, records, "it is idle");
        it.free(block, &stream);
        let block = it.pool.allocate(3 * MIB, 0).unwrap().unwrap();
        default.queue();
        it.pool.free(block).unwrap();
        let records = it.calls().records;
        it.stats();
        assert_eq!(it.calls().records, records + 1, "it is busy");
        default.queue();
        default.finish_one();
        // The event is done, though the stream is not.
        it.allocate(3 * MIB, &stream);
        assert_eq!(it.stats().stream_waits, 0);
        it.close();
    }
    "0" a_user_that_was_destroyed_is_waited_for_by_an_event_for_everything {
        let it = Fixture::new(4 * MIB);
        let (block, [owner, user, other]) = it.block_of_a_destroyed_user();
        it.refuse(3 * MIB, &owner);
        it.refuse(3 * MIB, &other);
        assert_eq!(it.calls().synchronizations, 0);
        user.finish();
        assert_eq!(it.allocate(3 * MIB, &other), block);
        it.close();
    }
    "1" without_such_an_event_all_work_is_waited_for {
        let it = Fixture::with_barriers(4 * MIB, false);
        let (block, [_owner, user, other]) = it.block_of_a_destroyed_user();
        let before = it.calls().synchronizations;
        assert_eq!(it.allocate(3 * MIB, &other), block);
        assert_eq!(it.calls().synchronizations, before + 1);
        assert!(user.is_idle());
        it.close();
    }
    "0" nothing_is_waited_for_where_the_host_may_not_wait {
        let it = Fixture::with_barriers(4 * MIB, false);
        let [first, other] = [(); 2].map(|()| it.stream());
        it.free(it.allocate(3 * MIB, &first), &first);
        first.destroy();
        it.refuse(3 * MIB, &other);
        assert_eq!(it.calls().synchronizations, 0);
        it.pool.empty_cache().unwrap();
        it.allocate(3 * MIB, &other);
        it.close();
    }
    "0" a_stream_that_is_released_leaves_an_event {
        let it = Fixture::new(4 * MIB);
        let [owner, user, other] = [(); 3].map(|()| it.stream());
        it.free(it.allocate(512, &other), &other);
        let block = it.allocate(3 * MIB, &owner);
        it.pool.record_stream(block, user.handle()).unwrap();
        user.queue();
        it.pool.release_stream(user.handle()).unwrap();
        user.destroy();
        it.free(block, &owner);
        it.refuse(3 * MIB, &owner);
        let records = it.calls().records;
        user.finish();
        assert_eq!(it.allocate(3 * MIB, &other), block);
        let calls = it.calls();
        assert_eq!((calls.records, calls.synchronizations), (records, 0));
        it.close();
    }
    "0" the_only_stream_may_be_released_too {
        let it = Fixture::new(4 * MIB);
        let [first, other] = [(); 2].map(|()| it.stream());
        it.pending(3 * MIB, &first);
        it.pool.release_stream(first.handle()).unwrap();
        first.destroy();
        first.finish();
        it.allocate(3 * MIB, &other);
        assert_eq!(it.calls().synchronizations, 0);
        it.close();
    }
    "0" a_stream_waits_for_another_where_nothing_else_serves_it {
        let it = Fixture::new(4 * MIB);
        let [first, other] = [(); 2].map(|()| it.stream());
        it.free(it.allocate(512, &other), &other);
        it.pending(3 * MIB, &first);
        let moment = first.now();
        it.allocate(3 * MIB, &other);
        assert!(other.follows(moment) && !first.is_idle());
        assert_eq!((it.stats().stream_waits, it.calls().waits), (1, 1));
        it.close();
    }
    "0" what_is_freed_while_an_event_is_recorded_waits_for_the_next_one {
        let it = Fixture::new(16 * MIB);
        let stream = it.stream();
        let default = it.device.simulated.default_stream();
        it.free(it.allocate(512, &stream), &stream);
        let first = it.pool.allocate(2 * MIB, 0).unwrap().unwrap();
        let second = it.pool.allocate(3 * MIB, 0).unwrap().unwrap();
        default.queue();
        it.pool.free(first).unwrap();
        let pool = it.pool.clone();
        it.device.seen().after_record = Some(Box::new(move || {
            default.queue();
            pool.free(second).unwrap();
        }));
        it.stats();
        assert!(it.device.seen().after_record.is_none(), "it is busy");
        default.finish_one();
        // The event is done. What was freed after it waits for another one.
        let pending = it.stats().pending_bytes;
        assert!(pending >= 3 * MIB, "{pending} bytes");
        default.finish();
        it.pool.release_stream(stream.handle()).unwrap();
        assert_eq!(it.stats().pending_bytes, 0);
        it.close();
    }
    "0" a_pool_with_one_stream_gives_back_what_its_work_has_left {
        let it = Fixture::new(8 * MIB);
        let stream = it.stream();
        let block = it.allocate(3 * MIB, &stream);
        let keep = it.allocate(2 * MIB, &stream);
        stream.queue();
        it.free(block, &stream);
        // Only by giving back, which would have to wait.
        it.refuse(4 * MIB, &stream);
        stream.finish();
        it.free(it.allocate(4 * MIB, &stream), &stream);
        stream.queue();
        it.free(keep, &stream);
        it.pool.empty_cache().unwrap();
        assert!(stream.is_idle(), "it was waited for");
        assert_eq!(it.stats().reserved_bytes, 0);
        it.close();
    }
    "0.002" a_streams_own_memory_and_anybodys_side_by_side_serve_it {
        let it = Fixture::new(4 * MIB);
        let [stream, other] = [(); 2].map(|()| it.stream());
        let own = it.allocate(2 * MIB, &stream);
        let others = it.allocate(2 * MIB, &other);
        stream.queue();
        it.free(own, &stream);
        it.free(others, &other);
        it.refuse(4 * MIB, &other);
        let waits = it.stats().oom_waits;
        assert_eq!(it.allocate(4 * MIB, &stream), own);
        assert_eq!((it.stats().oom_waits, it.stats().stream_waits), (waits, 0));
        assert!(!stream.is_idle());
        it.close();
    }
    "0.1" a_wait_for_work_is_bounded {
        let it = Fixture::new(4 * MIB);
        let [first, other] = [(); 2].map(|()| it.stream());
        it.free(it.allocate(512, &other), &other);
        it.pending(3 * MIB, &first);
        let begun = std::time::Instant::now();
        it.refuse(3 * MIB, &other);
        let waited = begun.elapsed().as_secs_f64();
        assert!((0.1..5.0).contains(&waited), "{waited} s");
        let stats = it.stats();
        assert!(stats.oom_waits >= 1 && stats.oom_wait_ns > 0, "{stats:?}");
        it.close();
    }
    "0" out_of_memory_in_a_capture_gives_nothing_back {
        let it = Fixture::new(8 * MIB);
        let [stream, other] = [(); 2].map(|()| it.stream());
        it.pending(3 * MIB, &other);
        stream.begin_capture();
        it.allocate(512, &stream);
        let (stats, calls) = (it.stats(), it.calls());
        it.refuse(7 * MIB, &stream);
        let after = it.calls();
        assert_eq!((after.waits, after.queries, after.records), (calls.waits, calls.queries, calls.records));
        assert_eq!(it.stats().backend_releases, stats.backend_releases);
        assert_eq!(it.stats().reserved_bytes, stats.reserved_bytes);
        drop(stream.end_capture().unwrap());
        it.close();
    }
    "0" nothing_leaks_whichever_call_of_a_stream_fails {
        // The calls of the scenario without failures.
        let most = scenario(0);
        assert!(most > 20, "{most} calls");
        for call in 1..=most {
            scenario(call);
        }
    }
}

/// Uses everything once, while one call fails (0: none). Gives how many there were.
fn scenario(fails: u64) -> u64 {
    let it = Fixture::new(16 * MIB);
    let context = it.device.simulated.context();
    let default = it.device.simulated.default_stream();
    let [first, second, third] = [(); 3].map(|()| it.stream());
    let error = BackendError::failed(Status::Driver, "injected failure");
    if fails > 0 {
        context.fail_call(fails, error);
    }
    let mut live = Vec::new();
    for (round, stream) in [&first, &second, &third, &second, &first]
        .into_iter()
        .enumerate()
    {
        for bytes in [MIB, 512] {
            if let Ok(Some(block)) = it.pool.allocate_on(bytes, 0, stream.handle()) {
                live.push(block);
            }
        }
        if let Ok(Some(block)) = it.pool.allocate(4096, 0) {
            live.push(block);
        }
        stream.queue();
        default.queue();
        if round == 2 {
            third.begin_capture();
            if let Ok(Some(block)) = it.pool.allocate_on(4096, 0, third.handle()) {
                live.push(block);
                let _ = it.pool.record_stream(live[0], third.handle());
            }
            drop(third.end_capture());
        }
        if let Some(&block) = live.first() {
            let _ = it.pool.record_stream(block, second.handle());
        }
        live.retain(|&block| {
            let freed = if block % 4096 == 0 && round % 2 == 0 {
                it.pool.free(block)
            } else {
                it.pool.free_on(block, stream.handle())
            };
            let is_live = it.pool.usable_size(block).is_some();
            // What is refused changed nothing.
            assert_eq!(is_live, freed.is_err(), "call {fails}: {freed:?}");
            is_live
        });
        default.finish();
        it.pool.check().unwrap();
    }
    let _ = it.pool.release_stream(first.handle());
    let _ = it.pool.allocate_on(14 * MIB, 0, second.handle());
    for stream in [&first, &second, &third] {
        stream.finish();
        let _ = it.pool.release_stream(stream.handle());
        let _ = it.pool.release_stream(stream.handle());
    }
    let _ = it.pool.empty_cache();
    let calls = it.calls();
    let _ = it.pool.empty_cache();
    for (block, _, _) in it.pool.live_blocks().unwrap() {
        it.pool
            .free_on(block, second.handle())
            .or_else(|_| it.pool.free_on(block, second.handle()))
            .unwrap();
    }
    it.pool.release_stream(second.handle()).unwrap();
    let _ = it.pool.empty_cache();
    it.pool.empty_cache().unwrap();
    let stats = it.stats();
    assert_eq!(
        (stats.pending_bytes, stats.reserved_bytes),
        (0, 0),
        "call {fails}"
    );
    it.close();
    calls.places
        + calls.domains
        + calls.creates
        + calls.records
        + calls.queries
        + calls.waits
        + calls.retains
        + calls.synchronizations
}

#[test]
fn so_many_events_are_outstanding_at_most() {
    let it = Fixture::new(1 << 30);
    let [first, other] = [(); 2].map(|()| it.stream());
    let blocks: Vec<_> = (0..6000).map(|_| it.allocate(512, &first)).collect();
    it.allocate(512, &other);
    first.queue();
    for block in blocks {
        it.free(block, &first);
    }
    assert_eq!(it.device.simulated.context().events(), 4096);
    first.finish();
    it.stats();
    // The next call makes the record for the rest.
    it.allocate(512, &first);
    assert_eq!(it.stats().pending_bytes, 0);
    it.close();
}

#[test]
fn memory_of_a_capture_is_its_own_until_the_last_graph_is_gone() {
    let it = Fixture::new(8 * MIB);
    let [stream, joined] = [(); 2].map(|()| it.stream());
    stream.begin_capture();
    joined.join_capture(&stream);
    let block = it.allocate(2 * MIB, &stream);
    it.free(block, &stream);
    assert_ne!(
        it.allocate(MIB, &joined),
        block,
        "the order of another stream"
    );
    assert_eq!(it.allocate(2 * MIB, &stream), block);
    it.free(block, &stream);
    let graph = stream.end_capture().unwrap();
    let executable = graph.clone();
    drop(graph);
    let pending = it.stats().pending_bytes;
    assert!(pending >= 2 * MIB);
    assert_ne!(it.allocate(2 * MIB, &stream), block);
    it.pool.empty_cache().unwrap();
    assert_eq!(it.stats().pending_bytes, pending);
    drop(executable);
    assert_eq!(it.stats().pending_bytes, 0);
    assert_eq!(it.allocate(2 * MIB, &stream), block);
    it.close();
}

#[test]
fn memory_of_a_capture_stays_where_nobody_tells_of_its_end() {
    let it = Fixture::new(8 * MIB);
    let stream = it.stream();
    it.free(it.allocate(512, &stream), &stream);
    stream.begin_capture();
    // After the question where the stream is.
    let unsupported = BackendError::failed(Status::Unsupported, "no user objects");
    it.device.simulated.context().fail_call(2, unsupported);
    let block = it.allocate(2 * MIB, &stream);
    assert_eq!(it.calls().retains, 1);
    it.free(block, &stream);
    assert_eq!(it.allocate(2 * MIB, &stream), block);
    it.free(block, &stream);
    drop(stream.end_capture().unwrap());
    it.stats();
    assert_ne!(it.allocate(2 * MIB, &stream), block);
    it.close();
}

#[test]
fn a_pool_is_closed_with_work_outstanding() {
    let it = Fixture::new(64 * MIB);
    let [first, other] = [(); 2].map(|()| it.stream());
    it.pending(3 * MIB, &first);
    it.pending(3 * MIB, &other);
    it.allocate(MIB, &other);
    other.queue();
    it.close();
    assert!(first.is_idle() && other.is_idle(), "it was waited for");
}

#[test]
fn a_block_that_two_captures_use_waits_for_both() {
    let it = Fixture::new(64 * MIB);
    let [one, other, plain] = [(); 3].map(|()| it.stream());
    let block = it.allocate(2 * MIB, &plain);
    one.begin_capture();
    it.pool.record_stream(block, one.handle()).unwrap();
    let first = one.end_capture().unwrap();
    other.begin_capture();
    it.pool.record_stream(block, other.handle()).unwrap();
    let second = other.end_capture().unwrap();
    it.free(block, &plain);
    drop(first);
    it.stats();
    assert_ne!(it.allocate(2 * MIB, &plain), block);
    drop(second);
    it.stats();
    assert_eq!(it.allocate(2 * MIB, &plain), block);
    it.close();
}
