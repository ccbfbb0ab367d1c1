//! Builds the programs, and runs them on the driver double, with luma in front of it and without.

use crate::support::{
    package, skipped, toolkit,
    tools::{self, Finished, Folder},
};
use std::{
    env,
    path::{Path, PathBuf},
    process::Command,
    sync::OnceLock,
    time::Duration,
};

const BUILD_TIME: Duration = Duration::from_secs(300);
const RUN_TIME: Duration = Duration::from_secs(120);

/// `<target>/<profile>`, with the doubles and luma's library in it as the sources are now.
fn built() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| tools::built_packages(&["fakecuda", "fakenvml", "luma-interpose"]))
}

/// A folder in which programs find the doubles as the driver and as the management library.
fn driver() -> &'static Path {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    FOLDER.get_or_init(|| {
        let links = [
            ("libcuda.so.1", "libfakecuda.so"),
            ("libcuda.so", "libfakecuda.so"),
            ("libnvidia-ml.so.1", "libfakenvml.so"),
        ];
        tools::folder_of_links(
            "pitfall-driver",
            &links.map(|(name, library)| (name, built().join(library))),
        )
    })
}

/// The folder with the runtime doubles.
fn runtime(toolkit: &Path) -> &'static Path {
    static RUNTIME: OnceLock<PathBuf> = OnceLock::new();
    RUNTIME.get_or_init(|| {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("pitfall-cudart");
        let mut build = tools::command("bash");
        build
            .arg(package().join("../fakecuda/cudart/build.sh"))
            .arg(&folder)
            .env("LUMA_CUDA_TOOLKIT", toolkit);
        tools::succeed(&mut build, BUILD_TIME);
        folder
    })
}

/// A program in C, linked with the driver. `None`: what builds it is not installed, which was said.
pub fn c(name: &str) -> Option<Program> {
    let toolkit = toolkit()?;
    if !tools::available(&["gcc"]) {
        return None;
    }
    let folder = Folder::new("pitfall");
    let path = folder.path().join(name);
    let mut gcc = tools::command("gcc");
    gcc.args(["-std=c11", "-O1", "-g", "-Wall", "-Wextra", "-Wpedantic"])
        .args(["-Werror", "-Wshadow", "-Wstrict-prototypes"])
        .arg("-Wmissing-prototypes")
        .arg("-isystem")
        .arg(toolkit.join("include"))
        .arg("-I")
        .arg(package().join("../fakecuda/include"))
        .arg(package().join(format!("tests/programs/{name}.c")))
        .arg("-o")
        .arg(&path)
        .arg("-L")
        .arg(driver())
        .args(["-lcuda", "-ldl", "-pthread"]);
    tools::succeed(&mut gcc, BUILD_TIME);
    Some(Program::new(vec![path], folder))
}

/// A program of nvcc, linked with the static and with the shared runtime, each of which is run.
pub fn cu(name: &str) -> Option<Program> {
    let toolkit = toolkit()?;
    if !toolkit.join("bin/nvcc").is_file() {
        skipped("the CUDA toolkit has no nvcc");
        return None;
    }
    if !tools::available(&["bash", "gcc", "g++", "nm", "ar"]) {
        return None;
    }
    let runtime = runtime(&toolkit);
    let folder = Folder::new("pitfall");
    let nvcc = || {
        let mut nvcc = tools::command(toolkit.join("bin/nvcc"));
        nvcc.args(["-arch=sm_90", "-std=c++17", "-Werror", "all-warnings"])
            .args(["-Xcompiler", "-Wall,-Wextra,-Werror"])
            .arg("-I")
            .arg(package().join("../fakecuda/include"))
            .arg("-L")
            .arg(runtime);
        nvcc
    };
    let object = folder.path().join("program.o");
    let mut compile = nvcc();
    compile
        .arg("-c")
        .arg(package().join(format!("tests/programs/{name}.cu")))
        .arg("-o")
        .arg(&object);
    tools::succeed(&mut compile, BUILD_TIME);
    let paths = ["static", "shared"].map(|kind| {
        let path = folder.path().join(format!("{name}.{kind}"));
        let mut link = nvcc();
        link.args(["-cudart", kind])
            .arg(&object)
            .arg("-o")
            .arg(&path);
        tools::succeed(&mut link, BUILD_TIME);
        path
    });
    let mut program = Program::new(paths.to_vec(), folder);
    program.libraries.push(runtime.to_owned());
    Some(program)
}

/// How the double behaves: as it does by itself, or as unkindly as the rules allow, in several orders.
const MODES: &[&[(&str, &str)]] = &[
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
];

/// A built program, and how it is run.
pub struct Program {
    paths: Vec<PathBuf>,
    libraries: Vec<PathBuf>,
    args: Vec<String>,
    env: Vec<(String, String)>,
    status: i32,
    _folder: Folder,
}

impl Program {
    fn new(paths: Vec<PathBuf>, folder: Folder) -> Program {
        Program {
            paths,
            libraries: vec![driver().to_owned()],
            args: Vec::new(),
            env: vec![
                ("FAKECUDA_MEM".into(), "256M".into()),
                ("FAKECUDA_DEVICES".into(), "2".into()),
            ],
            status: 0,
            _folder: folder,
        }
    }

    /// Sets its arguments.
    pub fn args(mut self, args: &[&str]) -> Program {
        self.args = args.iter().map(|&arg| arg.to_owned()).collect();
        self
    }

    /// Sets an environment variable; of luma's own and the double's, programs see only those set here.
    pub fn env(mut self, name: &str, value: &str) -> Program {
        self.env.push((name.to_owned(), value.to_owned()));
        self
    }

    /// The program ends with this status.
    pub fn ends_with(mut self, status: i32) -> Program {
        self.status = status;
        self
    }

    /// Runs it on the driver alone, in all modes. Gives what it wrote, one text a run.
    pub fn alone(&self) -> Vec<String> {
        self.run_all(false)
    }

    /// Runs it with luma in front of the driver, in all modes.
    pub fn with_luma(&self) -> Vec<String> {
        self.run_all(true)
    }

    /// Runs it both ways.
    pub fn both(&self) {
        self.alone();
        self.with_luma();
    }

    fn run_all(&self, has_luma: bool) -> Vec<String> {
        let runs = self
            .paths
            .iter()
            .flat_map(|path| MODES.iter().map(move |mode| (path, mode)));
        runs.map(|(path, mode)| {
            let mut command = self.command(path);
            command.envs(mode.iter().copied());
            if has_luma {
                command.env("LD_PRELOAD", built().join("libluma_interpose.so"));
            }
            let Finished {
                status,
                stdout,
                stderr,
            } = tools::run(&mut command, RUN_TIME);
            assert_eq!(
                status.code(),
                Some(self.status),
                "{command:?}: {status}\n{stdout}{stderr}"
            );
            stdout
        })
        .collect()
    }

    fn command(&self, path: &Path) -> Command {
        let mut command = tools::command(path);
        for (name, _) in env::vars_os() {
            if name.to_string_lossy().starts_with("FAKECUDA_") {
                command.env_remove(name);
            }
        }
        let libraries = env::join_paths(&self.libraries).expect("the folders have no colon");
        command
            .args(&self.args)
            .env("LD_LIBRARY_PATH", libraries)
            .envs(self.env.iter().map(|(name, value)| (name, value)));
        command
    }
}

/// The program in C holds with luma and without.
pub fn holds(name: &str) {
    if let Some(program) = c(name) {
        program.both();
    }
}

/// So does the program of the runtime interface.
pub fn runtime_holds(name: &str) {
    if let Some(program) = cu(name) {
        program.both();
    }
}

/// What the program writes is the same with luma and without.
pub fn says_the_same(name: &str) {
    let Some(program) = c(name) else {
        return;
    };
    for (alone, with_luma) in program.alone().iter().zip(program.with_luma()) {
        assert!(!alone.is_empty());
        let difference = alone
            .lines()
            .zip(with_luma.lines())
            .enumerate()
            .find(|(_, (one, other))| one != other);
        if let Some((at, (one, other))) = difference {
            let before: Vec<&str> = alone.lines().take(at).collect();
            let last = &before[before.len().saturating_sub(25)..];
            panic!(
                "{name}, line {}: {one:?} alone, {other:?} with luma; after\n{}",
                at + 1,
                last.join("\n")
            );
        }
        assert_eq!(alone.lines().count(), with_luma.lines().count());
    }
}

/// The programs of these tests: those that include one of the headers for them.
pub fn programs() -> Vec<String> {
    let folder = package().join("tests/programs");
    let files = std::fs::read_dir(folder).expect("the folder is there");
    let paths = files.map(|file| file.expect("the folder can be read").path());
    let ours = paths.filter(|path| {
        let ending = path.extension().unwrap_or_default();
        let text = std::fs::read_to_string(path).unwrap_or_default();
        let headers = ["program.h", "past.h", "fill_kernel.h", "runtime.h"];
        (ending == "c" || ending == "cu")
            && headers
                .iter()
                .any(|header| text.contains(&format!("#include \"{header}\"")))
    });
    let stems = ours.filter_map(|path| Some(path.file_stem()?.to_str()?.to_owned()));
    stems.collect()
}
