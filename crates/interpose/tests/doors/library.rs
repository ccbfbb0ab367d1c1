//! The library as a file.

use crate::support::table::rows;
use crate::support::{Run, library, tools};
use std::collections::BTreeSet;

fn readelf(what: &str) -> Option<String> {
    tools::available(&["readelf"])
        .then(|| Run::new("readelf").arg("-W").arg(what).arg(library()).run())
}

/// What stands in brackets on the lines of the dynamic section that have this tag.
fn entries(section: &str, tag: &str) -> Vec<String> {
    let lines = section.lines().filter(|line| line.contains(tag));
    lines
        .filter_map(|line| Some(line.split_once('[')?.1.split_once(']')?.0.to_owned()))
        .collect()
}

// pitfall 13
#[test]
fn it_needs_the_c_library_alone() {
    let Some(section) = readelf("-d") else {
        return;
    };
    let needed = entries(&section, "(NEEDED)");
    assert!(!needed.is_empty(), "{section}");
    for library in needed {
        let known = [
            "libc.so.",
            "libgcc_s.so.",
            "ld-linux",
            "libdl.so.",
            "libpthread.so.",
        ];
        assert!(
            known.iter().any(|known| library.starts_with(known)),
            "{library}"
        );
    }
    assert_eq!(entries(&section, "(SONAME)"), ["libluma_interpose.so"]);
    assert!(section.contains("NODELETE"), "{section}");
}

// pitfall 5
#[test]
fn it_exports_the_table_and_luma_and_nothing_else() {
    let Some(symbols) = readelf("--dyn-syms") else {
        return;
    };
    let exported: BTreeSet<&str> = symbols
        .lines()
        .map(|line| line.split_whitespace().collect::<Vec<_>>())
        .filter(|words| words.len() == 8 && words[6] != "UND" && words[0] != "Num:")
        .map(|words| words[7])
        .collect();
    let table: BTreeSet<String> = rows().into_iter().map(|row| row.symbol).collect();
    let of_libc = ["dlsym", "dlvsym", "dlopen", "_exit", "_Exit"];
    let missing: Vec<_> = table
        .iter()
        .map(String::as_str)
        .chain(of_libc)
        .chain(["luma_alloc", "luma_free", "luma_stats"])
        .filter(|name| !exported.contains(name))
        .collect();
    assert!(missing.is_empty(), "not exported: {missing:?}");
    let more: Vec<_> = exported
        .iter()
        .filter(|name| !table.contains(**name) && !of_libc.contains(name))
        // plan_spills is luma's as well.
        .filter(|name| !name.starts_with("luma_") && **name != "plan_spills")
        .collect();
    assert!(more.is_empty(), "exported and not in the table: {more:?}");
}
