//! `docs/reports.md` and the tests say the same.

use super::support::cc;
use std::collections::BTreeMap;
use std::fs;

/// The tests of this program by their row: what follows `fn r`.
fn tests() -> BTreeMap<u32, String> {
    let mut tests = BTreeMap::new();
    for entry in fs::read_dir(cc::root().join("tests/reports")).unwrap() {
        let text = fs::read_to_string(entry.unwrap().path()).unwrap();
        for pair in text.lines().collect::<Vec<_>>().windows(2) {
            let Some(name) = pair[1]
                .strip_prefix("fn r")
                .filter(|_| pair[0] == "#[test]")
            else {
                continue;
            };
            let name = name.trim_end_matches("() {");
            let row = name.split('_').next().unwrap().parse().unwrap_or_else(|_| {
                panic!("r{name} does not begin with a row");
            });
            assert!(
                tests.insert(row, format!("r{name}")).is_none(),
                "row {row} has two tests"
            );
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
