/* The CUDA driver as these programs see it beside luma: found at run time, as luma finds it, and declared
 * here, so that they need no CUDA headers. */
#ifndef LUMA_TESTS_DRIVER_H
#define LUMA_TESTS_DRIVER_H

#include "../check.h"

#include <dlfcn.h>

typedef void *context_t;
typedef unsigned long long address_t;

static struct {
  int (*init)(unsigned flags);
  int (*device_count)(int *count);
  int (*primary_retain)(context_t *context, int device);
  int (*primary_reset)(int device);
  int (*primary_state)(int device, unsigned *flags, int *active);
  int (*context_create)(context_t *context, unsigned flags, int device);
  int (*context_destroy)(context_t context);
  int (*set_current)(context_t context);
  int (*current)(context_t *context);
  int (*pop)(context_t *context);
  int (*alloc)(address_t *address, size_t bytes);
  int (*free)(address_t address);
  int (*memory_info)(size_t *free_bytes, size_t *total);
  int (*set)(address_t address, unsigned char value, size_t bytes);
  int (*to_host)(void *host, address_t address, size_t bytes);
} cu;

static inline void *find_driver_function(const char *name) {
  static void *library;
  if (library == NULL) {
    library = dlopen("libcuda.so.1", RTLD_NOW);
  }
  CHECK(library != NULL);
  return dlsym(library, name);
}

static inline int has_driver_function(const char *name) {
  return find_driver_function(name) != NULL;
}

static inline void *driver_function(const char *name) {
  void *found = find_driver_function(name);
  CHECK(found != NULL);
  return found;
}

/* C has no conversion between pointers to objects and to functions; POSIX promises this one. */
#define FIND(member, name) \
  do { \
    void *found = driver_function(name); \
    memcpy(&cu.member, &found, sizeof found); \
  } while (0)

#define DRIVER(call) \
  ((cu.call) == 0 ? (void)0 : check_failed(__FILE__, __LINE__, "the driver failed: " #call))

/* Finds and initialises the driver. */
static inline void start_driver(void) {
  FIND(init, "cuInit");
  FIND(device_count, "cuDeviceGetCount");
  FIND(primary_retain, "cuDevicePrimaryCtxRetain");
  FIND(primary_reset, "cuDevicePrimaryCtxReset_v2");
  FIND(primary_state, "cuDevicePrimaryCtxGetState");
  FIND(context_create, "cuCtxCreate_v2");
  FIND(context_destroy, "cuCtxDestroy_v2");
  FIND(set_current, "cuCtxSetCurrent");
  FIND(current, "cuCtxGetCurrent");
  FIND(pop, "cuCtxPopCurrent_v2");
  FIND(alloc, "cuMemAlloc_v2");
  FIND(free, "cuMemFree_v2");
  FIND(memory_info, "cuMemGetInfo_v2");
  FIND(set, "cuMemsetD8_v2");
  FIND(to_host, "cuMemcpyDtoH_v2");
  DRIVER(init(0));
}

static inline context_t current_context(void) {
  context_t context;
  DRIVER(current(&context));
  return context;
}

static inline int is_active(int device) {
  unsigned flags;
  int active;
  DRIVER(primary_state(device, &flags, &active));
  return active;
}

static inline context_t primary_context(int device) {
  context_t context;
  DRIVER(primary_retain(&context, device));
  return context;
}

/* Writes all of a block, and reads it again. Needs a current context. */
static inline void use(void *block, size_t bytes, unsigned char value) {
  unsigned char ends[2];
  address_t address = (address_t)(uintptr_t)block;
  DRIVER(set(address, value, bytes));
  DRIVER(to_host(&ends[0], address, 1));
  DRIVER(to_host(&ends[1], address + bytes - 1, 1));
  CHECK(ends[0] == value && ends[1] == value);
}

/* Whether the first and last byte of a block have a value. */
static inline int holds(const void *block, size_t bytes, unsigned char value) {
  unsigned char ends[2];
  address_t address = (address_t)(uintptr_t)block;
  DRIVER(to_host(&ends[0], address, 1));
  DRIVER(to_host(&ends[1], address + bytes - 1, 1));
  return ends[0] == value && ends[1] == value;
}

#endif
