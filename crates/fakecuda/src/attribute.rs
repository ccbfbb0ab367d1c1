//! What a device says of itself: a board of compute capability 9.0, less what host memory cannot do.

use crate::device;
use crate::environment::environment;

/// `CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR`.
const POSIX_FILE_DESCRIPTOR: i32 = 1;

/// An answer of `cuDeviceGetAttribute`; `None` for an attribute that does not exist.
pub fn value(attribute: u32, device: usize) -> Option<i32> {
    let environment = environment();
    let (major, minor) = environment.capability;
    let virtual_memory = i32::from(!environment.no_virtual_memory);
    let pools = i32::from(!environment.no_pools);
    Some(match attribute {
        // Launches.
        1 => 1024,                    // MAX_THREADS_PER_BLOCK
        2 | 3 => 1024,                // MAX_BLOCK_DIM_X, _Y
        4 => 64,                      // MAX_BLOCK_DIM_Z
        5 => i32::MAX,                // MAX_GRID_DIM_X
        6 | 7 => 65_535,              // MAX_GRID_DIM_Y, _Z
        8 => 48 << 10,                // MAX_SHARED_MEMORY_PER_BLOCK
        9 => 64 << 10,                // TOTAL_CONSTANT_MEMORY
        10 => 32,                     // WARP_SIZE
        12 => 65_536,                 // MAX_REGISTERS_PER_BLOCK
        16 => 132,                    // MULTIPROCESSOR_COUNT
        17 => 0,                      // KERNEL_EXEC_TIMEOUT
        20 => 0,                      // COMPUTE_MODE: default
        31 => 1,                      // CONCURRENT_KERNELS
        39 => 2048,                   // MAX_THREADS_PER_MULTIPROCESSOR
        75 => major,                  // COMPUTE_CAPABILITY_MAJOR
        76 => minor,                  // COMPUTE_CAPABILITY_MINOR
        78 => 1,                      // STREAM_PRIORITIES_SUPPORTED
        79 | 80 => 1,                 // GLOBAL_, LOCAL_L1_CACHE_SUPPORTED
        81 => 228 << 10,              // MAX_SHARED_MEMORY_PER_MULTIPROCESSOR
        82 => 65_536,                 // MAX_REGISTERS_PER_MULTIPROCESSOR
        87 => 2,                      // SINGLE_TO_DOUBLE_PRECISION_PERF_RATIO
        90 => 1,                      // COMPUTE_PREEMPTION_SUPPORTED
        95 => 1,                      // COOPERATIVE_LAUNCH
        96 => 0,                      // COOPERATIVE_MULTI_DEVICE_LAUNCH
        97 => 227 << 10,              // MAX_SHARED_MEMORY_PER_BLOCK_OPTIN
        106 => 32,                    // MAX_BLOCKS_PER_MULTIPROCESSOR
        111 => 1 << 10,               // RESERVED_SHARED_MEMORY_PER_BLOCK
        120 => i32::from(major >= 9), // CLUSTER_LAUNCH
        126 => {
            if major >= 9 {
                4
            } else {
                1
            }
        } // MEM_SYNC_DOMAIN_COUNT
        127 => i32::from(major >= 9), // TENSOR_MAP_ACCESS_SUPPORTED
        129 => 0,                     // UNIFIED_FUNCTION_POINTERS
        133 => 0,                     // MPS_ENABLED
        149 => 1,                     // LOCALITY_DOMAIN_COUNT
        150 => 0,                     // MAX_OVERSIZED_SHARED_MEMORY_PER_BLOCK
        157 => 132,                   // LOCALITY_DOMAIN_MULTIPROCESSOR_COUNT

        // The board.
        13 => 1_980_000,                  // CLOCK_RATE
        15 => 1,                          // GPU_OVERLAP
        18 => 0,                          // INTEGRATED
        32 => 1,                          // ECC_ENABLED
        33 => device::bus(device) as i32, // PCI_BUS_ID
        34 => 0,                          // PCI_DEVICE_ID
        35 => 0,                          // TCC_DRIVER
        36 => 2_619_000,                  // MEMORY_CLOCK_RATE
        37 => 5120,                       // GLOBAL_MEMORY_BUS_WIDTH
        38 => 50 << 20,                   // L2_CACHE_SIZE
        40 => 3,                          // ASYNC_ENGINE_COUNT
        50 => 0,                          // PCI_DOMAIN_ID
        84 => 0,                          // MULTI_GPU_BOARD
        85 => device as i32,              // MULTI_GPU_BOARD_GROUP_ID
        108 => 30 << 20,                  // MAX_PERSISTING_L2_CACHE_SIZE
        109 => 128 << 20,                 // MAX_ACCESS_POLICY_WINDOW_SIZE
        130 => 0,                         // NUMA_CONFIG: none
        131 => -1,                        // NUMA_ID
        134 => 0,                         // HOST_NUMA_ID
        139 | 140 => 0,                   // GPU_PCI_DEVICE_ID, GPU_PCI_SUBSYSTEM_ID

        // Memory.
        11 => i32::MAX,                       // MAX_PITCH
        19 => 1,                              // CAN_MAP_HOST_MEMORY
        41 => 1,                              // UNIFIED_ADDRESSING
        83 => 1,                              // MANAGED_MEMORY
        86 => 0,                              // HOST_NATIVE_ATOMIC_SUPPORTED
        88 => 0,                              // PAGEABLE_MEMORY_ACCESS
        89 => 1,                              // CONCURRENT_MANAGED_ACCESS
        91 => 1,                              // CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM
        92..=94 => 0,                         // the first memory operations of streams
        98 => 0,                              // CAN_FLUSH_REMOTE_WRITES
        99 => 1,                              // HOST_REGISTER_SUPPORTED
        100 => 0,                             // PAGEABLE_MEMORY_ACCESS_USES_HOST_PAGE_TABLES
        101 => 0,                             // DIRECT_MANAGED_MEM_ACCESS_FROM_HOST
        102 => virtual_memory,                // VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED
        103 => virtual_memory,                // HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED
        104 | 105 => 0,                       // HANDLE_TYPE_WIN32_*
        107 => 0,                             // GENERIC_COMPRESSION_SUPPORTED
        110 => virtual_memory,                // GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED
        112 => 0,                             // SPARSE_CUDA_ARRAY_SUPPORTED
        113 => 1,                             // READ_ONLY_HOST_REGISTER_SUPPORTED
        114 => 0,                             // TIMELINE_SEMAPHORE_INTEROP_SUPPORTED
        115 => pools,                         // MEMORY_POOLS_SUPPORTED
        116 => 1,                             // GPU_DIRECT_RDMA_SUPPORTED
        117 => 1,                             // GPU_DIRECT_RDMA_FLUSH_WRITES_OPTIONS: host
        118 => 100,                           // GPU_DIRECT_RDMA_WRITES_ORDERING: owner
        119 => POSIX_FILE_DESCRIPTOR * pools, // MEMPOOL_SUPPORTED_HANDLE_TYPES
        121 => 0,                             // DEFERRED_MAPPING_CUDA_ARRAY_SUPPORTED
        122 | 123 => 1,                       // CAN_USE_64_BIT_STREAM_MEM_OPS, _WAIT_VALUE_NOR
        124 => 0,                             // DMA_BUF_SUPPORTED
        125 => 1,                             // IPC_EVENT_SUPPORTED
        128 => 0,                             // HANDLE_TYPE_FABRIC_SUPPORTED
        132 => 0,                             // MULTICAST_SUPPORTED
        135 | 138 | 151 | 159 => 0,           // D3D12_ and VULKAN_CIG(_STREAMS)_SUPPORTED
        136 | 137 => 0,                       // MEM_DECOMPRESS_*
        141 | 145 => virtual_memory, // HOST_NUMA_, HOST_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED
        142 | 144 => pools,          // HOST_NUMA_, HOST_MEMORY_POOLS_SUPPORTED
        143 => 0,                    // HOST_NUMA_MULTINODE_IPC_SUPPORTED
        146 => 0,                    // HOST_ALLOC_DMA_BUF_SUPPORTED
        147 => 0,                    // ONLY_PARTIAL_HOST_NATIVE_ATOMIC_SUPPORTED
        148 => 0,                    // ATOMIC_REDUCTION_SUPPORTED
        152 => 0,                    // DMA_BUF_MMAP_SUPPORTED
        153..=156 | 158 => 0,        // LOGICAL_ENDPOINT_*
        160 => 128 << 10,            // TENSOR_MAP_LARGE_TENSOR_MIN_SIZE
        161 => 0,                    // GPU_DIRECT_RDMA_WITH_LOCALIZED_MEMORY_SUPPORTED

        // Textures and surfaces.
        14 => 512,         // TEXTURE_ALIGNMENT
        21 => 131_072,     // MAXIMUM_TEXTURE1D_WIDTH
        22 => 131_072,     // MAXIMUM_TEXTURE2D_WIDTH
        23 => 65_536,      // MAXIMUM_TEXTURE2D_HEIGHT
        24..=26 => 16_384, // MAXIMUM_TEXTURE3D_*
        27 | 28 => 32_768, // MAXIMUM_TEXTURE2D_LAYERED_WIDTH, _HEIGHT
        29 => 2048,        // MAXIMUM_TEXTURE2D_LAYERED_LAYERS
        30 => 512,         // SURFACE_ALIGNMENT
        42 => 32_768,      // MAXIMUM_TEXTURE1D_LAYERED_WIDTH
        43 => 2048,        // MAXIMUM_TEXTURE1D_LAYERED_LAYERS
        44 => 1,           // CAN_TEX2D_GATHER
        45 | 46 => 32_768, // MAXIMUM_TEXTURE2D_GATHER_*
        47 | 48 => 8192,   // MAXIMUM_TEXTURE3D_WIDTH_, _HEIGHT_ALTERNATE
        49 => 32_768,      // MAXIMUM_TEXTURE3D_DEPTH_ALTERNATE
        51 => 32,          // TEXTURE_PITCH_ALIGNMENT
        52 | 53 => 32_768, // MAXIMUM_TEXTURECUBEMAP_(LAYERED_)WIDTH
        54 => 2046,        // MAXIMUM_TEXTURECUBEMAP_LAYERED_LAYERS
        55 => 32_768,      // MAXIMUM_SURFACE1D_WIDTH
        56 => 131_072,     // MAXIMUM_SURFACE2D_WIDTH
        57 => 65_536,      // MAXIMUM_SURFACE2D_HEIGHT
        58..=60 => 16_384, // MAXIMUM_SURFACE3D_*
        61 => 32_768,      // MAXIMUM_SURFACE1D_LAYERED_WIDTH
        62 => 2048,        // MAXIMUM_SURFACE1D_LAYERED_LAYERS
        63 | 64 => 32_768, // MAXIMUM_SURFACE2D_LAYERED_WIDTH, _HEIGHT
        65 => 2048,        // MAXIMUM_SURFACE2D_LAYERED_LAYERS
        66 | 67 => 32_768, // MAXIMUM_SURFACECUBEMAP_(LAYERED_)WIDTH
        68 => 2046,        // MAXIMUM_SURFACECUBEMAP_LAYERED_LAYERS
        69 => 1 << 28,     // MAXIMUM_TEXTURE1D_LINEAR_WIDTH
        70 => 131_072,     // MAXIMUM_TEXTURE2D_LINEAR_WIDTH
        71 => 65_000,      // MAXIMUM_TEXTURE2D_LINEAR_HEIGHT
        72 => 2_097_120,   // MAXIMUM_TEXTURE2D_LINEAR_PITCH
        73 | 74 => 32_768, // MAXIMUM_TEXTURE2D_MIPMAPPED_*
        77 => 32_768,      // MAXIMUM_TEXTURE1D_MIPMAPPED_WIDTH
        _ => return None,
    })
}

/// An attribute that exists, for this library's own use.
pub fn known(attribute: u32, device: usize) -> i32 {
    value(attribute, device).unwrap_or(0)
}
