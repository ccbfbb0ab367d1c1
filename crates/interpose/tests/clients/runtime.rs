//! Programs that nvcc compiles, with the static and with the shared runtime.

use crate::differences::differences;
use crate::library;
use crate::program::{MODES, Program, build, compiler, sources};
use crate::support::{self, tools};
use std::path::PathBuf;

fn under_luma(program: Program) -> Program {
    program.env("LD_PRELOAD", library())
}

/// Which program a line of a failed check is of, and what it says: `FOLDER/NAME.cu:LINE: TEXT`.
fn failed_check(line: &str) -> Option<(&str, &str)> {
    let (place, text) = line.split_once(": ")?;
    let (file, _) = place.split_once(".cu:")?;
    Some((file.rsplit('/').next()?, text))
}

/// The program runs in every mode. The checks that are listed fail, in the order of the list, and no other.
fn check_in_every_mode(name: &str, program: Program) {
    let program = under_luma(program).env("CHECK_GOES_ON", "1");
    let source = format!("{name}.cu");
    let listed: Vec<&str> = differences()
        .filter(|difference| difference.rule == source)
        .map(|difference| difference.answer)
        .collect();
    for mode in MODES {
        let finished = program.run_with(mode);
        let failed: Vec<&str> = finished
            .stderr
            .lines()
            .filter_map(failed_check)
            .filter(|(program, _)| *program == name)
            .map(|(_, text)| text)
            .collect();
        assert_eq!(failed, listed, "{mode:?}\n{}", finished.stderr);
    }
}

/// The program runs with both runtimes, with more flags, environment and arguments.
fn runs(name: &str, flags: &[&str], env: &[(&str, &str)], args: &[&str]) {
    let Some(compiler) = compiler() else {
        return;
    };
    let (_folder, programs) = compiler.both(name, flags);
    for program in programs {
        let program = env
            .iter()
            .fold(program, |program, (name, value)| program.env(name, value));
        let program = args.iter().fold(program, |program, &arg| program.arg(arg));
        check_in_every_mode(name, program);
    }
}

macro_rules! programs {
    ($($name:ident)*) => {
        /// Those for which something may be listed.
        pub const PROGRAMS: &[&str] = &[$(stringify!($name)),*];

        $(#[test]
        fn $name() {
            runs(stringify!($name), &[], &[], &[]);
        })*
    };
}

programs! { errors fork graphs ipc kernels memory pools streams }

#[test]
fn devices() {
    runs("devices", &[], &[("FAKECUDA_DEVICES", "2")], &[]);
}

#[test]
fn relocatable_code() {
    runs("kernels", &["-rdc=true"], &[], &[]);
}

#[test]
fn default_streams() {
    for kind in ["per-thread", "legacy"] {
        runs("per_thread", &["--default-stream", kind], &[], &[kind]);
    }
}

/// What is left to the end of the process finds the driver shut down, and the program ends well.
#[test]
fn exit() {
    let Some(compiler) = compiler() else {
        return;
    };
    let (_folder, programs) = compiler.both("exit", &[]);
    for program in programs {
        assert_eq!(under_luma(program).run(), "late\n");
    }
}

/// Without a driver, or with one that does not start, every call says why.
#[test]
fn start() {
    const INSUFFICIENT_DRIVER: &str = "35";
    const NO_DEVICE: &str = "100";
    let Some(compiler) = compiler() else {
        return;
    };
    let (_folder, programs) = compiler.both("start", &[]);
    for program in programs.map(under_luma) {
        program
            .clone()
            .without_driver()
            .arg(INSUFFICIENT_DRIVER)
            .run();
        for (code, name, value) in [
            (NO_DEVICE, "FAKECUDA_DEVICES", "0"),
            (INSUFFICIENT_DRIVER, "FAKECUDA_VERSION", "12080"),
            ("999", "FAKECUDA_INIT", "999"),
            ("3", "FAKECUDA_INIT", "3"),
        ] {
            program.clone().arg(code).env(name, value).run();
        }
    }
}

/// Memory that a static runtime of one library allocates is freed by the program's own.
#[test]
fn several_runtimes() {
    let Some(compiler) = compiler() else {
        return;
    };
    let folder = tools::Folder::new("parts");
    let include = compiler.toolkit.join("include");
    let runtime = &compiler.runtime;
    let part = |name: &str, include: &[PathBuf], link: PathBuf| {
        let path = folder.path().join(name);
        let mut gxx = tools::command("g++");
        gxx.args(["-std=c++17", "-shared", "-fPIC"]);
        for folder in include {
            gxx.arg("-isystem").arg(folder);
        }
        gxx.arg(sources().join("part.cpp"))
            .arg(link)
            .args(["-ldl", "-lpthread", "-o"])
            .arg(&path);
        build(&mut gxx);
        path.to_str()
            .expect("the folder has a plain name")
            .to_owned()
    };
    let archive = runtime.join("libcudart_static.a");
    let mut parts = vec![part("static13.so", std::slice::from_ref(&include), archive)];
    if let Some(older) = compiler.headers_of_12() {
        let twelve = [older, include];
        parts.push(part(
            "shared12.so",
            &twelve,
            runtime.join("libcudart.so.12"),
        ));
        let archive = runtime.join("cuda12/libcudart_static.a");
        parts.push(part("static12.so", &twelve, archive));
    } else {
        support::tools::skipped(
            "several_runtimes",
            "no headers of CUDA 12 beside the toolkit",
        );
    }
    let (_folder, programs) = compiler.both("runtimes", &[]);
    for program in programs.map(under_luma) {
        parts
            .iter()
            .fold(program, |program, part| program.arg(part))
            .run_in_every_mode();
    }
}
