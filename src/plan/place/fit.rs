#![forbid(unsafe_code)]
//! Placing in the order of a list, each box into a gap left by those before it.

use super::instance::Item;

/// Which gap a box gets.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Gap {
    /// The lowest that is large enough.
    First,
    /// The smallest that is large enough; the space above all else where there is none.
    Best,
}

/// A box with its place.
struct Placed {
    offset: u64,
    top: u64,
    first: u32,
    end: u32,
}

/// Offsets for all items; `None` where one would be out of range. Quadratic time.
pub(super) fn fit(items: &[Item], list: &[u32], gap: Gap) -> Option<Vec<u64>> {
    let mut offsets = vec![0; items.len()];
    // By offset.
    let mut placed: Vec<Placed> = Vec::with_capacity(items.len());
    for &id in list {
        let item = items[id as usize];
        let mut top = 0;
        let mut best: Option<(u64, u64)> = None;
        for other in &placed {
            if other.first >= item.end || item.first >= other.end {
                continue;
            }
            let room = other.offset.saturating_sub(top);
            if room >= item.size && best.is_none_or(|(least, _)| room < least) {
                best = Some((room, top));
                if gap == Gap::First {
                    break;
                }
            }
            top = top.max(other.top);
        }
        let offset = best.map_or(top, |(_, offset)| offset);
        offsets[id as usize] = offset;
        let at = placed.partition_point(|other| other.offset < offset);
        let new = Placed {
            offset,
            top: offset.checked_add(item.size)?,
            first: item.first,
            end: item.end,
        };
        placed.insert(at, new);
    }
    Some(offsets)
}
