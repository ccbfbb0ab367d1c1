//! What is said when something is missing or wrong.

use super::{run, tools};
use std::fs;

#[test]
fn what_is_missing_is_told_with_what_to_do() {
    let cases: &[(&[&str], i32, &[&str])] = &[
        (
            &["--library", "/no/such.so", "true"],
            125,
            &["luma: /no/such.so: there is no such file to preload"],
        ),
        (
            &["--fake=/no/such", "true"],
            125,
            &[
                "luma: --fake: /no/such has no libcuda.so.1",
                "scripts/fake-driver",
            ],
        ),
        (
            &["--report", "/no/such/report", "true"],
            125,
            &["luma: /no/such/report: the report cannot be written: "],
        ),
        (
            &["--trace", "/no/such/trace", "true"],
            125,
            &["--trace /no/such/trace: there is no folder /no/such"],
        ),
        (
            &["--limit", "much", "true"],
            2,
            &["--limit", "such as 512M or 8G"],
        ),
        (&["--preset", "best", "true"], 2, &["--preset", "luma-0.3"]),
        (&["--fake-memory", "1G", "true"], 2, &["--fake"]),
        (&["--wait", "--off", "true"], 2, &["--off"]),
        (&["--quite", "true"], 2, &["--quite"]),
        (&[], 2, &["PROGRAM"]),
    ];
    for (arguments, status, told) in cases {
        let finished = run(arguments);
        assert_eq!(
            finished.status.code(),
            Some(*status),
            "{arguments:?}: {}",
            finished.stderr
        );
        for told in *told {
            assert!(
                finished.stderr.contains(told),
                "{told}: {}",
                finished.stderr
            );
        }
    }
}

/// A copy of luma with nothing beside it.
#[test]
fn a_lonely_luma_says_what_to_build() {
    let folder = tools::Folder::new("lonely");
    let bin = folder.path().join("bin");
    fs::create_dir(&bin).unwrap();
    let copy = bin.join("luma");
    super::copy_to_run(super::luma(), &copy);
    let said = |arguments: &[&str]| {
        let mut command = tools::command(&copy);
        let finished = tools::run(command.arg("run").args(arguments), super::RUN_TIME);
        assert_eq!(finished.status.code(), Some(125), "{}", finished.stderr);
        finished.stderr
    };
    let text = said(&["true"]);
    assert!(
        text.contains("there is no libluma_interpose.so in "),
        "{text}"
    );
    assert!(text.contains("cargo build -p luma-interpose"), "{text}");

    // Where it is installed it is found.
    let lib = folder.path().join("lib");
    fs::create_dir(&lib).unwrap();
    fs::copy(
        super::luma().with_file_name("libluma_interpose.so"),
        lib.join("libluma_interpose.so"),
    )
    .unwrap();
    let text = said(&["--fake", "true"]);
    assert!(
        text.contains("--fake: there is no libfakecuda.so in "),
        "{text}"
    );
    for double in ["libfakecuda.so", "libfakenvml.so"] {
        let inner = lib.join("luma");
        fs::create_dir_all(&inner).unwrap();
        fs::copy(super::luma().with_file_name(double), inner.join(double)).unwrap();
    }
    let mut command = tools::command(&copy);
    command.args(["run", "--fake", "--quiet", "--", "true"]);
    assert_eq!(tools::succeed(&mut command, super::RUN_TIME), "");
}

/// What happens to the report is no matter of the program's.
#[test]
fn a_report_that_fails_at_the_end_leaves_the_exit_status() {
    let finished = run(&["--report", "/dev/full", "--", "sh", "-c", "exit 3"]);
    assert_eq!(finished.status.code(), Some(3), "{}", finished.stderr);
    let told = "luma: /dev/full: the report cannot be written: ";
    assert!(finished.stderr.starts_with(told), "{}", finished.stderr);
}

/// Nor is what happens to the message.
#[test]
fn standard_error_that_is_full_leaves_the_exit_status() {
    let full = |arguments: &[&str]| {
        let mut command = super::luma_run(arguments);
        command.stderr(fs::File::options().write(true).open("/dev/full").unwrap());
        command.status().unwrap().code()
    };
    let program = ["--report", "/dev/full", "--", "sh", "-c", "exit 3"];
    assert_eq!(full(&program), Some(3));
    assert_eq!(full(&["--", "sh", "-c", "exit 4"]), Some(4));
    assert_eq!(full(&["no-such-program"]), Some(127));
    assert_eq!(full(&["--library", "/no/such.so", "true"]), Some(125));
}
