// The nodes of graphs, kind by kind.
#include "registry.h"
#include "runtime.h"

#include <string.h>

using rt::address;
using rt::call;
using rt::driver;

static_assert(sizeof(cudaHostNodeParams) == sizeof(CUDA_HOST_NODE_PARAMS), "one structure, two names");
static_assert(sizeof(cudaMemsetParams) == sizeof(CUDA_MEMSET_NODE_PARAMS), "one structure, two names");
static_assert(sizeof(cudaMemAllocNodeParams) == sizeof(CUDA_MEM_ALLOC_NODE_PARAMS), "one structure, two names");

namespace {

// What the driver asks for beside a description: the context that the node runs in.
int current_context(CUcontext *context) { return driver.CtxGetCurrent_v4000(context); }

int kernel_node(CUDA_KERNEL_NODE_PARAMS *raw, const cudaKernelNodeParams *parameters) {
    if (parameters == nullptr)
        return cudaErrorInvalidValue;
    memset(raw, 0, sizeof *raw);
    if (int status = rt::find_function(parameters->func, &raw->func))
        return status;
    raw->gridDimX = parameters->gridDim.x;
    raw->gridDimY = parameters->gridDim.y;
    raw->gridDimZ = parameters->gridDim.z;
    raw->blockDimX = parameters->blockDim.x;
    raw->blockDimY = parameters->blockDim.y;
    raw->blockDimZ = parameters->blockDim.z;
    raw->sharedMemBytes = parameters->sharedMemBytes;
    raw->kernelParams = parameters->kernelParams;
    raw->extra = parameters->extra;
    return cudaSuccess;
}

const CUDA_MEMSET_NODE_PARAMS *memset_node(const cudaMemsetParams *parameters) {
    return reinterpret_cast<const CUDA_MEMSET_NODE_PARAMS *>(parameters);
}

const CUDA_HOST_NODE_PARAMS *host_node(const cudaHostNodeParams *parameters) {
    return reinterpret_cast<const CUDA_HOST_NODE_PARAMS *>(parameters);
}

// A copy of a row of bytes.
cudaMemcpy3DParms row(void *to, const void *from, size_t bytes, cudaMemcpyKind kind) {
    cudaMemcpy3DParms parameters;
    memset(&parameters, 0, sizeof parameters);
    parameters.srcPtr = cudaPitchedPtr{const_cast<void *>(from), bytes, bytes, 1};
    parameters.dstPtr = cudaPitchedPtr{to, bytes, bytes, 1};
    parameters.extent = cudaExtent{bytes, 1, 1};
    parameters.kind = kind;
    return parameters;
}

int set_copy(cudaGraphNode_t node, const cudaMemcpy3DParms *parameters) {
    CUDA_MEMCPY3D copy;
    bool empty;
    if (int status = rt::volume(&copy, &empty, parameters))
        return status;
    return driver.GraphMemcpyNodeSetParams_v10000(node, &copy);
}

int set_copy(cudaGraphExec_t executable, cudaGraphNode_t node, const cudaMemcpy3DParms *parameters) {
    CUDA_MEMCPY3D copy;
    bool empty;
    CUcontext context;
    if (int status = rt::volume(&copy, &empty, parameters))
        return status;
    if (int status = current_context(&context))
        return status;
    return driver.GraphExecMemcpyNodeSetParams_v10020(executable, node, &copy, context);
}

int add_copy(cudaGraphNode_t *node, cudaGraph_t graph, const cudaGraphNode_t *dependencies, size_t count,
             const cudaMemcpy3DParms *parameters) {
    CUDA_MEMCPY3D copy;
    bool empty;
    CUcontext context;
    if (int status = rt::volume(&copy, &empty, parameters))
        return status;
    if (int status = current_context(&context))
        return status;
    return driver.GraphAddMemcpyNode_v10000(node, graph, dependencies, count, &copy, context);
}

} // namespace

RT_API cudaError_t cudaGraphAddEmptyNode(cudaGraphNode_t *node, cudaGraph_t graph, const cudaGraphNode_t *dependencies,
                                         size_t count) {
    return call([&] { return driver.GraphAddEmptyNode_v10000(node, graph, dependencies, count); });
}

RT_API cudaError_t cudaGraphAddKernelNode(cudaGraphNode_t *node, cudaGraph_t graph, const cudaGraphNode_t *dependencies,
                                          size_t count, const cudaKernelNodeParams *parameters) {
    return call([&]() -> int {
        CUDA_KERNEL_NODE_PARAMS raw;
        if (int status = kernel_node(&raw, parameters))
            return status;
        return driver.GraphAddKernelNode_v12000(node, graph, dependencies, count, &raw);
    });
}

RT_API cudaError_t cudaGraphKernelNodeGetParams(cudaGraphNode_t node, cudaKernelNodeParams *parameters) {
    if (parameters == nullptr)
        return rt::report(cudaErrorInvalidValue);
    return call([&]() -> int {
        CUDA_KERNEL_NODE_PARAMS raw;
        if (int status = driver.GraphKernelNodeGetParams_v12000(node, &raw))
            return status;
        // A kernel handle stands for the kernel wherever a host function does.
        parameters->func = raw.kern ? reinterpret_cast<void *>(raw.kern) : reinterpret_cast<void *>(raw.func);
        parameters->gridDim = dim3(raw.gridDimX, raw.gridDimY, raw.gridDimZ);
        parameters->blockDim = dim3(raw.blockDimX, raw.blockDimY, raw.blockDimZ);
        parameters->sharedMemBytes = raw.sharedMemBytes;
        parameters->kernelParams = raw.kernelParams;
        parameters->extra = raw.extra;
        return cudaSuccess;
    });
}

RT_API cudaError_t cudaGraphKernelNodeSetParams(cudaGraphNode_t node, const cudaKernelNodeParams *parameters) {
    return call([&]() -> int {
        CUDA_KERNEL_NODE_PARAMS raw;
        if (int status = kernel_node(&raw, parameters))
            return status;
        return driver.GraphKernelNodeSetParams_v12000(node, &raw);
    });
}

RT_API cudaError_t cudaGraphExecKernelNodeSetParams(cudaGraphExec_t executable, cudaGraphNode_t node,
                                                    const cudaKernelNodeParams *parameters) {
    return call([&]() -> int {
        CUDA_KERNEL_NODE_PARAMS raw;
        if (int status = kernel_node(&raw, parameters))
            return status;
        return driver.GraphExecKernelNodeSetParams_v12000(executable, node, &raw);
    });
}

RT_API cudaError_t cudaGraphAddMemcpyNode(cudaGraphNode_t *node, cudaGraph_t graph, const cudaGraphNode_t *dependencies,
                                          size_t count, const cudaMemcpy3DParms *parameters) {
    return call([&] { return add_copy(node, graph, dependencies, count, parameters); });
}

RT_API cudaError_t cudaGraphAddMemcpyNode1D(cudaGraphNode_t *node, cudaGraph_t graph, const cudaGraphNode_t *dependencies,
                                            size_t count, void *to, const void *from, size_t bytes, cudaMemcpyKind kind) {
    return call([&] {
        cudaMemcpy3DParms parameters = row(to, from, bytes, kind);
        return add_copy(node, graph, dependencies, count, &parameters);
    });
}

RT_API cudaError_t cudaGraphAddMemcpyNodeToSymbol(cudaGraphNode_t *node, cudaGraph_t graph,
                                                  const cudaGraphNode_t *dependencies, size_t count, const void *symbol,
                                                  const void *from, size_t bytes, size_t offset, cudaMemcpyKind kind) {
    return call([&]() -> int {
        void *to;
        if (int status = rt::copy_to_variable(symbol, bytes, offset, kind, &to))
            return status;
        cudaMemcpy3DParms parameters = row(to, from, bytes, kind);
        return add_copy(node, graph, dependencies, count, &parameters);
    });
}

RT_API cudaError_t cudaGraphAddMemcpyNodeFromSymbol(cudaGraphNode_t *node, cudaGraph_t graph,
                                                    const cudaGraphNode_t *dependencies, size_t count, void *to,
                                                    const void *symbol, size_t bytes, size_t offset, cudaMemcpyKind kind) {
    return call([&]() -> int {
        void *from;
        if (int status = rt::copy_from_variable(symbol, bytes, offset, kind, &from))
            return status;
        cudaMemcpy3DParms parameters = row(to, from, bytes, kind);
        return add_copy(node, graph, dependencies, count, &parameters);
    });
}

RT_API cudaError_t cudaGraphMemcpyNodeSetParams(cudaGraphNode_t node, const cudaMemcpy3DParms *parameters) {
    return call([&] { return set_copy(node, parameters); });
}

RT_API cudaError_t cudaGraphMemcpyNodeSetParams1D(cudaGraphNode_t node, void *to, const void *from, size_t bytes,
                                                  cudaMemcpyKind kind) {
    return call([&] {
        cudaMemcpy3DParms parameters = row(to, from, bytes, kind);
        return set_copy(node, &parameters);
    });
}

RT_API cudaError_t cudaGraphExecMemcpyNodeSetParams(cudaGraphExec_t executable, cudaGraphNode_t node,
                                                    const cudaMemcpy3DParms *parameters) {
    return call([&] { return set_copy(executable, node, parameters); });
}

RT_API cudaError_t cudaGraphExecMemcpyNodeSetParams1D(cudaGraphExec_t executable, cudaGraphNode_t node, void *to,
                                                      const void *from, size_t bytes, cudaMemcpyKind kind) {
    return call([&] {
        cudaMemcpy3DParms parameters = row(to, from, bytes, kind);
        return set_copy(executable, node, &parameters);
    });
}

RT_API cudaError_t cudaGraphMemcpyNodeGetParams(cudaGraphNode_t node, cudaMemcpy3DParms *parameters) {
    if (parameters == nullptr)
        return rt::report(cudaErrorInvalidValue);
    return call([&]() -> int {
        CUDA_MEMCPY3D copy;
        if (int status = driver.GraphMemcpyNodeGetParams_v10000(node, &copy))
            return status;
        return rt::volume_parameters(parameters, copy);
    });
}

RT_API cudaError_t cudaGraphAddMemsetNode(cudaGraphNode_t *node, cudaGraph_t graph, const cudaGraphNode_t *dependencies,
                                          size_t count, const cudaMemsetParams *parameters) {
    return call([&]() -> int {
        CUcontext context;
        if (int status = current_context(&context))
            return status;
        return driver.GraphAddMemsetNode_v10000(node, graph, dependencies, count, memset_node(parameters), context);
    });
}

RT_API cudaError_t cudaGraphMemsetNodeGetParams(cudaGraphNode_t node, cudaMemsetParams *parameters) {
    return call([&] {
        return driver.GraphMemsetNodeGetParams_v10000(node, reinterpret_cast<CUDA_MEMSET_NODE_PARAMS *>(parameters));
    });
}

RT_API cudaError_t cudaGraphMemsetNodeSetParams(cudaGraphNode_t node, const cudaMemsetParams *parameters) {
    return call([&] { return driver.GraphMemsetNodeSetParams_v10000(node, memset_node(parameters)); });
}

RT_API cudaError_t cudaGraphExecMemsetNodeSetParams(cudaGraphExec_t executable, cudaGraphNode_t node,
                                                    const cudaMemsetParams *parameters) {
    return call([&]() -> int {
        CUcontext context;
        if (int status = current_context(&context))
            return status;
        return driver.GraphExecMemsetNodeSetParams_v10020(executable, node, memset_node(parameters), context);
    });
}

RT_API cudaError_t cudaGraphAddHostNode(cudaGraphNode_t *node, cudaGraph_t graph, const cudaGraphNode_t *dependencies,
                                        size_t count, const cudaHostNodeParams *parameters) {
    return call([&] { return driver.GraphAddHostNode_v10000(node, graph, dependencies, count, host_node(parameters)); });
}

RT_API cudaError_t cudaGraphHostNodeGetParams(cudaGraphNode_t node, cudaHostNodeParams *parameters) {
    return call([&] {
        return driver.GraphHostNodeGetParams_v10000(node, reinterpret_cast<CUDA_HOST_NODE_PARAMS *>(parameters));
    });
}

RT_API cudaError_t cudaGraphHostNodeSetParams(cudaGraphNode_t node, const cudaHostNodeParams *parameters) {
    return call([&] { return driver.GraphHostNodeSetParams_v10000(node, host_node(parameters)); });
}

RT_API cudaError_t cudaGraphExecHostNodeSetParams(cudaGraphExec_t executable, cudaGraphNode_t node,
                                                  const cudaHostNodeParams *parameters) {
    return call([&] { return driver.GraphExecHostNodeSetParams_v10020(executable, node, host_node(parameters)); });
}

RT_API cudaError_t cudaGraphAddChildGraphNode(cudaGraphNode_t *node, cudaGraph_t graph, const cudaGraphNode_t *dependencies,
                                              size_t count, cudaGraph_t child) {
    return call([&] { return driver.GraphAddChildGraphNode_v10000(node, graph, dependencies, count, child); });
}

RT_API cudaError_t cudaGraphChildGraphNodeGetGraph(cudaGraphNode_t node, cudaGraph_t *graph) {
    return call([&] { return driver.GraphChildGraphNodeGetGraph_v10000(node, graph); });
}

RT_API cudaError_t cudaGraphExecChildGraphNodeSetParams(cudaGraphExec_t executable, cudaGraphNode_t node,
                                                        cudaGraph_t child) {
    return call([&] { return driver.GraphExecChildGraphNodeSetParams_v11010(executable, node, child); });
}

RT_API cudaError_t cudaGraphExecEventRecordNodeSetEvent(cudaGraphExec_t executable, cudaGraphNode_t node,
                                                        cudaEvent_t event) {
    return call([&] { return driver.GraphExecEventRecordNodeSetEvent_v11010(executable, node, event); });
}

RT_API cudaError_t cudaGraphExecEventWaitNodeSetEvent(cudaGraphExec_t executable, cudaGraphNode_t node, cudaEvent_t event) {
    return call([&] { return driver.GraphExecEventWaitNodeSetEvent_v11010(executable, node, event); });
}

RT_API cudaError_t cudaGraphAddEventRecordNode(cudaGraphNode_t *node, cudaGraph_t graph, const cudaGraphNode_t *dependencies,
                                               size_t count, cudaEvent_t event) {
    return call([&] { return driver.GraphAddEventRecordNode_v11010(node, graph, dependencies, count, event); });
}

RT_API cudaError_t cudaGraphEventRecordNodeGetEvent(cudaGraphNode_t node, cudaEvent_t *event) {
    return call([&] { return driver.GraphEventRecordNodeGetEvent_v11010(node, event); });
}

RT_API cudaError_t cudaGraphEventRecordNodeSetEvent(cudaGraphNode_t node, cudaEvent_t event) {
    return call([&] { return driver.GraphEventRecordNodeSetEvent_v11010(node, event); });
}

RT_API cudaError_t cudaGraphAddEventWaitNode(cudaGraphNode_t *node, cudaGraph_t graph, const cudaGraphNode_t *dependencies,
                                             size_t count, cudaEvent_t event) {
    return call([&] { return driver.GraphAddEventWaitNode_v11010(node, graph, dependencies, count, event); });
}

RT_API cudaError_t cudaGraphEventWaitNodeGetEvent(cudaGraphNode_t node, cudaEvent_t *event) {
    return call([&] { return driver.GraphEventWaitNodeGetEvent_v11010(node, event); });
}

RT_API cudaError_t cudaGraphEventWaitNodeSetEvent(cudaGraphNode_t node, cudaEvent_t event) {
    return call([&] { return driver.GraphEventWaitNodeSetEvent_v11010(node, event); });
}

RT_API cudaError_t cudaGraphAddMemAllocNode(cudaGraphNode_t *node, cudaGraph_t graph, const cudaGraphNode_t *dependencies,
                                            size_t count, cudaMemAllocNodeParams *parameters) {
    return call([&] {
        return driver.GraphAddMemAllocNode_v11040(node, graph, dependencies, count,
                                                  reinterpret_cast<CUDA_MEM_ALLOC_NODE_PARAMS *>(parameters));
    });
}

RT_API cudaError_t cudaGraphMemAllocNodeGetParams(cudaGraphNode_t node, cudaMemAllocNodeParams *parameters) {
    return call([&] {
        return driver.GraphMemAllocNodeGetParams_v11040(node, reinterpret_cast<CUDA_MEM_ALLOC_NODE_PARAMS *>(parameters));
    });
}

RT_API cudaError_t cudaGraphAddMemFreeNode(cudaGraphNode_t *node, cudaGraph_t graph, const cudaGraphNode_t *dependencies,
                                           size_t count, void *pointer) {
    return call([&] { return driver.GraphAddMemFreeNode_v11040(node, graph, dependencies, count, address(pointer)); });
}

RT_API cudaError_t cudaGraphMemFreeNodeGetParams(cudaGraphNode_t node, void *pointer) {
    return call([&] { return driver.GraphMemFreeNodeGetParams_v11040(node, static_cast<CUdeviceptr *>(pointer)); });
}
