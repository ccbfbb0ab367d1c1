//! Programs of operations on a pool, and their interpreter.
//!
//! Any bytes are a valid program ([`op`]), so that a property test and a fuzz target share them. The
//! interpreter ([`run`]) runs a program on a pool over a simulated device and compares what the pool
//! did with a plain model ([`model`]): the intervals of memory that the device gave, as a backend
//! around it saw them ([`watched`]), less the intervals that are live.

// Each test program uses a part of it.
#![allow(dead_code)]

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

pub mod intervals;
pub mod model;
pub mod op;
pub mod run;
pub mod watched;

pub use op::{Op, Setup};
pub use run::Run;

/// Runs a program from its first operation to the end, where nothing may be left.
///
/// # Errors
/// What did not agree with the model, at which operation of which program.
pub fn run(setup: Setup, program: &[Op]) -> Result<(), String> {
    let tell = |problem: String| format!("{problem}\n{setup:?}\n{program:#?}");
    let mut run = Run::new(setup).map_err(tell)?;
    for (at, op) in program.iter().enumerate() {
        run.step(op)
            .map_err(|problem| tell(format!("operation {at}, {op:?}: {problem}")))?;
    }
    run.finish()
        .map_err(|problem| tell(format!("at the end: {problem}")))
}
