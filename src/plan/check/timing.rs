#![forbid(unsafe_code)]
//! The makespan of a plan.

use super::model::Model;
use super::residency::{History, Step};
use super::traffic::{Costs, too_large};
use super::violation::Violation;
use std::collections::BTreeMap;

/// The graph's number of no pipe.
const NO_PIPE: u32 = u32::MAX;

/// When the bytes of a memory were last left: pieces that do not overlap, of one time each.
#[derive(Default)]
struct Left {
    /// End and time, by start.
    pieces: BTreeMap<u64, (u64, u64)>,
}

impl Left {
    /// When the last of [start, end) was left; 0 where nothing was.
    fn latest(&self, start: u64, end: u64) -> u64 {
        if start >= end {
            return 0;
        }
        let pieces = self.pieces.range(..end).rev();
        pieces
            .take_while(|(_, (until, _))| *until > start)
            .map(|(_, (_, time))| *time)
            .max()
            .unwrap_or(0)
    }

    /// [start, end) is left now, and was not before `time`: what begins in it waited for the pieces
    /// there, so each is forgotten at the cost of having been made.
    fn leave(&mut self, start: u64, end: u64, time: u64) {
        if start >= end {
            return;
        }
        while let Some((&at, &(until, before))) = self.pieces.range(..end).next_back() {
            if until <= start {
                break;
            }
            self.pieces.remove(&at);
            if until > end {
                self.pieces.insert(end, (until, before));
            }
            if at < start {
                self.pieces.insert(at, (start, before));
                break;
            }
        }
        self.pieces.insert(start, (end, time));
    }
}

/// A residency as far as it has come.
#[derive(Clone, Copy, Default)]
struct Spell {
    offset: u64,
    /// The end of the node that made it.
    ready: u64,
    /// The end of the last node that had to do with it.
    last: u64,
}

/// The cycle in which the last node of a valid plan ends.
pub(super) fn makespan(
    model: &Model<'_>,
    history: &History,
    homes: &[usize],
    costs: &Costs,
    order: &[u32],
    offsets: &[u64],
    spills: &[(u32, u64)],
) -> Result<u64, Violation> {
    let mut left: Vec<Left> = Vec::new();
    left.resize_with(model.input.memories.len(), Left::default);
    let mut spells = vec![Spell::default(); history.len()];
    let mut ends: Vec<u64> = vec![0; model.ids as usize];
    let mut pipes: BTreeMap<u32, u64> = BTreeMap::new();
    let mut makespan = 0;
    for &node in order {
        let (pipe, cycles, mut start) = if node < model.nodes {
            let data = &model.input.nodes[node as usize];
            let before = model.predecessors.of(node).iter();
            let ready = before.map(|&node| ends[node as usize]).max();
            (data.pipe, data.cycles, ready.unwrap_or(0))
        } else {
            let (spill, is_in) = model.spill_of(node);
            let (out, back) = costs.cycles[spill as usize];
            if is_in {
                let gone = ends[model.out_node(spill) as usize];
                (model.input.cost.in_pipe, back, gone)
            } else {
                (model.input.cost.out_pipe, out, 0)
            }
        };
        if pipe != NO_PIPE {
            start = start.max(pipes.get(&pipe).copied().unwrap_or(0));
        }
        let step = history.step(model, node, offsets, spills);
        let used = if node < model.nodes {
            let first = model.uses.start(node);
            &homes[first..first + model.uses.of(node).len()]
        } else {
            &[]
        };
        match step {
            Step::Runs => {
                let ready = used.iter().map(|&home| spells[home].ready).max();
                start = start.max(ready.unwrap_or(0));
            }
            Step::Begins(_, buffer, offset) => {
                let end = offset.saturating_add(model.size(buffer));
                let memory = &left[model.memory(buffer) as usize];
                start = start.max(memory.latest(offset, end));
            }
            Step::Ends(spell, _) => start = start.max(spells[spell].last),
        }
        let end = start
            .checked_add(cycles)
            .ok_or_else(|| too_large("the cycles of the plan").node(node))?;
        match step {
            Step::Runs => {
                for &home in used {
                    spells[home].last = spells[home].last.max(end);
                }
            }
            Step::Begins(spell, _, offset) => {
                spells[spell] = Spell {
                    offset,
                    ready: end,
                    last: end,
                };
            }
            Step::Ends(spell, buffer) => {
                let offset = spells[spell].offset;
                let until = offset.saturating_add(model.size(buffer));
                left[model.memory(buffer) as usize].leave(offset, until, end);
            }
        }
        ends[node as usize] = end;
        if pipe != NO_PIPE {
            pipes.insert(pipe, end);
        }
        makespan = makespan.max(end);
    }
    Ok(makespan)
}
