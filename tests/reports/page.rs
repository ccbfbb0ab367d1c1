//! `docs/reports.md` and the tests say the same.

use super::support::cc;
use std::collections::BTreeMap;
use std::fs;

/// The row of a test's name.
fn row_of(name: &str) -> u32 {
    name.trim_start_matches('r')
        .split('_')
        .next()
        .unwrap()
        .parse()
        .unwrap_or_else(|_| panic!("{name} does not begin with a row"))
}

/// The tests by their row: those of this program, and the functions of the C program that asks the same of
/// streams.
fn tests() -> BTreeMap<u32, String> {
    let mut tests = BTreeMap::new();
    let mut add = |name: &str| {
        let row = row_of(name);
        assert!(
            tests.insert(row, name.to_owned()).is_none(),
            "row {row} has two tests"
        );
    };
    let streams = fs::read_to_string(cc::root().join("c_tests/cuda/stream_reports.c")).unwrap();
    for line in streams.lines() {
        // The compiler sees to it that each is called.
        if let Some(name) = line.strip_prefix("static void ").filter(|name| {
            name.starts_with('r') && name[1..].starts_with(|c: char| c.is_ascii_digit())
        }) {
            add(name.trim_end_matches("(void) {"));
        }
    }
    for entry in fs::read_dir(cc::root().join("tests/reports")).unwrap() {
        let text = fs::read_to_string(entry.unwrap().path()).unwrap();
        for pair in text.lines().collect::<Vec<_>>().windows(2) {
            let Some(name) = pair[1]
                .strip_prefix("fn r")
                .filter(|_| pair[0] == "#[test]")
            else {
                continue;
            };
            add(&format!("r{}", name.trim_end_matches("() {")));
        }
    }
    tests
}

/// The rows of the page: number, and what is said of its test.
fn rows() -> BTreeMap<u32, String> {
    let page = fs::read_to_string(cc::root().join("docs/reports.md")).unwrap();
    let mut rows = BTreeMap::new();
    for line in page.lines() {
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        if let [_, number, failure, answer, _] = cells[..] {
            if let Ok(number) = number.parse() {
                assert!(!failure.is_empty() && !answer.is_empty(), "row {number}");
                let twice = rows.insert(number, answer.to_owned()).is_some();
                assert!(!twice, "row {number} is there twice");
            }
        }
    }
    rows
}

/// Every test is named in its row, and every name in a row is a test.
#[test]
fn the_page_names_every_test() {
    let (tests, rows) = (tests(), rows());
    assert!(tests.len() > 30 && rows.len() > tests.len());
    for (row, test) in &tests {
        let answer = rows
            .get(row)
            .unwrap_or_else(|| panic!("docs/reports.md lacks row {row}"));
        assert!(
            answer.starts_with(&format!("`{test}`")),
            "row {row} of docs/reports.md does not name {test}: {answer}"
        );
    }
    for (row, answer) in &rows {
        let named = answer.starts_with("`r");
        assert_eq!(named, tests.contains_key(row), "row {row}: {answer}");
    }
}
