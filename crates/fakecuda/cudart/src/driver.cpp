// Filling the table of driver functions.
#include "driver.h"

#include <dlfcn.h>
#include <type_traits>

namespace rt {

Driver driver;

namespace {

int newer_driver_needed() { return cudaErrorCallRequiresNewerDriver; }

template <typename Function>
void look_up(Function &function, const char *name, int version, unsigned long long flags) {
    void *found = nullptr;
    CUdriverProcAddressQueryResult status;
    if (driver.GetProcAddress(name, &found, version, flags, &status) != CUDA_SUCCESS || found == nullptr)
        found = reinterpret_cast<void *>(newer_driver_needed);
    function = reinterpret_cast<Function>(found);
}

// cuGetProcAddress of before 12.0, as the newer form that the table holds.
PFN_cuGetProcAddress_v11030 old_look_up;

CUresult CUDAAPI look_up_without_status(const char *name, void **function, int version, cuuint64_t flags,
                                        CUdriverProcAddressQueryResult *status) {
    CUresult result = old_look_up(name, function, version, flags);
    if (status)
        *status = result == CUDA_SUCCESS ? CU_GET_PROC_ADDRESS_SUCCESS : CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
    return result;
}

#define RT_SAME_PROTOTYPE(name, version, per_thread_version, suffix) \
    static_assert(std::is_same<PFN_cu##name##_v##version, PFN_cu##name##_v##per_thread_version##_##suffix>::value, #name);
RT_STREAM_FUNCTIONS(RT_SAME_PROTOTYPE)
#undef RT_SAME_PROTOTYPE

} // namespace

int find_driver() {
    // Never closed: the driver's threads and exit handlers outlive the runtime.
    void *library = dlopen("libcuda.so.1", RTLD_NOW);
    if (library == nullptr)
        return cudaErrorInsufficientDriver;
    driver.GetProcAddress = reinterpret_cast<PFN_cuGetProcAddress_v12000>(dlsym(library, "cuGetProcAddress_v2"));
    if (driver.GetProcAddress == nullptr) {
        old_look_up = reinterpret_cast<PFN_cuGetProcAddress_v11030>(dlsym(library, "cuGetProcAddress"));
        if (old_look_up == nullptr)
            return cudaErrorInsufficientDriver;
        driver.GetProcAddress = look_up_without_status;
    }
#define RT_FILL(name, version) \
    look_up(driver.name##_v##version, "cu" #name, version, CU_GET_PROC_ADDRESS_DEFAULT);
    RT_DRIVER_FUNCTIONS(RT_FILL)
#undef RT_FILL
#define RT_FILL(name, version, per_thread_version, suffix) \
    look_up(driver.legacy.name##_v##version, "cu" #name, version, CU_GET_PROC_ADDRESS_LEGACY_STREAM); \
    look_up(driver.per_thread.name##_v##version, "cu" #name, per_thread_version, \
            CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM);
    RT_STREAM_FUNCTIONS(RT_FILL)
#undef RT_FILL
    return cudaSuccess;
}

} // namespace rt
