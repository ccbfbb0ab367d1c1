//! Reserved addresses, and what is mapped there.

use super::{Access, BLOCK, PAGE, space};
use crate::abi::memory::{MemAccessDesc, MemAllocationProp, MemLocation, access_flags, location};
use crate::state::State;
use crate::status::{Code, Result};
use std::collections::{BTreeMap, BTreeSet};

/// A reservation.
#[derive(Clone, Copy, Debug)]
pub struct Reservation {
    pub start: u64,
    pub bytes: u64,
    /// What it takes of the window.
    taken: u64,
}

/// Memory at a place.
#[derive(Debug)]
pub struct Mapping {
    pub start: u64,
    pub bytes: u64,
    /// The handle of the memory.
    pub physical: u64,
    /// `CU_POINTER_ATTRIBUTE_BUFFER_ID`.
    pub id: u64,
    /// `CUmemAccess_flags` by who has them.
    access: BTreeMap<MemLocation, u32>,
    /// `CU_POINTER_ATTRIBUTE_SYNC_MEMOPS`.
    pub sync_memops: bool,
}

impl Mapping {
    fn end(&self) -> u64 {
        self.start + self.bytes
    }

    /// What a location may do.
    pub fn access(&self, place: MemLocation) -> u32 {
        self.access
            .get(&place)
            .copied()
            .unwrap_or(access_flags::NONE)
    }
}

/// All reservations and mappings.
#[derive(Debug, Default)]
pub struct VirtualMemory {
    reservations: BTreeMap<u64, Reservation>,
    mappings: BTreeMap<u64, Mapping>,
}

impl VirtualMemory {
    pub fn reservations(&self) -> usize {
        self.reservations.len()
    }

    pub fn mappings(&self) -> usize {
        self.mappings.len()
    }

    /// The reservation that an address is in.
    pub fn reservation(&self, address: u64) -> Option<&Reservation> {
        let (_, reservation) = self.reservations.range(..=address).next_back()?;
        (address - reservation.start < reservation.bytes).then_some(reservation)
    }

    /// The mapping that an address is in.
    pub fn mapping(&self, address: u64) -> Option<&Mapping> {
        let (_, mapping) = self.mappings.range(..=address).next_back()?;
        (address < mapping.end()).then_some(mapping)
    }

    /// The mapping that an address is in.
    pub fn mapping_mut(&mut self, address: u64) -> Option<&mut Mapping> {
        let (_, mapping) = self.mappings.range_mut(..=address).next_back()?;
        (address < mapping.end()).then_some(mapping)
    }

    /// Whether a range is mapped without gaps, each part so that the device may do this.
    pub fn permits(&self, device: usize, start: u64, end: u64, access: Access) -> bool {
        let needed = match access {
            Access::Read => access_flags::READ,
            Access::Write => access_flags::READ_WRITE,
        };
        let place = MemLocation::of_device(device as i32);
        let mut at = start;
        while at < end {
            match self.mapping(at) {
                Some(mapping) if mapping.access(place) & needed == needed => at = mapping.end(),
                _ => return false,
            }
        }
        true
    }

    /// The starts of the mappings that together are a range, without gaps or more.
    fn exactly(&self, start: u64, bytes: u64) -> Result<Vec<u64>> {
        let end = start.checked_add(bytes).ok_or(Code::INVALID_VALUE)?;
        let mut starts = Vec::new();
        let mut at = start;
        while at < end {
            let mapping = self.mappings.get(&at).ok_or(Code::INVALID_VALUE)?;
            starts.push(at);
            at = mapping.end();
        }
        if bytes == 0 || at != end {
            return Err(Code::INVALID_VALUE);
        }
        Ok(starts)
    }
}

/// Whether something is a multiple of what mappings are made of.
fn is_granular(number: u64) -> bool {
    number % BLOCK == 0
}

impl State {
    /// `cuMemAddressReserve`.
    pub fn reserve(&mut self, bytes: u64, alignment: u64, wish: u64) -> Result<u64> {
        if bytes == 0 || bytes % PAGE != 0 || wish % PAGE != 0 {
            return Err(Code::INVALID_VALUE);
        }
        if alignment != 0 && !alignment.is_power_of_two() {
            return Err(Code::INVALID_VALUE);
        }
        let taken = bytes
            .checked_next_multiple_of(BLOCK)
            .ok_or(Code::OUT_OF_MEMORY)?;
        let alignment = alignment.max(BLOCK);
        let start = self.memory.addresses.take(taken, alignment, wish)?;
        let reservations = &mut self.memory.virtual_memory.reservations;
        reservations.insert(
            start,
            Reservation {
                start,
                bytes,
                taken,
            },
        );
        Ok(start)
    }

    /// `cuMemAddressFree`.
    pub fn unreserve(&mut self, start: u64, bytes: u64) -> Result {
        let memory = &mut self.memory.virtual_memory;
        let reservation = memory.reservations.get(&start);
        let reservation = *reservation.ok_or(Code::INVALID_VALUE)?;
        let mut mapped = memory.mappings.range(start..start + reservation.bytes);
        if reservation.bytes != bytes || mapped.next().is_some() {
            return Err(Code::INVALID_VALUE);
        }
        memory.reservations.remove(&start);
        self.memory.addresses.give(start, reservation.taken);
        Ok(())
    }

    /// `cuMemMap`: inaccessible at first.
    pub fn map(&mut self, start: u64, bytes: u64, offset: u64, handle: u64) -> Result {
        let physical = self.memory.physical.held(handle)?;
        // The documentation has an offset, and says that it must be zero.
        if bytes == 0 || !is_granular(start | bytes) || offset != 0 || bytes > physical.bytes {
            return Err(Code::INVALID_VALUE);
        }
        let is_host = physical.is_host();
        let memory = &self.memory.virtual_memory;
        let end = start.checked_add(bytes).ok_or(Code::INVALID_VALUE)?;
        let reservation = memory.reservation(start).ok_or(Code::INVALID_VALUE)?;
        let before = memory.mappings.range(..end).next_back();
        if end > reservation.start + reservation.bytes
            || before.is_some_and(|(_, mapping)| mapping.end() > start)
        {
            return Err(Code::INVALID_VALUE);
        }
        let (file, offset) = self.memory.physical.map(handle)?;
        if let Err(code) = space::show(file, start, bytes, offset, is_host) {
            self.unmapped_physical(handle);
            return Err(code);
        }
        let id = self.memory.next_id();
        self.memory.virtual_memory.mappings.insert(
            start,
            Mapping {
                start,
                bytes,
                physical: handle,
                id,
                access: BTreeMap::new(),
                sync_memops: false,
            },
        );
        Ok(())
    }

    /// The devices that may touch anything in a range that [`State::unmap`] would take.
    pub fn devices_with_access(&self, start: u64, bytes: u64) -> Result<BTreeSet<usize>> {
        let memory = &self.memory.virtual_memory;
        let starts = memory.exactly(start, bytes)?;
        let places = starts
            .iter()
            .flat_map(|start| memory.mappings[start].access.iter());
        Ok(places
            .filter(|(place, flags)| {
                place.kind == location::DEVICE && **flags != access_flags::NONE
            })
            .map(|(place, _)| place.id as usize)
            .collect())
    }

    /// `cuMemUnmap`.
    pub fn unmap(&mut self, start: u64, bytes: u64) -> Result {
        let starts = self.memory.virtual_memory.exactly(start, bytes)?;
        space::hide(start, bytes)?;
        for start in starts {
            if let Some(mapping) = self.memory.virtual_memory.mappings.remove(&start) {
                self.unmapped_physical(mapping.physical);
            }
        }
        Ok(())
    }

    /// Checks who is to have access to memory, and gives them as they are kept.
    fn access_location(&self, place: MemLocation) -> Result<MemLocation> {
        match place.kind {
            location::DEVICE => {
                self.device(place.id)?;
                Ok(place)
            }
            location::HOST | location::HOST_NUMA => Ok(MemLocation {
                kind: location::HOST,
                id: 0,
            }),
            _ => Err(Code::INVALID_VALUE),
        }
    }

    /// `cuMemSetAccess`. All is checked before anything changes.
    pub fn set_access(&mut self, start: u64, bytes: u64, changes: &[MemAccessDesc]) -> Result {
        let starts = self.memory.virtual_memory.exactly(start, bytes)?;
        let mut checked = Vec::new();
        for change in changes {
            let place = self.access_location(change.location)?;
            let is_known = matches!(
                change.flags,
                access_flags::NONE | access_flags::READ | access_flags::READ_WRITE
            );
            let is_on_host = |start: &u64| {
                let mapping = self.memory.virtual_memory.mappings.get(start);
                let physical = mapping.and_then(|it| self.memory.physical.get(it.physical));
                physical.is_some_and(|physical| physical.is_host())
            };
            if !is_known || (place.kind == location::HOST && !starts.iter().all(is_on_host)) {
                return Err(Code::INVALID_VALUE);
            }
            checked.push((place, change.flags));
        }
        for start in starts {
            let Some(mapping) = self.memory.virtual_memory.mappings.get_mut(&start) else {
                continue;
            };
            let mut access = mapping.access.clone();
            access.extend(checked.iter().copied());
            // The same pages serve all who have access, so the most that anybody may do goes.
            let most = access.values().copied().max().unwrap_or(access_flags::NONE);
            let host = MemLocation {
                kind: location::HOST,
                id: 0,
            };
            let for_host = access.get(&host).copied();
            space::protect(mapping.start, mapping.bytes, most)?;
            if let Some(flags) = for_host {
                space::protect_for_program(mapping.start, mapping.bytes, flags)?;
            }
            mapping.access = access;
        }
        Ok(())
    }

    /// `cuMemGetAccess`.
    pub fn get_access(&self, place: MemLocation, address: u64) -> Result<u32> {
        let place = self.access_location(place)?;
        let mapping = self.memory.virtual_memory.mapping(address);
        Ok(mapping.ok_or(Code::INVALID_VALUE)?.access(place))
    }

    /// `cuMemRetainAllocationHandle`.
    pub fn retain_mapped(&mut self, address: u64) -> Result<u64> {
        let mapping = self.memory.virtual_memory.mapping(address);
        let handle = mapping.ok_or(Code::INVALID_VALUE)?.physical;
        self.retain_physical(handle)?;
        Ok(handle)
    }

    /// The properties of memory that the program holds.
    pub fn physical_prop(&self, handle: u64) -> Result<MemAllocationProp> {
        Ok(self.memory.physical.held(handle)?.prop)
    }
}
