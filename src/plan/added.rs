#![forbid(unsafe_code)]
//! What the spills of a plan add to its graph: the cycles of their nodes, and dependencies.
//!
//! Of a graph of N nodes, spill `k` is the nodes N + 2k (SPILL_OUT) and N + 2k + 1 (SPILL_IN).

use super::error::PlanError;
use super::graph::{Graph, NodeKind};
use super::result::Plan;
use super::timeline::Timeline;

/// Cycles of the SPILL_OUT and the SPILL_IN of each spill.
///
/// # Errors
/// Those of [`check_order`](super::check_order), if the plan is not one of the graph.
pub fn spill_cycles(graph: &Graph, plan: &Plan) -> Result<Vec<(u64, u64)>, PlanError> {
    let nodes = graph.len() as u32;
    let own: Vec<u32> = plan.order.iter().copied().filter(|&n| n < nodes).collect();
    let timeline = Timeline::new(graph, &own)?;
    // Of each buffer: uses seen, which is the gap that a SPILL_OUT would be in.
    let mut gaps = vec![0; graph.buffers()];
    let mut cycles = Vec::with_capacity(plan.spills.len());
    for &node in &plan.order {
        if node < nodes {
            for used in graph.uses(node) {
                gaps[used.buffer as usize] += 1;
            }
        } else if (node - nodes) % 2 == 0 {
            // In the order, spills are met by their numbers.
            let buffer = plan.spills[cycles.len()].buffer;
            cycles.push(timeline.gap_cycles(graph, buffer, gaps[buffer as usize]));
        }
    }
    Ok(cycles)
}

/// Gives every dependency of the spills to `add`, as before and after, spill by spill: ALLOC, every
/// earlier user of the buffer and its previous SPILL_IN before the SPILL_OUT; that before the
/// SPILL_IN; that before every later user and FREE. They can be as many as users times spills.
///
/// # Errors
/// The first of `add`.
pub fn all_edges<E>(
    graph: &Graph,
    plan: &Plan,
    mut add: impl FnMut(u32, u32) -> Result<(), E>,
) -> Result<(), E> {
    let mut positions = vec![0u32; graph.len() + 2 * plan.spills.len()];
    for (position, &node) in (0u32..).zip(&plan.order) {
        positions[node as usize] = position;
    }
    // The SPILL_IN before each spill of a buffer.
    let mut last: Vec<Option<u32>> = vec![None; graph.buffers()];
    let outs = (graph.len() as u32..).step_by(2);
    for (spill, out) in plan.spills.iter().zip(outs) {
        let back = out + 1;
        add(graph.alloc(spill.buffer), out)?;
        if let Some(before) = last[spill.buffer as usize].replace(back) {
            add(before, out)?;
        }
        add(out, back)?;
        for &user in graph.users(spill.buffer) {
            if positions[user as usize] < positions[out as usize] {
                add(user, out)?;
            } else {
                add(back, user)?;
            }
        }
        add(back, graph.free(spill.buffer))?;
    }
    Ok(())
}

/// Gives those of [`all_edges`] to `add` that do not follow from others and from the graph's own, in
/// the plan's order. They are at most as many as uses and spills.
///
/// # Errors
/// The first of `add`.
pub fn direct_edges<E>(
    graph: &Graph,
    plan: &Plan,
    mut add: impl FnMut(u32, u32) -> Result<(), E>,
) -> Result<(), E> {
    let nodes = graph.len() as u32;
    let mut is_spilled = vec![false; graph.buffers()];
    for spill in &plan.spills {
        is_spilled[spill.buffer as usize] = true;
    }
    // Of each buffer: the SPILL_IN that it came back with, and its users since.
    let mut back: Vec<Option<u32>> = vec![None; graph.buffers()];
    let mut since: Vec<Vec<u32>> = vec![Vec::new(); graph.buffers()];
    for &node in &plan.order {
        if node >= nodes {
            let buffer = plan.spills[(node - nodes) as usize / 2].buffer;
            if (node - nodes) % 2 == 1 {
                add(node - 1, node)?;
                back[buffer as usize] = Some(node);
                continue;
            }
            add(back[buffer as usize].unwrap_or(graph.alloc(buffer)), node)?;
            for user in since[buffer as usize].drain(..) {
                add(user, node)?;
            }
            continue;
        }
        if let NodeKind::Free(buffer) = graph.kind(node) {
            if let Some(back) = back[buffer as usize] {
                add(back, node)?;
            }
        }
        for used in graph.uses(node) {
            let buffer = used.buffer as usize;
            if let Some(back) = back[buffer] {
                add(back, node)?;
            }
            if is_spilled[buffer] {
                since[buffer].push(node);
            }
        }
    }
    Ok(())
}
