//! What stands in for the kernel of `fill.ptx` on the double; on a board nothing is registered, and the
//! kernel itself runs.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::mem;

/// `fakecuda_launch_t`.
#[repr(C)]
struct Launch {
    struct_size: usize,
    name: *const c_char,
    grid: [u32; 3],
    block: [u32; 3],
    shared_bytes: usize,
    stream: *mut c_void,
    params: *const *const c_void,
    nparams: usize,
}

type Kernel = extern "C" fn(*const Launch, *mut c_void);
type Register = extern "C" fn(*const c_char, Kernel, *mut c_void, usize, *const usize) -> c_int;
type HostPointer = extern "C" fn(u64) -> *mut c_void;

/// A function of the control interface, if the driver is the double.
///
/// # Safety
/// `F` is the type of the function.
unsafe fn find<F: Copy>(name: &CStr) -> Option<F> {
    assert_eq!(mem::size_of::<F>(), mem::size_of::<*mut c_void>());
    let (library, function);
    // SAFETY: both names are C strings.
    unsafe {
        library = libc::dlopen(c"libcuda.so.1".as_ptr(), libc::RTLD_NOW | libc::RTLD_NOLOAD);
        if library.is_null() {
            return None;
        }
        function = libc::dlsym(library, name.as_ptr());
    }
    // SAFETY: the caller answers for the type.
    (!function.is_null()).then(|| unsafe { mem::transmute_copy(&function) })
}

extern "C" fn fill(launch: *const Launch, _: *mut c_void) {
    // SAFETY: the parameters are of the sizes that were registered, and the program keeps the memory
    // until the launch is over.
    unsafe {
        let launch = &*launch;
        let at = (*launch.params).cast::<u64>().read_unaligned();
        let count = (*launch.params.add(1)).cast::<u32>().read_unaligned();
        let value = (*launch.params.add(2)).cast::<u32>().read_unaligned();
        let threads = launch.grid[0] * launch.block[0];
        let pointer: HostPointer = find(c"fakecuda_host_pointer").expect("the double has it");
        let bytes = pointer(at).cast::<u8>();
        bytes.write_bytes(value as u8, count.min(threads) as usize);
    }
}

/// Registers it where the driver is the double. The driver is loaded.
pub fn register() {
    // SAFETY: the type is the header's.
    let register: Option<Register> = unsafe { find(c"fakecuda_register_kernel") };
    if let Some(register) = register {
        let sizes = [8, 4, 4];
        let kernel = c"fill".as_ptr();
        let status = register(
            kernel,
            fill,
            std::ptr::null_mut(),
            sizes.len(),
            sizes.as_ptr(),
        );
        assert_eq!(status, 0, "the stand-in is registered");
    }
}
