//! Any bytes as a graph to plan: an error, or a plan that the checker accepts.

#![no_main]

#[path = "../../tests/support/plan_bytes.rs"]
mod plan_bytes;
#[path = "../../tests/support/plan_rules.rs"]
#[allow(dead_code)]
mod plan_rules;

use libfuzzer_sys::fuzz_target;
use std::ops::ControlFlow;

fuzz_target!(|bytes: &[u8]| {
    if let ControlFlow::Break(problem) = plan_bytes::run(bytes) {
        panic!("{problem}");
    }
});
