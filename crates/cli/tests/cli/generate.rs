use std::fs;

use super::{file, luma};

const KINDS: [&str; 4] = ["training", "serving", "kv-cache", "shifting"];

#[test]
fn a_trace_follows_from_its_arguments() {
    for kind in KINDS {
        let generate = |seed| luma(&["generate", kind, "--seed", seed, "--events", "800"]);
        let run = generate("5");
        assert_eq!((run.code, run.stderr.as_str()), (0, ""), "{kind}");
        let head =
            format!("# made by: luma generate {kind} --seed 5 --events 800\nop,id,size,stream\n");
        assert!(run.stdout.starts_with(&head), "{kind}");
        assert_eq!(run.stdout, generate("5").stdout, "{kind}");
        assert_ne!(run.stdout, generate("6").stdout, "{kind}");
    }
}

#[test]
fn a_file_holds_what_would_be_printed() {
    let path = file("generated.csv", "");
    let arguments = ["generate", "serving", "--seed", "9", "--events", "100"];
    let run = luma(&[&arguments[..], &["--out", &path]].concat());
    assert_eq!((run.code, run.stdout.as_str()), (0, ""), "{}", run.stderr);
    assert_eq!(fs::read_to_string(&path).unwrap(), luma(&arguments).stdout);
    assert_eq!(luma(&["replay", "--runs", "1", &path]).code, 0);
}

#[test]
fn wrong_arguments_are_told() {
    let cases: [(&[&str], &str); 7] = [
        (
            &["generate", "--seed", "1"],
            "<training|serving|kv-cache|shifting>",
        ),
        (&["generate", "training"], "--seed <N>"),
        (
            &["generate", "weather", "--seed", "1"],
            "<training|serving|kv-cache|shifting>",
        ),
        (
            &[
                "generate",
                "training",
                "--seed",
                "1",
                "--out",
                "no/such/folder/t.csv",
            ],
            "luma: no/such/folder/t.csv: No such file",
        ),
        (&["generate", "matmul", "--tiles", "4x0x4"], "such as 4x6x6"),
        (
            &["generate", "matmul", "--tiles", "1000x1000x1000"],
            "more than 2000000 operations on tiles: make --tiles smaller",
        ),
        (&["generate", "conv", "--weights", "0"], "--weights"),
    ];
    for (arguments, told) in cases {
        let run = luma(arguments);
        assert_eq!((run.code, run.stdout.as_str()), (2, ""), "{arguments:?}");
        assert!(run.stderr.contains(told), "{arguments:?}: {}", run.stderr);
    }
}
