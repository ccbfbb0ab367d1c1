// Copies: one-, two- and three-dimensional, between devices, and to and from symbols.
#include "runtime.h"
#include "registry.h"

#include <string.h>

using rt::address;

namespace {

bool is_kind(cudaMemcpyKind kind) { return kind >= cudaMemcpyHostToHost && kind <= cudaMemcpyDefault; }

// The driver's function for a direction says what it expects of either pointer; the others find out.
int copy(const rt::StreamFunctions &on, void *to, const void *from, size_t bytes, cudaMemcpyKind kind) {
    if (!is_kind(kind))
        return cudaErrorInvalidMemcpyDirection;
    if (bytes == 0)
        return cudaSuccess;
    switch (kind) {
    case cudaMemcpyHostToDevice:
        return on.MemcpyHtoD_v3020(address(to), from, bytes);
    case cudaMemcpyDeviceToHost:
        return on.MemcpyDtoH_v3020(to, address(from), bytes);
    case cudaMemcpyDeviceToDevice:
        return on.MemcpyDtoD_v3020(address(to), address(from), bytes);
    default:
        return on.Memcpy_v4000(address(to), address(from), bytes);
    }
}

int copy_async(const rt::StreamFunctions &on, void *to, const void *from, size_t bytes, cudaMemcpyKind kind,
               cudaStream_t stream) {
    if (!is_kind(kind))
        return cudaErrorInvalidMemcpyDirection;
    if (bytes == 0)
        return cudaSuccess;
    switch (kind) {
    case cudaMemcpyHostToDevice:
        return on.MemcpyHtoDAsync_v3020(address(to), from, bytes, stream);
    case cudaMemcpyDeviceToHost:
        return on.MemcpyDtoHAsync_v3020(to, address(from), bytes, stream);
    case cudaMemcpyDeviceToDevice:
        return on.MemcpyDtoDAsync_v3020(address(to), address(from), bytes, stream);
    default:
        return on.MemcpyAsync_v4000(address(to), address(from), bytes, stream);
    }
}

struct Ends {
    CUmemorytype from, to;
};

Ends ends(cudaMemcpyKind kind) {
    bool from_host = kind == cudaMemcpyHostToHost || kind == cudaMemcpyHostToDevice;
    bool to_host = kind == cudaMemcpyHostToHost || kind == cudaMemcpyDeviceToHost;
    if (kind == cudaMemcpyDefault)
        return {CU_MEMORYTYPE_UNIFIED, CU_MEMORYTYPE_UNIFIED};
    return {from_host ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE, to_host ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE};
}

// Answers whether anything is to be copied in `*empty`.
int plane(CUDA_MEMCPY2D *copy, bool *empty, void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width,
          size_t height, cudaMemcpyKind kind) {
    if (!is_kind(kind))
        return cudaErrorInvalidMemcpyDirection;
    *empty = width == 0 || height == 0;
    if (!*empty && (width > to_pitch || width > from_pitch))
        return cudaErrorInvalidPitchValue;
    memset(copy, 0, sizeof *copy);
    Ends types = ends(kind);
    copy->srcMemoryType = types.from;
    copy->dstMemoryType = types.to;
    if (types.from == CU_MEMORYTYPE_HOST)
        copy->srcHost = from;
    else
        copy->srcDevice = address(from);
    if (types.to == CU_MEMORYTYPE_HOST)
        copy->dstHost = to;
    else
        copy->dstDevice = address(to);
    copy->srcPitch = from_pitch;
    copy->dstPitch = to_pitch;
    copy->WidthInBytes = width;
    copy->Height = height;
    return cudaSuccess;
}

} // namespace

namespace rt {

int volume(CUDA_MEMCPY3D *copy, bool *empty, const cudaMemcpy3DParms *parameters) {
    if (parameters == nullptr)
        return cudaErrorInvalidValue;
    if (!is_kind(parameters->kind))
        return cudaErrorInvalidMemcpyDirection;
    // Arrays are not part of this runtime.
    if (parameters->srcArray || parameters->dstArray)
        return cudaErrorNotSupported;
    const cudaExtent &extent = parameters->extent;
    *empty = extent.width == 0 || extent.height == 0 || extent.depth == 0;
    memset(copy, 0, sizeof *copy);
    Ends types = ends(parameters->kind);
    copy->srcMemoryType = types.from;
    copy->srcHost = parameters->srcPtr.ptr;
    copy->srcDevice = types.from == CU_MEMORYTYPE_HOST ? 0 : address(parameters->srcPtr.ptr);
    copy->srcPitch = parameters->srcPtr.pitch;
    copy->srcHeight = parameters->srcPtr.ysize;
    copy->dstMemoryType = types.to;
    copy->dstHost = parameters->dstPtr.ptr;
    copy->dstDevice = types.to == CU_MEMORYTYPE_HOST ? 0 : address(parameters->dstPtr.ptr);
    copy->dstPitch = parameters->dstPtr.pitch;
    copy->dstHeight = parameters->dstPtr.ysize;
    copy->srcXInBytes = parameters->srcPos.x;
    copy->srcY = parameters->srcPos.y;
    copy->srcZ = parameters->srcPos.z;
    copy->dstXInBytes = parameters->dstPos.x;
    copy->dstY = parameters->dstPos.y;
    copy->dstZ = parameters->dstPos.z;
    copy->WidthInBytes = extent.width;
    copy->Height = extent.height;
    copy->Depth = extent.depth;
    return cudaSuccess;
}

int volume_parameters(cudaMemcpy3DParms *parameters, const CUDA_MEMCPY3D &copy) {
    if (copy.srcMemoryType == CU_MEMORYTYPE_ARRAY || copy.dstMemoryType == CU_MEMORYTYPE_ARRAY)
        return cudaErrorNotSupported;
    bool from_host = copy.srcMemoryType == CU_MEMORYTYPE_HOST, to_host = copy.dstMemoryType == CU_MEMORYTYPE_HOST;
    auto pointer = [](CUdeviceptr device) { return reinterpret_cast<void *>(device); };
    memset(parameters, 0, sizeof *parameters);
    parameters->srcPtr.ptr = from_host ? const_cast<void *>(copy.srcHost) : pointer(copy.srcDevice);
    parameters->srcPtr.pitch = copy.srcPitch;
    parameters->srcPtr.xsize = copy.WidthInBytes;
    parameters->srcPtr.ysize = copy.srcHeight;
    parameters->srcPos = cudaPos{copy.srcXInBytes, copy.srcY, copy.srcZ};
    parameters->dstPtr.ptr = to_host ? copy.dstHost : pointer(copy.dstDevice);
    parameters->dstPtr.pitch = copy.dstPitch;
    parameters->dstPtr.xsize = copy.WidthInBytes;
    parameters->dstPtr.ysize = copy.dstHeight;
    parameters->dstPos = cudaPos{copy.dstXInBytes, copy.dstY, copy.dstZ};
    parameters->extent = cudaExtent{copy.WidthInBytes, copy.Height, copy.Depth};
    if (copy.srcMemoryType == CU_MEMORYTYPE_UNIFIED || copy.dstMemoryType == CU_MEMORYTYPE_UNIFIED)
        parameters->kind = cudaMemcpyDefault;
    else if (from_host)
        parameters->kind = to_host ? cudaMemcpyHostToHost : cudaMemcpyHostToDevice;
    else
        parameters->kind = to_host ? cudaMemcpyDeviceToHost : cudaMemcpyDeviceToDevice;
    return cudaSuccess;
}

} // namespace rt

namespace {

int peer_volume(CUDA_MEMCPY3D_PEER *copy, bool *empty, const cudaMemcpy3DPeerParms *parameters) {
    if (parameters == nullptr)
        return cudaErrorInvalidValue;
    if (parameters->srcArray || parameters->dstArray)
        return cudaErrorNotSupported;
    if (!rt::is_device(parameters->srcDevice) || !rt::is_device(parameters->dstDevice))
        return cudaErrorInvalidDevice;
    const cudaExtent &extent = parameters->extent;
    *empty = extent.width == 0 || extent.height == 0 || extent.depth == 0;
    memset(copy, 0, sizeof *copy);
    if (int status = rt::primary_context(parameters->srcDevice, &copy->srcContext))
        return status;
    if (int status = rt::primary_context(parameters->dstDevice, &copy->dstContext))
        return status;
    copy->srcMemoryType = CU_MEMORYTYPE_DEVICE;
    copy->srcDevice = address(parameters->srcPtr.ptr);
    copy->srcPitch = parameters->srcPtr.pitch;
    copy->srcHeight = parameters->srcPtr.ysize;
    copy->dstMemoryType = CU_MEMORYTYPE_DEVICE;
    copy->dstDevice = address(parameters->dstPtr.ptr);
    copy->dstPitch = parameters->dstPtr.pitch;
    copy->dstHeight = parameters->dstPtr.ysize;
    copy->srcXInBytes = parameters->srcPos.x;
    copy->srcY = parameters->srcPos.y;
    copy->srcZ = parameters->srcPos.z;
    copy->dstXInBytes = parameters->dstPos.x;
    copy->dstY = parameters->dstPos.y;
    copy->dstZ = parameters->dstPos.z;
    copy->WidthInBytes = extent.width;
    copy->Height = extent.height;
    copy->Depth = extent.depth;
    return cudaSuccess;
}

// The contexts of two devices, for a copy between them.
int peers(int to_device, int from_device, CUcontext *to, CUcontext *from) {
    if (!rt::is_device(to_device) || !rt::is_device(from_device))
        return cudaErrorInvalidDevice;
    if (int status = rt::primary_context(to_device, to))
        return status;
    return rt::primary_context(from_device, from);
}

} // namespace

RT_STREAM_API(cudaMemcpy, _ptds, (void *to, const void *from, size_t bytes, cudaMemcpyKind kind), (to, from, bytes, kind)) {
    return copy(on, to, from, bytes, kind);
}

RT_STREAM_API(cudaMemcpyAsync, _ptsz,
              (void *to, const void *from, size_t bytes, cudaMemcpyKind kind, cudaStream_t stream),
              (to, from, bytes, kind, stream)) {
    return copy_async(on, to, from, bytes, kind, stream);
}

RT_STREAM_API(cudaMemcpy2D, _ptds,
              (void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width, size_t height,
               cudaMemcpyKind kind),
              (to, to_pitch, from, from_pitch, width, height, kind)) {
    CUDA_MEMCPY2D copy;
    bool empty;
    if (int status = plane(&copy, &empty, to, to_pitch, from, from_pitch, width, height, kind))
        return status;
    return empty ? CUDA_SUCCESS : on.Memcpy2DUnaligned_v3020(&copy);
}

RT_STREAM_API(cudaMemcpy2DAsync, _ptsz,
              (void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width, size_t height,
               cudaMemcpyKind kind, cudaStream_t stream),
              (to, to_pitch, from, from_pitch, width, height, kind, stream)) {
    CUDA_MEMCPY2D copy;
    bool empty;
    if (int status = plane(&copy, &empty, to, to_pitch, from, from_pitch, width, height, kind))
        return status;
    return empty ? CUDA_SUCCESS : on.Memcpy2DAsync_v3020(&copy, stream);
}

RT_STREAM_API(cudaMemcpy3D, _ptds, (const cudaMemcpy3DParms *parameters), (parameters)) {
    CUDA_MEMCPY3D copy;
    bool empty;
    if (int status = rt::volume(&copy, &empty, parameters))
        return status;
    return empty ? CUDA_SUCCESS : on.Memcpy3D_v3020(&copy);
}

RT_STREAM_API(cudaMemcpy3DAsync, _ptsz, (const cudaMemcpy3DParms *parameters, cudaStream_t stream), (parameters, stream)) {
    CUDA_MEMCPY3D copy;
    bool empty;
    if (int status = rt::volume(&copy, &empty, parameters))
        return status;
    return empty ? CUDA_SUCCESS : on.Memcpy3DAsync_v3020(&copy, stream);
}

RT_STREAM_API(cudaMemcpy3DPeer, _ptds, (const cudaMemcpy3DPeerParms *parameters), (parameters)) {
    CUDA_MEMCPY3D_PEER copy;
    bool empty;
    if (int status = peer_volume(&copy, &empty, parameters))
        return status;
    return empty ? CUDA_SUCCESS : on.Memcpy3DPeer_v4000(&copy);
}

RT_STREAM_API(cudaMemcpy3DPeerAsync, _ptsz, (const cudaMemcpy3DPeerParms *parameters, cudaStream_t stream),
              (parameters, stream)) {
    CUDA_MEMCPY3D_PEER copy;
    bool empty;
    if (int status = peer_volume(&copy, &empty, parameters))
        return status;
    return empty ? CUDA_SUCCESS : on.Memcpy3DPeerAsync_v4000(&copy, stream);
}

RT_API cudaError_t cudaMemcpyPeer(void *to, int to_device, const void *from, int from_device, size_t bytes) {
    return rt::call([&]() -> int {
        CUcontext to_context, from_context;
        if (int status = peers(to_device, from_device, &to_context, &from_context))
            return status;
        if (bytes == 0)
            return cudaSuccess;
        return rt::driver.legacy.MemcpyPeer_v4000(address(to), to_context, address(from), from_context, bytes);
    });
}

// There is one form only: the stream is taken as the legacy form takes it.
RT_API cudaError_t cudaMemcpyPeerAsync(void *to, int to_device, const void *from, int from_device, size_t bytes,
                                       cudaStream_t stream) {
    return rt::call([&]() -> int {
        CUcontext to_context, from_context;
        if (int status = peers(to_device, from_device, &to_context, &from_context))
            return status;
        if (bytes == 0)
            return cudaSuccess;
        return rt::driver.legacy.MemcpyPeerAsync_v4000(address(to), to_context, address(from), from_context, bytes,
                                                       stream);
    });
}

static_assert(sizeof(cudaMemcpyAttributes) == sizeof(CUmemcpyAttributes), "one structure, two names");

// The driver's lists of addresses are not const, and it changes none of them.
#if CUDART_VERSION >= 13000
RT_STREAM_API(cudaMemcpyBatchAsync, _ptsz,
              (void *const *to, const void *const *from, const size_t *sizes, size_t count,
               cudaMemcpyAttributes *attributes, size_t *indices, size_t attribute_count, cudaStream_t stream),
              (to, from, sizes, count, attributes, indices, attribute_count, stream)) {
    return on.MemcpyBatchAsync_v13000(reinterpret_cast<CUdeviceptr *>(const_cast<void **>(to)),
                                      reinterpret_cast<CUdeviceptr *>(const_cast<const void **>(from)),
                                      const_cast<size_t *>(sizes), count,
                                      reinterpret_cast<CUmemcpyAttributes *>(attributes), indices, attribute_count,
                                      stream);
}
#else
RT_STREAM_API(cudaMemcpyBatchAsync, _ptsz,
              (void **to, void **from, size_t *sizes, size_t count, cudaMemcpyAttributes *attributes, size_t *indices,
               size_t attribute_count, size_t *failed, cudaStream_t stream),
              (to, from, sizes, count, attributes, indices, attribute_count, failed, stream)) {
    return on.MemcpyBatchAsync_v12080(reinterpret_cast<CUdeviceptr *>(to), reinterpret_cast<CUdeviceptr *>(from), sizes,
                                      count, reinterpret_cast<CUmemcpyAttributes *>(attributes), indices,
                                      attribute_count, failed, stream);
}
#endif

RT_STREAM_API(cudaMemcpyToSymbol, _ptds,
              (const void *symbol, const void *from, size_t bytes, size_t offset, cudaMemcpyKind kind),
              (symbol, from, bytes, offset, kind)) {
    void *to;
    if (int status = rt::copy_to_variable(symbol, bytes, offset, kind, &to))
        return status;
    return copy(on, to, from, bytes, kind);
}

RT_STREAM_API(cudaMemcpyToSymbolAsync, _ptsz,
              (const void *symbol, const void *from, size_t bytes, size_t offset, cudaMemcpyKind kind,
               cudaStream_t stream),
              (symbol, from, bytes, offset, kind, stream)) {
    void *to;
    if (int status = rt::copy_to_variable(symbol, bytes, offset, kind, &to))
        return status;
    return copy_async(on, to, from, bytes, kind, stream);
}

RT_STREAM_API(cudaMemcpyFromSymbol, _ptds,
              (void *to, const void *symbol, size_t bytes, size_t offset, cudaMemcpyKind kind),
              (to, symbol, bytes, offset, kind)) {
    void *from;
    if (int status = rt::copy_from_variable(symbol, bytes, offset, kind, &from))
        return status;
    return copy(on, to, from, bytes, kind);
}

RT_STREAM_API(cudaMemcpyFromSymbolAsync, _ptsz,
              (void *to, const void *symbol, size_t bytes, size_t offset, cudaMemcpyKind kind, cudaStream_t stream),
              (to, symbol, bytes, offset, kind, stream)) {
    void *from;
    if (int status = rt::copy_from_variable(symbol, bytes, offset, kind, &from))
        return status;
    return copy_async(on, to, from, bytes, kind, stream);
}
