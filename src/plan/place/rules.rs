#![forbid(unsafe_code)]
//! The fast rules, one after the other.

use std::cmp::Reverse;

use super::effort::scramble;
use super::fit::{Gap, fit};
use super::instance::{Component, Item};
use super::skyline::{Choice, skyline};

/// Up to so many items the rules of quadratic time are used.
const MOST_QUADRATIC: usize = 6_000;

/// Rules that there are; from here on they repeat with chance in them.
pub(super) const RULES: u32 = 10;

/// The placement of a component by one of the rules. `None`: there is no such rule for it, or it
/// would go past what is counted in.
pub(super) fn apply(component: &Component, rule: u32, seed: u64) -> Option<Vec<u64>> {
    let items = &component.items;
    let sections = component.load.len();
    let by_area = |item: &Item| u128::from(item.size) * u128::from(item.length);
    let small = items.len() <= MOST_QUADRATIC;
    match rule {
        0 => skyline(items, sections, &Choice::Leftmost),
        1 => {
            let mirror = |item: &Item| Item {
                first: sections as u32 - item.end,
                end: sections as u32 - item.first,
                lower: u64::MAX - (item.lower + item.length),
                ..*item
            };
            let mirrored: Vec<Item> = items.iter().map(mirror).collect();
            skyline(&mirrored, sections, &Choice::Leftmost)
        }
        2 | 3 if !small => None,
        2 => fit(
            items,
            &sorted(items, |id, item| (Reverse(item.size), item.first, id)),
            Gap::First,
        ),
        3 => fit(
            items,
            &sorted(items, |id, item| (Reverse(by_area(item)), id)),
            Gap::First,
        ),
        4 => skyline_first(items, sections, |id, item| {
            (Reverse(item.size), Reverse(item.length), id)
        }),
        5 => skyline_first(items, sections, |id, item| (Reverse(by_area(item)), id)),
        6 => skyline_first(items, sections, |id, item| {
            (Reverse(item.length), Reverse(item.size), id)
        }),
        7.. if rule < RULES && !small => None,
        7 => fit(
            items,
            &sorted(items, |id, item| (Reverse(item.size), item.first, id)),
            Gap::Best,
        ),
        8 => fit(
            items,
            &sorted(items, |id, item| {
                (Reverse(item.length), Reverse(item.size), id)
            }),
            Gap::Best,
        ),
        9 => fit(
            items,
            &sorted(items, |id, item| (item.first, Reverse(item.length), id)),
            Gap::Best,
        ),
        _ => skyline_first(items, sections, |id, item| {
            let chance = u128::from(1024 + scramble(seed, u64::from(rule), id) % 1024);
            let base = match rule % 8 {
                0 | 2 | 4 | 6 => by_area(item),
                1 | 3 | 5 => u128::from(item.size),
                _ => u128::from(item.length),
            };
            (Reverse(base.saturating_mul(chance)), id)
        }),
    }
}

fn sorted<K: Ord>(items: &[Item], key: impl Fn(u32, &Item) -> K) -> Vec<u32> {
    let mut list: Vec<u32> = (0..items.len() as u32).collect();
    list.sort_by_cached_key(|&id| key(id, &items[id as usize]));
    list
}

fn skyline_first<K: Ord>(
    items: &[Item],
    sections: usize,
    key: impl Fn(u32, &Item) -> K,
) -> Option<Vec<u64>> {
    skyline(items, sections, &Choice::First(&sorted(items, key)))
}
