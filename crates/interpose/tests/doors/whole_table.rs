//! Every line of the table, against the driver and against its header.

use crate::support::table::rows;
use crate::support::{Run, compiled, linked_with_driver, shared, toolkit, tools};
use std::collections::BTreeSet;
use std::fmt::Write;
use std::fs;

/// A program that is linked with the driver, under the library and `behind.c`.
fn beside_driver(source: &str) -> Run {
    let flags = linked_with_driver();
    let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
    Run::new(compiled(source, &flags))
        .with_driver()
        .hooked()
        .preload(shared("behind.c", &[]))
}

fn symbols() -> impl Iterator<Item = String> {
    rows().into_iter().map(|row| row.symbol)
}

// pitfall 7
// pitfall 9
#[test]
fn hooked_is_what_the_driver_gives_at_each_version() {
    if !tools::available(&["cc"]) {
        return;
    }
    let names: BTreeSet<String> = rows().into_iter().flat_map(|row| row.names).collect();
    let run = symbols().fold(beside_driver("table.c"), Run::arg).arg("--");
    let compared = names.into_iter().fold(run, Run::arg).run();
    let compared: u32 = compared.trim().parse().expect("a number");
    assert!(compared > 50_000, "only {compared} answers were hooked");
}

// pitfall 17
#[test]
fn null_arguments_are_the_drivers_to_refuse() {
    if tools::available(&["cc"]) {
        let run = symbols().fold(beside_driver("arguments.c"), Run::arg);
        assert_eq!(run.run(), "");
    }
}

/// Bytes of a type of the table.
fn bytes(of: &str) -> &'static str {
    match of {
        pointer if pointer.starts_with('*') => "8",
        "Address" | "Handle" | "usize" | "u64" => "8",
        "Device" | "c_int" | "c_uint" => "4",
        other => panic!("the table has a type that is not known here: {other}"),
    }
}

// pitfall 7
#[test]
fn arguments_are_those_of_the_header() {
    if !tools::available(&["c++"]) {
        return;
    }
    let Some(toolkit) = toolkit() else {
        return;
    };
    let folder = tools::Folder::new("signatures");
    let mut list = String::new();
    let mut expected = String::new();
    for row in rows() {
        writeln!(list, "SHOW({});", row.symbol).expect("a string can be written to");
        let types: String = row
            .types
            .iter()
            .map(|of| format!(" {}", bytes(of)))
            .collect();
        writeln!(expected, "{}{types}", row.symbol).expect("a string can be written to");
    }
    fs::write(folder.path().join("list.inc"), list).expect("a source file can be written");
    let program = folder.path().join("signatures");
    let source = crate::support::package().join("tests/programs/signatures.cpp");
    let driver = crate::support::driver_folder();
    let mut compile = tools::command("c++");
    compile
        .args([
            "-std=c++17",
            "-Wall",
            "-Wextra",
            "-Werror",
            "-Wno-deprecated-declarations",
        ])
        .arg("-isystem")
        .arg(toolkit.join("include"))
        .arg("-I")
        .arg(folder.path())
        .arg(source)
        .arg("-o")
        .arg(&program)
        .arg("-L")
        .arg(driver)
        .arg("-lcuda");
    tools::succeed(&mut compile, tools::BUILD_TIME);
    assert_eq!(Run::new(&program).with_driver().run(), expected);
}
