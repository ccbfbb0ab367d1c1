//! Structures of graphs.

use super::copy::Copy3D;
use super::memory::{MemAccessDesc, MemPoolProps};
use std::ffi::c_void;

/// `CUDA_KERNEL_NODE_PARAMS_v1`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct KernelNodeV1 {
    pub function: u64,
    pub grid: [u32; 3],
    pub block: [u32; 3],
    pub shared_bytes: u32,
    pub parameters: *const *mut c_void,
    pub extra: *const *mut c_void,
}

/// `CUDA_KERNEL_NODE_PARAMS_v2` and `_v3`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct KernelNode {
    pub v1: KernelNodeV1,
    /// Instead of the function.
    pub kernel: u64,
    pub context: u64,
}

/// `CUDA_MEMCPY_NODE_PARAMS`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct CopyNode {
    pub flags: i32,
    pub reserved: i32,
    pub context: u64,
    pub copy: Copy3D,
}

/// `CUDA_MEMSET_NODE_PARAMS_v1`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct SetNodeV1 {
    pub address: u64,
    pub pitch: usize,
    pub value: u32,
    pub element_bytes: u32,
    pub width: usize,
    pub height: usize,
}

/// `CUDA_MEMSET_NODE_PARAMS_v2`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct SetNode {
    pub v1: SetNodeV1,
    pub context: u64,
}

/// `CUDA_HOST_NODE_PARAMS_v1`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct HostNodeV1 {
    pub function: Option<unsafe extern "C" fn(*mut c_void)>,
    pub data: u64,
}

/// `CUDA_HOST_NODE_PARAMS_v2`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct HostNode {
    pub v1: HostNodeV1,
    pub synchronization: u32,
    pub context: u64,
}

/// `CUDA_CHILD_GRAPH_NODE_PARAMS`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ChildNode {
    pub graph: u64,
    pub ownership: i32,
}

/// `CUDA_EVENT_RECORD_NODE_PARAMS`. `CUDA_EVENT_WAIT_NODE_PARAMS` is the event alone, and the rest of
/// the union is zero.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct EventNode {
    pub event: u64,
    pub context: u64,
}

/// `CUDA_MEM_ALLOC_NODE_PARAMS`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct AllocationNode {
    pub pool: MemPoolProps,
    pub access: *const MemAccessDesc,
    pub access_count: usize,
    pub bytes: usize,
    /// What the call gives.
    pub address: u64,
}

/// `CUDA_MEM_FREE_NODE_PARAMS`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct FreeNode {
    pub address: u64,
}

/// The part of `CUgraphNodeParams` that depends on the type.
#[repr(C)]
#[derive(Clone, Copy)]
pub union NodeUnion {
    pub bytes: [u64; 29],
    pub kernel: KernelNode,
    pub copy: CopyNode,
    pub set: SetNode,
    pub host: HostNode,
    pub child: ChildNode,
    pub event: EventNode,
    pub allocation: AllocationNode,
    pub free: FreeNode,
}

/// `CUgraphNodeParams`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct NodeParameters {
    pub node_type: u32,
    pub reserved: [i32; 3],
    pub of: NodeUnion,
    pub reserved_end: i64,
}

const _: () = {
    assert!(size_of::<KernelNodeV1>() == 56);
    assert!(size_of::<KernelNode>() == 72);
    assert!(size_of::<CopyNode>() == 216);
    assert!(size_of::<SetNode>() == 48);
    assert!(size_of::<HostNode>() == 32);
    assert!(size_of::<AllocationNode>() == 120);
    assert!(size_of::<NodeParameters>() == 256);
};
