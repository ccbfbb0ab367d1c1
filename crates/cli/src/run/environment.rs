//! What the environment of the program says.

use std::env;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use clap::ValueEnum;
use luma::config::Settings;

use super::places::LIBRARY;
use super::{Arguments, Ipc};

/// A variable and its value.
pub type Variable = (&'static str, OsString);

/// The folder in which processes leave what they did.
pub const REPORT: &str = "LUMA_INTERPOSE_REPORT";

/// Checks a limit as the library will, and leaves it as it was written.
pub fn limit(text: &str) -> Result<String, String> {
    let (_, problems) = Settings::read(|name| (name == "LUMA_MEMORY_LIMIT").then(|| text.into()));
    if problems.is_empty() {
        Ok(text.to_owned())
    } else {
        Err("a size is needed, such as 512M or 8G, or a part of the device, such as 80%".into())
    }
}

/// The variables that are set for the program. All others are as luma has them.
pub fn variables(
    arguments: &Arguments,
    library: &Path,
    driver: Option<&Path>,
    reports: &Path,
) -> Result<Vec<Variable>> {
    let mut variables = vec![("LD_PRELOAD", preloaded(library)), (REPORT, reports.into())];
    let mut set = |name, value: &OsStr| variables.push((name, value.to_owned()));
    if arguments.off {
        set("LUMA_INTERPOSE", "off".as_ref());
    } else if arguments.wait {
        set("LUMA_INTERPOSE", "wait".as_ref());
    }
    if let Some(limit) = &arguments.limit {
        set("LUMA_MEMORY_LIMIT", limit.as_ref());
    }
    if let Some(preset) = arguments
        .preset
        .and_then(|preset| preset.to_possible_value())
    {
        set("LUMA_PRESET", preset.get_name().as_ref());
    }
    if let Some(trace) = &arguments.trace {
        set("LUMA_TRACE", from_here(trace)?.as_os_str());
    }
    if let Some(ipc) = arguments.ipc {
        let value = match ipc {
            Ipc::Share => "share",
            Ipc::Own => "own",
        };
        set("LUMA_INTERPOSE_IPC", value.as_ref());
    }
    if arguments.strip_deepbind {
        set("LUMA_INTERPOSE_DEEPBIND", "strip".as_ref());
    }
    if let Some(memory) = &arguments.fake_memory {
        set("FAKECUDA_MEM", memory.as_ref());
    }
    if let Some(driver) = driver {
        set("LD_LIBRARY_PATH", &in_front(driver, "LD_LIBRARY_PATH"));
    }
    Ok(variables)
}

/// A list of paths with one more in front of what the variable holds.
fn in_front(path: &Path, variable: &str) -> OsString {
    let mut list = path.as_os_str().to_owned();
    if let Some(rest) = env::var_os(variable).filter(|rest| !rest.is_empty()) {
        list.push(":");
        list.push(rest);
    }
    list
}

/// What is preloaded: the library in front of what was before. Of luma's there is one, for another one would stand
/// before the driver that the first takes its memory from: a run in a run has that of the inner one.
fn preloaded(library: &Path) -> OsString {
    let before = env::var_os("LD_PRELOAD").unwrap_or_default();
    let mut list = library.as_os_str().to_owned();
    let words = before
        .as_bytes()
        .split(|&byte| byte == b':' || byte == b' ');
    for word in words.filter(|word| !word.is_empty()) {
        let word = OsStr::from_bytes(word);
        if Path::new(word).file_name() != Some(LIBRARY.as_ref()) {
            list.push(":");
            list.push(word);
        }
    }
    list
}

/// The path from the root on: a program may change to another folder before it opens the file. That it can be
/// made is seen now.
fn from_here(trace: &Path) -> Result<PathBuf> {
    let path = std::path::absolute(trace).with_context(|| trace.display().to_string())?;
    let folder = path.parent().unwrap_or(&path);
    if !folder.is_dir() {
        bail!(
            "--trace {}: there is no folder {}",
            trace.display(),
            folder.display()
        );
    }
    Ok(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_is_checked_and_kept() {
        for good in ["0", "512M", "8G", "80%"] {
            assert_eq!(limit(good).as_deref(), Ok(good));
        }
        for bad in ["", "much", "-1", "0%", "120%", "8X"] {
            assert!(limit(bad).is_err(), "{bad}");
        }
    }
}
