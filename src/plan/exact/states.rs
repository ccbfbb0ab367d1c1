#![forbid(unsafe_code)]
//! States of a search, and which of them to keep.

use std::cmp::Ordering;

/// All of a state but its set of gaps.
#[derive(Clone, Copy, Debug)]
pub struct State {
    /// What has been spent.
    pub cost: i128,
    /// What is spent in the end at least.
    pub bound: i128,
    /// The weight of the spilled gaps that cross the cut.
    pub weight: u64,
    /// The latest decision.
    pub decision: u32,
}

/// States with their sets of gaps, a bit a gap.
#[derive(Debug)]
pub struct Layer {
    /// Words of a set; at least 1.
    words: usize,
    sets: Vec<u64>,
    states: Vec<State>,
}

/// States that each state is compared with.
const RIVALS: usize = 24;

impl Layer {
    /// An empty layer, for sets of so many bits.
    pub fn new(bits: usize) -> Self {
        Self {
            words: bits / 64 + 1,
            sets: Vec::new(),
            states: Vec::new(),
        }
    }

    pub fn len(&self) -> usize {
        self.states.len()
    }

    pub fn state(&self, at: usize) -> &State {
        &self.states[at]
    }

    pub fn set(&self, at: usize) -> &[u64] {
        &self.sets[at * self.words..][..self.words]
    }

    /// Takes a gap out of every set.
    pub fn forget(&mut self, bit: u32, weight: u64) {
        let (word, mask) = (bit as usize / 64, 1 << (bit % 64));
        for (set, state) in self.sets.chunks_exact_mut(self.words).zip(&mut self.states) {
            if set[word] & mask != 0 {
                set[word] &= !mask;
                state.weight -= weight;
            }
        }
    }

    /// Replaces the latest decision of every state.
    pub fn each_decision(&mut self, by: impl Fn(u32) -> u32) {
        for state in &mut self.states {
            state.decision = by(state.decision);
        }
    }

    pub fn clear(&mut self) {
        self.sets.clear();
        self.states.clear();
    }

    /// Adds a state with the empty set.
    pub fn push_empty(&mut self, state: State) {
        self.sets.resize(self.sets.len() + self.words, 0);
        self.states.push(state);
    }

    /// Adds a state with the set of another layer's, and some gaps more.
    pub fn push(&mut self, set: &[u64], more: impl Iterator<Item = u32>, state: State) {
        let start = self.sets.len();
        self.sets.extend_from_slice(set);
        for bit in more {
            self.sets[start + bit as usize / 64] |= 1 << (bit % 64);
        }
        self.states.push(state);
    }

    /// Keeps of equal sets the cheapest, drops states that another can stand in for, and of the rest
    /// keeps the `width` with the least bounds. Answers the least bound that it had no room for.
    /// `costs` are what it costs to spill each gap.
    pub fn shrink(&mut self, width: usize, costs: &[i128], spare: &mut Self) -> Option<i128> {
        if self.len() == 1 {
            return None;
        }
        let mut order: Vec<u32> = (0..self.len() as u32).collect();
        let by_set = |one: &u32, other: &u32| {
            let (one, other) = (*one as usize, *other as usize);
            self.set(one).cmp(self.set(other))
        };
        order.sort_unstable_by(|one, other| {
            by_set(one, other).then_with(|| self.by_cost(*one, *other))
        });
        order.dedup_by(|one, other| by_set(one, other) == Ordering::Equal);
        order.sort_unstable_by(|one, other| {
            let bound = |at: &u32| self.states[*at as usize].bound;
            bound(one)
                .cmp(&bound(other))
                .then_with(|| by_set(one, other))
        });
        let mut left_out = None;
        spare.clear();
        for &at in &order {
            let at = at as usize;
            let rivals = spare.len().min(RIVALS);
            if (0..rivals).any(|rival| self.is_beaten(at, spare, rival, costs)) {
                continue;
            }
            if spare.len() == width {
                left_out = Some(self.states[at].bound);
                break;
            }
            spare.push(self.set(at), std::iter::empty(), self.states[at]);
        }
        std::mem::swap(self, spare);
        left_out
    }

    fn by_cost(&self, one: u32, other: u32) -> Ordering {
        let key = |at: u32| {
            let state = &self.states[at as usize];
            (state.cost, at)
        };
        key(one).cmp(&key(other))
    }

    /// Whether a rival could spill what only this state has spilled and still have spent no more.
    fn is_beaten(&self, at: usize, rivals: &Self, rival: usize, costs: &[i128]) -> bool {
        let mut left = self.states[at].cost - rivals.states[rival].cost;
        if left < 0 {
            return false;
        }
        let words = self.set(at).iter().zip(rivals.set(rival));
        for (word, (mine, theirs)) in words.enumerate() {
            let mut only = mine & !theirs;
            while only != 0 {
                left -= costs[word * 64 + only.trailing_zeros() as usize];
                if left < 0 {
                    return false;
                }
                only &= only - 1;
            }
        }
        true
    }
}
