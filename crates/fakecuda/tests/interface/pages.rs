//! The page for users and the header say what the code does.

use crate::library::driver;
use crate::support;
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;

fn read(path: &str) -> String {
    let path = support::package().join(path);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path:?}: {error}"))
}

/// The words of a text that begin so, each up to what no name can have.
fn words<'a>(text: &'a str, prefix: &str) -> BTreeSet<&'a str> {
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    text.split(|c: char| !is_name(c))
        .filter(|word| word.starts_with(prefix) && word.len() > prefix.len())
        .collect()
}

#[test]
fn the_page_names_the_variables_that_are_read() {
    let page = read("../../docs/fakecuda.md");
    let rows: String = page
        .lines()
        .filter(|line| line.starts_with("| `FAKECUDA_"))
        .map(|line| line.split('|').nth(1).unwrap_or_default())
        .collect();
    let source = read("src/environment.rs");
    let read: BTreeSet<&str> = source
        .split('"')
        .skip(1)
        .step_by(2)
        .filter(|text| text.starts_with("FAKECUDA_"))
        .collect();
    assert!(read.len() > 10, "{read:?}");
    assert_eq!(words(&rows, "FAKECUDA_"), read);
}

#[test]
fn the_page_and_the_library_have_what_the_header_declares() {
    let header = read("include/fakecuda.h");
    let declared: BTreeSet<&str> = header
        .lines()
        .filter(|line| line.starts_with("static inline") && !line.contains("fakecuda_find_"))
        .filter_map(|line| {
            words(line.split('(').next()?, "fakecuda_")
                .into_iter()
                .next()
        })
        .collect();
    assert!(declared.len() > 10, "{declared:?}");
    let page = read("../../docs/fakecuda.md");
    for function in &declared {
        assert!(
            page.contains(&format!("`{function}")),
            "{function} is not in the page"
        );
        // The header alone answers whether the library is there.
        let alone = *function == "fakecuda_present";
        assert_eq!(driver().address(function).is_null(), alone, "{function}");
    }
    let source = read("src/control.rs");
    let exported: BTreeSet<&str> = source
        .lines()
        .filter(|line| line.contains("extern \"C\" fn fakecuda_"))
        .filter_map(|line| words(line, "fakecuda_").into_iter().next())
        .collect();
    let header_only = BTreeSet::from(["fakecuda_present"]);
    assert_eq!(&exported | &header_only, declared);
}

#[test]
fn the_header_is_c_and_cpp_without_warnings() {
    let header = support::package().join("include/fakecuda.h");
    for (compiler, language, standard) in [("cc", "c", "c99"), ("c++", "c++", "c++11")] {
        if !support::has(compiler) {
            support::tools::skipped(
                "fakecuda.h compiles",
                &format!("{compiler} is not installed"),
            );
            continue;
        }
        support::succeed(
            Command::new(compiler)
                .args(["-fsyntax-only", "-Wall", "-Wextra", "-Wpedantic", "-Werror"])
                .args([&format!("-std={standard}"), "-x", language])
                .arg(&header),
        );
    }
}

/// What the page's commands run: it says how many devices there are and how each of five allocations
/// ended.
const PROGRAM: &str = r#"
#include <cstdio>
int main() {
  int devices = 0;
  if (cudaGetDeviceCount(&devices) != cudaSuccess) return 1;
  std::printf("%d:", devices);
  for (int i = 0; i < 5; i++) {
    void *block;
    std::printf(" %d", (int)cudaMalloc(&block, 1 << 20));
  }
  std::printf("\n");
  return 0;
}
"#;

#[test]
fn the_page_s_commands_work() {
    let test = "the commands of docs/fakecuda.md";
    if support::toolkit().is_none() {
        return support::tools::skipped(test, "no CUDA toolkit (scripts/cuda-toolkit makes one)");
    }
    if !support::has("g++") {
        return support::tools::skipped(test, "no C++ compiler");
    }
    let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join("my_test.cu");
    fs::write(&program, PROGRAM).expect("the program can be written");
    let page = read("../../docs/fakecuda.md");
    let commands = page.split("```").nth(1).expect("the page has commands");
    assert!(commands.contains("my_test.cu"), "{commands}");
    let commands = commands.replace(" my_test.cu", &format!(" '{}'", program.display()));
    // What is built for speed takes long, and would be in the way of the tests' own.
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).join("page");
    let output = support::succeed(
        Command::new("bash")
            .args(["-euc", &format!("trap 'rm -rf \"$FAKE\"' EXIT\n{commands}")])
            .env("CARGO_TARGET_DIR", target)
            .env("CARGO_PROFILE_RELEASE_OPT_LEVEL", "0")
            .env("CARGO_PROFILE_RELEASE_DEBUG", "false")
            .current_dir(support::package().join("../..")),
    );
    let lines: Vec<&str> = output.lines().filter(|line| line.contains(':')).collect();
    assert_eq!(lines, ["2: 0 0 0 0 0", "2: 0 0 0 2 0"], "{output}");
}
