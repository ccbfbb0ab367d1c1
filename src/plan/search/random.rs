#![forbid(unsafe_code)]
//! Random numbers that are the same on every machine: integers, and floating point of additions, products and quotients only.

/// xorshift64* (Vigna: An experimental exploration of Marsaglia's xorshift generators, scrambled, 2016).
#[derive(Debug, Clone)]
pub(super) struct Random(u64);

impl Random {
    pub(super) fn new(seed: u64, stream: u64) -> Random {
        let mut z = seed
            ^ stream
                .wrapping_mul(0xD134_2543_DE82_EF95)
                .wrapping_add(0x9E37_79B9_7F4A_7C15);
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        Random((z ^ (z >> 31)) | 1)
    }

    pub(super) fn bits(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D)
    }

    /// In `0..bound`; `bound` is not 0.
    pub(super) fn below(&mut self, bound: u32) -> u32 {
        (((self.bits() >> 32) * u64::from(bound)) >> 32) as u32
    }

    /// In `1..=bound`, small numbers as likely as large ones by order of magnitude; `bound` is not 0.
    pub(super) fn magnitude(&mut self, bound: u32) -> u32 {
        let power = self.below(bound.ilog2() + 1);
        let low = 1u32 << power;
        let high = (u64::from(low) * 2 - 1).min(u64::from(bound)) as u32;
        low + self.below(high - low + 1)
    }

    /// Exponentially distributed with mean 1.
    pub(super) fn exponential(&mut self) -> f64 {
        let word = self.bits() | 1;
        // The word is 2^(64 - zeros) times a fraction in 1/2..1; -ln of the fraction by the series of the inverse hyperbolic tangent.
        let zeros = word.leading_zeros();
        let fraction = ((word << zeros) >> 11) as f64 / (1u64 << 53) as f64;
        let ratio = (1.0 - fraction) / (1.0 + fraction);
        let square = ratio * ratio;
        let (mut term, mut sum, mut odd) = (ratio, 0.0, 1.0);
        for _ in 0..8 {
            sum += term / odd;
            term *= square;
            odd += 2.0;
        }
        2.0 * sum + f64::from(zeros) * std::f64::consts::LN_2
    }
}
