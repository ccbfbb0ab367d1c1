//! The addresses of device memory, and the bytes behind them.
//!
//! One window of addresses is reserved for the whole process; every device address lies in it. The
//! bytes are those of one file in memory. Ordinary device memory is at the place of the file that its
//! address says; the file goes on behind the window with the memory of `cuMemCreate`, which may be
//! mapped anywhere in the window, and more than once.
//!
//! In the strict mode the window itself is never accessible, and a second one at a constant distance
//! shows the bytes to the driver's own threads: a program that touches a device address dies, as it
//! should.

use super::PAGE;
use crate::environment::environment;
use crate::status::{Code, Result};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::sync::OnceLock;

/// What fresh memory holds.
pub const FRESH: u8 = 0xcb;
/// What freed memory holds.
pub const FREED: u8 = 0xdb;
/// Larger blocks are only filled this far from either end while fresh, which keeps them cheap.
const FILLED: u64 = 64 << 10;
/// Blocks up to this size are filled all over while fresh.
const FILLED_ALL: u64 = 1 << 20;

/// The window. There is one, and it is never given back.
#[derive(Debug)]
struct Window {
    base: u64,
    length: u64,
    /// From a device address to where the host finds its bytes.
    distance: u64,
    file: OwnedFd,
}

static WINDOW: OnceLock<Option<Window>> = OnceLock::new();

/// Makes a file in memory.
pub fn memory_file(name: &std::ffi::CStr, length: u64) -> Result<OwnedFd> {
    // SAFETY: the name ends with a zero.
    let fd = unsafe { libc::memfd_create(name.as_ptr(), libc::MFD_CLOEXEC) };
    if fd < 0 {
        return Err(Code::OPERATING_SYSTEM);
    }
    // SAFETY: the descriptor was just made and is nobody else's.
    let file = unsafe { OwnedFd::from_raw_fd(fd) };
    lengthen(file.as_raw_fd(), length)?;
    Ok(file)
}

/// Gives a file in memory its length.
pub fn lengthen(file: RawFd, length: u64) -> Result {
    // SAFETY: a descriptor that is not open gives an error.
    match unsafe { libc::ftruncate64(file, length as i64) } {
        0 => Ok(()),
        _ => Err(Code::OUT_OF_MEMORY),
    }
}

impl Window {
    /// Reserves as many addresses as the system gives, so that reservations of several times all
    /// devices' memory fit.
    fn open() -> Option<Self> {
        let memory = environment().memory;
        let all = memory.saturating_mul(environment().devices.max(1) as u64);
        let wanted = all.saturating_mul(16).clamp(1 << 36, 1 << 41);
        let mut length = wanted.next_power_of_two();
        let parts = if environment().strict { 2 } else { 1 };
        while length >= 1 << 28 {
            // SAFETY: an address is not asked for, so that nothing else is in the way.
            let at = unsafe {
                libc::mmap(
                    std::ptr::null_mut(),
                    (length * parts + super::BLOCK) as usize,
                    libc::PROT_NONE,
                    libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
                    -1,
                    0,
                )
            };
            if at == libc::MAP_FAILED {
                length /= 2;
                continue;
            }
            // The second half of the file is for the memory of `cuMemCreate`.
            let file = memory_file(c"fakecuda", length * 2).ok()?;
            let window = Self {
                base: (at as u64).next_multiple_of(super::BLOCK),
                length,
                distance: if environment().strict { length } else { 0 },
                file,
            };
            let shown = window.base + window.distance;
            map(window.file.as_raw_fd(), shown, length, 0).ok()?;
            return Some(window);
        }
        None
    }
}

fn window() -> Result<&'static Window> {
    let window = WINDOW.get_or_init(Window::open);
    window.as_ref().ok_or(Code::OUT_OF_MEMORY)
}

/// The window if there was ever any need of it.
fn opened() -> Option<&'static Window> {
    WINDOW.get()?.as_ref()
}

/// Puts part of a file, inaccessible, where the host is to find it.
fn map(file: RawFd, at: u64, length: u64, offset: u64) -> Result {
    // SAFETY: the place is inside the window, which is this module's.
    let mapped = unsafe {
        libc::mmap(
            at as *mut _,
            length as usize,
            libc::PROT_NONE,
            libc::MAP_SHARED | libc::MAP_NORESERVE | libc::MAP_FIXED,
            file,
            offset as i64,
        )
    };
    if mapped == libc::MAP_FAILED {
        return Err(Code::OUT_OF_MEMORY);
    }
    // A child has no use for device memory, and a core file would be as large as the window. Neither
    // can fail on a mapping that was just made.
    // SAFETY: as above.
    unsafe {
        libc::madvise(mapped, length as usize, libc::MADV_DONTFORK);
        libc::madvise(mapped, length as usize, libc::MADV_DONTDUMP);
    }
    Ok(())
}

/// First address and length of the window.
pub fn bounds() -> Result<(u64, u64)> {
    let window = window()?;
    Ok((window.base, window.length))
}

/// Whether an address is a device address, in use or not.
pub fn is_inside(address: u64) -> bool {
    opened().is_some_and(|window| address.wrapping_sub(window.base) < window.length)
}

/// Where the host finds the bytes behind an address: elsewhere for device addresses in the strict
/// mode, at the address itself otherwise.
pub fn host(address: u64) -> *mut u8 {
    let distance = match opened() {
        Some(window) if address.wrapping_sub(window.base) < window.length => window.distance,
        _ => 0,
    };
    (address + distance) as *mut u8
}

/// Makes pages of the window accessible, or not: `flags` are those of `CUmemAccess_flags`.
pub fn protect(at: u64, length: u64, flags: u32) -> Result {
    protect_at(host(at) as u64, length, flags)
}

fn protect_at(at: u64, length: u64, flags: u32) -> Result {
    let protection = match flags {
        0 => libc::PROT_NONE,
        1 => libc::PROT_READ,
        _ => libc::PROT_READ | libc::PROT_WRITE,
    };
    // SAFETY: the caller names pages of the window, which hold nothing of Rust's.
    match unsafe { libc::mprotect(at as *mut _, length as usize, protection) } {
        0 => Ok(()),
        _ => Err(Code::OUT_OF_MEMORY),
    }
}

/// Makes host memory in the window accessible to the program too, where the window itself is not:
/// in the strict mode. Elsewhere [`protect`] has done so.
pub fn protect_for_program(at: u64, length: u64, flags: u32) -> Result {
    if host(at) as u64 == at {
        return Ok(());
    }
    protect_at(at, length, flags)
}

/// Puts the bytes of another file, or of another place of the window's own, at an address,
/// inaccessible. `for_program`: the program may come to see them there even in the strict mode.
pub fn show(file: Option<RawFd>, at: u64, length: u64, offset: u64, for_program: bool) -> Result {
    let file = file.map_or_else(|| Ok(window()?.file.as_raw_fd()), Ok)?;
    map(file, host(at) as u64, length, offset)?;
    if for_program && host(at) as u64 != at {
        map(file, at, length, offset)?;
    }
    Ok(())
}

/// Undoes [`show`]: the place has its own bytes again, inaccessible.
pub fn hide(at: u64, length: u64) -> Result {
    let window = window()?;
    let offset = at - window.base;
    map(window.file.as_raw_fd(), host(at) as u64, length, offset)?;
    if window.distance != 0 {
        map(window.file.as_raw_fd(), at, length, offset)?;
    }
    Ok(())
}

/// The offset in the window's file of the bytes that belong to a device address.
pub fn offset(at: u64) -> Result<u64> {
    Ok(at - window()?.base)
}

/// The window's file.
pub fn file() -> Result<RawFd> {
    Ok(window()?.file.as_raw_fd())
}

/// Gives the pages of part of a file back to the system.
pub fn punch(file: Option<RawFd>, offset: u64, length: u64) {
    let Some(file) = file.or_else(|| opened().map(|window| window.file.as_raw_fd())) else {
        return;
    };
    // SAFETY: the descriptor is open; nobody uses these bytes any more.
    unsafe {
        libc::fallocate64(
            file,
            libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE,
            offset as i64,
            length as i64,
        );
    }
}

/// The parts of a block that are filled while it is fresh: `(offset, length)`.
fn filled(length: u64) -> [(u64, u64); 2] {
    if length <= FILLED_ALL {
        [(0, length), (length, 0)]
    } else {
        [(0, FILLED), (length - FILLED, FILLED)]
    }
}

/// Fills accessible fresh memory with [`FRESH`]: all of it, or the two ends of a large block.
///
/// # Safety
/// The memory is accessible and nobody uses it.
pub unsafe fn fill_fresh(at: u64, length: u64) {
    for (offset, length) in filled(length) {
        // SAFETY: the caller promises it.
        unsafe { host(at + offset).write_bytes(FRESH, length as usize) };
    }
}

/// Fills memory that is in no place yet.
pub fn fill_fresh_file(file: Option<RawFd>, offset: u64, length: u64) -> Result {
    let file = file.map_or_else(|| Ok(window()?.file.as_raw_fd()), Ok)?;
    let bytes = vec![FRESH; FILLED_ALL as usize];
    for (from, length) in filled(length) {
        // SAFETY: the buffer has as many bytes as any part that is filled.
        let written = unsafe {
            libc::pwrite64(
                file,
                bytes.as_ptr().cast(),
                length as usize,
                (offset + from) as i64,
            )
        };
        if written != length as isize {
            return Err(Code::OUT_OF_MEMORY);
        }
    }
    Ok(())
}

/// Fills freed memory with [`FREED`]; in large blocks only where there are pages: the others hold
/// nothing to be seen.
///
/// # Safety
/// The memory is accessible and nobody uses it.
pub unsafe fn fill_freed(at: u64, length: u64) {
    let first = host(at) as u64;
    if length <= FILLED_ALL {
        // SAFETY: the caller promises it.
        return unsafe { host(at).write_bytes(FREED, length as usize) };
    }
    let (from, to) = (first / PAGE * PAGE, (first + length).next_multiple_of(PAGE));
    let mut resident = [0_u8; 512];
    let mut page = from;
    while page < to {
        let pages = ((to - page) / PAGE).min(resident.len() as u64);
        // SAFETY: the vector has a byte for each page; the pages are mapped, as the caller promises.
        let known = unsafe {
            libc::mincore(
                page as *mut _,
                (pages * PAGE) as usize,
                resident.as_mut_ptr(),
            ) == 0
        };
        for index in 0..pages {
            if !known || resident[index as usize] & 1 != 0 {
                let start = (page + index * PAGE).max(first);
                let end = (page + (index + 1) * PAGE).min(first + length);
                // SAFETY: inside the block; the caller promises the rest.
                unsafe { (start as *mut u8).write_bytes(FREED, (end - start) as usize) };
            }
        }
        page += pages * PAGE;
    }
}
