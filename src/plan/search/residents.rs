#![forbid(unsafe_code)]
//! What lies in one memory while an order is priced.

use std::time::Instant;

use super::problem::{NONE, Problem};

/// The residents, as parallel arrays that a search for a victim scans.
#[derive(Debug, Default)]
pub(super) struct Residents {
    /// The position of each resident's next use; the present position while it is in use.
    next: Vec<u32>,
    major: Vec<u64>,
    factor: Vec<u64>,
    buffer: Vec<u32>,
    last: Vec<u32>,
    bytes: Vec<u64>,
    /// Where each buffer lies in these arrays.
    slot: Vec<u32>,
    used: u64,
    hash: u64,
    /// When to give up, how many residents were looked at, and at which count to look at the clock.
    deadline: Option<Instant>,
    looked: u64,
    look: u64,
}

/// Residents looked at between two looks at the clock: some milliseconds.
const LOOKS: u64 = 1 << 22;

impl Residents {
    /// After `deadline` there are no victims: whatever is being priced is given up.
    pub(super) fn new(problem: &Problem, deadline: Option<Instant>) -> Self {
        Self {
            slot: vec![NONE; problem.size.len()],
            deadline,
            look: LOOKS,
            ..Self::default()
        }
    }

    fn late(&mut self) -> bool {
        self.looked += self.next.len() as u64;
        if self.looked < self.look {
            return false;
        }
        let late = self.deadline.is_some_and(|at| Instant::now() >= at);
        if !late {
            self.look = self.looked + LOOKS;
        }
        late
    }

    pub(super) fn clear(&mut self) {
        for &buffer in &self.buffer {
            self.slot[buffer as usize] = NONE;
        }
        self.next.clear();
        self.major.clear();
        self.factor.clear();
        self.buffer.clear();
        self.last.clear();
        self.bytes.clear();
        self.used = 0;
        self.hash = 0;
    }

    pub(super) fn holds(&self, buffer: u32) -> bool {
        self.slot[buffer as usize] != NONE
    }

    pub(super) fn used(&self) -> u64 {
        self.used
    }

    /// Equal for equal sets of residents.
    pub(super) fn hash(&self) -> u64 {
        self.hash
    }

    /// The latest use of each resident.
    pub(super) fn uses(&self) -> &[u32] {
        &self.last
    }

    /// Bytes moved when the resident in `slot` is evicted.
    pub(super) fn bytes(&self, slot: usize) -> u64 {
        self.bytes[slot]
    }

    /// Keeps `buffer` from being chosen at `now`, if it is resident.
    pub(super) fn pin(&mut self, buffer: u32, now: u32) {
        let slot = self.slot[buffer as usize];
        if slot != NONE {
            self.next[slot as usize] = now;
        }
    }

    pub(super) fn add(
        &mut self,
        problem: &Problem,
        buffer: u32,
        last: u32,
        next: u32,
        bytes: u64,
        weight: (u64, u64),
    ) {
        self.slot[buffer as usize] = self.next.len() as u32;
        self.next.push(next);
        self.major.push(weight.0);
        self.factor.push(weight.1);
        self.buffer.push(buffer);
        self.last.push(last);
        self.bytes.push(bytes);
        self.used += problem.size[buffer as usize];
        self.hash ^= scramble(buffer);
    }

    /// `buffer`, a resident, has just been used.
    pub(super) fn used_at(
        &mut self,
        buffer: u32,
        last: u32,
        next: u32,
        bytes: u64,
        weight: (u64, u64),
    ) {
        let slot = self.slot[buffer as usize] as usize;
        self.next[slot] = next;
        self.major[slot] = weight.0;
        self.factor[slot] = weight.1;
        self.last[slot] = last;
        self.bytes[slot] = bytes;
    }

    /// Removes `buffer`, a resident.
    pub(super) fn drop_buffer(&mut self, problem: &Problem, buffer: u32) {
        self.remove(problem, self.slot[buffer as usize] as usize);
    }

    /// Removes the resident in `slot`.
    pub(super) fn remove(&mut self, problem: &Problem, slot: usize) -> u32 {
        let buffer = self.buffer.swap_remove(slot);
        self.next.swap_remove(slot);
        self.major.swap_remove(slot);
        self.factor.swap_remove(slot);
        self.last.swap_remove(slot);
        self.bytes.swap_remove(slot);
        self.slot[buffer as usize] = NONE;
        if let Some(&moved) = self.buffer.get(slot) {
            self.slot[moved as usize] = slot as u32;
        }
        self.used -= problem.size[buffer as usize];
        self.hash ^= scramble(buffer);
        buffer
    }

    /// The slot of the largest key among those that are not in use at `now`, its key, and the second largest. Between equal keys
    /// the higher buffer counts as larger, so that the choice does not depend on how the residents came to lie here.
    pub(super) fn victim(&mut self, now: u32) -> Option<(usize, u64, u64)> {
        if self.late() {
            return None;
        }
        let mut best: Option<usize> = None;
        let (mut key, mut second) = (0, 0);
        for (slot, ((&next, &major), &factor)) in self
            .next
            .iter()
            .zip(&self.major)
            .zip(&self.factor)
            .enumerate()
        {
            let candidate = if next == now {
                0
            } else {
                major + factor * u64::from(next - now)
            };
            if candidate > key {
                second = key;
                key = candidate;
                best = Some(slot);
            } else if candidate > 0 {
                second = second.max(candidate);
                if candidate == key
                    && best.is_some_and(|best| self.buffer[slot] > self.buffer[best])
                {
                    best = Some(slot);
                }
            }
        }
        best.map(|slot| (slot, key, second))
    }
}

/// SplitMix64 (Steele, Lea, Flood: Fast splittable pseudorandom number generators, 2014) of a buffer's number.
fn scramble(buffer: u32) -> u64 {
    let mut z = (u64::from(buffer) + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}
