//! The heuristic level: every plan is valid, and as good as the planner's table says.

#![cfg(not(miri))]

mod support;

use luma::plan::check::check_plan;
use luma::plan::{
    BufferInput, Control, Graph, GraphInput, Level, MemoryInput, NO_PIPE, NodeInput, NodeKind,
    Options, Plan, SpillCost, Use, greedy_order, plan_spills,
};
use support::graphs::{Random, Shape, chain, random};
use support::kernels::{self, CASES};

/// The plan of the heuristic level for an order, checked.
fn planned(input: &GraphInput, graph: &Graph, order: &[u32]) -> Plan {
    let options = Options::default();
    let plan = plan_spills(graph, order, &options, &Control::default()).expect("there is a plan");
    valid(input, Some(order), &plan);
    plan
}

/// Checks a plan, against an order if that had to be kept.
fn valid(input: &GraphInput, order: Option<&[u32]>, plan: &Plan) {
    let spills: Vec<(u32, u64)> = plan
        .spills
        .iter()
        .map(|spill| (spill.buffer, spill.offset))
        .collect();
    match check_plan(input, order, &plan.order, &plan.offsets, &spills) {
        Ok(report) => {
            assert_eq!(report.extra_bytes, plan.extra_bytes);
            assert_eq!(report.peaks, plan.peaks);
            assert_eq!(report.makespan, plan.makespan);
        }
        Err(violation) => panic!("{violation:?}"),
    }
    assert!(plan.lower_bound <= plan.extra_bytes);
    assert_eq!(plan.proved, plan.lower_bound == plan.extra_bytes);
}

fn by_id(graph: &Graph) -> Vec<u32> {
    (0..graph.len() as u32).collect()
}

#[test]
fn the_kernels_are_planned_as_well_as_the_table_says() {
    // What the table asks for, and where this level is better than that, what it reaches.
    let most = [3_584, 32_512, 34_944, 460_800, 186_384];
    for (case, most) in CASES.into_iter().zip(most) {
        let Some(input) = kernels::load(case) else {
            return;
        };
        let graph = Graph::new(&input).expect("a kernel is valid");
        let greedy = greedy_order(&graph).expect("no cycle");
        let plan = planned(&input, &graph, &greedy);
        assert!(plan.extra_bytes <= most, "{case}: {}", plan.extra_bytes);
        kernels::check_with_python(case, Some(&greedy), &plan);
        let ids = by_id(&graph);
        let plan = planned(&input, &graph, &ids);
        kernels::check_with_python(case, Some(&ids), &plan);
    }
}

#[test]
fn random_graphs_are_planned_validly() {
    let mut numbers = Random(1);
    let mut spills = 0;
    for round in 0..1_500 {
        let shape = match round % 3 {
            0 => Shape::SMALL,
            1 => Shape {
                operations: 60,
                buffers: 40,
                memories: 3,
                capacity: 40,
                largest: 30,
                ..Shape::SMALL
            },
            _ => Shape {
                operations: 100,
                buffers: 60,
                memories: 1,
                capacity: 100,
                largest: 50,
                known: 0,
                single: 0,
            },
        };
        let input = random(&mut numbers, shape);
        let graph = Graph::new(&input).expect("made valid");
        for order in [by_id(&graph), greedy_order(&graph).expect("no cycle")] {
            spills += planned(&input, &graph, &order).spills.len();
        }
    }
    assert!(spills > 5_000, "only {spills} spills: too easy");
}

#[test]
fn equal_input_gives_an_equal_plan() {
    let mut numbers = Random(2);
    for _ in 0..50 {
        let input = random(&mut numbers, Shape::SMALL);
        let graph = Graph::new(&input).expect("made valid");
        let order = by_id(&graph);
        assert_eq!(
            planned(&input, &graph, &order),
            planned(&input, &graph, &order)
        );
    }
}

#[test]
fn with_reorder_the_better_of_two_orders_is_planned() {
    let mut numbers = Random(3);
    let mut changed = 0;
    for _ in 0..200 {
        let input = random(&mut numbers, Shape::SMALL);
        let graph = Graph::new(&input).expect("made valid");
        let order = by_id(&graph);
        let kept = planned(&input, &graph, &order);
        let greedy = greedy_order(&graph).expect("no cycle");
        let other = planned(&input, &graph, &greedy);
        let options = Options {
            level: Level::Heuristic,
            reorder: true,
        };
        let best = plan_spills(&graph, &order, &options, &Control::default()).expect("a plan");
        valid(&input, None, &best);
        assert_eq!(best.extra_bytes, kept.extra_bytes.min(other.extra_bytes));
        assert_eq!(best.lower_bound, 0, "nothing is known of every order");
        changed += u32::from(best.order != kept.order);
    }
    assert!(changed > 50, "only {changed} orders changed");
}

/// A graph in one memory of `capacity` bytes from a script: `+b` is the ALLOC of buffer `b`, `-b` its
/// FREE, and other words are operations with their buffers.
fn script(sizes: &[u64], capacity: u64, single: bool, script: &str) -> GraphInput {
    let mut input = GraphInput {
        memories: vec![MemoryInput {
            name: "M".to_owned(),
            capacity,
            single,
        }],
        buffers: sizes
            .iter()
            .map(|&size| BufferInput { size, memory: 0 })
            .collect(),
        cost: SpillCost::contest(),
        ..GraphInput::default()
    };
    for (node, word) in script.split_whitespace().enumerate() {
        let number = |text: &str| text.parse::<u32>().expect("a buffer");
        let kind = match word.split_at(1) {
            ("+", buffer) => NodeKind::Alloc(number(buffer)),
            ("-", buffer) => NodeKind::Free(number(buffer)),
            _ => {
                for buffer in word.split(',') {
                    let usage = Use {
                        buffer: number(buffer),
                        reads: false,
                        writes: false,
                    };
                    input.uses.push((node as u32, usage));
                }
                NodeKind::Operation
            }
        };
        input.nodes.push(NodeInput {
            kind,
            pipe: NO_PIPE,
            cycles: 1,
            is_copy_in: false,
        });
    }
    input
}

fn planned_script(input: &GraphInput) -> Plan {
    let graph = Graph::new(input).expect("a valid graph");
    planned(input, &graph, &by_id(&graph))
}

#[test]
fn what_is_needed_last_is_spilled() {
    let input = script(&[1; 3], 2, false, "+0 +1 +2 2 0 1 -0 -1 -2");
    let plan = planned_script(&input);
    assert_eq!(plan.spills.len(), 2);
    assert_eq!(plan.spills[0].buffer, 1, "0 is needed before 1");
    assert_eq!(plan.extra_bytes, 4);
}

#[test]
fn a_hole_is_made_of_neighbours() {
    // 4 bytes are wanted of 2 + 2 + 2 + 2: two neighbours go, not two at random.
    let input = script(
        &[2, 2, 2, 2, 4],
        8,
        false,
        "+0 +1 +2 +3 0 2 +4 4 -4 2 0 1 3 -0 -1 -2 -3",
    );
    let plan = planned_script(&input);
    assert_eq!(plan.spills.len(), 2);
    assert_eq!(plan.extra_bytes, 8);
}

#[test]
fn operands_in_each_others_way_are_placed_anew() {
    // Buffer 3 (4 bytes) comes to lie in the middle of 10; then 0 (6 bytes) is needed with it.
    let input = script(
        &[6, 3, 5, 4, 2],
        10,
        false,
        "+0 +1 +2 2 -2 +4 +3 -4 1 -1 0,3 -0 -3",
    );
    let plan = planned_script(&input);
    assert_eq!(plan.peaks, [10]);
    let moved: Vec<u32> = plan.spills.iter().map(|spill| spill.buffer).collect();
    assert!(moved.contains(&0), "{moved:?}");
}

#[test]
fn a_memory_for_one_buffer_holds_one_whatever_the_sizes() {
    let text = "+0 +1 0 1 0 1 -0 -1";
    let together = planned_script(&script(&[1, 0], 100, false, text));
    assert_eq!(together.spills, []);
    let apart = planned_script(&script(&[1, 0], 100, true, text));
    assert_eq!(apart.spills.len(), 6);
    assert_eq!(apart.peaks, [1]);
    assert!(apart.offsets.iter().all(|&offset| offset == 0));
    assert!(apart.proved, "there is no choice");
}

#[test]
fn empty_things_are_legal() {
    for input in [
        GraphInput::default(),
        script(&[], 0, false, ""),
        script(&[0, 0], 0, false, "+0 +1 0,1 -0 -1"),
        script(&[0], 0, true, "+0 0 -0"),
        script(&[7], 7, false, "+0 -0"),
    ] {
        let plan = planned_script(&input);
        assert_eq!(plan.extra_bytes, 0);
        assert!(plan.proved);
    }
}

#[test]
fn sizes_may_be_as_large_as_an_address_space() {
    let half = 1 << 63;
    let input = script(&[half, half - 1], u64::MAX, false, "+0 +1 0,1 -1 -0");
    let plan = planned_script(&input);
    assert_eq!(plan.spills, []);
    assert_eq!(plan.peaks, [u64::MAX]);
    // One that must be spilled, as large as what is moved can be counted.
    let large = (1 << 59) + 1;
    let input = script(&[large; 2], large, false, "+0 0 +1 1 -1 0 -0");
    let plan = planned_script(&input);
    assert_eq!(plan.extra_bytes, 2 * large);
}

#[test]
fn a_million_nodes_in_a_chain_need_no_deep_stack() {
    let small_stack = std::thread::Builder::new().stack_size(2 << 20);
    let thread = small_stack.spawn(|| {
        for sizes in [false, true] {
            let size = |buffer: u32| match sizes {
                true => 1 + u64::from(buffer.wrapping_mul(2_654_435_761) >> 26),
                false => 32,
            };
            let input = chain(330_000, 1_000, size, 32 * 600);
            let graph = Graph::new(&input).expect("a valid graph");
            assert!(graph.len() > 990_000);
            let plan = planned(&input, &graph, &by_id(&graph));
            assert!(plan.spills.len() > 10_000, "{}", plan.spills.len());
        }
    });
    let thread = thread.expect("a thread starts");
    assert!(thread.join().is_ok());
}
