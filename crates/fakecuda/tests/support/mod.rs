//! What the tests of this package need: the libraries, a folder that holds them as a driver, and the
//! toolkit's headers.

// Each test program uses a part of it.
#![allow(dead_code)]

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;
use std::{env, fs};

/// The package's folder.
pub fn package() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// `<target>/<profile>`, with both libraries in it as the sources are now.
pub fn built() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| {
        // A test lies in <target>/<profile>/deps.
        let test = env::current_exe().expect("a test knows its own path");
        let profile = test.ancestors().nth(2).expect("a test lies in a folder");
        let mut build = Command::new(env!("CARGO"));
        build
            .args([
                "build", "--quiet", "--locked", "-p", "fakecuda", "-p", "fakenvml",
            ])
            .arg("--target-dir")
            .arg(profile.parent().expect("a profile lies in a folder"))
            .current_dir(package());
        if profile.ends_with("release") {
            build.arg("--release");
        }
        succeed(&mut build);
        profile.to_owned()
    })
}

/// Makes a symbolic link, or puts it in the place of another.
fn link(to: &Path, from: &Path) {
    let made = from.with_extension(format!("{}.tmp", std::process::id()));
    let _ = fs::remove_file(&made);
    std::os::unix::fs::symlink(to, &made).expect("a link can be made");
    fs::rename(&made, from).expect("a link can be put in place");
}

/// A folder for `LD_LIBRARY_PATH` in which programs find the doubles as the driver and as the
/// management library.
pub fn driver_folder() -> &'static Path {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    FOLDER.get_or_init(|| {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("driver");
        fs::create_dir_all(&folder).expect("a folder for the driver can be made");
        for (name, library) in [
            ("libcuda.so.1", "libfakecuda.so"),
            ("libcuda.so", "libfakecuda.so"),
            ("libnvidia-ml.so.1", "libfakenvml.so"),
        ] {
            link(&built().join(library), &folder.join(name));
        }
        folder
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
        skipped(test, "no CUDA toolkit (scripts/cuda-toolkit makes one)");
    }
    headers
}

/// Says that a test is skipped, past the test harness's capture; with `LUMA_TEST_REQUIRE_TOOLS=1` that
/// is a failure.
pub fn skipped(test: &str, why: &str) {
    let message = format!("SKIPPED: {test}: {why}\n");
    assert!(
        env::var_os("LUMA_TEST_REQUIRE_TOOLS").is_none_or(|value| value != "1"),
        "{message}"
    );
    // Not eprintln!, which the harness keeps to itself when the test passes.
    let written = std::io::stderr().write_all(message.as_bytes());
    written.expect("stderr can be written to");
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
