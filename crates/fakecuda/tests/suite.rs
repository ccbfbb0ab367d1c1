//! The suite: C programs that hold the double to the driver's documentation. Each rule is run with the
//! functions linked, found by dlsym and found by cuGetProcAddress; plain, strict, and strict with queues
//! that run late.

mod support;

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use support::suite::{LAZY, Program, SEEDS, SHARED, STRICT, WAYS, folder, for_each_program};

/// Why rules are skipped on a device without virtual memory and memory pools.
const LACKING: &[&str] = &[
    "no virtual memory",
    "no memory pools",
    "no host memory pools",
    "memory is not shared by file descriptor",
];

/// Programs about what the double counts in a process. On a board all of their rules are skipped.
const WHOLE_PROCESS: &[&str] = &["contents", "double"];

/// Runs every rule. None may fail, and none be skipped but for a reason that the run itself gives.
fn check(program: &Program, way: &str, args: &[&str], env: &[(&str, &str)], skips: &[&str]) {
    let answers = program.run(way, args, env);
    for line in &answers.lines {
        let known = line.starts_with("ok ")
            || skips
                .iter()
                .any(|why| line.starts_with("skip ") && line.contains(&format!(": {why}")));
        assert!(known, "{line}\n{}", answers.told);
    }
    assert!(answers.status.success(), "{}", answers.told);
    assert_eq!(
        answers.lines.len(),
        program.rules,
        "rules of {}\n{}",
        program.name,
        answers.told
    );
}

fn check_in_every_mode(program: &Program) {
    let check = |way: &str, args: &[&str], env: &[(&str, &str)], skips: &[&str]| {
        check(program, way, args, env, skips);
    };
    let (eager, mild) = ("not in the lazy mode", "not in the strict mode");
    for (way, seed) in WAYS.iter().zip(SEEDS) {
        check(way, &[], &[], &[eager, mild]);
        check(way, &[], &[STRICT], &[eager]);
        check(way, &[], &[STRICT, LAZY, ("FAKECUDA_SEED", seed)], &[]);
    }
    let one = [("FAKECUDA_DEVICES", "1")];
    check("link", &[], &one, &[eager, mild, "one device"]);
    let mut skips = vec![eager, mild];
    skips.extend(LACKING);
    let lacking = [("FAKECUDA_NO_VMM", "1"), ("FAKECUDA_NO_POOLS", "1")];
    check("dlsym", &[], &lacking, &skips);
    let old = [("FAKECUDA_VERSION", "12010")];
    check("gpa", &[], &old, &[eager, mild, "this driver has no cu"]);
    if !WHOLE_PROCESS.contains(&program.name) {
        // As on a board, where a process for each rule takes too long.
        check("dlsym", &["--together"], &[], &[eager, mild]);
        let together = [STRICT, LAZY, ("FAKECUDA_SEED", "4")];
        check("gpa", &["--together"], &together, &[]);
    }
}

macro_rules! tests {
    ($($name:ident[$($flag:literal)*])*) => {
        const PROGRAMS: &[&str] = &[$(stringify!($name)),*];

        $(#[test]
        fn $name() {
            if let Some(program) = Program::compiled(stringify!($name), &[$($flag)*]) {
                check_in_every_mode(&program);
            }
        })*
    };
}

for_each_program!(tests);

#[test]
fn every_program_is_run() {
    let stem = |path: &Path| Some(path.file_stem()?.to_str()?.to_owned());
    let found: BTreeSet<String> = fs::read_dir(folder())
        .expect("the suite is there")
        .map(|entry| entry.expect("the suite can be listed").path())
        .filter(|path| path.extension().is_some_and(|ending| ending == "c"))
        .filter_map(|path| stem(&path))
        .filter(|name| !SHARED.contains(&name.as_str()))
        .collect();
    let run: BTreeSet<String> = PROGRAMS.iter().map(|&name| name.to_owned()).collect();
    assert_eq!(found, run);
}

/// A rule that does not hold is told, and is all that the program's status is about.
#[test]
fn a_broken_rule_is_told() {
    let Some(program) = Program::compiled("memory", &[]) else {
        return;
    };
    let answers = program.run(
        "dlsym",
        &["freeing_null_is_fine", "blocks_are_aligned"],
        &[("FAKECUDA_FAIL", "cuMemFree_v2:0:999:1")],
    );
    let lines = &answers.lines;
    assert!(!answers.status.success());
    assert!(
        lines.len() == 2 && lines.iter().all(|line| line.starts_with("FAIL memory.")),
        "{lines:?}"
    );
    assert!(lines[1].contains("gives UNKNOWN, not SUCCESS"), "{lines:?}");
}
