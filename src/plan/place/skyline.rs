#![forbid(unsafe_code)]
//! Placing from the bottom up, for inputs of any size.
//!
//! The skyline is the top of what is placed, over the sections. Its lowest valley is filled with
//! what fits between the walls, and raised to the lower wall where nothing does: strip packing by
//! "best fit" (Burke, Kendall, Whitwell, 2004) where the horizontal position of each box is given.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::instance::Item;

/// Which box a valley gets first.
pub(super) enum Choice<'a> {
    /// The leftmost, of these the longest.
    Leftmost,
    /// The first of this list of all boxes.
    First(&'a [u32]),
}

/// Offsets for all items; `None` where one would be out of range.
pub(super) fn skyline(items: &[Item], sections: usize, choice: &Choice<'_>) -> Option<Vec<u64>> {
    let mut boxes = Boxes::new(items, choice);
    let mut line = Line::new(sections);
    let mut offsets = vec![0; items.len()];
    let mut left = items.len();
    while left > 0 {
        let (start, end, height) = line.lowest()?;
        match boxes.take(start, end) {
            Some(id) => {
                let item = items[id as usize];
                offsets[id as usize] = height;
                line.put(start, item.first, item.end, height.checked_add(item.size)?);
                left -= 1;
            }
            None => line.raise(start)?,
        }
    }
    Some(offsets)
}

const NONE: u32 = u32::MAX;

/// The boxes that are not placed, and which of them lies within a valley.
struct Boxes {
    /// By start, longest first.
    by_start: Vec<u32>,
    /// The first place in `by_start` of each section.
    buckets: Vec<u32>,
    /// Least end of each node's boxes; removed ones end at [`NONE`].
    ends: Tournament,
    /// Where each box is in `by_start`.
    places: Vec<u32>,
    ranked: Option<Ranked>,
}

/// A complete binary tree over places with the least value of each subtree.
struct Tournament {
    leaves: usize,
    least: Vec<u32>,
}

impl Tournament {
    fn new(values: impl ExactSizeIterator<Item = u32>) -> Self {
        let leaves = values.len().next_power_of_two().max(1);
        let mut least = vec![NONE; 2 * leaves];
        for (leaf, value) in values.enumerate() {
            least[leaves + leaf] = value;
        }
        for node in (1..leaves).rev() {
            least[node] = least[2 * node].min(least[2 * node + 1]);
        }
        Self { leaves, least }
    }

    fn set(&mut self, place: u32, value: u32) {
        let mut node = self.leaves + place as usize;
        self.least[node] = value;
        while node > 1 {
            node /= 2;
            self.least[node] = self.least[2 * node].min(self.least[2 * node + 1]);
        }
    }

    /// The first place from `from` on whose value is at most `most`.
    fn first(&self, from: u32, most: u32) -> Option<u32> {
        if from as usize >= self.leaves {
            return None;
        }
        let mut node = self.leaves + from as usize;
        while self.least[node] > most {
            // On to the next subtree on the right.
            while node % 2 == 1 {
                node /= 2;
            }
            if node == 0 {
                return None;
            }
            node += 1;
        }
        while node < self.leaves {
            node *= 2;
            if self.least[node] > most {
                node += 1;
            }
        }
        Some((node - self.leaves) as u32)
    }
}

/// The boxes in the order of a list.
struct Ranked {
    list: Vec<u32>,
    ranks: Vec<u32>,
    ends: Tournament,
    /// Largest start below each node, as its complement: least is best in both.
    starts: Tournament,
}

impl Ranked {
    fn new(items: &[Item], list: &[u32]) -> Self {
        let mut ranks = vec![0; items.len()];
        for (rank, &id) in list.iter().enumerate() {
            ranks[id as usize] = rank as u32;
        }
        let starts = list.iter().map(|&id| !items[id as usize].first);
        Self {
            ends: Tournament::new(list.iter().map(|&id| items[id as usize].end)),
            starts: Tournament::new(starts),
            list: list.to_vec(),
            ranks,
        }
    }

    /// The first box of the list within the sections.
    fn first(&self, start: u32, end: u32) -> Option<u32> {
        let mut waiting = [0usize; 66];
        let mut count = 1;
        waiting[0] = 1;
        while count > 0 {
            count -= 1;
            let node = waiting[count];
            if self.ends.least[node] > end || !self.starts.least[node] < start {
                continue;
            }
            if node >= self.ends.leaves {
                return Some(self.list[node - self.ends.leaves]);
            }
            waiting[count] = 2 * node + 1;
            waiting[count + 1] = 2 * node;
            count += 2;
        }
        None
    }

    fn remove(&mut self, id: u32) {
        let rank = self.ranks[id as usize];
        self.ends.set(rank, NONE);
        self.starts.set(rank, NONE);
    }
}

impl Boxes {
    fn new(items: &[Item], choice: &Choice<'_>) -> Self {
        let at = |id: u32| items[id as usize];
        let mut by_start: Vec<u32> = (0..items.len() as u32).collect();
        by_start.sort_unstable_by_key(|&id| {
            let item = at(id);
            (
                item.first,
                item.lower,
                Reverse((item.length, item.size)),
                id,
            )
        });
        let mut places = vec![0; items.len()];
        let mut buckets = Vec::new();
        for (place, &id) in by_start.iter().enumerate() {
            places[id as usize] = place as u32;
            while buckets.len() <= at(id).first as usize {
                buckets.push(place as u32);
            }
        }
        Self {
            ends: Tournament::new(by_start.iter().map(|&id| at(id).end)),
            by_start,
            buckets,
            places,
            ranked: match choice {
                Choice::Leftmost => None,
                Choice::First(list) => Some(Ranked::new(items, list)),
            },
        }
    }

    /// Takes out a box that lies within the sections `start..end`.
    fn take(&mut self, start: u32, end: u32) -> Option<u32> {
        let &from = self.buckets.get(start as usize)?;
        let leftmost = self.ends.first(from, end)?;
        let mut id = self.by_start[leftmost as usize];
        if let Some(ranked) = &mut self.ranked {
            id = ranked.first(start, end)?;
            ranked.remove(id);
        }
        self.ends.set(self.places[id as usize], NONE);
        Some(id)
    }
}

/// The top of what is placed: segments of equal height, each known by its first section.
struct Line {
    height: Vec<u64>,
    /// The section after the segment; 0 where no segment starts.
    end: Vec<u32>,
    /// Where the segment before starts.
    before: Vec<u32>,
    heap: BinaryHeap<Reverse<(u64, u32)>>,
}

impl Line {
    fn new(sections: usize) -> Self {
        let mut line = Self {
            height: vec![0; sections],
            end: vec![0; sections],
            before: vec![NONE; sections],
            heap: BinaryHeap::new(),
        };
        if sections > 0 {
            line.segment(0, sections as u32, 0, NONE);
        }
        line
    }

    fn segment(&mut self, start: u32, end: u32, height: u64, before: u32) {
        self.end[start as usize] = end;
        self.height[start as usize] = height;
        self.before[start as usize] = before;
        if (end as usize) < self.end.len() {
            self.before[end as usize] = start;
        }
        self.heap.push(Reverse((height, start)));
    }

    /// The leftmost of the lowest segments: start, end, height.
    fn lowest(&mut self) -> Option<(u32, u32, u64)> {
        while let Some(&Reverse((height, start))) = self.heap.peek() {
            let end = self.end[start as usize];
            if end != 0 && self.height[start as usize] == height {
                return Some((start, end, height));
            }
            self.heap.pop();
        }
        None
    }

    /// Puts a box on the segment that starts at `start`: it covers `first..last` up to `top`.
    fn put(&mut self, start: u32, first: u32, last: u32, top: u64) {
        let height = self.height[start as usize];
        let end = self.end[start as usize];
        let mut before = self.before[start as usize];
        self.end[start as usize] = 0;
        if first > start {
            self.segment(start, first, height, before);
            before = start;
        }
        if last < end {
            self.segment(last, end, height, first);
        }
        self.segment(first, last, top, before);
        self.merge(first);
    }

    /// Raises a segment to its lower wall.
    fn raise(&mut self, start: u32) -> Option<()> {
        let before = self.before[start as usize];
        let after = self.end[start as usize];
        let left = (before != NONE).then(|| self.height[before as usize]);
        let right = self.height.get(after as usize).copied();
        let wall = match (left, right) {
            (Some(left), Some(right)) => left.min(right),
            (left, right) => left.or(right)?,
        };
        self.height[start as usize] = wall;
        self.heap.push(Reverse((wall, start)));
        self.merge(start);
        Some(())
    }

    /// Joins a segment with neighbours of its height.
    fn merge(&mut self, start: u32) {
        let height = self.height[start as usize];
        let after = self.end[start as usize];
        if (after as usize) < self.end.len() && self.height[after as usize] == height {
            let end = self.end[after as usize];
            self.end[after as usize] = 0;
            self.end[start as usize] = end;
            if (end as usize) < self.end.len() {
                self.before[end as usize] = start;
            }
        }
        let before = self.before[start as usize];
        if before != NONE && self.height[before as usize] == height {
            let end = self.end[start as usize];
            self.end[start as usize] = 0;
            self.end[before as usize] = end;
            if (end as usize) < self.end.len() {
                self.before[end as usize] = before;
            }
        }
    }
}
