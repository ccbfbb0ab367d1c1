//! Structures about devices and contexts.

use std::ffi::c_void;

/// `CUdevprop`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct DeviceProperties {
    pub max_threads_per_block: i32,
    pub max_threads_dim: [i32; 3],
    pub max_grid_size: [i32; 3],
    pub shared_memory_per_block: i32,
    pub total_constant_memory: i32,
    pub simd_width: i32,
    pub memory_pitch: i32,
    pub registers_per_block: i32,
    pub clock_rate: i32,
    pub texture_alignment: i32,
}

/// `CUctxCreateParams`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ContextParameters {
    pub affinities: *const c_void,
    pub affinity_count: i32,
    pub graphics: *const c_void,
}

/// `CUexecAffinityParam`. The parameter is a union of one.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ExecAffinity {
    pub kind: u32,
    pub multiprocessors: u32,
}
