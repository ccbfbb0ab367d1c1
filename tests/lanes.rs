//! Lanes of the engine: what the model of programs in `src/alloc` does not show.

#![cfg(not(miri))]

#[path = "support/counting.rs"]
#[allow(dead_code)]
mod counting;

use luma::alloc::paging::MapPlan;
use luma::alloc::{ANYONE, Engine, HOME, Lane, Policy, Request};
use luma::backend::Pages;
use luma::size::GRAIN;

#[global_allocator]
static ALLOCATOR: counting::Counting = counting::Counting;

const BASE: u64 = 1 << 30;

/// An engine with one segment of so many grains.
fn engine(grains: u64) -> Engine {
    let mut engine = Engine::new(Policy::DEFAULT).expect("memory");
    let added = engine.add_region(BASE, grains * GRAIN, false);
    added.expect("a region");
    engine
}

fn request(grains: u64, lane: Lane) -> Request {
    let request = Request::new(grains * GRAIN, 0).expect("a size");
    Request { lane, ..request }
}

fn allocate(engine: &mut Engine, grains: u64, lane: Lane) -> u64 {
    let block = engine.allocate(&request(grains, lane)).expect("memory");
    block.expect("room").addr
}

#[test]
fn a_block_serves_its_own_lane_at_once_and_others_when_it_is_settled() {
    let mut engine = engine(4);
    let (one, other) = (engine.open_lane().unwrap(), engine.open_lane().unwrap());
    // What was free before is in the first stream's lane.
    assert_eq!(engine.allocate(&request(4, one)), Ok(None));
    assert_eq!(engine.settle(HOME, 1), 4 * GRAIN);
    let addr = allocate(&mut engine, 4, one);
    engine.free_in(addr, one, 7).unwrap();
    for lane in [HOME, ANYONE, other] {
        assert_eq!(engine.allocate(&request(1, lane)), Ok(None));
    }
    assert_eq!(engine.settle(one, 7), 0);
    let again = allocate(&mut engine, 4, one);
    assert_eq!(again, addr);
    engine.free_in(again, one, 7).unwrap();
    assert_eq!(engine.settle(one, 8), 4 * GRAIN);
    assert_eq!(allocate(&mut engine, 4, other), addr);
}

#[test]
fn a_parked_block_is_nobodys() {
    let mut engine = engine(2);
    let lane = engine.open_lane().unwrap();
    engine.settle_all();
    let (low, high) = (
        allocate(&mut engine, 1, lane),
        allocate(&mut engine, 1, lane),
    );
    let (chunk, block) = engine.begin_free(low).unwrap();
    assert_eq!((block.addr, block.size), (low, GRAIN));
    assert_eq!(engine.usage().live, 1);
    assert!(engine.free(low, 0).is_err() && engine.begin_free(low).is_err());
    engine.free_in(high, lane, 1).unwrap();
    assert_eq!(engine.settle_all(), GRAIN);
    assert_eq!(engine.pending_bytes(), GRAIN);
    assert_eq!(engine.idle_bytes(), 0);
    assert_eq!(engine.allocate(&request(2, lane)), Ok(None));
    engine.end_free(chunk, lane, 2);
    assert_eq!(engine.parked_chunks(), 0);
    assert_eq!(engine.settle(lane, 3), GRAIN);
    assert_eq!(engine.idle_bytes(), 2 * GRAIN);
    engine.check().unwrap();
}

#[test]
fn what_is_left_of_gathered_chunks_keeps_its_lane_and_time() {
    let mut engine = engine(6);
    let lanes = [engine.open_lane().unwrap(), engine.open_lane().unwrap()];
    engine.settle_all();
    let blocks = [0; 3].map(|_| allocate(&mut engine, 2, lanes[0]));
    engine.free_in(blocks[0], lanes[0], 3).unwrap();
    engine.free_in(blocks[1], HOME, 5).unwrap();
    engine.free_in(blocks[2], lanes[1], 9).unwrap();
    let wanted = request(5, lanes[0]);
    let waits = engine.plan_wait(&wanted, |_, _| true).unwrap().unwrap();
    assert_eq!(waits, [(HOME, 6), (lanes[1], 10)]);
    assert_eq!(engine.gather(&wanted, &waits[..1]), Ok(None));
    assert_eq!(
        engine.gather(&wanted, &[(HOME, 6), (lanes[1], 9)]),
        Ok(None)
    );
    let block = engine.gather(&wanted, &waits).unwrap().expect("a row");
    assert_eq!((block.addr, block.size), (BASE, 5 * GRAIN));
    assert_eq!(engine.lane_bytes(lanes[1]), GRAIN);
    assert_eq!(engine.settle(lanes[1], 9), 0);
    assert_eq!(engine.settle(lanes[1], 10), GRAIN);
    engine.check().unwrap();
}

#[test]
fn the_least_wait_is_for_the_fewest_lanes_and_then_the_earliest() {
    let mut engine = engine(10);
    let [own, one, other] = [(); 3].map(|()| engine.open_lane().unwrap());
    engine.settle_all();
    let blocks = [0; 10].map(|_| allocate(&mut engine, 1, own));
    // Two lanes early, one lane late, and the same lane less late.
    let lanes = [(one, 1), (other, 1), (one, 9), (own, 99), (one, 8)];
    for (&block, (lane, time)) in blocks.iter().zip(lanes) {
        engine.free_in(block, lane, time).unwrap();
    }
    let waits = engine.plan_wait(&request(2, own), |_, _| true);
    assert_eq!(waits, Ok(Some(vec![(one, 9)])));
    assert_eq!(
        engine.plan_wait(&request(1, own), |_, _| true),
        Ok(Some(Vec::new()))
    );
    assert_eq!(engine.plan_wait(&request(6, own), |_, _| true), Ok(None));
}

#[test]
fn a_wait_is_as_late_as_the_latest_of_its_row() {
    let mut engine = engine(8);
    let [own, one] = [(); 2].map(|()| engine.open_lane().unwrap());
    engine.settle_all();
    let blocks = [0; 8].map(|_| allocate(&mut engine, 1, own));
    // The fourth block stays.
    let lanes = [
        (0, one, 1),
        (1, own, 0),
        (2, one, 9),
        (4, one, 5),
        (5, own, 0),
    ];
    for (place, lane, time) in lanes {
        engine.free_in(blocks[place], lane, time).unwrap();
    }
    engine.free_in(blocks[6], one, 3).unwrap();
    let waits = engine.plan_wait(&request(3, own), |_, _| true);
    assert_eq!(waits, Ok(Some(vec![(one, 6)])));
}

#[test]
fn what_could_fit_counts_free_memory_beside_addresses() {
    const PAGE: u64 = 4 * GRAIN;
    let mut engine = Engine::new(Policy::DEFAULT).expect("memory");
    engine.add_region(BASE, 16 * PAGE, true).expect("a region");
    let lane = engine.open_lane().unwrap();
    let pages = Pages::of(PAGE);
    let map = |engine: &mut Engine, request: &Request| {
        let planned = engine.plan_map(request, pages, None, PAGE).unwrap();
        let MapPlan::Map(span) = planned else {
            panic!("{planned:?}");
        };
        engine.mapped(span);
    };
    map(&mut engine, &request(4, lane));
    allocate(&mut engine, 1, lane);
    let addr = allocate(&mut engine, 3, lane);
    engine.free_in(addr, lane, 1).unwrap();
    let wanted = request(7, HOME);
    assert!(engine.could_fit_settled(&wanted, Some(pages), PAGE));
    assert!(!engine.could_fit_settled(&request(11, HOME), Some(pages), PAGE));
    engine.settle(lane, 2);
    map(&mut engine, &wanted);
    assert_eq!(allocate(&mut engine, 7, HOME), addr);
}

#[test]
fn what_could_fit_is_bounded_by_what_is_free_and_available() {
    let mut engine = engine(8);
    let lane = engine.open_lane().unwrap();
    engine.settle_all();
    let blocks = [0; 8].map(|_| allocate(&mut engine, 1, lane));
    for &block in blocks.iter().skip(5) {
        engine.begin_free(block).unwrap();
    }
    let could = |engine: &Engine, grains: u64, available: u64| {
        engine.could_fit_settled(&request(grains, HOME), None, available * GRAIN)
    };
    assert!(could(&engine, 3, 0) && !could(&engine, 4, 0));
    assert!(could(&engine, 4, 4) && !could(&engine, 5, 4));
    // Without live blocks the segment can go.
    for &block in blocks.iter().take(5) {
        engine.free_in(block, lane, 1).unwrap();
    }
    assert!(could(&engine, 12, 4) && !could(&engine, 13, 4));
    // In a range pages can go from beside what stays.
    let pages = Pages::of(4 * GRAIN);
    assert!(engine.could_fit_settled(&request(12, HOME), Some(pages), 4 * GRAIN));
    assert!(!engine.could_fit_settled(&request(13, HOME), Some(pages), 4 * GRAIN));
}

#[test]
fn lanes_are_closed_when_empty_and_used_again() {
    let mut engine = engine(1);
    let lane = engine.open_lane().unwrap();
    engine.settle_all();
    let footprint = engine.footprint();
    let addr = allocate(&mut engine, 1, lane);
    engine.free_in(addr, lane, 1).unwrap();
    assert!(!engine.close_lane(lane));
    assert!(!engine.rejoin());
    engine.settle_all();
    assert!(engine.close_lane(lane) && !engine.close_lane(lane));
    assert!(!engine.close_lane(HOME) && !engine.close_lane(ANYONE));
    for _ in 0..100 {
        assert_eq!(engine.open_lane(), Ok(lane));
        assert!(engine.close_lane(lane));
    }
    assert!(engine.footprint() <= footprint + 1024);
    assert!(engine.rejoin() && !engine.is_separate());
    assert_eq!(allocate(&mut engine, 1, HOME), addr);
}

/// One finished block after the other is settled while many wait: that looks at none of them.
#[test]
fn to_settle_is_quick_whatever_waits() {
    const WAITING: u64 = 50_000;
    let mut engine = engine(2 * WAITING);
    let lane = engine.open_lane().unwrap();
    engine.settle_all();
    let blocks: Vec<u64> = (0..2 * WAITING)
        .map(|_| allocate(&mut engine, 1, lane))
        .collect();
    // Every second one, so that nothing merges.
    for (time, &block) in blocks.iter().step_by(2).enumerate() {
        engine.free_in(block, lane, time as u64).unwrap();
    }
    let begin = std::time::Instant::now();
    for time in 0..WAITING {
        assert_eq!(engine.settle(lane, time + 1), GRAIN);
    }
    // A walk over the lane each time would be more than a billion steps.
    assert!(begin.elapsed().as_secs() < 5);
}

struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % bound
    }
}

/// Calls on four lanes with up to 500 blocks live; then all are freed. The same each time.
fn pass(engine: &mut Engine, lanes: &[Lane], live: &mut Vec<u64>) {
    let mut random = Random(0x9E37_79B9_7F4A_7C15);
    for time in 0..20_000 {
        let lane = lanes[random.below(lanes.len() as u64) as usize];
        let served = engine.allocate(&request(1 + random.below(30), lane));
        live.extend(served.expect("memory").map(|block| block.addr));
        if live.len() == 500 || random.below(2) == 0 {
            let addr = live.swap_remove(random.below(live.len() as u64) as usize);
            if random.below(4) == 0 {
                let (chunk, _) = engine.begin_free(addr).expect("live");
                engine.end_free(chunk, lane, time - random.below(10).min(time));
            } else {
                engine.free_in(addr, lane, time).expect("live");
            }
        }
        if random.below(16) == 0 {
            engine.settle(lane, time.saturating_sub(100));
        }
    }
    for addr in live.drain(..) {
        engine.free_in(addr, lanes[0], 20_000).expect("live");
    }
    for &lane in lanes {
        engine.settle(lane, u64::MAX);
    }
}

#[test]
fn calls_in_lanes_ask_the_host_for_nothing() {
    let mut engine = engine(100_000);
    let mut lanes = vec![HOME];
    lanes.extend([(); 3].map(|()| engine.open_lane().unwrap()));
    engine.settle_all();
    let mut live = Vec::with_capacity(500);
    pass(&mut engine, &lanes, &mut live);
    let before = counting::calls();
    pass(&mut engine, &lanes, &mut live);
    assert_eq!(counting::calls() - before, 0);
    engine.check().unwrap();
    assert_eq!(engine.idle_bytes(), 100_000 * GRAIN);
}

/// A lane that only its own stream uses, and that nobody settles.
#[test]
fn a_lane_that_is_never_settled_stays_small() {
    let mut engine = engine(1000);
    let lane = engine.open_lane().unwrap();
    engine.settle_all();
    let footprint = engine.footprint();
    for time in 0..100_000 {
        let addr = allocate(&mut engine, 1 + time % 7, lane);
        engine.free_in(addr, lane, time).unwrap();
    }
    assert!(engine.footprint() < footprint + 8192);
}

#[test]
fn without_host_memory_nothing_is_half_done() {
    for n in 1.. {
        let mut engine = engine(64);
        let (mut lanes, mut live) = (Vec::with_capacity(2), Vec::with_capacity(5));
        counting::fail_in(n);
        lanes.extend((0..2).filter_map(|_| engine.open_lane().ok()));
        let lane = lanes.first().copied().unwrap_or(HOME);
        for grains in 1..6 {
            live.extend(engine.allocate(&request(grains, HOME)).ok().flatten());
        }
        for (time, block) in live.iter().enumerate() {
            engine.free_in(block.addr, lane, time as u64).expect("live");
        }
        let settled = engine.settle(lane, 9);
        let wait = engine.plan_wait(&request(20, ANYONE), |_, _| true);
        let gathered = engine.gather(&request(20, ANYONE), &[(HOME, 9)]);
        let failed = counting::stop_failing();
        engine.check().expect("nothing half done");
        if !failed {
            assert!(lanes.len() == 2 && live.len() == 5 && wait.is_ok() && gathered.is_ok());
            assert!(settled > 0, "{n}");
            assert!(n > 5, "{n} allocations");
            return;
        }
        // Whatever failed: everything can be settled, given back and made anew.
        engine.free_all();
        assert_eq!(engine.idle_bytes(), 64 * GRAIN);
        assert!(engine.rejoin());
        engine.check().unwrap();
    }
}
