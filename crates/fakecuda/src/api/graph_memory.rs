//! Memory of graphs.

use super::capture::edges;
use crate::abi::graph::AllocationNode;
use crate::abi::memory::{MemAccessDesc, MemLocation, MemPoolProps, allocation_type, location};
use crate::driver;
use crate::entry::put;
use crate::graph::{Content, Edge};
use crate::state::{State, lock};
use crate::status::{Code, Result};
use std::ptr;

/// `CUgraphMem_attribute`.
mod attribute {
    pub const USED: u32 = 0;
    pub const USED_HIGH: u32 = 1;
    pub const RESERVED: u32 = 2;
    pub const RESERVED_HIGH: u32 = 3;
}

/// Adds an allocation node and writes the address. Gives the node.
///
/// # Safety
/// The access descriptors are as many as the node says.
pub unsafe fn add_allocation(
    state: &mut State,
    graph: u64,
    edges: Vec<Edge>,
    node: &mut AllocationNode,
) -> Result<u64> {
    let pool = &node.pool;
    let is_plain = pool.kind == allocation_type::PINNED
        && pool.handle_types == 0
        && pool.location.kind == location::DEVICE;
    if !is_plain || node.access_count > 0 && node.access.is_null() {
        return Err(Code::INVALID_VALUE);
    }
    let device = state
        .device(pool.location.id)
        .map_err(|_| Code::INVALID_VALUE)?;
    for index in 0..node.access_count {
        // SAFETY: the caller promises it.
        let access = unsafe { node.access.add(index).read_unaligned() };
        if access.location.kind != location::DEVICE || state.device(access.location.id).is_err() {
            return Err(Code::INVALID_VALUE);
        }
    }
    let (handle, address) = state.add_allocation(graph, device, node.bytes as u64, edges)?;
    node.address = address;
    Ok(handle)
}

/// The structure of an allocation node.
pub fn describe(state: &State, content: &Content) -> Result<AllocationNode> {
    let &Content::Allocate { address } = content else {
        return Err(Code::INVALID_VALUE);
    };
    let (device, bytes) = state.graphs.describe_memory(address)?;
    Ok(AllocationNode {
        pool: MemPoolProps {
            kind: allocation_type::PINNED,
            handle_types: 0,
            location: MemLocation::of_device(device as i32),
            win32: ptr::null_mut(),
            max_size: 0,
            usage: 0,
            gpu_direct_rdma: 0,
            reserved: [0; 53],
        },
        access: ptr::null::<MemAccessDesc>(),
        access_count: 0,
        bytes: bytes as usize,
        address,
    })
}

driver! {
    fn cuGraphAddMemAllocNode(
        node: *mut u64,
        graph: u64,
        dependencies: *const u64,
        count: usize,
        parameters: *mut AllocationNode,
    ) {
        if node.is_null() || parameters.is_null() {
            return Err(Code::INVALID_VALUE);
        }
        let edges = edges(dependencies, ptr::null(), count)?;
        let handle = add_allocation(&mut lock(), graph, edges, &mut *parameters)?;
        put(node, handle)
    }

    fn cuGraphMemAllocNodeGetParams(node: u64, parameters: *mut AllocationNode) {
        let state = lock();
        put(parameters, describe(&state, &state.graphs.node(node)?.content)?)
    }

    fn cuGraphAddMemFreeNode(
        node: *mut u64,
        graph: u64,
        dependencies: *const u64,
        count: usize,
        address: u64,
    ) {
        if node.is_null() {
            return Err(Code::INVALID_VALUE);
        }
        let edges = edges(dependencies, ptr::null(), count)?;
        let handle = lock().add_free(graph, address, edges)?;
        put(node, handle)
    }

    fn cuGraphMemFreeNodeGetParams(node: u64, address: *mut u64) {
        match lock().graphs.node(node)?.content {
            Content::Free { address: freed } => put(address, freed),
            _ => Err(Code::INVALID_VALUE),
        }
    }

    fn cuDeviceGraphMemTrim(device: i32) {
        // Memory that no graph has is given back as soon as it is not in use.
        lock().device(device).map(drop)
    }

    fn cuDeviceGetGraphMemAttribute(device: i32, number: u32, value: *mut u64) {
        let mut state = lock();
        let device = state.device(device)?;
        let usage = state.graphs.memory_use(device);
        put(value, match number {
            attribute::USED => usage.used,
            attribute::USED_HIGH => usage.used_high,
            attribute::RESERVED => usage.reserved,
            attribute::RESERVED_HIGH => usage.reserved_high,
            _ => return Err(Code::INVALID_VALUE),
        })
    }

    fn cuDeviceSetGraphMemAttribute(device: i32, number: u32, value: *const u64) {
        let mut state = lock();
        let device = state.device(device)?;
        // High water marks can be set to 0 only, and then start from what is in use.
        if value.is_null() || value.read_unaligned() != 0 {
            return Err(Code::INVALID_VALUE);
        }
        let usage = state.graphs.memory_use(device);
        match number {
            attribute::USED_HIGH => usage.used_high = usage.used,
            attribute::RESERVED_HIGH => usage.reserved_high = usage.reserved,
            _ => return Err(Code::INVALID_VALUE),
        }
        Ok(())
    }
}
