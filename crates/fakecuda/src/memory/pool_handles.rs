//! Pools as programs name them: made, current, default, gone.

use super::pool::{Pool, PoolId};
use super::space;
use crate::abi::memory::{
    HANDLE_POSIX_FILE, HANDLE_TYPES, MemLocation, MemPoolProps, allocation_type, location,
};
use crate::environment::environment;
use crate::state::State;
use crate::status::{Code, Result};
use std::ffi::CString;
use std::os::fd::OwnedFd;

/// What the name of a shared pool's file starts with; then comes the device.
pub(super) const POOL_FILE: &str = "fakecuda-pool";

/// Whether devices have pools.
pub fn are_supported() -> bool {
    !environment().no_pools
}

fn pool_file(place: MemLocation) -> Result<OwnedFd> {
    let name = CString::new(format!("{POOL_FILE}:{}", place.id)).map_err(|_| Code::UNKNOWN)?;
    space::memory_file(&name, 0)
}

/// The properties of a pool of which nobody gave any.
pub(super) fn plain_props(place: MemLocation) -> MemPoolProps {
    MemPoolProps {
        kind: allocation_type::PINNED,
        handle_types: 0,
        location: place,
        win32: std::ptr::null_mut(),
        max_size: 0,
        usage: 0,
        gpu_direct_rdma: 0,
        reserved: [0; 53],
    }
}

impl State {
    /// Checks where a pool is to be, and gives the place as it is kept.
    ///
    /// # Errors
    /// `INVALID_VALUE`: there are no pools of that. `INVALID_DEVICE`. `NOT_SUPPORTED`: pools of managed
    /// memory.
    pub fn pool_place(&self, place: MemLocation, kind: u32) -> Result<MemLocation> {
        match (place.kind, kind) {
            (location::DEVICE, allocation_type::PINNED) => {
                self.device(place.id)?;
                Ok(place)
            }
            (location::HOST, allocation_type::PINNED) => Ok(MemLocation { id: 0, ..place }),
            (location::HOST_NUMA, allocation_type::PINNED) if place.id == 0 => Ok(place),
            (
                location::NONE | location::DEVICE | location::HOST | location::HOST_NUMA,
                allocation_type::MANAGED,
            ) => Err(Code::NOT_SUPPORTED),
            _ => Err(Code::INVALID_VALUE),
        }
    }

    /// `cuMemPoolCreate`.
    pub fn create_pool(&mut self, props: &MemPoolProps) -> Result<u64> {
        if props.handle_types & !HANDLE_TYPES != 0
            || !props.win32.is_null()
            || props.reserved != [0; 53]
        {
            return Err(Code::INVALID_VALUE);
        }
        let place = self.pool_place(props.location, props.kind);
        let place = place.map_err(|code| match code {
            Code::INVALID_DEVICE => Code::INVALID_VALUE,
            code => code,
        })?;
        let file = match (props.handle_types, place.kind) {
            (0, _) => None,
            (HANDLE_POSIX_FILE, location::DEVICE) => Some(pool_file(place)?),
            (_, location::HOST) => return Err(Code::INVALID_VALUE),
            _ => return Err(Code::NOT_SUPPORTED),
        };
        let props = MemPoolProps {
            location: place,
            ..*props
        };
        let pools = &mut self.memory.pools;
        let id = pools.insert(|handle| Pool::new(handle, props, file));
        Ok(pools.get(id)?.handle)
    }

    /// The default pool of a place.
    pub fn default_pool(&mut self, place: MemLocation) -> PoolId {
        let pools = &mut self.memory.pools;
        if let Some(id) = pools.default_of(place) {
            return id;
        }
        let id = pools.insert(|handle| {
            let mut pool = Pool::new(handle, plain_props(place), None);
            pool.is_default = true;
            pool
        });
        pools.set_default(place, id);
        id
    }

    /// The pool that is allocated from at a place.
    pub fn current_pool(&mut self, place: MemLocation) -> PoolId {
        match self.memory.pools.current_of(place) {
            Some(id) => id,
            None => self.default_pool(place),
        }
    }

    /// Makes a pool current at its place.
    pub fn set_current_pool(&mut self, place: MemLocation, handle: u64) -> Result {
        let id = self.memory.pools.by_handle(handle)?;
        let pool = self.memory.pools.get(id)?;
        if pool.place() != place || pool.is_imported {
            return Err(Code::INVALID_VALUE);
        }
        self.memory.pools.set_current(place, id);
        Ok(())
    }

    /// The pool of a handle.
    pub fn pool(&self, handle: u64) -> Result<&Pool> {
        self.memory.pools.get(self.memory.pools.by_handle(handle)?)
    }

    /// The pool of a handle.
    pub fn pool_mut(&mut self, handle: u64) -> Result<&mut Pool> {
        let id = self.memory.pools.by_handle(handle)?;
        self.memory.pools.get_mut(id)
    }

    /// The handle of a pool.
    pub fn pool_handle(&self, id: PoolId) -> Result<u64> {
        Ok(self.memory.pools.get(id)?.handle)
    }

    /// The pool of a handle, for an allocation.
    pub fn pool_id(&self, handle: u64) -> Result<PoolId> {
        self.memory.pools.by_handle(handle)
    }
}
