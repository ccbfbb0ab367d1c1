//! The public header, the list of exported names and the options' page are what the source says.

// Miri cannot start other programs.
#![cfg(not(miri))]

mod support;

use std::path::Path;
use support::golden::compare_or_bless;
use support::{cc, tools};

#[test]
fn the_header_is_what_the_source_says() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut generated = Vec::new();
    cbindgen::Builder::new()
        .with_config(cbindgen::Config::from_file(root.join("cbindgen.toml")).unwrap())
        .with_src(root.join("src/ffi/types.rs"))
        .with_src(root.join("src/ffi/messages.rs"))
        .with_src(root.join("src/ffi/default_pool.rs"))
        .with_src(root.join("src/ffi/streams.rs"))
        .with_src(root.join("src/ffi/torch.rs"))
        .with_src(root.join("src/ffi/pools.rs"))
        .with_src(root.join("src/ffi/oom_handlers.rs"))
        .with_src(root.join("src/ffi/oom_report.rs"))
        .with_src(root.join("src/ffi/plan/types.rs"))
        .with_src(root.join("src/ffi/plan/planning.rs"))
        .with_src(root.join("src/ffi/plan/check.rs"))
        .with_src(root.join("src/ffi/plan/place.rs"))
        .generate()
        .expect("the sources can be read")
        .write(&mut generated);
    // Rust's heading for a contract about pointers, in C's words.
    let header = String::from_utf8(generated)
        .unwrap()
        .replace("# Safety", "Pointers:");
    compare_or_bless("include/luma.h", &header);
}

#[test]
fn the_version_is_the_same_everywhere() {
    let version = env!("CARGO_PKG_VERSION");
    let header = std::fs::read_to_string(cc::root().join("include/luma.h")).unwrap();
    for (name, value) in ["MAJOR", "MINOR", "PATCH"].iter().zip(version.split('.')) {
        let line = format!("#define LUMA_VERSION_{name} {value}\n");
        assert!(header.contains(&line), "include/luma.h lacks {line}");
    }
    // SAFETY: the function gives a string that ends in NUL and is never freed.
    let told = unsafe { std::ffi::CStr::from_ptr(luma::ffi::luma_version()) };
    assert_eq!(told.to_str(), Ok(version));
}

#[test]
fn the_exported_symbols_are_those_listed() {
    if !tools::available(&["nm"]) {
        return;
    }
    let library = cc::built("libluma.so");
    let output = tools::succeed(
        tools::command("nm")
            .args(["-D", "--defined-only", "--format=posix"])
            .arg(library),
        tools::BUILD_TIME,
    );
    let mut symbols: Vec<_> = output
        .lines()
        .filter_map(|line| line.split(' ').next())
        .collect();
    symbols.sort_unstable();
    compare_or_bless("abi/symbols.txt", &(symbols.join("\n") + "\n"));
}

#[test]
fn the_options_page_is_what_the_table_says() {
    let page = std::fs::read_to_string(cc::root().join("docs/configuration.md")).unwrap();
    let (begin, end) = ("<!-- options: begin -->\n", "<!-- options: end -->\n");
    let (before, rest) = page
        .split_once(begin)
        .expect("the page marks where the table begins");
    let (_, after) = rest
        .split_once(end)
        .expect("the page marks where the table ends");
    let expected = format!(
        "{before}{begin}{}{end}{after}",
        luma::config::options_table()
    );
    compare_or_bless("docs/configuration.md", &expected);
}
