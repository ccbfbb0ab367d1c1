//! Compiles programs in CUDA with nvcc and the runtime double, and runs them on the driver double.

use crate::support::{self, tools};
use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::time::Duration;

const BUILD_TIME: Duration = Duration::from_secs(300);
const RUN_TIME: Duration = Duration::from_secs(120);

/// The double as a device would be at its best, and at its most unforgiving: device memory closed to the
/// host, and work done as late as the rules allow, in several orders.
pub const MODES: &[&[(&str, &str)]] = &[
    &[],
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
    &[
        ("FAKECUDA_STRICT", "1"),
        ("FAKECUDA_EXEC", "lazy"),
        ("FAKECUDA_SEED", "3"),
    ],
];

/// The folder of these programs.
pub fn sources() -> PathBuf {
    support::package().join("tests/runtime")
}

/// What makes programs.
pub struct Compiler {
    /// The toolkit's folder.
    pub toolkit: PathBuf,
    /// Where `cudart/build.sh` has put the runtime double.
    pub runtime: PathBuf,
}

/// The compiler. Where what it takes is not installed, says that the test is skipped.
pub fn compiler() -> Option<&'static Compiler> {
    static COMPILER: OnceLock<Result<Compiler, String>> = OnceLock::new();
    let made = COMPILER.get_or_init(|| {
        let Some(toolkit) = support::toolkit() else {
            return Err("no CUDA toolkit (scripts/cuda-toolkit makes one)".to_owned());
        };
        if !toolkit.join("bin/nvcc").is_file() {
            return Err(format!("no nvcc in {}", toolkit.display()));
        }
        let needed = ["bash", "gcc", "g++", "nm", "ar"];
        if let Some(missing) = needed.iter().find(|tool| !tools::installed(tool)) {
            return Err(format!("not installed: {missing}"));
        }
        let runtime = Path::new(env!("CARGO_TARGET_TMPDIR")).join("cudart");
        let mut build = tools::command("bash");
        build
            .arg(support::package().join("cudart/build.sh"))
            .arg(&runtime)
            .env("LUMA_CUDA_TOOLKIT", &toolkit);
        tools::succeed(&mut build, BUILD_TIME);
        Ok(Compiler { toolkit, runtime })
    });
    match made {
        Ok(compiler) => Some(compiler),
        Err(why) => {
            let thread = std::thread::current();
            support::tools::skipped(thread.name().unwrap_or("a test"), why);
            None
        }
    }
}

impl Compiler {
    /// The headers of CUDA 12, where the toolkit has them beside its own.
    pub fn headers_of_12(&self) -> Option<PathBuf> {
        let headers = self.toolkit.join("../cuda_runtime/include");
        headers
            .join("cuda_runtime_api.h")
            .is_file()
            .then_some(headers)
    }

    /// nvcc, with the flags that any program takes and the runtime double ahead of NVIDIA's.
    pub fn nvcc(&self) -> Command {
        let mut nvcc = tools::command(self.toolkit.join("bin/nvcc"));
        nvcc.args(["-arch=sm_90", "-std=c++17", "-Werror", "all-warnings"])
            .args(["-Xcompiler", "-Wall,-Wextra,-Werror"])
            .arg("-I")
            .arg(support::package().join("include"))
            .arg("-L")
            .arg(&self.runtime);
        nvcc
    }

    /// Compiles the program `name` once and links it with the static and with the shared runtime.
    pub fn both(&self, name: &str, flags: &[&str]) -> (tools::Folder, [Program; 2]) {
        let folder = tools::Folder::new(name);
        let object = folder.path().join("program.o");
        let mut compile = self.nvcc();
        compile
            .args(flags)
            .arg("-c")
            .arg(sources().join(name).with_extension("cu"))
            .arg("-o")
            .arg(&object);
        tools::succeed(&mut compile, BUILD_TIME);
        let programs = ["static", "shared"].map(|kind| {
            let path = folder.path().join(kind);
            let mut link = self.nvcc();
            link.args(flags)
                .args(["-cudart", kind])
                .arg(&object)
                .arg("-o")
                .arg(&path);
            tools::succeed(&mut link, BUILD_TIME);
            Program::new(path)
        });
        (folder, programs)
    }
}

/// Runs a compiler to its end.
pub fn build(command: &mut Command) {
    tools::succeed(command, BUILD_TIME);
}

/// A compiled program.
#[derive(Clone)]
pub struct Program {
    path: PathBuf,
    driver: bool,
    env: Vec<(String, String)>,
    args: Vec<String>,
}

impl Program {
    pub fn new(path: PathBuf) -> Program {
        Program {
            path,
            driver: true,
            env: Vec::new(),
            args: Vec::new(),
        }
    }

    /// Runs it where there is no driver.
    pub fn without_driver(mut self) -> Program {
        self.driver = false;
        self
    }

    pub fn arg(mut self, arg: impl Into<String>) -> Program {
        self.args.push(arg.into());
        self
    }

    pub fn env(mut self, name: &str, value: &str) -> Program {
        self.env.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Runs it; it must succeed. Gives its standard output.
    pub fn run(&self) -> String {
        self.run_with(MODES[0]).stdout
    }

    pub fn run_in_every_mode(&self) {
        for mode in MODES {
            self.run_with(mode);
        }
    }

    /// Runs it in a mode of the double; it must succeed.
    pub fn run_with(&self, mode: &[(&str, &str)]) -> tools::Finished {
        let mut command = tools::command(&self.path);
        for (name, _) in env::vars_os() {
            if name.to_string_lossy().starts_with("FAKECUDA_") {
                command.env_remove(name);
            }
        }
        let mut libraries = Vec::new();
        if self.driver {
            libraries.push(support::driver_folder().to_owned());
        }
        libraries.extend(compiler().map(|compiler| compiler.runtime.clone()));
        let libraries = env::join_paths(libraries).expect("the folders have no colon");
        command
            .args(&self.args)
            .env("LD_LIBRARY_PATH", libraries)
            .envs(self.env.iter().map(|(name, value)| (name, value)))
            .envs(mode.iter().copied());
        let finished = tools::run(&mut command, RUN_TIME);
        assert!(
            finished.status.success(),
            "{command:?}\n{}\n{}{}",
            finished.status,
            finished.stdout,
            finished.stderr
        );
        finished
    }
}
