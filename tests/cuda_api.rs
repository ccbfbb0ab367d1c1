//! The C interface over CUDA: the programs of `c_tests/cuda`, on the driver double, and on machines whose
//! driver is missing, old, empty or broken.

// Miri cannot start other programs.
#![cfg(not(miri))]

mod support;

use std::{collections::BTreeSet, fs};
use support::{
    cc::{self, Build, Program},
    double,
    tools::{self, Folder},
};

/// How the double is to behave: as it does by itself; strict, and late in several orders; as an old one.
const MODES: &[&[(&str, &str)]] = &[
    &[],
    &[("FAKECUDA_STRICT", "1"), ("FAKECUDA_EXEC", "lazy")],
    &[
        ("FAKECUDA_STRICT", "1"),
        ("FAKECUDA_EXEC", "lazy"),
        ("FAKECUDA_SEED", "7"),
        ("LUMA_DEBUG", "1"),
    ],
    &[("FAKECUDA_NO_VMM", "1"), ("FAKECUDA_NO_POOLS", "1")],
];

fn build(name: &str) -> Build {
    Build::c("c11")
        .args(["-Wstrict-prototypes", "-Wmissing-prototypes"])
        .source(format!("c_tests/cuda/{name}.c"))
        .args([format!(
            "-I{}/crates/fakecuda/include",
            cc::root().display()
        )])
        .args(["-ldl"])
}

fn on_double(program: Program) -> Program {
    let folder = double::folder().to_str().expect("a path in UTF-8");
    program
        .env("LD_LIBRARY_PATH", folder)
        .env("FAKECUDA_MEM", "256M")
}

fn set(program: Program, variables: &[(&str, &str)]) -> Program {
    variables
        .iter()
        .fold(program, |program, (name, value)| program.env(name, value))
}

macro_rules! programs {
    ($($name:ident)*) => {
        const PROGRAMS: &[&str] = &[$(stringify!($name)),*];

        $(#[test]
        fn $name() {
            if !tools::available(&["cc"]) {
                return;
            }
            for devices in ["1", "3"] {
                for mode in MODES {
                    let program = set(on_double(build(stringify!($name)).compile()), mode);
                    program.env("FAKECUDA_DEVICES", devices).run();
                }
                // Every call then ends with the full check. What a child has of threads that only
                // its parent has is no leak of its own.
                let leaks = if stringify!($name) == "fork" { "0" } else { "1" };
                let checked = on_double(build(stringify!($name)).sanitized().compile());
                checked
                    .env("ASAN_OPTIONS", &format!("detect_leaks={leaks}"))
                    .env("FAKECUDA_DEVICES", devices)
                    .env("LUMA_DEBUG", "1")
                    .run();
            }
        })*
    };
}

programs! {
    capture
    contexts
    default_pools
    exit
    failing
    first_device
    fork
    kinds
    ladder
    queued
    reset
    single
    stream_reports
    stream_stress
    streams
    torch
}

/// Programs that a test of its own runs, and the driver that they are run on.
const RUN_BY_HAND: &[&str] = &["choice", "fork_busy", "old_driver"];

#[test]
fn every_program_is_run() {
    let found: BTreeSet<String> = fs::read_dir(cc::root().join("c_tests/cuda"))
        .expect("the folder is there")
        .map(|entry| entry.expect("the folder can be read").path())
        .filter(|path| path.extension().is_some_and(|ending| ending == "c"))
        .map(|path| path.file_stem().unwrap().to_string_lossy().into_owned())
        .collect();
    let run: BTreeSet<String> = PROGRAMS
        .iter()
        .chain(RUN_BY_HAND)
        .map(|&name| name.to_owned())
        .collect();
    assert_eq!(found, run);
}

/// The default pool's choice under these variables is the expected one.
fn chooses(expected: &str, program: Program, variables: &[(&str, &str)]) {
    set(program, variables).arg(expected).run();
}

#[test]
fn the_choice_of_the_backend() {
    if !tools::available(&["cc"]) {
        return;
    }
    let there = || on_double(build("choice").compile());
    let cuda = ("LUMA_BACKEND", "cuda");
    chooses("cuda", there(), &[]);
    chooses("cuda", there(), &[cuda]);
    chooses("host", there(), &[("LUMA_BACKEND", "host")]);

    // A driver that counts no device.
    let none = ("FAKECUDA_DEVICES", "0");
    chooses("host", there(), &[none]);
    chooses("counts no device", there(), &[none, cuda]);

    // One that is there and fails.
    let broken = ("FAKECUDA_INIT", "999");
    for backend in [("LUMA_BACKEND", "auto"), cuda] {
        for part in ["cuInit: CUDA_ERROR_UNKNOWN (999)", "LUMA_BACKEND=host"] {
            chooses(part, there(), &[broken, backend]);
        }
    }
    let failing = ("FAKECUDA_FAIL", "cuDeviceGetCount:0:46");
    chooses("CUDA_ERROR_DEVICE_UNAVAILABLE (46)", there(), &[failing]);
    chooses("host", there(), &[broken, ("LUMA_BACKEND", "host")]);

    // A code that nobody knows yet.
    chooses("cuInit: error 4321", there(), &[("FAKECUDA_INIT", "4321")]);

    // No driver at all: an empty folder has none, and the machine's own is not looked for there.
    if on_a_machine_without_a_driver() {
        let absent = || build("choice").compile();
        chooses("host", absent(), &[]);
        chooses("libcuda.so.1 was not found", absent(), &[cuda]);
    }
}

/// Whether this machine has no CUDA driver of its own.
fn on_a_machine_without_a_driver() -> bool {
    // SAFETY: the driver's initialisers run, as in any program that is linked to it.
    let found = unsafe { libloading::Library::new("libcuda.so.1") };
    if found.is_ok() {
        eprintln!("SKIPPED: a machine without a driver: this one has one");
    }
    found.is_err()
}

/// A driver that lacks functions: what needs them says so, and everything else works.
#[test]
fn old_drivers() {
    if !tools::available(&["cc"]) {
        return;
    }
    let real = double::library().to_str().expect("a path in UTF-8");
    let on_old = |program: &str, without: &[&str]| {
        let folder = Folder::new("old_driver");
        let library = folder.path().join("libcuda.so.1");
        let mut compile = tools::command("cc");
        compile
            .args(["-shared", "-fPIC", "-Wall", "-Wextra", "-Werror"])
            .args(["-Wl,-soname,libcuda.so.1"])
            .args(without.iter().map(|part| format!("-D{part}")))
            .arg(cc::root().join("c_tests/cuda/old_driver.c"))
            .arg("-o")
            .arg(&library)
            .arg("-ldl");
        tools::succeed(&mut compile, tools::BUILD_TIME);
        let path = folder.path().to_str().expect("a path in UTF-8").to_owned();
        let program = build(program)
            .compile()
            .env("LD_LIBRARY_PATH", &path)
            .env("OLD_DRIVER_OF", real);
        (program, folder)
    };
    // Without virtual memory, memory pools, numbers of contexts, texts for codes.
    let (program, _folder) = on_old("choice", &[]);
    chooses("cuda", program, &[]);
    // Without knowing what the device has.
    let (program, _folder) = on_old("choice", &["WITHOUT_MEMORY_INFO"]);
    chooses("cuda", program, &[]);
    // Without the means to leave the caller's context alone there is no CUDA memory to be had.
    let (program, _folder) = on_old("choice", &["WITHOUT_CONTEXTS"]);
    chooses("the CUDA driver lacks cuCtxPushCurrent_v2", program, &[]);
    let (program, _folder) = on_old("choice", &["WITHOUT_INIT", "WITH_ERROR_TEXTS"]);
    chooses("the CUDA driver lacks cuInit", program, &[]);
    // The real one forks to load its kernel module.
    let (program, _folder) = on_old("choice", &["FORKS"]);
    chooses("cuda", program, &[]);
    // Its codes have no names.
    let (program, _folder) = on_old("choice", &[]);
    chooses("cuInit: error 999", program, &[("FAKECUDA_INIT", "999")]);
}

/// Host memory takes streams, too, whatever they are; no driver is asked.
#[test]
fn streams_of_host_memory() {
    if !tools::available(&["cc"]) {
        return;
    }
    for program in [build("streams"), build("streams").sanitized()] {
        program
            .compile()
            .env("LUMA_BACKEND", "host")
            .arg("host")
            .run();
    }
}

/// Late queues in an order of the seed, on devices of which the host cannot touch the memory.
const LATE: [(&str, &str); 2] = [("FAKECUDA_STRICT", "1"), ("FAKECUDA_EXEC", "lazy")];

/// The program that makes up operations, with this seed for both its choices and the driver's.
fn stress(seed: u32, streams: u32, threads: u32, operations: u32) -> Program {
    let program = on_double(build("stream_stress").compile())
        .env("FAKECUDA_SEED", &seed.to_string())
        .env("FAKECUDA_DEVICES", if seed % 3 == 0 { "1" } else { "2" });
    [seed, streams, threads, 2, operations]
        .iter()
        .fold(program, |program, number| program.arg(number.to_string()))
}

/// Whatever the order, no block changes under its owner, and nothing is lost.
#[test]
fn streams_threads_and_devices() {
    if !tools::available(&["cc"]) {
        return;
    }
    for seed in 1..=8 {
        let program = stress(seed, 1 + seed * 5 % 12, 1 + seed % 6, 600);
        let late = if seed % 4 == 3 { &[][..] } else { &LATE };
        let pages: &[_] = if seed % 2 == 0 {
            &[("FAKECUDA_NO_VMM", "1")]
        } else {
            &[]
        };
        set(set(program, late), pages).run();
    }
}

/// The same, with calls of the driver that fail: each call that luma makes has its turn.
#[test]
fn streams_of_a_driver_that_fails() {
    if !tools::available(&["cc"]) {
        return;
    }
    for after in 0..12 {
        let program = stress(100 + after, 5, 3, 300).env("FAILS", &after.to_string());
        set(program, &LATE).run();
    }
}

/// A driver that announces memory for network adapters, and then refuses the access to it.
#[test]
fn memory_for_network_adapters_is_refused() {
    if !tools::available(&["cc"]) {
        return;
    }
    let refusal = ("FAKECUDA_FAIL", "cuMemSetAccess:0:999:1");
    for program in ["first_device", "contexts"] {
        set(on_double(build(program).compile()), &[refusal]).run();
    }
}

/// A fork in the midst of a call of the driver, whichever it is.
#[test]
fn forks_during_calls() {
    if !tools::available(&["cc"]) {
        return;
    }
    let slow: &[&[(&str, &str)]] = &[
        &[("FAKECUDA_LATENCY", "cuMemCreate:300000000")],
        &[("FAKECUDA_LATENCY", "cuMemAddressReserve:3000000000")],
        &[("FAKECUDA_LATENCY", "cuMemUnmap:300000000")],
        &[
            ("FAKECUDA_LATENCY", "cuMemAlloc_v2:3000000000"),
            ("FAKECUDA_NO_VMM", "1"),
        ],
    ];
    for variables in slow {
        set(on_double(build("fork_busy").compile()), variables).run();
    }
}
