#![forbid(unsafe_code)]
//! Many short lists in one piece of memory (compressed sparse rows).

/// A list for each key of 0, 1, 2...
#[derive(Clone, Debug)]
pub(super) struct Lists<T> {
    /// Where each list starts in `items`, and where the last one ends.
    starts: Vec<usize>,
    items: Vec<T>,
}

impl<T: Copy> Lists<T> {
    /// The lists of `keys` keys; each keeps its items in the order that they come in. `pairs` is
    /// walked twice and gives the same both times, each key below `keys`.
    pub(super) fn new<I: Iterator<Item = (u32, T)>>(keys: usize, pairs: impl Fn() -> I) -> Self {
        let mut starts = vec![0; keys + 1];
        let mut first = None;
        for (key, item) in pairs() {
            starts[key as usize + 1] += 1;
            first.get_or_insert(item);
        }
        for key in 0..keys {
            starts[key + 1] += starts[key];
        }
        let mut items = match first {
            Some(item) => vec![item; starts[keys]],
            None => Vec::new(),
        };
        let mut next = starts.clone();
        for (key, item) in pairs() {
            let slot = &mut next[key as usize];
            items[*slot] = item;
            *slot += 1;
        }
        Self { starts, items }
    }

    /// The list of a key.
    #[inline]
    pub(super) fn list(&self, key: u32) -> &[T] {
        &self.items[self.starts[key as usize]..self.starts[key as usize + 1]]
    }

    /// All lists, by ascending key.
    pub(super) fn iter(&self) -> impl Iterator<Item = &[T]> {
        self.starts
            .windows(2)
            .map(|bounds| &self.items[bounds[0]..bounds[1]])
    }

    /// Sorts every list, and makes one of neighbours that `merge` takes for the same: it is given
    /// the first and the second, and keeps both by answering false.
    pub(super) fn tidy<K: Ord>(
        &mut self,
        key: impl Fn(&T) -> K,
        merge: impl Fn(&mut T, &T) -> bool,
    ) {
        let mut kept = 0;
        let mut from = 0;
        for end in 1..self.starts.len() {
            let to = self.starts[end];
            let items = &mut self.items[from..to];
            if !items.is_sorted_by_key(&key) {
                items.sort_unstable_by_key(&key);
            }
            let start = kept;
            for at in from..to {
                let item = self.items[at];
                if kept > start && merge(&mut self.items[kept - 1], &item) {
                    continue;
                }
                self.items[kept] = item;
                kept += 1;
            }
            self.starts[end] = kept;
            from = to;
        }
        self.items.truncate(kept);
    }
}

#[cfg(test)]
mod tests {
    use super::Lists;

    #[test]
    fn lists_keep_their_items_and_are_made_tidy() {
        let pairs = [(2, 5), (0, 9), (2, 1), (2, 5), (4, 7), (0, 9)];
        let mut lists = Lists::new(5, || pairs.into_iter());
        assert_eq!(lists.list(2), [5, 1, 5]);
        lists.tidy(|item| *item, |one, other| one == other);
        let all: Vec<&[i32]> = lists.iter().collect();
        assert_eq!(all, [&[9][..], &[], &[1, 5], &[], &[7]]);
        let none: Lists<u8> = Lists::new(0, std::iter::empty);
        assert_eq!(none.iter().count(), 0);
    }
}
