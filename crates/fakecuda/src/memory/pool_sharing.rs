//! Pools, and blocks in them, that another process looks at.

use super::physical::{duplicate, file_identity, file_numbers};
use super::pool::Pool;
use super::pool_handles::{POOL_FILE, plain_props};
use super::region::{Kind, Region};
use super::{BLOCK, PAGE, space};
use crate::abi::memory::{HANDLE_POSIX_FILE, MemLocation, Opaque64, access_flags};
use crate::state::State;
use crate::status::{Code, Result};
use std::os::fd::{AsRawFd, IntoRawFd, RawFd};

/// What the data that stands for a block starts with.
const MARK: u64 = u64::from_le_bytes(*b"fakepool");

impl State {
    /// Shows `bytes` bytes of a file that begin anywhere, and gives their address and the pages.
    pub(super) fn show_part(
        &mut self,
        file: RawFd,
        offset: u64,
        bytes: u64,
    ) -> Result<(u64, (u64, u64))> {
        let (_, _, file_length) = file_identity(file)?;
        let end = offset.checked_add(bytes).ok_or(Code::INVALID_VALUE)?;
        if bytes == 0 || end > file_length {
            return Err(Code::INVALID_VALUE);
        }
        let from = offset / PAGE * PAGE;
        let length = end.next_multiple_of(PAGE) - from;
        // Whole blocks of addresses, so that what is there later is aligned as ever.
        let taken = length.next_multiple_of(BLOCK);
        let at = self.memory.addresses.take(taken, BLOCK, 0)?;
        let shown = space::show(Some(file), at, length, from, false)
            .and_then(|()| space::protect(at, length, access_flags::READ_WRITE));
        if let Err(code) = shown {
            self.hide_import((at, taken));
            return Err(code);
        }
        Ok((at + (offset - from), (at, taken)))
    }

    /// `cuMemPoolExportToShareableHandle`: a new descriptor, which is the program's.
    pub fn export_pool(&self, handle: u64, kind: u32) -> Result<RawFd> {
        match &self.pool(handle)?.file {
            Some(file) if kind == HANDLE_POSIX_FILE && !self.pool(handle)?.is_imported => {
                Ok(duplicate(file.as_raw_fd())?.into_raw_fd())
            }
            _ => Err(Code::INVALID_VALUE),
        }
    }

    /// `cuMemPoolImportFromShareableHandle`. The descriptor stays the program's.
    pub fn import_pool(&mut self, file: RawFd) -> Result<u64> {
        let [device] = file_numbers(file, POOL_FILE)?;
        let place = MemLocation::of_device(device as i32);
        self.device(place.id).map_err(|_| Code::INVALID_VALUE)?;
        let file = duplicate(file)?;
        let pools = &mut self.memory.pools;
        let id = pools.insert(|handle| {
            let mut pool = Pool::new(handle, plain_props(place), Some(file));
            pool.is_imported = true;
            pool
        });
        Ok(pools.get(id)?.handle)
    }

    /// `cuMemPoolExportPointer`.
    pub fn export_pool_block(&self, address: u64) -> Result<Opaque64> {
        let region = self.memory.regions.at(address).ok_or(Code::INVALID_VALUE)?;
        let Kind::Pool { pool, .. } = region.kind else {
            return Err(Code::INVALID_VALUE);
        };
        let pool = self.memory.pools.get(pool)?;
        let file = pool.file.as_ref().ok_or(Code::INVALID_VALUE)?;
        let (device, inode, _) = file_identity(file.as_raw_fd())?;
        let offset = pool.file_offset(address).ok_or(Code::INVALID_VALUE)?;
        let numbers = [MARK, device, inode, offset, region.bytes, 0, 0, 0];
        Ok(Opaque64::of(numbers))
    }

    /// `cuMemPoolImportPointer`.
    pub fn import_pool_block(&mut self, handle: u64, data: &Opaque64) -> Result<u64> {
        let [mark, file_device, inode, offset, bytes, ..] = data.numbers();
        let id = self.pool_id(handle)?;
        let pool = self.memory.pools.get(id)?;
        let device = pool.device().ok_or(Code::INVALID_VALUE)?;
        let file = pool.file.as_ref().ok_or(Code::INVALID_VALUE)?.as_raw_fd();
        let (own_device, own_inode, _) = file_identity(file)?;
        if !pool.is_imported || mark != MARK || (own_device, own_inode) != (file_device, inode) {
            return Err(Code::INVALID_VALUE);
        }
        let (start, pages) = self.show_part(file, offset, bytes)?;
        self.memory.pools.get_mut(id)?.add_import(bytes);
        let buffer = self.memory.next_id();
        self.memory.regions.insert(Region {
            start,
            bytes,
            taken: 0,
            id: buffer,
            context: None,
            device,
            sync_memops: false,
            kind: Kind::PoolImport { pool: id, pages },
        });
        Ok(start)
    }
}
