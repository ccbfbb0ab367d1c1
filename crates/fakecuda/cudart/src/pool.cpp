// Stream-ordered allocation and its pools.
#include "runtime.h"

using rt::address;
using rt::address_out;
using rt::ask;
using rt::call;
using rt::driver;

static_assert(sizeof(cudaMemPoolProps) == sizeof(CUmemPoolProps), "one structure, two names");
static_assert(sizeof(cudaMemAccessDesc) == sizeof(CUmemAccessDesc), "one structure, two names");
static_assert(sizeof(cudaMemLocation) == sizeof(CUmemLocation), "one structure, two names");
static_assert(sizeof(cudaMemPoolPtrExportData) == sizeof(CUmemPoolPtrExportData), "one structure, two names");

RT_STREAM_API(cudaMallocAsync, _ptsz, (void **pointer, size_t bytes, cudaStream_t stream), (pointer, bytes, stream)) {
    if (pointer == nullptr)
        return cudaErrorInvalidValue;
    if (bytes == 0) {
        *pointer = nullptr;
        return cudaSuccess;
    }
    return on.MemAllocAsync_v11020(address_out(pointer), bytes, stream);
}

RT_STREAM_API(cudaMallocFromPoolAsync, _ptsz, (void **pointer, size_t bytes, cudaMemPool_t pool, cudaStream_t stream),
              (pointer, bytes, pool, stream)) {
    if (pointer == nullptr)
        return cudaErrorInvalidValue;
    if (bytes == 0) {
        *pointer = nullptr;
        return cudaSuccess;
    }
    return on.MemAllocFromPoolAsync_v11020(address_out(pointer), bytes, pool, stream);
}

RT_STREAM_API(cudaFreeAsync, _ptsz, (void *pointer, cudaStream_t stream), (pointer, stream)) {
    return pointer ? on.MemFreeAsync_v11020(address(pointer), stream) : CUDA_SUCCESS;
}

RT_API cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t *pool, int device) {
    return ask([&] { return driver.DeviceGetDefaultMemPool_v11020(pool, device); });
}

RT_API cudaError_t cudaDeviceGetMemPool(cudaMemPool_t *pool, int device) {
    return ask([&] { return driver.DeviceGetMemPool_v11020(pool, device); });
}

RT_API cudaError_t cudaDeviceSetMemPool(int device, cudaMemPool_t pool) {
    return ask([&] { return driver.DeviceSetMemPool_v11020(device, pool); });
}

RT_API cudaError_t cudaMemPoolCreate(cudaMemPool_t *pool, const cudaMemPoolProps *properties) {
    return call([&] { return driver.MemPoolCreate_v11020(pool, reinterpret_cast<const CUmemPoolProps *>(properties)); });
}

RT_API cudaError_t cudaMemPoolDestroy(cudaMemPool_t pool) {
    return call([&] { return driver.MemPoolDestroy_v11020(pool); });
}

RT_API cudaError_t cudaMemPoolTrimTo(cudaMemPool_t pool, size_t bytes_to_keep) {
    return call([&] { return driver.MemPoolTrimTo_v11020(pool, bytes_to_keep); });
}

RT_API cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t pool, cudaMemPoolAttr attribute, void *value) {
    return call([&] { return driver.MemPoolSetAttribute_v11020(pool, static_cast<CUmemPool_attribute>(attribute), value); });
}

RT_API cudaError_t cudaMemPoolGetAttribute(cudaMemPool_t pool, cudaMemPoolAttr attribute, void *value) {
    return call([&] { return driver.MemPoolGetAttribute_v11020(pool, static_cast<CUmemPool_attribute>(attribute), value); });
}

RT_API cudaError_t cudaMemPoolSetAccess(cudaMemPool_t pool, const cudaMemAccessDesc *list, size_t count) {
    return call([&] {
        return driver.MemPoolSetAccess_v11020(pool, reinterpret_cast<const CUmemAccessDesc *>(list), count);
    });
}

RT_API cudaError_t cudaMemPoolGetAccess(cudaMemAccessFlags *flags, cudaMemPool_t pool, cudaMemLocation *location) {
    return call([&] {
        return driver.MemPoolGetAccess_v11020(reinterpret_cast<CUmemAccess_flags *>(flags), pool,
                                              reinterpret_cast<CUmemLocation *>(location));
    });
}

RT_API cudaError_t cudaMemPoolExportToShareableHandle(void *handle, cudaMemPool_t pool, cudaMemAllocationHandleType type,
                                                      unsigned flags) {
    return call([&] {
        return driver.MemPoolExportToShareableHandle_v11020(handle, pool, static_cast<CUmemAllocationHandleType>(type), flags);
    });
}

RT_API cudaError_t cudaMemPoolImportFromShareableHandle(cudaMemPool_t *pool, void *handle,
                                                        cudaMemAllocationHandleType type, unsigned flags) {
    return call([&] {
        return driver.MemPoolImportFromShareableHandle_v11020(pool, handle, static_cast<CUmemAllocationHandleType>(type),
                                                              flags);
    });
}

RT_API cudaError_t cudaMemPoolExportPointer(cudaMemPoolPtrExportData *data, void *pointer) {
    return call([&] {
        return driver.MemPoolExportPointer_v11020(reinterpret_cast<CUmemPoolPtrExportData *>(data), address(pointer));
    });
}

RT_API cudaError_t cudaMemPoolImportPointer(void **pointer, cudaMemPool_t pool, cudaMemPoolPtrExportData *data) {
    return call([&] {
        return driver.MemPoolImportPointer_v11020(address_out(pointer), pool,
                                                  reinterpret_cast<CUmemPoolPtrExportData *>(data));
    });
}

#if CUDART_VERSION >= 13000
RT_API cudaError_t cudaMemGetDefaultMemPool(cudaMemPool_t *pool, cudaMemLocation *location, cudaMemAllocationType type) {
    return ask([&] {
        return driver.MemGetDefaultMemPool_v13000(pool, reinterpret_cast<CUmemLocation *>(location),
                                                  static_cast<CUmemAllocationType>(type));
    });
}

RT_API cudaError_t cudaMemGetMemPool(cudaMemPool_t *pool, cudaMemLocation *location, cudaMemAllocationType type) {
    return ask([&] {
        return driver.MemGetMemPool_v13000(pool, reinterpret_cast<CUmemLocation *>(location),
                                           static_cast<CUmemAllocationType>(type));
    });
}

RT_API cudaError_t cudaMemSetMemPool(cudaMemLocation *location, cudaMemAllocationType type, cudaMemPool_t pool) {
    return ask([&] {
        return driver.MemSetMemPool_v13000(reinterpret_cast<CUmemLocation *>(location),
                                           static_cast<CUmemAllocationType>(type), pool);
    });
}
#endif
