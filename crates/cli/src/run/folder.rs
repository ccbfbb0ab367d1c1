//! A folder for the time of a run.

use std::env;
use std::ffi::{CString, OsString};
use std::fs;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

/// A folder of this user's own under `TMPDIR`. It goes when dropped.
pub struct Folder(PathBuf);

impl Folder {
    pub fn new() -> Result<Self> {
        let pattern = env::temp_dir().join("luma-run.XXXXXX");
        let told = || format!("{}: a temporary folder cannot be made", pattern.display());
        let path = CString::new(pattern.as_os_str().as_bytes()).with_context(told)?;
        let mut path = path.into_bytes_with_nul();
        // SAFETY: a string, which is changed in place.
        let made = unsafe { libc::mkdtemp(path.as_mut_ptr().cast()) };
        if made.is_null() {
            return Err(std::io::Error::last_os_error()).with_context(told);
        }
        path.pop();
        let path = PathBuf::from(OsString::from_vec(path));
        // Programs may change to other folders.
        let path = fs::canonicalize(&path).with_context(told)?;
        Ok(Self(path))
    }

    /// A folder inside.
    pub fn make(&self, name: &str) -> Result<PathBuf> {
        let path = self.0.join(name);
        fs::create_dir(&path)
            .with_context(|| format!("{}: the folder cannot be made", path.display()))?;
        Ok(path)
    }

    /// A link inside.
    pub fn link(&self, name: &str, target: &Path) -> Result<PathBuf> {
        let path = self.0.join(name);
        symlink(target, &path)
            .with_context(|| format!("{}: the link cannot be made", path.display()))?;
        Ok(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // What processes that still run put there meanwhile may keep it.
        let _ = fs::remove_dir_all(&self.0);
    }
}
