//! `docs/cli.md` shows what a run prints, but for numbers of processes and times.

use super::{RUN_TIME, can_compile, luma, tools};
use std::fs;

/// What stays of a printed line.
fn lasting(line: &str) -> String {
    let words: Vec<&str> = line.split_whitespace().collect();
    match words[..] {
        ["process", _pid, ref rest @ ..] => format!("process {}", rest.join(" ")),
        // A request may find the work of an earlier free done, or not yet.
        ["driver", _calls, "calls", "made,", _saved, ref rest @ ..] => {
            format!("driver calls {}", without_times(rest))
        }
        [_, "steps,", ..] => without_times(&words),
        _ => words.join(" "),
    }
}

/// The words without those that are a time and its unit.
fn without_times(words: &[&str]) -> String {
    let is_number = |word: &&str| word.parse::<f64>().is_ok();
    let units = ["s", "ms", "us", "ns", "s)", "ms)", "us)", "ns)"];
    let mut kept = Vec::new();
    let mut words = words.iter().peekable();
    while let Some(word) = words.next() {
        if is_number(word) && words.next_if(|unit| units.contains(unit)).is_some() {
            continue;
        }
        kept.push(*word);
    }
    kept.join(" ")
}

/// The commands that begin with `$` in the blocks of a section, and what is shown under each.
fn shown(page: &str) -> Vec<(&str, &str)> {
    let section = page.split("\n## luma run\n").nth(1).unwrap();
    let section = section.split("\n## ").next().unwrap();
    let blocks = section.split("```\n$ ").skip(1);
    let entries = blocks.flat_map(|block| block.split("\n```").next().unwrap().split("\n$ "));
    entries
        .map(|entry| entry.split_once('\n').unwrap_or((entry, "")))
        .collect()
}

#[test]
fn the_runs_on_the_page_are_what_is_printed() {
    if !can_compile() || !tools::available(&["python3"]) {
        return;
    }
    let root = super::super::root();
    let scratch = tools::Folder::new("page");
    std::os::unix::fs::symlink(root.join("examples"), scratch.path().join("examples")).unwrap();
    let page = fs::read_to_string(root.join("docs/cli.md")).unwrap();
    let entries = shown(&page);
    assert!(entries.len() >= 6, "{entries:?}");
    for (command, shown) in entries {
        let mut shell = tools::command("sh");
        shell
            .args(["-c", &format!("PATH=\"$1:$PATH\"; {command} 2>&1"), "sh"])
            .arg(luma().parent().unwrap())
            .current_dir(scratch.path());
        let printed = tools::run(&mut shell, RUN_TIME).stdout;
        let lines = |text: &str| text.trim().lines().map(lasting).collect::<Vec<_>>();
        assert_eq!(lines(&printed), lines(shown), "$ {command}");
    }
}

/// The example as it is said to be: it needs no CUDA, and compiles without a warning.
#[test]
fn the_example_compiles_cleanly() {
    if !can_compile() {
        return;
    }
    let folder = tools::Folder::new("example");
    for standard in ["c11", "gnu17"] {
        let mut command = tools::command("cc");
        command
            .args([
                &*format!("-std={standard}"),
                "-D_POSIX_C_SOURCE=200809L",
                "-Wall",
                "-Wextra",
                "-Werror",
                "-O2",
                "-o",
            ])
            .arg(folder.path().join("many_allocations"))
            .arg(super::super::root().join("examples/run/many_allocations.c"))
            .arg("-ldl");
        tools::succeed(&mut command, RUN_TIME);
    }
}
