//! Running the tools that are not cargo's: compilers, CMake, and the programs made with them.

use std::{
    ffi::OsStr,
    fs::{self, File},
    io::Write,
    os::unix::process::CommandExt,
    path::{Path, PathBuf},
    process::{Command, ExitStatus, Stdio},
    sync::{
        Once,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

/// Long enough for an optimised build of the library on a slow machine.
pub const BUILD_TIME: Duration = Duration::from_secs(900);

/// Environment that would make a test's outcome depend on the shell it was started from, or on
/// cargo, which points `LD_LIBRARY_PATH` at its own copies of the library.
const NOT_INHERITED: &[&str] = &[
    "CARGO_BUILD_TARGET",
    "CARGO_TARGET_DIR",
    "CMAKE_GENERATOR",
    "CMAKE_PREFIX_PATH",
    "DESTDIR",
    "LD_LIBRARY_PATH",
    "LD_PRELOAD",
    "PKG_CONFIG_PATH",
    "PKG_CONFIG_LIBDIR",
    "PKG_CONFIG_SYSROOT_DIR",
];

/// Whether all of `tools` are installed. Where one is missing this says so past the test harness's
/// capture, and with `LUMA_TEST_REQUIRE_TOOLS=1` it fails the test.
#[must_use]
pub fn available(tools: &[&str]) -> bool {
    let missing: Vec<&str> = tools
        .iter()
        .copied()
        .filter(|tool| !installed(tool))
        .collect();
    if missing.is_empty() {
        return true;
    }
    let thread = std::thread::current();
    let test = thread.name().unwrap_or("a test");
    skipped(test, &format!("not installed: {}", missing.join(", ")));
    false
}

/// Says that a test is skipped, past the test harness's capture; with `LUMA_TEST_REQUIRE_TOOLS=1` that is
/// a failure.
pub fn skipped(test: &str, why: &str) {
    let message = format!("SKIPPED: {test}: {why}\n");
    assert!(
        std::env::var_os("LUMA_TEST_REQUIRE_TOOLS").is_none_or(|value| value != "1"),
        "{message}"
    );
    // Not eprintln!, which the harness keeps to itself when the test passes.
    std::io::stderr()
        .write_all(message.as_bytes())
        .expect("stderr can be written to");
}

/// Whether `tool` is on the search path.
#[must_use]
pub fn installed(tool: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join(tool).is_file())
}

/// A command that inherits only what does not change its outcome.
#[must_use]
pub fn command(program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new(program);
    for (name, _) in std::env::vars_os() {
        let text = name.to_string_lossy();
        if NOT_INHERITED.contains(&text.as_ref()) || text.starts_with("LUMA_") {
            command.env_remove(&name);
        }
    }
    command
}

/// `<target>/<profile>`, with the libraries of other packages of the workspace in it as the sources are
/// now. Cargo does not build them for a test by itself.
#[must_use]
pub fn built_packages(packages: &[&str]) -> PathBuf {
    // A test lies in <target>/<profile>/deps.
    let test = std::env::current_exe().expect("a test knows its own path");
    let profile = test.ancestors().nth(2).expect("a test lies in a folder");
    let mut build = Command::new(env!("CARGO"));
    build
        .args(["build", "--quiet", "--locked"])
        .args(packages.iter().flat_map(|package| ["-p", package]))
        .arg("--target-dir")
        .arg(profile.parent().expect("a profile lies in a folder"))
        .current_dir(env!("CARGO_MANIFEST_DIR"));
    if profile.ends_with("release") {
        build.arg("--release");
    }
    succeed(&mut build, BUILD_TIME);
    profile.to_owned()
}

/// A folder under cargo's for tests with a link of each name, for all test processes: each puts the links
/// there in one step.
#[must_use]
pub fn folder_of_links(folder: &str, links: &[(&str, PathBuf)]) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(folder);
    fs::create_dir_all(&folder).expect("a folder for links can be made");
    for (name, target) in links {
        let link = folder.join(format!("{name}.{}", std::process::id()));
        let _ = fs::remove_file(&link);
        std::os::unix::fs::symlink(target, &link).expect("a link can be made");
        fs::rename(&link, folder.join(name)).expect("a link can be put in place");
    }
    folder
}

/// How a command ended, and what it wrote.
pub struct Finished {
    pub status: ExitStatus,
    pub stdout: String,
    pub stderr: String,
}

/// Runs `command` and returns its standard output; it must succeed within `limit`.
pub fn succeed(command: &mut Command, limit: Duration) -> String {
    let finished = run(command, limit);
    assert!(
        finished.status.success(),
        "{command:?}\n{}\n{}{}",
        finished.status,
        finished.stdout,
        finished.stderr
    );
    finished.stdout
}

/// Runs `command` to its end, which must come within `limit`; past it, the command and what it
/// started are killed and the test fails.
pub fn run(command: &mut Command, limit: Duration) -> Finished {
    // Files take any amount of output without a thread that reads it.
    let folder = Folder::new("run");
    let (out, err) = (folder.path().join("stdout"), folder.path().join("stderr"));
    let create = |path: &Path| File::create(path).expect("the test folder can be written to");
    let mut child = command
        .stdin(Stdio::null())
        .stdout(create(&out))
        .stderr(create(&err))
        .process_group(0)
        .spawn()
        .unwrap_or_else(|error| panic!("{command:?} cannot be started: {error}"));
    let read = |path: &Path| {
        String::from_utf8_lossy(&fs::read(path).expect("the output can be read")).into_owned()
    };

    let start = Instant::now();
    let mut pause = Duration::from_millis(1);
    loop {
        if let Some(status) = child.try_wait().expect("a child can be waited for") {
            return Finished {
                status,
                stdout: read(&out),
                stderr: read(&err),
            };
        }
        if start.elapsed() > limit {
            let group = format!("kill -s KILL -- -{}", child.id());
            let killed = Command::new("sh").args(["-c", &group]).status();
            let _ = child.wait();
            panic!(
                "{command:?} did not end within {limit:?} (killed: {killed:?})\n{}{}",
                read(&out),
                read(&err)
            );
        }
        std::thread::sleep(pause);
        pause = (pause * 2).min(Duration::from_millis(50));
    }
}

/// A folder under cargo's for tests, of this process alone. It goes when dropped, unless the test
/// failed and somebody will want to look; then it goes when tests are run the next time.
pub struct Folder(PathBuf);

impl Folder {
    #[must_use]
    pub fn new(purpose: &str) -> Folder {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        static SWEPT: Once = Once::new();
        let top = Path::new(env!("CARGO_TARGET_TMPDIR"));
        SWEPT.call_once(|| sweep(top));
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = top.join(format!("{purpose}.{}.{number}", std::process::id()));
        fs::create_dir_all(&path).expect("a folder for the test can be made");
        Folder(path)
    }

    #[must_use]
    pub fn path(&self) -> &Path {
        &self.0
    }
}

/// Removes the folders of processes that are gone, or had the id that this one has.
fn sweep(top: &Path) {
    let own = std::process::id();
    for entry in fs::read_dir(top).into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let mut parts = name.rsplit('.');
        let (Some(Ok(_)), Some(Ok(process)), Some(_)) = (
            parts.next().map(str::parse::<usize>),
            parts.next().map(str::parse::<u32>),
            parts.next(),
        ) else {
            continue;
        };
        if process == own || !Path::new("/proc").join(process.to_string()).exists() {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            let _ = fs::remove_dir_all(&self.0);
        }
    }
}
