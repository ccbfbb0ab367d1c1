/* Uses the CUDA driver as a program does that was built without its header, and ends in the way that is asked
   for. */
#include <dlfcn.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef int (*init_function)(unsigned);
typedef int (*device_function)(int *, int);
typedef int (*total_function)(size_t *, int);
typedef int (*retain_function)(void **, int);
typedef int (*current_function)(void *);
typedef int (*alloc_function)(unsigned long long *, size_t);
typedef int (*free_function)(unsigned long long);

static void *driver;

static void *function(const char *name) {
    void *found = dlsym(driver, name);
    if (found == NULL) {
        fprintf(stderr, "%s\n", dlerror());
        exit(31);
    }
    return found;
}

int main(int count, char **arguments) {
    const char *how = count > 1 ? arguments[1] : "";
    driver = dlopen("libcuda.so.1", RTLD_NOW);
    if (driver == NULL) {
        puts("no driver");
        return 30;
    }
    if (strcmp(how, "load") == 0)
        return 0;
    init_function init = (init_function)function("cuInit");
    device_function device_get = (device_function)function("cuDeviceGet");
    total_function total_memory = (total_function)function("cuDeviceTotalMem_v2");
    retain_function retain = (retain_function)function("cuDevicePrimaryCtxRetain");
    current_function set_current = (current_function)function("cuCtxSetCurrent");
    alloc_function allocate = (alloc_function)function("cuMemAlloc_v2");
    free_function release = (free_function)function("cuMemFree_v2");

    int device = 0;
    size_t total = 0;
    void *context = NULL;
    if (init(0) != 0 || device_get(&device, 0) != 0 || total_memory(&total, device) != 0)
        return 32;
    printf("%zu\n", total);
    fflush(stdout);
    if (strcmp(how, "look") == 0)
        return 0;
    if (retain(&context, device) != 0 || set_current(context) != 0)
        return 33;
    for (int i = 0; i < 100; i++) {
        unsigned long long address = 0;
        if (allocate(&address, 1 << 20) != 0 || address == 0 || release(address) != 0)
            return 34;
    }
    if (strcmp(how, "kill") == 0)
        raise(SIGKILL);
    if (strcmp(how, "exec") == 0)
        execlp("true", "true", (char *)NULL);
    if (strcmp(how, "again") == 0)
        execl(arguments[0], arguments[0], (char *)NULL);
    return 0;
}
