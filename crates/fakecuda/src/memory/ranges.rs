//! Free ranges of numbers: addresses, or offsets into a file.

use std::collections::{BTreeMap, BTreeSet};

/// Ranges that are free, none of which touch.
#[derive(Debug, Default)]
pub struct Ranges {
    /// Ends by starts.
    by_start: BTreeMap<u64, u64>,
    /// Lengths and starts.
    by_length: BTreeSet<(u64, u64)>,
}

impl Ranges {
    fn put(&mut self, start: u64, end: u64) {
        if start < end {
            self.by_start.insert(start, end);
            self.by_length.insert((end - start, start));
        }
    }

    fn cut(&mut self, start: u64, end: u64) {
        self.by_start.remove(&start);
        self.by_length.remove(&(end - start, start));
    }

    /// Takes a range out of the shortest one that has room for it, so that what was given back is the
    /// next to be given out for the same length. `alignment` is a power of two.
    pub fn take(&mut self, length: u64, alignment: u64) -> Option<u64> {
        let fitting = self.by_length.range((length, 0)..);
        let (start, end, at) = fitting
            .filter_map(|&(free, start)| {
                let at = start.checked_next_multiple_of(alignment)?;
                (at - start <= free - length).then_some((start, start + free, at))
            })
            .next()?;
        self.cut(start, end);
        self.put(start, at);
        self.put(at + length, end);
        Some(at)
    }

    /// Takes this very range out, if all of it is free.
    pub fn take_at(&mut self, at: u64, length: u64) -> bool {
        let before = self.by_start.range(..=at).next_back();
        let Some((start, end)) = before.map(|(&start, &end)| (start, end)) else {
            return false;
        };
        match at.checked_add(length) {
            Some(last) if last <= end => {
                self.cut(start, end);
                self.put(start, at);
                self.put(last, end);
                true
            }
            _ => false,
        }
    }

    /// Makes a range free that is not.
    pub fn give(&mut self, at: u64, length: u64) {
        let (mut start, mut end) = (at, at + length);
        if let Some((&before, &its_end)) = self.by_start.range(..at).next_back() {
            debug_assert!(its_end <= at, "a range is given back twice");
            if its_end == at {
                self.cut(before, its_end);
                start = before;
            }
        }
        if let Some(&its_end) = self.by_start.get(&end) {
            self.cut(end, its_end);
            end = its_end;
        }
        self.put(start, end);
    }
}
