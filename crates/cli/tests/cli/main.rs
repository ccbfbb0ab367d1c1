//! The `luma` program from outside: what it prints, and how it ends.

mod cuda;
mod doctor;
// Each test program uses a part of them.
#[allow(dead_code)]
#[path = "../../../../tests/support/double.rs"]
mod double;
mod generate;
mod graphs;
mod page;
mod planning;
mod replay;
mod run;
mod smallest;
#[allow(dead_code)]
#[path = "../../../../tests/support/tools.rs"]
mod tools;
mod traces;

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// What a run of the program left.
struct Run {
    code: i32,
    stdout: String,
    stderr: String,
}

impl Run {
    /// The JSON document that the run printed.
    fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.stdout)
            .unwrap_or_else(|error| panic!("{error}: {}{}", self.stdout, self.stderr))
    }
}

/// Runs the program at the root of the workspace, with only these LUMA_ variables.
fn luma_with(variables: &[(&str, &str)], arguments: &[&str]) -> Run {
    let mut command = Command::new(env!("CARGO_BIN_EXE_luma"));
    command.args(arguments).current_dir(root());
    for (name, _) in env::vars_os() {
        if name.to_string_lossy().starts_with("LUMA_") {
            command.env_remove(name);
        }
    }
    let output = command.envs(variables.iter().copied()).output().unwrap();
    Run {
        code: output
            .status
            .code()
            .expect("the program was ended by a signal"),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}

fn luma(arguments: &[&str]) -> Run {
    luma_with(&[], arguments)
}

/// The root of the workspace.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// A file of this test's own; answers its path.
fn file(name: &str, text: &str) -> String {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    fs::write(&path, text).unwrap();
    path.into_os_string().into_string().unwrap()
}
