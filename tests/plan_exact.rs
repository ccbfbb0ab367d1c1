//! The exact level: the least traffic of an order, and what it says of it.

#![cfg(not(miri))]

mod support;

use luma::plan::{
    Control, Graph, GraphInput, Plan, Progress, Stopped, Timeline, bound, exact, greedy_order,
    heuristic,
};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use support::graphs::{Random, Shape, random};
use support::kernels::{self, CASES};
use support::least::least_traffic;
use support::plan_rules::assert_valid;

/// A graph, an order of it, and its events.
struct Case {
    input: GraphInput,
    graph: Graph,
    order: Vec<u32>,
    timeline: Timeline,
}

impl Case {
    fn new(input: GraphInput) -> Self {
        let graph = Graph::new(&input).expect("a valid graph");
        let order = greedy_order(&graph).expect("no cycle");
        Self::in_order(input, graph, order)
    }

    fn in_order(input: GraphInput, graph: Graph, order: Vec<u32>) -> Self {
        let timeline = Timeline::new(&graph, &order).expect("a topological order");
        Self {
            input,
            graph,
            order,
            timeline,
        }
    }

    /// The exact level's plan, checked.
    fn plan(&self, control: &Control<'_>) -> Plan {
        let plan = exact::plan(&self.graph, &self.timeline, control).expect("there is a plan");
        assert_valid(&self.input, Some(&self.order), &plan);
        assert!(plan.lower_bound <= plan.extra_bytes);
        assert_eq!(plan.proved, plan.lower_bound == plan.extra_bytes);
        plan
    }

    fn heuristic(&self) -> Plan {
        let control = Control::default();
        heuristic::plan(&self.graph, &self.timeline, &control).expect("there is a plan")
    }
}

#[test]
fn small_graphs_get_the_least_traffic_and_mostly_its_proof() {
    let mut numbers = Random(4);
    let (mut proved, mut spilling, mut improved) = (0, 0, 0);
    let rounds = 400;
    for round in 0..rounds {
        let capacity = 7 + numbers.below(4);
        let shape = Shape {
            operations: 6 + numbers.below(7),
            buffers: 5 + numbers.below(4),
            capacity,
            largest: 3 + numbers.below(4),
            ..Shape::SMALL
        };
        let case = Case::new(random(&mut numbers, shape));
        let plan = case.plan(&Control::default());
        let least: u64 = least_traffic(&case.input, &case.order).into_iter().sum();
        assert!(
            plan.lower_bound <= least,
            "round {round}: the bound is above {least}"
        );
        assert!(
            plan.extra_bytes >= least,
            "round {round}: less than the least"
        );
        if plan.proved {
            assert_eq!(plan.extra_bytes, least, "round {round}");
        }
        let simple = case.heuristic().extra_bytes;
        assert!(plan.extra_bytes <= simple);
        improved += u32::from(plan.extra_bytes < simple);
        proved += u32::from(plan.proved);
        spilling += u32::from(least > 0);
    }
    println!("{proved} of {rounds} proved, {spilling} spill, {improved} below the first level");
    assert!(spilling > rounds / 3, "{spilling}: too easy");
    assert!(proved > rounds * 9 / 10, "only {proved} of {rounds} proved");
    assert!(improved > 0, "never below the first level");
}

#[test]
fn larger_graphs_get_valid_plans_no_worse_than_the_first_level() {
    let mut numbers = Random(5);
    let mut proved = 0;
    let rounds = 60;
    for round in 0..rounds {
        let shape = Shape {
            operations: 40 + numbers.below(100),
            buffers: 30 + numbers.below(40),
            memories: 1 + numbers.below(3),
            capacity: 60,
            largest: 1 + numbers.below(40),
            known: 100 * (round % 2),
            single: 5,
        };
        let case = Case::new(random(&mut numbers, shape));
        let control = Control {
            work: Some(50_000),
            ..Control::default()
        };
        let plan = case.plan(&control);
        assert!(plan.extra_bytes <= case.heuristic().extra_bytes);
        proved += u32::from(plan.proved);
    }
    println!("{proved} of {rounds} proved");
    assert!(proved > 10, "only {proved} of {rounds} proved");
}

#[test]
fn the_kernels_get_the_least_traffic_of_the_greedy_order() {
    let least = [3_584, 32_512, 34_944, 460_800, 180_192];
    for (name, least) in CASES.into_iter().zip(least) {
        let Some(input) = kernels::load(name) else {
            return;
        };
        let case = Case::new(input);
        let start = Instant::now();
        let plan = case.plan(&Control::default());
        println!(
            "{name}: {} bytes in {:?}",
            plan.extra_bytes,
            start.elapsed()
        );
        assert_eq!((plan.extra_bytes, plan.proved), (least, true), "{name}");
        assert_eq!(plan.stopped, Stopped::Finished);
        kernels::check_with_python(name, Some(&case.order), &plan);
        let bounds = bound::lower_bound(&case.graph, &case.timeline).expect("a bound");
        assert!(bounds.iter().sum::<u64>() <= least);
    }
}

/// A graph that keeps the search busy.
fn busy() -> Case {
    let shape = Shape {
        operations: 400,
        buffers: 150,
        memories: 2,
        capacity: 200,
        largest: 90,
        known: 0,
        single: 0,
    };
    Case::new(random(&mut Random(6), shape))
}

#[test]
fn equal_budgets_give_equal_plans() {
    let case = busy();
    let simple = case.heuristic().extra_bytes;
    for work in [0, 1, 1_000, 30_000, 200_000] {
        let control = |threads| Control {
            work: Some(work),
            threads,
            ..Control::default()
        };
        let plan = case.plan(&control(1));
        assert_eq!(plan, case.plan(&control(2)), "{work} steps");
        assert!(plan.extra_bytes <= simple, "{work} steps");
        assert!(plan.proved || work > 1 || plan.stopped == Stopped::Work);
    }
}

#[test]
fn a_search_stops_when_it_must() {
    let case = busy();
    let late = Control {
        deadline: Some(Instant::now()),
        ..Control::default()
    };
    assert_eq!(case.plan(&late).stopped, Stopped::TimeLimit);
    let soon = Control {
        deadline: Some(Instant::now() + Duration::from_millis(50)),
        ..Control::default()
    };
    let start = Instant::now();
    case.plan(&soon);
    assert!(
        start.elapsed() < Duration::from_secs(5),
        "{:?}",
        start.elapsed()
    );
    let calls = AtomicU64::new(0);
    let stop = |progress: Progress| {
        assert!(progress.lower_bound <= progress.extra_bytes);
        calls.fetch_add(1, Ordering::Relaxed) < 3
    };
    let told = Control {
        progress: Some(&stop),
        ..Control::default()
    };
    assert_eq!(case.plan(&told).stopped, Stopped::Caller);
    assert!(calls.load(Ordering::Relaxed) < 10);
}

#[test]
fn memories_for_one_buffer_at_a_time_are_planned_and_proved() {
    let mut numbers = Random(7);
    for _ in 0..100 {
        let shape = Shape {
            operations: 30,
            buffers: 12,
            single: 100,
            ..Shape::SMALL
        };
        let case = Case::new(random(&mut numbers, shape));
        assert!(case.plan(&Control::default()).proved);
    }
}
