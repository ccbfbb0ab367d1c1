#![forbid(unsafe_code)]
//! Which spills of a plan the bytes alone do not ask for.

use crate::plan::graph::Graph;
use crate::plan::timeline::Timeline;

/// Takes gaps out of `spilled`, and says whether there were any to take: as long as the buffers that are resident at each position together
/// take no more than their memory's room: those first that move most for the positions they win.
/// That leaves out of account where they lie, so that a pass must follow, which spills again what does
/// not fit.
///
/// A pass spills a buffer when the space runs out, which may free it longer than was seen then,
/// and it spills for want of adjacent space; both leave spills behind that were not needed.
pub(super) fn restore(graph: &Graph, timeline: &Timeline, spilled: &mut [bool]) -> bool {
    let memories = graph.memories().len();
    let mut members: Vec<Vec<u32>> = vec![Vec::new(); memories];
    for buffer in 0..graph.buffers() as u32 {
        members[graph.memory(buffer) as usize].push(buffer);
    }
    let mut any = false;
    for (memory, members) in members.iter().enumerate() {
        let mut gaps: Vec<(u128, usize, u32, usize)> = Vec::new();
        for &buffer in members {
            let first = timeline.first_gap(buffer);
            let events = timeline.events(buffer);
            for (at, bounds) in events.windows(2).enumerate() {
                if spilled[first + at] {
                    let traffic = u128::from(timeline.gap_traffic(buffer, at));
                    let key = (traffic << 24) / u128::from(bounds[1] - bounds[0]);
                    gaps.push((key, first + at, buffer, at));
                }
            }
        }
        if gaps.is_empty() {
            continue;
        }
        gaps.sort_unstable_by(|one, other| (other.0, one.1).cmp(&(one.0, other.1)));
        let mut load = Load::new(timeline.order().len());
        for &buffer in members {
            let size = graph.footprint(buffer);
            let first = timeline.first_gap(buffer);
            let events = timeline.events(buffer);
            let mut from = events[0];
            for (at, bounds) in events.windows(2).enumerate() {
                if spilled[first + at] {
                    load.add(from, bounds[0], size);
                    from = bounds[1];
                }
            }
            load.add(from, events[events.len() - 1], size);
        }
        let mut load = load.built();
        let room = graph.room(memory as u32);
        for (_, gap, buffer, at) in gaps {
            let events = timeline.events(buffer);
            let (from, to) = (events[at] + 1, events[at + 1]);
            let size = graph.footprint(buffer);
            if from < to && load.most(from, to) > room - size {
                continue;
            }
            load.add(from, to, size);
            spilled[gap] = false;
            any = true;
        }
    }
    any
}

/// Bytes that leave and come at each position, before they are summed up.
struct Load {
    change: Vec<(u64, u64)>,
}

impl Load {
    fn new(positions: usize) -> Self {
        Self {
            change: vec![(0, 0); positions + 1],
        }
    }

    /// Resident at the positions from `from` to `to`, both included.
    fn add(&mut self, from: u32, to: u32, size: u64) {
        self.change[from as usize].0 += size;
        self.change[to as usize + 1].1 += size;
    }

    fn built(self) -> Tree {
        let leaves = (self.change.len() - 1).max(1).next_power_of_two();
        let mut most = vec![0; 2 * leaves];
        let mut now = 0;
        for (at, &(come, leave)) in self.change[..self.change.len() - 1].iter().enumerate() {
            now = now + come - leave;
            most[leaves + at] = now;
        }
        for node in (1..leaves).rev() {
            most[node] = most[2 * node].max(most[2 * node + 1]);
        }
        Tree {
            leaves,
            most,
            more: vec![0; leaves],
        }
    }
}

/// Bytes resident at each position, with the most of any range (a segment tree; what is added
/// to a whole subtree stays at its root).
struct Tree {
    leaves: usize,
    /// Of each subtree, what was added to those above it left out.
    most: Vec<u64>,
    /// Of each subtree: what was added to the whole.
    more: Vec<u64>,
}

impl Tree {
    /// The most at a position from `from` up to `to`.
    fn most(&self, from: u32, to: u32) -> u64 {
        let (mut left, mut right) = (self.leaves + from as usize, self.leaves + to as usize - 1);
        let (mut left_most, mut right_most) = (self.most[left], self.most[right]);
        while left / 2 != right / 2 {
            if left % 2 == 0 {
                left_most = left_most.max(self.most[left + 1]);
            }
            if right % 2 == 1 {
                right_most = right_most.max(self.most[right - 1]);
            }
            (left, right) = (left / 2, right / 2);
            left_most += self.more[left];
            right_most += self.more[right];
        }
        let mut most = left_most.max(right_most);
        while left > 1 {
            left /= 2;
            most += self.more[left];
        }
        most
    }

    /// Adds to the positions from `from` up to `to`.
    fn add(&mut self, from: u32, to: u32, size: u64) {
        if from >= to {
            return;
        }
        let (mut left, mut right) = (self.leaves + from as usize, self.leaves + to as usize - 1);
        self.add_whole(left, size);
        if right != left {
            self.add_whole(right, size);
        }
        while left > 1 {
            if left / 2 != right / 2 {
                if left % 2 == 0 {
                    self.add_whole(left + 1, size);
                }
                if right % 2 == 1 {
                    self.add_whole(right - 1, size);
                }
            }
            (left, right) = (left / 2, right / 2);
            for node in [left, right] {
                self.most[node] =
                    self.most[2 * node].max(self.most[2 * node + 1]) + self.more[node];
            }
        }
    }

    fn add_whole(&mut self, node: usize, size: u64) {
        self.most[node] += size;
        if node < self.leaves {
            self.more[node] += size;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Load;

    #[test]
    fn the_tree_knows_the_most_of_every_range() {
        let positions = 37;
        let mut plain = vec![0u64; positions];
        let mut load = Load::new(positions);
        let mut state = 5u64;
        let mut random = |bound: usize| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            (state >> 33) as usize % bound
        };
        for _ in 0..10 {
            let from = random(positions);
            let to = from + random(positions - from);
            let size = random(100) as u64;
            load.add(from as u32, to as u32, size);
            plain[from..=to].iter_mut().for_each(|bytes| *bytes += size);
        }
        let mut tree = load.built();
        for _ in 0..2_000 {
            let from = random(positions);
            let to = from + 1 + random(positions - from);
            let most = plain[from..to].iter().max().copied();
            assert_eq!(Some(tree.most(from as u32, to as u32)), most);
            let size = random(100) as u64;
            tree.add(from as u32, to as u32, size);
            plain[from..to].iter_mut().for_each(|bytes| *bytes += size);
        }
    }
}
