#![forbid(unsafe_code)]
//! The parts of the search against simpler versions of themselves.

use super::super::graph::{
    BufferInput, Graph, GraphInput, MemoryInput, NO_PIPE, NodeInput, NodeKind, SpillCost, Use,
};
use super::super::order::{check_order, greedy_order};
use super::decode::Decoder;
use super::expand::{contract, expand};
use super::moves::Shuffle;
use super::pricer::Pricer;
use super::problem::Problem;
use super::random::Random;
use super::segments::cut;

/// Operations in a row on random buffers, with a few more dependencies, some of them of cache nodes.
fn graph(random: &mut Random, operations: u32, buffers: u32) -> Graph {
    let memories = (0..2)
        .map(|at| MemoryInput {
            name: format!("M{at}"),
            capacity: 30 + u64::from(random.below(30)),
            single: random.below(8) == 0,
        })
        .collect();
    let mut input = GraphInput {
        memories,
        cost: SpillCost::contest(),
        ..GraphInput::default()
    };
    let node = |kind, is_copy_in| NodeInput {
        kind,
        pipe: NO_PIPE,
        cycles: 1,
        is_copy_in,
    };
    for buffer in 0..buffers {
        let (size, memory) = (u64::from(random.below(10)), random.below(2));
        input.buffers.push(BufferInput { size, memory });
        input.nodes.push(node(NodeKind::Alloc(buffer), false));
    }
    for operation in 0..operations {
        let id = input.nodes.len() as u32;
        input
            .nodes
            .push(node(NodeKind::Operation, random.below(4) == 0));
        let mut single = [false; 2];
        for _ in 0..random.below(4) {
            let buffer = random.below(buffers);
            let memory = input.buffers[buffer as usize].memory as usize;
            if input.memories[memory].single && std::mem::replace(&mut single[memory], true) {
                continue;
            }
            let writes = random.below(3) == 0;
            input.uses.push((
                id,
                Use {
                    buffer,
                    reads: writes || random.below(2) == 0,
                    writes,
                },
            ));
        }
        if operation > 0 {
            for _ in 0..random.below(3) {
                input.edges.push((buffers + random.below(operation), id));
            }
        }
        if random.below(10) == 0 {
            // An ALLOC that waits for an operation that all of its buffer's users follow.
            let buffer = random.below(buffers);
            if input.uses.iter().all(|&(_, usage)| usage.buffer != buffer) {
                input.edges.push((id, buffer));
            }
        }
    }
    for buffer in 0..buffers {
        input.nodes.push(node(NodeKind::Free(buffer), false));
    }
    Graph::new(&input).expect("the graph is valid")
}

fn problem(random: &mut Random, operations: u32, buffers: u32) -> (Graph, Problem, Vec<u32>) {
    let graph = graph(random, operations, buffers);
    let problem = Problem::new(&graph);
    let order = greedy_order(&graph).expect("a valid graph has an order");
    let steps = contract(&graph, &problem, &order);
    (graph, problem, steps)
}

/// A change of `order` that keeps the dependencies: where it starts, and the steps.
fn change(problem: &Problem, order: &[u32], random: &mut Random) -> Option<(u32, Vec<u32>)> {
    let mut shuffle = Shuffle::default();
    if !shuffle.draw(random, order.len()) {
        return None;
    }
    let mut pos = vec![0; order.len()];
    for (at, &step) in order.iter().enumerate() {
        pos[step as usize] = at as u32;
    }
    let wanted: Vec<u32> = shuffle
        .from
        .iter()
        .map(|&place| order[place as usize])
        .collect();
    let mut decoder = Decoder::new(problem);
    let mut steps = Vec::new();
    decoder.begin();
    decoder.add(problem, &pos, shuffle.start as u32, &wanted, &mut steps);
    Some((shuffle.start as u32, steps))
}

#[test]
fn a_changed_order_is_priced_as_if_it_were_new() {
    let mut random = Random::new(1, 0);
    let mut moved = 0;
    for case in 0..60 {
        let (_, problem, steps) = problem(&mut random, 20 + case * 7, 10 + case * 2);
        let rule = random.below(3) as usize;
        let mut pricer = Pricer::new(&problem, &steps, rule, None).expect("every step fits");
        for _ in 0..200 {
            let order = pricer.line.order.clone();
            let Some((start, steps)) = change(&problem, &order, &mut random) else {
                continue;
            };
            let limit = pricer.total() + u64::from(random.below(60));
            let mut wanted = order.clone();
            wanted[start as usize..start as usize + steps.len()].copy_from_slice(&steps);
            let kept = pricer.attempt(&problem, start, &steps, limit);
            let fresh = Pricer::new(&problem, &wanted, rule, None).expect("every step fits");
            assert_eq!(kept, fresh.total() <= limit);
            assert_eq!(pricer.line.order, if kept { wanted } else { order });
            if kept {
                assert_eq!(pricer.total(), fresh.total());
                moved += 1;
            }
        }
        let fresh = Pricer::new(&problem, &pricer.line.order, rule, None).expect("every step fits");
        assert_eq!(pricer.total(), fresh.total());
        assert_eq!(pricer.line.next, fresh.line.next);
        assert_eq!(pricer.line.prev, fresh.line.prev);
        assert_eq!(pricer.line.dirty, fresh.line.dirty);
    }
    assert!(moved > 1500, "{moved}");
}

#[test]
fn an_order_of_steps_becomes_an_order_of_nodes_and_back() {
    let mut random = Random::new(2, 0);
    for case in 0..100 {
        let (graph, problem, mut steps) = problem(&mut random, 5 + case, 3 + case / 2);
        for _ in 0..5 {
            if let Some((start, part)) = change(&problem, &steps, &mut random) {
                steps[start as usize..start as usize + part.len()].copy_from_slice(&part);
            }
            let order = expand(&graph, &problem, &steps);
            check_order(&graph, &order).expect("the order is topological and complete");
            assert_eq!(contract(&graph, &problem, &order), steps);
        }
    }
}

#[test]
fn every_shuffle_keeps_every_place() {
    let mut random = Random::new(3, 0);
    let mut shuffle = Shuffle::default();
    for _ in 0..20_000 {
        let places = 2 + random.below(40) as usize;
        let drawn = match random.below(3) {
            0 => {
                let last = random.below(places as u32 - 1) as usize;
                let next = last + 1 + random.below((places - last - 1) as u32) as usize;
                shuffle.close(&mut random, places, last, next)
            }
            _ => shuffle.draw(&mut random, places),
        };
        if drawn {
            let mut from = shuffle.from.clone();
            from.sort_unstable();
            let end = shuffle.start + from.len();
            assert!(end <= places);
            assert!(from.into_iter().eq(shuffle.start as u32..end as u32));
        }
    }
}

#[test]
fn segments_are_the_order_in_pieces() {
    let mut random = Random::new(4, 0);
    for reach in [1, 4, 30] {
        let (_, problem, steps) = problem(&mut random, 200, 80);
        assert_eq!(cut(&problem, &steps, reach).concat(), steps);
    }
}

#[test]
fn random_numbers_are_as_they_say() {
    let mut random = Random::new(5, 0);
    let mut sum = 0.0;
    for _ in 0..100_000 {
        let bound = 1 + random.below(1000);
        assert!(random.below(bound) < bound);
        assert!((1..=bound).contains(&random.magnitude(bound)));
        let more = random.exponential();
        assert!((0.0..45.0).contains(&more));
        sum += more;
    }
    assert!((sum / 100_000.0 - 1.0).abs() < 0.02, "{sum}");
    // The same on every machine.
    assert_eq!(Random::new(7, 1).bits(), Random::new(7, 1).bits());
    assert_ne!(Random::new(7, 1).bits(), Random::new(7, 2).bits());
}
