//! How a run ends.

use super::{can_compile, luma_run, program, reported, run, script};
use std::io::{Read, Write};
use std::os::unix::process::ExitStatusExt;
use std::process::Stdio;

#[test]
fn the_exit_status_is_the_program_s() {
    for status in [0, 1, 3, 125, 127, 255] {
        let text = format!("exit {status}");
        let (finished, document) = reported(&[], &["sh", "-c", &text]);
        assert_eq!(finished.status.code(), Some(status), "{}", finished.stderr);
        assert_eq!(document["exit_status"], status);
        assert_eq!(document["signal"], serde_json::Value::Null);
    }
}

#[test]
fn a_program_that_a_signal_ended_ends_luma_by_the_same() {
    for (name, number) in [
        ("KILL", 9),
        ("SEGV", 11),
        ("TERM", 15),
        ("HUP", 1),
        ("INT", 2),
    ] {
        let (finished, document) = reported(&[], &["sh", "-c", &format!("kill -s {name} $$")]);
        assert_eq!(finished.status.signal(), Some(number), "{name}");
        assert_eq!(document["signal"], number);
        assert_eq!(document["exit_status"], serde_json::Value::Null);
    }
    // In a shell it is 128 and the number.
    let luma = super::luma().display();
    let shell = format!("{luma} run --quiet -- sh -c 'kill -s TERM $$'; echo $?");
    let mut command = super::tools::command("sh");
    let output = super::tools::run(command.args(["-c", &shell]), super::RUN_TIME);
    assert_eq!(output.stdout, "143\n", "{}", output.stderr);
}

#[test]
fn what_cannot_be_run_ends_as_in_a_shell() {
    let status = |arguments: &[&str], status: i32, told: &str| {
        let finished = run(arguments);
        assert_eq!(finished.status.code(), Some(status), "{}", finished.stderr);
        assert_eq!(finished.stdout, "");
        assert!(finished.stderr.contains(told), "{}", finished.stderr);
        assert_eq!(finished.stderr.lines().count(), 1, "{}", finished.stderr);
    };
    status(
        &["--", "no-such-program"],
        127,
        "luma: no-such-program: there is no such program in PATH",
    );
    status(
        &["--", "./no/such/file"],
        127,
        "luma: ./no/such/file: there is no such file",
    );
    status(&["--", "/"], 126, "luma: /: cannot be run: ");
    let path = script("run_no_interpreter.sh", "#!/no/such/shell\n");
    status(&["--", &path], 127, "its interpreter");
    let path = super::super::file("run_plain.txt", "no program");
    status(&["--", &path], 126, "cannot be run: ");
}

/// As a shell runs it.
#[test]
fn a_script_without_a_first_line_is_run() {
    let path = script("run_bare.sh", "echo bare\nexit 6\n");
    let finished = run(&["--quiet", &path]);
    assert_eq!(
        (finished.status.code(), &*finished.stdout),
        (Some(6), "bare\n"),
        "{}",
        finished.stderr
    );
}

#[test]
fn input_and_output_are_the_program_s_own() {
    let mut bytes: Vec<u8> = (0..3_000_000_u32)
        .map(|i| (i.wrapping_mul(2_654_435_761) >> 24) as u8)
        .collect();
    bytes.extend(b"\0\xff no line end");
    let mut child = luma_run(&["--quiet", "--", "sh", "-c", "cat; echo problem >&2"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    let sent = bytes.clone();
    let writer = std::thread::spawn(move || input.write_all(&sent).unwrap());
    let (mut out, mut err) = (Vec::new(), String::new());
    child.stdout.take().unwrap().read_to_end(&mut out).unwrap();
    child
        .stderr
        .take()
        .unwrap()
        .read_to_string(&mut err)
        .unwrap();
    writer.join().unwrap();
    assert!(child.wait().unwrap().success());
    assert!(out == bytes, "{} bytes of {}", out.len(), bytes.len());
    assert_eq!(err, "problem\n");
}

#[test]
fn arguments_are_left_alone() {
    let finished = run(&[
        "--quiet", "printf", "%s|", "--quiet", "-x", "a b", "", "--", "*",
    ]);
    assert_eq!(
        finished.stdout, "--quiet|-x|a b||--|*|",
        "{}",
        finished.stderr
    );
}

/// However a program ends, what it did is told.
#[test]
fn every_end_is_reported() {
    if !can_compile() {
        return;
    }
    let pool = program("pool");
    for (how, status) in [
        ("", 0),
        ("_exit", 3),
        ("_Exit", 4),
        ("fork", 0),
        ("vfork", 0),
    ] {
        let (finished, document) = reported(&["--fake"], &[&pool, how]);
        assert_eq!(
            finished.status.code(),
            Some(status),
            "{how}: {}",
            finished.stderr
        );
        let processes = document["processes"].as_array().unwrap();
        let allocs = |process: &serde_json::Value| process["figures"]["alloc_calls"].as_u64();
        let expected = match how {
            // What a forked child has from its parent is not its own.
            "fork" => vec![Some(100), Some(0)],
            // A child of vfork is not told of, and breaks nothing.
            "vfork" => vec![Some(111)],
            _ => vec![Some(100)],
        };
        assert_eq!(
            processes.iter().map(allocs).collect::<Vec<_>>(),
            expected,
            "{how}: {document:#}"
        );
    }
}

/// A handler may end the process in the middle of a call of luma, whose lock it then holds.
#[test]
fn an_end_inside_a_handler_of_a_signal_never_hangs() {
    if !can_compile() {
        return;
    }
    let pool = program("pool");
    for _ in 0..20 {
        let (finished, document) = reported(&["--fake"], &[&pool, "handler"]);
        assert_eq!(finished.status.code(), Some(9), "{}", finished.stderr);
        let pools = &document["processes"][0]["pools"];
        // The figures, or that they could not be had.
        let stats = &pools[0]["stats"];
        assert!(
            stats.is_null() || stats["alloc_calls"].as_u64() >= Some(100),
            "{document:#}"
        );
        let process = &document["processes"][0];
        assert_eq!(
            stats.is_null(),
            process["figures"].is_null(),
            "{document:#}"
        );
    }
}

/// Such a stack has no room for what is written.
#[test]
fn an_end_on_a_small_stack_for_signals_is_an_end() {
    if !can_compile() {
        return;
    }
    let pool = program("pool");
    for how in ["small stack", "small stack first"] {
        let (finished, document) = reported(&["--fake"], &[&pool, how]);
        assert_eq!(
            finished.status.code(),
            Some(9),
            "{how}: {}",
            finished.stderr
        );
        assert_eq!(
            document["processes"].as_array().unwrap().len(),
            1,
            "{how}: {document:#}"
        );
    }
}
