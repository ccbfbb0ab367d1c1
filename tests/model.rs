//! Programs of operations against a plain model, for every preset, on every kind of device.

#[path = "support/program/mod.rs"]
mod program;

use luma::Preset;
use program::op::{self, CAPACITIES, Gives, LIMITS, Setup};
use proptest::collection::vec;
use proptest::prelude::{Strategy, any};
use proptest::sample::select;
use proptest::test_runner::{Config, TestCaseError, TestError, TestRunner};

// Miri runs them some thousand times slower.
const CASES: u32 = if cfg!(miri) { 2 } else { 96 };
const LONGEST: usize = if cfg!(miri) { 60 } else { 600 };

fn hold(preset: Preset, gives: Gives) {
    let mut runner = TestRunner::new(Config {
        cases: CASES,
        // No files: a failure prints the whole program.
        failure_persistence: None,
        max_shrink_time: 15_000,
        ..Config::default()
    });
    let programs = (
        select(&CAPACITIES),
        select(&LIMITS),
        vec(any::<u8>(), 0..LONGEST),
    );
    let programs = programs.prop_map(|(capacity, limit, bytes)| {
        let setup = Setup {
            preset,
            gives,
            capacity,
            limit,
        };
        (setup, op::program(&bytes))
    });
    let outcome = runner.run(&programs, |(setup, program)| {
        program::run(setup, &program).map_err(TestCaseError::fail)
    });
    match outcome {
        // The reason names the program.
        Err(TestError::Fail(reason, _)) => panic!("{reason}"),
        other => other.expect("programs can be made"),
    }
}

macro_rules! models {
    ($($name:ident: $preset:ident, $gives:ident;)*) => {
        $(#[test]
        fn $name() {
            hold(Preset::$preset, Gives::$gives);
        })*
    };
}

models! {
    default_with_grains: Default, Grains;
    default_with_whole_pages: Default, WholePages;
    default_with_segments: Default, Segments;
    xla_with_pages: Xla, WholePages;
    xla_with_segments: Xla, Segments;
    luma_0_3_with_pages: Luma03, WholePages;
    luma_0_3_with_segments: Luma03, Segments;
}
