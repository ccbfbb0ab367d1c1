//! What the driver says of a pointer.

use super::region::{Kind, Region};
use super::virtual_memory::{Mapping, Reservation};
use crate::abi::memory::{HANDLE_POSIX_FILE, MemLocation, PeerTokens, access_flags, location};
use crate::state::State;
use crate::status::{Code, Result};

/// `CUpointer_attribute`.
pub mod attribute {
    pub const CONTEXT: u32 = 1;
    pub const MEMORY_TYPE: u32 = 2;
    pub const DEVICE_POINTER: u32 = 3;
    pub const HOST_POINTER: u32 = 4;
    pub const P2P_TOKENS: u32 = 5;
    pub const SYNC_MEMOPS: u32 = 6;
    pub const BUFFER_ID: u32 = 7;
    pub const IS_MANAGED: u32 = 8;
    pub const DEVICE_ORDINAL: u32 = 9;
    pub const IS_LEGACY_IPC_CAPABLE: u32 = 10;
    pub const RANGE_START: u32 = 11;
    pub const RANGE_SIZE: u32 = 12;
    pub const MAPPED: u32 = 13;
    pub const ALLOWED_HANDLE_TYPES: u32 = 14;
    pub const IS_RDMA_CAPABLE: u32 = 15;
    pub const ACCESS_FLAGS: u32 = 16;
    pub const MEMPOOL_HANDLE: u32 = 17;
    pub const MAPPING_SIZE: u32 = 18;
    pub const MAPPING_BASE: u32 = 19;
    pub const MEMORY_BLOCK_ID: u32 = 20;
    pub const IS_DECOMPRESS_CAPABLE: u32 = 21;
    pub const LOCALITY_DOMAIN: u32 = 22;
}

/// `CU_MEMORYTYPE_HOST` and `CU_MEMORYTYPE_DEVICE`.
const ON_HOST: u32 = 1;
const ON_DEVICE: u32 = 2;

/// An attribute's value, as wide as the program's variable for it.
#[derive(Clone, Copy, Debug)]
pub enum Value {
    Flag(bool),
    Number(u32),
    Ordinal(i32),
    Long(u64),
    Tokens(PeerTokens),
}

/// The value of an attribute for a pointer that the driver does not know; `None`: there is no such
/// attribute.
pub fn unknown(which: u32) -> Option<Value> {
    use attribute::*;
    Some(match which {
        CONTEXT | DEVICE_POINTER | HOST_POINTER | BUFFER_ID | RANGE_START | RANGE_SIZE
        | MEMPOOL_HANDLE | MAPPING_SIZE | MAPPING_BASE | MEMORY_BLOCK_ID => Value::Long(0),
        P2P_TOKENS => Value::Tokens(PeerTokens::default()),
        MEMORY_TYPE | ALLOWED_HANDLE_TYPES | ACCESS_FLAGS => Value::Number(0),
        SYNC_MEMOPS
        | IS_MANAGED
        | IS_LEGACY_IPC_CAPABLE
        | MAPPED
        | IS_RDMA_CAPABLE
        | IS_DECOMPRESS_CAPABLE => Value::Flag(false),
        DEVICE_ORDINAL => Value::Ordinal(super::NO_DEVICE),
        LOCALITY_DOMAIN => Value::Ordinal(-1),
        _ => return None,
    })
}

impl State {
    /// An attribute of a pointer.
    ///
    /// # Errors
    /// `INVALID_VALUE`: there is no such attribute, or not of this pointer. `INVALID_CONTEXT`: the
    /// answer depends on the current context, and there is none.
    pub fn pointer_attribute(&mut self, which: u32, pointer: u64) -> Result<Value> {
        if unknown(which).is_none() {
            return Err(Code::INVALID_VALUE);
        }
        if which == attribute::P2P_TOKENS {
            // Asking has a side effect, says the documentation.
            self.set_sync_memops(pointer, true)?;
        }
        let memory = &self.memory;
        if let Some(region) = memory.regions.containing(pointer) {
            return self.region_attribute(which, pointer, region);
        }
        let reservation = memory.virtual_memory.reservation(pointer);
        let reservation = reservation.ok_or(Code::INVALID_VALUE)?;
        match memory.virtual_memory.mapping(pointer) {
            Some(mapping) => self.mapping_attribute(which, pointer, mapping, reservation),
            None => reservation_attribute(which, reservation),
        }
    }

    fn region_attribute(&self, which: u32, pointer: u64, region: &Region) -> Result<Value> {
        use attribute::*;
        let is_device = region.is_device();
        let is_managed = matches!(region.kind, Kind::Managed(_));
        let pool = match region.kind {
            Kind::Pool { pool, .. } | Kind::PoolImport { pool, .. } => {
                self.memory.pools.get(pool).ok()
            }
            _ => None,
        };
        let access = || self.kernel_access(region);
        Ok(match which {
            CONTEXT => {
                let context = region.context.and_then(|id| self.context(id).ok());
                Value::Long(context.map_or(0, |context| context.handle))
            }
            MEMORY_TYPE if is_device || is_managed => Value::Number(ON_DEVICE),
            MEMORY_TYPE => Value::Number(ON_HOST),
            DEVICE_POINTER if access()? == access_flags::NONE => return Err(Code::INVALID_VALUE),
            DEVICE_POINTER => Value::Long(pointer),
            HOST_POINTER if is_device => return Err(Code::INVALID_VALUE),
            HOST_POINTER => Value::Long(pointer),
            P2P_TOKENS if matches!(region.kind, Kind::Device) => Value::Tokens(PeerTokens {
                peer: region.id,
                space: 1,
            }),
            P2P_TOKENS => return Err(Code::INVALID_VALUE),
            SYNC_MEMOPS => Value::Flag(region.sync_memops),
            BUFFER_ID | MEMORY_BLOCK_ID => Value::Long(region.id),
            IS_MANAGED => Value::Flag(is_managed),
            DEVICE_ORDINAL => Value::Ordinal(match pool {
                Some(pool) => MemLocation::as_device(Some(pool.place())),
                None => region.device as i32,
            }),
            IS_LEGACY_IPC_CAPABLE => Value::Flag(matches!(region.kind, Kind::Device)),
            RANGE_START | MAPPING_BASE => Value::Long(region.start),
            RANGE_SIZE | MAPPING_SIZE => Value::Long(region.bytes),
            MAPPED => Value::Flag(true),
            ALLOWED_HANDLE_TYPES => Value::Number(pool.map_or(0, |pool| pool.props.handle_types)),
            IS_RDMA_CAPABLE => Value::Flag(matches!(region.kind, Kind::Device)),
            ACCESS_FLAGS => Value::Number(access()?),
            MEMPOOL_HANDLE => Value::Long(pool.map_or(0, |pool| pool.handle)),
            _ => return unknown(which).ok_or(Code::INVALID_VALUE),
        })
    }

    /// What kernels of the current context may do with a block: here, other than in copies, memory of
    /// another device is theirs only with peer access.
    fn kernel_access(&self, region: &Region) -> Result<u32> {
        let current = self.context(self.current()?)?;
        let is_permitted = match region.kind {
            Kind::Pool { pool, .. } | Kind::PoolImport { pool, .. } => {
                let place = MemLocation::of_device(current.device as i32);
                return Ok(self.memory.pools.get(pool)?.access(place));
            }
            // `cuIpcOpenMemHandle` enables peer access.
            _ if !region.is_device() || matches!(region.kind, Kind::Ipc { .. }) => true,
            _ => {
                let owner = region.context;
                region.device == current.device
                    || owner.is_some_and(|owner| current.peers.contains(&owner))
            }
        };
        Ok(if is_permitted {
            access_flags::READ_WRITE
        } else {
            access_flags::NONE
        })
    }

    fn mapping_attribute(
        &self,
        which: u32,
        pointer: u64,
        mapping: &Mapping,
        reservation: &Reservation,
    ) -> Result<Value> {
        use attribute::*;
        let physical = self.memory.physical.get(mapping.physical);
        let physical = physical.ok_or(Code::INVALID_VALUE)?;
        let place = physical.prop.location;
        let host = MemLocation {
            kind: location::HOST,
            id: 0,
        };
        let access = || -> Result<u32> {
            let device = self.current_device()? as i32;
            Ok(mapping.access(MemLocation::of_device(device)))
        };
        Ok(match which {
            MEMORY_TYPE if physical.is_host() => Value::Number(ON_HOST),
            MEMORY_TYPE => Value::Number(ON_DEVICE),
            DEVICE_POINTER if access()? == access_flags::NONE => return Err(Code::INVALID_VALUE),
            DEVICE_POINTER => Value::Long(pointer),
            HOST_POINTER if mapping.access(host) == access_flags::NONE => {
                return Err(Code::INVALID_VALUE);
            }
            HOST_POINTER => Value::Long(pointer),
            P2P_TOKENS => return Err(Code::INVALID_VALUE),
            SYNC_MEMOPS => Value::Flag(mapping.sync_memops),
            BUFFER_ID => Value::Long(mapping.id),
            DEVICE_ORDINAL => Value::Ordinal(MemLocation::as_device(Some(place))),
            MAPPED => Value::Flag(true),
            ALLOWED_HANDLE_TYPES => Value::Number(physical.prop.handle_types & HANDLE_POSIX_FILE),
            IS_RDMA_CAPABLE => Value::Flag(physical.prop.gpu_direct_rdma != 0),
            ACCESS_FLAGS => Value::Number(access()?),
            MAPPING_SIZE => Value::Long(mapping.bytes),
            MAPPING_BASE => Value::Long(mapping.start),
            MEMORY_BLOCK_ID => Value::Long(physical.id),
            RANGE_START | RANGE_SIZE => return reservation_attribute(which, reservation),
            _ => return unknown(which).ok_or(Code::INVALID_VALUE),
        })
    }

    /// Whether synchronous copies and sets of the memory at an address always finish in the call.
    pub fn has_sync_memops(&self, address: u64) -> bool {
        let region = self.memory.regions.containing(address);
        let mapping = self.memory.virtual_memory.mapping(address);
        region.is_some_and(|region| region.sync_memops)
            || mapping.is_some_and(|mapping| mapping.sync_memops)
    }

    /// Sets whether synchronous copies and sets of a block always finish in the call.
    pub fn set_sync_memops(&mut self, pointer: u64, on: bool) -> Result {
        if let Some(region) = self.memory.regions.containing_mut(pointer) {
            region.sync_memops = on;
            return Ok(());
        }
        let mapping = self.memory.virtual_memory.mapping_mut(pointer);
        mapping.ok_or(Code::INVALID_VALUE)?.sync_memops = on;
        Ok(())
    }
}

/// Addresses without memory: only the range is known.
fn reservation_attribute(which: u32, reservation: &Reservation) -> Result<Value> {
    match which {
        attribute::RANGE_START => Ok(Value::Long(reservation.start)),
        attribute::RANGE_SIZE => Ok(Value::Long(reservation.bytes)),
        attribute::MAPPED => Ok(Value::Flag(false)),
        _ => Err(Code::INVALID_VALUE),
    }
}
