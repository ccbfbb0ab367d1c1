//! What the system says of the process.

use std::ffi::{CStr, c_int, c_void};
use std::mem::MaybeUninit;

/// Whether the memory is that of another process, which waits for this one or runs beside it: in a child of
/// `vfork`, until it has become another program. There the C library's record of the thread is the parent's,
/// and with it the number in the thread's clock.
pub fn shares_memory() -> bool {
    let mut clock = MaybeUninit::uninit();
    // SAFETY: the thread runs, and the clock's number is written where that succeeds.
    let recorded = unsafe {
        if libc::pthread_getcpuclockid(libc::pthread_self(), clock.as_mut_ptr()) != 0 {
            return true;
        }
        // The kernel's form: the complement of the thread's number above three bits of flags.
        !(clock.assume_init() >> 3)
    };
    // SAFETY: the call has no arguments.
    i64::from(recorded) != unsafe { libc::syscall(libc::SYS_gettid) }
}

pub fn number() -> u32 {
    std::process::id()
}

pub fn parent() -> u32 {
    std::os::unix::process::parent_id()
}

/// The executable's path, as far as there is room for it.
pub fn executable(room: &mut [u8]) -> &[u8] {
    // SAFETY: the room is valid for writing.
    let length = unsafe {
        libc::readlink(
            c"/proc/self/exe".as_ptr(),
            room.as_mut_ptr().cast(),
            room.len(),
        )
    };
    usize::try_from(length).map_or(&[], |length| &room[..length])
}

/// The command line, each argument with a NUL behind it, as far as there is room for it; and whether that is
/// all.
pub fn command_line(room: &mut [u8]) -> (&[u8], bool) {
    // SAFETY: the path is a string.
    let fd = unsafe {
        libc::open(
            c"/proc/self/cmdline".as_ptr(),
            libc::O_RDONLY | libc::O_CLOEXEC,
        )
    };
    if fd < 0 {
        return (&[], false);
    }
    let mut length = 0;
    let mut complete = false;
    while length < room.len() {
        let rest = &mut room[length..];
        // SAFETY: the rest is valid for writing.
        let read = unsafe { libc::read(fd, rest.as_mut_ptr().cast(), rest.len()) };
        match usize::try_from(read) {
            Ok(0) => {
                complete = true;
                break;
            }
            Ok(read) => length += read,
            Err(_) => break,
        }
    }
    // SAFETY: opened above.
    unsafe { libc::close(fd) };
    (&room[..length], complete)
}

/// Calls `tell` with the file of the CUDA driver, if one is loaded.
pub fn driver(tell: &mut dyn FnMut(&[u8])) {
    unsafe extern "C" fn each(
        object: *mut libc::dl_phdr_info,
        _: usize,
        found: *mut c_void,
    ) -> c_int {
        // SAFETY: the linker gives an object that stays during the call, whose name is a string; `found` is
        // what was handed to it below.
        let (name, found) = unsafe {
            let name = (*object).dlpi_name;
            if name.is_null() {
                return 0;
            }
            (
                CStr::from_ptr(name).to_bytes(),
                &mut *found.cast::<Found<'_>>(),
            )
        };
        let file = name.rsplit(|&byte| byte == b'/').next().unwrap_or(name);
        if !file.starts_with(b"libcuda.so") {
            return 0;
        }
        (found.0)(name);
        1
    }
    struct Found<'a>(&'a mut dyn FnMut(&[u8]));
    let mut found = Found(tell);
    // SAFETY: the function does with its last argument what is said there.
    unsafe { libc::dl_iterate_phdr(Some(each), (&raw mut found).cast()) };
}
