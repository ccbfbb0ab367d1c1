//! Clients of the driver that others wrote, unchanged: cudarc, and from Python cuda-bindings, cuda-core and
//! numba-cuda. Each does real work and checks contents.

use super::tools::{self, Finished};
use super::{driver_folder, package, toolkit};
use std::env;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A first start compiles Python's own files.
const RUN_TIME: Duration = Duration::from_secs(300);

/// A client that can be run.
pub struct Client {
    name: &'static str,
    program: PathBuf,
    args: Vec<PathBuf>,
    toolkit: Option<PathBuf>,
}

/// The folder of the clients' sources.
fn folder() -> PathBuf {
    package().join("clients")
}

impl Client {
    /// Runs it with this environment: it must end with the line `NAME: ok`.
    pub fn run(&self, env: &[(&str, &str)]) -> Finished {
        let mut libraries = vec![driver_folder().to_owned()];
        let mut command = tools::command(&self.program);
        command.args(&self.args);
        if let Some(toolkit) = &self.toolkit {
            // numba-cuda's compiler is in it.
            libraries.push(toolkit.join("lib"));
            command.env("CUDA_HOME", toolkit).env_remove("PYTHONPATH");
        }
        let search = env::join_paths(libraries).expect("a path of folders");
        command
            .env("LD_LIBRARY_PATH", search)
            .envs(env.iter().copied());
        let finished = tools::run(&mut command, RUN_TIME);
        let expected = format!("{}: ok", self.name);
        assert!(
            finished.status.success() && finished.stdout.lines().last() == Some(&expected),
            "{command:?}\n{}\n{}{}",
            finished.status,
            finished.stdout,
            finished.stderr
        );
        finished
    }
}

/// The client in Rust; without its sources says that the test is skipped.
pub fn cudarc() -> Option<Client> {
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
        tools::skipped("cudarc", "its sources cannot be had");
        return None;
    }
    tools::succeed(
        cargo("build").arg("--target-dir").arg(&target),
        tools::BUILD_TIME,
    );
    Some(Client {
        name: "cudarc",
        program: target.join("debug/cudarc-client"),
        args: Vec::new(),
        toolkit: None,
    })
}

/// The client `clients/python/FILE`; without what it takes says that the test is skipped.
pub fn python(name: &'static str, file: &str) -> Option<Client> {
    let made = env::var_os("LUMA_CUDA_CLIENTS").map_or_else(
        || package().join("../../target/cuda-clients"),
        PathBuf::from,
    );
    let program = made.join("bin/python");
    if !program.exists() {
        tools::skipped(name, "no Python clients (scripts/cuda-clients makes them)");
        return None;
    }
    let Some(toolkit) = toolkit() else {
        tools::skipped(name, "no CUDA toolkit (scripts/cuda-toolkit makes one)");
        return None;
    };
    let mut args = ["-W", "ignore", "-B"].map(PathBuf::from).to_vec();
    args.push(folder().join("python").join(file));
    Some(Client {
        name,
        program,
        args,
        toolkit: Some(toolkit),
    })
}
