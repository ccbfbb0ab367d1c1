#![forbid(unsafe_code)]
//! The stretch of a memory that costs least to clear.

use super::space::{NONE, Space};

/// Neighbouring blocks, first and last included, long enough for what was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Window {
    pub(super) first: u32,
    pub(super) last: u32,
    pub(super) cost: u128,
    /// Bytes from the start of the first to the end of the last.
    pub(super) bytes: u64,
}

impl Window {
    /// Whether it is to be preferred: it costs less, or as much and wastes less.
    fn beats(&self, other: &Option<Self>) -> bool {
        other.is_none_or(|other| (self.cost, self.bytes) < (other.cost, other.bytes))
    }
}

/// The best window of at least `need` bytes among the blocks from `first` on, up to `last` or to the
/// end of the memory, or `best` if that is as good. `cost` says what it costs to clear a
/// resident, or that it must stay.
pub(super) fn sweep(
    space: &Space,
    (first, last): (u32, u32),
    need: u64,
    best: Option<Window>,
    cost: impl Fn(u32) -> Option<u128>,
) -> Option<Window> {
    let price = |id: u32| match space.block(id).buffer {
        NONE => Some(0),
        buffer => cost(buffer),
    };
    let mut best = best;
    // The window ends with `right`, and starts with `left` unless it is empty.
    let mut left = first;
    let mut bytes = 0;
    let mut sum = 0;
    let mut right = first;
    while right != NONE {
        let block = space.block(right);
        match price(right) {
            None => {
                left = block.next;
                bytes = 0;
                sum = 0;
            }
            Some(price) => {
                bytes += block.size;
                sum += price;
                while bytes - space.block(left).size >= need {
                    bytes -= space.block(left).size;
                    // What must stay is never inside, so that this is the price that was added.
                    sum -= self::price_of(space, left, &cost);
                    left = space.block(left).next;
                }
                let window = Window {
                    first: left,
                    last: right,
                    cost: sum,
                    bytes,
                };
                if bytes >= need && window.beats(&best) {
                    best = Some(window);
                }
            }
        }
        if right == last {
            break;
        }
        right = block.next;
    }
    best
}

fn price_of(space: &Space, id: u32, cost: &impl Fn(u32) -> Option<u128>) -> u128 {
    match space.block(id).buffer {
        NONE => 0,
        buffer => cost(buffer).unwrap_or(0),
    }
}

/// The blocks around one that a window of `need` bytes with it could have: the first and the last.
pub(super) fn around(space: &Space, block: u32, need: u64) -> (u32, u32) {
    let start = space.block(block).offset;
    let end = start + space.block(block).size;
    let mut first = block;
    while space.block(first).prev != NONE && end - space.block(first).offset < need {
        first = space.block(first).prev;
    }
    let mut last = block;
    loop {
        let at = space.block(last);
        if at.next == NONE || at.offset + at.size - start >= need {
            return (first, last);
        }
        last = at.next;
    }
}

#[cfg(test)]
mod tests {
    use super::super::space::End;
    use super::{NONE, Space, around, sweep};

    /// A memory of residents of these sizes, with holes where the cost is `Some(0)`.
    fn space(blocks: &[(u64, Option<u128>)]) -> (Space, Vec<u32>) {
        let mut space = Space::new(blocks.iter().map(|(size, _)| size).sum());
        let mut ids = Vec::new();
        for (buffer, &(size, _)) in blocks.iter().enumerate() {
            let hole = space.best_fit(size).expect("the rest");
            ids.push(space.take(hole, size, buffer as u32, End::Low));
        }
        for (&id, (_, cost)) in ids.iter().zip(blocks) {
            if *cost == Some(0) {
                space.release(id);
            }
        }
        (space, ids)
    }

    #[test]
    fn the_best_window_is_the_best_of_all() {
        let mut state = 9u64;
        let mut random = move |bound: u64| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            (state >> 33) % bound
        };
        for _ in 0..3_000 {
            let blocks: Vec<(u64, Option<u128>)> = (0..1 + random(12))
                .map(|_| {
                    let cost = match random(5) {
                        0 => None,
                        1 => Some(0),
                        _ => Some(1 + u128::from(random(20))),
                    };
                    (1 + random(6), cost)
                })
                .collect();
            let (space, ids) = space(&blocks);
            let need = 1 + random(12);
            let mut least: Option<u128> = None;
            for from in 0..blocks.len() {
                for to in from..blocks.len() {
                    let inside = &blocks[from..=to];
                    let bytes: u64 = inside.iter().map(|(size, _)| size).sum();
                    let cost: Option<u128> = inside.iter().map(|(_, cost)| *cost).sum();
                    if let (true, Some(cost)) = (bytes >= need, cost) {
                        least = Some(least.map_or(cost, |least| least.min(cost)));
                    }
                }
            }
            let cost = |buffer: u32| blocks[buffer as usize].1;
            let whole = sweep(&space, (space.first(), NONE), need, None, cost);
            assert_eq!(whole.map(|window| window.cost), least, "{blocks:?} {need}");
            // The same from the windows around each resident, unless a hole is enough.
            let mut best = None;
            for (id, (_, cost_of)) in ids.iter().zip(&blocks) {
                if cost_of.is_some_and(|cost| cost > 0) {
                    best = sweep(&space, around(&space, *id, need), need, best, cost);
                }
            }
            if space.best_fit(need).is_none() {
                assert_eq!(best.map(|window| window.cost), least, "{blocks:?} {need}");
            }
        }
    }
}
