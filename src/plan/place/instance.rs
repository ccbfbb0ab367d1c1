#![forbid(unsafe_code)]
//! Lifetimes reduced to what placing them needs.

use super::Lifetime;
use crate::plan::{PlanError, PlanErrorKind};

/// A lifetime among the sections of its component.
///
/// A section is a maximal set of lifetimes that are live together: two lifetimes overlap in time
/// exactly if they share one, so the sections stand for time.
#[derive(Clone, Copy, Debug)]
pub(super) struct Item {
    /// The first section that it is part of.
    pub first: u32,
    /// The section after the last one.
    pub end: u32,
    /// When it starts, in the caller's unit of time.
    pub lower: u64,
    /// In units of [`Instance::unit`]; never 0.
    pub size: u64,
    /// How long it lives, in the caller's unit of time.
    pub length: u64,
}

/// Lifetimes connected by overlaps; nothing in another component overlaps them.
#[derive(Debug)]
pub(super) struct Component {
    /// Which lifetime of the caller's each item is.
    pub ids: Vec<u32>,
    pub items: Vec<Item>,
    /// The sum of sizes of each section.
    pub load: Vec<u64>,
    /// The largest of them.
    pub peak: u64,
}

/// All lifetimes that need room.
#[derive(Debug)]
pub(super) struct Instance {
    /// The greatest common divisor of the sizes: a buffer that rests on others, as every one does in
    /// a placement that is pushed down, is at a multiple of it.
    pub unit: u64,
    pub components: Vec<Component>,
    /// The peak live load, in units.
    pub peak: u64,
}

fn gcd(mut a: u64, mut b: u64) -> u64 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

impl Instance {
    /// Lifetimes without bytes or without duration are left out: they are anywhere.
    pub fn new(lifetimes: &[Lifetime]) -> Result<Self, PlanError> {
        let overflow = || PlanError::new(PlanErrorKind::Overflow);
        let count = u32::try_from(lifetimes.len())
            .ok()
            .filter(|&n| n < u32::MAX);
        let count = count.ok_or_else(|| overflow().about("the number of lifetimes"))?;
        for id in 0..count {
            let lifetime = &lifetimes[id as usize];
            if lifetime.lower > lifetime.upper {
                return Err(PlanError::new(PlanErrorKind::BadLifetime).of(id));
            }
        }
        let at = |id: u32| &lifetimes[id as usize];
        let mut ids: Vec<u32> = (0..count)
            .filter(|&id| at(id).size > 0 && at(id).lower < at(id).upper)
            .collect();
        ids.sort_unstable_by_key(|&id| (at(id).lower, at(id).upper, id));
        let unit = ids
            .iter()
            .fold(0, |unit, &id| gcd(unit, at(id).size))
            .max(1);
        let mut instance = Self {
            unit,
            components: Vec::new(),
            peak: 0,
        };
        let mut from = 0;
        let mut reach = 0;
        for to in 0..=ids.len() {
            let lower = ids.get(to).map(|&id| at(id).lower);
            if to > from && lower.is_none_or(|lower| lower >= reach) {
                let component = Component::new(lifetimes, &ids[from..to], unit)
                    .ok_or_else(|| overflow().about("the sizes of what is live together"))?;
                instance.peak = instance.peak.max(component.peak);
                instance.components.push(component);
                from = to;
            }
            if let Some(&id) = ids.get(to) {
                reach = reach.max(at(id).upper);
            }
        }
        if instance.peak.checked_mul(unit).is_none() {
            return Err(overflow().about("the sizes of what is live together"));
        }
        Ok(instance)
    }
}

impl Component {
    /// `ids` ascend by start. `None`: a sum overflows.
    fn new(lifetimes: &[Lifetime], ids: &[u32], unit: u64) -> Option<Self> {
        let at = |id: &u32| &lifetimes[*id as usize];
        let mut ends: Vec<u64> = ids.iter().map(|id| at(id).upper).collect();
        ends.sort_unstable();
        // A section is closed by the first end after a start.
        let mut closings = Vec::new();
        let mut started = 0;
        let mut closed_at = 0;
        for &end in &ends {
            while started < ids.len() && at(&ids[started]).lower < end {
                started += 1;
            }
            if started > closed_at {
                closings.push(end);
                closed_at = started;
            }
        }
        let mut changes = vec![0i128; closings.len() + 1];
        let mut items = Vec::with_capacity(ids.len());
        for id in ids {
            let lifetime = at(id);
            let item = Item {
                first: closings.partition_point(|&end| end <= lifetime.lower) as u32,
                end: closings.partition_point(|&end| end <= lifetime.upper) as u32,
                lower: lifetime.lower,
                size: lifetime.size / unit,
                length: lifetime.upper - lifetime.lower,
            };
            changes[item.first as usize] += i128::from(item.size);
            changes[item.end as usize] -= i128::from(item.size);
            items.push(item);
        }
        let mut sum = 0i128;
        let mut load = Vec::with_capacity(closings.len());
        for change in &changes[..closings.len()] {
            sum += change;
            load.push(u64::try_from(sum).ok().filter(|&load| load < u64::MAX)?);
        }
        let peak = load.iter().copied().max().unwrap_or(0);
        Some(Self {
            ids: ids.to_vec(),
            items,
            load,
            peak,
        })
    }
}
