//! The suite's programs (`suite/*.c`): compiled, and run. A program tells how each of its rules went.

use super::tools::{self, Folder};
use super::{driver_folder, headers, package};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::time::Duration;

const BUILD_TIME: Duration = Duration::from_secs(120);
/// A rule that hangs ends itself before.
const RUN_TIME: Duration = Duration::from_secs(900);

/// What every program is linked from besides its own file.
pub const SHARED: &[&str] = &["runner", "common"];

const WARNINGS: &[&str] = &[
    "-Wall",
    "-Wextra",
    "-Werror",
    "-Wshadow",
    "-Wstrict-prototypes",
];

/// The ways to the driver's functions. The first is a program of its own: the others are not linked with
/// the driver.
pub const WAYS: &[&str] = &["link", "dlsym", "gpa"];

pub const STRICT: (&str, &str) = ("FAKECUDA_STRICT", "1");
pub const LAZY: (&str, &str) = ("FAKECUDA_EXEC", "lazy");
/// One for each way.
pub const SEEDS: &[&str] = &["1", "2", "3"];

/// Passes the names of all programs to a macro, with the flags that each is compiled with.
#[allow(unused_macros)]
macro_rules! for_each_program {
    ($then:ident) => {
        $then! {
            array[]
            capture[]
            contents[]
            context[]
            copy[]
            copy_2d[]
            double[]
            event[]
            garbage[]
            graph[]
            graph_nodes[]
            launch[]
            lookup[]
            managed[]
            memory[]
            memory_operation[]
            module[]
            order[]
            peer[]
            per_thread["-DCUDA_API_PER_THREAD_DEFAULT_STREAM"]
            pinned[]
            pointer[]
            pool[]
            process[]
            random[]
            share[]
            start[]
            stream[]
            synchronous[]
            threads[]
            virtual_memory[]
        }
    };
}
#[allow(unused_imports)]
pub(crate) use for_each_program;

/// The folder of their sources.
pub fn folder() -> PathBuf {
    package().join("suite")
}

fn source(name: &str) -> PathBuf {
    folder().join(name).with_extension("c")
}

/// One program, compiled twice.
pub struct Program {
    pub name: &'static str,
    /// How many rules its source has.
    pub rules: usize,
    _folder: Folder,
    linked: PathBuf,
    loading: PathBuf,
}

/// What a run said.
pub struct Answers {
    /// A line a rule: `ok`, `skip` or `FAIL`, the rule's name, and why.
    pub lines: Vec<String>,
    pub status: ExitStatus,
    /// The command and all that it wrote, for a message.
    pub told: String,
}

impl Program {
    /// Compiles it. Where what that takes is not installed, says that the test is skipped.
    pub fn compiled(name: &'static str, flags: &[&str]) -> Option<Program> {
        let headers = headers(name)?;
        if !tools::available(&["cc"]) {
            return None;
        }
        let made = Folder::new(name);
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
                .arg(&headers)
                .arg("-I")
                .arg(package().join("include"))
                .arg(source(name))
                .args(SHARED.iter().map(|shared| source(shared)))
                .arg("-o")
                .arg(&path)
                .args(more)
                .args(["-ldl", "-lpthread"]);
            tools::succeed(&mut compiler, BUILD_TIME);
            path
        };
        let driver = format!("-L{}", driver_folder().display());
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

    /// The program that takes this way to the driver.
    pub fn path(&self, way: &str) -> &Path {
        if way == "link" {
            &self.linked
        } else {
            &self.loading
        }
    }

    /// Runs it on a double with two devices.
    pub fn run(&self, way: &str, args: &[&str], env: &[(&str, &str)]) -> Answers {
        let mut command = tools::command(self.path(way));
        command
            .arg(way)
            .args(args)
            .env("LD_LIBRARY_PATH", driver_folder())
            .env("FAKECUDA_DEVICES", "2")
            .envs(env.iter().copied());
        let finished = tools::run(&mut command, RUN_TIME);
        Answers {
            lines: finished.stdout.lines().map(str::to_owned).collect(),
            status: finished.status,
            told: format!("{command:?}\n{}{}", finished.stdout, finished.stderr),
        }
    }
}
