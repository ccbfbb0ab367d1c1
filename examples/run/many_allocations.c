/* A CUDA program that knows nothing of luma: steps of work, each of which allocates its buffers and frees them, as
   programs do that were written without a thought of what an allocation costs. It asks the driver itself, declares
   what it uses of it, and so needs neither cuda.h nor a CUDA toolkit:

       cc -O2 -o many_allocations examples/run/many_allocations.c -ldl
       luma run -- ./many_allocations            on a machine with a GPU
       luma run --fake -- ./many_allocations     on any machine

   One argument is the number of steps. */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

typedef unsigned long long address_t;

/* The driver's functions, by the names under which it exports them. */
static int (*cuInit)(unsigned);
static int (*cuDeviceGet)(int *, int);
static int (*cuDevicePrimaryCtxRetain)(void **, int);
static int (*cuDevicePrimaryCtxRelease)(int);
static int (*cuCtxSetCurrent)(void *);
static int (*cuCtxSynchronize)(void);
static int (*cuMemAlloc)(address_t *, size_t);
static int (*cuMemFree)(address_t);
static int (*cuMemcpyHtoD)(address_t, const void *, size_t);
static int (*cuMemcpyDtoH)(void *, address_t, size_t);

static void check(int code, const char *call) {
    if (code != 0) {
        fprintf(stderr, "%s: CUDA error %d\n", call, code);
        exit(1);
    }
}
#define CHECK(call) check(call, #call)

static void load(void) {
    const struct {
        void *function;
        const char *name;
    } functions[] = {
        {&cuInit, "cuInit"},
        {&cuDeviceGet, "cuDeviceGet"},
        {&cuDevicePrimaryCtxRetain, "cuDevicePrimaryCtxRetain"},
        {&cuDevicePrimaryCtxRelease, "cuDevicePrimaryCtxRelease_v2"},
        {&cuCtxSetCurrent, "cuCtxSetCurrent"},
        {&cuCtxSynchronize, "cuCtxSynchronize"},
        {&cuMemAlloc, "cuMemAlloc_v2"},
        {&cuMemFree, "cuMemFree_v2"},
        {&cuMemcpyHtoD, "cuMemcpyHtoD_v2"},
        {&cuMemcpyDtoH, "cuMemcpyDtoH_v2"},
    };
    void *driver = dlopen("libcuda.so.1", RTLD_NOW);
    for (size_t i = 0; i < sizeof functions / sizeof functions[0]; i++) {
        void *found = driver != NULL ? dlsym(driver, functions[i].name) : NULL;
        if (found == NULL) {
            fprintf(stderr, "%s\n", dlerror());
            exit(1);
        }
        *(void **)functions[i].function = found;
    }
}

/* The same numbers in each run. */
static uint32_t next(void) {
    static uint64_t state = 1;
    state = state * 6364136223846793005U + 1442695040888963407U;
    return (uint32_t)(state >> 33);
}

/* What a step works on: the results of its layers, which live until it ends, and scratch memory for each layer. */
enum { LAYERS = 12 };

static size_t step(void) {
    address_t results[LAYERS];
    size_t allocations = 0;
    for (int layer = 0; layer < LAYERS; layer++) {
        size_t bytes = ((size_t)(next() % 64) + 1) * 64 * 1024, scratch_bytes = ((size_t)(next() % 16) + 1) * 256 * 1024;
        address_t scratch;
        CHECK(cuMemAlloc(&results[layer], bytes));
        CHECK(cuMemAlloc(&scratch, scratch_bytes));
        allocations += 2;

        /* The work itself would be kernels. What is written must be what is read. */
        uint32_t wrote = next(), read = 0;
        CHECK(cuMemcpyHtoD(results[layer] + bytes - sizeof wrote, &wrote, sizeof wrote));
        CHECK(cuMemcpyDtoH(&read, results[layer] + bytes - sizeof wrote, sizeof wrote));
        if (read != wrote) {
            fprintf(stderr, "%u was written, and %u read\n", wrote, read);
            exit(1);
        }
        CHECK(cuMemFree(scratch));
    }
    for (int layer = LAYERS - 1; layer >= 0; layer--)
        CHECK(cuMemFree(results[layer]));
    return allocations;
}

int main(int count, char **arguments) {
    int steps = count > 1 ? atoi(arguments[1]) : 200;
    int device;
    void *context;
    load();
    CHECK(cuInit(0));
    CHECK(cuDeviceGet(&device, 0));
    CHECK(cuDevicePrimaryCtxRetain(&context, device));
    CHECK(cuCtxSetCurrent(context));

    struct timespec begin, end;
    size_t allocations = 0;
    clock_gettime(CLOCK_MONOTONIC, &begin);
    for (int i = 0; i < steps; i++)
        allocations += step();
    CHECK(cuCtxSynchronize());
    clock_gettime(CLOCK_MONOTONIC, &end);
    double seconds = (double)(end.tv_sec - begin.tv_sec) + (double)(end.tv_nsec - begin.tv_nsec) / 1e9;
    printf("%d steps, %zu allocations, %.3f s\n", steps, allocations, seconds);
    CHECK(cuDevicePrimaryCtxRelease(device));
    return 0;
}
