//! The end of things: contexts, processes, and calls that fail.

use crate::harness::{c, cu, holds, runtime_holds, says_the_same};

// pitfall 27
#[test]
fn reset_and_release_take_all_memory_along() {
    holds("reset");
}

// pitfall 27
#[test]
fn destroyed_contexts_take_their_memory_along() {
    holds("own_contexts");
}

// pitfall 28
#[test]
fn child_of_fork_has_no_driver() {
    holds("fork_child");
}

// pitfall 28
#[test]
fn fork_while_other_threads_allocate() {
    holds("fork_busy");
}

/// The lines come in the order of the handlers, and nothing else is said, on either stream.
fn ends_late(program: Option<crate::harness::Program>) {
    let Some(program) = program else {
        return;
    };
    let program = program.ends_with(3);
    for runs in [program.alone(), program.with_luma()] {
        for written in runs {
            assert_eq!(written, "early\nlate\n");
        }
    }
}

// pitfall 29
#[test]
fn exit_handlers_free_late() {
    ends_late(c("late_destructor"));
}

// pitfall 29
#[test]
fn static_destructors_free_late() {
    ends_late(cu("late_destructor_cpp"));
}

// pitfall 29
#[test]
fn destructors_of_threads_free_memory() {
    holds("thread_ends");
}

// pitfall 29
#[test]
fn process_ends_while_threads_allocate() {
    if let Some(program) = c("exit_busy") {
        program.ends_with(3).both();
    }
}

// pitfall 30
#[test]
fn sizes_and_arguments_out_of_the_ordinary() {
    says_the_same("sizes");
}

// pitfall 30
#[test]
fn first_call_is_a_free_of_nothing() {
    runtime_holds("first_call");
}

// pitfall 31
#[test]
fn captured_allocations_are_nodes() {
    holds("graph_memory");
}

// pitfall 31
#[test]
fn only_graph_memory_is_freed_by_a_graph() {
    says_the_same("outside_of_graph");
}

// pitfall 31
#[test]
fn captured_allocations_of_the_runtime_are_nodes() {
    runtime_holds("graph_memory_of_runtime");
}

// pitfall 17, 42, 47
#[test]
fn each_call_of_the_driver_fails_once() {
    if let Some(program) = c("each_call_fails") {
        program.env("FAKECUDA_MEM", "16M").both();
    }
}
