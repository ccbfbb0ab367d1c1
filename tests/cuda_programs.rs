//! CUDA C programs, compiled by nvcc and linked with luma, on the doubles of driver and runtime: stand-ins
//! for their kernels write and check what the kernels would.

// Miri cannot start other programs.
#![cfg(not(miri))]

mod support;

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
    sync::OnceLock,
};
use support::{
    cc, double,
    tools::{self, BUILD_TIME, Folder},
};

/// Programs with the arguments of a short run.
const PROGRAMS: &[(&str, &[&str])] = &[
    ("contents", &["700", "512"]),
    ("runtime", &[]),
    ("stream_kernels", &["400"]),
    ("timing", &["3"]),
];

/// Strict, and late in several orders, beside what the double does by itself.
const MODES: &[&[(&str, &str)]] = &[
    &[],
    &[("FAKECUDA_STRICT", "1"), ("FAKECUDA_EXEC", "lazy")],
    &[
        ("FAKECUDA_STRICT", "1"),
        ("FAKECUDA_EXEC", "lazy"),
        ("FAKECUDA_SEED", "3"),
        ("FAKECUDA_NO_VMM", "1"),
    ],
];

/// The folder with nvcc and the CUDA headers; `None`: it cannot be had, which was said.
fn toolkit() -> Option<&'static Path> {
    static TOOLKIT: OnceLock<Option<PathBuf>> = OnceLock::new();
    let found = TOOLKIT.get_or_init(|| {
        let mut script = tools::command(cc::root().join("scripts/cuda-toolkit"));
        // The one variable of luma's that is about tools.
        if let Some(named) = std::env::var_os("LUMA_CUDA_TOOLKIT") {
            script.env("LUMA_CUDA_TOOLKIT", named);
        }
        let finished = tools::run(&mut script, BUILD_TIME);
        eprint!("{}", finished.stderr);
        assert!(finished.status.success(), "{}", finished.stderr);
        let folder = finished.stdout.trim();
        (!folder.is_empty()).then(|| folder.into())
    });
    found.as_deref()
}

/// The folder with the runtime doubles.
fn runtime(toolkit: &Path) -> &'static Path {
    static RUNTIME: OnceLock<PathBuf> = OnceLock::new();
    RUNTIME.get_or_init(|| {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("cudart");
        let script = cc::root().join("crates/fakecuda/cudart/build.sh");
        let mut build = tools::command(script);
        build.arg(&folder).env("LUMA_CUDA_TOOLKIT", toolkit);
        tools::succeed(&mut build, BUILD_TIME);
        folder
    })
}

#[test]
fn programs_of_nvcc() {
    if !tools::available(&["c++"]) {
        return;
    }
    let Some(toolkit) = toolkit() else {
        return;
    };
    let runtime = runtime(toolkit);
    let luma = cc::library_folder();
    let search = std::env::join_paths([double::folder(), runtime]).expect("paths without colons");
    for &(name, arguments) in PROGRAMS {
        let folder = Folder::new("nvcc");
        let object = folder.path().join("program.o");
        let nvcc = || {
            let mut nvcc = tools::command(toolkit.join("bin/nvcc"));
            nvcc.args(["-std=c++17", "-arch=sm_90"]);
            nvcc
        };
        let mut compile = nvcc();
        compile
            .args([
                "-O1",
                "-Xcompiler",
                "-Wall,-Wextra",
                "-Werror",
                "all-warnings",
            ])
            .arg("-I")
            .arg(cc::root().join("include"))
            .arg("-I")
            .arg(cc::root().join("crates/fakecuda/include"))
            .arg("-c")
            .arg(cc::root().join(format!("c_tests/cuda/{name}.cu")))
            .arg("-o")
            .arg(&object);
        tools::succeed(&mut compile, BUILD_TIME);
        for kind in ["static", "shared"] {
            let program = folder.path().join(kind);
            let mut link = nvcc();
            link.arg(format!("-cudart={kind}"))
                .arg(&object)
                .arg("-o")
                .arg(&program)
                .arg("-L")
                .arg(runtime)
                .arg("-L")
                .arg(luma)
                .arg("-lluma")
                .args(["-Xlinker", "-rpath", "-Xlinker"])
                .arg(luma);
            tools::succeed(&mut link, BUILD_TIME);
            for mode in MODES {
                let mut run = tools::command(&program);
                run.args(arguments)
                    .env("LD_LIBRARY_PATH", &search)
                    .env("FAKECUDA_DEVICES", "2")
                    .envs(mode.iter().copied());
                tools::succeed(&mut run, BUILD_TIME);
            }
        }
    }
}

#[test]
fn every_program_is_run() {
    let found: BTreeSet<String> = fs::read_dir(cc::root().join("c_tests/cuda"))
        .expect("the folder is there")
        .map(|entry| entry.expect("the folder can be read").path())
        .filter(|path| path.extension().is_some_and(|ending| ending == "cu"))
        .map(|path| path.file_stem().unwrap().to_string_lossy().into_owned())
        .collect();
    let run: BTreeSet<String> = PROGRAMS
        .iter()
        .map(|(name, _)| (*name).to_owned())
        .collect();
    assert_eq!(found, run);
}
