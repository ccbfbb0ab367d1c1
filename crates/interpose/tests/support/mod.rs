//! What the tests of this package need: the library, the driver double, programs in C, and ways to run them.

// Each test program uses a part of it.
#![allow(dead_code)]

#[path = "../../../../tests/support/tools.rs"]
pub mod tools;

pub mod table;

use std::collections::BTreeMap;
use std::env;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::Duration;
use tools::{Finished, Folder};

const COMPILE_TIME: Duration = Duration::from_secs(120);
pub const RUN_TIME: Duration = Duration::from_secs(60);

/// The package's folder.
pub fn package() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// `<target>/<profile>`, with the library, luma's own and the driver double in it as the sources are now.
pub fn built() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| tools::built_packages(&["luma-interpose", "luma-cuda", "fakecuda"]))
}

/// The library under test.
pub fn library() -> PathBuf {
    built().join("libluma_interpose.so")
}

/// A folder for `LD_LIBRARY_PATH` in which programs find the double as the driver.
pub fn driver_folder() -> &'static Path {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    FOLDER.get_or_init(|| {
        let double = built().join("libfakecuda.so");
        let names = ["libcuda.so.1", "libcuda.so"];
        tools::folder_of_links("driver", &names.map(|name| (name, double.clone())))
    })
}

/// The toolkit: a folder with `bin` and `include`. That which `LUMA_CUDA_TOOLKIT` names, or which
/// `scripts/cuda-toolkit` has made. Without it this says that the calling test is skipped.
pub fn toolkit() -> Option<PathBuf> {
    let named = env::var_os("LUMA_CUDA_TOOLKIT").filter(|folder| !folder.is_empty());
    let found = named.map_or_else(
        || package().join("../../target/cuda-toolkit/cu13"),
        PathBuf::from,
    );
    if found.join("include/cuda.h").exists() {
        return Some(found);
    }
    skipped("no CUDA toolkit (scripts/cuda-toolkit makes one)");
    None
}

/// The interpreter of `scripts/cuda-clients`, with other people's Python packages for CUDA. Without it this says
/// that the calling test is skipped.
pub fn python_clients() -> Option<PathBuf> {
    let made = env::var_os("LUMA_CUDA_CLIENTS").map_or_else(
        || package().join("../../target/cuda-clients"),
        PathBuf::from,
    );
    let interpreter = made.join("bin/python");
    if interpreter.exists() {
        return Some(interpreter);
    }
    skipped("no Python clients (scripts/cuda-clients makes them)");
    None
}

/// Says that the calling test is skipped.
pub fn skipped(why: &str) {
    let thread = std::thread::current();
    tools::skipped(thread.name().unwrap_or("a test"), why);
}

/// What `cc` made of a source in `tests/programs`, with these flags behind it. Each is made once in a process.
pub fn compiled(source: &str, flags: &[&str]) -> PathBuf {
    static MADE: Mutex<BTreeMap<String, PathBuf>> = Mutex::new(BTreeMap::new());
    let key = format!("{source} {}", flags.join(" "));
    let mut made = MADE.lock().unwrap_or_else(PoisonError::into_inner);
    let number = made.len();
    made.entry(key)
        .or_insert_with(|| {
            let stem = Path::new(source).file_stem().expect("a file has a name");
            let end = if flags.contains(&"-shared") {
                ".so"
            } else {
                ""
            };
            let name = format!("{number}{}{end}", stem.to_string_lossy());
            let path = folder().join(name);
            let mut cc = tools::command("cc");
            cc.args(["-std=gnu11", "-O1", "-g", "-fPIC", "-pthread"])
                .args(["-Wall", "-Wextra", "-Werror"])
                .arg("-I")
                .arg(package().join("../fakecuda/include"))
                .arg(package().join("tests/programs").join(source))
                .arg("-o")
                .arg(&path)
                .args(flags)
                .arg("-ldl");
            tools::succeed(&mut cc, COMPILE_TIME);
            path
        })
        .clone()
}

/// A folder for what this process compiles.
pub fn folder() -> &'static Path {
    static FOLDER: OnceLock<Folder> = OnceLock::new();
    FOLDER.get_or_init(|| Folder::new("programs")).path()
}

/// A shared library of a source in `tests/programs`.
pub fn shared(source: &str, flags: &[&str]) -> PathBuf {
    let mut all = vec!["-shared"];
    all.extend(flags);
    compiled(source, &all)
}

/// Flags that link with the driver.
pub fn linked_with_driver() -> [String; 3] {
    let folder = driver_folder().display();
    [
        "-Wl,--no-as-needed".to_owned(),
        format!("-L{folder}"),
        "-lcuda".to_owned(),
    ]
}

/// A program to be run.
pub struct Run {
    program: OsString,
    args: Vec<OsString>,
    env: Vec<(String, OsString)>,
    preloaded: Vec<PathBuf>,
    libraries: Vec<PathBuf>,
}

impl Run {
    /// A program, with no driver in sight.
    pub fn new(program: impl Into<OsString>) -> Run {
        Run {
            program: program.into(),
            args: Vec::new(),
            env: Vec::new(),
            preloaded: Vec::new(),
            libraries: Vec::new(),
        }
    }

    /// The program finds the double as its driver.
    pub fn with_driver(self) -> Run {
        self.search(driver_folder())
    }

    /// It finds libraries in this folder.
    pub fn search(mut self, folder: &Path) -> Run {
        self.libraries.push(folder.to_owned());
        self
    }

    /// It runs under the library.
    pub fn hooked(self) -> Run {
        self.preload(library())
    }

    /// It runs under this library, behind those named before.
    pub fn preload(mut self, library: impl Into<PathBuf>) -> Run {
        self.preloaded.push(library.into());
        self
    }

    pub fn arg(mut self, arg: impl Into<OsString>) -> Run {
        self.args.push(arg.into());
        self
    }

    pub fn args(self, args: impl IntoIterator<Item = impl Into<OsString>>) -> Run {
        args.into_iter().fold(self, Run::arg)
    }

    pub fn env(mut self, name: &str, value: impl Into<OsString>) -> Run {
        self.env.push((name.to_owned(), value.into()));
        self
    }

    pub fn command(&self) -> Command {
        let mut command = tools::command(&self.program);
        for (name, _) in env::vars_os() {
            if name.to_string_lossy().starts_with("FAKECUDA_") {
                command.env_remove(name);
            }
        }
        let join = |paths: &[PathBuf]| env::join_paths(paths).expect("paths without colons");
        command.args(&self.args);
        if !self.libraries.is_empty() {
            command.env("LD_LIBRARY_PATH", join(&self.libraries));
        }
        if !self.preloaded.is_empty() {
            command.env("LD_PRELOAD", join(&self.preloaded));
        }
        command.envs(self.env.iter().map(|(name, value)| (name, value)));
        command
    }

    /// Runs it to any end.
    pub fn finish(&self) -> Finished {
        tools::run(&mut self.command(), RUN_TIME)
    }

    /// Runs it: it must succeed, and write nothing to standard error. Gives its standard output.
    pub fn run(&self) -> String {
        let finished = self.finish();
        assert!(
            finished.status.success() && finished.stderr.is_empty(),
            "{:?}\n{}\n{}{}",
            self.command(),
            finished.status,
            finished.stdout,
            finished.stderr
        );
        finished.stdout
    }
}
