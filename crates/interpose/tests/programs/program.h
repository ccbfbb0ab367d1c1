/* What these programs share: checks, a context, memory, work that comes late.
 *
 * They are programs of the CUDA driver interface, linked with libcuda, as anybody could have written them.
 * What they say holds on any driver. What only a driver holds that keeps freed memory, such as an allocator
 * in front of it, is asked for by the argument "cached". */
#ifndef PROGRAM_H
#define PROGRAM_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE 1
#endif

#include <cuda.h>
#include <fakecuda.h>

#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define KIB ((size_t)1 << 10)
#define MIB ((size_t)1 << 20)
#define COUNT_OF(array) (sizeof(array) / sizeof *(array))

/* A program that takes longer hangs, and is ended by SIGALRM. */
enum { PROGRAM_SECONDS = 60 };

/* ---- Checks --------------------------------------------------------------------------------------- */

/* Without exit handlers, which may be what is tested. */
__attribute__((format(printf, 3, 4))) _Noreturn static inline void fail(const char *file, int line,
                                                                        const char *format, ...) {
  va_list list;
  va_start(list, format);
  fprintf(stderr, "%s:%d: ", file, line);
  vfprintf(stderr, format, list);
  fputc('\n', stderr);
  va_end(list);
  fflush(NULL);
  _exit(1);
}

#define CHECK(condition) ((condition) ? (void)0 : fail(__FILE__, __LINE__, "not so: %s", #condition))

/* Two integers are equal. */
#define SAME(got, wanted)                                                                        \
  do {                                                                                           \
    unsigned long long got_ = (unsigned long long)(got), wanted_ = (unsigned long long)(wanted); \
    if (got_ != wanted_)                                                                         \
      fail(__FILE__, __LINE__, "%s is %llu (0x%llx), not %llu (0x%llx)", #got, got_, got_, wanted_, \
           wanted_);                                                                             \
  } while (0)

/* The call gives this code. */
#define GIVES(call, code)                                                                    \
  do {                                                                                       \
    CUresult code_ = (call);                                                                 \
    if (code_ != (code)) fail(__FILE__, __LINE__, "%s gives %d, not %d", #call, (int)code_, (int)(code)); \
  } while (0)

#define OK(call) GIVES(call, CUDA_SUCCESS)

/* ---- What most programs need ------------------------------------------------------------------------ */

static inline bool has_argument(int count, char **arguments, const char *wanted) {
  for (int at = 1; at < count; at++)
    if (strcmp(arguments[at], wanted) == 0) return true;
  return false;
}

/* A device's primary context, retained once more and current. */
static inline CUcontext use_device(int device) {
  CUcontext context = NULL;
  OK(cuDevicePrimaryCtxRetain(&context, device));
  OK(cuCtxSetCurrent(context));
  return context;
}

/* Initialises the driver; device 0's primary context is current. */
static inline CUcontext start(void) {
  alarm(PROGRAM_SECONDS);
  OK(cuInit(0));
  return use_device(0);
}

static inline int devices(void) {
  int count = 0;
  OK(cuDeviceGetCount(&count));
  return count;
}

static inline CUdeviceptr must_alloc(size_t bytes) {
  CUdeviceptr block = 0;
  OK(cuMemAlloc(&block, bytes));
  CHECK(block != 0);
  return block;
}

static inline CUdeviceptr must_alloc_async(size_t bytes, CUstream stream) {
  CUdeviceptr block = 0;
  OK(cuMemAllocAsync(&block, bytes, stream));
  CHECK(block != 0);
  return block;
}

static inline CUstream must_stream(unsigned int flags) {
  CUstream stream = NULL;
  OK(cuStreamCreate(&stream, flags));
  return stream;
}

static inline void fill_now(CUdeviceptr block, unsigned char value, size_t bytes) {
  OK(cuMemsetD8(block, value, bytes));
  OK(cuCtxSynchronize());
}

/* Where a block does not hold what its owner wrote: the first byte, or `bytes`. */
static inline size_t differs(CUdeviceptr block, unsigned char value, size_t bytes) {
  unsigned char *copy = malloc(bytes);
  CHECK(copy != NULL);
  memset(copy, value ^ 0xff, bytes);
  OK(cuMemcpyDtoH(copy, block, bytes));
  size_t at = 0;
  while (at < bytes && copy[at] == value) at++;
  free(copy);
  return at;
}

/* Every byte of a block is `value`. */
#define HOLDS(block, value, bytes)                                                              \
  do {                                                                                          \
    size_t at_ = differs((block), (value), (bytes));                                            \
    if (at_ != (bytes))                                                                         \
      fail(__FILE__, __LINE__, "byte %zu of %zu is not 0x%02x", at_, (size_t)(bytes), (unsigned)(value)); \
  } while (0)

static inline void sleep_ms(long milliseconds) {
  struct timespec left = {milliseconds / 1000, milliseconds % 1000 * 1000000};
  while (nanosleep(&left, &left) != 0) {
  }
}

/* ---- Work that comes late ----------------------------------------------------------------------------- */

static inline void CUDA_CB sleep_in_stream(void *milliseconds) { sleep_ms((long)(intptr_t)milliseconds); }

/* What is queued on the stream from now on begins so much later. */
static inline void delay(CUstream stream, long milliseconds) {
  OK(cuLaunchHostFunc(stream, sleep_in_stream, (void *)(intptr_t)milliseconds));
}

/* ---- Threads and processes ------------------------------------------------------------------------------ */

static inline void on_a_thread(void *(*body)(void *), void *argument) {
  pthread_t thread;
  CHECK(pthread_create(&thread, NULL, body, argument) == 0);
  CHECK(pthread_join(thread, NULL) == 0);
}

/* How a child ended: its exit status, or 128 and the signal. */
static inline int ended(pid_t child) {
  int status = 0;
  CHECK(waitpid(child, &status, 0) == child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

#endif
