// Start, contexts of threads, and the last error.
#include "runtime.h"

#include <pthread.h>
#include <stdlib.h>

namespace rt {
namespace {

struct Device {
    CUcontext context; // null until the runtime first needs it, and after a reset
    unsigned generation;
};

struct Thread {
    cudaError_t last_error;
    int device;
    CUcontext context; // what the runtime made current here, null for none
    unsigned generation; // of the device when it did
};

pthread_once_t started = PTHREAD_ONCE_INIT;
int start_status;
int version;
int device_count;
Device *devices;
pthread_mutex_t devices_lock = PTHREAD_MUTEX_INITIALIZER;
thread_local Thread thread;

pthread_once_t found = PTHREAD_ONCE_INIT;
int find_status;

void find_once() {
    find_status = find_driver();
    if (find_status == cudaSuccess)
        find_status = driver.DriverGetVersion_v2020(&version);
}

// A thread of the parent may hold the lock at the fork; the child must still be able to run its exit.
void lock_devices() { pthread_mutex_lock(&devices_lock); }
void unlock_devices() { pthread_mutex_unlock(&devices_lock); }

int start_driver() {
    pthread_once(&found, find_once);
    if (find_status != cudaSuccess)
        return find_status;
    // A driver serves runtimes of its own major version and older.
    if (version / 1000 < CUDART_VERSION / 1000)
        return cudaErrorInsufficientDriver;
    if (int status = driver.Init_v2000(0))
        return status;
    if (int status = driver.DeviceGetCount_v2000(&device_count))
        return status;
    if (device_count == 0)
        return cudaErrorNoDevice;
    devices = static_cast<Device *>(calloc(static_cast<size_t>(device_count), sizeof *devices));
    if (devices == nullptr)
        return cudaErrorInitializationError;
    pthread_atfork(lock_devices, unlock_devices, unlock_devices);
    return cudaSuccess;
}

void start_once() { start_status = start_driver(); }

bool context_is_gone(int status) {
    return status == cudaErrorDeviceUninitialized || status == cudaErrorContextIsDestroyed;
}

// Makes `device`'s primary context current, a new one where `fresh`.
int bind(int device, bool fresh) {
    CUcontext context = nullptr;
    unsigned generation = 0;
    lock_devices();
    int status = cudaSuccess;
    if (fresh)
        devices[device].context = nullptr;
    if (devices[device].context == nullptr) {
        status = driver.DevicePrimaryCtxRetain_v7000(&devices[device].context, device);
        if (status != cudaSuccess)
            devices[device].context = nullptr;
    }
    context = devices[device].context;
    generation = devices[device].generation;
    unlock_devices();
    if (status == cudaSuccess)
        status = driver.CtxSetCurrent_v4000(context);
    if (status != cudaSuccess)
        return status;
    thread.device = device;
    thread.context = context;
    thread.generation = generation;
    return cudaSuccess;
}

unsigned generation_of(int device) {
    lock_devices();
    unsigned generation = devices[device].generation;
    unlock_devices();
    return generation;
}

} // namespace

int driver_version() {
    pthread_once(&found, find_once);
    return version;
}

int start() {
    pthread_once(&started, start_once);
    return start_status;
}

bool is_device(int device) { return device >= 0 && device < device_count; }

int use_device(int device) {
    int status = bind(device, false);
    if (context_is_gone(status))
        status = bind(device, true);
    return status;
}

int enter() {
    if (int status = start())
        return status;
    CUcontext current = nullptr;
    int status = driver.CtxGetCurrent_v4000(&current);
    if (status != cudaSuccess && !context_is_gone(status))
        return status;
    if (status == cudaSuccess && current != nullptr) {
        bool ours = current == thread.context;
        if (!ours || thread.generation == generation_of(thread.device))
            return cudaSuccess;
    }
    return use_device(thread.device);
}

bool revived(int status) {
    if (!context_is_gone(status))
        return false;
    CUcontext current = nullptr, before = thread.context;
    if (driver.CtxGetCurrent_v4000(&current) == CUDA_SUCCESS && current != nullptr && current != before)
        return false; // the program's own
    unsigned flags = 0;
    int active = 1;
    if (driver.DevicePrimaryCtxGetState_v7000(thread.device, &flags, &active) != CUDA_SUCCESS)
        return false;
    if (bind(thread.device, true) != cudaSuccess)
        return false;
    return !active || thread.context != before;
}

int current_device(int *device) {
    CUcontext current = nullptr;
    if (int status = driver.CtxGetCurrent_v4000(&current))
        return status;
    CUdevice found = thread.device;
    if (current != nullptr && driver.CtxGetDevice_v2000(&found) != CUDA_SUCCESS)
        found = thread.device;
    *device = found;
    return cudaSuccess;
}

int primary_context(int device, CUcontext *context) {
    lock_devices();
    int status = cudaSuccess;
    if (devices[device].context == nullptr)
        status = driver.DevicePrimaryCtxRetain_v7000(&devices[device].context, device);
    *context = devices[device].context;
    unlock_devices();
    return status;
}

void forget_context(int device) {
    lock_devices();
    devices[device].context = nullptr;
    devices[device].generation += 1;
    unlock_devices();
}

cudaError_t report(int status) {
    cudaError_t error = static_cast<cudaError_t>(status);
    if (error != cudaSuccess && error != cudaErrorNotReady)
        thread.last_error = error;
    return error;
}

} // namespace rt

RT_API cudaError_t cudaGetLastError() {
    cudaError_t error = rt::thread.last_error;
    rt::thread.last_error = cudaSuccess;
    return error;
}

RT_API cudaError_t cudaPeekAtLastError() { return rt::thread.last_error; }
