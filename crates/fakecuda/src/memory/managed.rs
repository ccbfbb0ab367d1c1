//! Managed memory: one address for the host and all devices.
//!
//! Here it is host memory that does not move, and takes nothing of a device's capacity: it may be
//! larger than any device's memory. What programs advise is kept to be asked for again.

use super::host_memory::{map_pages, unmap_pages};
use super::region::{Kind, Region};
use super::{PAGE, region::Regions};
use crate::abi::memory::{MemLocation, location};
use crate::context::ContextId;
use crate::state::State;
use crate::status::{Code, Result};
use std::collections::{BTreeMap, BTreeSet};

/// `CU_DEVICE_CPU`.
pub const CPU: i32 = -1;
/// `CU_DEVICE_INVALID`.
pub const NO_DEVICE: i32 = -2;

/// What was advised for a stretch of pages.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Advice {
    read_mostly: bool,
    preferred: Option<MemLocation>,
    accessed_by: BTreeSet<i32>,
    prefetched: Option<MemLocation>,
}

/// A change of [`Advice`].
#[derive(Clone, Copy, Debug)]
pub enum Advise {
    ReadMostly(bool),
    Preferred(Option<MemLocation>),
    /// Devices by number, [`CPU`] for the host.
    AccessedBy(i32, bool),
    Prefetched(MemLocation),
}

/// What managed memory has beside its place.
#[derive(Debug)]
pub struct Managed {
    /// A module's variable, which `cuMemFree` does not take.
    pub is_global: bool,
    /// `CUmemAttach_flags`.
    pub attached: u32,
    /// Advice by the first page that it is for; each goes as far as the next.
    advice: BTreeMap<u64, Advice>,
}

impl Managed {
    fn split(&mut self, at: u64) {
        let before = self.advice.range(..=at).next_back();
        if let Some((&start, advice)) = before {
            if start != at {
                let advice = advice.clone();
                self.advice.insert(at, advice);
            }
        }
    }

    fn advise(&mut self, from: u64, to: u64, advise: Advise) {
        self.split(from);
        self.split(to);
        for (_, advice) in self.advice.range_mut(from..to) {
            match advise {
                Advise::ReadMostly(is) => advice.read_mostly = is,
                Advise::Preferred(location) => advice.preferred = location,
                Advise::AccessedBy(device, true) => {
                    advice.accessed_by.insert(device);
                }
                Advise::AccessedBy(device, false) => {
                    advice.accessed_by.remove(&device);
                }
                Advise::Prefetched(location) => advice.prefetched = Some(location),
            }
        }
    }

    /// The advice for the pages of a range.
    fn within(&self, from: u64, to: u64) -> impl Iterator<Item = &Advice> {
        let first = self.advice.range(..=from).next_back();
        let start = first.map_or(from, |(&start, _)| start);
        self.advice.range(start..to).map(|(_, advice)| advice)
    }
}

/// What `cuMemRangeGetAttribute` is asked for.
#[derive(Debug)]
pub struct RangeAdvice {
    pub read_mostly: bool,
    pub preferred: Option<MemLocation>,
    pub accessed_by: Vec<i32>,
    pub prefetched: Option<MemLocation>,
}

/// The managed block that all of a range is in, and the pages of the range.
fn whole(regions: &mut Regions, start: u64, bytes: u64) -> Result<(&mut Region, u64, u64)> {
    let end = start.checked_add(bytes).ok_or(Code::INVALID_VALUE)?;
    let region = regions.containing_mut(start).ok_or(Code::INVALID_VALUE)?;
    if bytes == 0 || end > region.end() || !matches!(region.kind, Kind::Managed(_)) {
        return Err(Code::INVALID_VALUE);
    }
    Ok((region, start / PAGE * PAGE, end.next_multiple_of(PAGE)))
}

impl State {
    fn allocate_managed_as(
        &mut self,
        context: ContextId,
        bytes: u64,
        attached: u32,
        is_global: bool,
    ) -> Result<u64> {
        if bytes == 0 {
            return Err(Code::INVALID_VALUE);
        }
        let device = self.context(context)?.device;
        let (start, taken) = map_pages(bytes)?;
        let id = self.memory.next_id();
        self.memory.regions.insert(Region {
            start,
            bytes,
            taken,
            id,
            context: Some(context),
            device,
            sync_memops: false,
            kind: Kind::Managed(Managed {
                is_global,
                attached,
                advice: BTreeMap::from([(start, Advice::default())]),
            }),
        });
        Ok(start)
    }

    /// `cuMemAllocManaged` in a context.
    pub fn allocate_managed(
        &mut self,
        context: ContextId,
        bytes: u64,
        attached: u32,
    ) -> Result<u64> {
        self.allocate_managed_as(context, bytes, attached, false)
    }

    /// A module's managed variable: memory that `cuMemFree` does not take.
    pub fn managed_global_allocate(&mut self, context: ContextId, bytes: u64) -> Result<u64> {
        const GLOBAL: u32 = 1;
        self.allocate_managed_as(context, bytes, GLOBAL, true)
    }

    /// Gives managed memory back.
    pub(super) fn release_managed(&mut self, start: u64) {
        if let Some(region) = self.memory.regions.remove(start) {
            unmap_pages(region.start, region.taken);
        }
    }

    /// Notes advice for a range.
    pub fn advise(&mut self, start: u64, bytes: u64, advise: Advise) -> Result {
        let (region, from, to) = whole(&mut self.memory.regions, start, bytes)?;
        if let Kind::Managed(managed) = &mut region.kind {
            managed.advise(from, to, advise);
        }
        Ok(())
    }

    /// What holds for all pages of a range.
    pub fn advice(&mut self, start: u64, bytes: u64) -> Result<RangeAdvice> {
        let (region, from, to) = whole(&mut self.memory.regions, start, bytes)?;
        let Kind::Managed(managed) = &region.kind else {
            return Err(Code::INVALID_VALUE);
        };
        let mut parts = managed.within(from, to);
        let mut all = parts.next().cloned().unwrap_or_default();
        for part in parts {
            all.read_mostly &= part.read_mostly;
            all.accessed_by
                .retain(|device| part.accessed_by.contains(device));
            if all.preferred != part.preferred {
                all.preferred = None;
            }
            if all.prefetched != part.prefetched {
                all.prefetched = None;
            }
        }
        Ok(RangeAdvice {
            read_mostly: all.read_mostly,
            preferred: all.preferred,
            accessed_by: all.accessed_by.into_iter().collect(),
            prefetched: all.prefetched,
        })
    }

    /// Attaches a managed block; `bytes` is all of it, or 0.
    pub fn attach(&mut self, start: u64, bytes: u64, flags: u32) -> Result {
        let region = self.memory.regions.at_mut(start);
        let region = region.ok_or(Code::INVALID_VALUE)?;
        if bytes != 0 && bytes != region.bytes {
            return Err(Code::INVALID_VALUE);
        }
        match &mut region.kind {
            Kind::Managed(managed) => managed.attached = flags,
            _ => return Err(Code::INVALID_VALUE),
        }
        Ok(())
    }

    /// Checks a place that managed memory can be sent to.
    pub fn managed_location(&self, place: MemLocation) -> Result<MemLocation> {
        let id = match place.kind {
            location::DEVICE => self.device(place.id)? as i32,
            location::HOST => 0,
            location::HOST_NUMA if place.id == 0 => 0,
            location::HOST_NUMA_CURRENT => {
                return Ok(MemLocation {
                    kind: location::HOST_NUMA,
                    id: 0,
                });
            }
            _ => return Err(Code::INVALID_VALUE),
        };
        Ok(MemLocation {
            kind: place.kind,
            id,
        })
    }
}

impl MemLocation {
    /// The device's number, as functions that know no other locations have it.
    pub fn as_device(place: Option<Self>) -> i32 {
        match place {
            None => NO_DEVICE,
            Some(place) if place.kind == location::DEVICE => place.id,
            Some(_) => CPU,
        }
    }

    /// The location that functions mean which know devices' numbers only.
    pub fn of_device(device: i32) -> Self {
        match device {
            CPU => Self {
                kind: location::HOST,
                id: 0,
            },
            id => Self {
                kind: location::DEVICE,
                id,
            },
        }
    }
}
