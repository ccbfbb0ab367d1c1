// Kernel launches. `kernel<<<grid, block>>>(…)` becomes a push of the configuration, a call of the host
// function that nvcc made for the kernel, and in it a pop and a launch.
#include "registry.h"
#include "runtime.h"

#include <stdlib.h>

using rt::report;

namespace {

struct Configuration {
    dim3 grid, block;
    size_t shared_bytes;
    cudaStream_t stream;
};

// Arguments of a launch may themselves launch, so configurations nest; nobody nests deeper than this.
constexpr unsigned deepest = 64;
thread_local Configuration pending[deepest];
thread_local unsigned pending_count;

// The driver's word for a launch whose grid or block is out of range is "invalid value".
int launch_status(int status) {
    return status == CUDA_ERROR_INVALID_VALUE ? static_cast<int>(cudaErrorInvalidConfiguration) : status;
}

bool is_empty(const dim3 &extent) { return extent.x == 0 || extent.y == 0 || extent.z == 0; }

int launch(const rt::StreamFunctions &on, const void *function, dim3 grid, dim3 block, void **arguments,
           size_t shared_bytes, cudaStream_t stream) {
    CUfunction found;
    if (int status = rt::find_function(function, &found))
        return status;
    if (is_empty(grid) || is_empty(block))
        return cudaErrorInvalidConfiguration;
    return launch_status(on.LaunchKernel_v4000(found, grid.x, grid.y, grid.z, block.x, block.y, block.z,
                                               rt::shared_size(shared_bytes), stream, arguments, nullptr));
}

} // namespace

RT_API unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared_bytes, CUstream_st *stream) {
    if (pending_count == deepest)
        return static_cast<unsigned>(report(cudaErrorLaunchOutOfResources));
    pending[pending_count++] = {grid, block, shared_bytes, stream};
    return 0;
}

RT_API cudaError_t __cudaPopCallConfiguration(dim3 *grid, dim3 *block, size_t *shared_bytes, void *stream) {
    if (pending_count == 0)
        return report(cudaErrorMissingConfiguration);
    const Configuration &top = pending[--pending_count];
    *grid = top.grid;
    *block = top.block;
    *shared_bytes = top.shared_bytes;
    *static_cast<cudaStream_t *>(stream) = top.stream;
    return cudaSuccess;
}

RT_STREAM_API(cudaLaunchKernel, _ptsz,
              (const void *function, dim3 grid, dim3 block, void **arguments, size_t shared_bytes, cudaStream_t stream),
              (function, grid, block, arguments, shared_bytes, stream)) {
    return launch(on, function, grid, block, arguments, shared_bytes, stream);
}

RT_STREAM_API(cudaLaunchCooperativeKernel, _ptsz,
              (const void *function, dim3 grid, dim3 block, void **arguments, size_t shared_bytes, cudaStream_t stream),
              (function, grid, block, arguments, shared_bytes, stream)) {
    CUfunction found;
    if (int status = rt::find_function(function, &found))
        return status;
    if (is_empty(grid) || is_empty(block))
        return cudaErrorInvalidConfiguration;
    return launch_status(on.LaunchCooperativeKernel_v9000(found, grid.x, grid.y, grid.z, block.x, block.y, block.z,
                                                          rt::shared_size(shared_bytes), stream, arguments));
}

RT_STREAM_API(cudaLaunchKernelExC, _ptsz, (const cudaLaunchConfig_t *config, const void *function, void **arguments),
              (config, function, arguments)) {
    if (config == nullptr)
        return cudaErrorInvalidValue;
    CUfunction found;
    if (int status = rt::find_function(function, &found))
        return status;
    if (is_empty(config->gridDim) || is_empty(config->blockDim))
        return cudaErrorInvalidConfiguration;
    CUlaunchConfig raw = rt::launch_config(*config);
    return launch_status(on.LaunchKernelEx_v11060(&raw, found, arguments, nullptr));
}

// What nvcc's host functions call. They keep the handle for good, whatever becomes of the driver, so it is
// the host function itself, which every launch looks up.
RT_API cudaError_t __cudaGetKernel(cudaKernel_t *kernel, const void *host_function) {
    *kernel = reinterpret_cast<cudaKernel_t>(const_cast<void *>(host_function));
    return cudaSuccess;
}

RT_API cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void **arguments, size_t shared_bytes,
                                      cudaStream_t stream) {
    return cudaLaunchKernel(reinterpret_cast<const void *>(kernel), grid, block, arguments, shared_bytes, stream);
}

RT_API cudaError_t __cudaLaunchKernel_ptsz(cudaKernel_t kernel, dim3 grid, dim3 block, void **arguments,
                                           size_t shared_bytes, cudaStream_t stream) {
    return cudaLaunchKernel_ptsz(reinterpret_cast<const void *>(kernel), grid, block, arguments, shared_bytes, stream);
}
