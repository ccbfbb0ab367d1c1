//! Device memory: `cuMemAlloc` and what is like it.

use super::blocks;
use super::region::{Kind, Region};
use crate::context::ContextId;
use crate::state::State;
use crate::status::{Code, Result};

/// Rows of pitched memory begin at multiples of this.
pub const PITCH: u64 = 512;

impl State {
    /// Counts memory of a device as used.
    ///
    /// # Errors
    /// `OUT_OF_MEMORY`: it has not so much.
    pub fn take_capacity(&mut self, device: usize, bytes: u64) -> Result {
        let device = &mut self.devices[device];
        let used = device.used.checked_add(bytes).ok_or(Code::OUT_OF_MEMORY)?;
        if used > device.capacity {
            return Err(Code::OUT_OF_MEMORY);
        }
        device.used = used;
        device.peak = device.peak.max(used);
        Ok(())
    }

    /// Counts memory of a device as free again.
    pub fn give_capacity(&mut self, device: usize, bytes: u64) {
        self.devices[device].used -= bytes;
    }

    /// Makes a block of device memory.
    pub(super) fn allocate(
        &mut self,
        device: usize,
        context: Option<ContextId>,
        bytes: u64,
        kind: Kind,
    ) -> Result<u64> {
        if bytes == 0 {
            return Err(Code::INVALID_VALUE);
        }
        let taken = blocks::rounded(bytes)?;
        self.take_capacity(device, taken).or_else(|_| {
            self.release_leaving();
            self.take_capacity(device, taken)
        })?;
        let memory = &mut self.memory;
        let addresses = &mut memory.addresses;
        let start = match memory.blocks.take(addresses, device, bytes, taken) {
            Ok(start) => start,
            Err(code) => {
                self.give_capacity(device, taken);
                return Err(code);
            }
        };
        let id = memory.next_id();
        memory.regions.insert(Region {
            start,
            bytes,
            taken,
            id,
            context,
            device,
            sync_memops: false,
            kind,
        });
        Ok(start)
    }

    /// Gives back a block that [`State::allocate`] made.
    pub(super) fn give_back(&mut self, start: u64) {
        let memory = &mut self.memory;
        let Some(region) = memory.regions.remove(start) else {
            return;
        };
        let addresses = &mut memory.addresses;
        memory
            .blocks
            .give(addresses, region.device, start, region.taken);
        self.give_capacity(region.device, region.taken);
    }

    /// `cuMemAlloc` in a context.
    pub fn allocate_device(&mut self, context: ContextId, bytes: u64) -> Result<u64> {
        let device = self.context(context)?.device;
        self.allocate(device, Some(context), bytes, Kind::Device)
    }

    /// Memory of a graph's allocation node: an address that stays the same over launches.
    pub fn graph_allocate(&mut self, device: usize, bytes: u64) -> Result<u64> {
        self.allocate(device, None, bytes, Kind::Graph)
    }

    /// Gives it back when the graph is gone: once all is done that was queued until now, since a launch
    /// may still be under way.
    pub fn graph_release(&mut self, address: u64) -> Result {
        let region = self.memory.regions.at(address).ok_or(Code::INVALID_VALUE)?;
        if !matches!(region.kind, Kind::Graph) {
            return Err(Code::INVALID_VALUE);
        }
        let after = self.pending_on(region.device);
        self.memory.leaving.push((after, address));
        self.release_leaving();
        Ok(())
    }

    /// Gives back what waited for work that is done by now.
    pub(super) fn release_leaving(&mut self) {
        let mut leaving = std::mem::take(&mut self.memory.leaving);
        leaving.retain(|(after, address)| {
            let is_over = after.iter().all(|&point| self.is_complete(point));
            if is_over {
                self.give_back(*address);
            }
            !is_over
        });
        self.memory.leaving = leaving;
    }

    /// A module's global variable: device memory that `cuMemFree` does not take.
    pub fn global_allocate(&mut self, context: ContextId, bytes: u64) -> Result<u64> {
        let device = self.context(context)?.device;
        self.allocate(device, Some(context), bytes, Kind::Global)
    }

    /// Gives back what [`State::global_allocate`] or [`State::managed_global_allocate`] gave.
    pub fn global_release(&mut self, address: u64) {
        let is_managed = self.memory.regions.at(address).is_some_and(
            |region| matches!(&region.kind, Kind::Managed(managed) if managed.is_global),
        );
        if is_managed {
            self.release_managed(address);
        } else {
            // A module that goes after its context finds nothing left.
            let region = self.memory.regions.at(address);
            if region.is_some_and(|region| matches!(region.kind, Kind::Global)) {
                self.give_back(address);
            }
        }
    }

    /// The identity of the block that begins at an address, if `cuMemFree` takes it.
    pub fn freeable(&self, start: u64) -> Option<u64> {
        let region = self.memory.regions.at(start)?;
        let is_taken = match &region.kind {
            Kind::Device | Kind::Pool { .. } | Kind::PoolImport { .. } => true,
            Kind::Managed(managed) => !managed.is_global,
            _ => false,
        };
        is_taken.then_some(region.id)
    }

    /// The device whose work `cuMemFree` waits for before it takes a block, if it waits.
    pub fn free_waits_for(&self, start: u64) -> Option<usize> {
        let region = self.memory.regions.at(start)?;
        match region.kind {
            Kind::Device | Kind::Managed(_) => Some(region.device),
            _ => None,
        }
    }

    /// Frees a block that is [`State::freeable`].
    pub fn free(&mut self, start: u64) -> Result {
        self.freeable(start).ok_or(Code::INVALID_VALUE)?;
        self.release_region(start);
        Ok(())
    }

    /// First address and length of the allocation or mapping that an address is in.
    pub fn address_range(&self, address: u64) -> Option<(u64, u64)> {
        if let Some(region) = self.memory.regions.containing(address) {
            return Some((region.start, region.bytes));
        }
        let mapping = self.memory.virtual_memory.mapping(address)?;
        Some((mapping.start, mapping.bytes))
    }
}
