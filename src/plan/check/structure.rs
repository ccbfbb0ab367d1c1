#![forbid(unsafe_code)]
//! Rules about the plan's arrays by themselves: every node once, offsets that fit, edges kept.

use super::NO_OFFSET;
use super::model::Model;
use super::violation::{Class, First, Violation};

/// Where each node is in the order; every node is there once.
pub(super) fn positions(
    model: &Model<'_>,
    order: &[u32],
    spills: &[(u32, u64)],
) -> Result<Vec<u32>, Violation> {
    const ABSENT: u32 = u32::MAX;
    let mut positions = vec![ABSENT; model.ids as usize];
    let mut unknown = First::new();
    let mut duplicate = First::new();
    for (position, &node) in (0u32..).zip(order) {
        match positions.get_mut(node as usize) {
            None => {
                unknown.offer(position, || {
                    let ids = model.ids;
                    let message = format!(
                        "there is no node {node}: the plan's nodes are 0 to {ids}, less one"
                    );
                    Violation::new(Class::UnknownNode, message).node(node)
                });
                // The rest cannot be better.
                break;
            }
            Some(slot) if *slot == ABSENT => *slot = position,
            Some(slot) => duplicate.offer(position, || {
                let message = format!("{} was at position {slot} before", model.describe(node));
                Violation::new(Class::DuplicateNode, message).node(node)
            }),
        }
    }
    unknown.result()?;
    duplicate.result()?;
    for (node, &position) in (0u32..).zip(&positions) {
        if position == ABSENT {
            let message = format!("{} is not in the order", model.describe(node));
            let mut violation = Violation::new(Class::MissingNode, message).node(node);
            if node >= model.nodes {
                violation.buffer = Some(spills[model.spill_of(node).0 as usize].0);
            }
            return Err(violation);
        }
    }
    Ok(positions)
}

fn check_offset(model: &Model<'_>, buffer: u32, offset: u64, what: &str) -> Result<(), Violation> {
    if offset == NO_OFFSET {
        let message = format!("{what} buffer {buffer} has no offset");
        return Err(Violation::new(Class::MissingOffset, message).buffer(buffer));
    }
    let memory = &model.input.memories[model.memory(buffer) as usize];
    let size = model.size(buffer);
    let fits = offset
        .checked_add(size)
        .is_some_and(|end| end <= memory.capacity);
    if fits {
        return Ok(());
    }
    let message = format!(
        "{what} buffer {buffer} of {size} bytes at offset {offset} does not lie inside {}, which has {}",
        memory.name, memory.capacity
    );
    Err(Violation::new(Class::OffsetRange, message).buffer(buffer))
}

/// Every buffer has places, and they lie inside its memory.
pub(super) fn check_offsets(
    model: &Model<'_>,
    offsets: &[u64],
    spills: &[(u32, u64)],
) -> Result<(), Violation> {
    if offsets.len() > model.buffers as usize {
        let (found, buffers) = (offsets.len(), model.buffers);
        let message = format!("{found} offsets are given, of {buffers} buffers");
        return Err(Violation::new(Class::UnknownBuffer, message).buffer(buffers));
    }
    for (spill, &(buffer, _)) in (0u32..).zip(spills) {
        if buffer >= model.buffers {
            let message = format!("spill {spill} is of buffer {buffer}, which is not there");
            let violation = Violation::new(Class::UnknownBuffer, message).buffer(buffer);
            return Err(violation.node(model.out_node(spill)));
        }
    }
    let reloads = || (0u32..).zip(spills.iter().copied());
    // Missing ones come first, as the classes do.
    let missing = (0..model.buffers).find(|&buffer| {
        offsets
            .get(buffer as usize)
            .is_none_or(|&at| at == NO_OFFSET)
    });
    if let Some(buffer) = missing {
        return check_offset(model, buffer, NO_OFFSET, "at its ALLOC");
    }
    if let Some((spill, (buffer, offset))) = reloads().find(|(_, (_, at))| *at == NO_OFFSET) {
        return check_offset(model, buffer, offset, "after its SPILL_IN")
            .map_err(|violation| violation.node(model.in_node(spill)));
    }
    for (buffer, &offset) in (0u32..).zip(offsets) {
        check_offset(model, buffer, offset, "at its ALLOC")
            .map_err(|violation| violation.node(model.alloc[buffer as usize]))?;
    }
    for (spill, (buffer, offset)) in reloads() {
        check_offset(model, buffer, offset, "after its SPILL_IN")
            .map_err(|violation| violation.node(model.in_node(spill)))?;
    }
    Ok(())
}

/// Every node comes after those that it depends on, and every FREE after its ALLOC.
pub(super) fn check_edges(model: &Model<'_>, positions: &[u32]) -> Result<(), Violation> {
    let lifetimes = model.alloc.iter().copied().zip(model.free.iter().copied());
    let mut first = First::new();
    for (from, to) in model.input.edges.iter().copied().chain(lifetimes) {
        let (before, after) = (positions[from as usize], positions[to as usize]);
        if before >= after {
            first.offer(after, || {
                let message = format!(
                    "{} depends on {}, which is at position {before}",
                    model.describe(to),
                    model.describe(from)
                );
                Violation::new(Class::EdgeOrder, message).node(to)
            });
        }
    }
    first.result()
}

/// Spills are numbered by the position of their SPILL_OUT.
pub(super) fn check_numbering(
    model: &Model<'_>,
    positions: &[u32],
    spills: &[(u32, u64)],
) -> Result<(), Violation> {
    let mut before = None;
    for (spill, &(buffer, _)) in (0u32..).zip(spills) {
        let node = model.out_node(spill);
        let position = positions[node as usize];
        if before.is_some_and(|before| position < before) {
            let message = format!("spill {spill} leaves before spill {}", spill - 1);
            let violation = Violation::new(Class::SpillNumber, message).node(node);
            return Err(violation.buffer(buffer).at(position));
        }
        before = Some(position);
    }
    Ok(())
}

/// The order without the nodes of spills is the given one.
pub(super) fn check_given_order(
    model: &Model<'_>,
    order: &[u32],
    given: &[u32],
) -> Result<(), Violation> {
    let mut expected = given.iter();
    for (position, &node) in (0u32..).zip(order) {
        if node >= model.nodes {
            continue;
        }
        let wanted = expected.next();
        if wanted != Some(&node) {
            let there = wanted.map_or("no node".to_owned(), |wanted| format!("node {wanted}"));
            let message = format!("the given order has {there} where {node} is");
            let violation = Violation::new(Class::OrderChanged, message).node(node);
            return Err(violation.at(position));
        }
    }
    match expected.next() {
        None => Ok(()),
        Some(&node) => {
            let message = format!("the given order goes on with node {node} where the plan's ends");
            Err(Violation::new(Class::OrderChanged, message).node(node))
        }
    }
}
