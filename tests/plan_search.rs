//! The third level of the planner: order and spills together.

mod support;

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use luma::plan::check::check_plan;
use luma::plan::{
    Control, Graph, GraphInput, Plan, Progress, Stopped, Timeline, exact, greedy_order, heuristic,
    search,
};
use support::graphs::{Random, Shape, random};
use support::kernels;

fn work(work: u64, seed: u64, threads: usize) -> Control<'static> {
    Control {
        work: Some(work),
        seed,
        threads,
        ..Control::default()
    }
}

fn valid(input: &GraphInput, plan: &Plan) {
    let spills: Vec<(u32, u64)> = plan.spills.iter().map(|s| (s.buffer, s.offset)).collect();
    let report = check_plan(input, None, &plan.order, &plan.offsets, &spills);
    let report = report.expect("the plan is valid");
    assert_eq!(report.extra_bytes, plan.extra_bytes);
    assert_eq!(report.makespan, plan.makespan);
}

#[test]
fn no_plan_is_worse_than_those_of_the_given_order() {
    let mut numbers = Random(4);
    let mut better = 0;
    for _ in 0..150 {
        let shape = Shape {
            operations: 4 + numbers.below(60),
            buffers: 3 + numbers.below(40),
            ..Shape::SMALL
        };
        let input = random(&mut numbers, shape);
        let graph = Graph::new(&input).expect("the graph is valid");
        let order = greedy_order(&graph).expect("a valid graph has an order");
        let timeline = Timeline::new(&graph, &order).expect("the order is valid");
        let control = work(2000, 1, 1);
        let first = heuristic::plan(&graph, &timeline, &control).expect("there is a plan");
        let second = exact::plan(&graph, &timeline, &Control::default()).expect("there is a plan");
        let third = search::plan(&graph, &order, &control).expect("there is a plan");
        valid(&input, &third);
        assert!(third.extra_bytes <= second.extra_bytes.min(first.extra_bytes));
        assert_eq!(third.proved, third.extra_bytes == 0);
        assert_eq!(third.lower_bound, 0);
        better += u32::from(third.extra_bytes < second.extra_bytes);
    }
    assert!(better > 20, "{better}");
}

#[test]
fn equal_work_gives_an_equal_plan_at_any_number_of_threads() {
    let mut numbers = Random(5);
    let shape = Shape {
        operations: 150,
        buffers: 90,
        ..Shape::SMALL
    };
    let input = random(&mut numbers, shape);
    let graph = Graph::new(&input).expect("the graph is valid");
    let order = greedy_order(&graph).expect("a valid graph has an order");
    let plan = |seed, threads| {
        let plan = search::plan(&graph, &order, &work(30_000, seed, threads));
        plan.expect("there is a plan")
    };
    let one = plan(1, 1);
    valid(&input, &one);
    assert_eq!(one.stopped, Stopped::Work);
    for threads in [0, 2, 3, 9] {
        assert_eq!(one, plan(1, threads));
    }
    assert_ne!(one.order, plan(2, 1).order);
}

/// What is reported: the sequence of improvements, with the work at which each came.
fn improvements(graph: &Graph, order: &[u32], threads: usize, until: u64) -> (Vec<Progress>, Plan) {
    let seen = std::sync::Mutex::new(Vec::<Progress>::new());
    let tell = |progress: Progress| {
        let mut seen = seen.lock().expect("no test panics here");
        if seen
            .last()
            .is_none_or(|last| progress.extra_bytes < last.extra_bytes)
        {
            seen.push(progress);
        }
        progress.work < until
    };
    let control = Control {
        threads,
        progress: Some(&tell),
        ..Control::default()
    };
    let plan = search::plan(graph, order, &control).expect("there is a plan");
    (seen.into_inner().expect("no test panics here"), plan)
}

#[test]
fn the_sequence_of_improvements_depends_on_the_work_alone() {
    let mut numbers = Random(6);
    let shape = Shape {
        operations: 120,
        buffers: 80,
        ..Shape::SMALL
    };
    let input = random(&mut numbers, shape);
    let graph = Graph::new(&input).expect("the graph is valid");
    let order = greedy_order(&graph).expect("a valid graph has an order");
    let (long, plan) = improvements(&graph, &order, 1, 40_000);
    assert_eq!(plan.stopped, Stopped::Caller);
    valid(&input, &plan);
    for threads in [1, 2, 4] {
        let (short, _) = improvements(&graph, &order, threads, 10_000);
        let (same, _) = improvements(&graph, &order, threads, 40_000);
        assert_eq!(long, same);
        assert_eq!(short[..], long[..short.len()]);
    }
}

#[test]
fn it_ends_in_time_and_when_told_to() {
    let mut numbers = Random(7);
    let shape = Shape {
        operations: 2000,
        buffers: 1200,
        ..Shape::SMALL
    };
    let input = random(&mut numbers, shape);
    let graph = Graph::new(&input).expect("the graph is valid");
    let order = greedy_order(&graph).expect("a valid graph has an order");
    let began = Instant::now();
    let control = Control {
        deadline: Some(began + Duration::from_millis(500)),
        threads: 2,
        ..Control::default()
    };
    let plan = search::plan(&graph, &order, &control).expect("there is a plan");
    valid(&input, &plan);
    assert_eq!(plan.stopped, Stopped::TimeLimit);
    // Generous: the machine may be busy and the build unoptimised.
    assert!(
        began.elapsed() < Duration::from_secs(20),
        "{:?}",
        began.elapsed()
    );

    // A deadline that has passed still gives a plan, that of the order as it is.
    let control = Control {
        deadline: Some(began),
        ..Control::default()
    };
    let plan = search::plan(&graph, &order, &control).expect("there is a plan");
    valid(&input, &plan);

    let calls = AtomicU64::new(0);
    let tell = |_| calls.fetch_add(1, Ordering::Relaxed) < 2;
    let control = Control {
        progress: Some(&tell),
        ..Control::default()
    };
    let plan = search::plan(&graph, &order, &control).expect("there is a plan");
    valid(&input, &plan);
    assert_eq!(plan.stopped, Stopped::Caller);
    assert_eq!(calls.into_inner(), 3);
}

#[test]
fn nothing_to_move_is_proved_and_ends_at_once() {
    let input = GraphInput::default();
    let graph = Graph::new(&input).expect("the empty graph is valid");
    let plan = search::plan(&graph, &[], &Control::default()).expect("there is a plan");
    assert!(plan.proved);
    assert_eq!(plan.stopped, Stopped::Finished);
    assert!(search::plan(&graph, &[0], &Control::default()).is_err());
}

/// Small budgets: what the search reaches in them is far from what it reaches in the times of the
/// planner's table, and already below every public result.
#[test]
fn the_kernels_are_planned_better_than_in_any_given_order() {
    let below = [
        ("FlashAttention_Case0", 8_000, 1_300),
        ("FlashAttention_Case1", 8_000, 20_000),
        ("Matmul_Case0", 8_000, 16_000),
        ("Matmul_Case1", 800, 262_144),
        ("Conv_Case0", 24_000, 66_828),
    ];
    for (case, budget, most) in below {
        let Some(input) = kernels::load(case) else {
            return;
        };
        let graph = Graph::new(&input).expect("the kernel is valid");
        let order = greedy_order(&graph).expect("a valid graph has an order");
        let plan = search::plan(&graph, &order, &work(budget, 0, 2)).expect("there is a plan");
        valid(&input, &plan);
        assert!(plan.extra_bytes < most, "{case}: {}", plan.extra_bytes);
        kernels::check_with_python(case, None, &plan);
    }
}
