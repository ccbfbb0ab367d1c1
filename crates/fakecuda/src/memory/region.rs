//! What lies at an address.

use super::managed::Managed;
use super::pool::PoolId;
use crate::context::ContextId;
use crate::exec::Point;
use std::collections::BTreeMap;

/// How a block of memory came to be, and so how it goes.
#[derive(Debug)]
pub enum Kind {
    /// `cuMemAlloc`, `cuMemAllocPitch`.
    Device,
    /// A module's variable: goes with the module.
    Global,
    /// A graph's allocation node: goes with the graph.
    Graph,
    /// `cuMemAllocAsync`, `cuMemAllocFromPoolAsync`.
    Pool {
        pool: PoolId,
        made: Point,
        on_host: bool,
    },
    /// `cuMemPoolImportPointer`: a block of another process's pool, in pages of the window.
    PoolImport { pool: PoolId, pages: (u64, u64) },
    /// `cuIpcOpenMemHandle`, so many times: another process's memory, known by its handle's bytes.
    Ipc {
        handle: [u8; 64],
        opened: u32,
        pages: (u64, u64),
    },
    /// `cuMemAllocHost`, `cuMemHostAlloc`.
    Pinned { flags: u32 },
    /// `cuMemHostRegister`.
    Registered { flags: u32 },
    /// `cuMemAllocManaged`, or a managed variable of a module.
    Managed(Managed),
}

/// A block of memory.
#[derive(Debug)]
pub struct Region {
    pub start: u64,
    /// As many bytes as the program asked for.
    pub bytes: u64,
    /// As many bytes as it takes: addresses and, for device memory, capacity.
    pub taken: u64,
    /// `CU_POINTER_ATTRIBUTE_BUFFER_ID`: never given twice.
    pub id: u64,
    /// The context that it goes with. Pools' memory belongs to none.
    pub context: Option<ContextId>,
    /// The device that it is on or, for host memory, was made beside.
    pub device: usize,
    /// `CU_POINTER_ATTRIBUTE_SYNC_MEMOPS`.
    pub sync_memops: bool,
    pub kind: Kind,
}

impl Region {
    /// The address behind its last byte.
    pub fn end(&self) -> u64 {
        self.start + self.bytes
    }

    /// Whether it is device memory.
    pub fn is_device(&self) -> bool {
        !matches!(
            self.kind,
            Kind::Pinned { .. }
                | Kind::Registered { .. }
                | Kind::Managed(_)
                | Kind::Pool { on_host: true, .. }
        )
    }
}

/// All blocks, none of which overlap.
#[derive(Debug, Default)]
pub struct Regions {
    by_start: BTreeMap<u64, Region>,
}

impl Regions {
    pub fn insert(&mut self, region: Region) {
        self.by_start.insert(region.start, region);
    }

    pub fn remove(&mut self, start: u64) -> Option<Region> {
        self.by_start.remove(&start)
    }

    /// The block that begins at an address.
    pub fn at(&self, start: u64) -> Option<&Region> {
        self.by_start.get(&start)
    }

    /// The block that begins at an address.
    pub fn at_mut(&mut self, start: u64) -> Option<&mut Region> {
        self.by_start.get_mut(&start)
    }

    /// The block that an address is in.
    pub fn containing(&self, address: u64) -> Option<&Region> {
        let (_, region) = self.by_start.range(..=address).next_back()?;
        (address < region.end()).then_some(region)
    }

    /// The block that an address is in.
    pub fn containing_mut(&mut self, address: u64) -> Option<&mut Region> {
        let (_, region) = self.by_start.range_mut(..=address).next_back()?;
        (address < region.end()).then_some(region)
    }

    /// Whether a range of addresses touches any block.
    pub fn overlaps(&self, start: u64, end: u64) -> bool {
        let before = self.by_start.range(..end).next_back();
        before.is_some_and(|(_, region)| region.end() > start)
    }

    pub fn iter(&self) -> impl Iterator<Item = &Region> {
        self.by_start.values()
    }
}
