//! docs/interposition.md says of each pitfall which tests show it, or why none does.
//!
//! A row of its table begins with the pitfall's number. In its last cell are the names of the tests, each in
//! backquotes, or, without any, the reason.

use crate::harness::programs;
use crate::support::{package, skipped};
use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

const PITFALLS: std::ops::RangeInclusive<u32> = 1..=50;

/// The comment over a test that says what it is for.
const MARK: &str = "// pitfall ";

type Tests = BTreeMap<u32, BTreeSet<String>>;

/// All Rust files below a folder.
fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|ending| ending == "rs") {
            found.push(path);
        }
    }
}

/// The tests of a source text that are marked, by pitfall.
fn marked(text: &str, tests: &mut Tests) {
    let mut waiting: Vec<u32> = Vec::new();
    for line in text.lines().map(str::trim_start) {
        if let Some(numbers) = line.strip_prefix(MARK) {
            let numbers = numbers.split(',').map(|number| number.trim().parse());
            waiting.extend(numbers.map(|number: Result<u32, _>| {
                number.unwrap_or_else(|_| panic!("not a list of numbers: {line}"))
            }));
        } else if let Some(rest) = line.strip_prefix("fn ") {
            let name = rest.split(['(', '<']).next().unwrap_or_default();
            for pitfall in waiting.drain(..) {
                tests.entry(pitfall).or_default().insert(name.to_owned());
            }
        }
    }
    assert!(waiting.is_empty(), "a mark without a test: {waiting:?}");
}

/// All marked tests of the workspace.
fn existing() -> Tests {
    let root = package().join("../..");
    let mut files = Vec::new();
    sources(&root.join("tests"), &mut files);
    for entry in fs::read_dir(root.join("crates"))
        .expect("the workspace has packages")
        .flatten()
    {
        sources(&entry.path().join("tests"), &mut files);
    }
    let mut tests = Tests::new();
    for file in files {
        let text = fs::read_to_string(&file).expect("a source file can be read");
        marked(&text, &mut tests);
    }
    tests
}

/// The rows of the page: the tests that each names, and the text of its last cell.
fn rows(page: &str) -> Vec<(u32, BTreeSet<String>, String)> {
    let mut rows = Vec::new();
    for line in page.lines() {
        let Some(cells) = line
            .strip_prefix('|')
            .and_then(|line| line.trim_end().strip_suffix('|'))
        else {
            continue;
        };
        let mut cells = cells.split('|');
        let number = cells.next().and_then(|cell| cell.trim().parse().ok());
        if let (Some(number), Some(last)) = (number, cells.next_back()) {
            let names = last.split('`').skip(1).step_by(2).map(str::to_owned);
            rows.push((number, names.collect(), last.trim().to_owned()));
        }
    }
    rows
}

/// What is wrong with the page, one line each.
fn complaints(page: &str, tests: &Tests) -> Vec<String> {
    let rows = rows(page);
    let mut complaints = Vec::new();
    for pitfall in PITFALLS {
        let of_it: Vec<_> = rows
            .iter()
            .filter(|(number, ..)| *number == pitfall)
            .collect();
        let [(_, named, text)] = of_it[..] else {
            complaints.push(format!("{pitfall}: {} rows", of_it.len()));
            continue;
        };
        let there = tests.get(&pitfall).cloned().unwrap_or_default();
        if *named != there {
            complaints.push(format!(
                "{pitfall}: the page names {named:?}, there are {there:?}"
            ));
        }
        if text.is_empty() {
            complaints.push(format!("{pitfall}: neither a test nor a reason"));
        }
    }
    for (number, ..) in rows {
        if !PITFALLS.contains(&number) {
            complaints.push(format!("{number}: no such pitfall"));
        }
    }
    complaints
}

#[test]
fn page_names_the_tests() {
    let path = package().join("../../docs/interposition.md");
    // Until it is written there is nothing to compare.
    let Ok(page) = fs::read_to_string(&path) else {
        skipped("no docs/interposition.md");
        return;
    };
    let complaints = complaints(&page, &existing());
    assert!(complaints.is_empty(), "{}", complaints.join("\n"));
}

#[test]
fn every_program_is_run() {
    let mut files = Vec::new();
    sources(&package().join("tests/pitfalls"), &mut files);
    let texts: String = files
        .iter()
        .map(|file| fs::read_to_string(file).expect("a source file can be read"))
        .collect();
    let programs = programs();
    assert!(programs.len() > 40, "{programs:?}");
    let left: Vec<_> = programs
        .iter()
        .filter(|name| !texts.contains(&format!("\"{name}\"")))
        .collect();
    assert!(left.is_empty(), "no test runs {left:?}");
}

#[test]
fn all_marks_can_be_read() {
    let tests = existing();
    assert!(tests.keys().all(|number| PITFALLS.contains(number)));
    // Those of this program.
    for pitfall in 18..=50 {
        assert!(
            tests.contains_key(&pitfall),
            "no test for pitfall {pitfall}"
        );
    }
}

/// A page with each fault, and one without.
#[test]
fn faults_of_a_page_are_found() {
    let mut tests = Tests::new();
    marked(
        &format!("{MARK}1, 2\n#[test]\nfn one() {{\n{MARK}2\nfn two() {{"),
        &mut tests,
    );
    let rest: String = PITFALLS
        .skip(2)
        .map(|number| format!("| {number} | `x` | needs a board |\n"))
        .collect();
    let page = |first: &str| {
        complaints(
            &format!("| # | what | test |\n|---|\n{first}{rest}"),
            &tests,
        )
    };
    assert_eq!(
        page("| 1 | a | `one` |\n| 2 | b | `one`, `two` |\n"),
        [""; 0]
    );
    for (fault, first) in [
        ("1: 0 rows", "| 2 | b | `one`, `two` |\n"),
        (
            "1: 2 rows",
            "| 1 | a | `one` |\n| 1 | a | `one` |\n| 2 | b | `one`, `two` |\n",
        ),
        (
            "1: the page names {}",
            "| 1 | a | why |\n| 2 | b | `one`, `two` |\n",
        ),
        (
            "2: the page names {\"one\"}",
            "| 1 | a | `one` |\n| 2 | b | `one` |\n",
        ),
        (
            "51: no such pitfall",
            "| 1 | a | `one` |\n| 2 | b | `one`, `two` |\n| 51 | c | `one` |\n",
        ),
    ] {
        let found = page(first);
        assert!(
            found.len() == 1 && found[0].starts_with(fault),
            "{fault}: {found:?}"
        );
    }
}
