//! What `luma run` sets for the program.

use super::{RUN_TIME, can_compile, folder, luma, luma_run, program, reported, run, tools};
use std::collections::HashMap;
use std::fs;
use std::path::Path;

/// The environment of a program under these options.
fn environment(options: &[&str], set: &[(&str, &str)]) -> HashMap<String, String> {
    let mut command = luma_run(options);
    command
        .args(["--quiet", "--", "env"])
        .envs(set.iter().copied());
    let output = tools::succeed(&mut command, RUN_TIME);
    let lines = output.lines().filter_map(|line| line.split_once('='));
    lines
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect()
}

#[test]
fn options_become_variables() {
    let variables = environment(&[], &[]);
    for name in [
        "LUMA_INTERPOSE",
        "LUMA_MEMORY_LIMIT",
        "LUMA_PRESET",
        "LUMA_TRACE",
        "LUMA_INTERPOSE_IPC",
        "LUMA_INTERPOSE_DEEPBIND",
        "LD_LIBRARY_PATH",
        "FAKECUDA_MEM",
    ] {
        assert_eq!(variables.get(name), None, "{name}");
    }
    let library = luma().with_file_name("libluma_interpose.so");
    let library = fs::canonicalize(library).unwrap().display().to_string();
    assert_eq!(variables["LD_PRELOAD"], library);

    let options = [
        "--limit",
        "80%",
        "--preset",
        "luma-0.3",
        "--trace",
        "x.csv",
        "--ipc",
        "own",
        "--wait",
        "--strip-deepbind",
        "--fake",
        "--fake-memory",
        "3G",
    ];
    let before = [("LD_LIBRARY_PATH", "/before"), ("LUMA_LOG", "error")];
    let variables = environment(&options, &before);
    let trace = std::env::current_dir()
        .unwrap()
        .join("x.csv")
        .display()
        .to_string();
    for (name, value) in [
        ("LUMA_INTERPOSE", "wait"),
        ("LUMA_MEMORY_LIMIT", "80%"),
        ("LUMA_PRESET", "luma-0.3"),
        ("LUMA_TRACE", &*trace),
        ("LUMA_INTERPOSE_IPC", "own"),
        ("LUMA_INTERPOSE_DEEPBIND", "strip"),
        ("FAKECUDA_MEM", "3G"),
        ("LUMA_LOG", "error"),
    ] {
        assert_eq!(
            variables.get(name).map(String::as_str),
            Some(value),
            "{name}"
        );
    }
    assert!(
        variables["LD_LIBRARY_PATH"].ends_with("/driver:/before"),
        "{variables:?}"
    );
    assert_eq!(environment(&["--off"], &[])["LUMA_INTERPOSE"], "off");
    assert_eq!(
        environment(&["--ipc", "share"], &[])["LUMA_INTERPOSE_IPC"],
        "share"
    );
}

#[test]
fn what_was_preloaded_before_stays() {
    let before = luma().with_file_name("libfakenvml.so");
    let preloaded = environment(&[], &[("LD_PRELOAD", before.to_str().unwrap())]);
    let list: Vec<&str> = preloaded["LD_PRELOAD"].split(':').collect();
    assert_eq!(list.len(), 2);
    assert!(list[0].ends_with("/libluma_interpose.so"), "{list:?}");
    assert_eq!(Path::new(list[1]), before);

    // But for luma's own, which a run in a run has.
    let own = luma().with_file_name("libluma_interpose.so");
    let (own, before) = (own.display(), before.display());
    let both = format!("{own} {before}:/other/libluma_interpose.so");
    let preloaded = environment(&[], &[("LD_PRELOAD", &both)]);
    let list: Vec<&str> = preloaded["LD_PRELOAD"].split(':').collect();
    assert_eq!(list, [&*own.to_string(), &*before.to_string()]);
}

#[test]
fn a_library_in_a_folder_with_a_space_is_preloaded() {
    if !can_compile() {
        return;
    }
    let folder = tools::Folder::new("with space");
    let library = folder.path().join("a: b.so");
    fs::copy(luma().with_file_name("libluma_interpose.so"), &library).unwrap();
    let pool = program("pool");
    let (finished, document) = reported(
        &["--fake", "--library", library.to_str().unwrap()],
        &[&pool],
    );
    assert_eq!(finished.status.code(), Some(0), "{}", finished.stderr);
    assert_eq!(document["processes"][0]["figures"]["alloc_calls"], 100);
}

#[test]
fn the_double_is_the_driver() {
    if !can_compile() {
        return;
    }
    let driver = program("driver");
    let finished = run(&[
        "--quiet",
        "--fake",
        "--fake-memory",
        "3G",
        "--",
        &driver,
        "look",
    ]);
    assert_eq!(
        (finished.status.code(), &*finished.stdout),
        (Some(0), "3221225472\n"),
        "{}",
        finished.stderr
    );
    // In a folder that somebody has made.
    let made = super::super::double::folder();
    let option = format!("--fake={}", made.display());
    let (finished, document) = reported(&[&option], &[&driver]);
    assert_eq!(finished.status.code(), Some(0), "{}", finished.stderr);
    assert_eq!(document["fake_driver"], true);
    let loaded = document["processes"][0]["driver"].as_str().unwrap();
    assert_eq!(
        Path::new(loaded).parent(),
        Some(&*fs::canonicalize(made).unwrap())
    );
}

#[test]
fn nothing_is_left_behind() {
    let folder = tools::Folder::new("temporary");
    for program in [
        vec!["true"],
        vec!["sh", "-c", "kill $$"],
        vec!["no-such-program"],
    ] {
        let mut command = luma_run(&["--fake", "--"]);
        command.args(program).env("TMPDIR", folder.path());
        let _ = tools::run(&mut command, RUN_TIME);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }
}

#[test]
fn a_trace_can_be_replayed() {
    if !can_compile() {
        return;
    }
    let trace = folder().join("run_trace.csv");
    let pool = program("pool");
    let finished = run(&[
        "--quiet",
        "--fake",
        "--trace",
        trace.to_str().unwrap(),
        "--",
        &pool,
    ]);
    assert_eq!(finished.status.code(), Some(0), "{}", finished.stderr);
    let replayed =
        super::super::luma(&["replay", "--json", "--runs", "1", trace.to_str().unwrap()]);
    assert_eq!(replayed.code, 0, "{}", replayed.stderr);
    assert_eq!(replayed.json()["rows"][0]["calls"], 200);
}

/// Whoever sets the variable himself is not disturbed by it, whatever it says.
#[test]
fn a_report_that_cannot_be_written_is_no_matter_of_the_program() {
    if !can_compile() {
        return;
    }
    let pool = program("pool");
    let library = luma().with_file_name("libluma_interpose.so");
    let file = super::super::file("run_no_folder", "");
    let long = format!("/{}", "x/".repeat(3000));
    let empty = tools::Folder::new("empty");
    let alone = tools::Folder::new("alone");
    for (value, limited) in [
        (Some("/no/such/folder"), false),
        (Some(&*file), false),
        (Some(&*long), false),
        (Some(""), false),
        (None, false),
        (Some(empty.path().to_str().unwrap()), true),
    ] {
        let mut command = tools::command("sh");
        let limit = if limited { "ulimit -f 0; " } else { "" };
        command
            .args([
                "-c",
                &format!("{limit}LD_PRELOAD=$1 exec \"$2\" _exit"),
                "sh",
            ])
            .arg(&library)
            .arg(&pool)
            .current_dir(alone.path());
        if let Some(value) = value {
            command.env("LUMA_INTERPOSE_REPORT", value);
        }
        let mut child = command.spawn().unwrap();
        assert_eq!(child.wait().unwrap().code(), Some(3), "{value:?}");
    }
    for folder in [&empty, &alone] {
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }
}
