//! Where the files are that belong to luma: beside the program, as cargo leaves them, or where they are
//! installed.

use std::env;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use super::folder::Folder;

/// The library that is preloaded.
pub const LIBRARY: &str = "libluma_interpose.so";

/// Folders in which files of luma may be.
pub struct Places(Vec<PathBuf>);

impl Places {
    pub fn of_this_program() -> Result<Self> {
        let program = env::current_exe().context("luma cannot find out where it is itself")?;
        let folder = program.parent().unwrap_or(Path::new("/")).to_owned();
        let installed = [
            "../lib".to_owned(),
            "../lib/luma".to_owned(),
            format!("../lib/{}-linux-gnu", env::consts::ARCH),
        ];
        let mut folders = vec![folder.clone()];
        folders.extend(installed.iter().map(|path| folder.join(path)));
        Ok(Self(folders))
    }

    /// A file of luma's, if there is one of that name.
    pub fn find(&self, name: &str) -> Option<PathBuf> {
        let mut paths = self.0.iter().map(|folder| folder.join(name));
        paths.find(|path| path.is_file())
    }

    /// The folders, to be named in a message.
    pub fn told(&self) -> String {
        let folders: Vec<String> = self
            .0
            .iter()
            .map(|path| path.display().to_string())
            .collect();
        folders.join(", ")
    }

    /// What is preloaded: an absolute path that `LD_PRELOAD` can hold.
    pub fn library(&self, given: Option<&Path>, folder: &Folder) -> Result<PathBuf> {
        let found = match given {
            Some(path) if path.is_file() => path.to_owned(),
            Some(path) => bail!("{}: there is no such file to preload", path.display()),
            None => self.find(LIBRARY).with_context(|| {
                format!(
                    "there is no {LIBRARY} in {}: build it beside luma (cargo build -p luma-interpose, with \
                     --release if luma was), or name it with --library FILE",
                    self.told()
                )
            })?,
        };
        let path = fs::canonicalize(&found).with_context(|| found.display().to_string())?;
        if can_be_preloaded(&path) {
            return Ok(path);
        }
        // The loader takes spaces and colons for the ends of names.
        let link = folder.link(LIBRARY, &path)?;
        if !can_be_preloaded(&link) {
            bail!(
                "neither {} nor {} can be preloaded: the loader takes a space or a colon for the end of a name. \
                 Set TMPDIR to a folder without them",
                path.display(),
                link.display()
            );
        }
        Ok(link)
    }
}

fn can_be_preloaded(path: &Path) -> bool {
    let bytes = path.as_os_str().as_bytes();
    !bytes
        .iter()
        .any(|byte| byte.is_ascii_whitespace() || *byte == b':')
}
