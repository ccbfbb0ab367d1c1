//! The programs in the README compile as they stand, and run.

#![cfg(not(miri))]

mod support;

use support::cc::Build;
use support::tools;

/// The code blocks of one language.
fn blocks(language: &str) -> Vec<&'static str> {
    let readme = include_str!("../README.md");
    let fence = format!("```{language}\n");
    readme
        .split(&fence)
        .skip(1)
        .map(|rest| rest.split("```").next().expect("a block ends"))
        .collect()
}

#[test]
fn the_c_programs_run() {
    if !tools::available(&["cc"]) {
        return;
    }
    let programs = blocks("c");
    assert!(!programs.is_empty());
    for program in programs {
        let output = Build::c("c11").text("readme.c", program).compile().run();
        assert_eq!(output, "1048576 bytes in 1 blocks\n");
    }
}

#[test]
fn the_cpp_programs_run() {
    if !tools::available(&["c++"]) {
        return;
    }
    let programs = blocks("cpp");
    assert!(!programs.is_empty());
    for program in programs {
        let output = Build::cpp("c++17")
            .text("readme.cpp", program)
            .compile()
            .run();
        assert_eq!(output, "8192 bytes\n");
    }
}

/// The two commands at the top are the ones that the gate and the documentation use.
#[test]
fn the_two_commands_are_there() {
    let readme = include_str!("../README.md");
    let main_job = "\ncargo run --release -p luma-cli -- replay examples/traces/*.csv";
    assert!(readme.contains(main_job) && readme.contains("\nscripts/test "));
    assert!(include_str!("../.ci/run").contains("exec scripts/test\n"));
}
