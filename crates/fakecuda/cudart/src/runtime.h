// What every function of the interface goes through: starting the runtime, giving the calling thread a
// context, and remembering the last error.
//
// Nothing here needs the C++ library at run time, since programs link the static form as C.
#pragma once

#include "driver.h"

#define RT_API extern "C"
#define RT_UNWRAP(...) __VA_ARGS__

namespace rt {

// Starts the runtime once: finds and initialises the driver. The answer is kept; it is
// cudaErrorInsufficientDriver for a driver of an older major version than this runtime.
int start();

// The version that the driver gives, 0 without one. Does not initialise it.
int driver_version();

// start(), and a current context for the thread: that of the device that it has chosen, unless the
// program has made one current itself.
int enter();

// Whether `status` says that the thread's context, a primary one, has been reset by others: another
// runtime of the process, or the program through the driver. If so the thread has a live one afterwards.
bool revived(int status);

// Makes the primary context of `device`, which must be valid, current and the thread's choice.
int use_device(int device);

// The device of the current context, or of the thread's choice if there is none. Makes no context.
int current_device(int *device);

// The primary context of `device`, made if need be.
int primary_context(int device, CUcontext *context);

// Says that the primary context of `device` is about to be reset: threads take a new one at their next call.
void forget_context(int device);

bool is_device(int device);

// Sets the thread's last error and returns it. cudaErrorNotReady is an answer, not an error.
cudaError_t report(int status);

// An API function's body `work`, which answers a CUresult or a cudaError_t (the numbers are shared),
// in a thread that has a context.
template <typename Work>
cudaError_t call(Work work) {
    int status = enter();
    if (status == cudaSuccess) {
        status = work();
        if (status != cudaSuccess && revived(status))
            status = work();
    }
    return report(status);
}

// The same for a function that needs no context.
template <typename Work>
cudaError_t ask(Work work) {
    int status = start();
    return report(status == cudaSuccess ? static_cast<int>(work()) : status);
}

inline CUdeviceptr address(const void *pointer) { return reinterpret_cast<CUdeviceptr>(pointer); }

inline CUdeviceptr *address_out(void **pointer) { return reinterpret_cast<CUdeviceptr *>(pointer); }

} // namespace rt

// Defines the API function `name`, for which stream 0 is the legacy default stream, and `name` with
// `suffix`, for which it is the thread's own. The body that follows takes the matching functions as `on`.
#define RT_STREAM_API(name, suffix, parameters, arguments) \
    static int on_##name(const rt::StreamFunctions &on, RT_UNWRAP parameters); \
    RT_API cudaError_t name parameters { \
        return rt::call([&] { return on_##name(rt::driver.legacy, RT_UNWRAP arguments); }); \
    } \
    RT_API cudaError_t name##suffix parameters { \
        return rt::call([&] { return on_##name(rt::driver.per_thread, RT_UNWRAP arguments); }); \
    } \
    static int on_##name(const rt::StreamFunctions &on, RT_UNWRAP parameters)
