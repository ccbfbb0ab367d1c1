#![forbid(unsafe_code)]
//! How much to ask a backend for, and when a block is split.

use super::bins::Ties;
use crate::size::{GRAIN, round_down, round_up};

const MIB: u64 = 1 << 20;
/// Growth is counted in steps of this many bytes where the backend has no pages of its own.
pub const STEP: u64 = 2 * MIB;
/// No step is larger than this, unless the request is.
pub const LARGEST_STEP: u64 = 32 * MIB;

/// How a pool takes memory from its backend.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Growth {
    /// One segment of all there is.
    Fixed,
    /// Each segment is twice the one before; smaller by tenths where the backend refuses
    /// (XLA's `BFCAllocator::Extend`).
    Doubling,
    /// Each segment is the request, rounded up to the smallest segment (luma-cuda 0.3.2).
    Exact,
    /// The request rounded up to 2 MiB; for small requests up to an eighth of what is held.
    Proportional,
    /// Ranges of addresses that grow by pages; `Proportional` where the backend has no pages.
    Paged,
}

/// The rules of a pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Policy {
    /// How it grows.
    pub growth: Growth,
    /// The smallest segment in bytes; the first one when doubling.
    pub min_segment: u64,
    /// The smallest rest that is split off, in bytes.
    pub min_split: u64,
    /// Whether a chunk of at least twice the request is split whatever the rest.
    pub split_when_double: bool,
    /// Which of several chunks of the best size is used.
    pub ties: Ties,
    /// Whether wholly free segments are given back when the backend refuses.
    pub release_on_failure: bool,
    /// Whether a block is a whole segment: none is split, and none serves a request of which it is not a good
    /// fit.
    pub whole: bool,
}

impl Policy {
    /// luma's own choice.
    pub const DEFAULT: Self = Self {
        growth: Growth::Paged,
        min_segment: STEP,
        min_split: GRAIN,
        split_when_double: false,
        ties: Ties::Any,
        release_on_failure: true,
        whole: false,
    };

    /// XLA's `BFCAllocator` with growth, without garbage collection.
    pub const XLA: Self = Self {
        growth: Growth::Doubling,
        min_segment: 2 * MIB,
        min_split: 128 * MIB,
        split_when_double: true,
        ties: Ties::LowestAddress,
        release_on_failure: false,
        whole: false,
    };

    /// luma-cuda 0.3.2.
    pub const LUMA_0_3: Self = Self {
        growth: Growth::Exact,
        min_segment: MIB,
        min_split: GRAIN,
        split_when_double: false,
        ties: Ties::Any,
        release_on_failure: true,
        whole: false,
    };

    /// Whether a chunk of `size` bytes is split when `wanted` of them are handed out.
    #[inline]
    pub fn splits(&self, size: u64, wanted: u64) -> bool {
        let rest = size - wanted;
        rest >= self.min_split || (self.split_when_double && rest >= wanted)
    }

    /// Whether a chunk of `size` bytes, which is enough, is a good fit for `wanted`.
    #[inline]
    pub fn fits(&self, size: u64, wanted: u64) -> bool {
        !self.whole || size - wanted <= self.min_segment.max(wanted / 8)
    }

    /// Whether a refusal makes all wholly free segments go at once, as in XLA, or only as many as are
    /// missing.
    pub fn releases_all_at_once(&self) -> bool {
        matches!(self.growth, Growth::Fixed | Growth::Doubling)
    }

    /// How many bytes to map at once in a range, when `reserved` are held.
    pub fn page_step(&self, reserved: u64) -> u64 {
        round_down(reserved / 8, STEP).clamp(STEP, LARGEST_STEP)
    }
}

/// The sizes to ask a backend for, one after the other, until it grants one.
#[derive(Debug)]
pub struct Segmenter {
    policy: Policy,
    /// The next segment when doubling.
    next: u64,
}

/// A row of attempts for one request.
#[derive(Debug)]
pub struct Attempts {
    /// What the request needs.
    need: u64,
    /// What to ask for now.
    pub size: u64,
    /// Whether the request itself made the next segment larger.
    doubled: bool,
}

impl Segmenter {
    /// Starts with the smallest segment.
    pub fn new(policy: Policy) -> Self {
        Self {
            policy,
            next: policy.min_segment,
        }
    }

    /// The first attempt for `need` bytes when `reserved` are held and `available` more may be.
    /// `None`: the request does not fit into what is available.
    pub fn first(&mut self, need: u64, reserved: u64, available: u64) -> Option<Attempts> {
        let available = round_down(available, GRAIN);
        if need > available {
            return None;
        }
        let mut doubled = false;
        let size = match self.policy.growth {
            Growth::Fixed => available,
            Growth::Doubling => {
                while need > self.next {
                    self.next = self.next.saturating_mul(2);
                    doubled = true;
                }
                self.next
            }
            Growth::Exact => need
                .div_ceil(self.policy.min_segment)
                .saturating_mul(self.policy.min_segment),
            Growth::Proportional | Growth::Paged => {
                let step = if need < STEP / 2 {
                    self.policy.page_step(reserved).max(self.policy.min_segment)
                } else {
                    self.policy.min_segment
                };
                round_up(need, STEP).unwrap_or(need).max(step)
            }
        };
        Some(Attempts {
            need,
            size: size.min(available),
            doubled,
        })
    }

    /// The next attempt after the backend refused; `false` when there is none.
    pub fn smaller(&self, attempts: &mut Attempts) -> bool {
        let size = match self.policy.growth {
            Growth::Fixed | Growth::Doubling => {
                // In single precision, as the source has it. A step that gets no smaller would go
                // on for ever: below 2,560 bytes rounding up undoes the tenth.
                let tenth_less = (attempts.size as f32 * 0.9_f32) as u64;
                round_up(tenth_less, GRAIN).unwrap_or(u64::MAX)
            }
            Growth::Exact => attempts.need,
            Growth::Proportional | Growth::Paged => {
                let stepped = round_up(attempts.need, STEP).unwrap_or(attempts.need);
                if stepped < attempts.size {
                    stepped
                } else {
                    attempts.need
                }
            }
        };
        let found = size < attempts.size && size >= attempts.need;
        if found {
            attempts.size = size;
        }
        found
    }

    /// The backend granted an attempt.
    pub fn granted(&mut self, attempts: &Attempts) {
        if self.policy.growth == Growth::Doubling && !attempts.doubled {
            self.next = self.next.saturating_mul(2);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sizes(policy: Policy, need: u64, reserved: u64, available: u64) -> Vec<u64> {
        let mut segmenter = Segmenter::new(policy);
        let mut sizes = Vec::new();
        if let Some(mut attempts) = segmenter.first(need, reserved, available) {
            sizes.push(attempts.size);
            while segmenter.smaller(&mut attempts) {
                sizes.push(attempts.size);
            }
        }
        sizes
    }

    #[test]
    fn doubling_backs_off_by_tenths_down_to_the_request() {
        let tried = sizes(Policy::XLA, 1 << 20, 0, u64::MAX);
        assert_eq!(tried[..3], [2 << 20, 1_887_488, 1_698_816]);
        assert!(*tried.last().unwrap() >= 1 << 20);
        // 2,304 bytes less a tenth round up to 2,304 again.
        assert_eq!(sizes(Policy::XLA, 256, 0, 2_304), [2_304]);
    }

    #[test]
    fn exact_tries_the_rounded_request_then_the_request() {
        assert_eq!(sizes(Policy::LUMA_0_3, 256, 0, u64::MAX), [MIB, 256]);
        assert_eq!(sizes(Policy::LUMA_0_3, MIB, 0, u64::MAX), [MIB]);
        assert_eq!(
            sizes(Policy::LUMA_0_3, MIB + 256, 0, u64::MAX),
            [2 * MIB, MIB + 256]
        );
    }

    #[test]
    fn no_step_is_larger_than_promised() {
        for reserved in [0, MIB, 100 * MIB, 1 << 30, 1 << 40] {
            for need in [256, MIB, 3 * MIB, 100 * MIB, 1 << 33] {
                for size in sizes(Policy::DEFAULT, need, reserved, u64::MAX) {
                    let bound = round_up(need, STEP)
                        .unwrap()
                        .max(LARGEST_STEP)
                        .max(reserved / 8);
                    assert!(
                        size <= bound && size >= need,
                        "{need} with {reserved}: {size}"
                    );
                }
            }
        }
    }

    #[test]
    fn nothing_is_asked_for_beyond_what_is_available() {
        for policy in [Policy::DEFAULT, Policy::XLA, Policy::LUMA_0_3] {
            assert_eq!(sizes(policy, 512, 0, 511), []);
            assert!(
                sizes(policy, 512, 0, 1023)
                    .iter()
                    .all(|size| [512, 768].contains(size))
            );
            for size in sizes(policy, u64::MAX - 255, 0, u64::MAX) {
                assert_eq!(size, u64::MAX - 255);
            }
        }
    }
}
