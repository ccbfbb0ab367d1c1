// Device, pinned and managed memory: allocation, sets, attributes, sharing.
#include "runtime.h"

#include <string.h>

using rt::address;
using rt::address_out;
using rt::call;
using rt::driver;

RT_API cudaError_t cudaMalloc(void **pointer, size_t bytes) {
    if (pointer == nullptr)
        return rt::report(cudaErrorInvalidValue);
    return call([&]() -> int {
        // The driver refuses an empty allocation; the runtime gives none.
        if (bytes == 0) {
            *pointer = nullptr;
            return cudaSuccess;
        }
        return driver.MemAlloc_v3020(address_out(pointer), bytes);
    });
}

RT_API cudaError_t cudaFree(void *pointer) {
    return call([&]() -> int { return pointer ? driver.MemFree_v3020(address(pointer)) : CUDA_SUCCESS; });
}

RT_API cudaError_t cudaMallocPitch(void **pointer, size_t *pitch, size_t width, size_t height) {
    if (pointer == nullptr || pitch == nullptr)
        return rt::report(cudaErrorInvalidValue);
    return call([&]() -> int {
        if (width == 0 || height == 0) {
            *pointer = nullptr;
            *pitch = 0;
            return cudaSuccess;
        }
        return driver.MemAllocPitch_v3020(address_out(pointer), pitch, width, height, 4);
    });
}

RT_API cudaError_t cudaMalloc3D(cudaPitchedPtr *pitched, cudaExtent extent) {
    if (pitched == nullptr)
        return rt::report(cudaErrorInvalidValue);
    return call([&]() -> int {
        void *pointer = nullptr;
        size_t pitch = 0, rows = 0;
        if (__builtin_mul_overflow(extent.height, extent.depth, &rows))
            return cudaErrorMemoryAllocation;
        if (extent.width != 0 && rows != 0)
            if (int status = driver.MemAllocPitch_v3020(address_out(&pointer), &pitch, extent.width, rows, 4))
                return status;
        *pitched = cudaPitchedPtr{pointer, pitch, extent.width, extent.height};
        return cudaSuccess;
    });
}

RT_API cudaError_t cudaMallocManaged(void **pointer, size_t bytes, unsigned flags) {
    return call([&] { return driver.MemAllocManaged_v6000(address_out(pointer), bytes, flags); });
}

RT_API cudaError_t cudaHostAlloc(void **pointer, size_t bytes, unsigned flags) {
    if (pointer == nullptr)
        return rt::report(cudaErrorInvalidValue);
    return call([&]() -> int {
        if (bytes == 0) {
            *pointer = nullptr;
            return cudaSuccess;
        }
        return driver.MemHostAlloc_v2020(pointer, bytes, flags);
    });
}

RT_API cudaError_t cudaMallocHost(void **pointer, size_t bytes) {
    return cudaHostAlloc(pointer, bytes, cudaHostAllocDefault);
}

RT_API cudaError_t cudaFreeHost(void *pointer) {
    return call([&]() -> int { return pointer ? driver.MemFreeHost_v2000(pointer) : CUDA_SUCCESS; });
}

RT_API cudaError_t cudaHostRegister(void *pointer, size_t bytes, unsigned flags) {
    return call([&] { return driver.MemHostRegister_v6050(pointer, bytes, flags); });
}

RT_API cudaError_t cudaHostUnregister(void *pointer) {
    return call([&] { return driver.MemHostUnregister_v4000(pointer); });
}

RT_API cudaError_t cudaHostGetDevicePointer(void **device, void *host, unsigned flags) {
    return call([&] { return driver.MemHostGetDevicePointer_v3020(address_out(device), host, flags); });
}

RT_API cudaError_t cudaHostGetFlags(unsigned *flags, void *host) {
    return call([&] { return driver.MemHostGetFlags_v2030(flags, host); });
}

RT_API cudaError_t cudaMemGetInfo(size_t *free, size_t *total) {
    return call([&] { return driver.MemGetInfo_v3020(free, total); });
}

RT_STREAM_API(cudaMemset, _ptds, (void *pointer, int value, size_t bytes), (pointer, value, bytes)) {
    if (bytes == 0)
        return cudaSuccess;
    return on.MemsetD8_v3020(address(pointer), static_cast<unsigned char>(value), bytes);
}

RT_STREAM_API(cudaMemsetAsync, _ptsz, (void *pointer, int value, size_t bytes, cudaStream_t stream),
              (pointer, value, bytes, stream)) {
    if (bytes == 0)
        return cudaSuccess;
    return on.MemsetD8Async_v3020(address(pointer), static_cast<unsigned char>(value), bytes, stream);
}

RT_STREAM_API(cudaMemset2D, _ptds, (void *pointer, size_t pitch, int value, size_t width, size_t height),
              (pointer, pitch, value, width, height)) {
    if (width == 0 || height == 0)
        return cudaSuccess;
    return on.MemsetD2D8_v3020(address(pointer), pitch, static_cast<unsigned char>(value), width, height);
}

RT_STREAM_API(cudaMemset2DAsync, _ptsz,
              (void *pointer, size_t pitch, int value, size_t width, size_t height, cudaStream_t stream),
              (pointer, pitch, value, width, height, stream)) {
    if (width == 0 || height == 0)
        return cudaSuccess;
    return on.MemsetD2D8Async_v3020(address(pointer), pitch, static_cast<unsigned char>(value), width, height, stream);
}

// Where the slices of a three-dimensional set lie, one two-dimensional set a slice: they are `ysize`
// rows apart, of which `extent` covers the first ones.
template <typename Slice>
static int each_slice(const cudaPitchedPtr &pitched, const cudaExtent &extent, Slice slice) {
    if (extent.width == 0 || extent.height == 0)
        return cudaSuccess;
    if (extent.height > pitched.ysize && extent.depth > 1)
        return cudaErrorInvalidValue;
    for (size_t z = 0; z < extent.depth; z++)
        if (int status = slice(address(pitched.ptr) + z * pitched.ysize * pitched.pitch))
            return status;
    return cudaSuccess;
}

RT_STREAM_API(cudaMemset3D, _ptds, (cudaPitchedPtr pitched, int value, cudaExtent extent), (pitched, value, extent)) {
    return each_slice(pitched, extent, [&](CUdeviceptr slice) {
        return on.MemsetD2D8_v3020(slice, pitched.pitch, static_cast<unsigned char>(value), extent.width, extent.height);
    });
}

RT_STREAM_API(cudaMemset3DAsync, _ptsz, (cudaPitchedPtr pitched, int value, cudaExtent extent, cudaStream_t stream),
              (pitched, value, extent, stream)) {
    return each_slice(pitched, extent, [&](CUdeviceptr slice) {
        return on.MemsetD2D8Async_v3020(slice, pitched.pitch, static_cast<unsigned char>(value), extent.width,
                                        extent.height, stream);
    });
}

RT_API cudaError_t cudaPointerGetAttributes(cudaPointerAttributes *attributes, const void *pointer) {
    if (attributes == nullptr)
        return rt::report(cudaErrorInvalidValue);
    return call([&]() -> int {
        unsigned type = 0, managed = 0;
        int device = -1;
        void *on_device = nullptr, *on_host = nullptr;
        CUpointer_attribute wanted[] = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_IS_MANAGED,
                                        CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, CU_POINTER_ATTRIBUTE_DEVICE_POINTER,
                                        CU_POINTER_ATTRIBUTE_HOST_POINTER};
        void *values[] = {&type, &managed, &device, &on_device, &on_host};
        if (int status = driver.PointerGetAttributes_v7000(5, wanted, values, address(pointer)))
            return status;
        memset(attributes, 0, sizeof *attributes);
        if (type == 0) {
            // Memory that the driver knows nothing of is the host's own.
            attributes->type = cudaMemoryTypeUnregistered;
            attributes->device = -1;
            attributes->hostPointer = const_cast<void *>(pointer);
            return cudaSuccess;
        }
        attributes->type = managed                       ? cudaMemoryTypeManaged
                           : type == CU_MEMORYTYPE_HOST ? cudaMemoryTypeHost
                                                         : cudaMemoryTypeDevice;
        attributes->device = device;
        attributes->devicePointer = on_device;
        attributes->hostPointer = attributes->type == cudaMemoryTypeDevice ? nullptr : on_host;
        return cudaSuccess;
    });
}

static CUmemLocation to_driver(const cudaMemLocation &location) {
    CUmemLocation result;
    memset(&result, 0, sizeof result);
    result.type = static_cast<CUmemLocationType>(location.type);
    result.id = location.id;
    return result;
}

#if CUDART_VERSION >= 13000
#define RT_LOCATED(name) name
#else
#define RT_LOCATED(name) name##_v2

// The forms of before 12.2 name the location by device, cudaCpuDeviceId for the host.
RT_API cudaError_t cudaMemAdvise(const void *pointer, size_t bytes, cudaMemoryAdvise advice, int device) {
    return call([&] { return driver.MemAdvise_v8000(address(pointer), bytes, static_cast<CUmem_advise>(advice), device); });
}

RT_STREAM_API(cudaMemPrefetchAsync, _ptsz, (const void *pointer, size_t bytes, int device, cudaStream_t stream),
              (pointer, bytes, device, stream)) {
    return on.MemPrefetchAsync_v8000(address(pointer), bytes, device, stream);
}
#endif

RT_API cudaError_t RT_LOCATED(cudaMemAdvise)(const void *pointer, size_t bytes, cudaMemoryAdvise advice,
                                             cudaMemLocation location) {
    return call([&] {
        return driver.MemAdvise_v12020(address(pointer), bytes, static_cast<CUmem_advise>(advice), to_driver(location));
    });
}

#if CUDART_VERSION >= 13000
RT_STREAM_API(cudaMemPrefetchAsync, _ptsz,
#else
RT_STREAM_API(cudaMemPrefetchAsync_v2, _ptsz,
#endif
              (const void *pointer, size_t bytes, cudaMemLocation location, unsigned flags, cudaStream_t stream),
              (pointer, bytes, location, flags, stream)) {
    return on.MemPrefetchAsync_v12020(address(pointer), bytes, to_driver(location), flags, stream);
}

RT_API cudaError_t cudaMemRangeGetAttribute(void *data, size_t size, cudaMemRangeAttribute attribute, const void *pointer,
                                            size_t bytes) {
    return call([&] {
        return driver.MemRangeGetAttribute_v8000(data, size, static_cast<CUmem_range_attribute>(attribute),
                                                 address(pointer), bytes);
    });
}

RT_API cudaError_t cudaMemRangeGetAttributes(void **data, size_t *sizes, cudaMemRangeAttribute *attributes, size_t count,
                                             const void *pointer, size_t bytes) {
    return call([&] {
        return driver.MemRangeGetAttributes_v8000(data, sizes, reinterpret_cast<CUmem_range_attribute *>(attributes),
                                                  count, address(pointer), bytes);
    });
}

static_assert(sizeof(cudaIpcMemHandle_t) == sizeof(CUipcMemHandle), "one handle, two names");

RT_API cudaError_t cudaIpcGetMemHandle(cudaIpcMemHandle_t *handle, void *pointer) {
    return call([&] { return driver.IpcGetMemHandle_v4010(reinterpret_cast<CUipcMemHandle *>(handle), address(pointer)); });
}

RT_API cudaError_t cudaIpcOpenMemHandle(void **pointer, cudaIpcMemHandle_t handle, unsigned flags) {
    return call([&] {
        CUipcMemHandle raw;
        memcpy(&raw, &handle, sizeof raw);
        return driver.IpcOpenMemHandle_v11000(address_out(pointer), raw, flags);
    });
}

RT_API cudaError_t cudaIpcCloseMemHandle(void *pointer) {
    return call([&] { return driver.IpcCloseMemHandle_v4010(address(pointer)); });
}
