/* A driver that has only the functions below, or only some of them: each is handed on to the driver whose
 * path is in OLD_DRIVER_OF. Built as libcuda.so.1; WITHOUT_* leaves functions out. */
#define _GNU_SOURCE 1
#include <dlfcn.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

typedef unsigned long long address_t;

static void *function(const char *name) {
  static void *library;
  void *found;
  if (library == NULL) {
    library = dlopen(getenv("OLD_DRIVER_OF"), RTLD_NOW);
  }
  found = library == NULL ? NULL : dlsym(library, name);
  if (found == NULL) {
    abort();
  }
  return found;
}

#define HAND_ON(name, parameters, arguments) \
  int name parameters; \
  int name parameters { \
    int(*real) parameters; \
    void *found = function(#name); \
    memcpy(&real, &found, sizeof found); \
    return real arguments; \
  }

#ifdef FORKS
/* As the driver does that has to run nvidia-modprobe: it forks inside the call. */
#define FORKING(name, parameters, arguments) \
  int name parameters; \
  int name parameters { \
    int(*real) parameters; \
    void *found = function(#name); \
    pid_t child = fork(); \
    if (child == 0) { \
      _exit(0); \
    } \
    (void)waitpid(child, NULL, 0); \
    memcpy(&real, &found, sizeof found); \
    return real arguments; \
  }
#else
#define FORKING HAND_ON
#endif

#ifndef WITHOUT_INIT
FORKING(cuInit, (unsigned flags), (flags))
#endif
HAND_ON(cuDeviceGetCount, (int *count), (count))
HAND_ON(cuDeviceGet, (int *device, int ordinal), (device, ordinal))
HAND_ON(cuDeviceGetAttribute, (int *value, int attribute, int device), (value, attribute, device))
FORKING(cuDevicePrimaryCtxRetain, (void **context, int device), (context, device))
HAND_ON(cuDevicePrimaryCtxRelease, (int device), (device))
HAND_ON(cuDevicePrimaryCtxReset, (int device), (device))
HAND_ON(cuCtxGetCurrent, (void **context), (context))
HAND_ON(cuCtxSetCurrent, (void *context), (context))
#ifndef WITHOUT_CONTEXTS
HAND_ON(cuCtxPushCurrent_v2, (void *context), (context))
#endif
HAND_ON(cuCtxPopCurrent_v2, (void **context), (context))
HAND_ON(cuCtxGetDevice, (int *device), (device))
HAND_ON(cuMemAlloc_v2, (address_t *address, size_t bytes), (address, bytes))
HAND_ON(cuMemFree_v2, (address_t address), (address))
#ifndef WITHOUT_MEMORY_INFO
FORKING(cuMemGetInfo_v2, (size_t *free_bytes, size_t *total), (free_bytes, total))
#endif
#ifdef WITH_ERROR_TEXTS
HAND_ON(cuGetErrorName, (int code, const char **name), (code, name))
HAND_ON(cuGetErrorString, (int code, const char **text), (code, text))
#endif
