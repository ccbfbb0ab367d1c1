//! What is in a graph, and its dependencies.

use super::capture::edges;
use crate::driver;
use crate::entry::put;
use crate::graph::{Edge, EdgeData};
use crate::state::lock;
use crate::status::{Code, Result};
use std::ptr;

/// Gives a list as the functions here do: how many there are, or as many as there is room for and null
/// for the rest.
///
/// # Safety
/// `count` is null or a number, and `to` is null or has room for as many.
unsafe fn put_list<T: Copy>(list: &[T], none: T, to: *mut T, count: *mut usize) -> Result {
    if count.is_null() {
        return Err(Code::INVALID_VALUE);
    }
    // SAFETY: the caller promises it.
    unsafe {
        if to.is_null() {
            count.write_unaligned(list.len());
            return Ok(());
        }
        let room = count.read_unaligned();
        for index in 0..room {
            to.add(index)
                .write_unaligned(list.get(index).copied().unwrap_or(none));
        }
        count.write_unaligned(room.min(list.len()));
    }
    Ok(())
}

/// Gives nodes with the data of dependencies. Without room for data that is not zero, it fails.
unsafe fn put_edges(
    edges: &[Edge],
    nodes: *mut u64,
    data: *mut EdgeData,
    count: *mut usize,
) -> Result {
    if !data.is_null() && nodes.is_null() {
        return Err(Code::INVALID_VALUE);
    }
    if !nodes.is_null() && data.is_null() && edges.iter().any(|edge| edge.data != [0; 8]) {
        return Err(Code::LOSSY_QUERY);
    }
    let of_nodes: Vec<u64> = edges.iter().map(|edge| edge.from).collect();
    let of_data: Vec<EdgeData> = edges.iter().map(|edge| edge.data).collect();
    // SAFETY: the caller gives room for as many as the number says.
    unsafe {
        if !data.is_null() {
            let mut room = count.as_ref().copied().unwrap_or(0);
            put_list(&of_data, [0; 8], data, &mut room)?;
        }
        put_list(&of_nodes, 0, nodes, count)
    }
}

unsafe fn all_edges(
    graph: u64,
    from: *mut u64,
    to: *mut u64,
    data: *mut EdgeData,
    count: *mut usize,
) -> Result {
    if from.is_null() != to.is_null() || count.is_null() {
        return Err(Code::INVALID_VALUE);
    }
    let edges = lock().graphs.edges(graph)?;
    let of_from: Vec<Edge> = edges.iter().map(|(edge, _)| *edge).collect();
    let of_to: Vec<u64> = edges.iter().map(|(_, to)| *to).collect();
    // SAFETY: the caller gives room for as many as the number says.
    unsafe {
        let mut room = count.read_unaligned();
        put_edges(&of_from, from, data, count)?;
        put_list(&of_to, 0, to, &mut room)
    }
}

unsafe fn pairs(
    from: *const u64,
    to: *const u64,
    data: *const EdgeData,
    count: usize,
) -> Result<Vec<(Edge, u64)>> {
    if count > 0 && to.is_null() {
        return Err(Code::INVALID_VALUE);
    }
    // SAFETY: the caller gives `count` of each.
    unsafe {
        let from = edges(from, data, count)?;
        let to = (0..count).map(|index| to.add(index).read_unaligned());
        Ok(from.into_iter().zip(to).collect())
    }
}

driver! {
    fn cuGraphGetNodes(graph: u64, nodes: *mut u64, count: *mut usize) {
        let list = lock().graphs.graph(graph)?.nodes.clone();
        put_list(&list, 0, nodes, count)
    }

    fn cuGraphGetRootNodes(graph: u64, nodes: *mut u64, count: *mut usize) {
        let state = lock();
        let mut roots = state.graphs.graph(graph)?.nodes.clone();
        let is_root = |node: &u64| {
            let node = state.graphs.node(*node);
            node.is_ok_and(|node| node.dependencies.is_empty())
        };
        roots.retain(is_root);
        put_list(&roots, 0, nodes, count)
    }

    fn cuGraphGetEdges(graph: u64, from: *mut u64, to: *mut u64, count: *mut usize) {
        all_edges(graph, from, to, ptr::null_mut(), count)
    }

    fn cuGraphGetEdges_v2(
        graph: u64,
        from: *mut u64,
        to: *mut u64,
        data: *mut EdgeData,
        count: *mut usize,
    ) {
        all_edges(graph, from, to, data, count)
    }

    fn cuGraphNodeGetDependencies(node: u64, nodes: *mut u64, count: *mut usize) {
        let list = lock().graphs.node(node)?.dependencies.clone();
        put_edges(&list, nodes, ptr::null_mut(), count)
    }

    fn cuGraphNodeGetDependencies_v2(
        node: u64,
        nodes: *mut u64,
        data: *mut EdgeData,
        count: *mut usize,
    ) {
        let list = lock().graphs.node(node)?.dependencies.clone();
        put_edges(&list, nodes, data, count)
    }

    fn cuGraphNodeGetDependentNodes(node: u64, nodes: *mut u64, count: *mut usize) {
        let list = lock().graphs.dependents(node)?;
        put_edges(&list, nodes, ptr::null_mut(), count)
    }

    fn cuGraphNodeGetDependentNodes_v2(
        node: u64,
        nodes: *mut u64,
        data: *mut EdgeData,
        count: *mut usize,
    ) {
        let list = lock().graphs.dependents(node)?;
        put_edges(&list, nodes, data, count)
    }

    fn cuGraphAddDependencies(graph: u64, from: *const u64, to: *const u64, count: usize) {
        let pairs = pairs(from, to, ptr::null(), count)?;
        lock().graphs.add_dependencies(graph, &pairs)
    }

    fn cuGraphAddDependencies_v2(
        graph: u64,
        from: *const u64,
        to: *const u64,
        data: *const EdgeData,
        count: usize,
    ) {
        let pairs = pairs(from, to, data, count)?;
        lock().graphs.add_dependencies(graph, &pairs)
    }

    fn cuGraphRemoveDependencies(graph: u64, from: *const u64, to: *const u64, count: usize) {
        let pairs = pairs(from, to, ptr::null(), count)?;
        lock().graphs.remove_dependencies(graph, &pairs)
    }

    fn cuGraphRemoveDependencies_v2(
        graph: u64,
        from: *const u64,
        to: *const u64,
        data: *const EdgeData,
        count: usize,
    ) {
        let pairs = pairs(from, to, data, count)?;
        lock().graphs.remove_dependencies(graph, &pairs)
    }

    fn cuGraphDestroyNode(node: u64) {
        lock().destroy_node(node)
    }

    fn cuGraphNodeGetType(node: u64, node_type: *mut u32) {
        put(node_type, lock().graphs.node(node)?.content.node_type())
    }

    fn cuGraphNodeFindInClone(found: *mut u64, node: u64, clone: u64) {
        let handle = lock().graphs.find_in_clone(node, clone)?;
        put(found, handle)
    }

    fn cuGraphNodeGetContainingGraph(node: u64, graph: *mut u64) {
        put(graph, lock().graphs.node(node)?.graph)
    }

    fn cuGraphNodeGetLocalId(node: u64, number: *mut u32) {
        put(number, lock().graphs.node(node)?.local)
    }

    fn cuGraphNodeGetToolsId(node: u64, number: *mut u64) {
        put(number, lock().graphs.node(node)?.number)
    }
}
