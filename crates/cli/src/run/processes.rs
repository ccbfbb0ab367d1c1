//! What the processes of a run left: the files of the preloaded library.

use std::ffi::OsStr;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Letters of a command line that are shown.
const LONGEST_LINE: usize = 200;

/// A process that ended.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Process {
    pub pid: u32,
    pub parent: u32,
    pub executable: String,
    pub arguments: Vec<String>,
    /// Whether there was room for all of them.
    pub arguments_complete: bool,
    /// `LUMA_INTERPOSE`.
    pub mode: String,
    /// The file of the driver, if the process loaded one.
    pub driver: Option<String>,
    /// Whether it asked the loader for the driver by name.
    pub driver_asked: bool,
    /// Whether a look-up was answered with a function of luma's.
    pub looked_up: bool,
    /// Whether one was called that gives memory.
    pub reached: bool,
    pub ordered_alloc_calls: u64,
    pub ordered_free_calls: u64,
    /// Libraries that were opened with `RTLD_DEEPBIND`.
    pub deepbind: Vec<String>,
    pub pools: Vec<Pool>,
}

/// A default pool of a process.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Pool {
    pub device: u64,
    /// Whether it is that of the device's primary context.
    pub primary: bool,
    #[serde(default)]
    pub backend: Option<String>,
    /// Calls of the driver that brought memory, and how long they took.
    #[serde(default)]
    pub grants: u64,
    #[serde(default)]
    pub grant_ns: u64,
    /// Calls of the driver that gave memory back.
    #[serde(default)]
    pub returns: u64,
    #[serde(default)]
    pub return_ns: u64,
    /// The fields of `luma_stats_t`; `None`: the pool was in use when the process ended.
    pub stats: Option<Map<String, Value>>,
}

impl Pool {
    /// A field of `luma_stats_t`.
    pub fn field(&self, name: &str) -> u64 {
        let value = self.stats.as_ref().and_then(|stats| stats.get(name));
        value.and_then(Value::as_u64).unwrap_or(0)
    }

    pub fn is_used(&self) -> bool {
        self.stats.is_none() || self.field("alloc_calls") > 0
    }
}

impl Process {
    /// Whether its device memory came from luma.
    pub fn is_served(&self) -> bool {
        self.pools.iter().any(Pool::is_used)
    }

    /// Whether it is known of all its pools what they did.
    pub fn is_known(&self) -> bool {
        self.pools.iter().all(|pool| pool.stats.is_some())
    }

    /// The command line on one line of a terminal, and no more of it than tells the process from others.
    pub fn told(&self) -> String {
        let line = if self.arguments.is_empty() {
            self.executable.clone()
        } else {
            self.arguments.join(" ")
        };
        let mut told = String::new();
        for (at, letter) in line.chars().enumerate() {
            if at == LONGEST_LINE {
                return told + "...";
            }
            // A line end, or what a terminal would obey.
            told.push(if letter.is_control() { ' ' } else { letter });
        }
        told
    }
}

/// All processes.
#[derive(Debug, Default)]
pub struct Processes {
    /// Those that said at their end what they had done, by their numbers.
    pub ended: Vec<Process>,
    /// The numbers of those that began to use luma, and had not ended by themselves.
    pub unended: Vec<u32>,
}

impl Processes {
    pub fn get(&self, pid: u32) -> Option<&Process> {
        self.ended.iter().find(|process| process.pid == pid)
    }
}

/// Copies what the processes left to a folder in which somebody else wants it: another `luma run`, about this one,
/// or whoever set `LUMA_INTERPOSE_REPORT` before. As the processes do, it leaves out what fails.
pub fn hand_on(reports: &Path, wanted: &Path) {
    for entry in fs::read_dir(reports).into_iter().flatten().flatten() {
        let copy = wanted.join(entry.file_name());
        let unready = copy.with_extension("unready");
        if fs::copy(entry.path(), &unready).is_ok() {
            let _ = fs::rename(&unready, &copy);
        }
    }
}

/// Reads what is there by now.
pub fn read(folder: &Path) -> Result<Processes> {
    let mut processes = Processes::default();
    let told = || format!("{}: the folder of reports", folder.display());
    for entry in fs::read_dir(folder).with_context(told)? {
        let path = entry.with_context(told)?.path();
        let number = path.file_stem().and_then(OsStr::to_str);
        let number = number.and_then(|stem| stem.parse().ok());
        match (path.extension().and_then(OsStr::to_str), number) {
            (Some("begun" | "replaced"), Some(number)) => processes.unended.push(number),
            (Some("json"), Some(_)) => {
                let told = || path.display().to_string();
                let text = fs::read(&path).with_context(told)?;
                let process = serde_json::from_slice(&text).with_context(|| {
                    format!("{}: not a report of this version of luma", path.display())
                })?;
                processes.ended.push(process);
            }
            _ => {}
        }
    }
    processes.ended.sort_by_key(|process| process.pid);
    processes.unended.sort_unstable();
    Ok(processes)
}
