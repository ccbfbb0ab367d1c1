//! Whose memory it is: foreign pointers, kinds, streams, work that is queued, threads.

use crate::harness::{c, cu, holds};

// pitfall 18
#[test]
fn last_error_is_clean_after_a_repaired_failure() {
    let Some(program) = cu("last_error") else {
        return;
    };
    program.both();
    program.args(&["repaired"]).with_luma();
}

// pitfall 19
#[test]
fn foreign_pointers_are_freed_by_the_driver() {
    holds("foreign");
}

// pitfall 20
#[test]
fn four_pairs_of_allocation_and_free() {
    holds("four_pairs");
}

// pitfall 21
#[test]
fn freed_memory_waits_for_queued_work() {
    let Some(program) = c("late_free") else {
        return;
    };
    program.both();
    program.args(&["devices"]).with_luma();
}

// pitfall 21
#[test]
fn freed_memory_waits_for_queued_work_where_a_free_waits() {
    let Some(program) = c("late_free") else {
        return;
    };
    program.env("LUMA_INTERPOSE", "wait").with_luma();
}

// pitfall 21
#[test]
fn free_waits_for_the_device_where_it_is_told_to() {
    let Some(program) = c("free_waits") else {
        return;
    };
    program.alone();
    program.env("LUMA_INTERPOSE", "wait").with_luma();
}

// pitfall 21
#[test]
fn freeing_faster_than_the_device_works_takes_little_memory() {
    if let Some(program) = c("free_fast") {
        program.env("FAKECUDA_MEM", "1G").both();
    }
}

// pitfall 22
#[test]
fn streams_are_kept_apart() {
    holds("streams_apart");
}

// pitfall 23
#[test]
fn handles_of_streams_come_back() {
    holds("recycled_streams");
}

// pitfall 24
#[test]
fn hundred_streams_come_and_go() {
    holds("hundred_streams");
}

// pitfall 25
#[test]
fn blocks_are_freed_with_another_device_current() {
    holds("other_current");
}

// pitfall 26
#[test]
fn host_function_takes_a_lock_of_the_freeing_thread() {
    let Some(program) = c("lock_in_callback") else {
        return;
    };
    program.both();
    program.args(&["cached"]).with_luma();
}

/// Work that is queued after a free and waits for the program is not waited for.
fn does_not_wait_for_later_work(argument: &str) {
    let Some(program) = c("work_after_free") else {
        return;
    };
    program.args(&[argument]).both();
}

// pitfall 26
#[test]
fn request_does_not_wait_for_work_that_came_after_the_free() {
    does_not_wait_for_later_work("idle");
    does_not_wait_for_later_work("queued");
}

// pitfall 26
#[test]
fn request_does_not_wait_for_other_streams_than_the_freeing_one() {
    does_not_wait_for_later_work("ordered");
}

// pitfall 26
#[test]
fn request_does_not_wait_for_work_of_another_device() {
    does_not_wait_for_later_work("device");
}

// pitfall 50
#[test]
fn device_memory_is_not_touched_by_the_host() {
    holds("random_blocks");
}
