//! The report as JSON.

use std::ffi::OsString;

use anyhow::Result;
use serde::Serialize;

use super::figures::Figures;
use super::processes::{Process, Processes};
use super::wait::Ending;

/// What a run came to.
pub struct Document<'a> {
    pub command: &'a [OsString],
    pub ending: Ending,
    /// From the start of the program to its end.
    pub seconds: f64,
    pub is_fake: bool,
    pub processes: &'a Processes,
    pub why: &'a [String],
}

#[derive(Serialize)]
struct Written<'a> {
    luma_version: &'static str,
    command: Vec<String>,
    exit_status: Option<u8>,
    signal: Option<i32>,
    seconds: f64,
    fake_driver: bool,
    processes: Vec<WrittenProcess<'a>>,
    /// The numbers of processes that used luma and left no report.
    unended: &'a [u32],
    /// Why luma was not reached, or not by all.
    why: &'a [String],
}

#[derive(Serialize)]
struct WrittenProcess<'a> {
    #[serde(flatten)]
    process: &'a Process,
    /// None where they are not known.
    figures: Option<Figures>,
}

impl Document<'_> {
    pub fn json(&self) -> Result<String> {
        let (exit_status, signal) = match self.ending {
            Ending::Exited(status) => (Some(status), None),
            Ending::Signal(signal) => (None, Some(signal)),
        };
        let written = Written {
            luma_version: env!("CARGO_PKG_VERSION"),
            command: self
                .command
                .iter()
                .map(|word| word.to_string_lossy().into_owned())
                .collect(),
            exit_status,
            signal,
            seconds: self.seconds,
            fake_driver: self.is_fake,
            processes: self
                .processes
                .ended
                .iter()
                .map(|process| WrittenProcess {
                    process,
                    figures: process.is_known().then(|| Figures::of(process)),
                })
                .collect(),
            unended: &self.processes.unended,
            why: self.why,
        };
        Ok(serde_json::to_string_pretty(&written)? + "\n")
    }
}
