//! Why luma was not reached.

use super::{can_compile, copy_to_run, folder, luma, program, program_with, reported, run, script};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// The reasons that are told.
fn reasons(options: &[&str], program: &[&str]) -> Vec<String> {
    let (_, document) = reported(options, program);
    let why = document["why"].as_array().unwrap();
    why.iter()
        .map(|reason| reason.as_str().unwrap().to_owned())
        .collect()
}

#[track_caller]
fn only(reasons: &[String], words: &[&str]) {
    assert_eq!(reasons.len(), 1, "{reasons:?}");
    for word in words {
        assert!(reasons[0].contains(word), "{word}: {reasons:?}");
    }
}

#[test]
fn a_static_program() {
    if !can_compile() {
        return;
    }
    let program = program_with("signals", "static", &["-static"]);
    let told = [
        &*program,
        " is statically linked: nothing can be preloaded into it",
    ];
    only(&reasons(&["--fake"], &[&program, "leave"]), &told);
    let finished = run(&["--fake", "--", &program, "leave"]);
    assert_eq!(finished.status.code(), Some(7));
    assert!(
        finished.stderr.contains("not reached  /"),
        "{}",
        finished.stderr
    );
}

/// The mode decides, for a privilege is one only for others than its owner.
#[test]
fn a_program_with_privileges() {
    if !can_compile() {
        return;
    }
    let copy = folder().join("run_set_user_id");
    // One that cannot be reached anyhow: to its owner the bit gives nothing.
    copy_to_run(
        Path::new(&program_with("signals", "static", &["-static"])),
        &copy,
    );
    fs::set_permissions(&copy, fs::Permissions::from_mode(0o4755)).unwrap();
    let copy = copy.to_str().unwrap();
    let told = " is set-user-ID: the loader ignores LD_PRELOAD";
    only(
        &reasons(&["--fake"], &[copy, "leave"]),
        &[&format!("{copy}{told}")],
    );
    let script = script("run_privileged.sh", &format!("#!{copy} leave\n"));
    let told = format!("{copy}, which runs {script},{told}");
    only(&reasons(&["--fake"], &[&script]), &[&told]);
    // It is not luma's to say so where luma was reached.
    let reached = folder().join("run_set_user_id_reached");
    copy_to_run(Path::new(&program("pool")), &reached);
    fs::set_permissions(&reached, fs::Permissions::from_mode(0o4755)).unwrap();
    assert_eq!(reasons(&["--fake"], &[reached.to_str().unwrap()]), [""; 0]);
}

#[test]
fn a_program_that_uses_no_cuda() {
    only(
        &reasons(&["--fake"], &["true"]),
        &["used no CUDA", "never loaded"],
    );
    let finished = run(&["--fake", "--", "true"]);
    assert!(
        finished
            .stderr
            .contains("not reached  the program used no CUDA"),
        "{}",
        finished.stderr
    );
    // Nor does a script, nor what it starts.
    let path = script("run_nothing.sh", "#!/bin/sh\ntrue | cat\n");
    only(&reasons(&["--fake"], &[&path]), &["used no CUDA"]);
    assert_eq!(reasons(&["--fake", "--off"], &["true"]), [""; 0]);
}

#[test]
fn a_driver_that_is_missing() {
    if !can_compile() {
        return;
    }
    if fs::exists("/usr/lib/x86_64-linux-gnu/libcuda.so.1").unwrap() {
        return;
    }
    let told = reasons(&[], &[&program("driver")]);
    only(
        &told,
        &[
            "the program asked for libcuda.so.1, and the loader did not find it",
            "luma run --fake",
        ],
    );
    only(
        &reasons(&[], &["true"]),
        &["used no CUDA", "There is no driver here either", "--fake"],
    );
}

#[test]
fn a_driver_that_gives_nothing() {
    if !can_compile() {
        return;
    }
    let driver = program("driver");
    only(
        &reasons(&["--fake"], &[&driver, "load"]),
        &["the driver was loaded (", "libcuda.so.1)"],
    );
    only(
        &reasons(&["--fake"], &[&driver, "look"]),
        &["looked the driver's functions up, and allocated nothing"],
    );
}

/// However that was asked for, it is no want that needs a reason.
#[test]
fn a_mode_that_is_off() {
    if !can_compile() {
        return;
    }
    let driver = program("driver");
    for (options, variable) in [(&["--fake", "--off"][..], "on"), (&["--fake"], "off")] {
        let mut command = super::luma_run(options);
        command
            .args(["--", &driver])
            .env("LUMA_INTERPOSE", variable);
        let finished = super::tools::run(&mut command, super::RUN_TIME);
        let told = format!("off          all calls of {driver} went to the driver\n");
        assert!(finished.stderr.ends_with(&told), "{}", finished.stderr);
    }
}

#[test]
fn a_library_that_is_opened_past_luma() {
    if !can_compile() {
        return;
    }
    let deepbind = program("deepbind");
    let library = luma().with_file_name("libfakenvml.so");
    let library = library.to_str().unwrap();
    let told = reasons(&["--fake"], &[&deepbind, library]);
    assert_eq!(told.len(), 2, "{told:?}");
    assert!(
        told[0].contains(library) && told[0].contains("RTLD_DEEPBIND"),
        "{told:?}"
    );
    assert!(told[0].contains("--strip-deepbind"), "{told:?}");
    only(
        &reasons(&["--fake", "--strip-deepbind"], &[&deepbind, library]),
        &["used no CUDA"],
    );
    // It stays so, whatever the program does to its environment.
    let other = luma().with_file_name("libluma.so");
    let both = [&*deepbind, other.to_str().unwrap(), library];
    only(
        &reasons(&["--fake", "--strip-deepbind"], &both),
        &["used no CUDA"],
    );
}

#[test]
fn an_environment_that_was_cleared() {
    if !can_compile() {
        return;
    }
    let driver = program("driver");
    let told = reasons(&["--fake"], &["env", "-i", &driver, "load"]);
    only(
        &told,
        &["env gave the program another environment, without LD_PRELOAD"],
    );
    let path = script(
        "run_clears.sh",
        &format!("#!/bin/sh\nexec env -u LD_PRELOAD {driver} load\n"),
    );
    only(
        &reasons(&["--fake"], &[&path]),
        &["left no report: its environment was cleared on the way"],
    );
}

#[test]
fn a_program_that_cannot_report() {
    if !can_compile() {
        return;
    }
    let driver = program("driver");
    let told = reasons(&["--fake"], &[&driver, "kill"]);
    only(
        &told,
        &["used luma and left no report: it still runs, was killed"],
    );
    // Whether it is a program that uses luma or one that does not.
    for how in ["exec", "again"] {
        let told = reasons(&["--fake"], &[&driver, how]);
        only(&told, &["used luma and then became another program (exec)"]);
    }
    only(
        &reasons(&["--fake"], &["sh", "-c", "kill -9 $$"]),
        &["ended by signal 9 before it used CUDA"],
    );
}
