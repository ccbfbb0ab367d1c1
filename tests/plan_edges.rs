//! The dependencies that spills add: all of them, and those that the others follow from.

#![cfg(not(miri))]

mod support;

use luma::ffi::luma_edge_set_t::{LUMA_EDGES_ALL, LUMA_EDGES_DIRECT};
use luma::plan::{Graph, greedy_order};
use std::collections::BTreeSet;
use support::graphs::{Random, Shape, random};
use support::plan_c::{CGraph, CPlan};

fn edges(plan: &CPlan, set: luma::ffi::luma_edge_set_t) -> BTreeSet<(u32, u32)> {
    let list = plan.edges(set);
    let distinct: BTreeSet<_> = list.iter().map(|edge| (edge.from, edge.to)).collect();
    assert_eq!(distinct.len(), list.len(), "none twice");
    distinct
}

/// Whether `to` can be reached from `from`.
fn leads(edges: &BTreeSet<(u32, u32)>, from: u32, to: u32) -> bool {
    let mut seen = BTreeSet::from([from]);
    let mut open = vec![from];
    while let Some(node) = open.pop() {
        for &(_, next) in edges.range((node, 0)..=(node, u32::MAX)) {
            if seen.insert(next) {
                open.push(next);
            }
        }
    }
    seen.contains(&to)
}

#[test]
fn direct_edges_imply_all_and_are_of_them() {
    let mut numbers = Random(7);
    let mut spills = 0;
    for _ in 0..400 {
        let input = random(&mut numbers, Shape::SMALL);
        let graph = Graph::new(&input).expect("made valid");
        let order = greedy_order(&graph).expect("no cycle");
        let plan = CGraph::new(&input).plan(Some(&order));
        let plan = plan.expect("there is a plan");
        spills += plan.view().spill_count;
        let all = edges(&plan, LUMA_EDGES_ALL);
        let direct = edges(&plan, LUMA_EDGES_DIRECT);
        assert!(direct.is_subset(&all));
        let mut known = direct.clone();
        for node in 0..graph.len() as u32 {
            known.extend(graph.successors(node).iter().map(|&next| (node, next)));
        }
        for (from, to) in all {
            assert!(
                leads(&known, from, to),
                "{from} before {to} does not follow"
            );
        }
        // As many as there are uses and spills, however often each buffer is spilled.
        let view = plan.view();
        assert!(direct.len() <= 2 * input.uses.len() + 3 * view.spill_count);
    }
    assert!(spills > 300, "only {spills} spills");
}
