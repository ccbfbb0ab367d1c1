//! Nodes of graphs: added, described, changed.

use super::capture::edges;
use super::graph_memory;
use crate::abi::copy::Copy3D;
use crate::abi::graph::{
    ChildNode, CopyNode, EventNode, FreeNode, HostNode, HostNodeV1, KernelNode, KernelNodeV1,
    NodeParameters, NodeUnion, SetNode, SetNodeV1,
};
use crate::driver;
use crate::entry::put;
use crate::graph::{Change, Content, Edge, EdgeData, Params, node_type};
use crate::state::{State, lock};
use crate::status::{Code, Result};
use std::ptr;

/// `CU_GRAPH_CHILD_GRAPH_OWNERSHIP_MOVE`, and what queries give.
const OWNERSHIP_MOVE: i32 = 1;
const OWNERSHIP_INVALID: i32 = -1;

/// Reads a structure that may not be null.
///
/// # Safety
/// It is null or such a structure.
pub unsafe fn read<T: Copy>(from: *const T) -> Result<T> {
    if from.is_null() {
        return Err(Code::INVALID_VALUE);
    }
    // SAFETY: the caller gives such a structure.
    Ok(unsafe { from.read_unaligned() })
}

/// A kernel node's structure in its newer form.
pub fn newer(node: KernelNodeV1) -> KernelNode {
    KernelNode {
        v1: node,
        kernel: 0,
        context: 0,
    }
}

/// Adds a node with the content that `make` gives.
unsafe fn add(
    to: *mut u64,
    graph: u64,
    (dependencies, count): (*const u64, usize),
    make: impl FnOnce(&mut State) -> Result<Content>,
) -> Result {
    // SAFETY: the caller gives so many dependencies.
    let edges = unsafe { edges(dependencies, ptr::null(), count)? };
    let mut state = lock();
    let content = make(&mut state)?;
    if to.is_null() {
        return Err(Code::INVALID_VALUE);
    }
    let handle = state.graphs.add_node(graph, content, edges)?;
    // SAFETY: the caller gives a place for a handle.
    unsafe { put(to, handle) }
}

/// What a program's description of a node means, if that is all there is to the node.
unsafe fn content(state: &State, node: &NodeParameters) -> Result<Content> {
    // SAFETY: the type says which part of the union is filled in.
    unsafe {
        match node.node_type {
            node_type::KERNEL => state.kernel_content(&node.of.kernel),
            node_type::COPY => {
                let context = state.context_or_current(node.of.copy.context)?;
                state.copy_content(context, &node.of.copy.copy)
            }
            node_type::SET => {
                let context = state.context_or_current(node.of.set.context)?;
                state.set_content(context, &node.of.set.v1)
            }
            node_type::HOST => state.host_content(&node.of.host.v1),
            node_type::EMPTY => Ok(Content::Empty),
            node_type::WAIT_EVENT => {
                let event = node.of.event.event;
                state
                    .exec
                    .event(event)
                    .map(|_| Content::EventWait { event })
            }
            node_type::EVENT_RECORD => {
                let event = node.of.event.event;
                state
                    .exec
                    .event(event)
                    .map(|_| Content::EventRecord { event })
            }
            _ => Err(Code::NOT_SUPPORTED),
        }
    }
}

unsafe fn add_any(to: *mut u64, graph: u64, edges: Vec<Edge>, node: *mut NodeParameters) -> Result {
    if to.is_null() || node.is_null() {
        return Err(Code::INVALID_VALUE);
    }
    let mut state = lock();
    // SAFETY: the caller gives a node and a place for a handle.
    unsafe {
        let node = &mut *node;
        let handle = match node.node_type {
            node_type::GRAPH => {
                let child = node.of.child;
                let is_moved = child.ownership == OWNERSHIP_MOVE;
                state.add_child_node(graph, child.graph, is_moved, edges)?
            }
            node_type::ALLOCATE => {
                graph_memory::add_allocation(&mut state, graph, edges, &mut node.of.allocation)?
            }
            node_type::FREE => state.add_free(graph, node.of.free.address, edges)?,
            _ => {
                let content = content(&state, node)?;
                state.graphs.add_node(graph, content, edges)?
            }
        };
        put(to, handle)
    }
}

/// The structure that describes a node.
pub fn describe(state: &State, node: u64) -> Result<NodeParameters> {
    let content = &state.graphs.node(node)?.content;
    let context = state.content_context(content);
    let mut of = NodeUnion { bytes: [0; 29] };
    match content {
        Content::Work { params, .. } => match params {
            Some(Params::Kernel(kernel)) => of.kernel = kernel.node(),
            Some(Params::Copy(copy)) => {
                of.copy = CopyNode {
                    flags: 0,
                    reserved: 0,
                    context,
                    copy: **copy,
                }
            }
            Some(Params::Set(v1)) => of.set = SetNode { v1: *v1, context },
            None => return Err(Code::INVALID_VALUE),
        },
        Content::Host { function, data } => {
            of.host = HostNode {
                v1: HostNodeV1 {
                    function: Some(*function),
                    data: *data,
                },
                synchronization: 0,
                context,
            }
        }
        Content::Child { graph } => {
            of.child = ChildNode {
                graph: *graph,
                ownership: OWNERSHIP_INVALID,
            }
        }
        Content::EventRecord { event } | Content::EventWait { event } => {
            of.event = EventNode {
                event: *event,
                context,
            }
        }
        Content::Allocate { .. } => of.allocation = graph_memory::describe(state, content)?,
        Content::Free { address } => of.free = FreeNode { address: *address },
        Content::Empty => {}
    }
    Ok(NodeParameters {
        node_type: content.node_type(),
        reserved: [0; 3],
        of,
        reserved_end: 0,
    })
}

/// Gives a node of a graph another content of the same type.
unsafe fn change_any(node: u64, to: *const NodeParameters) -> Result {
    // SAFETY: the caller gives a node.
    let to = unsafe { read(to)? };
    let mut state = lock();
    match to.node_type {
        node_type::ALLOCATE | node_type::FREE => Err(Code::NOT_SUPPORTED),
        _ => {
            // SAFETY: as above.
            let content = unsafe { content(&state, &to)? };
            state.change_node(node, content)
        }
    }
}

unsafe fn change_executable_any(executable: u64, node: u64, to: *const NodeParameters) -> Result {
    // SAFETY: the caller gives a node.
    let to = unsafe { read(to)? };
    let mut state = lock();
    let change = match to.node_type {
        node_type::ALLOCATE | node_type::FREE => return Err(Code::NOT_SUPPORTED),
        node_type::GRAPH => Change::Child {
            // SAFETY: the type says that it is filled in.
            graph: unsafe { to.of.child.graph },
        },
        // SAFETY: as above.
        _ => Change::To(unsafe { content(&state, &to)? }),
    };
    state.change_executable(executable, node, change)
}

driver! {
    fn cuGraphAddEmptyNode(node: *mut u64, graph: u64, dependencies: *const u64, count: usize) {
        add(node, graph, (dependencies, count), |_| Ok(Content::Empty))
    }

    fn cuGraphAddKernelNode(
        node: *mut u64,
        graph: u64,
        dependencies: *const u64,
        count: usize,
        parameters: *const KernelNodeV1,
    ) {
        add(node, graph, (dependencies, count), |state| {
            state.kernel_content(&newer(read(parameters)?))
        })
    }

    fn cuGraphAddKernelNode_v2(
        node: *mut u64,
        graph: u64,
        dependencies: *const u64,
        count: usize,
        parameters: *const KernelNode,
    ) {
        add(node, graph, (dependencies, count), |state| state.kernel_content(&read(parameters)?))
    }

    fn cuGraphAddMemcpyNode(
        node: *mut u64,
        graph: u64,
        dependencies: *const u64,
        count: usize,
        parameters: *const Copy3D,
        context: u64,
    ) {
        add(node, graph, (dependencies, count), |state| {
            let context = state.context_or_current(context)?;
            state.copy_content(context, &read(parameters)?)
        })
    }

    fn cuGraphAddMemsetNode(
        node: *mut u64,
        graph: u64,
        dependencies: *const u64,
        count: usize,
        parameters: *const SetNodeV1,
        context: u64,
    ) {
        add(node, graph, (dependencies, count), |state| {
            let context = state.context_or_current(context)?;
            state.set_content(context, &read(parameters)?)
        })
    }

    fn cuGraphAddHostNode(
        node: *mut u64,
        graph: u64,
        dependencies: *const u64,
        count: usize,
        parameters: *const HostNodeV1,
    ) {
        add(node, graph, (dependencies, count), |state| state.host_content(&read(parameters)?))
    }

    fn cuGraphAddChildGraphNode(
        node: *mut u64,
        graph: u64,
        dependencies: *const u64,
        count: usize,
        child: u64,
    ) {
        if node.is_null() {
            return Err(Code::INVALID_VALUE);
        }
        let edges = edges(dependencies, ptr::null(), count)?;
        let handle = lock().add_child_node(graph, child, false, edges)?;
        put(node, handle)
    }

    fn cuGraphAddEventRecordNode(
        node: *mut u64,
        graph: u64,
        dependencies: *const u64,
        count: usize,
        event: u64,
    ) {
        add(node, graph, (dependencies, count), |state| {
            state.exec.event(event)?;
            Ok(Content::EventRecord { event })
        })
    }

    fn cuGraphAddEventWaitNode(
        node: *mut u64,
        graph: u64,
        dependencies: *const u64,
        count: usize,
        event: u64,
    ) {
        add(node, graph, (dependencies, count), |state| {
            state.exec.event(event)?;
            Ok(Content::EventWait { event })
        })
    }

    fn cuGraphAddNode(
        node: *mut u64,
        graph: u64,
        dependencies: *const u64,
        count: usize,
        parameters: *mut NodeParameters,
    ) {
        add_any(node, graph, edges(dependencies, ptr::null(), count)?, parameters)
    }

    fn cuGraphAddNode_v2(
        node: *mut u64,
        graph: u64,
        dependencies: *const u64,
        data: *const EdgeData,
        count: usize,
        parameters: *mut NodeParameters,
    ) {
        add_any(node, graph, edges(dependencies, data, count)?, parameters)
    }

    fn cuGraphAddNode_v3(
        node: *mut u64,
        graph: u64,
        dependencies: *const u64,
        data: *const EdgeData,
        count: usize,
        parameters: *mut NodeParameters,
    ) {
        add_any(node, graph, edges(dependencies, data, count)?, parameters)
    }

    fn cuGraphNodeGetParams(node: u64, parameters: *mut NodeParameters) {
        put(parameters, describe(&lock(), node)?)
    }

    fn cuGraphNodeSetParams(node: u64, parameters: *mut NodeParameters) {
        change_any(node, parameters)
    }

    fn cuGraphNodeSetParams_v2(node: u64, parameters: *mut NodeParameters) {
        change_any(node, parameters)
    }

    fn cuGraphExecNodeSetParams(executable: u64, node: u64, parameters: *mut NodeParameters) {
        change_executable_any(executable, node, parameters)
    }
}
