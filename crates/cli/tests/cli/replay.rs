use super::{file, luma, luma_with};

/// Two blocks from the start, then 300 + 1000 + 5000 bytes at most.
const SMALL: &str = "# a test\nop,id,size,stream\npre,0,300,0\npre,1,1000,0\nalloc,2,5000,0\n\
                     free,1,1000,0\nfree_req,2,5000,0\nfree,2,5000,0\nalloc,3,0,0\nfree,3,0,0\n";
const PEAK_LIVE: u64 = 6300;
/// The same, each rounded up to 256.
const PEAK_ALLOCATED: u64 = 512 + 1024 + 5120;

#[test]
fn the_table_has_a_row_for_each_trace() {
    let (one, two) = (file("one.csv", SMALL), file("two.csv", SMALL));
    let run = luma(&["replay", "--runs", "3", &one, &two]);
    assert_eq!((run.code, run.stderr.as_str()), (0, ""));
    let lines: Vec<&str> = run.stdout.lines().collect();
    assert_eq!(lines[0], "simulated device of 1 TiB, median of 3 runs");
    assert_eq!(
        lines[2].split_whitespace().collect::<Vec<_>>().join(" "),
        "trace preset calls ns/call p99 ns live allocated reserved overhead backend segments"
    );
    for (line, path) in lines[3..].iter().zip([&one, &two]) {
        let cells: Vec<&str> = line.split_whitespace().collect();
        assert_eq!(cells[..3], [path.as_str(), "default", "5"], "{line}");
        assert!(cells[3].parse::<f64>().unwrap() > 0.0, "{line}");
        assert_eq!(cells[5..9], ["6.15", "KiB", "6.50", "KiB"], "{line}");
    }
    assert_eq!(lines.len(), 5);
}

#[test]
fn json_has_raw_numbers() {
    let path = file("json.csv", SMALL);
    let run = luma(&["replay", "--json", "--runs", "4", "--capacity", "8M", &path]);
    assert_eq!(run.code, 0, "{}", run.stderr);
    let document = run.json();
    assert_eq!(document["backend"], "simulated");
    assert_eq!(document["capacity_bytes"], 8 << 20);
    assert_eq!(document["limit_bytes"], 0);
    let row = &document["rows"][0];
    assert_eq!(row["trace"], path.as_str());
    assert_eq!(row["preset"], "default");
    assert_eq!(row["calls"], 5);
    assert_eq!(row["peak_live_bytes"], PEAK_LIVE);
    let result = &row["result"];
    assert_eq!(result["peak_allocated_bytes"], PEAK_ALLOCATED);
    let reserved = result["peak_reserved_bytes"].as_u64().unwrap();
    assert!((PEAK_ALLOCATED..=8 << 20).contains(&reserved), "{reserved}");
    let overhead = result["overhead_percent"].as_f64().unwrap();
    let expected = (reserved as f64 / PEAK_LIVE as f64 - 1.0) * 100.0;
    assert!((overhead - expected).abs() < 1e-6, "{overhead} {expected}");
    assert!(result["backend_allocations"].as_u64().unwrap() >= 1);
    let runs = result["runs_ns_per_call"].as_array().unwrap();
    let runs: Vec<f64> = runs.iter().map(|figure| figure.as_f64().unwrap()).collect();
    assert_eq!(runs.len(), 4);
    let median = result["ns_per_call"].as_f64().unwrap();
    assert!((median - (runs[1] + runs[2]) / 2.0).abs() < 1e-9);
    assert!(row.get("out_of_memory").is_none() && row.get("smallest").is_none());
}

#[test]
fn all_presets_stand_side_by_side() {
    let path = file("presets.csv", SMALL);
    let run = luma(&["replay", "--json", "--runs", "1", "--preset", "all", &path]);
    assert_eq!(run.code, 0, "{}", run.stderr);
    let document = run.json();
    let rows = document["rows"].as_array().unwrap();
    let presets: Vec<&str> = rows
        .iter()
        .map(|row| row["preset"].as_str().unwrap())
        .collect();
    assert_eq!(presets, ["default", "xla", "luma-0.3"]);
    // The first regions of XLA's allocator and of luma-cuda 0.3.2.
    assert_eq!(rows[1]["result"]["peak_reserved_bytes"], 2 << 20);
    assert_eq!(rows[2]["result"]["peak_reserved_bytes"], 1 << 20);
}

#[test]
fn every_host_backend_replays() {
    let path = file("backends.csv", SMALL);
    for backend in ["simulated", "host", "callbacks"] {
        let run = luma(&[
            "replay",
            "--json",
            "--runs",
            "1",
            "--backend",
            backend,
            &path,
        ]);
        assert_eq!(run.code, 0, "{backend}: {}", run.stderr);
        let document = run.json();
        assert_eq!(
            document["rows"][0]["result"]["peak_allocated_bytes"],
            PEAK_ALLOCATED
        );
    }
}

const TOO_LARGE: &str = "op,id,size\nalloc,0,1048576\n\nalloc,1,33554432\nfree,1,33554432\n";

#[test]
fn out_of_memory_is_a_row_and_not_a_crash() {
    let path = file("large.csv", TOO_LARGE);
    let fits = file("fits.csv", SMALL);
    for arguments in [
        ["--capacity", "16M", "--backend", "simulated"],
        ["--limit", "16M", "--backend", "simulated"],
        ["--capacity", "16M", "--backend", "host"],
        ["--capacity", "16M", "--backend", "callbacks"],
    ] {
        let mut all = vec!["replay", "--runs", "1"];
        all.extend(arguments);
        all.extend([path.as_str(), &fits]);
        let run = luma(&all);
        assert_eq!(run.code, 1, "{arguments:?}: {}", run.stderr);
        let told = "  out of memory at event 2, line 4: ";
        let line = run.stdout.lines().find(|line| line.starts_with(told));
        let line = line.unwrap_or_else(|| panic!("{arguments:?}: {}", run.stdout));
        assert!(
            line.contains("33554432 bytes) asked for"),
            "{arguments:?}: {line}"
        );
        // The trace after it is replayed all the same.
        assert!(
            run.stdout.lines().last().unwrap().starts_with(&fits),
            "{}",
            run.stdout
        );
    }
    let run = luma(&["replay", "--json", "--capacity", "16M", &path]);
    assert_eq!(run.code, 1);
    let refusal = &run.json()["rows"][0]["out_of_memory"];
    assert_eq!(
        (&refusal["event"], &refusal["line"]),
        (&2.into(), &4.into())
    );
    assert_eq!(refusal["bytes"], 32 << 20);
}

#[test]
fn a_request_that_failed_when_recorded_may_fail_again() {
    let trace = "op,id,size\nalloc,0,4096\nalloc_failed,-1,1152921504606846976\n\
                 alloc_failed,-1,512\nfree,0,4096\n";
    let run = luma(&[
        "replay",
        "--json",
        "--runs",
        "1",
        &file("failed.csv", trace),
    ]);
    assert_eq!(run.code, 0, "{}{}", run.stdout, run.stderr);
    let row = &run.json()["rows"][0];
    assert_eq!(
        (&row["calls"], &row["peak_live_bytes"]),
        (&4.into(), &4096.into())
    );
}

#[test]
fn a_trace_of_live_blocks_only_has_nothing_to_time() {
    let path = file("pre.csv", "op,id,size\npre,0,512\n");
    let run = luma(&["replay", "--json", &path]);
    assert_eq!(run.code, 0, "{}", run.stderr);
    let row = &run.json()["rows"][0];
    assert_eq!(row["calls"], 0);
    assert_eq!(row["result"]["peak_allocated_bytes"], 512);
    assert!(row["result"]["ns_per_call"].is_null() && row["result"]["p99_ns"].is_null());
}

#[test]
fn wrong_files_are_all_told_with_their_lines() {
    let good = file("good.csv", SMALL);
    let number = file("number.csv", "op,id,size\nalloc,0,12\n\nfree,0,twelve\n");
    let unknown = file("unknown.csv", "op,id,size\r\nalloc,0,12\r\nfree,1,12\r\n");
    let run = luma(&["replay", &good, &number, "no/such/file.csv", &unknown]);
    assert_eq!((run.code, run.stdout.as_str()), (2, ""));
    let lines: Vec<&str> = run.stderr.lines().collect();
    assert_eq!(
        lines,
        [
            format!("luma: {number}:4: size is not a whole number: \"twelve\""),
            "luma: no/such/file.csv: No such file or directory (os error 2)".into(),
            format!("luma: {unknown}:3: free of block 1, which is not live"),
        ]
    );
}

#[test]
fn wrong_arguments_are_told() {
    let path = file("arguments.csv", SMALL);
    let cases: &[(&[&str], &str)] = &[
        (&["replay"], "<FILE>"),
        (
            &["replay", "--preset", "fast", &path],
            "possible values: default, xla, luma-0.3, all",
        ),
        (
            &["replay", "--backend", "disk", &path],
            "simulated, host, callbacks, cuda",
        ),
        (&["replay", "--capacity", "12X", &path], "unknown suffix"),
        (
            &["replay", "--capacity", "0", &path],
            "a device without memory",
        ),
        (
            &["replay", "--limit", "0", &path],
            "a pool that may hold nothing",
        ),
        (&["replay", "--runs", "0", &path], "0 is not in 1..=10000"),
        (
            &["replay", "--smallest", "--backend", "host", &path],
            "needs --backend simulated",
        ),
        (
            &["replay", "--capacity", "1G", "--backend", "cuda", &path],
            "use --limit",
        ),
        (&["reply", &path], "replay"),
    ];
    for (arguments, told) in cases {
        let run = luma(arguments);
        assert_eq!((run.code, run.stdout.as_str()), (2, ""), "{arguments:?}");
        assert!(run.stderr.contains(told), "{arguments:?}: {}", run.stderr);
    }
}

#[test]
fn a_backend_that_is_not_there_is_told() {
    let run = luma(&["replay", "--backend", "cuda", &file("cuda.csv", SMALL)]);
    assert_eq!((run.code, run.stdout.as_str()), (2, ""));
    assert!(
        run.stderr.starts_with("luma: the pool cannot be made: "),
        "{}",
        run.stderr
    );
}

#[test]
fn the_environment_does_not_change_a_replay() {
    let path = file("environment.csv", SMALL);
    let variables = [("LUMA_PRESET", "xla"), ("LUMA_MEMORY_LIMIT", "256")];
    let run = luma_with(&variables, &["replay", "--json", "--runs", "1", &path]);
    assert_eq!(run.code, 0, "{}", run.stderr);
    assert_eq!(run.json()["rows"][0]["preset"], "default");
}

#[test]
fn a_replay_is_not_recorded_over_the_trace_that_it_reads() {
    let text = "op,id,size\nalloc,0,1000\nfree,0,1000\n";
    let path = file("mine.csv", text);
    let run = luma_with(&[("LUMA_TRACE", &path)], &["replay", &path]);
    assert_eq!(run.code, 0, "{}", run.stderr);
    assert_eq!(std::fs::read_to_string(&path).unwrap(), text);
}

#[test]
fn a_byte_order_mark_is_no_part_of_the_header() {
    let path = file(
        "marked.csv",
        "\u{feff}op,id,size\nalloc,0,1000\nfree,0,1000\n",
    );
    assert_eq!(luma(&["replay", &path]).code, 0);
}
