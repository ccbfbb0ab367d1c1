//! What C passes, as the planner takes it.

use super::types::{
    luma_access_t, luma_buffer_t, luma_graph_t, luma_memory_t, luma_node_kind_t, luma_node_t,
    luma_spill_cost_t, luma_use_t,
};
use crate::error::{Error, Result, Status};
use crate::ffi::boundary::null;
use crate::ffi::versioned;
use crate::plan::{BufferInput, GraphInput, MemoryInput, NodeInput, NodeKind, SpillCost, Use};
use crate::text::{Text, text};
use std::ffi::CStr;

pub(super) fn invalid(message: Text) -> Error {
    Error::new(Status::InvalidValue, message)
}

/// A field that is there for later versions.
pub(super) fn unused(name: &str, value: u64) -> Result<()> {
    match value {
        0 => Ok(()),
        _ => Err(invalid(text!("{name} is {value}, not 0"))),
    }
}

/// A field that is 0 or 1.
pub(super) fn flag(name: &str, value: i32) -> Result<bool> {
    match value {
        0 => Ok(false),
        1 => Ok(true),
        _ => Err(invalid(text!("{name} is {value}, neither 0 nor 1"))),
    }
}

/// An array that the caller passed.
///
/// # Safety
/// `from` is NULL or misaligned, or `count` values may be read there for as long as the result is
/// used.
pub(super) unsafe fn array<'a, T>(name: &str, from: *const T, count: usize) -> Result<&'a [T]> {
    if count == 0 {
        return Ok(&[]);
    }
    if from.is_null() {
        return Err(null(name));
    }
    if !from.is_aligned() {
        return Err(invalid(text!("{name} is misaligned")));
    }
    if count > isize::MAX as usize / size_of::<T>().max(1) {
        let message = text!("{name} cannot have {count} elements");
        return Err(invalid(message));
    }
    // SAFETY: not NULL, aligned, no larger than objects may be, and the caller's contract.
    Ok(unsafe { std::slice::from_raw_parts(from, count) })
}

/// A copy of an array in another form; without memory for it, an error.
pub(super) fn converted<T, U>(
    from: &[T],
    mut convert: impl FnMut(usize, &T) -> Result<U>,
) -> Result<Vec<U>> {
    let mut to = Vec::new();
    to.try_reserve_exact(from.len())
        .map_err(|_| Error::host_memory())?;
    for (at, value) in from.iter().enumerate() {
        to.push(convert(at, value)?);
    }
    Ok(to)
}

fn node(at: usize, node: &luma_node_t) -> Result<NodeInput> {
    const OPERATION: i32 = luma_node_kind_t::LUMA_NODE_OPERATION as i32;
    const COPY_IN: i32 = luma_node_kind_t::LUMA_NODE_COPY_IN as i32;
    const ALLOC: i32 = luma_node_kind_t::LUMA_NODE_ALLOC as i32;
    const FREE: i32 = luma_node_kind_t::LUMA_NODE_FREE as i32;
    let kind = match node.kind {
        OPERATION | COPY_IN => NodeKind::Operation,
        ALLOC => NodeKind::Alloc(node.buffer),
        FREE => NodeKind::Free(node.buffer),
        kind => {
            return Err(invalid(text!(
                "the kind of node {at} is {kind}, none of an operation, a COPY_IN, an ALLOC or a FREE"
            )));
        }
    };
    unused("reserved of a node", node.reserved.into())?;
    Ok(NodeInput {
        kind,
        pipe: node.pipe,
        cycles: node.cycles,
        is_copy_in: node.kind == COPY_IN,
    })
}

fn usage(at: usize, used: &luma_use_t) -> Result<(u32, Use)> {
    const UNKNOWN: i32 = luma_access_t::LUMA_ACCESS_UNKNOWN as i32;
    const READ: i32 = luma_access_t::LUMA_ACCESS_READ as i32;
    const WRITE: i32 = luma_access_t::LUMA_ACCESS_WRITE as i32;
    const READ_WRITE: i32 = luma_access_t::LUMA_ACCESS_READ_WRITE as i32;
    let (reads, writes) = match used.access {
        UNKNOWN => (false, false),
        READ => (true, false),
        WRITE => (false, true),
        READ_WRITE => (true, true),
        access => {
            return Err(invalid(text!(
                "the access of use {at}, of buffer {} by node {}, is {access}, which is no luma_access_t",
                used.buffer,
                used.node
            )));
        }
    };
    let used_so = Use {
        buffer: used.buffer,
        reads,
        writes,
    };
    Ok((used.node, used_so))
}

fn buffer(_: usize, buffer: &luma_buffer_t) -> Result<BufferInput> {
    unused("reserved of a buffer", buffer.reserved.into())?;
    Ok(BufferInput {
        size: buffer.size,
        memory: buffer.memory,
    })
}

/// # Safety
/// The memory's name is NULL or a string that ends in NUL.
unsafe fn memory(at: usize, memory: &luma_memory_t) -> Result<MemoryInput> {
    unused(
        "reserved of a memory",
        u64::from(memory.reserved.unsigned_abs()),
    )?;
    let name = if memory.name.is_null() {
        at.to_string()
    } else {
        // SAFETY: not NULL, and the caller's contract.
        let name = unsafe { CStr::from_ptr(memory.name) };
        name.to_string_lossy().into_owned()
    };
    Ok(MemoryInput {
        name,
        capacity: memory.capacity,
        single: flag("single of a memory", memory.single)?,
    })
}

/// # Safety
/// `cost` is NULL or points to a `luma_spill_cost_t` of its `struct_size`.
unsafe fn spill_cost(cost: *const luma_spill_cost_t) -> Result<SpillCost> {
    if cost.is_null() {
        return Ok(SpillCost::contest());
    }
    // SAFETY: the caller's contract.
    let cost = unsafe { versioned::read(cost) }?;
    unused(
        "reserved of luma_spill_cost_t",
        u64::from(cost.reserved.unsigned_abs()),
    )?;
    Ok(SpillCost {
        out_per_byte: cost.out_cycles_per_byte,
        out_fixed: cost.out_fixed_latency,
        in_per_byte: cost.in_cycles_per_byte,
        in_fixed: cost.in_fixed_latency,
        backed_out_is_free: !flag("charge_backed_out", cost.charge_backed_out)?,
        out_pipe: cost.out_pipe,
        in_pipe: cost.in_pipe,
    })
}

/// # Safety
/// `graph` is NULL or points to a `luma_graph_t` of its `struct_size`, whose arrays hold as many
/// elements as it says.
pub(super) unsafe fn graph(graph: *const luma_graph_t) -> Result<GraphInput> {
    // SAFETY: the caller's contract.
    let graph = unsafe { versioned::read(graph) }?;
    // SAFETY: the caller's contract, of every array.
    let (nodes, uses, edges, buffers, memories) = unsafe {
        (
            array("nodes", graph.nodes, graph.node_count)?,
            array("uses", graph.uses, graph.use_count)?,
            array("edges", graph.edges, graph.edge_count)?,
            array("buffers", graph.buffers, graph.buffer_count)?,
            array("memories", graph.memories, graph.memory_count)?,
        )
    };
    Ok(GraphInput {
        nodes: converted(nodes, node)?,
        uses: converted(uses, usage)?,
        edges: converted(edges, |_, edge| Ok((edge.from, edge.to)))?,
        buffers: converted(buffers, buffer)?,
        // SAFETY: the caller's contract.
        memories: converted(memories, |at, data| unsafe { memory(at, data) })?,
        // SAFETY: the caller's contract.
        cost: unsafe { spill_cost(graph.cost) }?,
    })
}
