//! `luma run`: a program that never heard of luma, with its device memory from luma's pool.
//!
//! - [`places`]: where what is preloaded and the driver double are; [`double`]: the double as the driver;
//! - [`environment`]: what the program's environment says; [`folder`]: a folder for the run;
//! - [`start`]: starting it; [`wait`]: signals, and its end;
//! - [`processes`]: what its processes told; [`figures`]: what follows from that;
//! - [`why`], [`file`]: why luma was not reached;
//! - [`page`], [`document`]: the report as text and as JSON.

mod document;
mod double;
mod environment;
mod figures;
mod file;
mod folder;
mod page;
mod places;
mod processes;
mod start;
mod wait;
mod why;

use std::ffi::OsString;
use std::fmt::Display;
use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Context, Result};
use clap::ValueEnum;
use luma::config::parse_size;

use document::Document;
use folder::Folder;
use places::Places;
pub use wait::{Ending, end_as};
use why::Findings;

/// The exit status of a failure of luma's own, as `env` and `timeout` have it.
const FAILED: u8 = 125;

/// Run a CUDA program, which need not know of luma, on luma's pool
///
/// Preloads libluma_interpose.so into the program and the processes that it starts. Input and output are the
/// program's own, and so is the exit status; signals that are sent to luma reach it. At the end a report on
/// standard error says what the pool did, or why luma was not reached.
///
/// Exit status: the program's; if a signal ended it, luma ends by the same one (a shell says 128 + its
/// number). 127 there is no such program, 126 it cannot be run, 125 luma failed.
#[derive(clap::Args)]
pub struct Arguments {
    /// The most that each device's pool may hold, such as 8G, or 80% of the device [default: no limit]
    #[arg(long, value_name = "SIZE", value_parser = environment::limit)]
    limit: Option<String>,

    /// How the pool works
    #[arg(long, value_enum)]
    preset: Option<PresetChoice>,

    /// Record every allocation and free in a file that luma replay reads; %p in it becomes the process's number
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,

    /// Run on the driver double (docs/fakecuda.md), of which no kernel does anything: the one beside luma, or
    /// in FOLDER, which scripts/fake-driver has made
    #[arg(long, value_name = "FOLDER", num_args = 0..=1, require_equals = true)]
    fake: Option<Option<PathBuf>>,

    /// How much memory each device of the double has, such as 24G [default: 1G]
    #[arg(long, value_name = "SIZE", value_parser = size, requires = "fake")]
    fake_memory: Option<String>,

    /// Memory for other processes: share allocates as ever, and refuses handles that would name other blocks
    /// too; own gives each allocation a segment of its own
    #[arg(long, value_enum, value_name = "HOW")]
    ipc: Option<Ipc>,

    /// Let each free wait for the device, as the driver's own does
    #[arg(long, conflicts_with = "off")]
    wait: bool,

    /// Preload luma, and let every call go to the driver
    #[arg(long)]
    off: bool,

    /// Open libraries without RTLD_DEEPBIND, by which their calls would pass luma by
    #[arg(long)]
    strip_deepbind: bool,

    /// Write the report to a file, as JSON
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,

    /// Print no report
    #[arg(long)]
    quiet: bool,

    /// What is preloaded [default: libluma_interpose.so beside luma, or in ../lib]
    #[arg(long, value_name = "FILE")]
    library: Option<PathBuf>,

    /// The program and its arguments
    #[arg(required = true, trailing_var_arg = true, value_name = "PROGRAM")]
    command: Vec<OsString>,
}

#[derive(Clone, Copy, ValueEnum)]
enum PresetChoice {
    /// luma's own
    Default,
    /// What XLA's BFCAllocator does
    Xla,
    /// What luma-cuda 0.3.2 does
    #[value(name = "luma-0.3")]
    Luma03,
}

#[derive(Clone, Copy, ValueEnum)]
enum Ipc {
    /// As on the driver, where that is safe
    Share,
    /// A segment for each allocation
    Own,
}

/// Checks a size, and leaves it as it was written.
fn size(text: &str) -> Result<String, String> {
    parse_size(text).map(|_| text.to_owned())
}

pub fn run(arguments: &Arguments) -> Ending {
    match run_program(arguments) {
        Ok(ending) => ending,
        Err(error) => {
            say(&format_args!("{error:#}"));
            Ending::Exited(FAILED)
        }
    }
}

fn run_program(arguments: &Arguments) -> Result<Ending> {
    let places = Places::of_this_program()?;
    let report = match &arguments.report {
        Some(path) => Some(File::create(path).with_context(|| cannot_be_written(path))?),
        None => None,
    };
    let folder = Folder::new()?;
    let library = places.library(arguments.library.as_deref(), &folder)?;
    let driver = match &arguments.fake {
        Some(None) => Some(double::beside(&places, &folder)?),
        Some(Some(given)) => Some(double::in_folder(given)?),
        None => None,
    };
    let reports = folder.make("reports")?;
    let variables = environment::variables(arguments, &library, driver.as_deref(), &reports)?;

    let begin = Instant::now();
    let mut started = match start::start(&arguments.command, &variables) {
        Ok(started) => started,
        Err(refusal) => {
            say(&refusal);
            return Ok(Ending::Exited(refusal.status()));
        }
    };
    let ending = wait::wait_for(&mut started)?;
    let seconds = begin.elapsed().as_secs_f64();
    if let Some(wanted) = std::env::var_os(environment::REPORT) {
        processes::hand_on(&reports, Path::new(&wanted));
    }
    let run = Run {
        arguments,
        pid: started.id(),
        ending,
        seconds,
        library: &library,
        is_fake: driver.is_some(),
    };
    // How the program ended is of more use than that this failed.
    if let Err(error) = run.tell(&reports, report) {
        say(&format_args!("{error:#}"));
    }
    Ok(ending)
}

/// A program that ran.
struct Run<'a> {
    arguments: &'a Arguments,
    pid: u32,
    ending: Ending,
    seconds: f64,
    library: &'a Path,
    is_fake: bool,
}

impl Run<'_> {
    /// Reads what the processes left in a folder, and writes the report.
    fn tell(&self, reports: &Path, file: Option<File>) -> Result<()> {
        let command = &self.arguments.command;
        let processes = processes::read(reports)?;
        let why = why::not(&Findings {
            command,
            pid: self.pid,
            ending: self.ending,
            processes: &processes,
            library: self.library,
            is_off: self.arguments.off,
            is_fake: self.is_fake,
        });
        let document = Document {
            command,
            ending: self.ending,
            seconds: self.seconds,
            is_fake: self.is_fake,
            processes: &processes,
            why: &why,
        };
        if let (Some(mut file), Some(path)) = (file, &self.arguments.report) {
            let written = file.write_all(document.json()?.as_bytes());
            return written.with_context(|| cannot_be_written(path));
        }
        if !self.arguments.quiet {
            // As in `say`.
            let _ = io::stderr().write_all(page::text(&document).as_bytes());
        }
        Ok(())
    }
}

/// Puts a message on standard error. That it may be closed or full is no failure of the program's, and changes no
/// exit status.
fn say(message: &dyn Display) {
    let _ = writeln!(io::stderr(), "luma: {message}");
}

fn cannot_be_written(report: &Path) -> String {
    format!("{}: the report cannot be written", report.display())
}
