#![forbid(unsafe_code)]
//! What is resident when: the spells of each buffer in its memory, and whether they fit beside each
//! other.
//!
//! A buffer with s spills has s + 1 residencies: from its ALLOC or a SPILL_IN to the next SPILL_OUT or
//! its FREE. Those of all buffers are numbered in a row, buffer by buffer.

use super::model::{Lists, Model};
use super::violation::{Class, First, Violation};
use crate::plan::graph::NodeKind;
use std::collections::BTreeMap;

/// A spill where its nodes are.
#[derive(Clone, Copy)]
struct Away {
    out_at: u32,
    in_at: u32,
    spill: u32,
}

/// The spills of every buffer, in the order in which they happen.
pub(super) struct History {
    away: Lists<Away>,
    /// The residency that each spill ends; the next one is what its SPILL_IN begins.
    ended: Vec<usize>,
}

/// What a node does to what is resident.
pub(super) enum Step {
    Runs,
    /// A residency of a buffer begins at an offset.
    Begins(usize, u32, u64),
    /// A residency of a buffer ends.
    Ends(usize, u32),
}

impl History {
    /// Orders the spills, each of which must leave and come back between ALLOC and FREE, after the one
    /// before it.
    pub(super) fn new(
        model: &Model<'_>,
        positions: &[u32],
        spills: &[(u32, u64)],
    ) -> Result<Self, Violation> {
        let aways = (0u32..).zip(spills).map(|(spill, &(buffer, _))| {
            let away = Away {
                out_at: positions[model.out_node(spill) as usize],
                in_at: positions[model.in_node(spill) as usize],
                spill,
            };
            (buffer, away)
        });
        let mut away = Lists::new(model.buffers as usize, aways.clone());
        let mut first = First::new();
        for (buffer, away) in aways {
            check_spill(model, positions, buffer, away, &mut first);
        }
        first.result()?;

        let mut first = First::new();
        let mut ended = vec![0; spills.len()];
        for buffer in 0..model.buffers {
            let residency = buffer as usize + away.start(buffer);
            let list = away.of_mut(buffer);
            list.sort_unstable_by_key(|away| away.out_at);
            for pair in list.windows(2) {
                let (before, next) = (pair[0], pair[1]);
                if next.out_at < before.in_at {
                    first.offer(next.out_at, || {
                        let message = format!(
                            "spill {} takes buffer {buffer} out before spill {} brings it back, at position {}",
                            next.spill, before.spill, before.in_at
                        );
                        Violation::new(Class::NestedSpill, message)
                            .node(model.out_node(next.spill))
                            .buffer(buffer)
                    });
                }
            }
            for (at, away) in list.iter().enumerate() {
                ended[away.spill as usize] = residency + at;
            }
        }
        first.result()?;
        Ok(Self { away, ended })
    }

    /// How many residencies there are.
    pub(super) fn len(&self) -> usize {
        self.away.len() + self.away.keys()
    }

    /// The first residency of a buffer.
    pub(super) fn first(&self, buffer: u32) -> usize {
        buffer as usize + self.away.start(buffer)
    }

    /// The residency that a spill ends.
    pub(super) fn ended(&self, spill: u32) -> usize {
        self.ended[spill as usize]
    }

    /// What a node does.
    pub(super) fn step(
        &self,
        model: &Model<'_>,
        node: u32,
        offsets: &[u64],
        spills: &[(u32, u64)],
    ) -> Step {
        if node >= model.nodes {
            let (spill, is_in) = model.spill_of(node);
            let (buffer, offset) = spills[spill as usize];
            let ended = self.ended(spill);
            return if is_in {
                Step::Begins(ended + 1, buffer, offset)
            } else {
                Step::Ends(ended, buffer)
            };
        }
        match model.input.nodes[node as usize].kind {
            NodeKind::Operation => Step::Runs,
            NodeKind::Alloc(buffer) => {
                Step::Begins(self.first(buffer), buffer, offsets[buffer as usize])
            }
            NodeKind::Free(buffer) => {
                Step::Ends(self.first(buffer) + self.away.of(buffer).len(), buffer)
            }
        }
    }

    /// Finds the residency that each use is in, in the order of `Model::uses`.
    pub(super) fn check_uses(
        &self,
        model: &Model<'_>,
        positions: &[u32],
    ) -> Result<Vec<usize>, Violation> {
        let mut spilled = First::new();
        let mut absent = First::new();
        let mut homes = Vec::with_capacity(model.uses.len());
        for node in 0..model.nodes {
            let at = positions[node as usize];
            for used in model.uses.of(node) {
                let buffer = used.buffer;
                let list = self.away.of(buffer);
                let gone = list.partition_point(|away| away.out_at < at);
                homes.push(self.first(buffer) + gone);
                if let Some(away) = gone.checked_sub(1).map(|last| list[last]) {
                    if at < away.in_at {
                        spilled.offer(at, || {
                            let message = format!(
                                "operation {node} uses buffer {buffer}, which spill {} takes out at position {} and brings back at {}",
                                away.spill, away.out_at, away.in_at
                            );
                            Violation::new(Class::UseWhileSpilled, message)
                                .node(node)
                                .buffer(buffer)
                        });
                    }
                }
                let born = positions[model.alloc[buffer as usize] as usize];
                let dead = positions[model.free[buffer as usize] as usize];
                if at < born || dead < at {
                    absent.offer(at, || {
                        let message = format!(
                            "operation {node} uses buffer {buffer}, which is there from position {born} to {dead}"
                        );
                        Violation::new(Class::UseNotResident, message)
                            .node(node)
                            .buffer(buffer)
                    });
                }
            }
        }
        spilled.result()?;
        absent.result()?;
        Ok(homes)
    }
}

/// ALLOC, SPILL_OUT, SPILL_IN and FREE in this order.
fn check_spill(model: &Model<'_>, positions: &[u32], buffer: u32, away: Away, first: &mut First) {
    let spill = away.spill;
    let nodes = [
        (model.alloc[buffer as usize], "ALLOC"),
        (model.out_node(spill), "SPILL_OUT"),
        (model.in_node(spill), "SPILL_IN"),
        (model.free[buffer as usize], "FREE"),
    ];
    for pair in nodes.windows(2) {
        let ((from, before), (to, after)) = (pair[0], pair[1]);
        let (left, right) = (positions[from as usize], positions[to as usize]);
        if left >= right {
            // The one of the two that the spill added.
            let node = if to >= model.nodes { to } else { from };
            first.offer(positions[node as usize], || {
                let message = format!(
                    "of spill {spill} of buffer {buffer}, {after} is at position {right}, before {before} at {left}"
                );
                Violation::new(Class::SpillEdge, message)
                    .node(node)
                    .buffer(buffer)
            });
        }
    }
}

/// What is in a memory at some point of the order.
#[derive(Default)]
struct Contents {
    /// Start, end and buffer of each resident of more than no bytes.
    ranges: BTreeMap<u64, (u64, u32)>,
    bytes: u128,
    peak: u128,
    count: u64,
}

impl Contents {
    /// A resident that shares bytes with [start, end).
    fn sharing(&self, start: u64, end: u64) -> Option<(u64, u64, u32)> {
        let (&at, &(until, buffer)) = self.ranges.range(..end).next_back()?;
        (until > start).then_some((at, until, buffer))
    }
}

/// Walks the order and sees that residents fit beside each other. Gives the peak of each memory.
pub(super) fn sweep(
    model: &Model<'_>,
    history: &History,
    order: &[u32],
    offsets: &[u64],
    spills: &[(u32, u64)],
) -> Result<Vec<u64>, Violation> {
    let mut memories: Vec<Contents> = Vec::new();
    memories.resize_with(model.input.memories.len(), Contents::default);
    let mut single = First::new();
    let mut capacity = First::new();
    let mut overlap = First::new();
    // Where each residency begins, for its end.
    let mut begun: Vec<u64> = vec![0; history.len()];
    // Ranges tell nothing once two of them share bytes.
    let mut disjoint = true;
    for (position, &node) in (0u32..).zip(order) {
        match history.step(model, node, offsets, spills) {
            Step::Runs => {}
            Step::Ends(residency, buffer) => {
                let contents = &mut memories[model.memory(buffer) as usize];
                let size = model.size(buffer);
                contents.bytes -= u128::from(size);
                contents.count -= 1;
                if size > 0 && disjoint {
                    contents.ranges.remove(&begun[residency]);
                }
            }
            Step::Begins(residency, buffer, offset) => {
                let index = model.memory(buffer) as usize;
                let memory = &model.input.memories[index];
                let contents = &mut memories[index];
                let size = model.size(buffer);
                begun[residency] = offset;
                contents.bytes += u128::from(size);
                contents.peak = contents.peak.max(contents.bytes);
                contents.count += 1;
                let violation = |class, message: String| {
                    Violation::new(class, message).node(node).buffer(buffer)
                };
                let name = &memory.name;
                if memory.single && contents.count > 1 {
                    single.offer(position, || {
                        let message = format!(
                            "buffer {buffer} comes to {name}, which holds one at a time, beside another"
                        );
                        violation(Class::Single, message)
                    });
                }
                if contents.bytes > u128::from(memory.capacity) {
                    capacity.offer(position, || {
                        let (bytes, capacity) = (contents.bytes, memory.capacity);
                        let message = format!(
                            "with buffer {buffer}, {name} has {bytes} resident bytes of {capacity}"
                        );
                        violation(Class::OverCapacity, message)
                    });
                }
                if size == 0 || !disjoint {
                    continue;
                }
                // Offsets were checked to lie inside a memory.
                let end = offset.saturating_add(size);
                if let Some((at, until, other)) = contents.sharing(offset, end) {
                    disjoint = false;
                    overlap.offer(position, || {
                        let message = format!(
                            "in {name}, buffer {buffer} at [{offset}, {end}) and buffer {other} at [{at}, {until}) share bytes"
                        );
                        violation(Class::Overlap, message)
                    });
                } else {
                    contents.ranges.insert(offset, (end, buffer));
                }
            }
        }
    }
    single.result()?;
    capacity.result()?;
    overlap.result()?;
    // No peak is above a capacity.
    let peaks = memories.iter().map(|contents| contents.peak as u64);
    Ok(peaks.collect())
}
