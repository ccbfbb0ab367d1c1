//! The `luma` program.

mod doctor;
mod generate;
mod headings;
mod measure;
mod planning;
mod pool;
mod program;
mod replay;
mod report;
mod run;
mod size;
mod smallest;

use std::io;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// What the program's exit status says.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Outcome {
    /// All was done.
    Done,
    /// The command ran, and found that something could not be completed.
    Incomplete,
}

/// Accelerator memory: run programs on a pool, replay allocation traces, plan spills, generate traces and
/// graphs, look at this machine.
#[derive(Parser)]
#[command(name = "luma", version)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Run(run::Arguments),
    Replay(replay::Arguments),
    Plan(planning::plan::Arguments),
    Place(planning::place::Arguments),
    Check(planning::check::Arguments),
    Doctor(doctor::Arguments),
    Generate(generate::Arguments),
}

fn main() -> ExitCode {
    let result = match Arguments::parse().command {
        Command::Run(arguments) => return run::end_as(run::run(&arguments)),
        Command::Replay(arguments) => replay::run(&arguments),
        Command::Plan(arguments) => planning::plan::run(&arguments),
        Command::Place(arguments) => planning::place::run(&arguments),
        Command::Check(arguments) => planning::check::run(&arguments),
        Command::Doctor(arguments) => doctor::run(&arguments),
        Command::Generate(arguments) => generate::run(&arguments),
    };
    match result {
        Ok(Outcome::Done) => ExitCode::SUCCESS,
        Ok(Outcome::Incomplete) => ExitCode::from(1),
        // Whoever reads our output has closed it, such as `head`.
        Err(error) if is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("luma: {error:#}");
            ExitCode::from(2)
        }
    }
}

fn is_broken_pipe(error: &anyhow::Error) -> bool {
    let kinds = error
        .chain()
        .filter_map(|cause| cause.downcast_ref::<io::Error>());
    kinds
        .into_iter()
        .any(|error| error.kind() == io::ErrorKind::BrokenPipe)
}
