// The kernels and variables that the host code made by nvcc registers, and descriptions of launches and
// copies that plain calls and graphs share.
#pragma once

#include "driver.h"

#include <stdint.h>

namespace rt {

// The kernel that stands behind `function`, which is the host function that nvcc made for a kernel,
// or a cudaKernel_t. Loads the code that holds it at its first use. Needs a current context.
int find_kernel(const void *function, CUkernel *kernel);

// The same as a function of the current context.
int find_function(const void *function, CUfunction *found);

// The address in the current context and the size in bytes of the variable whose host shadow is `symbol`.
int find_variable(const void *symbol, CUdeviceptr *pointer, size_t *size);

// Where the `bytes` at `offset` of a variable are, for a copy to or from it of a kind that must fit.
int copy_to_variable(const void *symbol, size_t bytes, size_t offset, cudaMemcpyKind kind, void **to);
int copy_from_variable(const void *symbol, size_t bytes, size_t offset, cudaMemcpyKind kind, void **from);

// The driver counts a launch's dynamic shared memory in 32 bits, and refuses the greatest of them.
inline unsigned shared_size(size_t bytes) { return bytes < UINT32_MAX ? static_cast<unsigned>(bytes) : UINT32_MAX; }

// A launch's configuration as the driver describes it.
CUlaunchConfig launch_config(const cudaLaunchConfig_t &config);

// A three-dimensional copy as the driver describes it; `*empty` says that nothing is to be copied.
int volume(CUDA_MEMCPY3D *copy, bool *empty, const cudaMemcpy3DParms *parameters);

// The way back.
int volume_parameters(cudaMemcpy3DParms *parameters, const CUDA_MEMCPY3D &copy);

} // namespace rt
