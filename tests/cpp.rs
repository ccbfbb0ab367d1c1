//! `include/luma.hpp` and the examples: compiled under strict warnings and sanitizers, and run.

// Miri cannot start other programs.
#![cfg(not(miri))]

mod support;

use std::{collections::BTreeSet, fs, path::PathBuf};
use support::{
    cc::{self, Build, Program},
    tools,
};

fn cpp(standard: &str) -> Build {
    Build::cpp(standard).args(cc::CPP_WARNINGS)
}

/// The tests are about the header, so they want a backend that every machine has.
fn on_host(program: Program) -> Program {
    program.env("LUMA_BACKEND", "host")
}

macro_rules! programs {
    ($($name:ident)*) => {
        const PROGRAMS: &[&str] = &[$(stringify!($name)),*];

        $(#[test]
        fn $name() {
            if !tools::available(&["c++"]) {
                return;
            }
            let source = concat!("c_tests/", stringify!($name), ".cpp");
            let sanitized = on_host(cpp("c++17").source(source).sanitized().compile());
            sanitized.run();
            // Every call then ends with the full check, and freed memory is overwritten.
            sanitized.env("LUMA_DEBUG", "1").run();
            on_host(cpp("c++20").source(source).args(["-O2"]).compile()).run();
        })*
    };
}

programs! {
    cpp_allocator
    cpp_allocator_refused
    cpp_caching_allocator
    cpp_errors
    cpp_exit
    cpp_memory_resource
    cpp_pool
    cpp_unique_ptr
}

#[test]
fn every_cpp_program_is_run() {
    let found: BTreeSet<String> = sources("c_tests", "cpp")
        .iter()
        .map(|path| {
            path.file_stem()
                .expect("a source has a name")
                .to_string_lossy()
                .into_owned()
        })
        .filter(|name| name.starts_with("cpp_"))
        .collect();
    let run: BTreeSet<String> = PROGRAMS.iter().map(|&name| name.to_owned()).collect();
    assert_eq!(found, run);
}

/// The header alone in a file, and in two files of one program: nothing is missing from it, and
/// nothing in it is defined twice.
#[test]
fn the_header_stands_alone_and_twice_in_one_program() {
    if !tools::available(&["c++"]) {
        return;
    }
    let first = "#include \"luma.hpp\"\n\
                 void *other(luma::pool_ref);\n\
                 int main() {\n\
                 \x20   luma::pool pool;\n\
                 \x20   pool.free(other(pool));\n\
                 }\n";
    let second = "#include \"luma.hpp\"\n\
                  #include \"luma.hpp\"\n\
                  void *other(luma::pool_ref);\n\
                  void *other(luma::pool_ref pool) { return luma::make_unique<int>(pool, 10).release(); }\n";
    for standard in ["c++17", "c++20", "c++23"] {
        let build = cpp(standard)
            .text("first.cpp", first)
            .text("second.cpp", second);
        on_host(build.compile()).run();
    }
}

/// Mistakes that the types rule out: each line compiles only without its last statement.
#[test]
fn misuse_does_not_compile() {
    if !tools::available(&["c++"]) {
        return;
    }
    let cases = [
        ("a copied pool", "luma::pool a; ", "luma::pool b(a);"),
        (
            "a handle of a temporary pool",
            "luma::pool a; luma::pool_ref r = a; ",
            "r = luma::pool();",
        ),
        (
            "an allocator of a temporary pool",
            "",
            "luma::pool_allocator<int> a{luma::pool()};",
        ),
        ("a copied block", "luma::unique_ptr<int> a; ", "auto b = a;"),
        (
            "a block read on the host",
            "luma::unique_ptr<int> a; ",
            "*a = 1;",
        ),
        (
            "a block indexed on the host",
            "luma::unique_ptr<int[]> a; ",
            "a[0] = 1;",
        ),
        (
            "elements that need a destructor",
            "",
            "luma::unique_ptr<std::string> a;",
        ),
        (
            "a copied CachingAllocator",
            "luma::CachingAllocator a; ",
            "luma::CachingAllocator b(a);",
        ),
    ];
    for (what, good, bad) in cases {
        let text = |body: String| format!("#include \"luma.hpp\"\nint main() {{ {body} }}\n");
        let compile = |body: String| {
            cpp("c++17")
                .args(["-Wno-unused"])
                .text("misuse.cpp", &text(body))
                .check()
        };
        let control = compile(good.to_owned());
        assert!(
            control.status.success(),
            "without {what}:\n{}",
            control.stderr
        );
        assert!(
            !compile(format!("{good}{bad}")).status.success(),
            "{what} compiled"
        );
    }
}

#[test]
fn c_examples() {
    if !tools::available(&["cc"]) {
        return;
    }
    for source in sources("examples/c", "c") {
        // The c99 of the oldest compilers in use, and the newest that C++ shares.
        for standard in ["c99", "c17"] {
            show(Build::c(standard).source(&source).sanitized().compile());
        }
    }
}

#[test]
fn cpp_examples() {
    if !tools::available(&["c++"]) {
        return;
    }
    for source in sources("examples/cpp", "cpp") {
        show(cpp("c++17").source(&source).sanitized().compile());
    }
}

/// An example is there to be read, so it has to say something. Examples choose their own backend.
fn show(example: Program) {
    let output = example.run();
    assert!(
        output.lines().count() >= 2,
        "the example prints too little:\n{output}"
    );
}

/// The files with this ending in a folder of the package, in order.
fn sources(folder: &str, ending: &str) -> Vec<PathBuf> {
    let mut paths: Vec<PathBuf> = fs::read_dir(cc::root().join(folder))
        .expect("the folder is there")
        .map(|entry| entry.expect("the folder can be read").path())
        .filter(|path| path.extension().is_some_and(|found| found == ending))
        .collect();
    paths.sort();
    assert!(!paths.is_empty(), "{folder} holds no .{ending} files");
    paths
}
