#![forbid(unsafe_code)]
//! From an order of steps to an order of all nodes, and back.

use super::super::graph::{Graph, NodeKind};
use super::problem::{NONE, Problem};

/// The order of all nodes for an order of steps: an ALLOC just before the first step that needs it,
/// a FREE as soon as it can be.
pub(super) fn expand(graph: &Graph, problem: &Problem, steps: &[u32]) -> Vec<u32> {
    let nodes = graph.len() as u32;
    let mut loose = vec![true; graph.len()];
    for &node in &problem.node {
        loose[node as usize] = false;
    }
    let mut waiting: Vec<u32> = (0..nodes)
        .map(|node| graph.predecessors(node).len() as u32)
        .collect();
    let mut placed = vec![false; graph.len()];
    let mut order = Vec::with_capacity(graph.len());
    let mut place = |node: u32, order: &mut Vec<u32>| {
        if std::mem::replace(&mut placed[node as usize], true) {
            return;
        }
        order.push(node);
        for &next in graph.successors(node) {
            let waiting = &mut waiting[next as usize];
            *waiting -= 1;
            // A FREE that is no step has no successors.
            if *waiting == 0
                && loose[next as usize]
                && matches!(graph.kind(next), NodeKind::Free(_))
            {
                placed[next as usize] = true;
                order.push(next);
            }
        }
    };
    for &step in steps {
        let node = problem.node[step as usize];
        for &need in graph.predecessors(node) {
            if loose[need as usize] {
                place(need, &mut order);
            }
        }
        place(node, &mut order);
    }
    for node in 0..nodes {
        if loose[node as usize] && matches!(graph.kind(node), NodeKind::Alloc(_)) {
            place(node, &mut order);
        }
    }
    order
}

/// The steps in the order that their nodes have in `order`.
pub(super) fn contract(graph: &Graph, problem: &Problem, order: &[u32]) -> Vec<u32> {
    let mut step_of = vec![NONE; graph.len()];
    for (step, &node) in problem.node.iter().enumerate() {
        step_of[node as usize] = step as u32;
    }
    order
        .iter()
        .map(|&node| step_of[node as usize])
        .filter(|&step| step != NONE)
        .collect()
}
