//! Which module may know which, where `unsafe` may be, and how long a file may get.

#![cfg(not(miri))]

use std::fs;
use std::path::{Path, PathBuf};

/// Each module with those that it may know. What is not listed is refused.
const KNOWS: &[(&str, &[&str])] = &[
    (
        "ffi",
        &[
            "pool", "stream", "trace", "plan", "alloc", "backend", "config", "log", "error",
            "stats", "size", "text",
        ],
    ),
    (
        "pool",
        &[
            "stream", "trace", "alloc", "backend", "config", "log", "error", "stats", "size",
            "text", "flag",
        ],
    ),
    ("stream", &["alloc", "backend"]),
    ("trace", &["error"]),
    ("alloc", &["backend", "error", "size"]),
    (
        "backend",
        &["config", "log", "error", "stats", "size", "text"],
    ),
    ("config", &["log", "error", "stats", "size", "text"]),
    ("log", &["text", "flag"]),
    ("plan", &["error", "text"]),
    ("error", &["text"]),
    ("stats", &[]),
    ("size", &[]),
    ("text", &[]),
    ("flag", &[]),
];
/// Where `unsafe` may be.
const UNSAFE: &[&str] = &["ffi", "backend"];
const FORBID: &str = "#![forbid(unsafe_code)]";
const LONGEST_FILE: usize = 600;

/// A source file: its path below `src`, the module of the crate that it is part of, its text.
struct Source {
    path: PathBuf,
    module: String,
    text: String,
}

impl Source {
    /// Lines of code, numbered, without what follows `//`.
    fn code(&self) -> impl Iterator<Item = (usize, &str)> {
        self.text
            .lines()
            .enumerate()
            .map(|(at, line)| (at + 1, line.split("//").next().unwrap_or_default()))
    }

    fn is_root(&self) -> bool {
        self.module == "lib"
    }
}

fn collect(folder: &Path, root: &Path, sources: &mut Vec<Source>) {
    for entry in fs::read_dir(folder).expect("src can be read") {
        let path = entry.expect("src can be read").path();
        if path.is_dir() {
            collect(&path, root, sources);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let text = fs::read_to_string(&path).expect("a source file can be read");
            let path = path.strip_prefix(root).expect("below src").to_owned();
            let first = path.iter().next().expect("a path has a part");
            let module = Path::new(first).with_extension("");
            let module = module.to_string_lossy().into_owned();
            sources.push(Source { path, module, text });
        }
    }
}

fn sources() -> Vec<Source> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut sources = Vec::new();
    collect(&root, &root, &mut sources);
    sources.sort_by(|one, other| one.path.cmp(&other.path));
    assert!(sources.len() > KNOWS.len(), "src is somewhere else");
    sources
}

/// The words of a line of code.
fn words(line: &str) -> impl Iterator<Item = &str> {
    line.split(|c: char| !c.is_alphanumeric() && c != '_')
}

/// The modules that a line names after `crate::`, in a use or anywhere else.
fn modules_named(line: &str) -> Vec<String> {
    line.match_indices("crate::")
        .flat_map(|(at, found)| {
            let rest = &line[at + found.len()..];
            match rest.strip_prefix('{') {
                // Of each part of a list the first word.
                Some(list) => list
                    .split(',')
                    .filter_map(|part| words(part.trim()).next())
                    .map(str::to_owned)
                    .collect(),
                None => vec![words(rest).next().unwrap_or_default().to_owned()],
            }
        })
        .filter(|word| !word.is_empty())
        .collect()
}

fn none(problems: &[String]) {
    assert!(problems.is_empty(), "\n{}", problems.join("\n"));
}

#[test]
fn no_module_knows_one_above_it() {
    let mut problems = Vec::new();
    for source in sources().iter().filter(|source| !source.is_root()) {
        let module = &source.module;
        let Some((_, known)) = KNOWS.iter().find(|(name, _)| name == module) else {
            problems.push(format!(
                "{}: a module without a layer",
                source.path.display()
            ));
            continue;
        };
        for (line, code) in source.code() {
            for named in modules_named(code) {
                if &named != module && !known.contains(&named.as_str()) {
                    problems.push(format!(
                        "src/{}:{line}: {module} may not know {named}",
                        source.path.display()
                    ));
                }
            }
        }
    }
    none(&problems);
}

#[test]
fn the_layers_have_no_cycle() {
    for (at, (module, known)) in KNOWS.iter().enumerate() {
        for name in *known {
            let below = KNOWS[at + 1..].iter().any(|(other, _)| other == name);
            assert!(below, "{module} knows {name}, which is not below it");
        }
    }
}

#[test]
fn unsafe_code_is_in_ffi_and_backend_only() {
    let mut problems = Vec::new();
    // Below the crate's root every file says so itself; the root itself cannot forbid it.
    for source in sources() {
        let path = source.path.display();
        if UNSAFE.contains(&source.module.as_str()) {
            continue;
        }
        if !source.is_root() && source.text.lines().next() != Some(FORBID) {
            problems.push(format!("src/{path}: does not open with {FORBID}"));
        }
        for (line, code) in source.code() {
            if words(code).any(|word| word == "unsafe") {
                problems.push(format!("src/{path}:{line}: unsafe"));
            }
        }
    }
    none(&problems);
}

#[test]
fn no_file_is_too_long() {
    let long: Vec<_> = sources()
        .iter()
        .map(|source| {
            (
                source.path.display().to_string(),
                source.text.lines().count(),
            )
        })
        .filter(|(_, lines)| *lines > LONGEST_FILE)
        .map(|(path, lines)| format!("src/{path}: {lines} lines, more than {LONGEST_FILE}"))
        .collect();
    none(&long);
}

#[test]
fn names_after_crate_are_found() {
    assert_eq!(modules_named("use crate::pool::Pool;"), ["pool"]);
    assert_eq!(
        modules_named("use crate::{log, pool::Pool};"),
        ["log", "pool"]
    );
    assert_eq!(
        modules_named("crate::log::log(crate::error::E)"),
        ["log", "error"]
    );
    assert_eq!(modules_named("pub(crate) fn f()"), [""; 0]);
}
