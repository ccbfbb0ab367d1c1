//! Names, versions and symbols.

use crate::library::{driver, find, supports};
use crate::support;
use std::collections::BTreeSet;
use std::fs;
use std::process::Command;

// Also the library's own source.
#[path = "../../src/names.rs"]
#[allow(dead_code)]
mod table;

const LEGACY: u64 = 1;
const PER_THREAD: u64 = 2;

const FOUND: u32 = 0;
const NOT_FOUND: u32 = 1;
const NOT_SUFFICIENT: u32 = 2;

/// The double's version, where nothing else is set.
const NEWEST: i32 = 13050;

#[test]
fn every_function_of_the_headers_is_exported() {
    let missing: Vec<&str> = table::FORMS
        .iter()
        .map(|form| form.symbol)
        .filter(|symbol| driver().address(symbol).is_null() || supports(symbol) < 0)
        .collect();
    assert!(missing.is_empty(), "not exported: {missing:?}");
}

/// The generator refuses headers that have a function of no known version, so nothing of cuda.h can be
/// missing in the table.
#[test]
fn the_table_is_what_the_generator_writes() {
    let test = "the table of names";
    let Some(headers) = support::headers(test) else {
        return;
    };
    if !support::has("python3") {
        return support::tools::skipped(test, "python3 is not installed");
    }
    let generator = support::package().join("names/generate.py");
    let written = support::succeed(Command::new("python3").arg(generator).arg(headers));
    let path = support::package().join("src/names.rs");
    let table = fs::read_to_string(&path).expect("the table is there");
    assert!(
        table == written,
        "src/names.rs is not what names/generate.py writes: run it with the toolkit's include folder"
    );
}

/// What a name means from which version on, as the documentation of each version has it: the bare name
/// of the earliest form, and each later form. Written by hand, other than the table.
const FORMS: &[(&str, &[(i32, &str)])] = &[
    ("cuInit", &[(2000, "cuInit")]),
    (
        "cuMemAlloc",
        &[(2000, "cuMemAlloc"), (3020, "cuMemAlloc_v2")],
    ),
    ("cuMemFree", &[(2000, "cuMemFree"), (3020, "cuMemFree_v2")]),
    (
        "cuMemGetInfo",
        &[(2000, "cuMemGetInfo"), (3020, "cuMemGetInfo_v2")],
    ),
    (
        "cuDeviceTotalMem",
        &[(2000, "cuDeviceTotalMem"), (3020, "cuDeviceTotalMem_v2")],
    ),
    (
        "cuCtxCreate",
        &[
            (2000, "cuCtxCreate"),
            (3020, "cuCtxCreate_v2"),
            (11040, "cuCtxCreate_v3"),
            (12050, "cuCtxCreate_v4"),
        ],
    ),
    (
        "cuCtxDestroy",
        &[(2000, "cuCtxDestroy"), (4000, "cuCtxDestroy_v2")],
    ),
    (
        "cuCtxGetDevice",
        &[(2000, "cuCtxGetDevice"), (13000, "cuCtxGetDevice_v2")],
    ),
    (
        "cuCtxSynchronize",
        &[(2000, "cuCtxSynchronize"), (13000, "cuCtxSynchronize_v2")],
    ),
    (
        "cuDeviceGetUuid",
        &[(9020, "cuDeviceGetUuid"), (11040, "cuDeviceGetUuid_v2")],
    ),
    (
        "cuDevicePrimaryCtxRelease",
        &[
            (7000, "cuDevicePrimaryCtxRelease"),
            (11000, "cuDevicePrimaryCtxRelease_v2"),
        ],
    ),
    (
        "cuEventElapsedTime",
        &[
            (2000, "cuEventElapsedTime"),
            (12080, "cuEventElapsedTime_v2"),
        ],
    ),
    (
        "cuGetProcAddress",
        &[(11030, "cuGetProcAddress"), (12000, "cuGetProcAddress_v2")],
    ),
    (
        "cuGraphInstantiate",
        &[
            (10000, "cuGraphInstantiate"),
            (11000, "cuGraphInstantiate_v2"),
            (12000, "cuGraphInstantiateWithFlags"),
        ],
    ),
    (
        "cuGraphAddNode",
        &[
            (12020, "cuGraphAddNode"),
            (12030, "cuGraphAddNode_v2"),
            (13040, "cuGraphAddNode_v3"),
        ],
    ),
    (
        "cuStreamBeginCapture",
        &[
            (10000, "cuStreamBeginCapture"),
            (10010, "cuStreamBeginCapture_v2"),
        ],
    ),
    (
        "cuStreamGetCaptureInfo",
        &[
            (10010, "cuStreamGetCaptureInfo"),
            (11030, "cuStreamGetCaptureInfo_v2"),
            (12030, "cuStreamGetCaptureInfo_v3"),
        ],
    ),
    (
        "cuMemPrefetchAsync",
        &[
            (8000, "cuMemPrefetchAsync"),
            (12020, "cuMemPrefetchAsync_v2"),
        ],
    ),
    ("cuMemAllocAsync", &[(11020, "cuMemAllocAsync")]),
    ("cuStreamGetId", &[(12000, "cuStreamGetId")]),
    (
        "cuLaunchHostFunc",
        &[(10000, "cuLaunchHostFunc"), (13010, "cuLaunchHostFunc_v2")],
    ),
    (
        "cuTexRefSetAddress2D",
        &[
            (2020, "cuTexRefSetAddress2D"),
            (3020, "cuTexRefSetAddress2D_v2"),
            (4010, "cuTexRefSetAddress2D_v3"),
        ],
    ),
];

/// All versions from 2.0 to the double's own that there can have been.
fn versions() -> impl Iterator<Item = i32> {
    (2000..=NEWEST).step_by(10)
}

#[test]
fn a_name_means_its_newest_form_that_is_not_newer_than_asked_for() {
    for (name, forms) in FORMS {
        for version in versions() {
            let wanted = forms.iter().rev().find(|(first, _)| *first <= version);
            let answer = find(name, version, LEGACY);
            match wanted {
                Some((_, symbol)) => {
                    let address = driver().address(symbol);
                    assert_eq!(
                        answer,
                        (0, address, FOUND),
                        "{name} at {version} is {symbol}"
                    );
                }
                None => {
                    let nothing = (0, std::ptr::null_mut(), NOT_SUFFICIENT);
                    assert_eq!(answer, nothing, "{name} at {version} is not there yet");
                }
            }
            assert_eq!(
                find(name, version, 0),
                answer,
                "{name} at {version}: the default is legacy"
            );
        }
    }
}

/// The forms whose null stream is the thread's own.
const PER_THREAD_FORMS: &[(&str, i32, &str)] = &[
    ("cuMemcpyHtoD", 7000, "cuMemcpyHtoD_v2_ptds"),
    ("cuMemcpyHtoDAsync", 7000, "cuMemcpyHtoDAsync_v2_ptsz"),
    ("cuMemcpy", 7000, "cuMemcpy_ptds"),
    ("cuMemsetD8", 7000, "cuMemsetD8_v2_ptds"),
    ("cuLaunchKernel", 7000, "cuLaunchKernel_ptsz"),
    ("cuEventRecord", 7000, "cuEventRecord_ptsz"),
    ("cuMemAllocAsync", 11020, "cuMemAllocAsync_ptsz"),
    (
        "cuStreamGetCaptureInfo",
        10010,
        "cuStreamGetCaptureInfo_ptsz",
    ),
    (
        "cuStreamGetCaptureInfo",
        12030,
        "cuStreamGetCaptureInfo_v3_ptsz",
    ),
    ("cuLaunchHostFunc", 13010, "cuLaunchHostFunc_v2_ptsz"),
];

#[test]
fn per_thread_forms_are_found_where_they_are_asked_for() {
    for (name, version, symbol) in PER_THREAD_FORMS {
        let own = find(name, *version, PER_THREAD);
        assert_eq!(own, (0, driver().address(symbol), FOUND), "{name}");
        assert_ne!(find(name, *version, LEGACY).1, own.1, "{name}");
    }
    // Before there were any, and for functions that take no stream, the one form serves.
    assert_eq!(
        find("cuMemcpyHtoD", 6050, PER_THREAD),
        find("cuMemcpyHtoD", 6050, LEGACY)
    );
    assert_eq!(
        find("cuMemAlloc", NEWEST, PER_THREAD),
        find("cuMemAlloc", NEWEST, LEGACY)
    );
}

#[test]
fn what_is_no_name_is_not_found() {
    for name in [
        "",
        "cuNoSuchFunction",
        "cuMemAlloc_v2",
        "cuMemcpy_ptds",
        "malloc",
    ] {
        let nothing = (0, std::ptr::null_mut(), NOT_FOUND);
        assert_eq!(find(name, NEWEST, LEGACY), nothing, "{name}");
    }
}

#[test]
fn a_version_above_the_driver_s_is_refused() {
    const INVALID_VALUE: u32 = 1;
    assert_eq!(find("cuInit", NEWEST + 10, LEGACY).0, INVALID_VALUE);
    assert_eq!(find("cuInit", NEWEST, 4).0, INVALID_VALUE);
}

#[test]
#[ignore = "run by an_older_driver_lacks_newer_names, with the variables that it needs"]
fn in_an_older_driver() {
    // The name came with 12.0, after this driver's 11.2.
    assert_eq!(find("cuStreamGetId", 11020, LEGACY).2, NOT_FOUND);
    assert_eq!(find("cuMemAllocAsync", 11020, LEGACY).2, FOUND);
    assert_eq!(find("cuMemAllocAsync", 11010, LEGACY).2, NOT_SUFFICIENT);
    assert_eq!(
        find("cuCtxCreate", 11020, LEGACY).1,
        driver().address("cuCtxCreate_v2")
    );
    assert_eq!(find("cuInit", 11030, LEGACY).0, 1);
    // Named in FAKECUDA_MISSING.
    assert_eq!(find("cuMemFreeAsync", 11020, LEGACY).2, NOT_FOUND);
}

#[test]
fn an_older_driver_lacks_newer_names() {
    let test = std::env::current_exe().expect("a test knows its own path");
    let output = support::succeed(
        Command::new(test)
            .args(["names::in_an_older_driver", "--exact", "--ignored"])
            .env("FAKECUDA_VERSION", "11020")
            .env("FAKECUDA_MISSING", "cuMemFreeAsync"),
    );
    assert!(output.contains("1 passed"), "{output}");
}

/// The list of what is exported and not supported is what users are shown.
#[test]
fn the_list_of_what_is_not_supported_is_right() {
    let symbols: BTreeSet<&str> = table::FORMS.iter().map(|form| form.symbol).collect();
    let stubs = symbols.into_iter().filter(|symbol| supports(symbol) == 0);
    let stubs: BTreeSet<&str> = stubs.collect();
    let path = support::package().join("names/unsupported.txt");
    if std::env::var_os("UPDATE_LISTS").is_some() {
        let list: String = stubs.iter().map(|symbol| format!("{symbol}\n")).collect();
        fs::write(&path, list).expect("the list can be written");
    }
    let shown = fs::read_to_string(&path).expect("the list is there");
    let shown: BTreeSet<&str> = shown.lines().collect();
    assert!(
        shown == stubs,
        "names/unsupported.txt is not up to date (run this test with UPDATE_LISTS=1): too many {:?}, too few {:?}",
        &shown - &stubs,
        &stubs - &shown
    );
}
