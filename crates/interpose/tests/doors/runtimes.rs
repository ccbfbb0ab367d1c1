//! Programs of the CUDA runtime, which finds the driver by itself.

use crate::support::{Run, package, skipped, toolkit, tools};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// What compiles programs of the runtime.
struct Compiler {
    toolkit: PathBuf,
    /// The folder with the runtime doubles.
    runtime: PathBuf,
}

/// The compiler; where it cannot be had, says that the calling test is skipped.
fn compiler() -> Option<&'static Compiler> {
    static COMPILER: OnceLock<Option<Compiler>> = OnceLock::new();
    let made = COMPILER.get_or_init(|| {
        let toolkit = toolkit()?;
        if !toolkit.join("bin/nvcc").is_file() || !tools::available(&["bash", "gcc", "g++"]) {
            return None;
        }
        let runtime = Path::new(env!("CARGO_TARGET_TMPDIR")).join("cudart");
        let mut build = tools::command("bash");
        build
            .arg(package().join("../fakecuda/cudart/build.sh"))
            .arg(&runtime)
            .env("LUMA_CUDA_TOOLKIT", &toolkit);
        tools::succeed(&mut build, tools::BUILD_TIME);
        Some(Compiler { toolkit, runtime })
    });
    if made.is_none() {
        skipped("no compiler of CUDA");
    }
    made.as_ref()
}

impl Compiler {
    fn nvcc(&self) -> Command {
        let mut nvcc = tools::command(self.toolkit.join("bin/nvcc"));
        nvcc.args(["-arch=sm_90", "-std=c++17", "-I"])
            .arg(package().join("../fakecuda/include"))
            .arg("-L")
            .arg(&self.runtime);
        nvcc
    }

    /// A source, linked with the static and with the shared runtime.
    fn both(&self, source: &Path, folder: &Path) -> [PathBuf; 2] {
        let object = folder.join("program.o");
        let mut compile = self.nvcc();
        compile.arg("-c").arg(source).arg("-o").arg(&object);
        tools::succeed(&mut compile, tools::BUILD_TIME);
        ["static", "shared"].map(|kind| {
            let program = folder.join(kind);
            let mut link = self.nvcc();
            link.args(["-cudart", kind])
                .arg(&object)
                .arg("-o")
                .arg(&program);
            tools::succeed(&mut link, tools::BUILD_TIME);
            program
        })
    }

    fn run(&self, program: &Path) -> Run {
        Run::new(program).with_driver().search(&self.runtime)
    }
}

// pitfall 1
// pitfall 6
#[test]
fn static_and_shared_runtimes_are_reached() {
    let Some(compiler) = compiler() else {
        return;
    };
    let folder = tools::Folder::new("runtime");
    let source = package().join("tests/programs/runtime.cu");
    for program in compiler.both(&source, folder.path()) {
        let run = || compiler.run(&program);
        assert_eq!(run().arg("plain").run(), "");
        assert_eq!(run().hooked().arg("hooked").run(), "");
        let off = run().hooked().env("LUMA_INTERPOSE", "off");
        assert_eq!(off.arg("plain").run(), "");
    }
}

// pitfall 16
#[test]
fn memory_of_one_runtime_is_freed_by_another() {
    let Some(compiler) = compiler() else {
        return;
    };
    let folder = tools::Folder::new("runtimes");
    let sources = package().join("../fakecuda/tests/runtime");
    let part = folder.path().join("part.so");
    let mut gxx = tools::command("g++");
    gxx.args(["-std=c++17", "-shared", "-fPIC", "-isystem"])
        .arg(compiler.toolkit.join("include"))
        .arg(sources.join("part.cpp"))
        .arg(compiler.runtime.join("libcudart_static.a"))
        .args(["-ldl", "-lpthread", "-o"])
        .arg(&part);
    tools::succeed(&mut gxx, tools::BUILD_TIME);
    for program in compiler.both(&sources.join("runtimes.cu"), folder.path()) {
        let run = || compiler.run(&program).arg(&part).hooked();
        assert_eq!(run().run(), "13050\n");
        let late = run()
            .env("FAKECUDA_STRICT", "1")
            .env("FAKECUDA_EXEC", "lazy");
        assert_eq!(late.run(), "13050\n");
    }
}
