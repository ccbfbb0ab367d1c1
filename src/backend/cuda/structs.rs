//! The structures of the driver's interface that luma passes, by the names of `cuda.h`. Their layout
//! has been the same since CUDA 10.2.

use core::ffi::{c_int, c_void};

/// `CU_MEM_ALLOCATION_TYPE_PINNED`: memory that stays where it is.
const PINNED: c_int = 1;
/// `CU_MEM_LOCATION_TYPE_DEVICE`.
const DEVICE: c_int = 1;
/// `CU_MEM_ACCESS_FLAGS_PROT_READWRITE`.
const READ_AND_WRITE: c_int = 3;

/// `CUmemLocation`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
struct Location {
    kind: c_int,
    id: c_int,
}

/// `CUmemAllocationProp`: what physical memory is like.
#[repr(C)]
#[derive(Debug)]
pub(super) struct AllocationProperties {
    kind: c_int,
    handle_types: c_int,
    location: Location,
    win32_metadata: *mut c_void,
    compression_type: u8,
    gpu_direct_rdma_capable: u8,
    usage: u16,
    reserved: [u8; 4],
}

impl AllocationProperties {
    /// Ordinary memory of a device, without handles for other processes; whether network adapters are to
    /// reach it.
    pub(super) const fn of_device(device: c_int, for_rdma: bool) -> Self {
        Self {
            kind: PINNED,
            handle_types: 0,
            location: Location {
                kind: DEVICE,
                id: device,
            },
            win32_metadata: std::ptr::null_mut(),
            compression_type: 0,
            gpu_direct_rdma_capable: for_rdma as u8,
            usage: 0,
            reserved: [0; 4],
        }
    }
}

/// `CUmemAccessDesc`: who may touch a mapping.
#[repr(C)]
#[derive(Debug)]
pub(super) struct AccessDescription {
    location: Location,
    flags: c_int,
}

impl AccessDescription {
    /// A device may read and write.
    pub(super) const fn full(device: c_int) -> Self {
        Self {
            location: Location {
                kind: DEVICE,
                id: device,
            },
            flags: READ_AND_WRITE,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_layouts_are_those_of_the_header() {
        assert_eq!(size_of::<AllocationProperties>(), 32);
        assert_eq!(std::mem::offset_of!(AllocationProperties, location), 8);
        assert_eq!(
            std::mem::offset_of!(AllocationProperties, win32_metadata),
            16
        );
        assert_eq!(
            std::mem::offset_of!(AllocationProperties, gpu_direct_rdma_capable),
            25
        );
        assert_eq!(size_of::<AccessDescription>(), 12);
    }
}
