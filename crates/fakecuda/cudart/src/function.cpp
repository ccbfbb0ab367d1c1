// What a kernel is like, and how many of its blocks fit.
#include "registry.h"
#include "runtime.h"

#include <string.h>

using rt::call;
using rt::driver;

namespace {

// Calls `work` with the kernel behind `function`, and the device of the current context.
template <typename Work>
cudaError_t with_kernel(const void *function, Work work) {
    return call([&]() -> int {
        CUkernel kernel;
        int device;
        if (int status = rt::find_kernel(function, &kernel))
            return status;
        if (int status = rt::current_device(&device))
            return status;
        return work(kernel, device);
    });
}

template <typename Work>
cudaError_t with_function(const void *function, Work work) {
    return call([&]() -> int {
        CUfunction found;
        if (int status = rt::find_function(function, &found))
            return status;
        return work(found);
    });
}

int attributes(cudaFuncAttributes *result, CUkernel kernel, int device) {
    memset(result, 0, sizeof *result);
    int status = cudaSuccess;
    auto get = [&](CUfunction_attribute attribute) {
        int value = 0;
        if (status == cudaSuccess)
            status = driver.KernelGetAttribute_v12000(&value, attribute, kernel, device);
        return value;
    };
    result->sharedSizeBytes = get(CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES);
    result->constSizeBytes = get(CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES);
    result->localSizeBytes = get(CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES);
    result->maxThreadsPerBlock = get(CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
    result->numRegs = get(CU_FUNC_ATTRIBUTE_NUM_REGS);
    result->ptxVersion = get(CU_FUNC_ATTRIBUTE_PTX_VERSION);
    result->binaryVersion = get(CU_FUNC_ATTRIBUTE_BINARY_VERSION);
    result->cacheModeCA = get(CU_FUNC_ATTRIBUTE_CACHE_MODE_CA);
    result->maxDynamicSharedSizeBytes = get(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES);
    result->preferredShmemCarveout = get(CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT);
    result->clusterDimMustBeSet = get(CU_FUNC_ATTRIBUTE_CLUSTER_SIZE_MUST_BE_SET);
    result->requiredClusterWidth = get(CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH);
    result->requiredClusterHeight = get(CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT);
    result->requiredClusterDepth = get(CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH);
    result->clusterSchedulingPolicyPreference = get(CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE);
    result->nonPortableClusterSizeAllowed = get(CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED);
    return status;
}

} // namespace

namespace rt {

static_assert(sizeof(cudaLaunchAttribute) == sizeof(CUlaunchAttribute), "one attribute, two names");

CUlaunchConfig launch_config(const cudaLaunchConfig_t &config) {
    CUlaunchConfig raw;
    memset(&raw, 0, sizeof raw);
    raw.gridDimX = config.gridDim.x;
    raw.gridDimY = config.gridDim.y;
    raw.gridDimZ = config.gridDim.z;
    raw.blockDimX = config.blockDim.x;
    raw.blockDimY = config.blockDim.y;
    raw.blockDimZ = config.blockDim.z;
    raw.sharedMemBytes = shared_size(config.dynamicSmemBytes);
    raw.hStream = config.stream;
    raw.attrs = reinterpret_cast<CUlaunchAttribute *>(config.attrs);
    raw.numAttrs = config.numAttrs;
    return raw;
}

} // namespace rt

RT_API cudaError_t cudaFuncGetAttributes(cudaFuncAttributes *result, const void *function) {
    if (result == nullptr)
        return rt::report(cudaErrorInvalidValue);
    return with_kernel(function, [&](CUkernel kernel, int device) { return attributes(result, kernel, device); });
}

RT_API cudaError_t cudaFuncSetAttribute(const void *function, cudaFuncAttribute attribute, int value) {
    return with_kernel(function, [&](CUkernel kernel, int device) {
        return driver.KernelSetAttribute_v12000(static_cast<CUfunction_attribute>(attribute), value, kernel, device);
    });
}

RT_API cudaError_t cudaFuncSetCacheConfig(const void *function, cudaFuncCache config) {
    return with_kernel(function, [&](CUkernel kernel, int device) {
        return driver.KernelSetCacheConfig_v12000(kernel, static_cast<CUfunc_cache>(config), device);
    });
}

// Boards since Volta have one bank size; the setting is accepted and has no effect.
RT_API cudaError_t cudaFuncSetSharedMemConfig(const void *function, cudaSharedMemConfig) {
    return with_kernel(function, [](CUkernel, int) { return cudaSuccess; });
}

RT_API cudaError_t cudaFuncGetName(const char **name, const void *function) {
    if (name == nullptr)
        return rt::report(cudaErrorInvalidValue);
    return with_kernel(function, [&](CUkernel kernel, int) { return driver.KernelGetName_v12030(name, kernel); });
}

RT_API cudaError_t cudaFuncGetParamInfo(const void *function, size_t index, size_t *offset, size_t *size) {
    return with_kernel(function,
                       [&](CUkernel kernel, int) { return driver.KernelGetParamInfo_v12040(kernel, index, offset, size); });
}

#if CUDART_VERSION >= 13000
RT_API cudaError_t cudaFuncGetParamCount(const void *function, size_t *count) {
    return with_kernel(function, [&](CUkernel kernel, int) { return driver.KernelGetParamCount_v13020(kernel, count); });
}
#endif

RT_API cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *blocks, const void *function, int block_size,
                                                                          size_t shared_bytes, unsigned flags) {
    return with_function(function, [&](CUfunction found) {
        return driver.OccupancyMaxActiveBlocksPerMultiprocessorWithFlags_v7000(blocks, found, block_size, shared_bytes,
                                                                               flags);
    });
}

RT_API cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, const void *function, int block_size,
                                                                 size_t shared_bytes) {
    return cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(blocks, function, block_size, shared_bytes,
                                                                  cudaOccupancyDefault);
}

RT_API cudaError_t cudaOccupancyAvailableDynamicSMemPerBlock(size_t *bytes, const void *function, int blocks,
                                                             int block_size) {
    return with_function(function, [&](CUfunction found) {
        return driver.OccupancyAvailableDynamicSMemPerBlock_v10020(bytes, found, blocks, block_size);
    });
}

RT_API cudaError_t cudaOccupancyMaxPotentialClusterSize(int *size, const void *function, const cudaLaunchConfig_t *config) {
    if (config == nullptr)
        return rt::report(cudaErrorInvalidValue);
    return with_function(function, [&](CUfunction found) {
        CUlaunchConfig raw = rt::launch_config(*config);
        return driver.OccupancyMaxPotentialClusterSize_v11070(size, found, &raw);
    });
}

RT_API cudaError_t cudaOccupancyMaxActiveClusters(int *clusters, const void *function, const cudaLaunchConfig_t *config) {
    if (config == nullptr)
        return rt::report(cudaErrorInvalidValue);
    return with_function(function, [&](CUfunction found) {
        CUlaunchConfig raw = rt::launch_config(*config);
        return driver.OccupancyMaxActiveClusters_v11070(clusters, found, &raw);
    });
}
