//! Images of all kinds that nvcc makes: what is in them is found by the driver double.

#[path = "../support/mod.rs"]
mod support;

use std::path::{Path, PathBuf};
use std::time::Duration;
use support::tools;

const BUILD_TIME: Duration = Duration::from_secs(300);
const RUN_TIME: Duration = Duration::from_secs(60);

fn sources() -> PathBuf {
    support::package().join("tests/images")
}

/// The toolkit, if there is all that this test takes; otherwise says that it is skipped.
fn toolkit() -> Option<PathBuf> {
    let found = support::toolkit().filter(|folder| folder.join("bin/nvcc").is_file());
    if found.is_none() {
        let why = "no nvcc (scripts/cuda-toolkit makes one)";
        tools::skipped("images", why);
    }
    found.filter(|_| tools::available(&["gcc", "g++"]))
}

/// Makes the program that loads an image.
fn loader(toolkit: &Path, folder: &Path) -> PathBuf {
    let program = folder.join("images");
    let mut compile = tools::command("gcc");
    compile
        .args(["-std=gnu11", "-O1", "-Wall", "-Wextra", "-Werror"])
        .arg("-I")
        .arg(toolkit.join("include"))
        .arg("-I")
        .arg(support::package().join("include"))
        .arg(sources().join("images.c"))
        .arg("-L")
        .arg(support::driver_folder())
        .args(["-lcuda", "-ldl", "-o"])
        .arg(&program);
    tools::succeed(&mut compile, BUILD_TIME);
    program
}

/// Makes an image of the code with flags, and loads it in the plain and in the strict mode.
fn is_loaded(name: &str, flags: &[&str], kind: &str) {
    let Some(toolkit) = toolkit() else {
        return;
    };
    let folder = tools::Folder::new(name);
    let image = folder.path().join("image");
    let mut compile = tools::command(toolkit.join("bin/nvcc"));
    compile
        .args(flags)
        .arg(sources().join("code.cu"))
        .arg("-o")
        .arg(&image);
    tools::succeed(&mut compile, BUILD_TIME);
    let program = loader(&toolkit, folder.path());
    for strict in ["0", "1"] {
        let mut load = tools::command(&program);
        load.arg(&image)
            .arg(kind)
            .env("LD_LIBRARY_PATH", support::driver_folder())
            .env("FAKECUDA_STRICT", strict);
        tools::succeed(&mut load, RUN_TIME);
    }
}

#[test]
fn text() {
    is_loaded("text", &["-arch=sm_90", "-ptx"], "readable");
}

#[test]
fn cubins() {
    for architecture in ["-arch=sm_80", "-arch=sm_90", "-arch=sm_100", "-arch=sm_120"] {
        is_loaded("cubin", &[architecture, "-cubin"], "readable");
    }
}

#[test]
fn containers() {
    let code = [
        "-gencode=arch=compute_80,code=[sm_80,compute_80]",
        "-gencode=arch=compute_90,code=[sm_90,compute_90]",
        "-fatbin",
    ];
    for mode in ["default", "none"] {
        let mode = format!("-compress-mode={mode}");
        let flags = [&code[..], &[mode.as_str()]].concat();
        is_loaded("container", &flags, "readable");
    }
}

/// Nothing in it can be read, so that any kernel may be there.
#[test]
fn compressed_code() {
    let text = ["-gencode=arch=compute_90,code=compute_90", "-fatbin"];
    is_loaded("compressed", &text, "opaque");
    let all = ["-arch=sm_90", "-fatbin", "-compress-mode=size"];
    is_loaded("compressed", &all, "opaque");
}
