/* The control interface of fakecuda, the CUDA driver interface over host memory.
 *
 * The functions here ask the driver that the process has loaded: this header needs no library to
 * link with. On any other driver, or on none, fakecuda_present() is 0, and the others do nothing and
 * answer 0 (FAKECUDA_ABSENT where they answer with a status), so that one program runs on a board too.
 *
 * A program finds the double if it has loaded it, by linking with libcuda or by dlopen; until then
 * fakecuda_present() is 0. All functions may be called from any thread, before cuInit, and from host
 * functions and stand-in kernels. After fork, the child has no driver and should not call them.
 *
 * Names of functions are exported names ("cuMemAlloc_v2", not "cuMemAlloc"); "*" means each. The
 * per-thread forms (_ptsz, _ptds) fail, wait and are counted together with the functions that they
 * are forms of.
 */
#ifndef FAKECUDA_H
#define FAKECUDA_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE 1
#endif

#include <dlfcn.h>
#include <stddef.h>
#include <stdint.h>

/* ---- Statuses: values of CUresult, and one of our own ------------------------------------------- */

#define FAKECUDA_OK 0
#define FAKECUDA_INVALID_VALUE 1
#define FAKECUDA_INVALID_DEVICE 101
/* This process has another driver, or none. */
#define FAKECUDA_ABSENT (-1)

/* ---- What fakecuda_live counts ------------------------------------------------------------------ */

/* All memory that a program has to give back: device, pinned and managed memory, by whatever function it
 * was allocated, registered host memory, and what was opened of other processes. */
#define FAKECUDA_LIVE_ALLOCATIONS 0u
/* cuMemAddressReserve. */
#define FAKECUDA_LIVE_RESERVATIONS 1u
/* cuMemCreate: alive until it is released and no longer mapped. */
#define FAKECUDA_LIVE_PHYSICAL 2u
/* cuMemMap. */
#define FAKECUDA_LIVE_MAPPINGS 3u
/* Streams that were created; default streams do not count. */
#define FAKECUDA_LIVE_STREAMS 4u
#define FAKECUDA_LIVE_EVENTS 5u
/* All contexts, primary ones included. */
#define FAKECUDA_LIVE_CONTEXTS 6u
/* Modules and libraries. */
#define FAKECUDA_LIVE_MODULES 7u
#define FAKECUDA_LIVE_GRAPHS 8u
#define FAKECUDA_LIVE_GRAPH_EXECS 9u
/* Pools that were created; the devices' default pools do not count. */
#define FAKECUDA_LIVE_POOLS 10u

/* ---- Stand-in kernels --------------------------------------------------------------------------- */

/* A launch, as a stand-in kernel sees it. Everything it points to ends with the call. */
typedef struct fakecuda_launch {
  /* sizeof(fakecuda_launch_t) of the library: it may be greater than this one. */
  size_t struct_size;
  /* The kernel's full name. */
  const char *name;
  unsigned int grid[3];
  unsigned int block[3];
  /* Bytes of dynamic shared memory. */
  size_t shared_bytes;
  /* The CUstream. */
  void *stream;
  /* Where the parameters are, as they were at the launch: nparams pointers. */
  void **params;
  size_t nparams;
} fakecuda_launch_t;

/* Runs once for each launch, in the stream's order, on a thread of the driver's or on one that waits
 * for the stream. It may not call the driver. Device memory is at fakecuda_host_pointer(address). */
typedef void (*fakecuda_kernel_t)(const fakecuda_launch_t *launch, void *user);

/* ---- Finding the library ------------------------------------------------------------------------ */

/* One of the library's functions; NULL without the library. */
static inline void *fakecuda_find_(const char *name) {
  /* The driver is found also where it was opened with RTLD_LOCAL; nothing is loaded here. */
  void *driver = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
  void *function = dlsym(driver != NULL ? driver : RTLD_DEFAULT, name);
  if (driver != NULL) dlclose(driver);
  return function;
}

/* Calls the library's function of the name, or answers `otherwise`. */
#ifdef __cplusplus
#define FAKECUDA_CALL_(name, otherwise, type, ...)                                  \
  type function_ = reinterpret_cast<type>(fakecuda_find_(#name));                   \
  if (function_ == nullptr) return otherwise;                                       \
  return function_ __VA_ARGS__
#else
#define FAKECUDA_CALL_(name, otherwise, type, ...)                                  \
  type function_;                                                                   \
  *(void **)&function_ = fakecuda_find_(#name);                                     \
  if (function_ == NULL) return otherwise;                                          \
  return function_ __VA_ARGS__
#endif

/* Whether this process runs on fakecuda. */
static inline int fakecuda_present(void) {
  return fakecuda_find_("fakecuda_calls") != NULL;
}

/* ---- What was called ----------------------------------------------------------------------------- */

/* How often a function was called, also where it failed; 0 for one that is not exported. */
static inline uint64_t fakecuda_calls(const char *name) {
  typedef uint64_t (*function_t)(const char *);
  FAKECUDA_CALL_(fakecuda_calls, 0, function_t, (name));
}

/* 1: the function does what it is for. 0: it is exported and answers CUDA_ERROR_NOT_SUPPORTED.
 * FAKECUDA_ABSENT: it is not exported, or another driver is loaded. */
static inline int fakecuda_supports(const char *name) {
  typedef int (*function_t)(const char *);
  FAKECUDA_CALL_(fakecuda_supports, FAKECUDA_ABSENT, function_t, (name));
}

/* ---- Failures and delays -------------------------------------------------------------------------- */

/* From now on `skip` calls of a function go on, the `count` calls after them do nothing and answer
 * `code` (UINT64_MAX: all), those after them go on again. Each call adds a wish; where several fit, the
 * oldest that is due answers. FAKECUDA_INVALID_VALUE: the name is no exported function. */
static inline int fakecuda_fail(const char *name, uint64_t skip, unsigned int code, uint64_t count) {
  typedef int (*function_t)(const char *, uint64_t, unsigned int, uint64_t);
  FAKECUDA_CALL_(fakecuda_fail, FAKECUDA_ABSENT, function_t, (name, skip, code, count));
}

/* Forgets all wishes, those of FAKECUDA_FAIL and FAKECUDA_UNSUPPORTED too. */
static inline int fakecuda_fail_clear(void) {
  typedef int (*function_t)(void);
  FAKECUDA_CALL_(fakecuda_fail_clear, FAKECUDA_ABSENT, function_t, ());
}

/* How many calls have answered what was wished for. */
static inline uint64_t fakecuda_failed(void) {
  typedef uint64_t (*function_t)(void);
  FAKECUDA_CALL_(fakecuda_failed, 0, function_t, ());
}

/* Each call of a function takes at least so many nanoseconds; 0 takes that back.
 * FAKECUDA_INVALID_VALUE: the name is no exported function. */
static inline int fakecuda_set_latency(const char *name, uint64_t nanoseconds) {
  typedef int (*function_t)(const char *, uint64_t);
  FAKECUDA_CALL_(fakecuda_set_latency, FAKECUDA_ABSENT, function_t, (name, nanoseconds));
}

/* ---- Devices, also before cuInit ------------------------------------------------------------------- */

/* How many devices there are (FAKECUDA_DEVICES). */
static inline int fakecuda_devices(void) {
  typedef int (*function_t)(void);
  FAKECUDA_CALL_(fakecuda_devices, 0, function_t, ());
}

/* What cuDeviceGetAttribute gives; FAKECUDA_ABSENT if there is no such device or attribute. */
static inline int fakecuda_device_attribute(int device, unsigned int attribute) {
  typedef int (*function_t)(int, unsigned int);
  FAKECUDA_CALL_(fakecuda_device_attribute, FAKECUDA_ABSENT, function_t, (device, attribute));
}

/* What cuDeviceGetName gives; NULL for a device that does not exist. The string is the library's. */
static inline const char *fakecuda_device_name(int device) {
  typedef const char *(*function_t)(int);
  FAKECUDA_CALL_(fakecuda_device_name, NULL, function_t, (device));
}

/* Writes the 16 bytes that cuDeviceGetUuid gives. */
static inline int fakecuda_device_uuid(int device, unsigned char *uuid) {
  typedef int (*function_t)(int, unsigned char *);
  FAKECUDA_CALL_(fakecuda_device_uuid, FAKECUDA_ABSENT, function_t, (device, uuid));
}

/* ---- Memory --------------------------------------------------------------------------------------- */

/* Bytes of memory that a device has; 0 for a device that does not exist. */
static inline uint64_t fakecuda_capacity(int device) {
  typedef uint64_t (*function_t)(int);
  FAKECUDA_CALL_(fakecuda_capacity, 0, function_t, (device));
}

/* Sets them. Below what is used, nothing more can be allocated.
 * FAKECUDA_INVALID_DEVICE: there is no such device. */
static inline int fakecuda_set_capacity(int device, uint64_t bytes) {
  typedef int (*function_t)(int, uint64_t);
  FAKECUDA_CALL_(fakecuda_set_capacity, FAKECUDA_ABSENT, function_t, (device, bytes));
}

/* Bytes of a device's memory that are in use: allocations as rounded, physical memory, what pools
 * keep, graphs' memory. 0 for a device that does not exist. */
static inline uint64_t fakecuda_used(int device) {
  typedef uint64_t (*function_t)(int);
  FAKECUDA_CALL_(fakecuda_used, 0, function_t, (device));
}

/* The most that were in use at once. */
static inline uint64_t fakecuda_peak(int device) {
  typedef uint64_t (*function_t)(int);
  FAKECUDA_CALL_(fakecuda_peak, 0, function_t, (device));
}

/* Where the host finds the bytes behind a device address (CUdeviceptr): there also in the strict mode,
 * in which the address itself may not be touched. NULL: it is not an address of the double's. */
static inline void *fakecuda_host_pointer(unsigned long long address) {
  typedef void *(*function_t)(unsigned long long);
  FAKECUDA_CALL_(fakecuda_host_pointer, NULL, function_t, (address));
}

/* How many things of a kind (FAKECUDA_LIVE_*) there are; 0 for a kind that does not exist. */
static inline uint64_t fakecuda_live(unsigned int kind) {
  typedef uint64_t (*function_t)(unsigned int);
  FAKECUDA_CALL_(fakecuda_live, 0, function_t, (kind));
}

/* ---- Kernels -------------------------------------------------------------------------------------- */

/* Runs `function` for each launch of a kernel from now on; NULL takes it back. The name is the kernel's
 * full (mangled) name, or the plain name in it: "fill" also means _Z4fillPii. `sizes` are the bytes of
 * its parameters, in order; it is copied. With 0 of them the kernel's image says what they are.
 * FAKECUDA_INVALID_VALUE: no name, parameters without sizes, or more bytes than a kernel takes (32764). */
static inline int fakecuda_register_kernel(const char *name, fakecuda_kernel_t function, void *user,
                                           size_t nparams, const size_t *sizes) {
  typedef int (*function_t)(const char *, fakecuda_kernel_t, void *, size_t, const size_t *);
  FAKECUDA_CALL_(fakecuda_register_kernel, FAKECUDA_ABSENT, function_t,
                 (name, function, user, nparams, sizes));
}

/* How many kernels have run, with a stand-in or without; each launch of a graph runs its own again. */
static inline uint64_t fakecuda_launches(void) {
  typedef uint64_t (*function_t)(void);
  FAKECUDA_CALL_(fakecuda_launches, 0, function_t, ());
}

#endif
