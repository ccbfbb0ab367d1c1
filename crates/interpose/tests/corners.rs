//! Programs at the edges of contexts, streams, captures and memory find under the library what they find without.

mod support;

use support::{Run, compiled, linked_with_driver, tools};

/// Runs a case of `corners.c` on the driver alone and under the library.
fn is_alike(case: &str, settings: &[(&str, &str)]) {
    if !tools::available(&["cc"]) {
        return;
    }
    let flags = linked_with_driver();
    let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
    let program = compiled("corners.c", &flags);
    let run = || {
        let run = Run::new(&program).arg(case).with_driver();
        settings
            .iter()
            .fold(run, |run, (name, value)| run.env(name, *value))
    };
    assert_eq!(run().run(), "");
    assert_eq!(run().hooked().run(), "");
}

const SMALL: (&str, &str) = ("FAKECUDA_MEM", "64M");
const LATE: (&str, &str) = ("FAKECUDA_EXEC", "lazy");

#[test]
fn what_one_contexts_pool_keeps_serves_another_context() {
    is_alike("cache_of_another_context", &[SMALL]);
}

#[test]
fn a_context_that_ends_takes_nothing_from_one_under_its_handle() {
    is_alike("contexts_of_threads", &[]);
}

#[test]
fn a_primary_context_that_is_made_anew_has_no_memory_of_the_last_one() {
    is_alike("primary_made_anew", &[]);
}

#[test]
fn a_default_stream_is_the_current_contexts() {
    is_alike("default_stream_of_another_context", &[LATE]);
}

#[test]
fn a_stream_does_not_inherit_what_waits_for_one_that_had_its_handle() {
    let old = ("FAKECUDA_UNSUPPORTED", "cuStreamGetId");
    is_alike("handle_of_a_destroyed_stream", &[LATE, old]);
    is_alike("handle_of_a_destroyed_stream", &[LATE]);
}

#[test]
fn memory_comes_however_long_the_work_takes_that_it_waits_for() {
    is_alike("long_work", &[SMALL, ("LUMA_OOM_WAIT", "0.1")]);
}

#[test]
fn captures_end_with_their_contexts() {
    is_alike("context_with_a_capture", &[]);
}

#[test]
fn a_pools_memory_is_its_devices() {
    is_alike("pool_of_another_device", &[("FAKECUDA_DEVICES", "2")]);
}

#[test]
fn work_that_has_failed_for_good_is_not_waited_for() {
    is_alike("failed_work", &[SMALL]);
}

#[test]
fn a_segment_serves_blocks_of_about_its_size() {
    let own = ("LUMA_INTERPOSE_IPC", "own");
    is_alike("segments_of_their_own", &[SMALL, own]);
}
