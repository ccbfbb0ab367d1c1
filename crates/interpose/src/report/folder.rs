//! `LUMA_INTERPOSE_REPORT`, and the files in that folder.

use super::process;
use crate::switch;
use std::cell::UnsafeCell;
use std::ffi::{CStr, c_int};
use std::sync::atomic::{AtomicU8, Ordering};

/// The longest path that the system takes, with its NUL.
const LONGEST: usize = libc::PATH_MAX as usize;

/// The folder's path, with a NUL behind it. It does not come by the stack, of which the handler of a signal may
/// have little.
struct Path(UnsafeCell<[u8; LONGEST]>);

// SAFETY: whoever takes the state from `UNREAD` to `READING` alone writes to it; it is read once that is done.
unsafe impl Sync for Path {}

static PATH: Path = Path(UnsafeCell::new([0; LONGEST]));
static STATE: AtomicU8 = AtomicU8::new(UNREAD);

const UNREAD: u8 = 0;
const READING: u8 = 1;
const UNSET: u8 = 2;
const SET: u8 = 3;

/// What the variable says at the first question, for a program may change its environment. `None`: nothing, or
/// what cannot be a folder; or it is just being read, which nobody waits for: it may be this very thread, if a
/// signal has interrupted it, or one that a forked child does not have.
fn path() -> Option<&'static CStr> {
    let mut state = STATE.load(Ordering::Acquire);
    if state == UNREAD {
        state = read();
    }
    if state != SET {
        return None;
    }
    // SAFETY: it was written before it was said to be set, and is not written again; a NUL is behind it.
    Some(unsafe { CStr::from_ptr(PATH.0.get().cast()) })
}

/// Reads the variable, unless somebody does already. The state.
#[cold]
fn read() -> u8 {
    if let Err(other) =
        STATE.compare_exchange(UNREAD, READING, Ordering::Acquire, Ordering::Acquire)
    {
        return other;
    }
    let value = switch::variable(c"LUMA_INTERPOSE_REPORT").map_or(&b""[..], CStr::to_bytes);
    let state = if value.is_empty() || value.len() >= LONGEST {
        UNSET
    } else {
        // SAFETY: this thread alone writes, there is room, and the rest stays zero.
        unsafe {
            PATH.0
                .get()
                .cast::<u8>()
                .copy_from_nonoverlapping(value.as_ptr(), value.len());
        }
        SET
    };
    STATE.store(state, Ordering::Release);
    state
}

/// Whether a report is asked for.
pub fn is_set() -> bool {
    path().is_some()
}

/// The open folder.
pub struct Folder(c_int);

/// The name of one of this process's files: the process's number, and an ending.
struct Name([u8; 24]);

impl Name {
    fn new(ending: &[u8]) -> Self {
        let mut name = [0; 24];
        let mut number = process::number();
        let mut digits = [0; 10];
        let mut at = digits.len();
        while at > 0 && (number > 0 || at == digits.len()) {
            at -= 1;
            digits[at] = b'0' + (number % 10) as u8;
            number /= 10;
        }
        let digits = &digits[at..];
        name[..digits.len()].copy_from_slice(digits);
        name[digits.len()..digits.len() + ending.len()].copy_from_slice(ending);
        Self(name)
    }

    fn begun() -> Self {
        Self::new(b".begun")
    }

    fn as_ptr(&self) -> *const libc::c_char {
        self.0.as_ptr().cast()
    }
}

impl Folder {
    /// Opens it. `None`: no report is asked for, or it is not there.
    pub fn open() -> Option<Self> {
        // SAFETY: the path is a string.
        let fd = unsafe {
            libc::open(
                path()?.as_ptr(),
                libc::O_PATH | libc::O_DIRECTORY | libc::O_CLOEXEC,
            )
        };
        (fd >= 0).then_some(Self(fd))
    }

    fn create(&self, name: &Name) -> Option<c_int> {
        // A file that passes the process's limit would end it by a signal.
        const MOST: libc::rlim_t = 1 << 20;
        let mut limit = libc::rlimit {
            rlim_cur: 0,
            rlim_max: 0,
        };
        // SAFETY: the limit is written; the name is a string.
        unsafe {
            if libc::getrlimit(libc::RLIMIT_FSIZE, &raw mut limit) != 0 || limit.rlim_cur < MOST {
                return None;
            }
            let flags = libc::O_WRONLY | libc::O_CREAT | libc::O_TRUNC | libc::O_CLOEXEC;
            let fd = libc::openat(self.0, name.as_ptr(), flags, 0o600);
            (fd >= 0).then_some(fd)
        }
    }

    /// Marks that the process has begun to use hooks. A mark that is there is that of another program, which this
    /// process was before, or of a process that had its number.
    pub fn begin(&self) {
        let (begun, replaced) = (Name::begun(), Name::new(b".replaced"));
        // SAFETY: the names are strings.
        unsafe { libc::renameat(self.0, begun.as_ptr(), self.0, replaced.as_ptr()) };
        if let Some(fd) = self.create(&Name::begun()) {
            // SAFETY: opened above.
            unsafe { libc::close(fd) };
        }
    }

    /// Puts the process's report there, in one step: `write` fills a file and says whether all was written. Takes
    /// the mark away, if the process has made it.
    pub fn place(&self, has_begun: bool, write: impl FnOnce(c_int) -> bool) {
        let (unready, ready) = (Name::new(b".unready"), Name::new(b".json"));
        let Some(fd) = self.create(&unready) else {
            return;
        };
        let written = write(fd);
        // SAFETY: opened above; the names are strings.
        unsafe {
            let written = libc::close(fd) == 0 && written;
            if !written || libc::renameat(self.0, unready.as_ptr(), self.0, ready.as_ptr()) != 0 {
                libc::unlinkat(self.0, unready.as_ptr(), 0);
            } else if has_begun {
                libc::unlinkat(self.0, Name::begun().as_ptr(), 0);
            }
        }
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // SAFETY: opened by `open`.
        unsafe { libc::close(self.0) };
    }
}
