//! `luma run`: what a program notices of it, and what is told of a program.

mod ending;
mod environment;
mod messages;
mod page;
mod report;
mod signals;
mod why;

use super::tools::{self, Finished};
use std::collections::HashMap;
use std::fs;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, OnceLock};
use std::time::Duration;

const RUN_TIME: Duration = Duration::from_secs(60);

/// `luma`, with all that it looks for beside it.
fn luma() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| {
        let folder = tools::built_packages(&["luma-interpose", "fakecuda", "fakenvml"]);
        let luma = Path::new(env!("CARGO_BIN_EXE_luma"));
        assert_eq!(luma.parent(), Some(&*folder));
        luma.to_owned()
    })
}

/// `luma run` with these arguments, not yet started. No signal is ignored in it, as those are that nohup or a
/// service manager has the tests ignore.
fn luma_run(arguments: &[&str]) -> Command {
    let mut command = tools::command(luma());
    command.arg("run").args(arguments);
    // SAFETY: the function makes system calls only.
    unsafe {
        command.pre_exec(|| {
            for signal in [libc::SIGHUP, libc::SIGINT, libc::SIGQUIT, libc::SIGPIPE] {
                libc::signal(signal, libc::SIG_DFL);
            }
            Ok(())
        });
    }
    command
}

fn run(arguments: &[&str]) -> Finished {
    tools::run(&mut luma_run(arguments), RUN_TIME)
}

/// Runs with `--report`; gives the end and the document.
fn reported(options: &[&str], program: &[&str]) -> (Finished, serde_json::Value) {
    let folder = tools::Folder::new("report");
    let path = folder.path().join("report.json");
    let mut arguments = options.to_vec();
    arguments.extend(["--report", path.to_str().unwrap(), "--"]);
    arguments.extend(program);
    let finished = run(&arguments);
    let text = fs::read_to_string(&path).unwrap();
    let document = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"));
    (finished, document)
}

/// A folder for programs, which stays.
fn folder() -> &'static Path {
    Path::new(env!("CARGO_TARGET_TMPDIR"))
}

/// A program of `tests/programs`, compiled as it is usual or with further arguments.
fn program_with(name: &str, binary: &str, arguments: &[&str]) -> String {
    static COMPILED: Mutex<Option<HashMap<String, String>>> = Mutex::new(None);
    let mut compiled = COMPILED.lock().unwrap();
    let compiled = compiled.get_or_insert_default();
    if let Some(path) = compiled.get(binary) {
        return path.clone();
    }
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/programs/{name}.c"));
    let path = folder().join(format!("run_{binary}"));
    let mut command = tools::command("cc");
    command
        .args(["-std=gnu11", "-Wall", "-Wextra", "-Werror", "-O1", "-o"])
        .arg(&path)
        .arg(&source)
        .args(arguments)
        .arg("-ldl");
    tools::succeed(&mut command, RUN_TIME);
    let path = path.into_os_string().into_string().unwrap();
    compiled.insert(binary.to_owned(), path.clone());
    path
}

fn program(name: &str) -> String {
    program_with(name, name, &[])
}

/// Whether there is a C compiler; says so where there is none.
fn can_compile() -> bool {
    tools::available(&["cc"])
}

/// Copies a file that is to be run. Not in this process, whose other threads start programs: they would have the
/// file open for writing for a moment, in which nobody can run it.
fn copy_to_run(from: &Path, to: &Path) {
    tools::succeed(tools::command("cp").arg(from).arg(to), RUN_TIME);
}

/// A script of this test's own.
fn script(name: &str, text: &str) -> String {
    use std::os::unix::fs::PermissionsExt;
    let (written, path) = (folder().join(format!("{name}.text")), folder().join(name));
    fs::write(&written, text).unwrap();
    copy_to_run(&written, &path);
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    path.into_os_string().into_string().unwrap()
}
