//! Who may touch what.

use super::host_memory::REGISTERED_READ_ONLY;
use super::region::Kind;
use super::space;
use crate::context::ContextId;
use crate::state::State;
use crate::status::{Code, Result};

/// What an access does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    Read,
    Write,
}

/// What kind of memory an address is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Location {
    /// Host memory that the driver does not know.
    Pageable,
    /// Page-locked host memory: the driver's, or registered.
    Pinned,
    Managed,
    /// An address of a device, in use or not.
    Device,
}

impl State {
    /// What kind of memory an address is in.
    pub fn location(&self, address: u64) -> Location {
        if space::is_inside(address) {
            return Location::Device;
        }
        match self.memory.regions.containing(address).map(|it| &it.kind) {
            Some(Kind::Managed(_)) => Location::Managed,
            Some(_) => Location::Pinned,
            None => Location::Pageable,
        }
    }

    /// Whether an address is host memory that the driver does not know, so that asynchronous copies of
    /// it are staged: they are complete (as seen from the host buffer) when the call returns.
    pub fn is_pageable(&self, address: u64) -> bool {
        self.location(address) == Location::Pageable
    }

    /// The context that the memory at an address belongs to; none for memory of pools and for mapped
    /// memory.
    pub fn owner(&self, address: u64) -> Option<ContextId> {
        self.memory.regions.containing(address)?.context
    }

    /// Where the host finds the bytes of an address, if there is anything. Memory that was freed in the
    /// order of a stream is there for the work before the free.
    pub fn host_pointer(&self, address: u64) -> Option<*mut u8> {
        let memory = &self.memory;
        let is_known = memory.regions.containing(address).is_some()
            || memory.virtual_memory.mapping(address).is_some()
            || memory.pools.is_pending(address);
        is_known.then(|| space::host(address))
    }

    /// Whether a range may be read or written by work in a context: allocated, or mapped and
    /// accessible; host memory that the driver does not know is taken as it is.
    ///
    /// The range lies in one allocation, or in mappings without gaps. Memory of `cuMemAlloc` may be
    /// anybody's, since the driver copies between devices without peer access too; mapped memory and
    /// memory of pools must be accessible to the context's device.
    ///
    /// # Errors
    /// `INVALID_VALUE`: not all of it.
    pub fn check_access(
        &self,
        context: ContextId,
        address: u64,
        bytes: u64,
        access: Access,
    ) -> Result {
        if bytes == 0 {
            return Ok(());
        }
        let last = address.checked_add(bytes - 1).ok_or(Code::INVALID_VALUE)?;
        let is_foreign = self.memory.regions.containing(address).is_none()
            && !space::is_inside(address)
            && !space::is_inside(last);
        if is_foreign && address != 0 {
            return Ok(());
        }
        self.check_device_access(context, address, bytes, access)
    }

    /// As [`State::check_access`], for what must be an address that devices know.
    ///
    /// # Errors
    /// `INVALID_VALUE`: not all of it.
    pub fn check_device_access(
        &self,
        context: ContextId,
        address: u64,
        bytes: u64,
        access: Access,
    ) -> Result {
        if bytes == 0 {
            return Ok(());
        }
        let device = self.context(context)?.device;
        let end = address.checked_add(bytes).ok_or(Code::INVALID_VALUE)?;
        let is_permitted = match self.memory.regions.containing(address) {
            Some(region) if end > region.end() => false,
            Some(region) => match region.kind {
                Kind::Pool { pool, .. } | Kind::PoolImport { pool, .. } => {
                    self.memory.pools.permits(pool, device, access)
                }
                Kind::Registered { flags } => {
                    access == Access::Read || flags & REGISTERED_READ_ONLY == 0
                }
                _ => true,
            },
            None => {
                let memory = &self.memory.virtual_memory;
                memory.permits(device, address, end, access)
            }
        };
        if is_permitted {
            Ok(())
        } else {
            Err(Code::INVALID_VALUE)
        }
    }
}
