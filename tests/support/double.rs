//! The driver double: built for the test, and loaded into its process, or handed to another.
//!
//! Its soname is the driver's, so that luma finds it when it looks for the driver.

use super::tools::{self, BUILD_TIME};
use libloading::Library;
use std::{
    ffi::{CString, c_char, c_int, c_void},
    path::{Path, PathBuf},
    sync::OnceLock,
};

/// The library, built if that is necessary.
#[must_use]
pub fn library() -> &'static Path {
    static LIBRARY: OnceLock<PathBuf> = OnceLock::new();
    LIBRARY.get_or_init(|| tools::built_packages(&["fakecuda"]).join("libfakecuda.so"))
}

/// A folder in which programs find the double as the driver, by `LD_LIBRARY_PATH`.
#[must_use]
pub fn folder() -> &'static Path {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    FOLDER.get_or_init(|| {
        let names = ["libcuda.so.1", "libcuda.so"];
        tools::folder_of_links("driver", &names.map(|name| (name, library().to_owned())))
    })
}

/// The double in this process. What `FAKECUDA_*` says was set before.
pub struct Double(Library);

/// Loads it.
#[must_use]
pub fn load() -> &'static Double {
    static DOUBLE: OnceLock<Double> = OnceLock::new();
    DOUBLE.get_or_init(|| {
        // SAFETY: the library has no initialisers of its own.
        Double(unsafe { Library::new(library()) }.expect("the double can be loaded"))
    })
}

macro_rules! control {
    ($($(#[$doc:meta])* fn $name:ident = $symbol:literal ($($arg:ident: $type:ty),*) -> $result:ty;)*) => {
        impl Double {
            $($(#[$doc])*
            pub fn $name(&self, $($arg: $type),*) -> $result {
                // SAFETY: the signature is that of fakecuda.h; strings end in NUL.
                unsafe {
                    let function = self
                        .0
                        .get::<unsafe extern "C" fn($($type),*) -> $result>($symbol)
                        .expect("fakecuda.h has it");
                    function($($arg),*)
                }
            }
            )*
        }
    };
}

control! {
    /// Sets how much memory a device has.
    fn set_capacity = b"fakecuda_set_capacity\0"(device: c_int, bytes: u64) -> c_int;
    /// Bytes of a device in use by anything.
    fn used = b"fakecuda_used\0"(device: c_int) -> u64;
    /// Where the host finds the bytes behind a device address.
    fn host_pointer = b"fakecuda_host_pointer\0"(addr: u64) -> *mut c_void;
    /// How many calls were made to fail.
    fn failed = b"fakecuda_failed\0"() -> u64;
    /// Makes no call fail any more.
    fn fail_clear = b"fakecuda_fail_clear\0"() -> c_int;
    fn fail_raw = b"fakecuda_fail\0"(name: *const c_char, skip: u64, code: c_int, count: u64) -> c_int;
    fn calls_raw = b"fakecuda_calls\0"(name: *const c_char) -> u64;
    fn live_raw = b"fakecuda_live\0"(kind: c_int) -> u64;
}

impl Double {
    /// After `skip` calls of a function ("*": of any), lets `count` calls fail with `code`.
    pub fn fail(&self, name: &str, skip: u64, code: c_int, count: u64) {
        let name = CString::new(name).expect("a name has no zero");
        assert_eq!(self.fail_raw(name.as_ptr(), skip, code, count), 0);
    }

    /// How often a function was called.
    #[must_use]
    pub fn calls(&self, name: &str) -> u64 {
        let name = CString::new(name).expect("a name has no zero");
        self.calls_raw(name.as_ptr())
    }
}

/// Runs the tests of this program that are ignored otherwise and whose names begin with `filter`, in a
/// process of their own with these variables. Gives how many ran; all must pass.
pub fn run_ignored(filter: &str, variables: &[(&str, &str)]) -> usize {
    let _ = library();
    let mut command = tools::command(std::env::current_exe().expect("a test knows its own path"));
    command
        .args([filter, "--ignored"])
        .envs(variables.iter().copied());
    let output = tools::succeed(&mut command, BUILD_TIME);
    let passed = output
        .split("test result: ok. ")
        .nth(1)
        .and_then(|rest| rest.split(' ').next())
        .and_then(|count| count.parse().ok());
    passed.unwrap_or_else(|| panic!("no test ran:\n{output}"))
}
