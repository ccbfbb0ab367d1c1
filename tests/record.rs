//! The programs of `examples/record`, with their calls recorded by `LUMA_TRACE`: what they record is
//! a valid trace, and the one that is shipped.

// Miri cannot start other programs.
#![cfg(not(miri))]

mod support;

use luma::trace::{Event, Op, Reader};
use std::{fs::File, io::BufReader, path::Path};
use support::{
    cc::{self, Build},
    tools::{self, Folder},
};

fn events(path: &Path) -> Vec<Event> {
    let file = File::open(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    Reader::new(BufReader::new(file))
        .collect::<Result<_, _>>()
        .unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// What does not change from one recording to the next.
fn calls(events: &[Event]) -> Vec<(Op, u64, u64)> {
    events
        .iter()
        .map(|event| (event.op, event.id, event.size))
        .collect()
}

/// Compiles the program, runs it recorded, and answers the events of its trace.
fn record(build: Build) -> Vec<Event> {
    let folder = Folder::new("record");
    let trace = folder.path().join("trace.csv");
    build
        .sanitized()
        .compile()
        .env("LUMA_BACKEND", "host")
        .env("LUMA_TRACE", trace.to_str().expect("the path is UTF-8"))
        .run();
    let events = events(&trace);
    assert!(events.is_sorted_by_key(|event| event.time_us));
    let count = |op| events.iter().filter(|event| event.op == op).count();
    assert_eq!(count(Op::Alloc), count(Op::Free));
    assert_eq!(count(Op::AllocFailed), 0);
    events
}

fn c(name: &str) -> Build {
    let source = format!("examples/record/{name}.c");
    // Statically, because that links the mathematics library behind the program.
    Build::c("c99").source(source).statically()
}

fn shipped(name: &str) -> Vec<Event> {
    events(&cc::root().join(format!("examples/traces/recorded_{name}.csv")))
}

#[test]
fn train_mlp() {
    if !tools::available(&["cc"]) {
        return;
    }
    assert!(calls(&record(c("train_mlp"))) == calls(&shipped("train_mlp")));
}

#[test]
fn spanning_tree() {
    if !tools::available(&["c++"]) {
        return;
    }
    let build = Build::cpp("c++17")
        .args(cc::CPP_WARNINGS)
        .source("examples/record/spanning_tree.cpp");
    assert!(calls(&record(build)) == calls(&shipped("spanning_tree")));
}

/// How many iterations it takes hangs on the last digits, and so on machine and compiler. The
/// matrix's assembly, which comes first, does not.
#[test]
fn sparse_cg() {
    if !tools::available(&["cc"]) {
        return;
    }
    let recorded = calls(&record(c("sparse_cg")));
    let shipped = calls(&shipped("sparse_cg"));
    assert_eq!(recorded[..40], shipped[..40]);
    let largest = |calls: &[(Op, u64, u64)]| calls.iter().map(|call| call.2).max();
    assert_eq!(largest(&recorded), largest(&shipped));
}
