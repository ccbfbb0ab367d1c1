//! Structures of launches.

use std::ffi::{c_char, c_void};

/// `CUlaunchConfig`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct LaunchConfig {
    pub grid: [u32; 3],
    pub block: [u32; 3],
    pub shared_bytes: u32,
    pub stream: u64,
    pub attributes: *const LaunchAttribute,
    pub attribute_count: u32,
}

/// `CUlaunchAttribute`. The value is a union of 64 bytes.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct LaunchAttribute {
    pub id: u32,
    pub value: [u64; 8],
}

/// `CU_LAUNCH_ATTRIBUTE_COOPERATIVE`.
pub const ATTRIBUTE_COOPERATIVE: u32 = 2;
/// `CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION`.
pub const ATTRIBUTE_CLUSTER_DIMENSION: u32 = 4;
/// `CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT`.
pub const ATTRIBUTE_PROGRAMMATIC_EVENT: u32 = 7;
/// `CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT`.
pub const ATTRIBUTE_COMPLETION_EVENT: u32 = 12;
/// `CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE`.
pub const ATTRIBUTE_DEVICE_UPDATABLE: u32 = 13;

/// `CU_LAUNCH_PARAM_END`.
pub const PARAM_END: usize = 0;
/// `CU_LAUNCH_PARAM_BUFFER_POINTER`.
pub const PARAM_BUFFER_POINTER: usize = 1;
/// `CU_LAUNCH_PARAM_BUFFER_SIZE`.
pub const PARAM_BUFFER_SIZE: usize = 2;

/// `fakecuda_launch_t`: what a stand-in kernel is told.
#[repr(C)]
#[derive(Debug)]
pub struct Launch {
    pub struct_size: usize,
    pub name: *const c_char,
    pub grid: [u32; 3],
    pub block: [u32; 3],
    pub shared_bytes: usize,
    pub stream: *mut c_void,
    pub params: *mut *mut c_void,
    pub nparams: usize,
}

const _: () = {
    assert!(size_of::<LaunchConfig>() == 56);
    assert!(size_of::<LaunchAttribute>() == 72);
};
