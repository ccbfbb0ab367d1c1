//! What the tests of this package need, and those of others that run its clients: the libraries, a folder
//! that holds them as a driver, and the toolkit's headers.

// Each test program uses a part of it.
#![allow(dead_code)]

pub mod clients;
pub mod suite;
#[path = "../../../../tests/support/tools.rs"]
pub mod tools;

use std::env;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

/// The folder of the package `fakecuda`, whichever package the test is one of.
pub fn package() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../fakecuda"))
}

/// `<target>/<profile>`, with both libraries in it as the sources are now.
pub fn built() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| tools::built_packages(&["fakecuda", "fakenvml"]))
}

/// A folder for `LD_LIBRARY_PATH` in which programs find the doubles as the driver and as the
/// management library.
pub fn driver_folder() -> &'static Path {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    FOLDER.get_or_init(|| {
        let links = [
            ("libcuda.so.1", "libfakecuda.so"),
            ("libcuda.so", "libfakecuda.so"),
            ("libnvidia-ml.so.1", "libfakenvml.so"),
        ];
        tools::folder_of_links(
            "driver",
            &links.map(|(name, library)| (name, built().join(library))),
        )
    })
}

/// The toolkit: a folder with `bin`, `include` and `lib`. That which `LUMA_CUDA_TOOLKIT` names, or which
/// `scripts/cuda-toolkit` has made.
pub fn toolkit() -> Option<PathBuf> {
    let named = env::var_os("LUMA_CUDA_TOOLKIT").filter(|folder| !folder.is_empty());
    let found = named.map_or_else(
        || package().join("../../target/cuda-toolkit/cu13"),
        PathBuf::from,
    );
    found.join("include/cuda.h").exists().then_some(found)
}

/// The toolkit's headers; without them says that a test is skipped.
pub fn headers(test: &str) -> Option<PathBuf> {
    let headers = toolkit().map(|folder| folder.join("include"));
    if headers.is_none() {
        tools::skipped(test, "no CUDA toolkit (scripts/cuda-toolkit makes one)");
    }
    headers
}

/// Whether a program can be run.
pub fn has(program: &str) -> bool {
    let mut command = Command::new(program);
    command.arg("--version").output().is_ok()
}

/// Runs a command that must succeed, and gives what it wrote.
pub fn succeed(command: &mut Command) -> String {
    let Output {
        status,
        stdout,
        stderr,
    } = command
        .output()
        .unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let stdout = String::from_utf8_lossy(&stdout).into_owned();
    assert!(
        status.success(),
        "{command:?}: {status}\n{stdout}{}",
        String::from_utf8_lossy(&stderr)
    );
    stdout
}
