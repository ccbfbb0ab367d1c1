//! Several runtimes in one process.

use crate::program::{Compiler, Program, build, compiler, sources};
use crate::support::{self, tools};
use std::path::{Path, PathBuf};

/// `part.cpp` as a library, linked with `link`, by the headers in `include`.
fn part(folder: &Path, name: &str, include: &[PathBuf], link: &[PathBuf]) -> String {
    let path = folder.join(format!("{name}.so"));
    let mut gxx = tools::command("g++");
    gxx.args([
        "-std=c++17",
        "-Wall",
        "-Wextra",
        "-Werror",
        "-shared",
        "-fPIC",
    ]);
    for folder in include {
        gxx.arg("-isystem").arg(folder);
    }
    gxx.arg(sources().join("part.cpp"))
        .args(link)
        .args(["-ldl", "-lpthread", "-o"])
        .arg(&path);
    build(&mut gxx);
    path.to_str()
        .expect("the folder has a plain name")
        .to_owned()
}

/// A library with a static runtime of version 13, and, where the headers are there, libraries with the
/// static and with the shared runtime of version 12.
fn parts(compiler: &Compiler, folder: &Path) -> Vec<(String, &'static str)> {
    let include = compiler.toolkit.join("include");
    let runtime = &compiler.runtime;
    let thirteen = [include.clone()];
    let archive = [runtime.join("libcudart_static.a")];
    let mut parts = vec![(part(folder, "static13", &thirteen, &archive), "13050")];
    if let Some(older) = compiler.headers_of_12() {
        let twelve = [older, include];
        let shared = [runtime.join("libcudart.so.12")];
        let archive = [runtime.join("cuda12/libcudart_static.a")];
        parts.push((part(folder, "shared12", &twelve, &shared), "12090"));
        parts.push((part(folder, "static12", &twelve, &archive), "12090"));
    } else {
        support::tools::skipped(
            "memory_of_one_is_freed_by_another",
            "no headers of CUDA 12 beside the toolkit",
        );
    }
    parts
}

#[test]
fn memory_of_one_is_freed_by_another() {
    let Some(compiler) = compiler() else {
        return;
    };
    let folder = tools::Folder::new("parts");
    let parts = parts(compiler, folder.path());
    let versions: String = parts
        .iter()
        .map(|(_, version)| format!("{version}\n"))
        .collect();
    let (_folder, programs) = compiler.both("runtimes", &[]);
    for program in programs {
        let program = parts
            .iter()
            .fold(program, |program: Program, (path, _)| program.arg(path));
        assert_eq!(program.run(), versions);
        program.run_in_every_mode();
    }
}

/// Programs by the headers of CUDA 12 take the runtime of that version, also from a driver of it.
#[test]
fn version_12() {
    let Some(compiler) = compiler() else {
        return;
    };
    let Some(headers) = compiler.headers_of_12() else {
        support::tools::skipped("version_12", "no headers of CUDA 12 beside the toolkit");
        return;
    };
    let folder = tools::Folder::new("version12");
    let runtime = compiler.runtime.join("cuda12");
    for kind in ["-lcudart", "-lcudart_static"] {
        let path = folder.path().join(kind);
        let mut gxx = tools::command("g++");
        // It still has the functions that 13 took away, and says so.
        gxx.args(["-std=c++17", "-Wall", "-Wextra", "-Werror"])
            .arg("-Wno-deprecated-declarations")
            .arg("-isystem")
            .arg(&headers)
            .arg("-isystem")
            .arg(compiler.toolkit.join("include"))
            .arg(sources().join("version12.cpp"))
            .arg("-L")
            .arg(&runtime)
            .args([kind, "-ldl", "-lpthread", "-o"])
            .arg(&path);
        build(&mut gxx);
        let program = Program::new(path);
        program.run_in_every_mode();
        program.env("FAKECUDA_VERSION", "12090").run();
    }
}
