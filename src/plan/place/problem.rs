#![forbid(unsafe_code)]
//! A component with all that the search looks up.

use std::cmp::Reverse;

use super::instance::{Component, Item};
use crate::plan::csr::Lists;

/// Stands for no item.
pub(super) const NONE: u32 = u32::MAX;

/// More overlapping pairs than this are not searched: they would not fit the caches, and the search
/// would not get far.
const MOST_PAIRS: usize = 4_000_000;

pub(super) struct Problem<'a> {
    pub items: &'a [Item],
    pub load: &'a [u64],
    /// The items that overlap each.
    pub overlaps: Lists<u32>,
    /// The items of each section.
    pub members: Lists<u32>,
    /// The item before of the same size and lifetime, or [`NONE`]: of such items, only the order of
    /// their numbers is tried.
    pub twin: Vec<u32>,
    /// The first of the twins of each item.
    leader: Vec<u32>,
    /// The largest load of the sections of each item.
    pub crowd: Vec<u64>,
}

impl<'a> Problem<'a> {
    /// `None` if the component is too large to be searched.
    pub fn new(component: &'a Component) -> Option<Self> {
        let items = &component.items[..];
        let sections = component.load.len();
        let spans = items.iter().map(|item| (item.end - item.first) as usize);
        if spans.sum::<usize>() > 2 * MOST_PAIRS {
            return None;
        }
        // Items ascend by start: those that overlap one and start no earlier follow it.
        let mut pairs = Vec::new();
        for (id, item) in (0u32..).zip(items) {
            let later = (id + 1..).zip(&items[id as usize + 1..]);
            pairs.extend(
                later
                    .take_while(|(_, other)| other.first < item.end)
                    .map(|(other, _)| (id, other)),
            );
            if pairs.len() > MOST_PAIRS {
                return None;
            }
        }
        let both = || pairs.iter().flat_map(|&(a, b)| [(a, b), (b, a)]);
        let memberships = || {
            let each = (0u32..).zip(items);
            each.flat_map(|(id, item)| (item.first..item.end).map(move |section| (section, id)))
        };
        let mut alike: Vec<u32> = (0..items.len() as u32).collect();
        let shape = |id: u32| {
            let item = &items[id as usize];
            (item.first, item.end, item.size)
        };
        alike.sort_unstable_by_key(|&id| (shape(id), id));
        let mut twin = vec![NONE; items.len()];
        let mut leader: Vec<u32> = (0..items.len() as u32).collect();
        for pair in alike.windows(2) {
            if shape(pair[0]) == shape(pair[1]) {
                twin[pair[1] as usize] = pair[0];
                leader[pair[1] as usize] = leader[pair[0] as usize];
            }
        }
        let load = &component.load[..];
        let most = |item: &Item| {
            load[item.first as usize..item.end as usize]
                .iter()
                .copied()
                .max()
        };
        Some(Self {
            items,
            load,
            overlaps: Lists::new(items.len(), both),
            members: Lists::new(sections, memberships),
            twin,
            leader,
            crowd: items.iter().map(|item| most(item).unwrap_or(0)).collect(),
        })
    }

    /// All items, largest key first; twins by number, all by the key of the first.
    pub fn order<K: Ord>(&self, key: impl Fn(u32) -> K) -> Vec<u32> {
        let mut list: Vec<u32> = (0..self.items.len() as u32).collect();
        list.sort_by_cached_key(|&id| Reverse(key(self.leader[id as usize])));
        list
    }
}
