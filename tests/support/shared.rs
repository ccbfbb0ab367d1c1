//! Data made by others, which may lie beside the repository and is never part of it.

use std::io::Write;
use std::path::{Path, PathBuf};

/// A folder under `../shared/data`; where it is absent, says so past the harness's capture.
pub fn data(folder: &str) -> Option<PathBuf> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../shared/data")
        .join(folder);
    if path.is_dir() {
        return Some(path);
    }
    let thread = std::thread::current();
    let test = thread.name().unwrap_or("a test");
    let message = format!("SKIPPED: {test}: no folder ../shared/data/{folder}\n");
    std::io::stderr()
        .write_all(message.as_bytes())
        .expect("stderr can be written to");
    None
}
