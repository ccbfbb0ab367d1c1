//! `luma replay`: traces through a pool, measured.

use std::env;
use std::io::Write;
use std::path::PathBuf;

use anyhow::{Result, bail};
use clap::ValueEnum;
use indicatif::{ProgressBar, ProgressStyle};
use luma::config::parse_size;

use crate::Outcome;
use crate::measure::measure;
use crate::pool::{Backend, Preset, Setup};
use crate::program::Program;
use crate::report::{Conditions, Report, Row};
use crate::smallest;

/// The simulated device where `--capacity` does not say: larger than what the traces of one
/// accelerator need, so that the table shows what a pool takes when nothing stops it.
const DEFAULT_CAPACITY: u64 = 1 << 40;

/// Replay allocation traces and say what they cost
///
/// Every call of a trace is made through the C interface, on a pool of its own. A table says how
/// long a call takes, and how much the pool took from its backend for what was live. The format of
/// traces is in docs/traces.md.
///
/// Exit status: 0 all traces completed, 1 one ran out of memory, 2 an argument or file is wrong.
#[derive(clap::Args)]
pub struct Arguments {
    /// The traces
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,

    /// How the pool works; all: each in turn, side by side
    #[arg(long, value_enum, default_value = "default")]
    preset: PresetChoice,

    /// Where the pool's memory comes from
    #[arg(long, value_enum, default_value = "simulated")]
    backend: Backend,

    /// Times that each trace is timed; the median counts
    #[arg(long, value_name = "N", default_value_t = 5,
          value_parser = clap::value_parser!(u32).range(1..=10_000))]
    runs: u32,

    /// Bytes of the device, such as 24G [default: 1T simulated, LUMA_HOST_CAPACITY host]
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    capacity: Option<u64>,

    /// The most bytes that the pool may hold, such as 8G [default: no limit]
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    limit: Option<u64>,

    /// Also find the smallest simulated device that completes each trace, to 64 KiB
    #[arg(long)]
    smallest: bool,

    /// Print one JSON document with raw numbers in place of the table
    #[arg(long)]
    json: bool,
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
    /// All of them
    All,
}

impl PresetChoice {
    fn presets(self) -> &'static [Preset] {
        match self {
            PresetChoice::Default => &[Preset::Default],
            PresetChoice::Xla => &[Preset::Xla],
            PresetChoice::Luma03 => &[Preset::Luma03],
            PresetChoice::All => &Preset::ALL,
        }
    }
}

pub fn run(arguments: &Arguments) -> Result<Outcome> {
    for falsifying in ["LUMA_TRACE", "LUMA_DEBUG"] {
        // SAFETY: the program has one thread. A replay must not be recorded, least of all over the
        // trace that it reads, nor be timed with checks.
        unsafe { env::remove_var(falsifying) };
    }
    let conditions = conditions(arguments)?;
    let programs = load(&arguments.files)?;
    let presets = arguments.preset.presets();
    let runs = arguments.runs as usize;

    // A pass for the statistics, the runs, and a pass for the percentile.
    let passes = runs + 2 + usize::from(arguments.smallest);
    let progress = ProgressBar::new((programs.len() * presets.len() * passes) as u64).with_style(
        ProgressStyle::with_template("{bar:30} {pos}/{len} {msg}").expect("the template is valid"),
    );

    let mut report = Report::new(conditions);
    for program in &programs {
        progress.set_message(program.name.clone());
        for &preset in presets {
            let setup = Setup {
                backend: arguments.backend,
                preset,
                capacity: conditions.capacity,
                limit: conditions.limit,
            };
            let ending = measure(program, &setup, runs, || progress.inc(1))
                .inspect_err(|_| progress.finish_and_clear())?;
            let mut row = Row::new(program, preset, &ending);
            if arguments.smallest {
                row.set_smallest(smallest::smallest_capacity(program, &setup)?);
                progress.inc(1);
            }
            report.add(row);
        }
    }
    progress.finish_and_clear();

    let text = if arguments.json {
        report.json()?
    } else {
        report.table()
    };
    std::io::stdout().lock().write_all(text.as_bytes())?;
    Ok(if report.is_complete() {
        Outcome::Done
    } else {
        Outcome::Incomplete
    })
}

/// What the arguments mean together.
fn conditions(arguments: &Arguments) -> Result<Conditions> {
    let backend = arguments.backend;
    if arguments.smallest && backend != Backend::Simulated {
        bail!("--smallest needs --backend simulated: only there a device has any size one likes");
    }
    if arguments.capacity.is_some() && backend == Backend::Cuda {
        bail!("--capacity does not go with --backend cuda: the device has its own; use --limit");
    }
    if arguments.capacity == Some(0) {
        bail!("--capacity 0: a device without memory; leave it out for the default");
    }
    if arguments.limit == Some(0) {
        bail!("--limit 0: a pool that may hold nothing; leave it out for no limit");
    }
    let default = if backend == Backend::Simulated {
        DEFAULT_CAPACITY
    } else {
        0
    };
    Ok(Conditions {
        backend,
        capacity: arguments.capacity.unwrap_or(default),
        limit: arguments.limit.unwrap_or(0),
        runs: arguments.runs,
        smallest: arguments.smallest,
    })
}

/// Reads every file before anything is replayed, and tells of every one that is wrong.
fn load(files: &[PathBuf]) -> Result<Vec<Program>> {
    let mut programs = Vec::with_capacity(files.len());
    let mut problems = Vec::new();
    for file in files {
        match Program::load(file) {
            Ok(program) => programs.push(program),
            Err(error) => problems.push(format!("{error:#}")),
        }
    }
    if problems.is_empty() {
        Ok(programs)
    } else {
        bail!("{}", problems.join("\nluma: "))
    }
}
