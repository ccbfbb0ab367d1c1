//! Memory of `cuMemAlloc` that another process sees.
//!
//! A handle says in which file of which process the block is; the other process opens that file by
//! the first one's list of open files, as long as it runs.

use super::physical::file_identity;
use super::region::{Kind, Region};
use super::space;
use crate::abi::memory::Opaque64;
use crate::context::ContextId;
use crate::state::State;
use crate::status::{Code, Result};
use std::fs::OpenOptions;
use std::os::fd::AsRawFd;

/// What a handle starts with.
const MARK: u64 = u64::from_le_bytes(*b"fakecuda");

impl State {
    /// `cuIpcGetMemHandle`: of the whole block that an address is in.
    pub fn export_block(&self, address: u64) -> Result<Opaque64> {
        let region = self.memory.regions.containing(address);
        let region = region.ok_or(Code::INVALID_VALUE)?;
        if !matches!(region.kind, Kind::Device) {
            return Err(Code::INVALID_VALUE);
        }
        let file = space::file()?;
        let (file_device, inode, _) = file_identity(file)?;
        let process = u64::from(std::process::id());
        let offset = space::offset(region.start)?;
        // The block's identity makes the handle of a later block at the same place another one.
        Ok(Opaque64::of([
            MARK,
            process << 32 | file as u64,
            file_device,
            inode,
            offset,
            region.bytes,
            region.device as u64,
            region.id,
        ]))
    }

    /// `cuIpcOpenMemHandle`.
    ///
    /// # Errors
    /// `INVALID_VALUE`: not a handle. `INVALID_CONTEXT`: it is of this process, or already open in
    /// another context. `MAP_FAILED`: its process is gone.
    pub fn import_block(&mut self, context: ContextId, handle: &Opaque64) -> Result<u64> {
        let [mark, place, file_device, inode, offset, bytes, device, _] = handle.numbers();
        let (process, file) = (place >> 32, place & 0xffff_ffff);
        if mark != MARK {
            return Err(Code::INVALID_VALUE);
        }
        if process == u64::from(std::process::id()) {
            return Err(Code::INVALID_CONTEXT);
        }
        let known = self.memory.regions.iter().find(
            |region| matches!(&region.kind, Kind::Ipc { handle: known, .. } if *known == handle.0),
        );
        if let Some((start, owner)) = known.map(|region| (region.start, region.context)) {
            if owner != Some(context) {
                return Err(Code::INVALID_CONTEXT);
            }
            if let Some(region) = self.memory.regions.at_mut(start) {
                if let Kind::Ipc { opened, .. } = &mut region.kind {
                    *opened += 1;
                }
            }
            return Ok(start);
        }
        let device = i32::try_from(device).map_err(|_| Code::INVALID_VALUE)?;
        let device = self.device(device).map_err(|_| Code::INVALID_VALUE)?;
        let path = format!("/proc/{process}/fd/{file}");
        let file = OpenOptions::new().read(true).write(true).open(path);
        let file = file.map_err(|_| Code::MAP_FAILED)?;
        let (its_device, its_inode, _) = file_identity(file.as_raw_fd())?;
        if (its_device, its_inode) != (file_device, inode) {
            return Err(Code::MAP_FAILED);
        }
        let (start, pages) = self.show_part(file.as_raw_fd(), offset, bytes)?;
        let id = self.memory.next_id();
        self.memory.regions.insert(Region {
            start,
            bytes,
            taken: 0,
            id,
            context: Some(context),
            device,
            sync_memops: false,
            kind: Kind::Ipc {
                handle: handle.0,
                opened: 1,
                pages,
            },
        });
        Ok(start)
    }

    /// The device of an opened block.
    pub fn imported_device(&self, start: u64) -> Result<usize> {
        match self.memory.regions.at(start) {
            Some(region) if matches!(region.kind, Kind::Ipc { .. }) => Ok(region.device),
            _ => Err(Code::INVALID_VALUE),
        }
    }

    /// `cuIpcCloseMemHandle`. The caller has waited for the device's work.
    pub fn close_import(&mut self, start: u64) -> Result {
        let region = self.memory.regions.at_mut(start);
        let Kind::Ipc { opened, .. } = &mut region.ok_or(Code::INVALID_VALUE)?.kind else {
            return Err(Code::INVALID_VALUE);
        };
        *opened -= 1;
        if *opened == 0 {
            self.end_ipc(start);
        }
        Ok(())
    }

    /// An opened block goes, however often it was opened.
    pub(super) fn end_ipc(&mut self, start: u64) {
        if let Some(region) = self.memory.regions.remove(start) {
            if let Kind::Ipc { pages, .. } = region.kind {
                self.hide_import(pages);
            }
        }
    }
}
