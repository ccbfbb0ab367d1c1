//! Where buffers are, and when: what a plan comes to in each memory.

use luma::plan::{GraphInput, NodeKind};

use super::files::Arrays;

/// A buffer in its memory, from its ALLOC or a SPILL_IN to a SPILL_OUT or its FREE.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stay {
    pub buffer: u32,
    /// Positions in the schedule; it ends with the position `to`.
    pub from: u32,
    pub to: u32,
    pub offset: u64,
    /// It began with a SPILL_IN.
    pub reloaded: bool,
    /// It ends with a SPILL_OUT.
    pub spilled: bool,
}

/// All stays of a valid plan, by where they end.
pub fn stays(input: &GraphInput, plan: &Arrays) -> Vec<Stay> {
    let mut open: Vec<Option<Stay>> = vec![None; input.buffers.len()];
    let mut done = Vec::with_capacity(input.buffers.len() + plan.spills.len());
    let nodes = input.nodes.len();
    let begin = |buffer: u32, from: usize, offset, reloaded| Stay {
        buffer,
        from: from as u32,
        to: from as u32,
        offset,
        reloaded,
        spilled: false,
    };
    for (at, &node) in plan.order.iter().enumerate() {
        let (buffer, starts, by_spill, offset) = match input.nodes.get(node as usize) {
            Some(data) => match data.kind {
                NodeKind::Operation => continue,
                NodeKind::Alloc(buffer) => (buffer, true, false, plan.offsets[buffer as usize]),
                NodeKind::Free(buffer) => (buffer, false, false, 0),
            },
            None => {
                let spill = node as usize - nodes;
                let (buffer, offset) = plan.spills[spill / 2];
                (buffer, spill % 2 == 1, true, offset)
            }
        };
        let slot = &mut open[buffer as usize];
        if starts {
            *slot = Some(begin(buffer, at, offset, by_spill));
        } else if let Some(stay) = slot.take() {
            done.push(Stay {
                to: at as u32,
                spilled: by_spill,
                ..stay
            });
        }
    }
    done
}

/// Whether a COPY_IN uses each buffer, so that it has a copy outside.
pub fn backed(input: &GraphInput) -> Vec<bool> {
    let mut backed = vec![false; input.buffers.len()];
    for (node, usage) in &input.uses {
        backed[usage.buffer as usize] |= input.nodes[*node as usize].is_copy_in;
    }
    backed
}

/// What is in a memory when every buffer stays from its ALLOC to its FREE: the most bytes at once,
/// of each memory.
pub fn live_peaks(input: &GraphInput, order: &[u32]) -> Vec<u128> {
    let mut live = vec![0u128; input.memories.len()];
    let mut peaks = live.clone();
    for &node in order {
        let Some(data) = input.nodes.get(node as usize) else {
            continue;
        };
        match data.kind {
            NodeKind::Operation => {}
            NodeKind::Alloc(buffer) => {
                let buffer = &input.buffers[buffer as usize];
                let memory = buffer.memory as usize;
                live[memory] += u128::from(buffer.size);
                peaks[memory] = peaks[memory].max(live[memory]);
            }
            NodeKind::Free(buffer) => {
                let buffer = &input.buffers[buffer as usize];
                live[buffer.memory as usize] -= u128::from(buffer.size);
            }
        }
    }
    peaks
}
