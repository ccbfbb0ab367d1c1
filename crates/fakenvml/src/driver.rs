//! What the driver double knows: this library keeps nothing of its own.

use std::ffi::{CStr, CString, OsStr, c_char, c_int, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::ptr;
use std::sync::OnceLock;

const LIBRARY: &CStr = c"libcuda.so.1";

/// The functions of fakecuda that are asked here; they may be called without `cuInit`.
pub struct Driver {
    pub version: unsafe extern "C" fn(*mut c_int) -> u32,
    pub devices: unsafe extern "C" fn() -> c_int,
    pub attribute: unsafe extern "C" fn(c_int, u32) -> c_int,
    pub name: unsafe extern "C" fn(c_int) -> *const c_char,
    pub uuid: unsafe extern "C" fn(c_int, *mut [u8; 16]) -> c_int,
    pub capacity: unsafe extern "C" fn(c_int) -> u64,
    pub used: unsafe extern "C" fn(c_int) -> u64,
}

/// The driver that this process has loaded, or else the one beside this library, or else the one that
/// is found by its name.
fn open() -> *mut c_void {
    // SAFETY: these only load; the strings end in zeros.
    unsafe {
        let loaded = libc::dlopen(LIBRARY.as_ptr(), libc::RTLD_LAZY | libc::RTLD_NOLOAD);
        if !loaded.is_null() {
            return loaded;
        }
        if let Some(path) = beside() {
            let own = libc::dlopen(path.as_ptr(), libc::RTLD_LAZY);
            if !own.is_null() {
                return own;
            }
        }
        libc::dlopen(LIBRARY.as_ptr(), libc::RTLD_LAZY)
    }
}

/// The driver's path in the folder from which this library was opened.
fn beside() -> Option<CString> {
    // SAFETY: dladdr fills the structure for an address of this library.
    let path = unsafe {
        let mut info: libc::Dl_info = std::mem::zeroed();
        let found = libc::dladdr(open as *const c_void, &mut info);
        if found == 0 || info.dli_fname.is_null() {
            return None;
        }
        CStr::from_ptr(info.dli_fname).to_bytes().to_vec()
    };
    let folder = Path::new(OsStr::from_bytes(&path)).parent()?;
    let driver = folder.join(OsStr::from_bytes(LIBRARY.to_bytes()));
    CString::new(driver.as_os_str().as_bytes()).ok()
}

/// A function of a library.
///
/// # Safety
/// `F` is a pointer to a function of the type that the name has.
unsafe fn function<F: Copy>(library: *mut c_void, name: &CStr) -> Option<F> {
    const { assert!(size_of::<F>() == size_of::<*mut c_void>()) };
    // SAFETY: the library is open; a pointer to a function has the size of one to data here.
    unsafe {
        let address = libc::dlsym(library, name.as_ptr());
        (!address.is_null()).then(|| ptr::read((&raw const address).cast()))
    }
}

/// The driver double; `None`: there is no driver, or it is another one.
pub fn driver() -> Option<&'static Driver> {
    static DRIVER: OnceLock<Option<Driver>> = OnceLock::new();
    let driver = DRIVER.get_or_init(|| {
        let library = open();
        if library.is_null() {
            return None;
        }
        // SAFETY: the types are those of cuda.h and fakecuda.h. The library is never closed.
        unsafe {
            Some(Driver {
                version: function(library, c"cuDriverGetVersion")?,
                devices: function(library, c"fakecuda_devices")?,
                attribute: function(library, c"fakecuda_device_attribute")?,
                name: function(library, c"fakecuda_device_name")?,
                uuid: function(library, c"fakecuda_device_uuid")?,
                capacity: function(library, c"fakecuda_capacity")?,
                used: function(library, c"fakecuda_used")?,
            })
        }
    });
    driver.as_ref()
}
