//! The rules of plans, each by itself and as plainly as can be: what the checker is compared with.
//! Slow, and without any order among the rules.

use luma::plan::check::{Class, NO_OFFSET, check_plan};
use luma::plan::{GraphInput, NodeKind, Plan};
use std::collections::{BTreeMap, BTreeSet};

/// A plan as the checker takes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Arrays {
    pub order: Vec<u32>,
    pub offsets: Vec<u64>,
    pub spills: Vec<(u32, u64)>,
}

impl Arrays {
    pub fn of(plan: &Plan) -> Arrays {
        let spills = plan.spills.iter();
        Arrays {
            order: plan.order.clone(),
            offsets: plan.offsets.clone(),
            spills: spills.map(|spill| (spill.buffer, spill.offset)).collect(),
        }
    }
}

/// The plan is valid, keeps `given` if there is one, and costs what it says.
pub fn assert_valid(input: &GraphInput, given: Option<&[u32]>, plan: &Plan) {
    if let Err(problem) = valid(input, given, plan) {
        panic!("{problem}");
    }
}

/// As [`assert_valid`], with a sentence for what is wrong.
pub fn valid(input: &GraphInput, given: Option<&[u32]>, plan: &Plan) -> Result<(), String> {
    let arrays = Arrays::of(plan);
    let report = check_plan(input, given, &arrays.order, &arrays.offsets, &arrays.spills)
        .map_err(|violation| format!("{violation}: {plan:?}"))?;
    let told = (plan.extra_bytes, plan.spill_cycles, plan.makespan);
    let found = (report.extra_bytes, report.spill_cycles, report.makespan);
    if told != found || plan.peaks != report.peaks {
        return Err(format!(
            "the plan says bytes, cycles, makespan {told:?} and peaks {:?}, the checker {found:?} and {:?}",
            plan.peaks, report.peaks
        ));
    }
    if plan.lower_bound > plan.extra_bytes {
        return Err(format!(
            "the bound {} is above {}",
            plan.lower_bound, plan.extra_bytes
        ));
    }
    Ok(())
}

/// Every rule that a plan breaks, as far as what it breaks lets be told.
pub fn broken(input: &GraphInput, given: Option<&[u32]>, plan: &Arrays) -> BTreeSet<Class> {
    let mut found = BTreeSet::new();
    let nodes = input.nodes.len();
    let ids = nodes + 2 * plan.spills.len();
    let mut at: BTreeMap<usize, usize> = BTreeMap::new();
    for (position, &node) in plan.order.iter().enumerate() {
        if node as usize >= ids {
            found.insert(Class::UnknownNode);
        }
        if at.insert(node as usize, position).is_some() {
            found.insert(Class::DuplicateNode);
        }
    }
    if (0..ids).any(|node| !at.contains_key(&node)) {
        found.insert(Class::MissingNode);
        // Nothing else is compared.
        return found;
    }
    let buffers = input.buffers.len();
    let node_of = |kind: NodeKind| {
        input
            .nodes
            .iter()
            .position(|node| node.kind == kind)
            .unwrap()
    };
    let alloc = |buffer: usize| at[&node_of(NodeKind::Alloc(buffer as u32))];
    let free = |buffer: usize| at[&node_of(NodeKind::Free(buffer as u32))];

    if plan.offsets.len() > buffers {
        found.insert(Class::UnknownBuffer);
    }
    if plan.offsets.len() < buffers {
        found.insert(Class::MissingOffset);
    }
    let firsts = plan.offsets.iter().copied().enumerate();
    let places = firsts.chain(plan.spills.iter().map(|&(b, offset)| (b as usize, offset)));
    for (buffer, offset) in places {
        match input.buffers.get(buffer) {
            None => drop(found.insert(Class::UnknownBuffer)),
            Some(_) if offset == NO_OFFSET => drop(found.insert(Class::MissingOffset)),
            Some(data) => {
                let end = u128::from(offset) + u128::from(data.size);
                if end > u128::from(input.memories[data.memory as usize].capacity) {
                    found.insert(Class::OffsetRange);
                }
            }
        }
    }
    if found.contains(&Class::UnknownBuffer) || found.contains(&Class::MissingOffset) {
        return found;
    }
    if input
        .edges
        .iter()
        .any(|(from, to)| at[&(*from as usize)] >= at[&(*to as usize)])
        || (0..buffers).any(|buffer| alloc(buffer) >= free(buffer))
    {
        found.insert(Class::EdgeOrder);
    }

    // From, to, buffer, offset.
    let mut residents: Vec<(usize, usize, usize, u64)> = Vec::new();
    let mut last_out = None;
    for (number, &(buffer, _)) in plan.spills.iter().enumerate() {
        let (out, back) = (at[&(nodes + 2 * number)], at[&(nodes + 2 * number + 1)]);
        let buffer = buffer as usize;
        if !(alloc(buffer) < out && out < back && back < free(buffer)) {
            found.insert(Class::SpillEdge);
        }
        if last_out.is_some_and(|last| last > out) {
            found.insert(Class::SpillNumber);
        }
        last_out = Some(out);
        for &(node, used) in &input.uses {
            let there = at[&(node as usize)];
            if used.buffer as usize == buffer && out < there && there < back {
                found.insert(Class::UseWhileSpilled);
            }
        }
    }
    for buffer in 0..buffers {
        let spills = plan.spills.iter().enumerate();
        let mut spills: Vec<(usize, usize, u64)> = spills
            .filter(|(_, (of, _))| *of as usize == buffer)
            .map(|(number, &(_, offset))| {
                (
                    at[&(nodes + 2 * number)],
                    at[&(nodes + 2 * number + 1)],
                    offset,
                )
            })
            .collect();
        spills.sort_unstable();
        if spills.windows(2).any(|pair| pair[1].0 < pair[0].1) {
            found.insert(Class::NestedSpill);
        }
        let mut from = (alloc(buffer), plan.offsets[buffer]);
        for (out, back, offset) in spills {
            residents.push((from.0, out, buffer, from.1));
            from = (back, offset);
        }
        residents.push((from.0, free(buffer), buffer, from.1));
    }
    for &(node, used) in &input.uses {
        let there = at[&(node as usize)];
        let buffer = used.buffer as usize;
        if there < alloc(buffer) || free(buffer) < there {
            found.insert(Class::UseNotResident);
        }
    }
    for (index, memory) in input.memories.iter().enumerate() {
        let here: Vec<_> = residents
            .iter()
            .filter(|(_, _, buffer, _)| input.buffers[*buffer].memory as usize == index)
            .collect();
        for one in &here {
            let beside = |other: &(usize, usize, usize, u64)| other.0 <= one.0 && one.0 < other.1;
            let beside: Vec<_> = here.iter().filter(|other| beside(other)).collect();
            let bytes: u128 = beside
                .iter()
                .map(|(_, _, buffer, _)| u128::from(input.buffers[*buffer].size))
                .sum();
            if bytes > u128::from(memory.capacity) {
                found.insert(Class::OverCapacity);
            }
            if memory.single && beside.len() > 1 {
                found.insert(Class::Single);
            }
            let end = |(_, _, buffer, offset): &(usize, usize, usize, u64)| {
                u128::from(*offset) + u128::from(input.buffers[*buffer].size)
            };
            for other in beside {
                let bytes = input.buffers[one.2].size > 0 && input.buffers[other.2].size > 0;
                if *other != *one
                    && bytes
                    && u128::from(one.3) < end(other)
                    && u128::from(other.3) < end(one)
                {
                    found.insert(Class::Overlap);
                }
            }
        }
    }
    if let Some(given) = given {
        let own: Vec<u32> = plan
            .order
            .iter()
            .copied()
            .filter(|&n| (n as usize) < nodes)
            .collect();
        if own != given {
            found.insert(Class::OrderChanged);
        }
    }
    found
}
