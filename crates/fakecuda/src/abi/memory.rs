//! Structures about memory.

use std::ffi::c_void;

/// `CUmemLocation`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct MemLocation {
    pub kind: u32,
    pub id: i32,
}

/// `CUmemLocationType`.
pub mod location {
    pub const NONE: u32 = 0;
    pub const DEVICE: u32 = 1;
    pub const HOST: u32 = 2;
    pub const HOST_NUMA: u32 = 3;
    pub const HOST_NUMA_CURRENT: u32 = 4;
}

/// `CUmemAllocationType`.
pub mod allocation_type {
    pub const PINNED: u32 = 1;
    pub const MANAGED: u32 = 2;
}

/// `CUmemAllocationHandleType`: the only one that there is here.
pub const HANDLE_POSIX_FILE: u32 = 1;
/// All bits that the header knows.
pub const HANDLE_TYPES: u32 = 0xf;

/// `CUmemAccess_flags`.
pub mod access_flags {
    pub const NONE: u32 = 0;
    pub const READ: u32 = 1;
    pub const READ_WRITE: u32 = 3;
}

/// `CUmemAllocationProp`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct MemAllocationProp {
    pub kind: u32,
    pub handle_types: u32,
    pub location: MemLocation,
    pub win32: *mut c_void,
    pub compression: u8,
    pub gpu_direct_rdma: u8,
    pub usage: u16,
    pub reserved: [u8; 4],
}

// SAFETY: `win32` is carried along and never followed.
unsafe impl Send for MemAllocationProp {}

/// `CUmemAccessDesc`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct MemAccessDesc {
    pub location: MemLocation,
    pub flags: u32,
}

/// `CUmemPoolProps`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct MemPoolProps {
    pub kind: u32,
    pub handle_types: u32,
    pub location: MemLocation,
    pub win32: *mut c_void,
    pub max_size: usize,
    pub usage: u16,
    pub gpu_direct_rdma: u8,
    pub reserved: [u8; 53],
}

// SAFETY: `win32` is carried along and never followed.
unsafe impl Send for MemPoolProps {}

/// `CUipcMemHandle`, `CUipcEventHandle` and `CUmemPoolPtrExportData`: bytes that only the driver reads.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Opaque64(pub [u8; 64]);

impl Opaque64 {
    /// Bytes that hold numbers.
    pub fn of(numbers: [u64; 8]) -> Self {
        let mut bytes = [0; 64];
        for (place, number) in bytes.chunks_exact_mut(8).zip(numbers) {
            place.copy_from_slice(&number.to_le_bytes());
        }
        Self(bytes)
    }

    /// The numbers again.
    pub fn numbers(&self) -> [u64; 8] {
        let mut numbers = [0; 8];
        for (number, place) in numbers.iter_mut().zip(self.0.chunks_exact(8)) {
            let mut one = [0; 8];
            one.copy_from_slice(place);
            *number = u64::from_le_bytes(one);
        }
        numbers
    }
}

/// `CUDA_POINTER_ATTRIBUTE_P2P_TOKENS`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct PeerTokens {
    pub peer: u64,
    pub space: u32,
}

const _: () = {
    assert!(size_of::<MemLocation>() == 8);
    assert!(size_of::<MemAllocationProp>() == 32);
    assert!(size_of::<MemAccessDesc>() == 12);
    assert!(size_of::<MemPoolProps>() == 88);
};
