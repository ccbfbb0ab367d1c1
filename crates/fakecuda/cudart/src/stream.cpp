// Streams.
#include "runtime.h"

using rt::address;
using rt::call;
using rt::driver;

RT_API cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned flags) {
    return call([&] { return driver.StreamCreate_v2000(stream, flags); });
}

RT_API cudaError_t cudaStreamCreate(cudaStream_t *stream) { return cudaStreamCreateWithFlags(stream, cudaStreamDefault); }

RT_API cudaError_t cudaStreamCreateWithPriority(cudaStream_t *stream, unsigned flags, int priority) {
    return call([&] { return driver.StreamCreateWithPriority_v5050(stream, flags, priority); });
}

RT_API cudaError_t cudaStreamDestroy(cudaStream_t stream) {
    return call([&] { return driver.StreamDestroy_v4000(stream); });
}

RT_STREAM_API(cudaStreamSynchronize, _ptsz, (cudaStream_t stream), (stream)) { return on.StreamSynchronize_v2000(stream); }

RT_STREAM_API(cudaStreamQuery, _ptsz, (cudaStream_t stream), (stream)) { return on.StreamQuery_v2000(stream); }

RT_STREAM_API(cudaStreamWaitEvent, _ptsz, (cudaStream_t stream, cudaEvent_t event, unsigned flags),
              (stream, event, flags)) {
    return on.StreamWaitEvent_v3020(stream, event, flags);
}

// The callback takes the status as a cudaError_t, whose numbers are the driver's.
RT_STREAM_API(cudaStreamAddCallback, _ptsz,
              (cudaStream_t stream, cudaStreamCallback_t callback, void *user, unsigned flags),
              (stream, callback, user, flags)) {
    return on.StreamAddCallback_v5000(stream, reinterpret_cast<CUstreamCallback>(callback), user, flags);
}

RT_STREAM_API(cudaLaunchHostFunc, _ptsz, (cudaStream_t stream, cudaHostFn_t function, void *user),
              (stream, function, user)) {
    return on.LaunchHostFunc_v10000(stream, function, user);
}

#if CUDART_VERSION >= 13000
RT_STREAM_API(cudaLaunchHostFunc_v2, _ptsz, (cudaStream_t stream, cudaHostFn_t function, void *user, unsigned mode),
              (stream, function, user, mode)) {
    return on.LaunchHostFunc_v13010(stream, function, user, mode);
}
#endif

RT_STREAM_API(cudaStreamGetFlags, _ptsz, (cudaStream_t stream, unsigned *flags), (stream, flags)) {
    return on.StreamGetFlags_v5050(stream, flags);
}

RT_STREAM_API(cudaStreamGetPriority, _ptsz, (cudaStream_t stream, int *priority), (stream, priority)) {
    return on.StreamGetPriority_v5050(stream, priority);
}

RT_STREAM_API(cudaStreamGetId, _ptsz, (cudaStream_t stream, unsigned long long *id), (stream, id)) {
    return on.StreamGetId_v12000(stream, id);
}

RT_STREAM_API(cudaStreamGetDevice, _ptsz, (cudaStream_t stream, int *device), (stream, device)) {
    return on.StreamGetDevice_v12080(stream, device);
}

RT_STREAM_API(cudaStreamAttachMemAsync, _ptsz, (cudaStream_t stream, void *pointer, size_t bytes, unsigned flags),
              (stream, pointer, bytes, flags)) {
    return on.StreamAttachMemAsync_v6000(stream, address(pointer), bytes, flags);
}

RT_STREAM_API(cudaStreamCopyAttributes, _ptsz, (cudaStream_t to, cudaStream_t from), (to, from)) {
    return on.StreamCopyAttributes_v11000(to, from);
}

static_assert(sizeof(cudaStreamAttrValue) == sizeof(CUstreamAttrValue), "one value, two names");

RT_STREAM_API(cudaStreamGetAttribute, _ptsz, (cudaStream_t stream, cudaStreamAttrID attribute, cudaStreamAttrValue *value),
              (stream, attribute, value)) {
    return on.StreamGetAttribute_v11000(stream, static_cast<CUstreamAttrID>(attribute),
                                        reinterpret_cast<CUstreamAttrValue *>(value));
}

RT_STREAM_API(cudaStreamSetAttribute, _ptsz,
              (cudaStream_t stream, cudaStreamAttrID attribute, const cudaStreamAttrValue *value),
              (stream, attribute, value)) {
    return on.StreamSetAttribute_v11000(stream, static_cast<CUstreamAttrID>(attribute),
                                        reinterpret_cast<const CUstreamAttrValue *>(value));
}
