//! Any bytes as a graph: every result is an error or a plan that the checker accepts. The fuzz target
//! `plan` does the same.

#![cfg(not(miri))]

mod support;

use proptest::collection::vec;
use proptest::prelude::any;
use proptest::test_runner::{Config, TestCaseError, TestRunner};
use std::cell::Cell;
use std::ops::ControlFlow;
use support::plan_bytes::run;

#[test]
fn any_bytes_are_an_error_or_a_valid_plan() {
    let mut runner = TestRunner::new(Config {
        cases: 2_000,
        // No files: a failure prints the graph.
        failure_persistence: None,
        max_shrink_time: 15_000,
        ..Config::default()
    });
    let (plans, spilling) = (Cell::new(0), Cell::new(0));
    let outcome = runner.run(&vec(any::<u8>(), 0..800), |bytes| match run(&bytes) {
        ControlFlow::Break(problem) => Err(TestCaseError::fail(problem)),
        ControlFlow::Continue(spills) => {
            plans.set(plans.get() + usize::from(spills.is_some()));
            spilling.set(spilling.get() + usize::from(spills > Some(0)));
            Ok(())
        }
    });
    outcome.unwrap_or_else(|problem| panic!("{problem}"));
    let (plans, spilling) = (plans.get(), spilling.get());
    println!("{plans} plans, {spilling} of them with spills");
    assert!(plans > 300 && spilling > 100, "{plans}, {spilling}");
}
