//! What there is and what it looks like: free memory, alignment, captures, the driver's pools.

use crate::harness::{c, holds};

// pitfall 32
#[test]
fn free_memory_is_what_can_be_had() {
    holds("memory_info");
}

// pitfall 32
#[test]
fn device_looks_as_large_as_the_limit() {
    let bytes = (64 << 20).to_string();
    let program = || c("memory_info").map(|program| program.args(&["limit", &bytes]));
    let (Some(small), Some(limited)) = (program(), program()) else {
        return;
    };
    // A device of that size, and a larger one of which luma may use so much.
    small.env("FAKECUDA_MEM", &bytes).alone();
    limited.env("LUMA_MEMORY_LIMIT", &bytes).with_luma();
}

// pitfall 41
#[test]
fn blocks_are_aligned_and_apart() {
    holds("alignment");
}

// pitfall 43
#[test]
fn memory_takes_no_file_descriptors() {
    holds("descriptors");
}

// pitfall 44
#[test]
fn captures_stay_active() {
    let Some(program) = c("capture") else {
        return;
    };
    program.both();
    program.args(&["cached"]).with_luma();
}

// pitfall 45
#[test]
fn memory_of_the_driver_s_pools_can_be_had() {
    let Some(program) = c("driver_pools") else {
        return;
    };
    program.both();
    program.args(&["cached"]).with_luma();
}

// pitfall 45
#[test]
fn freed_memory_is_there_for_all_functions() {
    holds("others_need");
}

// pitfall 48
#[test]
fn each_request_is_a_call_of_the_driver_when_off() {
    let Some(program) = c("pass_through") else {
        return;
    };
    let program = program.env("LUMA_INTERPOSE", "off");
    program.both();
}

// pitfall 49
#[test]
fn management_library_is_called_unchecked() {
    holds("management_library");
}
