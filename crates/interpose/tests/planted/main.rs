//! The late mode of the driver double finds memory that is handed out too early: in every run, each of the bugs
//! below, planted in a copy of the pool, corrupts what a program wrote, and without a bug nothing is corrupted.

#[allow(dead_code)]
#[path = "../../../../tests/support/tools.rs"]
mod tools;

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tools::{BUILD_TIME, Finished};

const RUN_TIME: Duration = Duration::from_secs(60);
/// The late mode leaves to the seed how often a question must be asked, and who runs first.
const SEEDS: &[&str] = &["0", "1", "2", "3"];

/// What the program takes for its argument.
const KINDS: &[&str] = &[
    "small-unordered",
    "large-unordered",
    "small-ordered",
    "large-ordered",
];

/// A bug: a text of the source, which it has once, and what takes its place.
struct Bug {
    name: &'static str,
    file: &'static str,
    text: &'static str,
    planted: &'static str,
    /// The kinds of memory that are corrupted in every run.
    kinds: &'static [&'static str],
}

const BUGS: &[Bug] = &[
    // What `cuMemFree` frees is anyone's at once.
    Bug {
        name: "no-event",
        file: "src/pool/unordered.rs",
        text: "open.streams.push_row(slot, number, chunk, block.size);",
        planted: "let _ = number; open.engine.end_free(chunk, ANYONE, 0);",
        kinds: &["small-unordered", "large-unordered"],
    },
    // The event for everything that was freed counts as done once it is recorded.
    Bug {
        name: "unasked-barrier",
        file: "src/pool/unordered.rs",
        text: "covered => covered.unwrap_or(Covered::Not),",
        planted: "Ok(_) => Covered::Done,\n                Err(_) => Covered::Not,",
        kinds: &["small-unordered", "large-unordered"],
    },
    // What is freed in the order of a stream is listed for all streams before its event is done.
    Bug {
        name: "listed-before-event",
        file: "src/stream/table.rs",
        text: "engine.end_free(chunk, slot.lane, number);",
        planted: "engine.end_free(chunk, ANYONE, 0);",
        kinds: &["small-ordered", "large-ordered"],
    },
    // It waits for the event of the free before it.
    Bug {
        name: "earlier-event",
        file: "src/pool/ordered.rs",
        text: "            slot,\n            number,\n            is_used",
        planted: "            slot,\n            number.saturating_sub(1),\n            is_used",
        kinds: &["large-ordered"],
    },
];

fn root() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}

/// Writes a file unless it is so already: what did not change is not compiled again.
fn write(path: &Path, text: &str) {
    if fs::read_to_string(path).is_ok_and(|before| before == text) {
        return;
    }
    let folder = path.parent().expect("a file lies in a folder");
    fs::create_dir_all(folder).expect("a folder can be made");
    fs::write(path, text).expect("a file can be written");
}

fn copy(from: &Path, to: &Path) {
    for entry in fs::read_dir(from).expect("the sources can be read") {
        let path = entry.expect("the sources can be read").path();
        let to = to.join(path.file_name().expect("a file has a name"));
        if path.is_dir() {
            copy(&path, &to);
        } else {
            write(&to, &fs::read_to_string(&path).expect("a source is text"));
        }
    }
}

/// The workspace again, with the library's sources as a copy of their own.
fn copied(folder: &Path) {
    fs::create_dir_all(folder).expect("a folder can be made");
    let root = fs::canonicalize(root()).expect("the workspace is there");
    for entry in fs::read_dir(&root).expect("the workspace can be read") {
        let path = entry.expect("the workspace can be read").path();
        let name = path.file_name().expect("a file has a name");
        let link = folder.join(name);
        let is_left_out = name == "src" || name == "target" || path == folder;
        if !is_left_out && fs::symlink_metadata(&link).is_err() {
            symlink(&path, &link).expect("a link can be made");
        }
    }
    copy(&root.join("src"), &folder.join("src"));
}

impl Bug {
    /// The library with the bug.
    fn library(&self) -> PathBuf {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("planted");
        let sources = folder.join(self.name);
        copied(&sources);
        let original = fs::read_to_string(root().join(self.file)).expect("the source is there");
        assert_eq!(
            original.matches(self.text).count(),
            1,
            "{} no longer has what the bug {} takes the place of; plant it elsewhere:\n{}",
            self.file,
            self.name,
            self.text
        );
        let planted = original.replace(self.text, self.planted);
        write(&sources.join(self.file), &planted);
        let target = folder.join(format!("{}-target", self.name));
        let mut cargo = tools::command(env!("CARGO"));
        cargo
            .args(["build", "--quiet", "--locked", "--offline"])
            .args(["-p", "luma-interpose", "--target-dir"])
            .arg(&target)
            .current_dir(&sources)
            .env("CARGO_PROFILE_DEV_DEBUG", "0")
            .env("CARGO_INCREMENTAL", "0");
        tools::succeed(&mut cargo, BUILD_TIME);
        target.join("debug/libluma_interpose.so")
    }
}

/// The folder with the driver double.
fn driver() -> PathBuf {
    let double = tools::built_packages(&["fakecuda"]).join("libfakecuda.so");
    let links = ["libcuda.so.1", "libcuda.so"].map(|name| (name, double.clone()));
    tools::folder_of_links("driver", &links)
}

/// The program, compiled. `None`: there is no compiler, which was said.
fn program(folder: &Path) -> Option<PathBuf> {
    if !tools::available(&["cc"]) {
        return None;
    }
    let program = folder.join("late");
    let mut compiler = tools::command("cc");
    compiler
        .args(["-std=c11", "-O1", "-Wall", "-Wextra", "-Werror"])
        .arg(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/planted/late.c"))
        .arg("-o")
        .arg(&program)
        .arg("-L")
        .arg(driver())
        .arg("-lcuda");
    tools::succeed(&mut compiler, BUILD_TIME);
    Some(program)
}

fn run(program: &Path, kind: &str, library: &Path, seed: &str) -> Finished {
    let mut command = tools::command(program);
    command
        .arg(kind)
        .env("LD_LIBRARY_PATH", driver())
        .env("LD_PRELOAD", library)
        .env("FAKECUDA_EXEC", "lazy")
        .env("FAKECUDA_SEED", seed);
    tools::run(&mut command, RUN_TIME)
}

#[test]
fn nothing_is_corrupted() {
    let folder = tools::Folder::new("intact");
    let Some(program) = program(folder.path()) else {
        return;
    };
    let library = tools::built_packages(&["luma-interpose"]).join("libluma_interpose.so");
    for kind in KINDS {
        for seed in SEEDS {
            let finished = run(&program, kind, &library, seed);
            assert!(
                finished.status.success() && finished.stdout == "intact\n",
                "{kind}, seed {seed}: {}\n{}{}",
                finished.status,
                finished.stdout,
                finished.stderr
            );
        }
    }
}

#[test]
fn planted_bugs_are_found_in_every_run() {
    let folder = tools::Folder::new("planted-program");
    let Some(program) = program(folder.path()) else {
        return;
    };
    for bug in BUGS {
        let library = bug.library();
        for kind in bug.kinds {
            for seed in SEEDS {
                let finished = run(&program, kind, &library, seed);
                assert!(
                    finished.status.code() == Some(1) && finished.stdout.starts_with("corrupt"),
                    "{} is not found in {kind} memory with seed {seed}: {}\n{}{}",
                    bug.name,
                    finished.status,
                    finished.stdout,
                    finished.stderr
                );
            }
        }
    }
}
