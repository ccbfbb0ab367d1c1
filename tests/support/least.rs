//! The least traffic of an order, by going through everything: for small graphs.

use luma::plan::{GraphInput, NodeKind};
use std::collections::BTreeMap;

/// Where each buffer of a memory is: its offset, or none while it is not resident.
type Arrangement = Vec<Option<u64>>;

/// Of each memory the fewest bytes that any plan of this order moves.
pub fn least_traffic(input: &GraphInput, order: &[u32]) -> Vec<u64> {
    (0..input.memories.len() as u32)
        .map(|memory| of_memory(input, order, memory))
        .collect()
}

/// States by what they cost; a buffer leaves right after an event or stays until the next.
fn of_memory(input: &GraphInput, order: &[u32], memory: u32) -> u64 {
    let mut states = BTreeMap::from([(vec![None; input.buffers.len()], 0)]);
    // Of each buffer: there is a copy outside, and it is what the buffer holds.
    let mut copied = vec![false; input.buffers.len()];
    for &(node, usage) in &input.uses {
        copied[usage.buffer as usize] |= input.nodes[node as usize].is_copy_in;
    }
    for &node in order {
        let mut needed = Vec::new();
        match input.nodes[node as usize].kind {
            NodeKind::Alloc(buffer) | NodeKind::Free(buffer) => needed.push(buffer),
            NodeKind::Operation => {
                let copies = input.nodes[node as usize].is_copy_in;
                for &(user, usage) in input.uses.iter().filter(|(user, _)| *user == node) {
                    assert_eq!(user, node);
                    needed.push(usage.buffer);
                    let copied = &mut copied[usage.buffer as usize];
                    *copied = copies || (*copied && !usage.writes);
                }
            }
        }
        needed.retain(|buffer| input.buffers[*buffer as usize].memory == memory);
        for &buffer in &needed {
            states = brought(input, memory, &states, buffer);
        }
        let freed = matches!(input.nodes[node as usize].kind, NodeKind::Free(_));
        for &buffer in &needed {
            let size = input.buffers[buffer as usize].size;
            let traffic = if copied[buffer as usize] {
                size
            } else {
                2 * size
            };
            states = left(states, buffer, traffic, freed);
        }
    }
    states.into_values().min().expect("every order has a plan")
}

/// Adds a state, if no cheaper way to it is known.
fn add(states: &mut BTreeMap<Arrangement, u64>, state: Arrangement, cost: u64) {
    let known = states.entry(state).or_insert(cost);
    *known = cost.min(*known);
}

/// The buffer is resident: where it is, or anywhere there is room.
fn brought(
    input: &GraphInput,
    memory: u32,
    states: &BTreeMap<Arrangement, u64>,
    buffer: u32,
) -> BTreeMap<Arrangement, u64> {
    let single = input.memories[memory as usize].single;
    let capacity = input.memories[memory as usize].capacity;
    let size = |buffer: usize| input.buffers[buffer].size;
    let mut next = BTreeMap::new();
    for (state, &cost) in states {
        if state[buffer as usize].is_some() {
            add(&mut next, state.clone(), cost);
            continue;
        }
        let need = size(buffer as usize);
        for offset in 0..=capacity.saturating_sub(need) {
            let is_free = state.iter().enumerate().all(|(other, at)| {
                at.is_none_or(|at| {
                    !single
                        && (need == 0
                            || size(other) == 0
                            || at + size(other) <= offset
                            || offset + need <= at)
                })
            });
            if is_free {
                let mut state = state.clone();
                state[buffer as usize] = Some(offset);
                add(&mut next, state, cost);
            }
            if single || need == 0 {
                break;
            }
        }
    }
    next
}

/// The buffer leaves for good, or stays, or is spilled.
fn left(
    states: BTreeMap<Arrangement, u64>,
    buffer: u32,
    traffic: u64,
    freed: bool,
) -> BTreeMap<Arrangement, u64> {
    let mut next = BTreeMap::new();
    for (mut state, cost) in states {
        if !freed {
            add(&mut next, state.clone(), cost);
        }
        state[buffer as usize] = None;
        add(&mut next, state, cost + if freed { 0 } else { traffic });
    }
    next
}
