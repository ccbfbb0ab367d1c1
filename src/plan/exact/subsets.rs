#![forbid(unsafe_code)]
//! Subsets by what they cost.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// The subsets of at most 64 items, the cheapest first, as bits with their cost; the empty set is
/// the first.
///
/// Each set is made from one other: by adding the item after its last, or by moving its last on (E. L.
/// Lawler, "A procedure for computing the k best solutions", Management Science 18, 1972).
#[derive(Debug)]
pub struct Subsets {
    /// Costs and the items that have them, ascending.
    items: Vec<(u128, u32)>,
    /// Cost, the set in bits of `items`, and its last; for all but the empty set.
    waiting: BinaryHeap<Reverse<(u128, u64, usize)>>,
    started: bool,
}

impl Subsets {
    /// The subsets of items with these costs; of more than 64, those of the first 64.
    pub fn new(costs: &[u64]) -> Self {
        let costs = costs.iter().take(64).map(|cost| u128::from(*cost));
        let mut items: Vec<_> = costs.zip(0..).collect();
        items.sort_unstable();
        Self {
            items,
            waiting: BinaryHeap::new(),
            started: false,
        }
    }

    /// The set, in bits of the items as they were given.
    fn translate(&self, set: u64) -> u64 {
        let items = self.items.iter().enumerate();
        let chosen = items.filter(|(at, _)| set >> at & 1 != 0);
        chosen.fold(0, |set, (_, (_, item))| set | 1 << item)
    }
}

impl Iterator for Subsets {
    type Item = (u128, u64);

    fn next(&mut self) -> Option<(u128, u64)> {
        if !self.started {
            self.started = true;
            if let Some((cost, _)) = self.items.first() {
                self.waiting.push(Reverse((*cost, 1, 0)));
            }
            return Some((0, 0));
        }
        let Reverse((cost, set, last)) = self.waiting.pop()?;
        if let Some((more, _)) = self.items.get(last + 1) {
            let next = 1 << (last + 1);
            self.waiting
                .push(Reverse((cost + more, set | next, last + 1)));
            let moved = cost - self.items[last].0 + more;
            self.waiting
                .push(Reverse((moved, set & !(1 << last) | next, last + 1)));
        }
        Some((cost, self.translate(set)))
    }
}

#[cfg(test)]
mod tests {
    use super::Subsets;

    #[test]
    fn every_subset_comes_once_in_the_order_of_cost() {
        let costs = [5, 0, 3, 3, 8, 1];
        let sets: Vec<_> = Subsets::new(&costs).collect();
        assert_eq!(sets.len(), 64);
        assert!(sets.is_sorted_by_key(|(cost, _)| *cost));
        let mut seen: Vec<_> = sets.iter().map(|(_, set)| *set).collect();
        seen.sort_unstable();
        assert_eq!(seen, (0..64).collect::<Vec<u64>>());
        for (cost, set) in sets {
            let sum: u64 = (0..6)
                .filter(|at| set >> at & 1 != 0)
                .map(|at| costs[at])
                .sum();
            assert_eq!(cost, u128::from(sum));
        }
    }
}
