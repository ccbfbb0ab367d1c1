//! `docs/cli.md` and `docs/planning.md` show what the program prints, but for times.

use super::root;
use std::fs;
use std::path::Path;
use std::process::Command;

/// What stays of a printed line: a row of a table loses its two times.
fn lasting(line: &str) -> String {
    let words: Vec<&str> = line.split_whitespace().collect();
    match words[..] {
        [trace, preset, calls, _ns, _p99, ref rest @ ..] if trace.ends_with(".csv") => {
            [&[trace, preset, calls], rest].concat().join(" ")
        }
        ["time", ..] => "time".to_string(),
        _ => words.join(" "),
    }
}

#[test]
fn the_tables_on_the_page_are_what_is_printed() {
    let page = fs::read_to_string(root().join("docs/cli.md")).unwrap();
    let folder = Path::new(env!("CARGO_BIN_EXE_luma")).parent().unwrap();
    let mut compared = 0;
    // Blocks begin with a command, which a shell expands.
    for block in page.split("```\n$ ").skip(1) {
        let (command, rest) = block.split_once('\n').unwrap();
        if !command.starts_with("luma replay")
            || command.contains("--json")
            || command.contains("bad.csv")
        {
            continue;
        }
        let shown = rest.split("\n```").next().unwrap();
        let shown = shown.split("\n$ ").next().unwrap();
        let output = Command::new("sh")
            .args([
                "-c",
                &format!("PATH=\"$1:$PATH\"; {command} --runs 5"),
                "sh",
            ])
            .arg(folder)
            .current_dir(root())
            .env_remove("LUMA_TRACE")
            .output()
            .unwrap();
        let printed = String::from_utf8(output.stdout).unwrap();
        let lines = |text: &str| text.lines().map(lasting).collect::<Vec<_>>();
        assert_eq!(lines(&printed), lines(shown), "$ {command}");
        compared += 1;
    }
    assert_eq!(compared, 3);
}

/// Commands of a page run one after the other in one folder, from which the examples are in reach.
#[test]
fn plans_on_the_pages_are_what_is_printed() {
    let folder = Path::new(env!("CARGO_BIN_EXE_luma")).parent().unwrap();
    let mut compared = 0;
    for page in ["cli", "planning"] {
        let scratch = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("page_{page}"));
        let _ = fs::remove_dir_all(&scratch);
        fs::create_dir_all(&scratch).unwrap();
        std::os::unix::fs::symlink(root().join("examples"), scratch.join("examples")).unwrap();
        let text = fs::read_to_string(root().join(format!("docs/{page}.md"))).unwrap();
        for block in text.split("```\n$ ").skip(1) {
            for entry in block.split("\n```").next().unwrap().split("\n$ ") {
                let (command, shown) = entry.split_once('\n').unwrap_or((entry, ""));
                let ours = [
                    "luma plan",
                    "luma place",
                    "luma check",
                    "luma generate matmul",
                ];
                if !ours.iter().any(|start| command.starts_with(start)) {
                    continue;
                }
                let output = Command::new("sh")
                    .args(["-c", &format!("PATH=\"$1:$PATH\"; {command} 2>&1"), "sh"])
                    .arg(folder)
                    .current_dir(&scratch)
                    .output()
                    .unwrap();
                let printed = String::from_utf8(output.stdout).unwrap();
                let lines = |text: &str| text.lines().map(lasting).collect::<Vec<_>>();
                assert_eq!(lines(printed.trim()), lines(shown.trim()), "$ {command}");
                compared += 1;
            }
        }
    }
    assert!(compared >= 6, "{compared}");
}
