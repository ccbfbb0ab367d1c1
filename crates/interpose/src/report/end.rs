//! The end of the process.
//!
//! `exit` runs [`AT_EXIT`] after the program's own handlers. `_exit` and `_Exit`, which run none, are exported
//! here; what the C library does at the end of its own `exit` does not come by. A program that is ended by a
//! signal or by a system call of its own is not seen.

use super::folder::{self, Folder};
use super::{document, notes, process};
use std::ffi::{c_int, c_void};
use std::sync::atomic::{AtomicPtr, Ordering};
use std::sync::{Mutex, TryLockError};
use std::time::Duration;

/// Room for what is written, which one thread at a time may use.
pub struct Room {
    pub buffer: super::json::Buffer,
    pub text: [u8; 8192],
}

static ROOM: Mutex<Room> = Mutex::new(Room {
    buffer: [0; 1024],
    text: [0; 8192],
});

/// How often, a millisecond apart, a thread looks whether another one is done writing.
const MOST_LOOKS: u32 = 200;

pub fn errno() -> c_int {
    // SAFETY: the address is the thread's own.
    unsafe { *libc::__errno_location() }
}

/// Does something, and leaves the thread's error number as it was.
pub fn keeping_errno<T>(work: impl FnOnce() -> T) -> T {
    let before = errno();
    let result = work();
    // SAFETY: the address is the thread's own.
    unsafe { *libc::__errno_location() = before };
    result
}

/// Writes the report of the process as it is now, in place of one that it wrote before.
fn write() {
    if !folder::is_set() || process::shares_memory() {
        return;
    }
    for _ in 0..MOST_LOOKS {
        match ROOM.try_lock() {
            Ok(mut room) => {
                if let Some(folder) = Folder::open() {
                    folder.place(notes::notes().reached, |fd| document::write(fd, &mut room));
                }
                return;
            }
            // Another thread, which ends the process too; or this very one, if a signal has interrupted it.
            Err(TryLockError::WouldBlock) => std::thread::sleep(Duration::from_millis(1)),
            Err(TryLockError::Poisoned(_)) => return,
        }
    }
}

extern "C" fn at_exit() {
    keeping_errno(write);
}

#[used]
#[unsafe(link_section = ".fini_array")]
static AT_EXIT: extern "C" fn() = at_exit;

/// The functions that follow ours, where that is known: another preloaded library, or a sanitizer, may have
/// work to do at that point.
static NEXT: AtomicPtr<c_void> = AtomicPtr::new(std::ptr::null_mut());

/// Called once, before the first call of a hook does anything.
pub fn prepare() {
    // SAFETY: the name is a string; the handler only stores numbers, and the library stays loaded.
    unsafe {
        // Not at the end, which may come in the handler of a signal.
        NEXT.store(
            libc::dlsym(libc::RTLD_NEXT, c"_exit".as_ptr()),
            Ordering::Relaxed,
        );
        libc::pthread_atfork(None, None, Some(in_child));
    }
}

extern "C" fn in_child() {
    notes::forget();
}

fn end(status: c_int) -> ! {
    keeping_errno(write);
    let next = NEXT.load(Ordering::Relaxed);
    if !next.is_null() {
        // SAFETY: the C library's function of this name and type, or one that stands for it.
        let next: extern "C" fn(c_int) = unsafe { std::mem::transmute(next) };
        next(status);
    }
    loop {
        // SAFETY: the call ends all threads of the process.
        unsafe { libc::syscall(libc::SYS_exit_group, status) };
    }
}

/// As `_exit(2)`.
#[unsafe(no_mangle)]
pub extern "C" fn _exit(status: c_int) -> ! {
    end(status)
}

/// As `_Exit(3)`.
#[unsafe(no_mangle)]
pub extern "C" fn _Exit(status: c_int) -> ! {
    end(status)
}
