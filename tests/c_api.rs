//! The C interface: programs in C, compiled under strict warnings as every standard that the header
//! promises, with sanitizers, and run.

// Miri cannot start other programs.
#![cfg(not(miri))]

mod support;

use luma::trace::{Op, Reader};
use std::{collections::BTreeSet, fs, io::BufReader};
use support::{
    cc::{self, Build, Program},
    tools::{self, Folder},
};

/// What headers and functions of C programs must be clean under as well.
const C_WARNINGS: &[&str] = &["-Wstrict-prototypes", "-Wmissing-prototypes"];

fn c(standard: &str) -> Build {
    Build::c(standard).args(C_WARNINGS)
}

fn source(name: &str) -> String {
    format!("c_tests/{name}.c")
}

/// The tests are about the interface, so they want a backend that every machine has.
fn on_host(build: Build) -> Program {
    build.compile().env("LUMA_BACKEND", "host")
}

/// The program in every language that it is written in.
fn variants(name: &str) -> [Program; 4] {
    [
        on_host(c("c99").source(source(name))),
        on_host(c("c11").source(source(name)).args(["-O2"])),
        on_host(c("c17").source(source(name)).sanitized()),
        on_host(Build::cpp("c++17").source(source(name)).sanitized()),
    ]
}

fn sanitized(name: &str) -> Program {
    on_host(c("c99").source(source(name)).sanitized())
}

fn tools_are_there() -> bool {
    tools::available(&["cc", "c++"])
}

/// Programs that a test of its own runs, since they want arguments, variables or another build.
const RUN_BY_HAND: &[&str] = &[
    "checked",
    "dlopen",
    "env",
    "exit",
    "first_use",
    "fork",
    "fork_slow",
    "header",
    "init",
    "traced_end",
];

macro_rules! programs {
    ($($name:ident)*) => {
        const PROGRAMS: &[&str] = &[$(stringify!($name)),*];

        $(#[test]
        fn $name() {
            if tools_are_there() {
                for program in variants(stringify!($name)) {
                    program.run();
                }
                // Every call then ends with the full check, and freed memory is overwritten.
                sanitized(stringify!($name)).env("LUMA_DEBUG", "1").run();
            }
        })*
    };
}

programs! {
    bad_free
    callbacks
    default_pool
    device_reset
    device_reset_callbacks
    layout
    limits
    log
    oom
    oom_report
    plan
    plan_place
    plan_search
    plan_threads
    pools
    sizes
    structs
    threads
}

#[test]
fn every_c_program_is_run() {
    let found: BTreeSet<String> = fs::read_dir(cc::root().join("c_tests"))
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

/// The header alone, twice in a file and in two files of one program; and every exported function is
/// declared, and there in both libraries.
#[test]
fn the_header_stands_alone() {
    if !tools_are_there() {
        return;
    }
    let text = fs::read_to_string(cc::root().join(source("header"))).unwrap();
    let symbols = fs::read_to_string(cc::root().join("abi/symbols.txt")).unwrap();
    for symbol in symbols.lines() {
        assert!(
            text.contains(&format!("(function_t){symbol},")),
            "c_tests/header.c lacks {symbol}"
        );
    }
    let second = "#include \"luma.h\"\n#include \"luma.h\"\n";
    let strict = ["-pedantic-errors", "-Wconversion", "-Wundef"];
    for standard in ["c99", "c11", "c17"] {
        let build = c(standard).args(strict).text("second.c", second);
        on_host(build.source(source("header"))).run();
    }
    for standard in ["c++11", "c++17", "c++20"] {
        let build = Build::cpp(standard).args(strict).text("second.cpp", second);
        on_host(build.source(source("header"))).run();
    }
    on_host(c("c99").source(source("header")).statically()).run();
}

#[test]
fn linked_statically() {
    if !tools_are_there() {
        return;
    }
    for name in ["default_pool", "oom", "oom_report", "pools", "threads"] {
        on_host(c("c99").source(source(name)).statically()).run();
    }
}

#[test]
fn init() {
    if !tools_are_there() {
        return;
    }
    let cases = [
        "before_first_use",
        "after_first_use",
        "after_other_pools",
        "after_a_bad_one",
        "over_callbacks",
    ];
    for case in cases {
        for program in variants("init") {
            program.arg(case).run();
        }
    }
    for case in ["over_the_environment", "beside_the_environment"] {
        sanitized("init")
            .env("LUMA_MEMORY_LIMIT", "1M")
            .env("LUMA_PRESET", "luma-0.3")
            .arg(case)
            .run();
    }
}

/// A case of `env.c` with these variables.
fn env(case: &str, variables: &[(&str, &str)]) -> Program {
    let program = sanitized("env").arg(case);
    variables
        .iter()
        .fold(program, |program, (name, value)| program.env(name, value))
}

#[test]
fn the_environment_is_heeded() {
    if !tools_are_there() {
        return;
    }
    let half = [("LUMA_HOST_CAPACITY", "3G"), ("LUMA_MEMORY_LIMIT", "50%")];
    env("half_the_device", &half).run();
    env("capacity", &[("LUMA_HOST_CAPACITY", "5M")]).run();
    env("poison", &[("LUMA_DEBUG", "1")]).run();
    let shape = [("LUMA_PRESET", "xla"), ("LUMA_MEMORY_LIMIT", "10M")];
    env("preset_and_limit_of_default_pools", &shape).run();
    env("defaults", &[]).run();
}

/// Misuse is found: writes to freed blocks, frees of freed ones, and blocks that live when a pool ends.
#[test]
fn checked() {
    if !tools_are_there() {
        return;
    }
    for program in variants("checked") {
        let program = program.env("LUMA_DEBUG", "1");
        for case in [
            "found_by_a_check",
            "found_as_the_cache_goes",
            "found_as_a_limit_is_set",
            "found_out_of_memory",
            "found_at_the_end",
            "freed_twice",
            "counted_as_freed",
            "live_at_a_pools_end",
        ] {
            program.run_case(case);
        }
    }
    let program = || sanitized("checked").env("LUMA_DEBUG", "1");
    let few = program().env("LUMA_QUARANTINE_BLOCKS", "4");
    few.run_case("found_as_it_leaves");
    let small = program().env("LUMA_QUARANTINE_BYTES", "2000");
    small.run_case("found_as_it_leaves");
    for off in ["LUMA_QUARANTINE_BLOCKS", "LUMA_QUARANTINE_BYTES"] {
        let off = program().env(off, "0");
        off.run_case("without_a_quarantine");
    }
    let stacks = on_host(c("c11").source(source("checked")).args(["-g"]));
    stacks
        .env("LUMA_DEBUG", "stacks")
        .run_case("stacks_are_kept");
}

/// What is live at exit is on standard error, though nobody asked for messages otherwise.
#[test]
fn checked_at_exit() {
    if !tools_are_there() {
        return;
    }
    let told = |case: &str, variables: &[(&str, &str)]| {
        let program = sanitized("checked").arg(case);
        let program = variables
            .iter()
            .fold(program, |program, (name, value)| program.env(name, value));
        let told = program.finish();
        assert!(told.status.success(), "{}", told.stderr);
        told.stderr
    };
    let text = told("live_at_exit", &[("LUMA_DEBUG", "1")]);
    for part in [
        "luma: warn: live in pool ",
        " 1024 bytes at 0x",
        "(1000 asked for), allocated 0.",
        "(500 asked for)",
        "(3000 asked for)",
        "3 blocks of 4608 bytes in all are live at exit, in 2 pools",
    ] {
        assert_eq!(
            text.matches(part).count().min(1),
            1,
            "no {part:?} in {text}"
        );
    }
    assert_eq!(text.lines().count(), 4, "{text}");
    assert!(!text.contains("7777"), "{text}");

    let text = told("live_at_exit", &[("LUMA_DEBUG", "stacks")]);
    assert!(
        text.contains("make_a_block") && text.contains("main"),
        "{text}"
    );

    let text = told("many_live_at_exit", &[("LUMA_DEBUG", "1")]);
    assert_eq!(text.lines().count(), 102, "{text}");
    assert!(text.contains("150 smaller blocks of"), "{text}");
    assert!(text.contains("250 blocks of 8032000 bytes"), "{text}");

    // Where a level was chosen, it holds.
    for (name, value) in [
        ("LUMA_LOG", "off"),
        ("LUMA_LOG", "error"),
        ("LUMA_DEBUG", "0"),
    ] {
        let text = told("live_at_exit", &[("LUMA_DEBUG", "1"), (name, value)]);
        assert_eq!(text, "", "{name}={value}");
    }
}

#[test]
fn cuda_that_is_not_there_is_no_device_in_every_call() {
    if tools_are_there() {
        env("no_device", &[("LUMA_BACKEND", "cuda")]).run();
    }
}

/// Bad values change nothing and are reported, each once, where somebody listens.
#[test]
fn bad_values_in_the_environment_are_reported_once() {
    if !tools_are_there() {
        return;
    }
    let bad = [
        ("LUMA_BACKEND", "rocm"),
        ("LUMA_MEMORY_LIMIT", "120%"),
        ("LUMA_PRESET", "best"),
        ("LUMA_HOST_CAPACITY", "-1"),
        ("LUMA_DEBUG", "perhaps"),
        ("LUMA_QUARANTINE_BYTES", "few"),
        ("LUMA_QUARANTINE_BLOCKS", "-1"),
        ("LUMA_TRACE", ""),
        ("LUMA_OOM_WAIT", "soon"),
    ];
    let silent = env("defaults", &bad).finish();
    assert!(silent.status.success(), "{}", silent.stderr);
    assert_eq!(silent.stderr, "", "nobody asked for messages");

    let told = env("defaults", &bad).env("LUMA_LOG", "warn").finish();
    assert!(told.status.success(), "{}", told.stderr);
    for (name, value) in bad {
        let report = format!("luma: warn: {name}={value} is ignored");
        assert_eq!(told.stderr.matches(&report).count(), 1, "{}", told.stderr);
    }
    assert_eq!(told.stderr.lines().count(), bad.len(), "{}", told.stderr);

    // Of a bad level itself nobody hears, for want of one.
    let level = env("defaults", &[("LUMA_LOG", "loud")]).finish();
    assert!(level.status.success() && level.stderr.is_empty());
}

/// What a level lets through, down to the choice of the backend.
#[test]
fn messages_go_to_standard_error_where_they_are_asked_for() {
    if !tools_are_there() {
        return;
    }
    for (level, choice, refusals) in [("off", 0, 0), ("error", 0, 0), ("info", 1, 2)] {
        let told = env("traced", &[("LUMA_LOG", level)]).finish();
        assert!(told.status.success(), "{}", told.stderr);
        let count = |text: &str| told.stderr.matches(text).count();
        assert_eq!(count("uses the host backend"), choice, "{}", told.stderr);
        assert_eq!(count("out of memory:"), refusals, "{}", told.stderr);
    }
}

/// Every call is in the trace, in order, and the trace can be read again.
#[test]
fn calls_are_recorded() {
    if !tools_are_there() {
        return;
    }
    let folder = Folder::new("trace");
    let path = folder.path().join("calls-%p.csv");
    env("traced", &[("LUMA_TRACE", path.to_str().unwrap())]).run();
    let written: Vec<_> = fs::read_dir(folder.path())
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    let [trace] = &written[..] else {
        panic!("one trace is expected: {written:?}")
    };
    assert!(!trace.to_str().unwrap().contains("%p"));
    let events: Vec<_> = Reader::new(BufReader::new(fs::File::open(trace).unwrap()))
        .collect::<Result<_, _>>()
        .expect("the trace can be read");
    let sizes = |op| -> Vec<u64> {
        let events = events.iter().filter(|event| event.op == op);
        events.map(|event| event.size).collect()
    };
    let allocated = [1000, 100, 2000, 200, 3000, 300, 4000, 400];
    assert_eq!(sizes(Op::Alloc), allocated);
    assert_eq!(sizes(Op::AllocFailed), [17 << 30, 2 << 20]);
    assert_eq!(sizes(Op::Free).len(), 7);

    // A file that cannot be made is reported, and the program goes on.
    let nowhere = folder.path().join("no/such/folder/trace.csv");
    let variables = [
        ("LUMA_TRACE", nowhere.to_str().unwrap()),
        ("LUMA_LOG", "error"),
    ];
    let told = env("traced", &variables).finish();
    assert!(told.status.success(), "{}", told.stderr);
    assert_eq!(told.stderr.lines().count(), 1, "{}", told.stderr);
    assert!(
        told.stderr.contains("nothing is recorded"),
        "{}",
        told.stderr
    );
}

#[test]
fn fork() {
    if !tools_are_there() {
        return;
    }
    on_host(c("c99").source(source("fork"))).run();
    on_host(c("c17").source(source("fork")).args(["-O2"]).statically()).run();
    sanitized("fork").arg("alone").run();
    // A child finds no lock taken that call stacks need.
    let checked = on_host(c("c11").source(source("fork")));
    let checked = checked.env("LUMA_DEBUG", "stacks");
    // Naming functions takes each child a while, since the library of tests is large.
    checked.env("LUMA_LOG", "off").run();
}

#[test]
fn fork_beside_threads_that_plan() {
    if tools_are_there() {
        let program = on_host(c("c11").source(source("plan_threads")));
        program.arg("fork").run();
    }
}

#[test]
fn exit() {
    if !tools_are_there() {
        return;
    }
    let folder = Folder::new("exit");
    let trace = folder.path().join("trace-%p.csv");
    for case in [
        "exit_handlers",
        "thread_destructors",
        "main_returns_under_threads",
        "a_thread_exits",
        "main_ends_before_its_threads",
    ] {
        let linked = variants("exit")
            .into_iter()
            .chain([on_host(c("c99").source(source("exit")).statically())]);
        for program in linked {
            let program = program.arg(case);
            for _ in 0..5 {
                assert_eq!(program.run(), "ended\n", "{case}");
            }
            // The record is written at exit, too.
            let traced = program.env("LUMA_TRACE", trace.to_str().unwrap());
            assert_eq!(traced.run(), "ended\n", "{case}, recorded");
        }
    }
}

#[test]
fn loaded_and_closed_at_run_time() {
    if !tools_are_there() {
        return;
    }
    // The program must not name the library itself.
    let unlinked = ["-Wl,--no-as-needed", "-ldl", "-Wl,--as-needed"];
    for standard in ["c99", "c17"] {
        let build = c(standard).source(source("dlopen")).args(unlinked);
        let program = on_host(build).arg(cc::library_folder().join("libluma.so"));
        assert_eq!(program.run(), "ended\n");
    }
}

/// The first call is told of while it is under way, to a callback that makes calls itself.
#[test]
fn first_use() {
    if !tools_are_there() {
        return;
    }
    let program = || c("c11").source(source("first_use")).sanitized().compile();
    for (name, value) in [
        ("LUMA_BACKEND", "host"),
        ("LUMA_DEBUG", "yes"),
        ("LUMA_TRACE", "/no/such/folder/trace.csv"),
        ("FIRST_USE_INIT", "1"),
    ] {
        program().env(name, value).run();
    }
}

/// Blocks that end with their pool are freed in the record, and calls in exit handlers are in it.
#[test]
fn the_record_is_whole_at_the_end() {
    if !tools_are_there() {
        return;
    }
    let folder = tools::Folder::new("traced_end");
    let path = folder.path().join("trace.csv");
    on_host(c("c11").source(source("traced_end")))
        .env("LUMA_TRACE", path.to_str().unwrap())
        .run();
    let events = Reader::new(BufReader::new(fs::File::open(path).unwrap()))
        .collect::<Result<Vec<_>, _>>()
        .expect("the trace can be read");
    let ops: Vec<_> = events.iter().map(|event| (event.op, event.size)).collect();
    let sizes: Vec<_> = ops
        .iter()
        .filter(|(op, _)| *op == Op::Alloc)
        .map(|&(_, size)| size)
        .collect();
    assert_eq!(sizes, [5000, 5000, 5000, 7000]);
    assert_eq!(ops.iter().filter(|(op, _)| *op == Op::Free).count(), 4);
}

/// Valgrind finds nothing wrong, and refuses large ranges of addresses, which is no reason to fail.
#[test]
fn under_valgrind() {
    if !tools::available(&["cc", "valgrind"]) {
        return;
    }
    for name in ["default_pool", "bad_free", "callbacks", "oom"] {
        let program = on_host(c("c11").source(source(name)));
        program
            .under(&["valgrind", "--quiet", "--error-exitcode=9"])
            .run();
    }
}

/// A limit on the process's addresses leaves the pool what it needs, and the program the rest.
#[test]
fn under_a_limit_on_addresses() {
    if !tools_are_there() {
        return;
    }
    let limited = ["sh", "-c", "ulimit -v 2000000 && exec \"$0\" \"$@\""];
    on_host(c("c11").source(source("default_pool")))
        .under(&limited)
        .run();
}

/// A child is forked while a backend call is under way that takes longer than the fork waits.
#[test]
fn fork_beside_a_slow_backend() {
    if tools_are_there() {
        on_host(c("c11").source(source("fork_slow"))).run();
    }
}
