//! Any bytes as a program of operations, against the model of `tests/model.rs`.

#![no_main]

#[path = "../../tests/support/program/mod.rs"]
mod program;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let (setup, operations) = program::op::setup_and_program(bytes);
    if let Err(problem) = program::run(setup, &operations) {
        panic!("{problem}");
    }
});
