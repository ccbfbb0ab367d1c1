// Graphs as a whole: making, instantiating, launching, their edges and the memory that they keep.
#include "runtime.h"

#include <string.h>

using rt::ask;
using rt::call;
using rt::driver;

RT_API cudaError_t cudaGraphCreate(cudaGraph_t *graph, unsigned flags) {
    return call([&] { return driver.GraphCreate_v10000(graph, flags); });
}

RT_API cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
    return call([&] { return driver.GraphDestroy_v10000(graph); });
}

RT_API cudaError_t cudaGraphClone(cudaGraph_t *clone, cudaGraph_t original) {
    return call([&] { return driver.GraphClone_v10000(clone, original); });
}

RT_API cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t *executable, cudaGraph_t graph, unsigned long long flags) {
    return call([&] { return driver.GraphInstantiateWithFlags_v11040(executable, graph, flags); });
}

RT_API cudaError_t cudaGraphInstantiate(cudaGraphExec_t *executable, cudaGraph_t graph, unsigned long long flags) {
    return cudaGraphInstantiateWithFlags(executable, graph, flags);
}

static_assert(sizeof(cudaGraphInstantiateParams) == sizeof(CUDA_GRAPH_INSTANTIATE_PARAMS), "one structure, two names");

RT_STREAM_API(cudaGraphInstantiateWithParams, _ptsz,
              (cudaGraphExec_t * executable, cudaGraph_t graph, cudaGraphInstantiateParams *parameters),
              (executable, graph, parameters)) {
    return on.GraphInstantiateWithParams_v12000(executable, graph,
                                                reinterpret_cast<CUDA_GRAPH_INSTANTIATE_PARAMS *>(parameters));
}

RT_API cudaError_t cudaGraphExecDestroy(cudaGraphExec_t executable) {
    return call([&] { return driver.GraphExecDestroy_v10000(executable); });
}

RT_API cudaError_t cudaGraphExecGetFlags(cudaGraphExec_t executable, unsigned long long *flags) {
    return call([&] { return driver.GraphExecGetFlags_v12000(executable, reinterpret_cast<cuuint64_t *>(flags)); });
}

static_assert(sizeof(cudaGraphExecUpdateResultInfo) == sizeof(CUgraphExecUpdateResultInfo), "one structure, two names");

RT_API cudaError_t cudaGraphExecUpdate(cudaGraphExec_t executable, cudaGraph_t graph, cudaGraphExecUpdateResultInfo *result) {
    return call([&] {
        return driver.GraphExecUpdate_v12000(executable, graph, reinterpret_cast<CUgraphExecUpdateResultInfo *>(result));
    });
}

RT_STREAM_API(cudaGraphLaunch, _ptsz, (cudaGraphExec_t executable, cudaStream_t stream), (executable, stream)) {
    return on.GraphLaunch_v10000(executable, stream);
}

RT_STREAM_API(cudaGraphUpload, _ptsz, (cudaGraphExec_t executable, cudaStream_t stream), (executable, stream)) {
    return on.GraphUpload_v11010(executable, stream);
}

RT_API cudaError_t cudaGraphDebugDotPrint(cudaGraph_t graph, const char *path, unsigned flags) {
    return call([&] { return driver.GraphDebugDotPrint_v11030(graph, path, flags); });
}

RT_API cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t *nodes, size_t *count) {
    return call([&] { return driver.GraphGetNodes_v10000(graph, nodes, count); });
}

RT_API cudaError_t cudaGraphGetRootNodes(cudaGraph_t graph, cudaGraphNode_t *nodes, size_t *count) {
    return call([&] { return driver.GraphGetRootNodes_v10000(graph, nodes, count); });
}

RT_API cudaError_t cudaGraphDestroyNode(cudaGraphNode_t node) {
    return call([&] { return driver.GraphDestroyNode_v10000(node); });
}

RT_API cudaError_t cudaGraphNodeFindInClone(cudaGraphNode_t *node, cudaGraphNode_t original, cudaGraph_t clone) {
    return call([&] { return driver.GraphNodeFindInClone_v10000(node, original, clone); });
}

RT_API cudaError_t cudaGraphNodeGetType(cudaGraphNode_t node, cudaGraphNodeType *type) {
    return call([&]() -> int {
        CUgraphNodeType found;
        if (int status = driver.GraphNodeGetType_v10000(node, &found))
            return status;
        // The two enumerations agree but for the driver's batched memory operations, which have no
        // counterpart here.
        *type = static_cast<cudaGraphNodeType>(found);
        return cudaSuccess;
    });
}

RT_API cudaError_t cudaGraphNodeSetEnabled(cudaGraphExec_t executable, cudaGraphNode_t node, unsigned enabled) {
    return call([&] { return driver.GraphNodeSetEnabled_v11060(executable, node, enabled); });
}

RT_API cudaError_t cudaGraphNodeGetEnabled(cudaGraphExec_t executable, cudaGraphNode_t node, unsigned *enabled) {
    return call([&] { return driver.GraphNodeGetEnabled_v11060(executable, node, enabled); });
}

// Edges carry data since 12.3; that form has the plain name since 13.0 and a number before.
#if CUDART_VERSION >= 13000
#define RT_WITH_EDGES(name) name
#else
#define RT_WITH_EDGES(name) name##_v2

RT_API cudaError_t cudaGraphGetEdges(cudaGraph_t graph, cudaGraphNode_t *from, cudaGraphNode_t *to, size_t *count) {
    return call([&] { return driver.GraphGetEdges_v10000(graph, from, to, count); });
}

RT_API cudaError_t cudaGraphNodeGetDependencies(cudaGraphNode_t node, cudaGraphNode_t *dependencies, size_t *count) {
    return call([&] { return driver.GraphNodeGetDependencies_v10000(node, dependencies, count); });
}

RT_API cudaError_t cudaGraphNodeGetDependentNodes(cudaGraphNode_t node, cudaGraphNode_t *dependents, size_t *count) {
    return call([&] { return driver.GraphNodeGetDependentNodes_v10000(node, dependents, count); });
}

RT_API cudaError_t cudaGraphAddDependencies(cudaGraph_t graph, const cudaGraphNode_t *from, const cudaGraphNode_t *to,
                                            size_t count) {
    return call([&] { return driver.GraphAddDependencies_v10000(graph, from, to, count); });
}

RT_API cudaError_t cudaGraphRemoveDependencies(cudaGraph_t graph, const cudaGraphNode_t *from, const cudaGraphNode_t *to,
                                               size_t count) {
    return call([&] { return driver.GraphRemoveDependencies_v10000(graph, from, to, count); });
}
#endif

static CUgraphEdgeData *edge_data(cudaGraphEdgeData *edges) { return reinterpret_cast<CUgraphEdgeData *>(edges); }
static const CUgraphEdgeData *edge_data(const cudaGraphEdgeData *edges) {
    return reinterpret_cast<const CUgraphEdgeData *>(edges);
}

RT_API cudaError_t RT_WITH_EDGES(cudaGraphGetEdges)(cudaGraph_t graph, cudaGraphNode_t *from, cudaGraphNode_t *to,
                                                    cudaGraphEdgeData *edges, size_t *count) {
    return call([&] { return driver.GraphGetEdges_v12030(graph, from, to, edge_data(edges), count); });
}

RT_API cudaError_t RT_WITH_EDGES(cudaGraphNodeGetDependencies)(cudaGraphNode_t node, cudaGraphNode_t *dependencies,
                                                               cudaGraphEdgeData *edges, size_t *count) {
    return call([&] { return driver.GraphNodeGetDependencies_v12030(node, dependencies, edge_data(edges), count); });
}

RT_API cudaError_t RT_WITH_EDGES(cudaGraphNodeGetDependentNodes)(cudaGraphNode_t node, cudaGraphNode_t *dependents,
                                                                 cudaGraphEdgeData *edges, size_t *count) {
    return call([&] { return driver.GraphNodeGetDependentNodes_v12030(node, dependents, edge_data(edges), count); });
}

RT_API cudaError_t RT_WITH_EDGES(cudaGraphAddDependencies)(cudaGraph_t graph, const cudaGraphNode_t *from,
                                                           const cudaGraphNode_t *to, const cudaGraphEdgeData *edges,
                                                           size_t count) {
    return call([&] { return driver.GraphAddDependencies_v12030(graph, from, to, edge_data(edges), count); });
}

RT_API cudaError_t RT_WITH_EDGES(cudaGraphRemoveDependencies)(cudaGraph_t graph, const cudaGraphNode_t *from,
                                                              const cudaGraphNode_t *to, const cudaGraphEdgeData *edges,
                                                              size_t count) {
    return call([&] { return driver.GraphRemoveDependencies_v12030(graph, from, to, edge_data(edges), count); });
}

RT_API cudaError_t cudaDeviceGraphMemTrim(int device) {
    return ask([&] { return driver.DeviceGraphMemTrim_v11040(device); });
}

RT_API cudaError_t cudaDeviceGetGraphMemAttribute(int device, cudaGraphMemAttributeType attribute, void *value) {
    return ask([&] {
        return driver.DeviceGetGraphMemAttribute_v11040(device, static_cast<CUgraphMem_attribute>(attribute), value);
    });
}

RT_API cudaError_t cudaDeviceSetGraphMemAttribute(int device, cudaGraphMemAttributeType attribute, void *value) {
    return ask([&] {
        return driver.DeviceSetGraphMemAttribute_v11040(device, static_cast<CUgraphMem_attribute>(attribute), value);
    });
}

RT_API cudaError_t cudaUserObjectCreate(cudaUserObject_t *object, void *pointer, cudaHostFn_t destroy, unsigned references,
                                        unsigned flags) {
    return call([&] { return driver.UserObjectCreate_v11030(object, pointer, destroy, references, flags); });
}

RT_API cudaError_t cudaUserObjectRetain(cudaUserObject_t object, unsigned count) {
    return call([&] { return driver.UserObjectRetain_v11030(object, count); });
}

RT_API cudaError_t cudaUserObjectRelease(cudaUserObject_t object, unsigned count) {
    return call([&] { return driver.UserObjectRelease_v11030(object, count); });
}

RT_API cudaError_t cudaGraphRetainUserObject(cudaGraph_t graph, cudaUserObject_t object, unsigned count, unsigned flags) {
    return call([&] { return driver.GraphRetainUserObject_v11030(graph, object, count, flags); });
}

RT_API cudaError_t cudaGraphReleaseUserObject(cudaGraph_t graph, cudaUserObject_t object, unsigned count) {
    return call([&] { return driver.GraphReleaseUserObject_v11030(graph, object, count); });
}
