#![forbid(unsafe_code)]
//! Demands raised to what whole gaps can meet.

use crate::plan::bound::flow::Line;

/// The most room of a cut that is looked at, in bits of a set.
const WIDEST: u64 = 1 << 16;
/// The most words of sets that are gone through for one line.
const WORDS: u64 = 1 << 26;

/// Raises each demand until some choice of whole gaps meets it exactly: what is kept is a sum of
/// weights, so that room beyond the largest such sum is of no use. Leaves cuts with very much room as
/// they are.
pub fn tighten(line: &mut Line) {
    let mut words = WORDS;
    let mut crossing: Vec<(u32, u64)> = Vec::new();
    let mut sums = Sums::default();
    let mut next = 0;
    for (cut, demand) in (0..).zip(&mut line.demands) {
        crossing.retain(|(end, _)| *end > cut);
        while let Some(gap) = line.gaps.get(next).filter(|gap| gap.first == cut) {
            crossing.push((gap.end, gap.weight));
            next += 1;
        }
        let total: u64 = crossing.iter().map(|(_, weight)| weight).sum();
        let room = total - *demand;
        let cost = (room / 64 + 1).saturating_mul(crossing.len() as u64);
        if room < WIDEST && cost <= words {
            words -= cost;
            *demand = total - sums.largest(room, crossing.iter().map(|(_, weight)| *weight));
        }
    }
}

/// The sums up to a limit, one bit each.
#[derive(Default)]
struct Sums {
    bits: Vec<u64>,
}

impl Sums {
    /// The largest sum of some of the weights that is at most `limit`.
    fn largest(&mut self, limit: u64, weights: impl Iterator<Item = u64>) -> u64 {
        let len = (limit / 64 + 1) as usize;
        self.bits.clear();
        self.bits.resize(len, 0);
        self.bits[0] = 1;
        for weight in weights.filter(|weight| *weight <= limit) {
            let (skip, shift) = ((weight / 64) as usize, (weight % 64) as u32);
            for at in (skip..len).rev() {
                let mut word = self.bits[at - skip] << shift;
                if shift > 0 && at > skip {
                    word |= self.bits[at - skip - 1] >> (64 - shift);
                }
                self.bits[at] |= word;
            }
        }
        let last = u64::MAX >> (63 - limit % 64);
        self.bits[len - 1] &= last;
        let top = self.bits.iter().rposition(|word| *word != 0).unwrap_or(0);
        let word = self.bits[top].max(1);
        top as u64 * 64 + u64::from(63 - word.leading_zeros())
    }
}

#[cfg(test)]
mod tests {
    use super::Sums;

    #[test]
    fn the_largest_sum_is_found_across_words() {
        let weights: [u64; 9] = [1, 63, 64, 65, 127, 130, 3, 200, 64];
        let sum = |set: u32| {
            (0..9)
                .filter(|at| set >> at & 1 != 0)
                .map(|at| weights[at])
                .sum()
        };
        for limit in 0..800 {
            let sums = (0..1 << 9).map(sum).filter(|sum: &u64| *sum <= limit);
            let found = Sums::default().largest(limit, weights.into_iter());
            assert_eq!(Some(found), sums.max(), "at most {limit}");
        }
    }
}
