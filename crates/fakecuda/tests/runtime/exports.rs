//! What the runtime double exports: every name of NVIDIA's library, under its version, and no other.

use crate::program::compiler;
use crate::{support, tools};
use std::fs;
use std::path::Path;
use std::time::Duration;

/// The dynamic names that a library defines, each with its version ("cudaMalloc@@libcudart.so.13").
fn exported(library: &Path) -> Vec<String> {
    let mut nm = tools::command("nm");
    nm.args(["-D", "--defined-only"]).arg(library);
    let output = tools::succeed(&mut nm, Duration::from_secs(60));
    let mut names: Vec<String> = output
        .lines()
        .filter_map(|line| line.split_whitespace().nth(2))
        // The version node is a symbol as well.
        .filter(|name| !name.starts_with("libcudart."))
        .map(str::to_owned)
        .collect();
    names.sort();
    names
}

/// The list that the stubs are made from, as `exported` gives it.
fn listed(major: u32) -> Vec<String> {
    let node = format!("libcudart.so.{major}");
    let list = support::package().join(format!("cudart/names/{node}.txt"));
    let text = fs::read_to_string(list).expect("the list of names is there");
    let mut names: Vec<String> = text.lines().map(|name| format!("{name}@@{node}")).collect();
    names.sort();
    names
}

#[test]
fn names_and_versions() {
    let Some(compiler) = compiler() else {
        return;
    };
    for major in [12, 13] {
        if major == 12 && compiler.headers_of_12().is_none() {
            support::tools::skipped(
                "names_and_versions",
                "no headers of CUDA 12 beside the toolkit",
            );
            continue;
        }
        let ours = exported(&compiler.runtime.join(format!("libcudart.so.{major}")));
        assert_eq!(ours, listed(major));
    }
}

/// The lists are those of the libraries in the toolkit, where it has them.
#[test]
fn lists_are_nvidias() {
    let Some(compiler) = compiler() else {
        return;
    };
    for (major, library) in [
        (12, "../cuda_runtime/lib/libcudart.so.12"),
        (13, "lib/libcudart.so.13"),
    ] {
        let library = compiler.toolkit.join(library);
        if library.is_file() {
            assert_eq!(exported(&library), listed(major));
        } else {
            let why = format!("no {}", library.display());
            support::tools::skipped("lists_are_nvidias", &why);
        }
    }
}
