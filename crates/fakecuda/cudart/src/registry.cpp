// Registration of the code that nvcc embeds. It happens in static constructors, in any order and before
// the driver is there, and is undone in exit handlers and at dlclose: so nothing here is constructed or
// destroyed, and the code itself is loaded when first used.
#include "registry.h"
#include "runtime.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

namespace rt {
namespace {

// What nvcc places around a fat binary.
struct FatBinaryWrapper {
    int magic;
    int version;
    const void *data;
    void *prelinked;
};
constexpr int wrapper_magic = 0x466243b1;

struct ManagedVariable {
    void **shadow;
    const char *name;
    ManagedVariable *next;
};

struct Image {
    const void *data;
    CUlibrary library; // null until loaded
    ManagedVariable *managed;
    bool managed_ready;
};

struct Entry {
    const void *key; // the host's function or variable
    const char *name; // the device's, in the image's program
    Image *image;
    CUkernel kernel; // for functions, null until looked up
    size_t size; // for variables, in bytes
    bool managed;
    Entry *next;
};

// Chained by the host address; entries are few and live as long as their image.
struct Table {
    static constexpr size_t buckets = 1024;
    Entry *heads[buckets];

    Entry **bucket(const void *key) {
        auto number = reinterpret_cast<uintptr_t>(key);
        return &heads[(number >> 4 ^ number >> 14) % buckets];
    }
    Entry *find(const void *key) {
        for (Entry *entry = *bucket(key); entry; entry = entry->next)
            if (entry->key == key)
                return entry;
        return nullptr;
    }
    // The managed variable that has been placed at `pointer`: the host's name for one is its memory.
    Entry *find_placed(const void *pointer) {
        for (Entry *head : heads)
            for (Entry *entry = head; entry; entry = entry->next)
                if (entry->managed && entry->image->managed_ready &&
                    *static_cast<void *const *>(entry->key) == pointer)
                    return entry;
        return nullptr;
    }
    void add(const Entry &entry) {
        auto *added = static_cast<Entry *>(malloc(sizeof entry));
        if (added == nullptr)
            abort();
        *added = entry;
        Entry **head = bucket(entry.key);
        added->next = *head;
        *head = added;
    }
    void remove_all_of(Image *image) {
        for (Entry *&head : heads)
            for (Entry **link = &head; *link;) {
                Entry *entry = *link;
                if (entry->image != image) {
                    link = &entry->next;
                    continue;
                }
                *link = entry->next;
                free(entry);
            }
    }
};

Table functions;
Table variables;
pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

struct Locked {
    Locked() { pthread_mutex_lock(&lock); }
    ~Locked() { pthread_mutex_unlock(&lock); }
};

// A child of fork runs exit handlers, which need the lock, whatever the parent's threads were doing.
void before_fork() { pthread_mutex_lock(&lock); }
void after_fork() { pthread_mutex_unlock(&lock); }
pthread_once_t fork_handled = PTHREAD_ONCE_INIT;
void handle_fork() { pthread_atfork(before_fork, after_fork, after_fork); }

int load(Image *image) {
    if (image->library)
        return cudaSuccess;
    return driver.LibraryLoadData_v12000(&image->library, image->data, nullptr, nullptr, 0, nullptr, nullptr, 0);
}

// A managed variable is reached through a pointer in the host's program, which is set once.
int place_managed(Image *image) {
    if (image->managed_ready)
        return cudaSuccess;
    for (ManagedVariable *variable = image->managed; variable; variable = variable->next) {
        CUdeviceptr pointer;
        size_t size;
        if (int status = driver.LibraryGetManaged_v12000(&pointer, &size, image->library, variable->name))
            return status;
        *variable->shadow = reinterpret_cast<void *>(pointer);
    }
    image->managed_ready = true;
    return cudaSuccess;
}

} // namespace

int find_kernel(const void *function, CUkernel *kernel) {
    Locked locked;
    Entry *entry = functions.find(function);
    if (entry == nullptr) {
        // A cudaKernel_t is the driver's handle. Only the driver can tell whether it is one.
        if (function == nullptr)
            return cudaErrorInvalidDeviceFunction;
        auto handle = reinterpret_cast<CUkernel>(const_cast<void *>(function));
        CUfunction ignored;
        if (driver.KernelGetFunction_v12000(&ignored, handle) != CUDA_SUCCESS)
            return cudaErrorInvalidDeviceFunction;
        *kernel = handle;
        return cudaSuccess;
    }
    if (entry->kernel == nullptr) {
        if (int status = load(entry->image))
            return status;
        if (int status = place_managed(entry->image))
            return status;
        int status = driver.LibraryGetKernel_v12000(&entry->kernel, entry->image->library, entry->name);
        if (status != cudaSuccess) {
            entry->kernel = nullptr;
            return status == CUDA_ERROR_NOT_FOUND ? static_cast<int>(cudaErrorInvalidDeviceFunction) : status;
        }
    }
    *kernel = entry->kernel;
    return cudaSuccess;
}

int find_function(const void *function, CUfunction *found) {
    CUkernel kernel;
    if (int status = find_kernel(function, &kernel))
        return status;
    return driver.KernelGetFunction_v12000(found, kernel);
}

int find_variable(const void *symbol, CUdeviceptr *pointer, size_t *size) {
    Locked locked;
    Entry *entry = variables.find(symbol);
    if (entry == nullptr && symbol != nullptr)
        entry = variables.find_placed(symbol);
    if (entry == nullptr)
        return cudaErrorInvalidSymbol;
    if (int status = load(entry->image))
        return status;
    size_t given = 0;
    int status = entry->managed
                     ? driver.LibraryGetManaged_v12000(pointer, &given, entry->image->library, entry->name)
                     : driver.LibraryGetGlobal_v12000(pointer, &given, entry->image->library, entry->name);
    if (status != cudaSuccess)
        return status == CUDA_ERROR_NOT_FOUND ? static_cast<int>(cudaErrorInvalidSymbol) : status;
    // The program's own size: a driver that does not read code cannot know it.
    *size = entry->size;
    return cudaSuccess;
}

static int part_of_variable(const void *symbol, size_t bytes, size_t offset, void **pointer) {
    CUdeviceptr start;
    size_t size;
    if (int status = find_variable(symbol, &start, &size))
        return status;
    if (offset > size || bytes > size - offset)
        return cudaErrorInvalidValue;
    *pointer = reinterpret_cast<void *>(start + offset);
    return cudaSuccess;
}

int copy_to_variable(const void *symbol, size_t bytes, size_t offset, cudaMemcpyKind kind, void **to) {
    if (kind != cudaMemcpyHostToDevice && kind != cudaMemcpyDeviceToDevice && kind != cudaMemcpyDefault)
        return cudaErrorInvalidMemcpyDirection;
    return part_of_variable(symbol, bytes, offset, to);
}

int copy_from_variable(const void *symbol, size_t bytes, size_t offset, cudaMemcpyKind kind, void **from) {
    if (kind != cudaMemcpyDeviceToHost && kind != cudaMemcpyDeviceToDevice && kind != cudaMemcpyDefault)
        return cudaErrorInvalidMemcpyDirection;
    return part_of_variable(symbol, bytes, offset, from);
}

} // namespace rt

using rt::Image;

RT_API void **__cudaRegisterFatBinary(void *wrapper) {
    pthread_once(&rt::fork_handled, rt::handle_fork);
    auto *image = static_cast<Image *>(calloc(1, sizeof(Image)));
    if (image == nullptr)
        abort();
    auto *fat = static_cast<const rt::FatBinaryWrapper *>(wrapper);
    image->data = fat->magic == rt::wrapper_magic ? fat->data : wrapper;
    return reinterpret_cast<void **>(image);
}

RT_API void __cudaRegisterFatBinaryEnd(void **) {}

RT_API void __cudaUnregisterFatBinary(void **handle) {
    auto *image = reinterpret_cast<Image *>(handle);
    if (image == nullptr)
        return;
    rt::Locked locked;
    rt::functions.remove_all_of(image);
    rt::variables.remove_all_of(image);
    // Late in the exit of the process the driver refuses, which is as good.
    if (image->library)
        rt::driver.LibraryUnload_v12000(image->library);
    for (rt::ManagedVariable *variable = image->managed; variable;) {
        rt::ManagedVariable *next = variable->next;
        free(variable);
        variable = next;
    }
    free(image);
}

RT_API void __cudaRegisterFunction(void **handle, const char *host_function, char *, const char *device_name, int, uint3 *,
                                   uint3 *, dim3 *, dim3 *, int *) {
    rt::Locked locked;
    rt::functions.add({host_function, device_name, reinterpret_cast<Image *>(handle), nullptr, 0, false, nullptr});
}

RT_API void __cudaRegisterVar(void **handle, char *host_variable, char *, const char *device_name, int, size_t size, int,
                              int) {
    rt::Locked locked;
    rt::variables.add({host_variable, device_name, reinterpret_cast<Image *>(handle), nullptr, size, false, nullptr});
}

RT_API void __cudaRegisterManagedVar(void **handle, void **shadow, char *, const char *device_name, int, size_t size, int,
                                     int) {
    rt::Locked locked;
    auto *image = reinterpret_cast<Image *>(handle);
    rt::variables.add({shadow, device_name, image, nullptr, size, true, nullptr});
    auto *variable = static_cast<rt::ManagedVariable *>(malloc(sizeof(rt::ManagedVariable)));
    if (variable == nullptr)
        abort();
    *variable = {shadow, device_name, image->managed};
    image->managed = variable;
}

// Host variables that device code refers to, and unified function tables, matter only to code that runs.
RT_API void __cudaRegisterHostVar(void **, const char *, char *, size_t) {}
RT_API void __cudaRegisterUnifiedTable(void **, void *) {}

// Called before the host first uses a managed variable.
RT_API char __cudaInitModule(void **handle) {
    cudaError_t status = rt::call([&] {
        rt::Locked locked;
        auto *image = reinterpret_cast<Image *>(handle);
        if (int loaded = rt::load(image))
            return loaded;
        return rt::place_managed(image);
    });
    return status == cudaSuccess;
}

RT_API cudaError_t cudaGetSymbolAddress(void **pointer, const void *symbol) {
    if (pointer == nullptr)
        return rt::report(cudaErrorInvalidValue);
    return rt::call([&] {
        size_t size;
        return rt::find_variable(symbol, rt::address_out(pointer), &size);
    });
}

RT_API cudaError_t cudaGetSymbolSize(size_t *size, const void *symbol) {
    if (size == nullptr)
        return rt::report(cudaErrorInvalidValue);
    return rt::call([&] {
        CUdeviceptr pointer;
        return rt::find_variable(symbol, &pointer, size);
    });
}

RT_API cudaError_t cudaGetFuncBySymbol(cudaFunction_t *found, const void *symbol) {
    if (found == nullptr)
        return rt::report(cudaErrorInvalidValue);
    return rt::call([&] { return rt::find_function(symbol, found); });
}

RT_API cudaError_t cudaGetKernel(cudaKernel_t *kernel, const void *host_function) {
    if (kernel == nullptr)
        return rt::report(cudaErrorInvalidValue);
    return rt::call([&] { return rt::find_kernel(host_function, reinterpret_cast<CUkernel *>(kernel)); });
}
