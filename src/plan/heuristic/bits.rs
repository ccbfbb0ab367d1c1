#![forbid(unsafe_code)]
//! A set of small numbers that is quick to search downwards.

/// A set of numbers below a bound: bits, and above them bits that say which words below hold any.
/// Every operation takes as many steps as there are levels, one for each factor of 64.
#[derive(Clone, Debug)]
pub(super) struct Bits {
    levels: Vec<Vec<u64>>,
}

impl Bits {
    /// An empty set of numbers below `bound`.
    pub(super) fn new(bound: usize) -> Self {
        let mut levels = Vec::new();
        // With room for the bound itself, which `last_below` takes.
        let mut words = bound / 64 + 1;
        loop {
            levels.push(vec![0; words]);
            if words == 1 {
                return Self { levels };
            }
            words = words.div_ceil(64);
        }
    }

    pub(super) fn insert(&mut self, number: usize) {
        let mut number = number;
        for level in &mut self.levels {
            let word = &mut level[number / 64];
            let was_empty = *word == 0;
            *word |= 1 << (number % 64);
            if !was_empty {
                return;
            }
            number /= 64;
        }
    }

    pub(super) fn remove(&mut self, number: usize) {
        let mut number = number;
        for level in &mut self.levels {
            let word = &mut level[number / 64];
            *word &= !(1 << (number % 64));
            if *word != 0 {
                return;
            }
            number /= 64;
        }
    }

    /// The largest member below `bound`, which is at most the set's own bound.
    pub(super) fn last_below(&self, bound: usize) -> Option<usize> {
        let mut bound = bound;
        for (height, level) in self.levels.iter().enumerate() {
            let below = match bound % 64 {
                0 => 0,
                rest => level[bound / 64] & ((1 << rest) - 1),
            };
            if below != 0 {
                let mut number = bound / 64 * 64 + (63 - below.leading_zeros() as usize);
                for level in self.levels[..height].iter().rev() {
                    number = number * 64 + (63 - level[number].leading_zeros() as usize);
                }
                return Some(number);
            }
            bound /= 64;
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::Bits;

    #[test]
    fn a_set_of_bits_is_a_set() {
        let bound = 64 * 64 * 3 + 5;
        let mut bits = Bits::new(bound);
        let mut set = std::collections::BTreeSet::new();
        let mut state = 1u64;
        let mut random = move || {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            (state >> 33) as usize
        };
        for step in 0..20_000 {
            let number = random() % bound;
            match step % 5 {
                0..=1 => {
                    bits.insert(number);
                    set.insert(number);
                }
                2..=3 => {
                    let number = set.range(number..).next().copied().unwrap_or(number);
                    bits.remove(number);
                    set.remove(&number);
                }
                _ => {}
            }
            let below = random() % (bound + 1);
            assert_eq!(
                bits.last_below(below),
                set.range(..below).next_back().copied(),
                "{step}"
            );
        }
    }

    #[test]
    fn the_bound_may_be_a_power_of_the_word() {
        for bound in [0, 1, 63, 64, 65, 4095, 4096, 4097] {
            let mut bits = Bits::new(bound);
            assert_eq!(bits.last_below(bound), None);
            if bound > 0 {
                bits.insert(bound - 1);
                assert_eq!(bits.last_below(bound), Some(bound - 1));
            }
        }
    }
}
