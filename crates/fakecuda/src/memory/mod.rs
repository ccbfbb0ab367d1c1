//! Memory: the address space, allocations, virtual memory, pools.
//!
//! What a device has:
//! - requests take multiples of 512 bytes, and from 1 MiB on of 2 MiB; `cuMemGetInfo` and
//!   `fakecuda_used` count just that, and memory of `cuMemCreate` and of pools as a whole;
//! - page-locked and managed memory is the host's and takes nothing of it.
//!
//! What memory holds: fresh memory [`space::FRESH`] (large blocks only at their ends), freed memory
//! [`space::FREED`] or nothing that can be reached, never what was there before.

mod access;
mod allocation;
mod blocks;
mod host_memory;
mod ipc;
mod managed;
mod physical;
pub mod pointer;
mod pool;
mod pool_handles;
mod pool_sharing;
mod ranges;
mod region;
mod space;
mod stream_ordered;
mod virtual_memory;

pub use access::{Access, Location};
pub use allocation::PITCH;
pub use managed::{Advise, NO_DEVICE};
pub use pool::Pool;
pub use pool_handles::are_supported as has_pools;
pub use space::{host, memory_file};

use crate::context::ContextId;
use crate::exec::Point;
use crate::state::State;
use region::{Kind, Regions};

/// The system's pages.
const PAGE: u64 = 4096;
/// What a small block is rounded to.
const UNIT: u64 = 512;
/// Blocks from here on have pages to themselves.
const SMALL: u64 = 1 << 20;
/// The pages of device memory.
pub const BLOCK: u64 = 2 << 20;

/// Tell handle tables apart.
const POOL_HANDLES: u64 = 48;
const PHYSICAL_HANDLES: u64 = 49;

/// All memory.
#[derive(Debug)]
pub struct Memory {
    addresses: blocks::Addresses,
    blocks: blocks::Blocks,
    regions: Regions,
    physical: physical::PhysicalMemory,
    virtual_memory: virtual_memory::VirtualMemory,
    pools: pool::Pools,
    /// Graphs' blocks that go when points are complete.
    leaving: Vec<(Vec<Point>, u64)>,
    ids: u64,
}

impl Memory {
    pub fn new() -> Self {
        Self {
            addresses: blocks::Addresses::default(),
            blocks: blocks::Blocks::default(),
            regions: Regions::default(),
            physical: physical::PhysicalMemory::new(),
            virtual_memory: virtual_memory::VirtualMemory::default(),
            pools: pool::Pools::new(),
            leaving: Vec::new(),
            ids: 0,
        }
    }

    /// An identity that nothing had before.
    fn next_id(&mut self) -> u64 {
        self.ids += 1;
        self.ids
    }

    /// Blocks that the program has to give back: everything but modules' variables and graphs' memory.
    pub fn live_allocations(&self) -> u64 {
        let is_programs = |kind: &Kind| match kind {
            Kind::Global | Kind::Graph => false,
            Kind::Managed(managed) => !managed.is_global,
            _ => true,
        };
        let regions = self.regions.iter();
        regions.filter(|region| is_programs(&region.kind)).count() as u64
    }

    pub fn live_reservations(&self) -> u64 {
        self.virtual_memory.reservations() as u64
    }

    pub fn live_physical(&self) -> u64 {
        self.physical.len() as u64
    }

    pub fn live_mappings(&self) -> u64 {
        self.virtual_memory.mappings() as u64
    }

    /// Pools that the program made or imported.
    pub fn live_pools(&self) -> u64 {
        self.pools.live()
    }
}

impl State {
    /// A context goes, with all memory that was made in it. Reservations, memory of `cuMemCreate` and
    /// pools are the process's and stay.
    pub fn release_memory_of(&mut self, context: ContextId) {
        let regions = self.memory.regions.iter();
        let starts: Vec<u64> = regions
            .filter(|region| region.context == Some(context))
            .map(|region| region.start)
            .collect();
        for start in starts {
            self.release_region(start);
        }
    }

    /// Gives a block back in the way that its kind asks for.
    fn release_region(&mut self, start: u64) {
        let Some(region) = self.memory.regions.at(start) else {
            return;
        };
        match region.kind {
            Kind::Device | Kind::Global | Kind::Graph => self.give_back(start),
            Kind::Pinned { .. } => {
                let _ = self.free_host(start);
            }
            Kind::Registered { .. } => {
                let _ = self.unregister_host(start);
            }
            Kind::Managed(_) => self.release_managed(start),
            Kind::Ipc { .. } => self.end_ipc(start),
            Kind::Pool { .. } | Kind::PoolImport { .. } => self.free_pool_block(start),
        }
    }
}
