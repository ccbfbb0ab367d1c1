//! What the report says.

use super::{can_compile, luma_run, program, reported, run, tools};
use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;

/// The fields of `luma_stats_t` in the header, without its size.
fn fields() -> BTreeSet<String> {
    let header = include_str!("../../../../../include/luma.h");
    let start = header.find("typedef struct luma_stats_t {").unwrap();
    let end = header[start..].find("} luma_stats_t;").unwrap();
    let fields = header[start..start + end].lines().filter_map(|line| {
        let declared = line.trim().strip_prefix("uint64_t ")?;
        declared.strip_suffix(';').map(str::to_owned)
    });
    let fields: BTreeSet<String> = fields.collect();
    assert!(fields.len() > 20, "{fields:?}");
    fields
}

#[test]
fn figures_have_the_names_of_the_interface() {
    if !can_compile() {
        return;
    }
    let (_, document) = reported(&["--fake"], &[&program("pool")]);
    let stats = &document["processes"][0]["pools"][0]["stats"];
    let names: BTreeSet<String> = stats.as_object().unwrap().keys().cloned().collect();
    assert_eq!(names, fields());
    assert_eq!(stats["alloc_calls"], 100);
    assert_eq!(stats["free_calls"], 100);
    assert_eq!(stats["peak_bytes"], 1 << 20);
    assert_eq!(stats["cuda_malloc_calls"], 1);
}

#[test]
fn figures_follow_from_the_pool_s() {
    if !can_compile() {
        return;
    }
    let pool = program("pool");
    let (_, document) = reported(&["--fake"], &[&pool]);
    assert_eq!(document["command"][0], pool);
    let process = &document["processes"][0];
    assert_eq!(process["executable"], pool);
    let figures = &process["figures"];
    let number = |name: &str| figures[name].as_f64().unwrap();
    let made = number("driver_calls");
    assert!(made >= 1.0);
    assert_eq!(number("driver_calls_saved"), 200.0 - made);
    let took = process["pools"][0]["grant_ns"].as_f64().unwrap()
        / process["pools"][0]["grants"].as_f64().unwrap();
    assert_eq!(number("driver_alloc_ns"), took);
    assert!(number("saved_ns") >= took * 50.0, "{figures}");
    assert_eq!(number("peak_allocated_bytes"), 1_048_576.0);
    assert!(number("peak_reserved_bytes") >= number("peak_allocated_bytes"));
}

#[test]
fn the_text_says_the_same() {
    if !can_compile() {
        return;
    }
    let pool = program("pool");
    let finished = run(&["--fake", "--", &pool]);
    assert_eq!(finished.stdout, "");
    for line in [
        "device       the driver double: no kernel ran",
        "calls        100 allocations, 100 frees\n",
        " saved, which would have taken ",
        "peak         1 MiB allocated, ",
        "refused      nothing\n",
    ] {
        assert!(
            finished.stderr.contains(line),
            "{line}: {}",
            finished.stderr
        );
    }
    assert!(
        finished.stderr.contains(&format!(" {pool}\n")),
        "{}",
        finished.stderr
    );
    assert_eq!(run(&["--fake", "--quiet", "--", &pool]).stderr, "");
}

#[test]
fn refused_requests_are_told() {
    if !can_compile() {
        return;
    }
    let pool = program("pool");
    let (finished, document) = reported(&["--fake"], &[&pool, "huge"]);
    assert_eq!(finished.status.code(), Some(0));
    assert_eq!(
        document["processes"][0]["figures"]["out_of_memory_count"],
        1
    );
    let finished = run(&["--fake", "--limit", "8M", "--", &pool, "huge"]);
    assert!(
        finished
            .stderr
            .contains("refused      1 request: out of memory\n"),
        "{}",
        finished.stderr
    );
    let (_, document) = reported(&["--fake", "--limit", "8M"], &[&pool]);
    assert_eq!(
        document["processes"][0]["pools"][0]["stats"]["memory_limit"],
        8 << 20
    );
}

#[test]
fn every_process_is_told_of() {
    if !can_compile() {
        return;
    }
    let pool = program("pool");
    let (_, document) = reported(&["--fake"], &[&pool, "child first"]);
    let processes = document["processes"].as_array().unwrap();
    let allocs = |process: &serde_json::Value| process["figures"]["alloc_calls"].as_u64().unwrap();
    let mut counts: Vec<u64> = processes.iter().map(allocs).collect();
    counts.sort_unstable();
    assert_eq!(counts, [10, 20]);
    let [one, other] = &processes[..] else {
        unreachable!()
    };
    assert!(
        one["pid"] == other["parent"] || other["pid"] == one["parent"],
        "{document:#}"
    );

    let shell = format!("{pool}; {pool} _exit; true");
    let finished = run(&["--fake", "--", "sh", "-c", &shell]);
    assert_eq!(
        finished
            .stderr
            .matches("calls        100 allocations")
            .count(),
        2,
        "{}",
        finished.stderr
    );
    assert!(
        finished
            .stderr
            .contains("others       1 process allocated nothing\n"),
        "{}",
        finished.stderr
    );
}

#[test]
fn a_command_line_is_one_line_of_a_terminal() {
    if !can_compile() {
        return;
    }
    let (pool, long) = (program("pool"), "x".repeat(5000));
    let finished = run(&["--fake", "--", &pool, "", "a\nb\x1b[31m", &long]);
    let mut lines = finished.stderr.lines();
    let told = lines.find(|line| line.starts_with("process ")).unwrap();
    assert!(told.contains(&format!(" {pool}  a b [31m xxx")), "{told}");
    assert!(told.ends_with("xxx...") && told.len() < 300, "{told}");
    assert!(
        lines.next().unwrap().starts_with("calls "),
        "{}",
        finished.stderr
    );
}

#[test]
fn a_run_inside_a_run_is_told_by_both() {
    if !can_compile() {
        return;
    }
    let pool = program("pool");
    let inner = super::luma().to_str().unwrap();
    let (finished, document) = reported(&["--fake"], &[inner, "run", "--", &pool]);
    let told = |text: &str| {
        text.matches("calls        100 allocations, 100 frees")
            .count()
    };
    assert_eq!(told(&finished.stderr), 1, "{}", finished.stderr);
    assert_eq!(document["why"].as_array().unwrap().len(), 0, "{document:#}");
    let processes = document["processes"].as_array().unwrap();
    let allocs = |process: &serde_json::Value| process["figures"]["alloc_calls"].as_u64();
    let all: u64 = processes.iter().filter_map(allocs).sum();
    assert_eq!((processes.len(), all), (2, 100), "{document:#}");
}

#[test]
fn any_command_line_is_told() {
    if !can_compile() {
        return;
    }
    let folder = tools::Folder::new("words");
    let path = folder.path().join("report.json");
    let cases: [(&[&[u8]], bool); 4] = [
        (&[b"plain", b"", b"a \"b\" \\c\n\x01\x1f\x7f"], true),
        (&["\u{e4}\u{1f600}".as_bytes()], true),
        (&[b"\xff\xfe broken \xc3"], true),
        (&[&[b'x'; 20_000]], false),
    ];
    for (words, complete) in cases {
        let mut command = luma_run(&["--fake", "--report"]);
        command.arg(&path).arg("--").arg(program("pool"));
        command.args(words.iter().map(|word| OsStr::from_bytes(word)));
        tools::succeed(&mut command, super::RUN_TIME);
        let text = std::fs::read_to_string(&path).unwrap();
        let document: serde_json::Value = serde_json::from_str(&text).unwrap();
        let process = &document["processes"][0];
        assert_eq!(process["arguments_complete"], complete);
        let told = process["arguments"].as_array().unwrap();
        assert_eq!(told.len(), words.len() + 1);
        for (told, word) in told[1..].iter().zip(words) {
            let word = OsString::from(OsStr::from_bytes(word));
            let (told, word) = (told.as_str().unwrap(), word.to_string_lossy());
            assert!(
                if complete {
                    told == word
                } else {
                    word.starts_with(told)
                },
                "{told}"
            );
        }
    }
}
