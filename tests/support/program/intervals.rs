//! Sets of addresses, as a sorted list of intervals. Simple rather than fast.

/// Addresses from the first to before the second.
pub type Interval = (u64, u64);

/// Disjoint intervals in order; adjacent ones are joined.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Intervals(Vec<Interval>);

impl Intervals {
    /// The set of some intervals, which may overlap.
    pub fn of(intervals: impl IntoIterator<Item = Interval>) -> Self {
        let mut sorted: Vec<_> = intervals
            .into_iter()
            .filter(|(from, to)| from < to)
            .collect();
        sorted.sort_unstable();
        let mut joined: Vec<Interval> = Vec::new();
        for (from, to) in sorted {
            match joined.last_mut() {
                Some(last) if from <= last.1 => last.1 = last.1.max(to),
                _ => joined.push((from, to)),
            }
        }
        Self(joined)
    }

    pub fn iter(&self) -> impl Iterator<Item = Interval> + '_ {
        self.0.iter().copied()
    }

    /// Addresses in the set.
    pub fn bytes(&self) -> u64 {
        self.iter().map(|(from, to)| to - from).sum()
    }

    pub fn add(&mut self, interval: Interval) {
        *self = Self::of(self.iter().chain([interval]));
    }

    pub fn remove(&mut self, interval: Interval) {
        *self = self.without(&Self::of([interval]));
    }

    /// Those that are not in `others`.
    pub fn without(&self, others: &Self) -> Self {
        let mut left = Vec::new();
        let mut first = 0;
        for (mut from, to) in self.iter() {
            // What ends before this interval ends before all later ones.
            while others.0.get(first).is_some_and(|other| other.1 <= from) {
                first += 1;
            }
            for &(other_from, other_to) in &others.0[first..] {
                if to <= other_from {
                    break;
                }
                left.push((from, other_from.max(from)));
                from = other_to.min(to);
            }
            left.push((from, to));
        }
        Self::of(left)
    }

    /// Those that are in `interval`.
    pub fn within(&self, (from, to): Interval) -> Self {
        Self::of(self.iter().map(|(a, b)| (a.max(from), b.min(to))))
    }

    pub fn touches(&self, (from, to): Interval) -> bool {
        self.iter().any(|(a, b)| a < to && from < b)
    }
}
