#![forbid(unsafe_code)]
//! What a graph must satisfy before anything is planned.

use super::csr::Lists;
use super::error::{PlanError, PlanErrorKind};
use super::graph::{Graph, GraphInput, NodeKind, Use};

/// No node.
const NONE: u32 = u32::MAX;

/// Numbers of things, and memories of buffers.
pub(super) fn counts(input: &GraphInput) -> Result<(), PlanError> {
    for (count, subject) in [
        (input.nodes.len(), "nodes"),
        (input.buffers.len(), "buffers"),
        (input.memories.len(), "memories"),
    ] {
        if count >= NONE as usize {
            return Err(PlanError::new(PlanErrorKind::Overflow)
                .about(subject)
                .sizes(count as u64, u64::from(NONE) - 1));
        }
    }
    for (id, buffer) in input.buffers.iter().enumerate() {
        if buffer.memory as usize >= input.memories.len() {
            return Err(PlanError::new(PlanErrorKind::UnknownMemory)
                .of(id as u32)
                .sizes(u64::from(buffer.memory), input.memories.len() as u64));
        }
    }
    Ok(())
}

/// The ALLOC and the FREE of each buffer.
pub(super) fn lifetimes(input: &GraphInput) -> Result<(Vec<u32>, Vec<u32>), PlanError> {
    let mut alloc = vec![NONE; input.buffers.len()];
    let mut free = alloc.clone();
    for (node, data) in input.nodes.iter().enumerate() {
        let node = node as u32;
        let (list, buffer, twice) = match data.kind {
            NodeKind::Operation => continue,
            NodeKind::Alloc(buffer) => (&mut alloc, buffer, PlanErrorKind::AllocTwice),
            NodeKind::Free(buffer) => (&mut free, buffer, PlanErrorKind::FreeTwice),
        };
        let Some(slot) = list.get_mut(buffer as usize) else {
            return Err(PlanError::new(PlanErrorKind::UnknownBuffer)
                .at(node)
                .of(buffer));
        };
        if *slot != NONE {
            return Err(PlanError::new(twice).at(node).and(*slot).of(buffer));
        }
        *slot = node;
    }
    for buffer in 0..input.buffers.len() {
        for (list, missing) in [
            (&alloc, PlanErrorKind::AllocMissing),
            (&free, PlanErrorKind::FreeMissing),
        ] {
            if list[buffer] == NONE {
                let memory = &input.memories[input.buffers[buffer].memory as usize];
                return Err(PlanError::new(missing)
                    .of(buffer as u32)
                    .within(&memory.name));
            }
        }
    }
    Ok((alloc, free))
}

/// The uses of each node, sorted and each buffer once. Uses of one buffer by one node add up; an
/// unknown one makes the whole unknown.
pub(super) fn uses(input: &GraphInput) -> Result<Lists<Use>, PlanError> {
    for (node, usage) in &input.uses {
        let Some(data) = input.nodes.get(*node as usize) else {
            return Err(PlanError::new(PlanErrorKind::UnknownNode)
                .at(*node)
                .of(usage.buffer));
        };
        if usage.buffer as usize >= input.buffers.len() {
            return Err(PlanError::new(PlanErrorKind::UnknownBuffer)
                .at(*node)
                .of(usage.buffer));
        }
        if data.kind != NodeKind::Operation {
            return Err(PlanError::new(PlanErrorKind::UseByCacheNode)
                .at(*node)
                .of(usage.buffer));
        }
    }
    let mut lists = Lists::new(input.nodes.len(), || input.uses.iter().copied());
    lists.tidy(
        |usage| usage.buffer,
        |one, other| {
            let same = one.buffer == other.buffer;
            if same {
                let known = (one.reads || one.writes) && (other.reads || other.writes);
                one.reads = known && (one.reads || other.reads);
                one.writes = known && (one.writes || other.writes);
            }
            same
        },
    );
    Ok(lists)
}

/// Successors and predecessors of each node, with ALLOC before use before FREE, free of cycles.
pub(super) fn dependencies(
    input: &GraphInput,
    users: &Lists<u32>,
    alloc: &[u32],
    free: &[u32],
) -> Result<(Lists<u32>, Lists<u32>), PlanError> {
    let nodes = input.nodes.len();
    for &(from, to) in &input.edges {
        for (node, other) in [(from, to), (to, from)] {
            if node as usize >= nodes {
                return Err(PlanError::new(PlanErrorKind::UnknownNode)
                    .at(node)
                    .and(other)
                    .about("an edge"));
            }
        }
    }
    let implied = || {
        users.iter().enumerate().flat_map(|(buffer, users)| {
            let (alloc, free) = (alloc[buffer], free[buffer]);
            users
                .iter()
                .flat_map(move |&user| [(alloc, user), (user, free)])
                .chain([(alloc, free)])
        })
    };
    let all = || input.edges.iter().copied().chain(implied());
    let mut successors = Lists::new(nodes, all);
    successors.tidy(|node| *node, |one, other| one == other);
    // By ascending first node, so that these lists are tidy too.
    let predecessors = Lists::new(nodes, || {
        successors
            .iter()
            .zip(0..)
            .flat_map(|(list, from)| list.iter().map(move |&to| (to, from)))
    });
    if topological(nodes, &successors, &predecessors).is_ok() {
        return Ok((successors, predecessors));
    }
    // Is it the caller's edges that go round, or do they contradict a lifetime?
    let edges = || input.edges.iter().copied();
    let successors = Lists::new(nodes, edges);
    let predecessors = Lists::new(nodes, || edges().map(|(from, to)| (to, from)));
    let order = match topological(nodes, &successors, &predecessors) {
        Ok(order) => order,
        Err(node) => return Err(PlanError::new(PlanErrorKind::Cycle).at(node)),
    };
    let mut position = vec![0; nodes];
    for (at, &node) in order.iter().enumerate() {
        position[node as usize] = at;
    }
    let outside = |buffer: usize, user: u32| {
        PlanError::new(PlanErrorKind::UseOutsideLifetime)
            .at(user)
            .of(buffer as u32)
            .within(&input.memories[input.buffers[buffer].memory as usize].name)
    };
    for (buffer, users) in users.iter().enumerate() {
        let (alloc, free) = (alloc[buffer], free[buffer]);
        for &user in users {
            let at = position[user as usize];
            if at < position[alloc as usize] {
                return Err(outside(buffer, user).and(alloc));
            }
            if at > position[free as usize] {
                return Err(outside(buffer, user).and(free));
            }
        }
        if position[free as usize] < position[alloc as usize] {
            return Err(PlanError::new(PlanErrorKind::Cycle)
                .at(alloc)
                .and(free)
                .of(buffer as u32)
                .about("FREE before ALLOC"));
        }
    }
    Err(PlanError::new(PlanErrorKind::Internal).about("a cycle that no edge explains"))
}

/// A topological order, or a node that is on a cycle.
fn topological(
    nodes: usize,
    successors: &Lists<u32>,
    predecessors: &Lists<u32>,
) -> Result<Vec<u32>, u32> {
    let ascending = |(list, node): (&[u32], u32)| list.iter().all(|&next| next > node);
    if successors.iter().zip(0..).all(ascending) {
        return Ok((0..nodes as u32).collect());
    }
    let mut waiting: Vec<usize> = predecessors.iter().map(<[u32]>::len).collect();
    let mut order: Vec<u32> = (0..nodes as u32)
        .filter(|&node| waiting[node as usize] == 0)
        .collect();
    let mut at = 0;
    while at < order.len() {
        for &next in successors.list(order[at]) {
            waiting[next as usize] -= 1;
            if waiting[next as usize] == 0 {
                order.push(next);
            }
        }
        at += 1;
    }
    let Some(stuck) = (0..nodes).find(|&node| waiting[node] > 0) else {
        return Ok(order);
    };
    // Every node that still waits has a predecessor that does: so many steps back lead onto a
    // cycle.
    let mut node = stuck as u32;
    for _ in 0..nodes {
        let back = predecessors.list(node).iter();
        let Some(&next) = back.into_iter().find(|&&next| waiting[next as usize] > 0) else {
            break;
        };
        node = next;
    }
    Err(node)
}

/// Each buffer fits, and the buffers of each operation fit together.
pub(super) fn sizes(graph: &Graph) -> Result<(), PlanError> {
    for buffer in 0..graph.buffers() as u32 {
        let capacity = graph.memories()[graph.memory(buffer) as usize].capacity;
        if graph.size(buffer) > capacity {
            return Err(graph
                .error(PlanErrorKind::BufferTooLarge, buffer)
                .at(graph.alloc(buffer))
                .sizes(graph.size(buffer), capacity));
        }
    }
    let mut taken = vec![0u128; graph.memories().len()];
    for node in 0..graph.len() as u32 {
        let uses = graph.uses(node);
        for usage in uses {
            let memory = graph.memory(usage.buffer);
            let taken = &mut taken[memory as usize];
            *taken += u128::from(graph.footprint(usage.buffer));
            if *taken > u128::from(graph.room(memory)) {
                // In a memory for one buffer at a time these are numbers of buffers.
                let needed = uses.iter().map(|usage| usage.buffer);
                let needed = needed
                    .filter(|&buffer| graph.memory(buffer) == memory)
                    .map(|buffer| u128::from(graph.footprint(buffer)))
                    .sum::<u128>();
                return Err(graph
                    .error(PlanErrorKind::OperandsTooLarge, usage.buffer)
                    .at(node)
                    .sizes(
                        u64::try_from(needed).unwrap_or(u64::MAX),
                        graph.room(memory),
                    ));
            }
        }
        for usage in uses {
            taken[graph.memory(usage.buffer) as usize] = 0;
        }
    }
    Ok(())
}

/// Whatever a plan adds up fits its integer.
pub(super) fn sums(graph: &Graph) -> Result<(), PlanError> {
    let mut bytes = vec![0u128; graph.memories().len()];
    for buffer in 0..graph.buffers() as u32 {
        bytes[graph.memory(buffer) as usize] += u128::from(graph.footprint(buffer));
    }
    let cost = graph.cost();
    let mut traffic = 0u128;
    let mut cycles: u128 = (0..graph.len() as u32)
        .map(|node| u128::from(graph.cycles(node)))
        .sum();
    let mut ids = graph.len() as u128;
    for buffer in 0..graph.buffers() as u32 {
        let memory = graph.memory(buffer);
        if bytes[memory as usize] <= u128::from(graph.room(memory)) {
            // Everything fits at once: nothing is ever spilled here.
            continue;
        }
        let gaps = graph.users(buffer).len() as u128 + 1;
        let size = u128::from(graph.size(buffer));
        let each_way = u128::from(cost.out_per_byte)
            .saturating_mul(size)
            .saturating_add(u128::from(cost.in_per_byte).saturating_mul(size))
            .saturating_add(u128::from(cost.out_fixed) + u128::from(cost.in_fixed));
        traffic = traffic.saturating_add(2 * size * gaps);
        cycles = cycles.saturating_add(each_way.saturating_mul(gaps));
        ids += 2 * gaps;
        for (sum, limit, subject) in [
            (traffic, i64::MAX as u64, "bytes that spills may move"),
            (cycles, u64::MAX, "cycles that spills may take"),
            (ids, u64::from(u32::MAX), "ids of nodes and spills"),
        ] {
            if sum > u128::from(limit) {
                return Err(graph
                    .error(PlanErrorKind::Overflow, buffer)
                    .at(graph.alloc(buffer))
                    .about(subject)
                    .sizes(u64::try_from(sum).unwrap_or(u64::MAX), limit));
            }
        }
    }
    if cycles > u128::from(u64::MAX) {
        return Err(PlanError::new(PlanErrorKind::Overflow)
            .about("cycles of all nodes")
            .sizes(u64::MAX, u64::MAX));
    }
    Ok(())
}
