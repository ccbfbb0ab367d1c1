//! The driver double, where a program looks for the driver.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use super::folder::Folder;
use super::places::Places;

/// The double's libraries, and under which names programs load them.
const LIBRARIES: [(&str, [&str; 2]); 2] = [
    ("libfakecuda.so", ["libcuda.so.1", "libcuda.so"]),
    ("libfakenvml.so", ["libnvidia-ml.so.1", "libnvidia-ml.so"]),
];

/// A folder of links to the double that lies beside luma.
pub fn beside(places: &Places, folder: &Folder) -> Result<PathBuf> {
    let driver = folder.make("driver")?;
    for (library, names) in LIBRARIES {
        let found = places.find(library).with_context(|| {
            format!(
                "--fake: there is no {library} in {}: build it beside luma (cargo build -p fakecuda -p fakenvml, \
                 with --release if luma was), or make a folder with scripts/fake-driver FOLDER and name it with \
                 --fake=FOLDER",
                places.told()
            )
        })?;
        let found = fs::canonicalize(&found).with_context(|| found.display().to_string())?;
        for name in names {
            folder.link(&format!("driver/{name}"), &found)?;
        }
    }
    Ok(driver)
}

/// A folder that somebody has made.
pub fn in_folder(folder: &Path) -> Result<PathBuf> {
    if !folder.join("libcuda.so.1").is_file() {
        bail!(
            "--fake: {} has no libcuda.so.1: scripts/fake-driver FOLDER makes such a folder",
            folder.display()
        );
    }
    fs::canonicalize(folder).with_context(|| folder.display().to_string())
}
