#![forbid(unsafe_code)]
//! Which resident of a memory is needed again last.

use super::bits::Bits;
use super::space::NONE;
use crate::plan::graph::{Graph, NodeKind};
use crate::plan::timeline::Timeline;

/// The next events of the residents.
///
/// An event's slot is its rank by position among the events of its group, and groups are laid one
/// after the other: two a memory, for buffers that cost their size if they are spilled before that
/// event and for those that cost twice that. A resident has the slot of its next event set, so that
/// the last slots of a memory's groups are the residents that are needed last for their cost.
#[derive(Clone, Debug)]
pub(super) struct NextUses {
    /// The slot of each event, or [`NONE`] for those that are not told apart.
    slots: Vec<u32>,
    /// The buffer of each slot.
    buffers: Vec<u32>,
    /// Where each group starts, and where the last one ends.
    starts: Vec<usize>,
    set: Bits,
}

impl NextUses {
    /// No buffer is resident yet. Only memories with `contended` are kept track of.
    pub(super) fn new(graph: &Graph, timeline: &Timeline, contended: &[bool]) -> Self {
        let buffers = graph.buffers();
        let group = |buffer: u32, gap: usize| {
            let memory = graph.memory(buffer) as usize;
            let tracked = contended[memory] && graph.footprint(buffer) > 0;
            let costly = timeline.gap_traffic(buffer, gap) > graph.size(buffer);
            tracked.then_some(2 * memory + usize::from(costly))
        };
        let mut starts = vec![0; 2 * graph.memories().len() + 1];
        for buffer in 0..buffers as u32 {
            for gap in 0..timeline.events(buffer).len() - 1 {
                if let Some(group) = group(buffer, gap) {
                    starts[group + 1] += 1;
                }
            }
        }
        for at in 1..starts.len() {
            starts[at] += starts[at - 1];
        }
        let total = starts[starts.len() - 1];
        let mut next = starts.clone();
        let mut slots = vec![NONE; timeline.gaps() + buffers];
        let mut of_slot = vec![NONE; total];
        let mut seen = vec![0; buffers];
        let mut event = |buffer: u32| {
            seen[buffer as usize] += 1;
            let at = seen[buffer as usize];
            if let Some(group) = group(buffer, at - 1) {
                let slot = next[group];
                next[group] += 1;
                slots[timeline.first_gap(buffer) + buffer as usize + at] = slot as u32;
                of_slot[slot] = buffer;
            }
        };
        for &node in timeline.order() {
            match graph.kind(node) {
                NodeKind::Alloc(_) => {}
                NodeKind::Free(buffer) => event(buffer),
                NodeKind::Operation => {
                    for usage in graph.uses(node) {
                        event(usage.buffer);
                    }
                }
            }
        }
        Self {
            slots,
            buffers: of_slot,
            starts,
            set: Bits::new(total),
        }
    }

    /// The event `event` of a buffer is what a resident is needed for next.
    pub(super) fn set(&mut self, timeline: &Timeline, buffer: u32, event: usize) {
        let slot = self.slot(timeline, buffer, event);
        if slot != NONE {
            self.set.insert(slot as usize);
        }
    }

    /// It no longer is, if it was.
    pub(super) fn clear(&mut self, timeline: &Timeline, buffer: u32, event: usize) {
        let slot = self.slot(timeline, buffer, event);
        if slot != NONE {
            self.set.remove(slot as usize);
        }
    }

    fn slot(&self, timeline: &Timeline, buffer: u32, event: usize) -> u32 {
        self.slots[timeline.first_gap(buffer) + buffer as usize + event]
    }

    /// The residents of a memory that are needed last: those that cost their size, or those that
    /// cost twice that.
    pub(super) fn last(&self, memory: u32, costly: bool) -> impl Iterator<Item = u32> {
        let group = 2 * memory as usize + usize::from(costly);
        let (start, mut bound) = (self.starts[group], self.starts[group + 1]);
        std::iter::from_fn(move || {
            bound = self.set.last_below(bound).filter(|&slot| slot >= start)?;
            Some(self.buffers[bound])
        })
    }
}
