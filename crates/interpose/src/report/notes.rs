//! What the doors and the hooks tell the report. Cheap, and safe to be told anywhere.

use super::end;
use super::folder::{self, Folder};
use super::process;
use std::ffi::{CStr, c_int};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

static REACHED: AtomicBool = AtomicBool::new(false);
static LOOKED_UP: AtomicBool = AtomicBool::new(false);
static ASKED: AtomicBool = AtomicBool::new(false);
static ORDERED_ALLOCS: AtomicU64 = AtomicU64::new(0);
static ORDERED_FREES: AtomicU64 = AtomicU64::new(0);

/// A hook is called that gives the program memory of a device.
#[inline]
pub fn reached() {
    if !REACHED.load(Ordering::Relaxed) {
        reached_first();
    }
}

#[cold]
#[inline(never)]
fn reached_first() {
    // Marks of a child of vfork would be its parent's.
    if process::shares_memory() || REACHED.swap(true, Ordering::Relaxed) || !folder::is_set() {
        return;
    }
    end::keeping_errno(|| {
        end::prepare();
        if let Some(folder) = Folder::open() {
            folder.begin();
        }
    });
}

/// A look-up was answered with a hook.
#[inline]
pub fn looked_up() {
    LOOKED_UP.store(true, Ordering::Relaxed);
}

/// The program opens a library.
pub fn opening(file: &CStr, flags: c_int) {
    let name = file.to_bytes();
    let file = name.rsplit(|&byte| byte == b'/').next().unwrap_or(name);
    if file.starts_with(b"libcuda.so") {
        ASKED.store(true, Ordering::Relaxed);
    }
    if flags & libc::RTLD_DEEPBIND != 0 && !name.is_empty() {
        deepbind(name);
    }
}

/// A hook served an allocation that the driver serves from a pool of its own, in the order of a stream.
#[inline]
pub fn ordered_alloc() {
    ORDERED_ALLOCS.fetch_add(1, Ordering::Relaxed);
}

/// The same for a free.
#[inline]
pub fn ordered_free() {
    ORDERED_FREES.fetch_add(1, Ordering::Relaxed);
}

/// The start of a file's name.
struct Named {
    bytes: [u8; 256],
    length: usize,
}

/// Libraries that were asked for with `RTLD_DEEPBIND`: the first few.
static DEEPBIND: [OnceLock<Named>; 8] = [const { OnceLock::new() }; 8];
static NEXT_DEEPBIND: AtomicUsize = AtomicUsize::new(0);

/// A library keeps the flag: its calls may pass the hooks by.
fn deepbind(name: &[u8]) {
    let name = &name[..name.len().min(256)];
    if deepbinds().any(|known| known == name) || process::shares_memory() {
        return;
    }
    // Each place has one writer, so that nobody waits for it.
    let place = NEXT_DEEPBIND.fetch_add(1, Ordering::Relaxed);
    let Some(place) = DEEPBIND.get(place) else {
        return;
    };
    let mut bytes = [0; 256];
    bytes[..name.len()].copy_from_slice(name);
    let _ = place.set(Named {
        bytes,
        length: name.len(),
    });
}

/// The libraries that were noted.
pub fn deepbinds() -> impl Iterator<Item = &'static [u8]> {
    let noted = DEEPBIND.iter().filter_map(OnceLock::get);
    noted.map(|named| &named.bytes[..named.length])
}

/// What was told.
pub struct Notes {
    pub reached: bool,
    pub looked_up: bool,
    pub driver_asked: bool,
    pub ordered_allocs: u64,
    pub ordered_frees: u64,
}

pub fn notes() -> Notes {
    Notes {
        reached: REACHED.load(Ordering::Relaxed),
        looked_up: LOOKED_UP.load(Ordering::Relaxed),
        driver_asked: ASKED.load(Ordering::Relaxed),
        ordered_allocs: ORDERED_ALLOCS.load(Ordering::Relaxed),
        ordered_frees: ORDERED_FREES.load(Ordering::Relaxed),
    }
}

/// In a forked child: what its parent did is not told of it. Libraries that were opened are its own, too.
pub fn forget() {
    for flag in [&REACHED, &LOOKED_UP, &ASKED] {
        flag.store(false, Ordering::Relaxed);
    }
    for count in [&ORDERED_ALLOCS, &ORDERED_FREES] {
        count.store(0, Ordering::Relaxed);
    }
}
