use super::{file, luma, luma_with};

#[test]
fn the_page_says_what_there_is_and_why() {
    let run = luma(&["doctor"]);
    assert_eq!((run.code, run.stderr.as_str()), (0, ""), "{}", run.stdout);
    for told in [
        "library      luma ",
        "driver ",
        "devices ",
        "backend      host, ",
        "preset       default",
    ] {
        assert!(run.stdout.contains(told), "{told}: {}", run.stdout);
    }
    assert!(
        run.stdout.contains("environment  no LUMA_ variable is set"),
        "{}",
        run.stdout
    );
    assert!(
        run.stdout.ends_with("result       luma works here\n"),
        "{}",
        run.stdout
    );
}

#[test]
fn json_holds_the_same() {
    let document = luma(&["doctor", "--json"]).json();
    assert_eq!(document["library"]["version"], env!("CARGO_PKG_VERSION"));
    assert_eq!(document["library"]["backend"], "host");
    assert_eq!(document["library"]["capacity_bytes"], 16_u64 << 30);
    assert_eq!(document["library"]["memory_limit"], 0);
    assert_eq!(document["driver"]["library"], "libcuda.so.1");
    assert_eq!(document["problems"], serde_json::json!([]));
    // Without a driver it is said where it was looked for.
    if document["driver"]["found"] == false {
        assert!(
            document["driver"]["failure"]
                .as_str()
                .unwrap()
                .contains("libcuda.so.1")
        );
        assert!(document["driver"]["searched"].as_array().unwrap().len() >= 3);
    }
}

#[test]
fn variables_that_are_followed_are_told_with_their_effect() {
    let variables = [
        ("LUMA_HOST_CAPACITY", "1G"),
        ("LUMA_MEMORY_LIMIT", "25%"),
        ("LUMA_PRESET", "xla"),
    ];
    let run = luma_with(&variables, &["doctor", "--json"]);
    assert_eq!(run.code, 0, "{}", run.stdout);
    let document = run.json();
    assert_eq!(document["library"]["capacity_bytes"], 1 << 30);
    assert_eq!(document["library"]["memory_limit"], 256 << 20);
    assert_eq!(document["library"]["preset"], "xla");
    let environment = document["environment"].as_array().unwrap();
    assert_eq!(environment.len(), 3);
    for variable in environment {
        assert_eq!(variable["effect"], "used", "{variable}");
        assert!(!variable["meaning"].as_str().unwrap().is_empty());
    }
}

#[test]
fn a_bad_value_is_a_problem() {
    let run = luma_with(&[("LUMA_PRESET", "fast")], &["doctor"]);
    assert_eq!(run.code, 1, "{}", run.stdout);
    assert!(
        run.stdout
            .contains("LUMA_PRESET=fast: bad value, ignored\n"),
        "{}",
        run.stdout
    );
    assert!(
        run.stdout.contains("preset       default"),
        "{}",
        run.stdout
    );
    assert!(
        run.stdout
            .contains("\nproblem      LUMA_PRESET=fast is ignored: "),
        "{}",
        run.stdout
    );
}

#[test]
fn what_tests_and_scripts_heed_is_no_problem() {
    let run = luma_with(&[("LUMA_CUDA_TOOLKIT", "/opt/cuda")], &["doctor"]);
    assert_eq!(run.code, 0, "{}", run.stdout);
    assert!(!run.stdout.contains("LUMA_CUDA_TOOLKIT"), "{}", run.stdout);
}

#[test]
fn a_misspelled_variable_is_a_problem_with_a_proposal() {
    let run = luma_with(&[("LUMA_BAKEND", "host")], &["doctor"]);
    assert_eq!(run.code, 1, "{}", run.stdout);
    let told = "problem      LUMA_BAKEND is not an option of luma; LUMA_BACKEND is\n";
    assert!(run.stdout.contains(told), "{}", run.stdout);
}

#[test]
fn a_pool_that_cannot_serve_is_a_problem() {
    let run = luma_with(&[("LUMA_MEMORY_LIMIT", "256")], &["doctor"]);
    assert_eq!(run.code, 1, "{}", run.stdout);
    assert!(
        run.stdout
            .contains("problem      an allocation of 64 KiB failed: "),
        "{}",
        run.stdout
    );
}

#[test]
fn a_look_leaves_a_recording_alone() {
    let path = file("recording.csv", "kept");
    let run = luma_with(&[("LUMA_TRACE", &path)], &["doctor"]);
    assert_eq!(run.code, 0, "{}", run.stdout);
    assert!(run.stdout.contains("LUMA_TRACE="), "{}", run.stdout);
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "kept");
}

#[test]
fn what_the_preloaded_library_heeds_is_no_problem() {
    let variables = [("LUMA_INTERPOSE", "wait"), ("LUMA_INTERPOSE_IPC", "own")];
    let run = luma_with(&variables, &["doctor"]);
    assert_eq!(run.code, 0, "{}", run.stdout);
    let told = "LUMA_INTERPOSE=wait: For programs under luma run: ";
    assert!(run.stdout.contains(told), "{}", run.stdout);
}
