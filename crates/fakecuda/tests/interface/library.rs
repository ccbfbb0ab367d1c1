//! The driver double, loaded into the test's own process.

use crate::support;
use std::ffi::{CString, c_char, c_int, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::OnceLock;

/// A library of the driver folder.
pub struct Library(*mut c_void);

// SAFETY: a library's handle may be used from any thread.
unsafe impl Send for Library {}
// SAFETY: as above.
unsafe impl Sync for Library {}

impl Library {
    fn open(path: &Path) -> Self {
        let path = CString::new(path.as_os_str().as_bytes()).expect("a path has no zero");
        // SAFETY: the doubles do nothing when they are loaded.
        let handle = unsafe { libc::dlopen(path.as_ptr(), libc::RTLD_NOW) };
        assert!(!handle.is_null(), "{path:?} can be loaded");
        Self(handle)
    }

    /// The address of a symbol; null if it is not exported.
    pub fn address(&self, symbol: &str) -> *mut c_void {
        let symbol = CString::new(symbol).expect("a name has no zero");
        // SAFETY: the library is open.
        unsafe { libc::dlsym(self.0, symbol.as_ptr()) }
    }

    /// A function.
    ///
    /// # Safety
    /// `F` is a pointer to a function of the symbol's type.
    pub unsafe fn function<F: Copy>(&self, symbol: &str) -> F {
        const { assert!(size_of::<F>() == size_of::<*mut c_void>()) };
        let address = self.address(symbol);
        assert!(!address.is_null(), "{symbol} is exported");
        // SAFETY: the caller promises the type.
        unsafe { std::ptr::read((&raw const address).cast()) }
    }
}

/// The driver.
pub fn driver() -> &'static Library {
    static DRIVER: OnceLock<Library> = OnceLock::new();
    DRIVER.get_or_init(|| Library::open(&support::driver_folder().join("libcuda.so.1")))
}

/// The management library.
pub fn management() -> &'static Library {
    static MANAGEMENT: OnceLock<Library> = OnceLock::new();
    MANAGEMENT.get_or_init(|| Library::open(&support::driver_folder().join("libnvidia-ml.so.1")))
}

/// `cuInit`.
pub fn initialize() {
    // SAFETY: the types are those of cuda.h.
    let code = unsafe { driver().function::<unsafe extern "C" fn(u32) -> u32>("cuInit")(0) };
    assert_eq!(code, 0);
}

/// `fakecuda_supports`.
pub fn supports(symbol: &str) -> c_int {
    let symbol = CString::new(symbol).expect("a name has no zero");
    // SAFETY: the type is that of fakecuda.h.
    unsafe {
        let supports: unsafe extern "C" fn(*const c_char) -> c_int =
            driver().function("fakecuda_supports");
        supports(symbol.as_ptr())
    }
}

/// `cuGetProcAddress_v2`: code, address, and how the search ended.
pub fn find(name: &str, version: c_int, flags: u64) -> (u32, *mut c_void, u32) {
    type Find = unsafe extern "C" fn(*const c_char, *mut *mut c_void, c_int, u64, *mut u32) -> u32;
    let name = CString::new(name).expect("a name has no zero");
    let (mut address, mut status) = (std::ptr::null_mut(), u32::MAX);
    // SAFETY: the type is that of cuda.h.
    let code = unsafe {
        let find: Find = driver().function("cuGetProcAddress_v2");
        find(name.as_ptr(), &mut address, version, flags, &mut status)
    };
    (code, address, status)
}

/// The values of an enumeration of cuda.h: its lines `PREFIX_NAME = value`.
pub fn enumeration(header: &str, begin: &str, prefix: &str) -> Vec<(String, u32)> {
    let start = header.find(begin).expect("cuda.h has the enumeration");
    let body = &header[start..start + header[start..].find("\n}").expect("it ends")];
    let value = |line: &str| {
        let (name, rest) = line.trim().strip_prefix(prefix)?.split_once('=')?;
        let digits = rest.trim().split([',', ' ', '/']).next()?;
        let value = match digits.strip_prefix("0x") {
            Some(hex) => u32::from_str_radix(hex, 16),
            None => digits.parse(),
        };
        Some((name.trim().to_owned(), value.ok()?))
    };
    body.lines().filter_map(value).collect()
}
