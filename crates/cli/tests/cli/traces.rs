//! The traces that come with luma, and those of others where they are there.

use std::fs;
use std::path::{Path, PathBuf};

use super::{luma, root};

fn traces_in(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path());
    let mut paths: Vec<_> = entries
        .filter(|path| path.extension().is_some_and(|end| end == "csv"))
        .collect();
    paths.sort();
    paths
}

fn shipped() -> Vec<PathBuf> {
    traces_in(&root().join("examples/traces"))
}

#[test]
fn shipped_traces_that_were_generated_come_out_the_same() {
    let mut kinds = Vec::new();
    for path in shipped() {
        let text = fs::read_to_string(&path).unwrap();
        let Some(command) = text
            .lines()
            .next()
            .unwrap()
            .strip_prefix("# made by: luma ")
        else {
            continue;
        };
        let arguments: Vec<&str> = command.split(' ').collect();
        kinds.push(arguments[1].to_string());
        let run = luma(&arguments);
        assert_eq!(run.code, 0, "{command}: {}", run.stderr);
        assert!(
            run.stdout == text,
            "{} is not what its command makes",
            path.display()
        );
    }
    kinds.sort();
    assert_eq!(kinds, ["kv-cache", "serving", "shifting", "training"]);
}

#[test]
fn shipped_traces_are_small() {
    let sizes: Vec<u64> = shipped()
        .iter()
        .map(|path| fs::metadata(path).unwrap().len())
        .collect();
    assert!(sizes.iter().all(|size| *size < 300_000), "{sizes:?}");
    assert!(sizes.iter().sum::<u64>() < 1_200_000, "{sizes:?}");
}

#[test]
fn shipped_traces_complete_on_every_preset() {
    assert_complete(&shipped());
}

#[test]
fn traces_of_others_complete_on_every_preset() {
    let folder = root().join("../shared/data/traces");
    if !folder.is_dir() {
        eprintln!("skipped: {} is not there", folder.display());
        return;
    }
    assert_complete(&traces_in(&folder));
}

fn assert_complete(paths: &[PathBuf]) {
    assert!(paths.len() >= 4, "{paths:?}");
    let mut arguments = vec!["replay", "--json", "--runs", "1", "--preset", "all"];
    arguments.extend(paths.iter().map(|path| path.to_str().unwrap()));
    let run = luma(&arguments);
    assert_eq!(run.code, 0, "{}{}", run.stdout, run.stderr);
    let document = run.json();
    let rows = document["rows"].as_array().unwrap();
    assert_eq!(rows.len(), paths.len() * 3);
    for row in rows {
        let live = row["peak_live_bytes"].as_u64().unwrap();
        let peak = |name: &str| row["result"][name].as_u64().unwrap();
        assert!(live <= peak("peak_allocated_bytes"), "{row}");
        assert!(
            peak("peak_allocated_bytes") <= peak("peak_reserved_bytes"),
            "{row}"
        );
    }
}
