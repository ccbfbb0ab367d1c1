//! Programs that have nothing to do with CUDA.

use crate::support::{Run, library, shared, tools};
use std::time::{Duration, Instant};

const COMMANDS: &[(&str, &[&str])] = &[
    ("true", &[]),
    ("ls", &["/"]),
    (
        "bash",
        &[
            "-c",
            "echo text; cd /; for i in 1 2 3; do (exit $i) || echo $?; done; ls | head -n 1",
        ],
    ),
    ("sh", &["-c", "echo text >&2; exit 3"]),
    (
        "python3",
        &[
            "-c",
            "import sys, ctypes, threading; print(sys.argv, ctypes.CDLL(None).getpid() > 0)",
        ],
    ),
    ("cc", &["--version"]),
];

/// The command, with a driver in reach that says so when it is opened.
fn near_driver(program: &str, args: &[&str], folder: &tools::Folder) -> Run {
    let run = args
        .iter()
        .fold(Run::new(program), |run, arg| run.arg(*arg));
    run.search(folder.path())
}

// pitfall 14
#[test]
fn they_write_and_end_as_without_and_open_no_driver() {
    if !tools::available(&["cc"]) {
        return;
    }
    let folder = tools::Folder::new("opened");
    let driver = shared("opened.c", &["-Wl,-soname,libcuda.so.1"]);
    std::fs::copy(driver, folder.path().join("libcuda.so.1")).expect("a library can be copied");
    for (program, args) in COMMANDS {
        if !tools::installed(program) {
            continue;
        }
        let plain = near_driver(program, args, &folder).finish();
        let hooked = near_driver(program, args, &folder).hooked().finish();
        assert_eq!(plain.stdout, hooked.stdout, "{program}");
        assert_eq!(plain.stderr, hooked.stderr, "{program}");
        assert_eq!(plain.status, hooked.status, "{program}");
    }
    // The driver does tell.
    let open = near_driver(
        "python3",
        &["-c", "import ctypes; ctypes.CDLL('libcuda.so.1')"],
        &folder,
    );
    if tools::installed("python3") {
        assert_eq!(open.hooked().finish().stderr, "the driver was opened\n");
    }
}

// pitfall 13
// pitfall 14
#[test]
fn they_start_where_there_is_no_driver() {
    for (program, args) in COMMANDS {
        if tools::installed(program) {
            let run = || {
                args.iter()
                    .fold(Run::new(program), |run, arg| run.arg(*arg))
            };
            let (plain, hooked) = (run().finish(), run().hooked().finish());
            assert_eq!(plain.stdout, hooked.stdout, "{program}");
            assert_eq!(plain.stderr, hooked.stderr, "{program}");
            assert_eq!(plain.status, hooked.status, "{program}");
        }
    }
}

// pitfall 14
/// Prints what a start takes with and without the library; with `--nocapture` one sees it.
#[test]
fn a_start_is_measured() {
    const RUNS: u32 = 40;
    let mut times = [Duration::MAX; 2];
    for _ in 0..RUNS {
        for (time, hooked) in times.iter_mut().zip([false, true]) {
            let run = Run::new("true");
            let mut command = if hooked { run.hooked() } else { run }.command();
            let start = Instant::now();
            let status = command.status().expect("true can be run");
            *time = start.elapsed().min(*time);
            assert!(status.success());
        }
    }
    let [plain, hooked] = times;
    println!(
        "a start of true: {plain:?} without {}, {hooked:?} with it",
        library().display()
    );
}
