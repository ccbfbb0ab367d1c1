//! The runtime double: programs that nvcc compiles with unchanged flags, with the static and with the
//! shared runtime, on the driver double.

#[path = "../support/mod.rs"]
mod support;

mod exports;
mod program;
mod runtimes;

use program::{Program, build, compiler, sources};
use support::tools;

/// The program runs with both runtimes in every mode, with more flags and environment.
fn runs(name: &str, flags: &[&str], env: &[(&str, &str)]) {
    let Some(compiler) = compiler() else {
        return;
    };
    let (_folder, programs) = compiler.both(name, flags);
    for program in programs {
        env.iter()
            .fold(program, |program, (name, value)| program.env(name, value))
            .run_in_every_mode();
    }
}

macro_rules! programs {
    ($($name:ident)*) => {
        $(#[test]
        fn $name() {
            runs(stringify!($name), &[], &[]);
        })*
    };
}

programs! { errors fork graphs ipc kernels memory pools streams }

#[test]
fn devices() {
    runs("devices", &[], &[("FAKECUDA_DEVICES", "2")]);
}

/// Code that the device linker puts together registers itself in another way.
#[test]
fn relocatable_code() {
    runs("kernels", &["-rdc=true"], &[]);
}

/// `--default-stream per-thread` takes other functions of the runtime, and those of the driver.
#[test]
fn default_streams() {
    let Some(compiler) = compiler() else {
        return;
    };
    for kind in ["per-thread", "legacy"] {
        let (_folder, programs) = compiler.both("per_thread", &["--default-stream", kind]);
        for program in programs {
            program.arg(kind).run_in_every_mode();
        }
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
        assert_eq!(program.run(), "late\n");
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
    for program in &programs {
        program
            .clone()
            .without_driver()
            .arg(INSUFFICIENT_DRIVER)
            .run();
        for (code, name, value) in [
            (NO_DEVICE, "FAKECUDA_DEVICES", "0"),
            // A runtime takes a driver of its own major version, or a newer one.
            (INSUFFICIENT_DRIVER, "FAKECUDA_VERSION", "12080"),
            ("999", "FAKECUDA_INIT", "999"),
            ("3", "FAKECUDA_INIT", "3"),
        ] {
            program.clone().arg(code).env(name, value).run();
        }
    }
}

/// The static runtime asks nothing of a program in C but libdl and threads.
#[test]
fn plain_c() {
    let Some(compiler) = compiler() else {
        return;
    };
    let folder = tools::Folder::new("plain");
    let path = folder.path().join("plain");
    let mut gcc = tools::command("gcc");
    gcc.args(["-std=c11", "-Wall", "-Wextra", "-Werror", "-isystem"])
        .arg(compiler.toolkit.join("include"))
        .arg(sources().join("plain.c"))
        .arg("-o")
        .arg(&path)
        .arg("-L")
        .arg(&compiler.runtime)
        .args(["-lcudart_static", "-ldl", "-lpthread"]);
    build(&mut gcc);
    Program::new(path).run_in_every_mode();
}
