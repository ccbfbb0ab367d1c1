//! `luma check`: whether a plan in files is valid, and what it costs.

use std::io::Write;
use std::path::PathBuf;

use anyhow::{Result, bail};
use luma::plan::check::check_plan;
use serde_json::json;

use super::files::{Arrays, read_order, write};
use super::kernel::Kernel;
use super::memories::Memories;
use super::summary::Summary;
use super::{picture, place};
use crate::Outcome;

/// Check a plan or a placement, made by whatever program
///
/// A plan is checked against its graph: PREFIX_schedule.txt, PREFIX_memory.txt and PREFIX_spill.txt.
/// The checker shares no code with the planner. A table of id, lower, upper, size and offset, alone,
/// is checked as a placement.
///
/// Exit status: 0 valid, 1 not valid, 2 an argument or file is wrong.
#[derive(clap::Args)]
pub struct Arguments {
    /// NODES.csv EDGES.csv PREFIX, or GRAPH.json PREFIX, or PLACED.csv
    #[arg(required = true, num_args = 1..=3, value_name = "FILE")]
    files: Vec<PathBuf>,

    /// The order that the plan must have kept, a file with one node a line
    #[arg(long, value_name = "FILE")]
    order: Option<PathBuf>,

    #[command(flatten)]
    memories: Memories,

    /// The bytes that a placement must stay within
    #[arg(long, value_name = "SIZE", value_parser = luma::config::parse_size)]
    capacity: Option<u64>,

    /// Draw the plan: each memory as address over time
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,

    /// Print one JSON document in place of the summary
    #[arg(long)]
    json: bool,
}

pub fn run(arguments: &Arguments) -> Result<Outcome> {
    let (prefix, graph) = match &arguments.files[..] {
        [placed] => {
            if arguments.order.is_some() {
                bail!("--order does not go with a placement; for a plan add its PREFIX");
            }
            return place::check(
                placed,
                arguments.capacity,
                arguments.svg.as_deref(),
                arguments.json,
            );
        }
        [graph @ .., prefix] => (prefix, graph),
        [] => bail!("no files"),
    };
    if arguments.capacity.is_some() {
        bail!("--capacity goes with a placement; for a plan use --memory NAME=SIZE");
    }
    let kernel = Kernel::load(graph, arguments.memories.list())?;
    let plan = Arrays::read(prefix, kernel.input.buffers.len())?;
    let order = arguments.order.as_deref().map(read_order).transpose()?;
    let report = check_plan(
        &kernel.input,
        order.as_deref(),
        &plan.order,
        &plan.offsets,
        &plan.spills,
    );
    let mut output = std::io::stdout().lock();
    let report = match report {
        Ok(report) => report,
        Err(violation) => {
            if arguments.json {
                let document = json!({
                    "luma_version": env!("CARGO_PKG_VERSION"),
                    "graph": kernel.name,
                    "valid": false,
                    "class": violation.class.name(),
                    "node": violation.node,
                    "buffer": violation.buffer,
                    "position": violation.position,
                    "message": violation.message(),
                });
                writeln!(output, "{document:#}")?;
            } else {
                writeln!(output, "not valid: {violation}")?;
            }
            return Ok(Outcome::Incomplete);
        }
    };
    let mut files = Vec::new();
    if let Some(path) = &arguments.svg {
        write(path, &picture::of_plan(&kernel, &plan, &report))?;
        files.push(path.clone());
    }
    let summary = Summary::new(&kernel.name, &kernel.input, &plan, &report, None, files);
    if arguments.json {
        output.write_all(summary.json()?.as_bytes())?;
    } else {
        write!(output, "valid\n{}", summary.text())?;
    }
    Ok(Outcome::Done)
}
