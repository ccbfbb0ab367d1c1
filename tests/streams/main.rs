//! Allocation in the order of streams, over simulated ones: programs of operations against a plain model
//! of who may use which memory, and scenarios.

#![cfg(not(miri))]

/// Fails with a message unless both sides are equal.
macro_rules! agree {
    ($left:expr, $right:expr, $($what:tt)+) => {{
        let (left, right) = (&$left, &$right);
        if left != right {
            return Err(format!("{}: found {left:?}, expected {right:?}", format_args!($($what)+)));
        }
    }};
}

/// Fails with a message unless the condition holds.
macro_rules! require {
    ($condition:expr, $($what:tt)+) => {
        if !$condition {
            return Err(format!($($what)+));
        }
    };
}

mod check;
#[macro_use]
mod child;
mod device;
mod ends;
#[path = "../support/program/intervals.rs"]
mod intervals;
mod ledger;
mod op;
mod run;
mod scenarios;
mod state;
mod threads;
mod unordered;

use luma::Preset;
use op::{CAPACITIES, Gives, Op, Setup};
use proptest::collection::vec;
use proptest::prelude::{Strategy, any};
use proptest::sample::select;
use proptest::test_runner::{Config, TestCaseError, TestError, TestRunner};
use run::Run;

const LONGEST: usize = 160;

fn run(setup: Setup, program: &[Op]) -> Result<(), String> {
    let mut run = Run::new(setup)?;
    for (at, op) in program.iter().enumerate() {
        run.step(op)
            .map_err(|problem| format!("operation {at}, {op:?}: {problem}"))?;
    }
    run.finish()
        .map_err(|problem| format!("at the end: {problem}"))
}

fn hold(preset: Preset, gives: Gives) {
    let cases = std::env::var("STREAMS_CASES").ok();
    let mut runner = TestRunner::new(Config {
        cases: cases.and_then(|cases| cases.parse().ok()).unwrap_or(60),
        // No files: a failure prints the whole program.
        failure_persistence: None,
        // Operations are left out below, which is quicker.
        max_shrink_iters: 0,
        ..Config::default()
    });
    let programs = (
        select(&CAPACITIES),
        any::<[bool; 2]>(),
        select(&[None, None, None, None, Some(0), Some(1)]),
        vec(any::<[u8; 5]>(), 0..LONGEST),
    );
    let programs = programs.prop_map(|(capacity, [has_barriers, is_watchful], only, bytes)| {
        let setup = Setup {
            preset,
            gives,
            capacity,
            has_barriers,
            is_watchful,
        };
        (setup, op::program(&bytes, only))
    });
    let outcome = runner.run(&programs, |(setup, program)| {
        let Err(problem) = run(setup, &program) else {
            return Ok(());
        };
        let (program, problem) = shorten(setup, program, problem);
        let reason = format!("{problem}\n{setup:?}\n{program:#?}");
        Err(TestCaseError::fail(reason))
    });
    match outcome {
        // The reason names the program.
        Err(TestError::Fail(reason, _)) => panic!("{reason}"),
        other => other.expect("programs can be made"),
    }
}

/// Leaves operations out of a program as long as it fails.
fn shorten(setup: Setup, mut program: Vec<Op>, mut problem: String) -> (Vec<Op>, String) {
    let mut count = program.len().div_ceil(2);
    while count > 0 {
        let mut at = 0;
        while at < program.len() {
            let mut shorter = program.clone();
            shorter.drain(at..(at + count).min(program.len()));
            match run(setup, &shorter) {
                Err(other) => (program, problem) = (shorter, other),
                Ok(()) => at += count,
            }
        }
        count /= 2;
    }
    (program, problem)
}

/// Without any wait streams are made to wait for one another; with a short one requests do.
mod programs {
    use super::{Gives, Preset, hold};

    with_wait! {
        "0" pages_without_wait { hold(Preset::Default, Gives::WholePages); }
        "0.002" pages_with_a_wait { hold(Preset::Default, Gives::WholePages); }
        "0" grains_without_wait { hold(Preset::Default, Gives::Grains); }
        "0" segments_without_wait { hold(Preset::Default, Gives::Segments); }
        "0.002" xla_with_a_wait { hold(Preset::Xla, Gives::Segments); }
        "0" luma_0_3_without_wait { hold(Preset::Luma03, Gives::Segments); }
    }
}
