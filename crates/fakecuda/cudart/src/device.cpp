// Devices: choice, attributes, limits, peers.
#include "runtime.h"

using rt::ask;
using rt::call;
using rt::driver;

RT_API cudaError_t cudaGetDeviceCount(int *count) {
    if (count == nullptr)
        return rt::report(cudaErrorInvalidValue);
    *count = 0;
    return ask([&] { return driver.DeviceGetCount_v2000(count); });
}

RT_API cudaError_t cudaGetDevice(int *device) {
    if (device == nullptr)
        return rt::report(cudaErrorInvalidValue);
    return ask([&] { return rt::current_device(device); });
}

RT_API cudaError_t cudaSetDevice(int device) {
    return ask([&]() -> int { return rt::is_device(device) ? rt::use_device(device) : cudaErrorInvalidDevice; });
}

RT_API cudaError_t cudaInitDevice(int device, unsigned device_flags, unsigned flags) {
    return ask([&]() -> int {
        if (!rt::is_device(device))
            return cudaErrorInvalidDevice;
        if (flags & cudaInitDeviceFlagsAreValid)
            if (int status = driver.DevicePrimaryCtxSetFlags_v11000(device, device_flags))
                return status;
        CUcontext context;
        return rt::primary_context(device, &context);
    });
}

// Every device is valid until the program says otherwise; a list is accepted and has no other effect
// than that its members must exist.
RT_API cudaError_t cudaSetValidDevices(int *list, int count) {
    return ask([&]() -> int {
        if (count < 0 || (list == nullptr && count != 0))
            return cudaErrorInvalidValue;
        for (int i = 0; i < count; i++)
            if (!rt::is_device(list[i]))
                return cudaErrorInvalidDevice;
        return cudaSuccess;
    });
}

RT_API cudaError_t cudaChooseDevice(int *device, const cudaDeviceProp *wanted) {
    if (device == nullptr || wanted == nullptr)
        return rt::report(cudaErrorInvalidValue);
    // The devices are alike, so the first fits as well as any.
    return ask([&] {
        *device = 0;
        return cudaSuccess;
    });
}

RT_API cudaError_t cudaSetDeviceFlags(unsigned flags) {
    return ask([&] {
        int device;
        if (int status = rt::current_device(&device))
            return status;
        return static_cast<int>(driver.DevicePrimaryCtxSetFlags_v11000(device, flags));
    });
}

RT_API cudaError_t cudaGetDeviceFlags(unsigned *flags) {
    if (flags == nullptr)
        return rt::report(cudaErrorInvalidValue);
    return ask([&] {
        int device, active;
        if (int status = rt::current_device(&device))
            return status;
        return static_cast<int>(driver.DevicePrimaryCtxGetState_v7000(device, flags, &active));
    });
}

RT_API cudaError_t cudaDeviceReset() {
    return ask([&] {
        int device;
        if (int status = rt::current_device(&device))
            return status;
        rt::forget_context(device);
        driver.CtxSetCurrent_v4000(nullptr);
        return static_cast<int>(driver.DevicePrimaryCtxReset_v11000(device));
    });
}

RT_API cudaError_t cudaDeviceSynchronize() {
    return call([] { return driver.CtxSynchronize_v2000(); });
}

RT_API cudaError_t cudaDriverGetVersion(int *version) {
    if (version == nullptr)
        return rt::report(cudaErrorInvalidValue);
    *version = rt::driver_version();
    return cudaSuccess;
}

RT_API cudaError_t cudaRuntimeGetVersion(int *version) {
    if (version == nullptr)
        return rt::report(cudaErrorInvalidValue);
    *version = CUDART_VERSION;
    return cudaSuccess;
}

RT_API cudaError_t cudaDeviceGetAttribute(int *value, cudaDeviceAttr attribute, int device) {
    return ask([&] { return driver.DeviceGetAttribute_v2000(value, static_cast<CUdevice_attribute>(attribute), device); });
}

RT_API cudaError_t cudaDeviceGetPCIBusId(char *text, int length, int device) {
    return ask([&] { return driver.DeviceGetPCIBusId_v4010(text, length, device); });
}

RT_API cudaError_t cudaDeviceGetByPCIBusId(int *device, const char *text) {
    return ask([&] { return driver.DeviceGetByPCIBusId_v4010(device, text); });
}

RT_API cudaError_t cudaDeviceGetLimit(size_t *value, cudaLimit limit) {
    return call([&] { return driver.CtxGetLimit_v3010(value, static_cast<CUlimit>(limit)); });
}

RT_API cudaError_t cudaDeviceSetLimit(cudaLimit limit, size_t value) {
    return call([&] { return driver.CtxSetLimit_v3010(static_cast<CUlimit>(limit), value); });
}

RT_API cudaError_t cudaDeviceGetCacheConfig(cudaFuncCache *config) {
    return call([&] { return driver.CtxGetCacheConfig_v3020(reinterpret_cast<CUfunc_cache *>(config)); });
}

RT_API cudaError_t cudaDeviceSetCacheConfig(cudaFuncCache config) {
    return call([&] { return driver.CtxSetCacheConfig_v3020(static_cast<CUfunc_cache>(config)); });
}

// Boards since Volta have one bank size; the setting is accepted and has no effect.
RT_API cudaError_t cudaDeviceGetSharedMemConfig(cudaSharedMemConfig *config) {
    if (config == nullptr)
        return rt::report(cudaErrorInvalidValue);
    *config = cudaSharedMemBankSizeFourByte;
    return call([] { return cudaSuccess; });
}

RT_API cudaError_t cudaDeviceSetSharedMemConfig(cudaSharedMemConfig) {
    return call([] { return cudaSuccess; });
}

RT_API cudaError_t cudaDeviceGetStreamPriorityRange(int *least, int *greatest) {
    return call([&] { return driver.CtxGetStreamPriorityRange_v5050(least, greatest); });
}

RT_API cudaError_t cudaCtxResetPersistingL2Cache() {
    return call([] { return driver.CtxResetPersistingL2Cache_v11000(); });
}

RT_API cudaError_t cudaDeviceFlushGPUDirectRDMAWrites(cudaFlushGPUDirectRDMAWritesTarget target,
                                                      cudaFlushGPUDirectRDMAWritesScope scope) {
    return call([&] {
        return driver.FlushGPUDirectRDMAWrites_v11030(static_cast<CUflushGPUDirectRDMAWritesTarget>(target),
                                                      static_cast<CUflushGPUDirectRDMAWritesScope>(scope));
    });
}

RT_API cudaError_t cudaDeviceCanAccessPeer(int *can, int device, int peer) {
    return ask([&] { return driver.DeviceCanAccessPeer_v4000(can, device, peer); });
}

RT_API cudaError_t cudaDeviceGetP2PAttribute(int *value, cudaDeviceP2PAttr attribute, int source, int destination) {
    return ask([&] {
        return driver.DeviceGetP2PAttribute_v8000(value, static_cast<CUdevice_P2PAttribute>(attribute), source, destination);
    });
}

RT_API cudaError_t cudaDeviceEnablePeerAccess(int peer, unsigned flags) {
    return call([&]() -> int {
        if (!rt::is_device(peer))
            return cudaErrorInvalidDevice;
        CUcontext context;
        if (int status = rt::primary_context(peer, &context))
            return status;
        return driver.CtxEnablePeerAccess_v4000(context, flags);
    });
}

RT_API cudaError_t cudaDeviceDisablePeerAccess(int peer) {
    return call([&]() -> int {
        if (!rt::is_device(peer))
            return cudaErrorInvalidDevice;
        CUcontext context;
        if (int status = rt::primary_context(peer, &context))
            return status;
        return driver.CtxDisablePeerAccess_v4000(context);
    });
}

#if CUDART_VERSION < 13000
// The names of before CUDA 4, which 13.0 removed.
RT_API cudaError_t cudaThreadExit() { return cudaDeviceReset(); }
RT_API cudaError_t cudaThreadSynchronize() { return cudaDeviceSynchronize(); }
RT_API cudaError_t cudaThreadGetLimit(size_t *value, cudaLimit limit) { return cudaDeviceGetLimit(value, limit); }
RT_API cudaError_t cudaThreadSetLimit(cudaLimit limit, size_t value) { return cudaDeviceSetLimit(limit, value); }
RT_API cudaError_t cudaThreadGetCacheConfig(cudaFuncCache *config) { return cudaDeviceGetCacheConfig(config); }
RT_API cudaError_t cudaThreadSetCacheConfig(cudaFuncCache config) { return cudaDeviceSetCacheConfig(config); }
#endif
