//! Why a program's memory did not come from luma.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use libloading::Library;

use super::file::{self, Kind};
use super::processes::Processes;
use super::start;
use super::wait::Ending;

/// What is known when the program has ended.
pub struct Findings<'a> {
    pub command: &'a [OsString],
    pub pid: u32,
    pub ending: Ending,
    pub processes: &'a Processes,
    /// What was preloaded.
    pub library: &'a Path,
    pub is_off: bool,
    pub is_fake: bool,
}

/// The driver's name for the loader.
const DRIVER: &str = "libcuda.so.1";

/// A script of a script of a script: the kernel follows no more.
const MOST_INTERPRETERS: usize = 5;

/// The reasons, each with what to do; none where a process was served.
pub fn not(findings: &Findings<'_>) -> Vec<String> {
    let processes = findings.processes;
    let mut reasons = Vec::new();
    for pid in &processes.unended {
        reasons.push(unended(*pid, processes.get(*pid).is_some()));
    }
    let is_served = processes.ended.iter().any(|process| process.is_served());
    // The variable may have been there before luma.
    let ended = &processes.ended;
    let is_off = !ended.is_empty() && ended.iter().all(|process| process.mode == "off");
    if is_served || findings.is_off || is_off || !reasons.is_empty() {
        return reasons;
    }
    if processes.get(findings.pid).is_none() {
        reasons.push(not_loaded(findings));
    }
    if !processes.ended.is_empty() {
        reasons.extend(not_called(findings));
    }
    reasons
}

fn unended(pid: u32, came_back: bool) -> String {
    if came_back {
        format!(
            "process {pid} used luma and then became another program (exec): what it did before is not in this \
             report"
        )
    } else {
        format!(
            "process {pid} used luma and left no report: it still runs, was killed, became another user's, or \
             ended past exit and _exit, as programs in Go do"
        )
    }
}

/// Why the library was never in the program.
fn not_loaded(findings: &Findings<'_>) -> String {
    // sudo is set-user-ID, and a copy of it would be of no use.
    if clears_environment(findings.command) {
        return format!(
            "{} gave the program another environment, without LD_PRELOAD: put luma run behind it, as in \
             env -i PATH=\"$PATH\" luma run -- PROGRAM",
            findings.command[0].to_string_lossy()
        );
    }
    let Some(mut path) = findings.command.first().and_then(|name| start::find(name)) else {
        return "luma was not loaded, and the program's file cannot be found any more".into();
    };
    let mut through = String::new();
    for _ in 0..MOST_INTERPRETERS {
        let Some(Kind::Script {
            interpreter,
            argument,
        }) = file::kind(&path)
        else {
            break;
        };
        let interpreter = asked_of_env(&interpreter, argument.as_deref()).unwrap_or(interpreter);
        through = format!(", which runs {},", findings.command[0].to_string_lossy());
        path = interpreter;
    }
    let file = format!("{}{through}", path.display());
    if let Some(reason) = impossible(&path, &file, findings.library) {
        return reason;
    }
    match findings.ending {
        Ending::Signal(signal) => format!(
            "the program was ended by signal {signal} before it used CUDA, or before it could say so"
        ),
        Ending::Exited(_) => format!(
            "{file} left no report: its environment was cleared on the way (as sudo and env -i do), it became \
             another program that cannot be preloaded, or another user's, or it ended past exit and _exit, as \
             programs in Go, quick_exit and daemon do"
        ),
    }
}

/// What `/usr/bin/env NAME` in the first line of a script runs.
fn asked_of_env(interpreter: &Path, argument: Option<&str>) -> Option<PathBuf> {
    if interpreter.file_name() != Some(OsStr::new("env")) {
        return None;
    }
    let mut words = argument?.split_whitespace();
    let name = words.find(|word| !word.starts_with('-') && !word.contains('='))?;
    start::find(OsStr::new(name))
}

/// Why no library can be preloaded into a file, if that is so.
fn impossible(path: &Path, file: &str, library: &Path) -> Option<String> {
    if let Some(privilege) = file::privilege(path) {
        return Some(format!(
            "{file} is {privilege}: the loader ignores LD_PRELOAD for it. Run a copy without that"
        ));
    }
    let Kind::Elf { machine, loader } = file::kind(path)? else {
        return None;
    };
    let Some(loader) = loader else {
        return Some(format!(
            "{file} is statically linked: nothing can be preloaded into it. Link it dynamically"
        ));
    };
    if let Some(Kind::Elf { machine: own, .. }) = file::kind(library) {
        if own != machine {
            return Some(format!(
                "{file} is for another machine than luma ({} bits, architecture {}): build luma for it",
                if machine.is_64 { 64 } else { 32 },
                machine.architecture
            ));
        }
    }
    let name = loader.file_name().unwrap_or_default().to_string_lossy();
    if name.contains("musl") {
        return Some(format!(
            "{file} is of another C library than luma (its loader is {}, and luma needs glibc's)",
            loader.display()
        ));
    }
    None
}

/// Whether the command is known to start programs with another environment.
fn clears_environment(command: &[OsString]) -> bool {
    let [program, arguments @ ..] = command else {
        return false;
    };
    let name = Path::new(program).file_name().unwrap_or(program);
    match name.to_str() {
        Some("env") => arguments
            .iter()
            .take_while(|argument| argument.as_encoded_bytes().starts_with(b"-"))
            .any(|argument| {
                argument == "-" || argument == "-i" || argument == "--ignore-environment"
            }),
        Some("sudo" | "su" | "doas" | "runuser" | "pkexec") => true,
        _ => false,
    }
}

/// Why the library was there and no function of it was called.
fn not_called(findings: &Findings<'_>) -> Vec<String> {
    let mut reasons = Vec::new();
    let processes = &findings.processes.ended;
    let mut passed: Vec<&str> = processes
        .iter()
        .flat_map(|process| process.deepbind.iter().map(String::as_str))
        .collect();
    passed.sort_unstable();
    passed.dedup();
    if !passed.is_empty() {
        reasons.push(format!(
            "opened with RTLD_DEEPBIND, so that calls may pass luma by: {}. Try --strip-deepbind",
            passed.join(", ")
        ));
    }
    let loaded = processes.iter().find_map(|process| process.driver.as_ref());
    if processes.iter().any(|process| process.reached) {
        reasons.push(match std::env::var("LUMA_BACKEND").as_deref() {
            Ok("host") => {
                "LUMA_BACKEND=host is set, with which luma has no memory of a device: unset it"
                    .into()
            }
            _ => "the program asked the driver for memory through luma, and got none from the pool"
                .into(),
        });
    } else if processes.iter().any(|process| process.looked_up) {
        reasons.push("the program looked the driver's functions up, and allocated nothing".into());
    } else if let Some(driver) = loaded {
        reasons.push(format!(
            "the driver was loaded ({driver}), and none of its functions that allocate was called through luma"
        ));
    } else {
        let asked = processes.iter().any(|process| process.driver_asked);
        reasons.push(never_asked(asked, findings.is_fake));
    }
    reasons
}

fn never_asked(was_asked: bool, is_fake: bool) -> String {
    let mut reason = if was_asked {
        format!("the program asked for {DRIVER}, and the loader did not find it")
    } else {
        "the program used no CUDA: the driver was never loaded".to_owned()
    };
    if !is_fake {
        if let Err(missing) = driver() {
            if !was_asked {
                reason += &format!(". There is no driver here either: {missing}");
            }
            reason += ". luma run --fake runs programs without a GPU";
        }
    }
    reason
}

/// Whether there is a driver for a program of luma's environment.
fn driver() -> Result<(), String> {
    // The program's process would have run the same initialisers.
    // SAFETY: loading the driver, by the name by which every CUDA program does.
    match unsafe { Library::new(DRIVER) } {
        Ok(library) => {
            // It may have threads by now.
            std::mem::forget(library);
            Ok(())
        }
        Err(error) => Err(error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_that_clear_the_environment_are_known() {
        let clears = |line: &str| {
            let words: Vec<OsString> = line.split(' ').map(OsString::from).collect();
            clears_environment(&words)
        };
        for line in [
            "env -i ./a",
            "/usr/bin/env - ./a",
            "env -S -i ./a",
            "sudo ./a",
            "/bin/su me",
        ] {
            assert!(clears(line), "{line}");
        }
        for line in ["env ./a -i", "env A=1 ./a", "./a", "./envy -i"] {
            assert!(!clears(line), "{line}");
        }
    }

    #[test]
    fn what_env_runs_is_found() {
        let env = Path::new("/usr/bin/env");
        let shell = start::find(OsStr::new("sh"));
        assert!(shell.is_some());
        assert_eq!(asked_of_env(env, Some("sh")), shell);
        assert_eq!(asked_of_env(env, Some("-S A=1 sh -e")), shell);
        assert_eq!(asked_of_env(env, None), None);
        assert_eq!(asked_of_env(Path::new("/bin/sh"), Some("sh")), None);
    }

    /// This test's own program, with a part of its bytes changed.
    fn changed(name: &str, change: impl FnOnce(&mut Vec<u8>)) -> PathBuf {
        let mut bytes = std::fs::read(std::env::current_exe().unwrap()).unwrap();
        change(&mut bytes);
        let path = std::env::temp_dir().join(format!("luma-why.{}.{name}", std::process::id()));
        std::fs::write(&path, bytes).unwrap();
        path
    }

    #[test]
    fn what_is_made_for_something_else_is_told() {
        let own = std::env::current_exe().unwrap();
        assert_eq!(impossible(&own, "FILE", &own), None);
        let reason = |path: &Path| {
            let reason = impossible(path, "FILE", &own);
            std::fs::remove_file(path).unwrap();
            reason.unwrap()
        };

        let Some(Kind::Elf {
            loader: Some(loader),
            ..
        }) = file::kind(&own)
        else {
            panic!("{own:?}");
        };
        let loader = loader.as_os_str().as_encoded_bytes();
        let mut musl = b"/lib/ld-musl.so.1".to_vec();
        musl.resize(loader.len(), 0);
        let other = changed("musl", |bytes| {
            let at = bytes.windows(loader.len()).position(|part| part == loader);
            bytes[at.unwrap()..][..musl.len()].copy_from_slice(&musl);
        });
        assert_eq!(
            reason(&other),
            "FILE is of another C library than luma (its loader is /lib/ld-musl.so.1, and luma needs glibc's)"
        );

        // The two bytes of the architecture follow the identification and the type.
        let other = changed("architecture", |bytes| bytes[18] ^= 0x55);
        assert!(
            reason(&other)
                .starts_with("FILE is for another machine than luma (64 bits, architecture ")
        );
    }
}
