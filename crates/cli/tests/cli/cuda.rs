//! On the driver double, found as a driver is.

use super::{double, file, luma_with, root};

/// What finds the double, with so much memory.
fn on_double(memory: &str) -> Vec<(&str, &str)> {
    let folder = double::folder().to_str().expect("a path in UTF-8");
    vec![
        ("LD_LIBRARY_PATH", folder),
        ("FAKECUDA_MEM", memory),
        // The host may touch nothing of it.
        ("FAKECUDA_STRICT", "1"),
    ]
}

#[test]
fn a_trace_is_replayed_on_the_device() {
    let traces = root().join("examples/traces");
    let trace = traces.join("generated_training.csv");
    let arguments = |backend| {
        [
            "replay",
            "--json",
            "--runs",
            "1",
            "--backend",
            backend,
            trace.to_str().unwrap(),
        ]
    };
    let run = luma_with(&on_double("8G"), &arguments("cuda"));
    assert_eq!((run.code, run.stderr.as_str()), (0, ""), "{}", run.stdout);
    let on_cuda = run.json();
    let simulated = luma_with(&[], &arguments("simulated")).json();
    let figure =
        |document: &serde_json::Value, name: &str| document["rows"][0]["result"][name].as_u64();
    for name in ["peak_allocated_bytes", "backend_allocations"] {
        let expected = figure(&simulated, name);
        assert!(expected.is_some(), "{name}: {simulated}");
        assert_eq!(figure(&on_cuda, name), expected, "{name}: {on_cuda}");
    }
}

#[test]
fn a_device_that_is_too_small_is_told() {
    let trace = root().join("examples/traces/generated_training.csv");
    let run = luma_with(
        &on_double("1G"),
        &[
            "replay",
            "--backend",
            "cuda",
            "--runs",
            "1",
            trace.to_str().unwrap(),
        ],
    );
    assert_eq!(run.code, 1, "{}", run.stderr);
    assert!(
        run.stdout.contains("out of memory at event"),
        "{}",
        run.stdout
    );
    assert!(run.stdout.contains("the cuda device has"), "{}", run.stdout);
}

#[test]
fn the_doctor_finds_driver_and_device() {
    let run = luma_with(&on_double("3G"), &["doctor"]);
    assert_eq!((run.code, run.stderr.as_str()), (0, ""), "{}", run.stdout);
    for told in [
        "driver       ",
        "devices      1 CUDA device",
        "backend      cuda, ",
        "of 3 GiB: there is a CUDA driver with a device",
    ] {
        assert!(run.stdout.contains(told), "{told}: {}", run.stdout);
    }
    let mut variables = on_double("3G");
    variables.push(("LUMA_BACKEND", "host"));
    let document = luma_with(&variables, &["doctor", "--json"]).json();
    assert_eq!(document["library"]["backend"], "host");
    assert_eq!(document["library"]["reason"], "LUMA_BACKEND asks for it");
}

#[test]
fn the_doctor_tells_of_a_driver_that_fails() {
    let mut variables = on_double("3G");
    variables.push(("FAKECUDA_INIT", "999"));
    let run = luma_with(&variables, &["doctor"]);
    assert_eq!(run.code, 1, "{}", run.stdout);
    assert!(run.stdout.contains("backend      none: "), "{}", run.stdout);
    assert!(
        run.stdout.contains("CUDA_ERROR_UNKNOWN (999)"),
        "{}",
        run.stdout
    );
    let path = file("failing.csv", "op,ptr,bytes\n");
    let run = luma_with(&variables, &["replay", "--backend", "cuda", &path]);
    assert_eq!(run.code, 2, "{}", run.stdout);
}
