//! The suite: C programs that hold the double to the driver's documentation. Each rule is run with the
//! functions linked, found by dlsym and found by cuGetProcAddress; plain, strict, and strict with queues
//! that run late.

mod support;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;
use support::tools;

const BUILD_TIME: Duration = Duration::from_secs(120);
/// A rule that hangs ends itself before.
const RUN_TIME: Duration = Duration::from_secs(900);

/// What every program is linked from besides its own file.
const SHARED: &[&str] = &["runner", "common"];

const WARNINGS: &[&str] = &[
    "-Wall",
    "-Wextra",
    "-Werror",
    "-Wshadow",
    "-Wstrict-prototypes",
];

/// The ways to the driver's functions. The first is a program of its own: the others are not linked with
/// the driver.
const WAYS: &[&str] = &["link", "dlsym", "gpa"];

const STRICT: (&str, &str) = ("FAKECUDA_STRICT", "1");
const LAZY: (&str, &str) = ("FAKECUDA_EXEC", "lazy");
/// One for each way.
const SEEDS: &[&str] = &["1", "2", "3"];

/// Why rules are skipped on a device without virtual memory and memory pools.
const LACKING: &[&str] = &[
    "no virtual memory",
    "no memory pools",
    "no host memory pools",
    "memory is not shared by file descriptor",
];

/// Programs about what the double counts in a process. On a board all of their rules are skipped.
const WHOLE_PROCESS: &[&str] = &["contents", "double"];

fn folder() -> PathBuf {
    support::package().join("suite")
}

fn source(name: &str) -> PathBuf {
    folder().join(name).with_extension("c")
}

/// One program, compiled twice.
struct Program {
    name: &'static str,
    /// How many rules its source has.
    rules: usize,
    _folder: tools::Folder,
    linked: PathBuf,
    loading: PathBuf,
}

impl Program {
    /// Compiles it. Where what that takes is not installed, says that the test is skipped.
    fn compiled(name: &'static str, flags: &[&str]) -> Option<Program> {
        let headers = support::headers(name)?;
        if !tools::available(&["cc"]) {
            return None;
        }
        let made = tools::Folder::new(name);
        let text = fs::read_to_string(source(name)).expect("the program's source is there");
        let rules = text
            .lines()
            .filter(|line| line.starts_with("RULE(") || line.starts_with("FRESH_RULE("))
            .count();
        let build = |output: &str, more: &[&str]| {
            let path = made.path().join(output);
            let mut compiler = tools::command("cc");
            compiler
                .args(["-std=c11", "-O0", "-g"])
                .args(WARNINGS)
                .arg(format!("-DSUITE_PROGRAM=\"{name}\""))
                .args(flags)
                .arg("-I")
                .arg(headers.as_path())
                .arg("-I")
                .arg(support::package().join("include"))
                .arg(source(name))
                .args(SHARED.iter().map(|shared| source(shared)))
                .arg("-o")
                .arg(&path)
                .args(more)
                .args(["-ldl", "-lpthread"]);
            tools::succeed(&mut compiler, BUILD_TIME);
            path
        };
        let driver = format!("-L{}", support::driver_folder().display());
        Some(Program {
            name,
            rules,
            linked: build(
                "linked",
                &["-DSUITE_LINKED", &driver, "-Wl,--no-as-needed", "-lcuda"],
            ),
            loading: build("loading", &[]),
            _folder: made,
        })
    }

    /// Runs every rule. None may fail, and none be skipped but for a reason that the run itself gives.
    fn run(&self, way: &str, args: &[&str], env: &[(&str, &str)], skips: &[&str]) {
        let path = if way == "link" {
            &self.linked
        } else {
            &self.loading
        };
        let mut command = tools::command(path);
        command
            .arg(way)
            .args(args)
            .env("LD_LIBRARY_PATH", support::driver_folder())
            .env("FAKECUDA_DEVICES", "2")
            .envs(env.iter().copied());
        let finished = tools::run(&mut command, RUN_TIME);
        let told = || format!("{command:?}\n{}{}", finished.stdout, finished.stderr);
        let mut answers = 0;
        for line in finished.stdout.lines() {
            let known = line.starts_with("ok ")
                || skips
                    .iter()
                    .any(|why| line.starts_with("skip ") && line.contains(&format!(": {why}")));
            assert!(known, "{line}\n{}", told());
            answers += 1;
        }
        assert!(finished.status.success(), "{}", told());
        assert_eq!(answers, self.rules, "rules of {}\n{}", self.name, told());
    }

    fn run_in_every_mode(&self) {
        let (eager, mild) = ("not in the lazy mode", "not in the strict mode");
        for (way, seed) in WAYS.iter().zip(SEEDS) {
            self.run(way, &[], &[], &[eager, mild]);
            self.run(way, &[], &[STRICT], &[eager]);
            self.run(way, &[], &[STRICT, LAZY, ("FAKECUDA_SEED", seed)], &[]);
        }
        let one = [("FAKECUDA_DEVICES", "1")];
        self.run("link", &[], &one, &[eager, mild, "one device"]);
        let mut skips = vec![eager, mild];
        skips.extend(LACKING);
        let lacking = [("FAKECUDA_NO_VMM", "1"), ("FAKECUDA_NO_POOLS", "1")];
        self.run("dlsym", &[], &lacking, &skips);
        let old = [("FAKECUDA_VERSION", "12010")];
        self.run("gpa", &[], &old, &[eager, mild, "this driver has no cu"]);
        if !WHOLE_PROCESS.contains(&self.name) {
            // As on a board, where a process for each rule takes too long.
            self.run("dlsym", &["--together"], &[], &[eager, mild]);
            let together = [STRICT, LAZY, ("FAKECUDA_SEED", "4")];
            self.run("gpa", &["--together"], &together, &[]);
        }
    }
}

fn holds(name: &'static str, flags: &[&str]) {
    if let Some(program) = Program::compiled(name, flags) {
        program.run_in_every_mode();
    }
}

macro_rules! programs {
    ($($name:ident)*) => {
        const PROGRAMS: &[&str] = &["per_thread", $(stringify!($name)),*];

        $(#[test]
        fn $name() {
            holds(stringify!($name), &[]);
        })*
    };
}

programs! {
    array
    capture
    contents
    context
    copy
    copy_2d
    double
    event
    garbage
    graph
    graph_nodes
    launch
    lookup
    managed
    memory
    memory_operation
    module
    order
    peer
    pinned
    pointer
    pool
    process
    random
    share
    start
    stream
    synchronous
    threads
    virtual_memory
}

#[test]
fn per_thread() {
    holds("per_thread", &["-DCUDA_API_PER_THREAD_DEFAULT_STREAM"]);
}

#[test]
fn every_program_is_run() {
    let stem = |path: &Path| Some(path.file_stem()?.to_str()?.to_owned());
    let found: BTreeSet<String> = fs::read_dir(folder())
        .expect("the suite is there")
        .map(|entry| entry.expect("the suite can be listed").path())
        .filter(|path| path.extension().is_some_and(|ending| ending == "c"))
        .filter_map(|path| stem(&path))
        .filter(|name| !SHARED.contains(&name.as_str()))
        .collect();
    let run: BTreeSet<String> = PROGRAMS.iter().map(|&name| name.to_owned()).collect();
    assert_eq!(found, run);
}

/// A rule that does not hold is told, and is all that the program's status is about.
#[test]
fn a_broken_rule_is_told() {
    let Some(program) = Program::compiled("memory", &[]) else {
        return;
    };
    let mut command = tools::command(&program.loading);
    command
        .args(["dlsym", "freeing_null_is_fine", "blocks_are_aligned"])
        .env("LD_LIBRARY_PATH", support::driver_folder())
        .env("FAKECUDA_FAIL", "cuMemFree_v2:0:999:1");
    let finished = tools::run(&mut command, RUN_TIME);
    let lines: Vec<&str> = finished.stdout.lines().collect();
    assert!(!finished.status.success());
    assert!(
        lines.len() == 2 && lines.iter().all(|line| line.starts_with("FAIL memory.")),
        "{lines:?}"
    );
    assert!(lines[1].contains("gives UNKNOWN, not SUCCESS"), "{lines:?}");
}
