// Stream capture.
#include "runtime.h"

using rt::call;
using rt::driver;

static_assert(sizeof(cudaGraphEdgeData) == sizeof(CUgraphEdgeData), "one structure, two names");

RT_STREAM_API(cudaStreamBeginCapture, _ptsz, (cudaStream_t stream, cudaStreamCaptureMode mode), (stream, mode)) {
    return on.StreamBeginCapture_v10010(stream, static_cast<CUstreamCaptureMode>(mode));
}

RT_STREAM_API(cudaStreamBeginCaptureToGraph, _ptsz,
              (cudaStream_t stream, cudaGraph_t graph, const cudaGraphNode_t *dependencies, const cudaGraphEdgeData *edges,
               size_t count, cudaStreamCaptureMode mode),
              (stream, graph, dependencies, edges, count, mode)) {
    return on.StreamBeginCaptureToGraph_v12030(stream, graph, dependencies, reinterpret_cast<const CUgraphEdgeData *>(edges),
                                               count, static_cast<CUstreamCaptureMode>(mode));
}

RT_STREAM_API(cudaStreamEndCapture, _ptsz, (cudaStream_t stream, cudaGraph_t *graph), (stream, graph)) {
    return on.StreamEndCapture_v10000(stream, graph);
}

RT_STREAM_API(cudaStreamIsCapturing, _ptsz, (cudaStream_t stream, cudaStreamCaptureStatus *status), (stream, status)) {
    return on.StreamIsCapturing_v10000(stream, reinterpret_cast<CUstreamCaptureStatus *>(status));
}

RT_API cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode *mode) {
    return call([&] { return driver.ThreadExchangeStreamCaptureMode_v10010(reinterpret_cast<CUstreamCaptureMode *>(mode)); });
}

// The newest form has the plain name since 13.0 and a number before. The first form, which knew neither
// graph nor dependencies, is gone since 13.0; the headers of 12 no longer declare it.
#if CUDART_VERSION >= 13000
RT_STREAM_API(cudaStreamGetCaptureInfo, _ptsz,
#else
#undef cudaStreamGetCaptureInfo
RT_STREAM_API(cudaStreamGetCaptureInfo, _ptsz,
              (cudaStream_t stream, cudaStreamCaptureStatus *status, unsigned long long *id), (stream, status, id)) {
    return on.StreamGetCaptureInfo_v10010(stream, reinterpret_cast<CUstreamCaptureStatus *>(status),
                                          reinterpret_cast<cuuint64_t *>(id));
}

RT_STREAM_API(cudaStreamGetCaptureInfo_v2, _ptsz,
              (cudaStream_t stream, cudaStreamCaptureStatus *status, unsigned long long *id, cudaGraph_t *graph,
               const cudaGraphNode_t **dependencies, size_t *count),
              (stream, status, id, graph, dependencies, count)) {
    return on.StreamGetCaptureInfo_v11030(stream, reinterpret_cast<CUstreamCaptureStatus *>(status),
                                          reinterpret_cast<cuuint64_t *>(id), graph,
                                          const_cast<const CUgraphNode **>(dependencies), count);
}

RT_STREAM_API(cudaStreamGetCaptureInfo_v3, _ptsz,
#endif
              (cudaStream_t stream, cudaStreamCaptureStatus *status, unsigned long long *id, cudaGraph_t *graph,
               const cudaGraphNode_t **dependencies, const cudaGraphEdgeData **edges, size_t *count),
              (stream, status, id, graph, dependencies, edges, count)) {
    return on.StreamGetCaptureInfo_v12030(stream, reinterpret_cast<CUstreamCaptureStatus *>(status),
                                          reinterpret_cast<cuuint64_t *>(id), graph, dependencies,
                                          reinterpret_cast<const CUgraphEdgeData **>(edges), count);
}

#if CUDART_VERSION >= 13000
RT_STREAM_API(cudaStreamUpdateCaptureDependencies, _ptsz,
#else
RT_STREAM_API(cudaStreamUpdateCaptureDependencies, _ptsz,
              (cudaStream_t stream, cudaGraphNode_t *dependencies, size_t count, unsigned flags),
              (stream, dependencies, count, flags)) {
    return on.StreamUpdateCaptureDependencies_v11030(stream, dependencies, count, flags);
}

RT_STREAM_API(cudaStreamUpdateCaptureDependencies_v2, _ptsz,
#endif
              (cudaStream_t stream, cudaGraphNode_t *dependencies, const cudaGraphEdgeData *edges, size_t count,
               unsigned flags),
              (stream, dependencies, edges, count, flags)) {
    return on.StreamUpdateCaptureDependencies_v12030(stream, dependencies, reinterpret_cast<const CUgraphEdgeData *>(edges),
                                                     count, flags);
}
