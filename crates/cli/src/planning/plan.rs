//! `luma plan`: the spills of a graph.

use std::io::Write;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Result, anyhow, bail};
use clap::ValueEnum;
use luma::error::Status;
use luma::plan::check::check_plan;
use luma::plan::{
    Control, Graph, Level, Options, Plan, PlanError, PlanErrorKind, Progress, greedy_order,
    plan_spills,
};

use super::files::{Arrays, read_order, write};
use super::kernel::Kernel;
use super::memories::Memories;
use super::picture;
use super::progress::{bar, is_interrupted, parse_time, stop_on_interrupt};
use super::summary::{Planning, Summary, stopped};
use crate::Outcome;

/// Plan the spills of a graph of operations on small memories
///
/// Gives every buffer a place in its memory, and moves buffers out and in again where they do not
/// all fit. Writes PREFIX_schedule.txt (the nodes in order, spills included), PREFIX_memory.txt
/// (BUFFER:OFFSET) and PREFIX_spill.txt (BUFFER:NEW_OFFSET, by number). Every plan is checked before
/// it is written. docs/planning.md has the model and the formats.
///
/// Exit status: 0 planned, 1 the graph cannot be planned in these memories, 2 an argument or file
/// is wrong.
#[derive(clap::Args)]
pub struct Arguments {
    /// NODES.csv and EDGES.csv, or one GRAPH.json
    #[arg(required = true, num_args = 1..=2, value_name = "FILE")]
    graph: Vec<PathBuf>,

    /// The order to run in, a file with one node a line; or greedy: free early, allocate late.
    /// heuristic and exact keep it, search starts from it
    #[arg(long, value_name = "FILE|greedy", default_value = "greedy")]
    order: PathBuf,

    /// How much effort the plan is worth
    #[arg(long, value_enum, default_value = "heuristic")]
    level: LevelChoice,

    /// After how long to stop with the best plan so far, such as 500ms, 10s or 2m
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = parse_time)]
    time_limit: Duration,

    /// Another seed, another search
    #[arg(long, value_name = "N", default_value_t = 0)]
    seed: u64,

    /// Threads to use, 0: as many as there are processors; the plan does not depend on it
    #[arg(long, value_name = "N", default_value_t = 0)]
    threads: usize,

    #[command(flatten)]
    memories: Memories,

    /// Where to write the plan [default: nowhere, only the summary is printed]
    #[arg(long, value_name = "PREFIX")]
    out: Option<PathBuf>,

    /// Draw the plan: each memory as address over time
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,

    /// Print one JSON document in place of the summary
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum LevelChoice {
    /// One pass in near-linear time
    Heuristic,
    /// The fewest bytes for the order, with a proof where there is one
    Exact,
    /// Order and spills together, until the time limit
    Search,
}

impl LevelChoice {
    fn name(self) -> &'static str {
        match self {
            Self::Heuristic => "heuristic",
            Self::Exact => "exact",
            Self::Search => "search",
        }
    }

    fn options(self) -> Options {
        Options {
            level: match self {
                Self::Heuristic => Level::Heuristic,
                Self::Exact => Level::Exact,
                Self::Search => Level::Search,
            },
            reorder: self == Self::Search,
        }
    }
}

pub fn run(arguments: &Arguments) -> Result<Outcome> {
    let kernel = Kernel::load(&arguments.graph, arguments.memories.list())?;
    let graph = match Graph::new(&kernel.input) {
        Ok(graph) => graph,
        Err(error) => return refuse(&kernel.name, &error),
    };
    let order_name = arguments.order.display().to_string();
    let (order, source) = if order_name == "greedy" {
        let order = greedy_order(&graph);
        (order.map_err(|error| anyhow!("{error}"))?, &kernel.name)
    } else {
        (read_order(&arguments.order)?, &order_name)
    };

    let start = Instant::now();
    let plan = match search(arguments, &graph, &order) {
        Ok(plan) => plan,
        Err(error) => return refuse(source, &error),
    };
    let seconds = start.elapsed().as_secs_f64();

    let options = arguments.level.options();
    let arrays = Arrays::of(&plan);
    let report = check_plan(
        &kernel.input,
        (!options.reorder).then_some(&order[..]),
        &arrays.order,
        &arrays.offsets,
        &arrays.spills,
    )
    .map_err(|violation| anyhow!("the plan is not valid, which is a bug in luma: {violation}"))?;
    if report.extra_bytes != plan.extra_bytes {
        bail!(
            "the plan moves {} bytes and says {}, which is a bug in luma",
            report.extra_bytes,
            plan.extra_bytes
        );
    }
    let mut files = match &arguments.out {
        Some(prefix) => arrays.write(prefix)?.to_vec(),
        None => Vec::new(),
    };
    if let Some(path) = &arguments.svg {
        write(path, &picture::of_plan(&kernel, &arrays, &report))?;
        files.push(path.clone());
    }
    let planning = Planning {
        level: arguments.level.name(),
        order: order_name,
        order_kept: !options.reorder,
        seed: arguments.seed,
        lower_bound_bytes: plan.lower_bound,
        proved: plan.proved,
        stopped: stopped(plan.stopped),
        seconds,
    };
    let name = &kernel.name;
    let summary = Summary::new(name, &kernel.input, &arrays, &report, Some(planning), files);
    let text = if arguments.json {
        summary.json()?
    } else {
        summary.text()
    };
    std::io::stdout().lock().write_all(text.as_bytes())?;
    Ok(Outcome::Done)
}

/// Plans, with a bar on a terminal; the first Ctrl-C gives the best plan so far.
fn search(arguments: &Arguments, graph: &Graph, order: &[u32]) -> Result<Plan, PlanError> {
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
        threads: arguments.threads,
        work: None,
        progress: Some(&progress),
    };
    let plan = plan_spills(graph, order, &arguments.level.options(), &control);
    bar.finish_and_clear();
    plan
}

/// Tells why there is no plan. That the sizes do not go together is a result; all else is wrong
/// input.
pub fn refuse(source: &str, error: &PlanError) -> Result<Outcome> {
    let told = match advice(error.kind) {
        Some(advice) => anyhow!("{source}: {error}. {advice}"),
        None => anyhow!("{source}: {error}"),
    };
    if error.status() != Status::Infeasible {
        return Err(told);
    }
    eprintln!("luma: {told}");
    Ok(Outcome::Incomplete)
}

/// What to do about an error.
fn advice(kind: PlanErrorKind) -> Option<&'static str> {
    Some(match kind {
        PlanErrorKind::BufferTooLarge => {
            "Make its tile smaller, or the memory larger with --memory NAME=SIZE"
        }
        PlanErrorKind::OperandsTooLarge => {
            "No order and no spills can help: make the operation's tiles smaller, or the memory \
             larger with --memory NAME=SIZE"
        }
        PlanErrorKind::OrderIncomplete | PlanErrorKind::OrderRepeats => {
            "An order names every node of the graph once, one a line"
        }
        PlanErrorKind::OrderNotTopological => {
            "Use --order greedy for an order that follows the edges"
        }
        PlanErrorKind::NoPlacement => "Leave --capacity out to see how much is needed",
        PlanErrorKind::PlacementNotFound => {
            "Give more time with --time-limit, or leave --capacity out for the lowest that is found"
        }
        PlanErrorKind::Stopped => "Give more time with --time-limit",
        _ => return None,
    })
}
