//! The lower bound of an order is what a linear program says.

#![cfg(not(miri))]

mod support;

use luma::plan::{Graph, Timeline, bound, greedy_order};
use microlp::{ComparisonOp, OptimizationDirection, Problem};
use support::graphs::{Random, Shape, random};

/// A gap, and between which positions.
struct Gap {
    from: u32,
    to: u32,
    size: u64,
    traffic: u64,
}

impl Gap {
    fn crosses(&self, position: u32) -> bool {
        self.from < position && position < self.to
    }
}

fn gcd(one: u64, other: u64) -> u64 {
    if other == 0 {
        one
    } else {
        gcd(other, one % other)
    }
}

/// The linear program of a memory: a gap is kept by 0 to 1, and what is kept fits at each position of
/// the order. `strict`: a gap that cannot be kept whole anywhere that it must be is not kept at all,
/// and what is left of the room beyond a multiple of the sizes' common divisor is of no use.
fn program(graph: &Graph, timeline: &Timeline, memory: u32, strict: bool) -> f64 {
    let room = graph.room(memory);
    let buffers = || (0..graph.buffers() as u32).filter(|buffer| graph.memory(*buffer) == memory);
    let mut rooms = vec![room; timeline.order().len()];
    let mut is_event = vec![false; rooms.len()];
    let mut gaps = Vec::new();
    for buffer in buffers() {
        let size = graph.footprint(buffer);
        let events = timeline.events(buffer);
        for (at, &event) in events.iter().enumerate() {
            rooms[event as usize] -= size;
            is_event[event as usize] = true;
            if at > 0 && size > 0 {
                gaps.push(Gap {
                    from: events[at - 1],
                    to: event,
                    size,
                    traffic: timeline.gap_traffic(buffer, at - 1),
                });
            }
        }
    }
    let positions = || (0..rooms.len() as u32).filter(|at| is_event[*at as usize]);
    gaps.retain(|gap| positions().any(|at| gap.crosses(at)));
    let mut forced = 0;
    let mut step = 1;
    if strict {
        gaps.retain(|gap| {
            let fits = positions().all(|at| !gap.crosses(at) || gap.size <= rooms[at as usize]);
            forced += if fits { 0 } else { gap.traffic };
            fits
        });
        step = gaps.iter().fold(0, |step, gap| gcd(step, gap.size)).max(1);
    }
    let mut problem = Problem::new(OptimizationDirection::Maximize);
    let kept: Vec<_> = gaps
        .iter()
        .map(|gap| problem.add_var(gap.traffic as f64, (0.0, 1.0)))
        .collect();
    for at in positions() {
        let row: Vec<_> = gaps
            .iter()
            .zip(&kept)
            .filter(|(gap, _)| gap.crosses(at))
            .map(|(gap, kept)| (*kept, gap.size as f64))
            .collect();
        let room = rooms[at as usize] / step * step;
        if !row.is_empty() {
            problem.add_constraint(&row[..], ComparisonOp::Le, room as f64);
        }
    }
    let total: u64 = gaps.iter().map(|gap| gap.traffic).sum::<u64>() + forced;
    let kept = if gaps.is_empty() {
        0.0
    } else {
        problem.solve().expect("a solution").objective()
    };
    total as f64 - kept
}

#[test]
fn the_bound_is_that_of_the_linear_program() {
    let mut numbers = Random(8);
    let (mut spilling, mut above) = (0, 0);
    for round in 0..300 {
        let shape = Shape {
            operations: 5 + numbers.below(60),
            buffers: 4 + numbers.below(30),
            memories: 1 + numbers.below(3),
            capacity: 40,
            largest: 1 + numbers.below(30),
            known: 100 * (round % 2),
            single: 10,
        };
        let mut input = random(&mut numbers, shape);
        if round % 3 == 0 {
            // Sizes with a common divisor, room without it.
            input.buffers.iter_mut().for_each(|buffer| buffer.size *= 6);
            input
                .memories
                .iter_mut()
                .for_each(|memory| memory.capacity = 6 * memory.capacity + 4);
        }
        let graph = Graph::new(&input).expect("a valid graph");
        let order = greedy_order(&graph).expect("no cycle");
        let timeline = Timeline::new(&graph, &order).expect("a topological order");
        let bounds = bound::lower_bound(&graph, &timeline).expect("a bound");
        for (memory, bound) in (0..).zip(bounds) {
            let plain = program(&graph, &timeline, memory, false);
            let strict = program(&graph, &timeline, memory, true);
            assert!(
                (strict - bound as f64).abs() < 1e-4,
                "round {round}: {bound} for {strict}"
            );
            assert!(
                plain <= strict + 1e-4,
                "round {round}: {plain} and {strict}"
            );
            spilling += u32::from(bound > 0);
            above += u32::from(plain + 0.5 < strict);
        }
    }
    println!("{spilling} bounds above 0, {above} above the plain program's");
    assert!(spilling > 100 && above > 10, "{spilling} and {above}");
}
