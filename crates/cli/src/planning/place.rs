//! `luma place`: offsets for buffers whose lifetimes are known.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Result, anyhow};
use luma::config::parse_size;
use luma::plan::place::{Placement, place};
use luma::plan::{Control, PlanError, Progress};
use serde_json::json;

use super::files::write;
use super::lifetimes::{Lifetimes, Overlap};
use super::picture::file_name;
use super::plan::refuse;
use super::progress::{bar, is_interrupted, parse_time, stop_on_interrupt};
use super::summary::{show_time, stopped};
use super::svg::{Block, Kind, Panel, Picture};
use crate::Outcome;

/// Place buffers with known lifetimes in one memory
///
/// Reads id, lower, upper, size (live from lower up to but not with upper) and writes the same with
/// an offset, such that no two that are live together overlap: within --capacity, or else as low as
/// can be found in the time. Nothing is spilled.
///
/// Exit status: 0 placed, 1 no placement within the capacity was found, 2 an argument or file is
/// wrong.
#[derive(clap::Args)]
pub struct Arguments {
    /// The lifetimes
    #[arg(value_name = "LIFETIMES.csv")]
    file: PathBuf,

    /// The bytes to stay within, such as 1048576 or 24G [default: as low as can be found]
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    capacity: Option<u64>,

    /// After how long to stop with the best so far, such as 500ms, 10s or 2m
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = parse_time)]
    time_limit: Duration,

    /// Another seed, another search
    #[arg(long, value_name = "N", default_value_t = 0)]
    seed: u64,

    /// Where to write the table with offsets [default: nowhere, only the summary is printed]
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,

    /// Draw the placement: address over time
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,

    /// Print one JSON document in place of the summary
    #[arg(long)]
    json: bool,
}

pub fn run(arguments: &Arguments) -> Result<Outcome> {
    let lifetimes = Lifetimes::load(&arguments.file, false)?;
    let start = Instant::now();
    let placement = match search(arguments, &lifetimes) {
        Ok(placement) => placement,
        Err(error) => return refuse(&lifetimes.name, &error),
    };
    let time = start.elapsed();
    if let Some(problem) = problem(&lifetimes, &placement.offsets, arguments.capacity) {
        return Err(anyhow!(
            "the placement is not valid, which is a bug in luma: {problem}"
        ));
    }
    let mut files = Vec::new();
    if let Some(path) = &arguments.out {
        write(path, &lifetimes.with_offsets(&placement.offsets))?;
        files.push(path.display().to_string());
    }
    if let Some(path) = &arguments.svg {
        let picture = picture(&lifetimes, &placement.offsets, arguments.capacity);
        write(path, &picture)?;
        files.push(path.display().to_string());
    }
    let mut output = std::io::stdout().lock();
    let count = lifetimes.list.len();
    let (height, bound) = (placement.height, placement.lower_bound);
    if arguments.json {
        let document = json!({
            "luma_version": env!("CARGO_PKG_VERSION"),
            "lifetimes": lifetimes.name,
            "buffers": count,
            "capacity_bytes": arguments.capacity,
            "height_bytes": height,
            "lower_bound_bytes": bound,
            "proved": placement.proved,
            "stopped": stopped(placement.stopped),
            "seed": arguments.seed,
            "seconds": time.as_secs_f64(),
            "files": files,
        });
        writeln!(output, "{document:#}")?;
        return Ok(Outcome::Done);
    }
    writeln!(output, "lifetimes {}: {count} buffers", lifetimes.name)?;
    match arguments.capacity {
        Some(capacity) => writeln!(output, "height    {height} bytes of {capacity}")?,
        None => writeln!(output, "height    {height} bytes")?,
    }
    if placement.proved {
        writeln!(output, "bound     {bound} bytes: proved optimal")?;
    } else {
        let over = (height as f64 / bound.max(1) as f64 - 1.0) * 100.0;
        writeln!(
            output,
            "bound     {bound} bytes: the gap is {} bytes ({over:.2} %)",
            height.saturating_sub(bound)
        )?;
    }
    writeln!(output, "time      {}", show_time(time))?;
    if !files.is_empty() {
        writeln!(output, "written   {}", files.join(", "))?;
    }
    Ok(Outcome::Done)
}

fn search(arguments: &Arguments, lifetimes: &Lifetimes) -> Result<Placement, PlanError> {
    stop_on_interrupt();
    let bar = bar(arguments.time_limit);
    let progress = |progress: Progress| {
        bar.set_message(format!(
            "{} bytes, bound {}",
            progress.extra_bytes, progress.lower_bound
        ));
        !is_interrupted()
    };
    let control = Control {
        deadline: Instant::now().checked_add(arguments.time_limit),
        seed: arguments.seed,
        progress: Some(&progress),
        ..Control::default()
    };
    let placement = place(&lifetimes.list, arguments.capacity, &control);
    bar.finish_and_clear();
    placement
}

/// `luma check` of a table with offsets.
pub fn check(
    path: &Path,
    capacity: Option<u64>,
    svg: Option<&Path>,
    as_json: bool,
) -> Result<Outcome> {
    let lifetimes = Lifetimes::load(path, true)?;
    let offsets = lifetimes.offsets.as_deref().unwrap_or_default();
    let problem = problem(&lifetimes, offsets, capacity);
    let (height, peak) = (height(&lifetimes, offsets), lifetimes.peak());
    if let (None, Some(path)) = (&problem, svg) {
        write(path, &picture(&lifetimes, offsets, capacity))?;
    }
    let mut output = std::io::stdout().lock();
    if as_json {
        let document = json!({
            "luma_version": env!("CARGO_PKG_VERSION"),
            "lifetimes": lifetimes.name,
            "buffers": lifetimes.list.len(),
            "capacity_bytes": capacity,
            "valid": problem.is_none(),
            "message": problem,
            "height_bytes": u64::try_from(height).ok(),
            "peak_live_bytes": u64::try_from(peak).ok(),
        });
        writeln!(output, "{document:#}")?;
    } else if let Some(problem) = &problem {
        writeln!(output, "not valid: {problem}")?;
    } else {
        writeln!(output, "valid")?;
        writeln!(
            output,
            "lifetimes {}: {} buffers",
            lifetimes.name,
            lifetimes.list.len()
        )?;
        writeln!(
            output,
            "height    {height} bytes, at most {peak} live at once"
        )?;
    }
    Ok(match problem {
        None => Outcome::Done,
        Some(_) => Outcome::Incomplete,
    })
}

/// The end of the highest.
fn height(lifetimes: &Lifetimes, offsets: &[u64]) -> u128 {
    let ends = lifetimes.list.iter().zip(offsets);
    ends.map(|(lifetime, offset)| u128::from(*offset) + u128::from(lifetime.size))
        .max()
        .unwrap_or(0)
}

/// What is wrong with a placement.
fn problem(lifetimes: &Lifetimes, offsets: &[u64], capacity: Option<u64>) -> Option<String> {
    let show = |at: usize| {
        let (lifetime, offset) = (&lifetimes.list[at], offsets[at]);
        format!(
            "{} ({} bytes at {offset}, live {} to {})",
            lifetimes.ids[at], lifetime.size, lifetime.lower, lifetime.upper
        )
    };
    let limit = capacity.map_or(u128::from(u64::MAX), u128::from);
    for (at, (lifetime, offset)) in lifetimes.list.iter().zip(offsets).enumerate() {
        if u128::from(*offset) + u128::from(lifetime.size) > limit {
            return Some(format!("{} ends beyond {limit}", show(at)));
        }
    }
    lifetimes
        .overlap(offsets)
        .map(|Overlap(one, other)| format!("{} overlaps {}", show(one), show(other)))
}

fn picture(lifetimes: &Lifetimes, offsets: &[u64], capacity: Option<u64>) -> String {
    let (start, end) = lifetimes.span();
    let height = u64::try_from(height(lifetimes, offsets)).unwrap_or(u64::MAX);
    let peak = u64::try_from(lifetimes.peak()).unwrap_or(u64::MAX);
    let all = lifetimes.list.iter().zip(offsets).enumerate();
    let blocks = all.map(|(at, (lifetime, offset))| Block {
        id: at as u64,
        from: lifetime.lower,
        to: lifetime.upper,
        offset: *offset,
        size: lifetime.size,
        kind: if at % 3 == 0 {
            Kind::Copied
        } else {
            Kind::Made
        },
    });
    let panel = Panel {
        title: match capacity {
            Some(capacity) => format!("{height} of {capacity} bytes"),
            None => format!("{height} bytes"),
        },
        capacity: capacity.unwrap_or(height).max(height),
        blocks: blocks.collect(),
        spills: Vec::new(),
        line: Some((peak, format!("at most {peak} bytes live at once"))),
    };
    Picture {
        title: file_name(&lifetimes.name),
        subtitle: format!("{} buffers", lifetimes.list.len()),
        axis: "time",
        start,
        end,
        block: "row",
        has_kinds: false,
        panels: vec![panel],
    }
    .draw()
}
