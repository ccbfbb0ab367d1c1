//! The memory of `cuMemCreate`, which has no address of its own.

use super::ranges::Ranges;
use super::{BLOCK, PHYSICAL_HANDLES, space};
use crate::abi::memory::{
    HANDLE_POSIX_FILE, HANDLE_TYPES, MemAllocationProp, MemLocation, allocation_type, location,
};
use crate::handle::Table;
use crate::state::State;
use crate::status::{Code, Result};
use std::ffi::CString;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

/// A piece of memory. Its handle stays the same as long as it is held or mapped.
#[derive(Debug)]
pub struct Physical {
    pub bytes: u64,
    pub prop: MemAllocationProp,
    /// `CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID`.
    pub id: u64,
    /// A file of its own if it can be shared, otherwise it is part of the window's.
    file: Option<OwnedFd>,
    offset: u64,
    /// The device whose capacity it takes: not for host memory, nor for another process's.
    counted: Option<usize>,
    /// How often its handle was given out and not yet released.
    held: u32,
    /// How often it is mapped.
    mapped: u32,
}

/// All of it.
#[derive(Debug)]
pub struct PhysicalMemory {
    table: Table<Physical>,
    /// Free parts of the window's file; `None` until there is a window.
    free: Option<Ranges>,
}

/// What the name of a shared file starts with; then come location and handle types.
const FILE_NAME: &str = "fakecuda-memory";

impl PhysicalMemory {
    pub fn new() -> Self {
        Self {
            table: Table::new(PHYSICAL_HANDLES),
            free: None,
        }
    }

    pub fn len(&self) -> usize {
        self.table.len()
    }

    /// The memory of a handle that the program holds.
    pub fn held(&self, handle: u64) -> Result<&Physical> {
        let physical = self.table.get(handle);
        physical
            .filter(|physical| physical.held > 0)
            .ok_or(Code::INVALID_VALUE)
    }

    /// The memory of a mapping.
    pub fn get(&self, handle: u64) -> Option<&Physical> {
        self.table.get(handle)
    }

    fn take_file(&mut self, bytes: u64) -> Result<u64> {
        let free = match &mut self.free {
            Some(free) => free,
            none => {
                let (_, length) = space::bounds()?;
                let free = none.insert(Ranges::default());
                free.give(length, length);
                free
            }
        };
        free.take(bytes, BLOCK).ok_or(Code::OUT_OF_MEMORY)
    }

    /// Counts one mapping more, and says where the bytes are.
    pub fn map(&mut self, handle: u64) -> Result<(Option<RawFd>, u64)> {
        let physical = self.table.get_mut(handle).ok_or(Code::INVALID_VALUE)?;
        physical.mapped += 1;
        let file = physical.file.as_ref().map(AsRawFd::as_raw_fd);
        Ok((file, physical.offset))
    }
}

impl Physical {
    /// Whether it is on the host.
    pub fn is_host(&self) -> bool {
        self.prop.location.kind != location::DEVICE
    }
}

/// Makes the file of memory that can be shared. Its name says what it is, for another process.
fn shareable_file(prop: &MemAllocationProp, bytes: u64) -> Result<OwnedFd> {
    let place = prop.location;
    let name = format!(
        "{FILE_NAME}:{}:{}:{}",
        place.kind, place.id, prop.handle_types
    );
    let name = CString::new(name).map_err(|_| Code::UNKNOWN)?;
    space::memory_file(&name, bytes)
}

/// Device, inode and length of an open file.
pub(super) fn file_identity(file: RawFd) -> Result<(u64, u64, u64)> {
    // SAFETY: the structure is plain numbers, filled by the call.
    let mut stat: libc::stat64 = unsafe { std::mem::zeroed() };
    // SAFETY: a descriptor that is not open gives an error.
    if unsafe { libc::fstat64(file, &mut stat) } != 0 {
        return Err(Code::INVALID_VALUE);
    }
    Ok((stat.st_dev, stat.st_ino, stat.st_size as u64))
}

/// Another descriptor of a file, which programs that are started do not get.
pub(super) fn duplicate(file: RawFd) -> Result<OwnedFd> {
    // SAFETY: a descriptor that is not open gives an error.
    let fd = unsafe { libc::fcntl(file, libc::F_DUPFD_CLOEXEC, 0) };
    if fd < 0 {
        return Err(Code::INVALID_VALUE);
    }
    // SAFETY: it was just made.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// The numbers in the name of a file in memory that starts with `name`.
pub(super) fn file_numbers<const N: usize>(file: RawFd, name: &str) -> Result<[i64; N]> {
    let link = std::fs::read_link(format!("/proc/self/fd/{file}"));
    let link = link.map_err(|_| Code::INVALID_VALUE)?;
    let text = link.to_string_lossy();
    let rest = text
        .strip_prefix("/memfd:")
        .and_then(|text| text.strip_prefix(name))
        .and_then(|text| text.strip_prefix(':'))
        .ok_or(Code::INVALID_VALUE)?;
    let rest = rest.strip_suffix(" (deleted)").unwrap_or(rest);
    let numbers: std::result::Result<Vec<i64>, _> = rest.split(':').map(str::parse).collect();
    let numbers = numbers.map_err(|_| Code::INVALID_VALUE)?;
    numbers.try_into().map_err(|_| Code::INVALID_VALUE)
}

impl State {
    /// Checks properties; gives them with the location as it is kept.
    pub fn checked_prop(&self, prop: &MemAllocationProp) -> Result<MemAllocationProp> {
        let mut prop = *prop;
        if prop.kind != allocation_type::PINNED || !prop.win32.is_null() {
            return Err(Code::INVALID_VALUE);
        }
        match prop.location.kind {
            location::DEVICE => {
                self.device(prop.location.id)?;
            }
            location::HOST if prop.handle_types == 0 => prop.location.id = 0,
            location::HOST_NUMA if prop.location.id == 0 => {}
            _ => return Err(Code::INVALID_VALUE),
        }
        if prop.handle_types & !HANDLE_TYPES != 0 {
            return Err(Code::INVALID_VALUE);
        }
        if prop.handle_types & !HANDLE_POSIX_FILE != 0 {
            return Err(Code::NOT_SUPPORTED);
        }
        Ok(prop)
    }

    /// `cuMemCreate`.
    pub fn create_physical(&mut self, bytes: u64, prop: &MemAllocationProp) -> Result<u64> {
        let mut prop = self.checked_prop(prop)?;
        if bytes == 0 || bytes % BLOCK != 0 {
            return Err(Code::INVALID_VALUE);
        }
        // There is no compression here, and the properties that are asked for later say so.
        prop.compression = 0;
        let counted = match prop.location.kind {
            location::DEVICE => Some(self.device(prop.location.id)?),
            _ => None,
        };
        if let Some(device) = counted {
            self.take_capacity(device, bytes)?;
        }
        let made = self.make_physical(bytes, prop, counted);
        if made.is_err() {
            if let Some(device) = counted {
                self.give_capacity(device, bytes);
            }
        }
        made
    }

    fn make_physical(
        &mut self,
        bytes: u64,
        prop: MemAllocationProp,
        counted: Option<usize>,
    ) -> Result<u64> {
        let (file, offset) = if prop.handle_types == 0 {
            (None, self.memory.physical.take_file(bytes)?)
        } else {
            (Some(shareable_file(&prop, bytes)?), 0)
        };
        let descriptor = file.as_ref().map(AsRawFd::as_raw_fd);
        if let Err(code) = space::fill_fresh_file(descriptor, offset, bytes) {
            self.forget_bytes(descriptor, offset, bytes);
            return Err(code);
        }
        let id = self.memory.next_id();
        Ok(self.memory.physical.table.insert(Physical {
            bytes,
            prop,
            id,
            file,
            offset,
            counted,
            held: 1,
            mapped: 0,
        }))
    }

    /// Gives the pages of memory back that nobody has any more.
    fn forget_bytes(&mut self, file: Option<RawFd>, offset: u64, bytes: u64) {
        // A file of its own goes when the last descriptor does: another process may have it yet.
        if file.is_none() {
            space::punch(None, offset, bytes);
            if let Some(free) = &mut self.memory.physical.free {
                free.give(offset, bytes);
            }
        }
    }

    /// Ends memory that is neither held nor mapped.
    fn end_physical(&mut self, handle: u64) {
        let table = &mut self.memory.physical.table;
        let in_use = table
            .get(handle)
            .is_none_or(|physical| physical.held > 0 || physical.mapped > 0);
        if in_use {
            return;
        }
        if let Some(physical) = table.remove(handle) {
            let file = physical.file.as_ref().map(AsRawFd::as_raw_fd);
            self.forget_bytes(file, physical.offset, physical.bytes);
            if let Some(device) = physical.counted {
                self.give_capacity(device, physical.bytes);
            }
        }
    }

    /// `cuMemRelease`.
    pub fn release_physical(&mut self, handle: u64) -> Result {
        self.memory.physical.held(handle)?;
        if let Some(physical) = self.memory.physical.table.get_mut(handle) {
            physical.held -= 1;
        }
        self.end_physical(handle);
        Ok(())
    }

    /// Counts a reference more.
    pub fn retain_physical(&mut self, handle: u64) -> Result {
        let physical = self.memory.physical.table.get_mut(handle);
        physical.ok_or(Code::INVALID_VALUE)?.held += 1;
        Ok(())
    }

    /// Counts a mapping less.
    pub(super) fn unmapped_physical(&mut self, handle: u64) {
        if let Some(physical) = self.memory.physical.table.get_mut(handle) {
            physical.mapped -= 1;
        }
        self.end_physical(handle);
    }

    /// `cuMemExportToShareableHandle`: a new descriptor, which is the program's.
    pub fn export_physical(&self, handle: u64, kind: u32) -> Result<RawFd> {
        let physical = self.memory.physical.held(handle)?;
        match &physical.file {
            Some(file) if kind == HANDLE_POSIX_FILE => {
                let file = duplicate(file.as_raw_fd())?;
                Ok(std::os::fd::IntoRawFd::into_raw_fd(file))
            }
            _ => Err(Code::INVALID_VALUE),
        }
    }

    /// `cuMemImportFromShareableHandle`. The descriptor stays the program's.
    pub fn import_physical(&mut self, file: RawFd) -> Result<u64> {
        let (device, inode, bytes) = file_identity(file)?;
        let known = self.memory.physical.table.iter().find(|(_, physical)| {
            physical.file.as_ref().is_some_and(|file| {
                file_identity(file.as_raw_fd()).is_ok_and(|own| own == (device, inode, bytes))
            })
        });
        if let Some(handle) = known.map(|(handle, _)| handle) {
            self.retain_physical(handle)?;
            return Ok(handle);
        }
        let [kind, id, handle_types] = file_numbers(file, FILE_NAME)?;
        let place = MemLocation {
            kind: kind as u32,
            id: id as i32,
        };
        if place.kind == location::DEVICE {
            self.device(place.id).map_err(|_| Code::NOT_SUPPORTED)?;
        }
        let file = duplicate(file)?;
        let id = self.memory.next_id();
        Ok(self.memory.physical.table.insert(Physical {
            bytes,
            prop: MemAllocationProp {
                kind: allocation_type::PINNED,
                handle_types: handle_types as u32,
                location: place,
                win32: std::ptr::null_mut(),
                compression: 0,
                gpu_direct_rdma: 0,
                usage: 0,
                reserved: [0; 4],
            },
            id,
            file: Some(file),
            offset: 0,
            counted: None,
            held: 1,
            mapped: 0,
        }))
    }
}
