//! Clients of the driver that others wrote, unchanged: cudarc, and from Python cuda-bindings, cuda-core and
//! numba-cuda. Each does real work and checks contents.

mod support;

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;
use support::tools;

/// A first start compiles Python's own files.
const RUN_TIME: Duration = Duration::from_secs(300);

const MODES: &[&[(&str, &str)]] = &[
    &[],
    &[("FAKECUDA_STRICT", "1")],
    &[
        ("FAKECUDA_STRICT", "1"),
        ("FAKECUDA_EXEC", "lazy"),
        ("FAKECUDA_SEED", "1"),
    ],
    &[
        ("FAKECUDA_STRICT", "1"),
        ("FAKECUDA_EXEC", "lazy"),
        ("FAKECUDA_SEED", "2"),
    ],
];

fn folder() -> PathBuf {
    support::package().join("clients")
}

/// Runs a command in every mode of the double: it must end with the line `NAME: ok`.
fn runs(name: &str, more_libraries: &[&Path], command: impl Fn() -> Command) {
    let mut libraries = vec![support::driver_folder()];
    libraries.extend(more_libraries);
    let search = env::join_paths(libraries).expect("a path of folders");
    for mode in MODES {
        let mut command = command();
        command
            .env("LD_LIBRARY_PATH", &search)
            .envs(mode.iter().copied());
        let written = tools::succeed(&mut command, RUN_TIME);
        let last = written.lines().last();
        assert_eq!(
            last,
            Some(format!("{name}: ok").as_str()),
            "{command:?}\n{written}"
        );
    }
}

#[test]
fn cudarc() {
    let manifest = folder().join("cudarc/Cargo.toml");
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).join("cudarc");
    let cargo = |verb: &str| {
        let mut cargo = tools::command(env!("CARGO"));
        cargo
            .args([verb, "--quiet", "--locked", "--manifest-path"])
            .arg(&manifest)
            // It would take the place of the version that the manifest asks for.
            .env_remove("CUDARC_CUDA_VERSION");
        cargo
    };
    let fetched = tools::run(&mut cargo("fetch"), tools::BUILD_TIME);
    if !fetched.status.success() {
        return support::tools::skipped("cudarc", "its sources cannot be had");
    }
    tools::succeed(
        cargo("build").arg("--target-dir").arg(&target),
        tools::BUILD_TIME,
    );
    let program = target.join("debug/cudarc-client");
    runs("cudarc", &[], || tools::command(&program));
}

/// Runs `clients/python/FILE`.
fn python(name: &str, file: &str) {
    let made = env::var_os("LUMA_CUDA_CLIENTS").map_or_else(
        || support::package().join("../../target/cuda-clients"),
        PathBuf::from,
    );
    let interpreter = made.join("bin/python");
    if !interpreter.exists() {
        return support::tools::skipped(
            name,
            "no Python clients (scripts/cuda-clients makes them)",
        );
    }
    let Some(toolkit) = support::toolkit() else {
        return support::tools::skipped(name, "no CUDA toolkit (scripts/cuda-toolkit makes one)");
    };
    // numba-cuda's compiler is in the toolkit.
    runs(name, &[&toolkit.join("lib")], || {
        let mut command = tools::command(&interpreter);
        command
            .args(["-W", "ignore", "-B"])
            .arg(folder().join("python").join(file))
            .env("CUDA_HOME", &toolkit)
            .env_remove("PYTHONPATH");
        command
    });
}

#[test]
fn cuda_bindings() {
    python("cuda-bindings", "use_bindings.py");
}

#[test]
fn cuda_core() {
    python("cuda-core", "use_core.py");
}

#[test]
fn numba_cuda() {
    python("numba-cuda", "use_numba.py");
}
