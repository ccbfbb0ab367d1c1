// Events.
#include "runtime.h"

#include <string.h>

using rt::call;
using rt::driver;

RT_API cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned flags) {
    return call([&] { return driver.EventCreate_v2000(event, flags); });
}

RT_API cudaError_t cudaEventCreate(cudaEvent_t *event) { return cudaEventCreateWithFlags(event, cudaEventDefault); }

RT_API cudaError_t cudaEventDestroy(cudaEvent_t event) {
    return call([&] { return driver.EventDestroy_v4000(event); });
}

RT_STREAM_API(cudaEventRecord, _ptsz, (cudaEvent_t event, cudaStream_t stream), (event, stream)) {
    return on.EventRecord_v2000(event, stream);
}

RT_STREAM_API(cudaEventRecordWithFlags, _ptsz, (cudaEvent_t event, cudaStream_t stream, unsigned flags),
              (event, stream, flags)) {
    return on.EventRecordWithFlags_v11010(event, stream, flags);
}

RT_API cudaError_t cudaEventQuery(cudaEvent_t event) {
    return call([&] { return driver.EventQuery_v2000(event); });
}

RT_API cudaError_t cudaEventSynchronize(cudaEvent_t event) {
    return call([&] { return driver.EventSynchronize_v2000(event); });
}

#if CUDART_VERSION >= 13000
RT_API cudaError_t cudaEventElapsedTime(float *milliseconds, cudaEvent_t start, cudaEvent_t end) {
    return call([&] { return driver.EventElapsedTime_v12080(milliseconds, start, end); });
}
#else
RT_API cudaError_t cudaEventElapsedTime(float *milliseconds, cudaEvent_t start, cudaEvent_t end) {
    return call([&] { return driver.EventElapsedTime_v2000(milliseconds, start, end); });
}

RT_API cudaError_t cudaEventElapsedTime_v2(float *milliseconds, cudaEvent_t start, cudaEvent_t end) {
    return call([&] { return driver.EventElapsedTime_v12080(milliseconds, start, end); });
}
#endif

static_assert(sizeof(cudaIpcEventHandle_t) == sizeof(CUipcEventHandle), "one handle, two names");

RT_API cudaError_t cudaIpcGetEventHandle(cudaIpcEventHandle_t *handle, cudaEvent_t event) {
    return call([&] { return driver.IpcGetEventHandle_v4010(reinterpret_cast<CUipcEventHandle *>(handle), event); });
}

RT_API cudaError_t cudaIpcOpenEventHandle(cudaEvent_t *event, cudaIpcEventHandle_t handle) {
    return call([&] {
        CUipcEventHandle raw;
        memcpy(&raw, &handle, sizeof raw);
        return driver.IpcOpenEventHandle_v4010(event, raw);
    });
}
