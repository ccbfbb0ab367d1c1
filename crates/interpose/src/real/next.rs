//! The linker's functions: the C library's own, and those that follow this library in the program's scope,
//! which are another preloaded library's if there is one.

use super::elf;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::mem::transmute;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, Ordering};

type Dlsym = unsafe extern "C" fn(*mut c_void, *const c_char) -> *mut c_void;
type Dlvsym = unsafe extern "C" fn(*mut c_void, *const c_char, *const c_char) -> *mut c_void;
type Dlopen = unsafe extern "C" fn(*const c_char, c_int) -> *mut c_void;

/// A function that this library exports too.
struct Linker {
    name: &'static CStr,
    libc: AtomicPtr<c_void>,
    next: AtomicPtr<c_void>,
}

const fn linker(name: &'static CStr) -> Linker {
    Linker {
        name,
        libc: AtomicPtr::new(null_mut()),
        next: AtomicPtr::new(null_mut()),
    }
}

static DLSYM: Linker = linker(c"dlsym");
static DLVSYM: Linker = linker(c"dlvsym");
static DLOPEN: Linker = linker(c"dlopen");

/// In place of a function that the C library does not have.
unsafe extern "C" fn nothing() -> *mut c_void {
    null_mut()
}

impl Linker {
    /// The C library's.
    #[inline]
    fn libc(&self) -> *mut c_void {
        let known = self.libc.load(Ordering::Relaxed);
        if known.is_null() {
            self.find_libc()
        } else {
            known
        }
    }

    #[cold]
    fn find_libc(&self) -> *mut c_void {
        let mut found = 0;
        elf::each(|object| {
            // Before version 2.34 glibc had them in a library of their own.
            let file = object.file();
            if file.starts_with(b"libc.so.") || file.starts_with(b"libdl.so.") {
                found = object.function(self.name);
            }
            found != 0
        });
        let found = match found {
            0 => nothing as *mut c_void,
            address => address as *mut c_void,
        };
        self.libc.store(found, Ordering::Relaxed);
        found
    }

    /// The one that follows this library.
    #[inline]
    fn next(&self) -> *mut c_void {
        let known = self.next.load(Ordering::Relaxed);
        if known.is_null() {
            self.find_next()
        } else {
            known
        }
    }

    #[cold]
    fn find_next(&self) -> *mut c_void {
        let mut found = behind(self.name);
        if found.is_null() {
            found = self.libc();
        }
        self.next.store(found, Ordering::Relaxed);
        found
    }
}

fn libc_dlsym() -> Dlsym {
    // SAFETY: the C library's function of this name, or one that takes no argument and gives a null pointer.
    unsafe { transmute::<*mut c_void, Dlsym>(DLSYM.libc()) }
}

/// The address of the `dlsym` that follows.
pub fn dlsym_address() -> usize {
    DLSYM.next() as usize
}

/// The address of the C library's `dlsym`.
pub fn libc_dlsym_address() -> usize {
    DLSYM.libc() as usize
}

/// The address of the `dlvsym` that follows.
pub fn dlvsym_address() -> usize {
    DLVSYM.next() as usize
}

/// The address of the `dlopen` that follows.
pub fn dlopen_address() -> usize {
    DLOPEN.next() as usize
}

/// What the `dlsym` that follows finds.
///
/// # Safety
/// The handle is one of `dlopen`'s, or `RTLD_DEFAULT`, for which the caller is this library.
pub unsafe fn in_handle(handle: *mut c_void, name: &CStr) -> *mut c_void {
    // SAFETY: a function of this name has this type; the handle by the caller's contract.
    unsafe { transmute::<*mut c_void, Dlsym>(DLSYM.next())(handle, name.as_ptr()) }
}

/// What the `dlvsym` that follows finds.
///
/// # Safety
/// As for [`in_handle`].
pub unsafe fn in_handle_versioned(handle: *mut c_void, name: &CStr, version: &CStr) -> *mut c_void {
    // SAFETY: a function of this name has this type; the arguments by the caller's contract.
    unsafe {
        transmute::<*mut c_void, Dlvsym>(DLVSYM.next())(handle, name.as_ptr(), version.as_ptr())
    }
}

/// Opens a library.
pub fn open(file: &CStr, flags: c_int) -> *mut c_void {
    // SAFETY: a function of this name has this type.
    unsafe { transmute::<*mut c_void, Dlopen>(DLOPEN.next())(file.as_ptr(), flags) }
}

/// What the program's scope has of a name behind this library. Where it is null, `dlerror` says so.
pub fn behind(name: &CStr) -> *mut c_void {
    // SAFETY: the C library looks at where it is called from, which is this library: from within its
    // functions, and those that may end with a jump to it are called from this library only.
    unsafe { libc_dlsym()(libc::RTLD_NEXT, name.as_ptr()) }
}

/// What the program's scope has of a name.
pub fn in_program(name: &CStr) -> *mut c_void {
    // SAFETY: no handle.
    unsafe { libc_dlsym()(libc::RTLD_DEFAULT, name.as_ptr()) }
}

/// What the library that an address lies in has of a name, itself or by the libraries that it needs.
pub fn of_library(address: usize, name: &CStr) -> *mut c_void {
    // SAFETY: any address may be asked for; where it succeeds, the file's name is a string. The library stays
    // loaded: it is being called from.
    unsafe {
        let mut library = std::mem::zeroed::<libc::Dl_info>();
        if libc::dladdr(address as *const c_void, &mut library) == 0 || library.dli_fname.is_null()
        {
            return null_mut();
        }
        let open = transmute::<*mut c_void, Dlopen>(DLOPEN.libc());
        let handle = open(library.dli_fname, libc::RTLD_LAZY | libc::RTLD_NOLOAD);
        if handle.is_null() {
            return null_mut();
        }
        let found = libc_dlsym()(handle, name.as_ptr());
        libc::dlclose(handle);
        found
    }
}

/// What this library has of a name; null: nothing.
pub fn own(name: &CStr) -> *mut c_void {
    let mut found = 0;
    elf::each(|object| {
        let is_own = object.bounds_around(own as *const () as usize).is_some();
        if is_own {
            found = object.function(name);
        }
        is_own
    });
    found as *mut c_void
}
