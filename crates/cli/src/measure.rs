//! Replaying a program on a pool, and what is measured meanwhile.

use std::ffi::c_void;
use std::ptr;
use std::time::{Duration, Instant};

use anyhow::{Result, bail, ensure};
use luma::ffi::{luma_stats_t, luma_status_t};
use serde::Serialize;

use crate::pool::{Pool, Setup, last_error, last_status};
use crate::program::{Action, Program, Step};

/// A run repeats a short trace, each time in a fresh pool, until it has timed this many calls.
const CALLS_PER_RUN: usize = 20_000;
/// As many empty intervals tell what reading the clock costs.
const CLOCK_SAMPLES: usize = 10_001;

/// A request that the pool refused and the recorded program got.
#[derive(Clone, Debug, Serialize)]
pub struct Refusal {
    /// The call, counted from 1 and with the `pre` ones.
    pub event: usize,
    /// Its line in the trace.
    pub line: u64,
    /// The bytes asked for.
    pub bytes: usize,
    /// What the library said.
    pub message: String,
}

/// How long a call took, and what the pool held.
#[derive(Debug)]
pub struct Measurement {
    /// The pool's statistics at the end of the trace.
    pub stats: luma_stats_t,
    /// Nanoseconds a call, one figure a run, ascending; none for a trace of `pre` only.
    pub runs: Vec<f64>,
    /// 99 of 100 calls took at most so many nanoseconds.
    pub p99: f64,
}

impl Measurement {
    /// The median of the runs; 0 where nothing was timed.
    pub fn ns_per_call(&self) -> f64 {
        match (self.runs.len() / 2, self.runs.len() % 2) {
            (0, 0) => 0.0,
            (middle, 0) => f64::midpoint(self.runs[middle - 1], self.runs[middle]),
            (middle, _) => self.runs[middle],
        }
    }
}

/// How a replay ended.
pub enum Ending {
    Completed(Measurement),
    Refused(Refusal),
}

/// Replays once for the statistics, then `runs` times for the time a call takes, then once more
/// with a time stamp after each call for the percentile: stamps would burden the mean.
/// `done` is told after each of the `runs + 2` passes.
pub fn measure(
    program: &Program,
    setup: &Setup,
    runs: usize,
    mut done: impl FnMut(),
) -> Result<Ending> {
    let mut table = vec![ptr::null_mut(); program.slots];

    let pool = Pool::create(setup)?;
    if let Err(refusal) = replay(program, &pool, &mut table)? {
        return Ok(Ending::Refused(refusal));
    }
    pool.check()?;
    let stats = pool.stats()?;
    drop(pool);
    done();

    if program.timed_calls() == 0 {
        return Ok(Ending::Completed(Measurement {
            stats,
            runs: Vec::new(),
            p99: 0.0,
        }));
    }
    let mut figures = Vec::with_capacity(runs);
    for _ in 0..runs {
        figures.push(mean(program, setup, &mut table)?);
        done();
    }
    figures.sort_by(f64::total_cmp);
    let p99 = percentile_99(program, setup, &mut table)?;
    done();
    Ok(Ending::Completed(Measurement {
        stats,
        runs: figures,
        p99,
    }))
}

/// Replays the whole trace once, untimed.
pub fn replay(
    program: &Program,
    pool: &Pool,
    table: &mut [*mut c_void],
) -> Result<Result<(), Refusal>> {
    let Err(stop) = run(pool, &program.steps, table, || ()) else {
        return Ok(Ok(()));
    };
    // Read before anything else calls the library.
    let (status, message) = (last_status(), last_error());
    let (event, line) = (stop.step + 1, program.lines[stop.step]);
    if stop.freeing || status != luma_status_t::LUMA_ERROR_OUT_OF_MEMORY {
        let call = if stop.freeing { "free" } else { "allocation" };
        bail!(
            "{}:{line}: the {call} of event {event} failed: {message}",
            program.name
        );
    }
    Ok(Err(Refusal {
        event,
        line,
        bytes: program.steps[stop.step].bytes,
        message,
    }))
}

/// Allocates what was live before the recording began; answers the steps that are to be timed.
fn prepare<'a>(program: &'a Program, pool: &Pool, table: &mut [*mut c_void]) -> Result<&'a [Step]> {
    let (prelude, timed) = program.steps.split_at(program.prelude);
    finish(run(pool, prelude, table, || ()))?;
    Ok(timed)
}

/// A timed pass repeats what has just succeeded in a pool of the same setup.
fn finish(result: Result<(), Stop>) -> Result<()> {
    ensure!(
        result.is_ok(),
        "a pass failed after one that succeeded: {}",
        last_error()
    );
    Ok(())
}

/// Nanoseconds a call.
fn mean(program: &Program, setup: &Setup, table: &mut [*mut c_void]) -> Result<f64> {
    let mut calls = 0;
    let mut time = Duration::ZERO;
    while calls < CALLS_PER_RUN {
        let pool = Pool::create(setup)?;
        let timed = prepare(program, &pool, table)?;
        let start = Instant::now();
        let result = run(&pool, timed, table, || ());
        time += start.elapsed();
        finish(result)?;
        calls += timed.len();
    }
    Ok(time.as_nanos() as f64 / calls as f64)
}

/// The time that 99 of 100 calls stay within, in nanoseconds.
fn percentile_99(program: &Program, setup: &Setup, table: &mut [*mut c_void]) -> Result<f64> {
    let mut samples: Vec<u64> = Vec::with_capacity(CALLS_PER_RUN + program.steps.len());
    while samples.len() < CALLS_PER_RUN {
        let pool = Pool::create(setup)?;
        let timed = prepare(program, &pool, table)?;
        let mut last = Instant::now();
        let result = run(&pool, timed, table, || {
            let now = Instant::now();
            samples.push(now.duration_since(last).as_nanos() as u64);
            last = now;
        });
        finish(result)?;
    }
    let place = samples.len() * 99 / 100;
    let (_, sample, _) = samples.select_nth_unstable(place);
    Ok(sample.saturating_sub(clock_cost()) as f64)
}

/// The median time from one reading of the clock to the next.
fn clock_cost() -> u64 {
    let mut last = Instant::now();
    let mut intervals: Vec<u64> = (0..CLOCK_SAMPLES)
        .map(|_| {
            let now = Instant::now();
            let interval = now.duration_since(last).as_nanos() as u64;
            last = now;
            interval
        })
        .collect();
    *intervals.select_nth_unstable(CLOCK_SAMPLES / 2).1
}

/// The step at which a replay had to end.
struct Stop {
    step: usize,
    freeing: bool,
}

/// The loop that is timed: calls, and `after` each.
#[inline]
fn run(
    pool: &Pool,
    steps: &[Step],
    table: &mut [*mut c_void],
    mut after: impl FnMut(),
) -> Result<(), Stop> {
    for (
        step,
        &Step {
            bytes,
            slot,
            action,
        },
    ) in steps.iter().enumerate()
    {
        match action {
            Action::Alloc => {
                let block = pool.alloc(bytes);
                if block.is_null() && bytes != 0 {
                    return Err(Stop {
                        step,
                        freeing: false,
                    });
                }
                table[slot as usize] = block;
            }
            Action::Free => {
                if !pool.free(table[slot as usize]) {
                    return Err(Stop {
                        step,
                        freeing: true,
                    });
                }
            }
            Action::Try => {
                let block = pool.alloc(bytes);
                if !block.is_null() && !pool.free(block) {
                    return Err(Stop {
                        step,
                        freeing: true,
                    });
                }
            }
        }
        after();
    }
    Ok(())
}
