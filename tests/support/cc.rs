//! Compiles C and C++ programs against the library that cargo built for this test, and runs them.
//!
//! ```ignore
//! let program = Build::c("c11").source("c_tests/basic.c").sanitized().compile();
//! let output = program.env("LUMA_BACKEND", "host").run();
//! ```

use super::tools::{self, Finished, Folder};
use std::{
    ffi::OsString,
    fs,
    path::{Path, PathBuf},
    process::Command,
    sync::OnceLock,
    time::Duration,
};

/// What every program of the tests and examples must be clean under.
pub const WARNINGS: &[&str] = &["-Wall", "-Wextra", "-Wpedantic", "-Werror", "-Wshadow"];

/// What `luma.hpp` and what uses it must be clean under as well.
pub const CPP_WARNINGS: &[&str] = &[
    "-Wconversion",
    "-Wsign-conversion",
    "-Wold-style-cast",
    "-Wnon-virtual-dtor",
    "-Woverloaded-virtual",
];

/// The libraries of the system that a program linked with libluma.a needs.
pub const STATIC_LIBRARIES: &[&str] = &["-lpthread", "-ldl", "-lm", "-lrt", "-lutil"];

const COMPILE_TIME: Duration = Duration::from_secs(300);
const RUN_TIME: Duration = Duration::from_secs(120);

/// The folder of the package.
#[must_use]
pub fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The name that programs look the library up by.
#[must_use]
pub fn soname() -> String {
    match env!("CARGO_PKG_VERSION_MAJOR") {
        "0" => concat!("libluma.so.0.", env!("CARGO_PKG_VERSION_MINOR")).to_owned(),
        major => format!("libluma.so.{major}"),
    }
}

/// A file that cargo built with this test, and left beside it.
#[must_use]
pub fn built(name: &str) -> PathBuf {
    let test = std::env::current_exe().expect("a test knows its own path");
    let path = test.parent().expect("a test lies in a folder").join(name);
    assert!(
        path.is_file(),
        "cargo did not leave {} beside the test",
        path.display()
    );
    path
}

/// A folder that holds the shared library under the names that linkers and loaders look for.
#[must_use]
pub fn library_folder() -> &'static Path {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    FOLDER.get_or_init(|| {
        let soname = soname();
        let names = [&*soname, "libluma.so"];
        tools::folder_of_links("lib", &names.map(|name| (name, built("libluma.so"))))
    })
}

/// One program to be compiled.
#[must_use]
pub struct Build {
    cpp: bool,
    compiler: Option<String>,
    inputs: Vec<OsString>,
    args: Vec<OsString>,
    link: Vec<OsString>,
    folder: Folder,
}

impl Build {
    /// A C program of a standard such as "c99", by the system's C compiler.
    pub fn c(standard: &str) -> Build {
        Build::new(false, standard)
    }

    /// A C++ program of a standard such as "c++17", by the system's C++ compiler. C sources are
    /// taken as C++, too.
    pub fn cpp(standard: &str) -> Build {
        Build::new(true, standard)
    }

    fn new(cpp: bool, standard: &str) -> Build {
        let library = library_folder();
        let mut rpath = OsString::from("-Wl,-rpath,");
        rpath.push(library);
        let mut search = OsString::from("-L");
        search.push(library);
        let build = Build {
            cpp,
            compiler: None,
            inputs: Vec::new(),
            args: vec![
                format!("-std={standard}").into(),
                "-I".into(),
                root().join("include").into(),
            ],
            link: vec![search, rpath, "-lluma".into(), "-pthread".into()],
            folder: Folder::new("cc"),
        };
        build.args(WARNINGS)
    }

    /// Uses this compiler ("gcc", "clang++") instead of the system's.
    pub fn compiler(mut self, name: &str) -> Build {
        self.compiler = Some(name.to_owned());
        self
    }

    /// Adds a source file; `path` is relative to the package.
    pub fn source(mut self, path: impl AsRef<Path>) -> Build {
        self.inputs.push(root().join(path).into());
        self
    }

    /// Adds a source file of this name and text.
    pub fn text(mut self, name: &str, text: &str) -> Build {
        let path = self.folder.path().join(name);
        fs::write(&path, text).expect("a source file can be written");
        self.inputs.push(path.into());
        self
    }

    /// Adds arguments for the compiler.
    pub fn args<Arg: AsRef<std::ffi::OsStr>>(
        mut self,
        args: impl IntoIterator<Item = Arg>,
    ) -> Build {
        self.args
            .extend(args.into_iter().map(|arg| arg.as_ref().to_owned()));
        self
    }

    /// Compiles with the address, leak and undefined-behaviour sanitizers; what they find ends the
    /// program.
    pub fn sanitized(self) -> Build {
        self.args(["-fsanitize=address,undefined", "-fno-sanitize-recover=all"])
    }

    /// Links libluma.a instead of libluma.so.
    pub fn statically(mut self) -> Build {
        self.link = vec![built("libluma.a").into()];
        self.link
            .extend(STATIC_LIBRARIES.iter().map(OsString::from));
        self
    }

    /// Compiles and links; the compiler's complaints fail the test.
    pub fn compile(self) -> Program {
        let path = self.folder.path().join("program");
        let mut command = self.command();
        command
            .args(&self.args)
            .args(&self.inputs)
            .arg("-o")
            .arg(&path)
            .args(&self.link);
        tools::succeed(&mut command, COMPILE_TIME);
        Program {
            path,
            wrapper: Vec::new(),
            args: Vec::new(),
            env: Vec::new(),
            _folder: self.folder,
        }
    }

    /// Checks the sources without making a program, and says how that went.
    #[must_use]
    pub fn check(self) -> Finished {
        let mut command = self.command();
        command
            .arg("-fsyntax-only")
            .args(&self.args)
            .args(&self.inputs);
        tools::run(&mut command, COMPILE_TIME)
    }

    /// The compiler with the flags that suit the machine, by the same rules as build scripts.
    fn command(&self) -> Command {
        let host = format!("{}-unknown-linux-gnu", std::env::consts::ARCH);
        let mut build = cc::Build::new();
        build
            .cpp(self.cpp)
            .host(&host)
            .target(&host)
            .opt_level(1)
            .debug(true);
        build.cargo_metadata(false).out_dir(self.folder.path());
        if let Some(compiler) = &self.compiler {
            build.compiler(compiler);
        }
        let tool = build.get_compiler();
        let mut command = tools::command(tool.path());
        command.args(tool.args());
        command
    }
}

/// A compiled program.
#[must_use]
pub struct Program {
    path: PathBuf,
    wrapper: Vec<OsString>,
    args: Vec<OsString>,
    env: Vec<(String, String)>,
    _folder: Folder,
}

impl Program {
    /// Sets an environment variable; of luma's own, programs see only those set here.
    pub fn env(mut self, name: &str, value: &str) -> Program {
        self.env.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Runs it under another program, which takes it and its arguments after these.
    pub fn under(mut self, wrapper: &[&str]) -> Program {
        self.wrapper = wrapper.iter().map(OsString::from).collect();
        self
    }

    /// Adds an argument.
    pub fn arg(mut self, arg: impl Into<OsString>) -> Program {
        self.args.push(arg.into());
        self
    }

    /// Runs it; it must succeed. Returns its standard output.
    pub fn run(&self) -> String {
        tools::succeed(&mut self.command(), RUN_TIME)
    }

    /// Runs it with one more argument; it must succeed.
    pub fn run_case(&self, case: &str) {
        tools::succeed(self.command().arg(case), RUN_TIME);
    }

    /// Runs it to any end.
    #[must_use]
    pub fn finish(&self) -> Finished {
        tools::run(&mut self.command(), RUN_TIME)
    }

    fn command(&self) -> Command {
        let mut command = match &self.wrapper[..] {
            [] => tools::command(&self.path),
            [wrapper, args @ ..] => {
                let mut command = tools::command(wrapper);
                command.args(args).arg(&self.path);
                command
            }
        };
        command
            .args(&self.args)
            .envs(self.env.iter().map(|(name, value)| (name, value)));
        command
    }
}
