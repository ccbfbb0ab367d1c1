// Code loaded by the program itself, the way to the driver's functions, and odds and ends.
#include "registry.h"
#include "runtime.h"

#include <string.h>

using rt::address_out;
using rt::ask;
using rt::call;
using rt::driver;

namespace {

CUlibrary driver_library(cudaLibrary_t library) { return reinterpret_cast<CUlibrary>(library); }

} // namespace

RT_API cudaError_t cudaLibraryLoadData(cudaLibrary_t *library, const void *code, cudaJitOption *jit_options,
                                       void **jit_values, unsigned jit_count, cudaLibraryOption *options, void **values,
                                       unsigned count) {
    return call([&] {
        return driver.LibraryLoadData_v12000(reinterpret_cast<CUlibrary *>(library), code,
                                             reinterpret_cast<CUjit_option *>(jit_options), jit_values, jit_count,
                                             reinterpret_cast<CUlibraryOption *>(options), values, count);
    });
}

RT_API cudaError_t cudaLibraryLoadFromFile(cudaLibrary_t *library, const char *file, cudaJitOption *jit_options,
                                           void **jit_values, unsigned jit_count, cudaLibraryOption *options,
                                           void **values, unsigned count) {
    return call([&] {
        return driver.LibraryLoadFromFile_v12000(reinterpret_cast<CUlibrary *>(library), file,
                                                 reinterpret_cast<CUjit_option *>(jit_options), jit_values, jit_count,
                                                 reinterpret_cast<CUlibraryOption *>(options), values, count);
    });
}

RT_API cudaError_t cudaLibraryUnload(cudaLibrary_t library) {
    return call([&] { return driver.LibraryUnload_v12000(driver_library(library)); });
}

RT_API cudaError_t cudaLibraryGetKernel(cudaKernel_t *kernel, cudaLibrary_t library, const char *name) {
    return call([&] { return driver.LibraryGetKernel_v12000(reinterpret_cast<CUkernel *>(kernel), driver_library(library), name); });
}

RT_API cudaError_t cudaLibraryGetGlobal(void **pointer, size_t *size, cudaLibrary_t library, const char *name) {
    return call([&] { return driver.LibraryGetGlobal_v12000(address_out(pointer), size, driver_library(library), name); });
}

RT_API cudaError_t cudaLibraryGetManaged(void **pointer, size_t *size, cudaLibrary_t library, const char *name) {
    return call([&] { return driver.LibraryGetManaged_v12000(address_out(pointer), size, driver_library(library), name); });
}

RT_API cudaError_t cudaLibraryGetUnifiedFunction(void **function, cudaLibrary_t library, const char *symbol) {
    return call([&] { return driver.LibraryGetUnifiedFunction_v12000(function, driver_library(library), symbol); });
}

RT_API cudaError_t cudaLibraryGetKernelCount(unsigned *count, cudaLibrary_t library) {
    return call([&] { return driver.LibraryGetKernelCount_v12040(count, driver_library(library)); });
}

RT_API cudaError_t cudaLibraryEnumerateKernels(cudaKernel_t *kernels, unsigned count, cudaLibrary_t library) {
    return call([&] {
        return driver.LibraryEnumerateKernels_v12040(reinterpret_cast<CUkernel *>(kernels), count, driver_library(library));
    });
}

RT_API cudaError_t cudaKernelSetAttributeForDevice(cudaKernel_t kernel, cudaFuncAttribute attribute, int value, int device) {
    return call([&] {
        return driver.KernelSetAttribute_v12000(static_cast<CUfunction_attribute>(attribute), value,
                                                reinterpret_cast<CUkernel>(kernel), device);
    });
}

static cudaError_t entry_point(const char *symbol, void **function, unsigned version, unsigned long long flags,
                               cudaDriverEntryPointQueryResult *result) {
    if (symbol == nullptr || function == nullptr)
        return rt::report(cudaErrorInvalidValue);
    return ask([&]() -> int {
        CUdriverProcAddressQueryResult found = CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
        int status = driver.GetProcAddress(symbol, function, static_cast<int>(version), flags, &found);
        if (result == nullptr)
            return status;
        // A caller who asks why gets the answer there, and no error for a name that is not found.
        *result = static_cast<cudaDriverEntryPointQueryResult>(found);
        if (status == CUDA_ERROR_NOT_FOUND) {
            *function = nullptr;
            return cudaSuccess;
        }
        return status;
    });
}

// Without a wish of the caller's the flag says which default stream the program was compiled for.
static unsigned long long per_thread_flags(unsigned long long flags) {
    return flags == cudaEnableDefault ? static_cast<unsigned long long>(cudaEnablePerThreadDefaultStream) : flags;
}

RT_API cudaError_t cudaGetDriverEntryPointByVersion(const char *symbol, void **function, unsigned version,
                                                    unsigned long long flags, cudaDriverEntryPointQueryResult *result) {
    return entry_point(symbol, function, version, flags, result);
}

RT_API cudaError_t cudaGetDriverEntryPointByVersion_ptsz(const char *symbol, void **function, unsigned version,
                                                         unsigned long long flags,
                                                         cudaDriverEntryPointQueryResult *result) {
    return entry_point(symbol, function, version, per_thread_flags(flags), result);
}

RT_API cudaError_t cudaGetDriverEntryPoint(const char *symbol, void **function, unsigned long long flags,
                                           cudaDriverEntryPointQueryResult *result) {
    return entry_point(symbol, function, CUDART_VERSION, flags, result);
}

RT_API cudaError_t cudaGetDriverEntryPoint_ptsz(const char *symbol, void **function, unsigned long long flags,
                                                cudaDriverEntryPointQueryResult *result) {
    return entry_point(symbol, function, CUDART_VERSION, per_thread_flags(flags), result);
}

// There are no tables between this runtime and its driver.
RT_API cudaError_t cudaGetExportTable(const void **table, const cudaUUID_t *) {
    if (table != nullptr)
        *table = nullptr;
    return rt::report(cudaErrorSymbolNotFound);
}

RT_API cudaError_t cudaProfilerStart() {
    return call([] { return driver.ProfilerStart_v4000(); });
}

RT_API cudaError_t cudaProfilerStop() {
    return call([] { return driver.ProfilerStop_v4000(); });
}

RT_API cudaChannelFormatDesc cudaCreateChannelDesc(int x, int y, int z, int w, cudaChannelFormatKind kind) {
    return {x, y, z, w, kind};
}
