// cudaGetDeviceProperties, from the driver's attributes.
#include "runtime.h"

#include <string.h>

using rt::driver;

namespace {

// Attributes answer an int; a device that does not know one leaves the property 0.
struct Attributes {
    int device;
    int operator()(CUdevice_attribute attribute) const {
        int value = 0;
        if (driver.DeviceGetAttribute_v2000(&value, attribute, device) != CUDA_SUCCESS)
            value = 0;
        return value;
    }
};

void fill_limits(cudaDeviceProp *p, const Attributes &get) {
    p->sharedMemPerBlock = get(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK);
    p->regsPerBlock = get(CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK);
    p->warpSize = get(CU_DEVICE_ATTRIBUTE_WARP_SIZE);
    p->memPitch = get(CU_DEVICE_ATTRIBUTE_MAX_PITCH);
    p->maxThreadsPerBlock = get(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
    p->maxThreadsDim[0] = get(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X);
    p->maxThreadsDim[1] = get(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y);
    p->maxThreadsDim[2] = get(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z);
    p->maxGridSize[0] = get(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X);
    p->maxGridSize[1] = get(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y);
    p->maxGridSize[2] = get(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z);
    p->totalConstMem = get(CU_DEVICE_ATTRIBUTE_TOTAL_CONSTANT_MEMORY);
    p->multiProcessorCount = get(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
    p->l2CacheSize = get(CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE);
    p->persistingL2CacheMaxSize = get(CU_DEVICE_ATTRIBUTE_MAX_PERSISTING_L2_CACHE_SIZE);
    p->maxThreadsPerMultiProcessor = get(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR);
    p->sharedMemPerMultiprocessor = get(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR);
    p->regsPerMultiprocessor = get(CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR);
    p->sharedMemPerBlockOptin = get(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN);
    p->maxBlocksPerMultiProcessor = get(CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR);
    p->accessPolicyMaxWindowSize = get(CU_DEVICE_ATTRIBUTE_MAX_ACCESS_POLICY_WINDOW_SIZE);
    p->reservedSharedMemPerBlock = get(CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK);
    p->memoryBusWidth = get(CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH);
    p->asyncEngineCount = get(CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT);
}

void fill_textures(cudaDeviceProp *p, const Attributes &get) {
    p->textureAlignment = get(CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT);
    p->texturePitchAlignment = get(CU_DEVICE_ATTRIBUTE_TEXTURE_PITCH_ALIGNMENT);
    p->surfaceAlignment = get(CU_DEVICE_ATTRIBUTE_SURFACE_ALIGNMENT);
    p->maxTexture1D = get(CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_WIDTH);
    p->maxTexture1DMipmap = get(CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_MIPMAPPED_WIDTH);
    p->maxTexture2D[0] = get(CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_WIDTH);
    p->maxTexture2D[1] = get(CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_HEIGHT);
    p->maxTexture2DMipmap[0] = get(CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_MIPMAPPED_WIDTH);
    p->maxTexture2DMipmap[1] = get(CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_MIPMAPPED_HEIGHT);
    p->maxTexture2DLinear[0] = get(CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LINEAR_WIDTH);
    p->maxTexture2DLinear[1] = get(CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LINEAR_HEIGHT);
    p->maxTexture2DLinear[2] = get(CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LINEAR_PITCH);
    p->maxTexture2DGather[0] = get(CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_GATHER_WIDTH);
    p->maxTexture2DGather[1] = get(CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_GATHER_HEIGHT);
    p->maxTexture3D[0] = get(CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE3D_WIDTH);
    p->maxTexture3D[1] = get(CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE3D_HEIGHT);
    p->maxTexture3D[2] = get(CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE3D_DEPTH);
    p->maxTexture3DAlt[0] = get(CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE3D_WIDTH_ALTERNATE);
    p->maxTexture3DAlt[1] = get(CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE3D_HEIGHT_ALTERNATE);
    p->maxTexture3DAlt[2] = get(CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE3D_DEPTH_ALTERNATE);
    p->maxTextureCubemap = get(CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURECUBEMAP_WIDTH);
    p->maxTexture1DLayered[0] = get(CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_LAYERED_WIDTH);
    p->maxTexture1DLayered[1] = get(CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_LAYERED_LAYERS);
    p->maxTexture2DLayered[0] = get(CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LAYERED_WIDTH);
    p->maxTexture2DLayered[1] = get(CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LAYERED_HEIGHT);
    p->maxTexture2DLayered[2] = get(CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LAYERED_LAYERS);
    p->maxTextureCubemapLayered[0] = get(CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURECUBEMAP_LAYERED_WIDTH);
    p->maxTextureCubemapLayered[1] = get(CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURECUBEMAP_LAYERED_LAYERS);
    p->maxSurface1D = get(CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE1D_WIDTH);
    p->maxSurface2D[0] = get(CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE2D_WIDTH);
    p->maxSurface2D[1] = get(CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE2D_HEIGHT);
    p->maxSurface3D[0] = get(CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE3D_WIDTH);
    p->maxSurface3D[1] = get(CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE3D_HEIGHT);
    p->maxSurface3D[2] = get(CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE3D_DEPTH);
    p->maxSurface1DLayered[0] = get(CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE1D_LAYERED_WIDTH);
    p->maxSurface1DLayered[1] = get(CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE1D_LAYERED_LAYERS);
    p->maxSurface2DLayered[0] = get(CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE2D_LAYERED_WIDTH);
    p->maxSurface2DLayered[1] = get(CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE2D_LAYERED_HEIGHT);
    p->maxSurface2DLayered[2] = get(CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE2D_LAYERED_LAYERS);
    p->maxSurfaceCubemap = get(CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACECUBEMAP_WIDTH);
    p->maxSurfaceCubemapLayered[0] = get(CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACECUBEMAP_LAYERED_WIDTH);
    p->maxSurfaceCubemapLayered[1] = get(CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACECUBEMAP_LAYERED_LAYERS);
}

void fill_abilities(cudaDeviceProp *p, const Attributes &get) {
    p->integrated = get(CU_DEVICE_ATTRIBUTE_INTEGRATED);
    p->canMapHostMemory = get(CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY);
    p->concurrentKernels = get(CU_DEVICE_ATTRIBUTE_CONCURRENT_KERNELS);
    p->ECCEnabled = get(CU_DEVICE_ATTRIBUTE_ECC_ENABLED);
    p->tccDriver = get(CU_DEVICE_ATTRIBUTE_TCC_DRIVER);
    p->unifiedAddressing = get(CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING);
    p->streamPrioritiesSupported = get(CU_DEVICE_ATTRIBUTE_STREAM_PRIORITIES_SUPPORTED);
    p->globalL1CacheSupported = get(CU_DEVICE_ATTRIBUTE_GLOBAL_L1_CACHE_SUPPORTED);
    p->localL1CacheSupported = get(CU_DEVICE_ATTRIBUTE_LOCAL_L1_CACHE_SUPPORTED);
    p->managedMemory = get(CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY);
    p->isMultiGpuBoard = get(CU_DEVICE_ATTRIBUTE_MULTI_GPU_BOARD);
    p->multiGpuBoardGroupID = get(CU_DEVICE_ATTRIBUTE_MULTI_GPU_BOARD_GROUP_ID);
    p->hostNativeAtomicSupported = get(CU_DEVICE_ATTRIBUTE_HOST_NATIVE_ATOMIC_SUPPORTED);
    p->pageableMemoryAccess = get(CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS);
    p->concurrentManagedAccess = get(CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS);
    p->computePreemptionSupported = get(CU_DEVICE_ATTRIBUTE_COMPUTE_PREEMPTION_SUPPORTED);
    p->canUseHostPointerForRegisteredMem = get(CU_DEVICE_ATTRIBUTE_CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM);
    p->cooperativeLaunch = get(CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH);
    p->pageableMemoryAccessUsesHostPageTables = get(CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS_USES_HOST_PAGE_TABLES);
    p->directManagedMemAccessFromHost = get(CU_DEVICE_ATTRIBUTE_DIRECT_MANAGED_MEM_ACCESS_FROM_HOST);
    p->hostRegisterSupported = get(CU_DEVICE_ATTRIBUTE_HOST_REGISTER_SUPPORTED);
    p->sparseCudaArraySupported = get(CU_DEVICE_ATTRIBUTE_SPARSE_CUDA_ARRAY_SUPPORTED);
    p->hostRegisterReadOnlySupported = get(CU_DEVICE_ATTRIBUTE_READ_ONLY_HOST_REGISTER_SUPPORTED);
    p->timelineSemaphoreInteropSupported = get(CU_DEVICE_ATTRIBUTE_TIMELINE_SEMAPHORE_INTEROP_SUPPORTED);
    p->memoryPoolsSupported = get(CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED);
    p->gpuDirectRDMASupported = get(CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_SUPPORTED);
    p->gpuDirectRDMAFlushWritesOptions = get(CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_FLUSH_WRITES_OPTIONS);
    p->gpuDirectRDMAWritesOrdering = get(CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WRITES_ORDERING);
    p->memoryPoolSupportedHandleTypes = get(CU_DEVICE_ATTRIBUTE_MEMPOOL_SUPPORTED_HANDLE_TYPES);
    p->deferredMappingCudaArraySupported = get(CU_DEVICE_ATTRIBUTE_DEFERRED_MAPPING_CUDA_ARRAY_SUPPORTED);
    p->ipcEventSupported = get(CU_DEVICE_ATTRIBUTE_IPC_EVENT_SUPPORTED);
    p->clusterLaunch = get(CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH);
    p->unifiedFunctionPointers = get(CU_DEVICE_ATTRIBUTE_UNIFIED_FUNCTION_POINTERS);
#if CUDART_VERSION >= 13000
    p->deviceNumaConfig = get(CU_DEVICE_ATTRIBUTE_NUMA_CONFIG);
    p->deviceNumaId = get(CU_DEVICE_ATTRIBUTE_NUMA_ID);
    p->mpsEnabled = get(CU_DEVICE_ATTRIBUTE_MPS_ENABLED);
    p->hostNumaId = get(CU_DEVICE_ATTRIBUTE_HOST_NUMA_ID);
    p->gpuPciDeviceID = get(CU_DEVICE_ATTRIBUTE_GPU_PCI_DEVICE_ID);
    p->gpuPciSubsystemID = get(CU_DEVICE_ATTRIBUTE_GPU_PCI_SUBSYSTEM_ID);
    p->hostNumaMultinodeIpcSupported = get(CU_DEVICE_ATTRIBUTE_HOST_NUMA_MULTINODE_IPC_SUPPORTED);
#else
    p->clockRate = get(CU_DEVICE_ATTRIBUTE_CLOCK_RATE);
    p->deviceOverlap = get(CU_DEVICE_ATTRIBUTE_GPU_OVERLAP);
    p->kernelExecTimeoutEnabled = get(CU_DEVICE_ATTRIBUTE_KERNEL_EXEC_TIMEOUT);
    p->computeMode = get(CU_DEVICE_ATTRIBUTE_COMPUTE_MODE);
    p->memoryClockRate = get(CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE);
    p->singleToDoublePrecisionPerfRatio = get(CU_DEVICE_ATTRIBUTE_SINGLE_TO_DOUBLE_PRECISION_PERF_RATIO);
    p->cooperativeMultiDeviceLaunch = get(CU_DEVICE_ATTRIBUTE_COOPERATIVE_MULTI_DEVICE_LAUNCH);
    p->maxTexture1DLinear = get(CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_LINEAR_WIDTH);
#endif
}

int properties(cudaDeviceProp *p, int device) {
    if (p == nullptr)
        return cudaErrorInvalidValue;
    if (!rt::is_device(device))
        return cudaErrorInvalidDevice;
    memset(p, 0, sizeof *p);
    if (int status = driver.DeviceGetName_v2000(p->name, sizeof p->name, device))
        return status;
    if (int status = driver.DeviceGetUuid_v11040(reinterpret_cast<CUuuid *>(&p->uuid), device))
        return status;
    if (int status = driver.DeviceTotalMem_v3020(&p->totalGlobalMem, device))
        return status;
    // Only Windows has a locally unique id.
    if (driver.DeviceGetLuid_v10000(p->luid, &p->luidDeviceNodeMask, device) != CUDA_SUCCESS) {
        memset(p->luid, 0, sizeof p->luid);
        p->luidDeviceNodeMask = 0;
    }
    Attributes get{device};
    p->major = get(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
    p->minor = get(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
    p->pciBusID = get(CU_DEVICE_ATTRIBUTE_PCI_BUS_ID);
    p->pciDeviceID = get(CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID);
    p->pciDomainID = get(CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID);
    fill_limits(p, get);
    fill_textures(p, get);
    fill_abilities(p, get);
    return cudaSuccess;
}

} // namespace

// Version 12 keeps the plain name for the structure of version 11, which its headers no longer have.
#if CUDART_VERSION < 13000
#undef cudaGetDeviceProperties
RT_API cudaError_t cudaGetDeviceProperties_v2(cudaDeviceProp *p, int device) {
#else
RT_API cudaError_t cudaGetDeviceProperties(cudaDeviceProp *p, int device) {
#endif
    return rt::ask([&] { return properties(p, device); });
}
