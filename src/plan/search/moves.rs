#![forbid(unsafe_code)]
//! Changes to a sequence that an annealing tries.

use super::random::Random;

/// A change to the places `start..end` of a sequence: what is there now, by offset from `start`, in
/// its new order.
#[derive(Debug, Default)]
pub(super) struct Shuffle {
    pub(super) start: usize,
    /// The new sequence, as places of the old one.
    pub(super) from: Vec<u32>,
}

impl Shuffle {
    /// Moves `length` places at `at` past `span` others, to the right or to the left, perhaps
    /// reversed. False: there is no room.
    pub(super) fn slide(
        &mut self,
        places: usize,
        at: usize,
        length: usize,
        span: usize,
        right: bool,
        reversed: bool,
    ) -> bool {
        self.from.clear();
        let end = at + length;
        let (low, high) = if right {
            (at, places.min(end + span))
        } else {
            (at.saturating_sub(span), end)
        };
        if end > places || high - low == length {
            return false;
        }
        self.start = low;
        let block = |from: &mut Vec<u32>| {
            if reversed {
                from.extend((at as u32..end as u32).rev());
            } else {
                from.extend(at as u32..end as u32);
            }
        };
        if right {
            self.from.extend(end as u32..high as u32);
            block(&mut self.from);
        } else {
            block(&mut self.from);
            self.from.extend(low as u32..at as u32);
        }
        true
    }

    /// Swaps two places.
    pub(super) fn swap(&mut self, one: usize, other: usize) -> bool {
        let (low, high) = (one.min(other), one.max(other));
        self.start = low;
        self.from.clear();
        self.from.extend(low as u32..=high as u32);
        self.from.swap(0, high - low);
        low != high
    }

    /// Reverses a stretch.
    pub(super) fn reverse(&mut self, at: usize, length: usize) -> bool {
        self.start = at;
        self.from.clear();
        self.from.extend((at as u32..(at + length) as u32).rev());
        length > 1
    }

    /// Deals `length` places at `at` out into `piles` runs and takes `grain` from each run in turn.
    pub(super) fn riffle(&mut self, at: usize, length: usize, piles: usize, grain: usize) -> bool {
        self.start = at;
        self.from.clear();
        let run = length.div_ceil(piles);
        let mut taken = 0;
        while taken < run {
            for pile in 0..piles {
                let from = pile * run + taken;
                let to = (from + grain).min((pile + 1) * run).min(length);
                self.from
                    .extend((at + from.min(to)) as u32..(at + to) as u32);
            }
            taken += grain;
        }
        length > 1
    }

    /// The inverse of [`Self::riffle`] with a grain of 1.
    pub(super) fn deal(&mut self, at: usize, length: usize, piles: usize) -> bool {
        self.start = at;
        self.from.clear();
        for pile in 0..piles {
            self.from.extend(
                (pile..length)
                    .step_by(piles)
                    .map(|offset| (at + offset) as u32),
            );
        }
        length > 1
    }

    /// A change that may close the gap between two places, `last` before `next`.
    pub(super) fn close(
        &mut self,
        random: &mut Random,
        places: usize,
        last: usize,
        next: usize,
    ) -> bool {
        let gap = next - last;
        if gap < 2 {
            return false;
        }
        let length = random.magnitude(places as u32) as usize;
        match random.below(4) {
            // What needs it comes earlier.
            0 => {
                let span = if random.below(2) == 0 {
                    gap - 1
                } else {
                    1 + random.below(gap as u32 - 1) as usize
                };
                self.slide(places, next, length.min(places - next), span, false, false)
            }
            // What used it comes later.
            1 => {
                let length = length.min(last + 1);
                let span = if random.below(2) == 0 {
                    gap - 1
                } else {
                    1 + random.below(gap as u32 - 1) as usize
                };
                self.slide(places, last + 1 - length, length, span, true, false)
            }
            // Something between goes out, before or after.
            kind => {
                let at = last + 1 + random.below(gap as u32 - 1) as usize;
                let length = length.min(next - at);
                let more = random.magnitude(places as u32) as usize - 1;
                if kind == 2 {
                    self.slide(places, at, length, at - last + more, false, false)
                } else {
                    self.slide(
                        places,
                        at,
                        length,
                        next - at - length + 1 + more,
                        true,
                        false,
                    )
                }
            }
        }
    }

    /// A change of a random kind to a sequence of `places` places, 2 at least.
    pub(super) fn draw(&mut self, random: &mut Random, places: usize) -> bool {
        let kind = random.below(16);
        let length = random.magnitude(places as u32 - 1) as usize;
        let at = random.below((places - length + 1) as u32) as usize;
        match kind {
            0..=9 => {
                let span = random.magnitude(places as u32) as usize;
                let right = random.below(2) == 0;
                let reversed = random.below(8) == 0;
                self.slide(places, at, length, span, right, reversed)
            }
            10 | 11 => {
                let one = random.below(places as u32);
                let apart = random.magnitude(places as u32);
                let other = (one + apart).min(places as u32 - 1);
                self.swap(one as usize, other as usize)
            }
            12 => self.reverse(at, length),
            13 | 14 => {
                let length = (2 * length).min(places - at);
                let piles = 2 + random.below(2) as usize;
                let grain = 1 << random.below(6);
                self.riffle(at, length, piles, grain)
            }
            _ => {
                let length = (2 * length).min(places - at);
                self.deal(at, length, 2 + random.below(3) as usize)
            }
        }
    }
}
