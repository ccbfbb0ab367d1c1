//! The exported functions, one file a group.

use crate::entry::Entry;

pub mod array;
pub mod batch_copy;
pub mod capture;
pub mod context;
pub mod copy;
pub mod device;
pub mod error;
pub mod event;
pub mod function;
pub mod graph;
pub mod graph_memory;
pub mod graph_node;
pub mod graph_params;
pub mod graph_query;
pub mod host_memory;
pub mod init;
pub mod ipc;
pub mod launch;
pub mod library;
pub mod link;
pub mod managed_memory;
pub mod memory;
pub mod memory_operation;
pub mod module;
pub mod occupancy;
pub mod peer;
pub mod pointer;
pub mod pool;
pub mod primary_context;
pub mod profiler;
pub mod set;
pub mod shaped_copy;
pub mod stream;
pub mod synchronize;
pub mod user_object;
pub mod virtual_memory;

/// All of them.
pub fn entries() -> impl Iterator<Item = &'static Entry> {
    [
        array::ENTRIES,
        batch_copy::ENTRIES,
        capture::ENTRIES,
        context::ENTRIES,
        copy::ENTRIES,
        device::ENTRIES,
        error::ENTRIES,
        event::ENTRIES,
        function::ENTRIES,
        graph::ENTRIES,
        graph_memory::ENTRIES,
        graph_node::ENTRIES,
        graph_params::ENTRIES,
        graph_query::ENTRIES,
        host_memory::ENTRIES,
        init::ENTRIES,
        ipc::ENTRIES,
        launch::ENTRIES,
        library::ENTRIES,
        link::ENTRIES,
        managed_memory::ENTRIES,
        memory::ENTRIES,
        memory_operation::ENTRIES,
        module::ENTRIES,
        occupancy::ENTRIES,
        peer::ENTRIES,
        pointer::ENTRIES,
        pool::ENTRIES,
        primary_context::ENTRIES,
        profiler::ENTRIES,
        set::ENTRIES,
        shaped_copy::ENTRIES,
        stream::ENTRIES,
        synchronize::ENTRIES,
        user_object::ENTRIES,
        virtual_memory::ENTRIES,
    ]
    .into_iter()
    .flatten()
}
