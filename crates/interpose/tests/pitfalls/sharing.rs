//! Memory that others look at: other processes, other devices, libraries that register it.

use crate::harness::{Program, c, holds, says_the_same};

fn ipc(arguments: &[&str]) -> Option<Program> {
    c("ipc").map(|program| program.args(arguments))
}

// pitfall 33
#[test]
fn handles_of_ranges_carry_their_offset() {
    for arguments in [&["offset"][..], &["offset", "base"]] {
        if let Some(program) = ipc(arguments) {
            program.both();
        }
    }
}

// pitfall 33
#[test]
fn handle_is_right_or_refused() {
    let Some(program) = ipc(&["naive", "either"]) else {
        return;
    };
    program.both();
}

// pitfall 33, 34
#[test]
fn shared_blocks_have_segments_of_their_own_on_request() {
    let Some(program) = ipc(&["naive", "alone"]) else {
        return;
    };
    program.alone();
    program.env("LUMA_INTERPOSE_IPC", "own").with_luma();
}

// pitfall 35
#[test]
fn buffer_ids_tell_whether_memory_is_the_same() {
    holds("buffer_id");
}

// pitfall 36, 46
#[test]
fn attributes_are_those_of_the_driver() {
    says_the_same("attributes");
}

// pitfall 37
#[test]
fn memory_has_legacy_handles() {
    holds("legacy_ipc");
}

// pitfall 38
#[test]
fn ranges_hold_whole_blocks() {
    holds("address_range");
}

// pitfall 39
#[test]
fn memory_needs_no_virtual_memory_management() {
    for (name, value) in [
        ("FAKECUDA_FAIL", "cuMemSetAccess:0:999,cuMemCreate:0:999"),
        ("FAKECUDA_NO_VMM", "1"),
    ] {
        for program in [c("alignment"), c("legacy_ipc")].into_iter().flatten() {
            program.env(name, value).both();
        }
    }
}

// pitfall 40
#[test]
fn peers_reach_all_memory() {
    holds("peer");
}
