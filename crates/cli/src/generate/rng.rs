//! Numbers that look random and are the same everywhere: whole numbers only, since the last digit
//! of a logarithm depends on the machine.

/// The splitmix64 generator of Steele, Lea and Flood.
pub struct Rng {
    state: u64,
}

impl Rng {
    pub fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// From 0 to `bound` - 1. The bounds here are small beside 2^64, so that no remainder shows.
    pub fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(bound)) >> 64) as u64
    }

    /// From `low` to `high`, both included.
    pub fn between(&mut self, low: u64, high: u64) -> u64 {
        low + self.below(high - low + 1)
    }

    /// True once in `count` times.
    pub fn one_in(&mut self, count: u64) -> bool {
        self.below(count) == 0
    }

    /// One of the values.
    pub fn pick<T: Copy>(&mut self, values: &[T]) -> T {
        values[self.below(values.len() as u64) as usize]
    }

    /// Mostly near `low` and now and then up to `high`: each doubling is half as frequent as the one
    /// before, which is a Pareto distribution of exponent 1.
    pub fn heavy_tailed(&mut self, low: u64, high: u64) -> u64 {
        let mut scale = low;
        while scale < high && self.one_in(2) {
            scale *= 2;
        }
        (scale + self.below(scale)).min(high)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sequence_is_splitmix64s() {
        // The first outputs of the published C code for the seed 1234567.
        let mut rng = Rng::new(1_234_567);
        let first: Vec<u64> = (0..3).map(|_| rng.next()).collect();
        assert_eq!(
            first,
            [
                6_457_827_717_110_365_317,
                3_203_168_211_198_807_973,
                9_817_491_932_198_370_423
            ]
        );
    }

    #[test]
    fn ranges_hold_and_are_used_up() {
        let mut rng = Rng::new(3);
        let drawn: Vec<u64> = (0..1000).map(|_| rng.between(5, 9)).collect();
        assert!((5..=9).all(|value| drawn.contains(&value)));
        assert!(drawn.iter().all(|value| (5..=9).contains(value)));
    }

    #[test]
    fn the_tail_is_heavy_and_ends() {
        let mut rng = Rng::new(4);
        let drawn: Vec<u64> = (0..10_000).map(|_| rng.heavy_tailed(16, 4096)).collect();
        assert!(drawn.iter().all(|value| (16..=4096).contains(value)));
        let below = |bound| drawn.iter().filter(|value| **value < bound).count();
        assert!((4500..5500).contains(&below(32)), "{}", below(32));
        assert!(
            (50..500).contains(&(10_000 - below(1024))),
            "{}",
            below(1024)
        );
    }
}
