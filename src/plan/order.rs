#![forbid(unsafe_code)]
//! Orders of a graph's nodes.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::error::{PlanError, PlanErrorKind};
use super::graph::{Graph, NodeKind};

/// Checks that an order names every node once, and after everything that the node depends on.
///
/// # Errors
/// [`PlanErrorKind::UnknownNode`], [`PlanErrorKind::OrderRepeats`],
/// [`PlanErrorKind::OrderIncomplete`], [`PlanErrorKind::UseOutsideLifetime`] or
/// [`PlanErrorKind::OrderNotTopological`], at the first node of the order that it is found at.
pub fn check_order(graph: &Graph, order: &[u32]) -> Result<(), PlanError> {
    positions(graph, order).map(drop)
}

/// The position of each node in an order, which is checked.
pub(super) fn positions(graph: &Graph, order: &[u32]) -> Result<Vec<u32>, PlanError> {
    const NONE: u32 = u32::MAX;
    let mut position = vec![NONE; graph.len()];
    for (at, &node) in order.iter().enumerate() {
        let Some(slot) = position.get_mut(node as usize) else {
            return Err(PlanError::new(PlanErrorKind::UnknownNode)
                .at(node)
                .about("the order"));
        };
        if *slot != NONE {
            return Err(PlanError::new(PlanErrorKind::OrderRepeats).at(node));
        }
        *slot = at as u32;
    }
    if let Some(node) = position.iter().position(|&at| at == NONE) {
        return Err(PlanError::new(PlanErrorKind::OrderIncomplete)
            .at(node as u32)
            .sizes(graph.len() as u64, order.len() as u64));
    }
    for (at, &node) in order.iter().enumerate() {
        let at = at as u32;
        for usage in graph.uses(node) {
            let (alloc, free) = (graph.alloc(usage.buffer), graph.free(usage.buffer));
            let broken = match () {
                () if position[alloc as usize] > at => alloc,
                () if position[free as usize] < at => free,
                () => continue,
            };
            return Err(graph
                .error(PlanErrorKind::UseOutsideLifetime, usage.buffer)
                .at(node)
                .and(broken));
        }
        for &before in graph.predecessors(node) {
            if position[before as usize] > at {
                if let NodeKind::Free(buffer) = graph.kind(node) {
                    if graph.users(buffer).binary_search(&before).is_ok() {
                        return Err(graph
                            .error(PlanErrorKind::UseOutsideLifetime, buffer)
                            .at(before)
                            .and(node));
                    }
                }
                return Err(PlanError::new(PlanErrorKind::OrderNotTopological)
                    .at(node)
                    .and(before));
            }
        }
    }
    Ok(position)
}

/// The order that frees as soon as it can and allocates as late as it can: of the nodes that wait
/// for nothing a FREE first, then an operation, then an ALLOC, and of these the least id.
///
/// # Errors
/// None for a graph that was validated.
pub fn greedy_order(graph: &Graph) -> Result<Vec<u32>, PlanError> {
    let nodes = graph.len();
    let mut waiting: Vec<usize> = (0..nodes as u32)
        .map(|node| graph.predecessors(node).len())
        .collect();
    let rank = |node: u32| match graph.kind(node) {
        NodeKind::Free(_) => 0u8,
        NodeKind::Operation => 1,
        NodeKind::Alloc(_) => 2,
    };
    let mut ready: BinaryHeap<Reverse<(u8, u32)>> = (0..nodes as u32)
        .filter(|&node| waiting[node as usize] == 0)
        .map(|node| Reverse((rank(node), node)))
        .collect();
    let mut order = Vec::with_capacity(nodes);
    while let Some(Reverse((_, node))) = ready.pop() {
        order.push(node);
        for &next in graph.successors(node) {
            waiting[next as usize] -= 1;
            if waiting[next as usize] == 0 {
                ready.push(Reverse((rank(next), next)));
            }
        }
    }
    match order.len() == nodes {
        true => Ok(order),
        false => Err(PlanError::new(PlanErrorKind::Cycle)),
    }
}
