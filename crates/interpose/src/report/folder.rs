//! `LUMA_INTERPOSE_REPORT`, and the files in that folder.

use super::process;
use crate::switch;
use std::ffi::{CStr, c_int};
use std::sync::OnceLock;

/// The longest path that the system takes, with its NUL.
const LONGEST: usize = libc::PATH_MAX as usize;

/// The folder's path, with a NUL behind it.
type Path = [u8; LONGEST];

/// What the variable says at the first question, for a program may change its environment. `None`: nothing, or
/// what cannot be a folder.
fn path() -> Option<&'static CStr> {
    static PATH: OnceLock<Option<Path>> = OnceLock::new();
    let path = PATH.get_or_init(|| {
        let value = switch::variable(c"LUMA_INTERPOSE_REPORT")?.to_bytes();
        if value.is_empty() || value.len() >= LONGEST {
            return None;
        }
        let mut path = [0; LONGEST];
        path[..value.len()].copy_from_slice(value);
        Some(path)
    });
    CStr::from_bytes_until_nul(path.as_ref()?).ok()
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
