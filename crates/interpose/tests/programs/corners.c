// What a program may do at the edges of contexts, streams, captures and memory, and what it has to find then.
#include "check.h"
#include "fakecuda.h"

#include <pthread.h>
#include <stdint.h>
#include <unistd.h>

typedef unsigned long long address;
typedef void *handle;

int cuInit(unsigned flags);
int cuDevicePrimaryCtxRetain(handle *context, int device);
int cuDevicePrimaryCtxRelease_v2(int device);
int cuCtxCreate_v2(handle *context, unsigned flags, int device);
int cuCtxDestroy_v2(handle context);
int cuCtxSetCurrent(handle context);
int cuCtxSynchronize(void);
int cuStreamCreate(handle *stream, unsigned flags);
int cuStreamDestroy_v2(handle stream);
int cuStreamSynchronize(handle stream);
int cuStreamBeginCapture_v2(handle stream, int mode);
int cuLaunchHostFunc(handle stream, void (*function)(void *), void *data);
int cuMemAlloc_v2(address *block, size_t bytes);
int cuMemAllocPitch_v2(address *block, size_t *pitch, size_t width, size_t height, unsigned element);
int cuMemFree_v2(address block);
int cuMemAllocAsync(address *block, size_t bytes, handle stream);
int cuMemAllocFromPoolAsync(address *block, size_t bytes, handle pool, handle stream);
int cuMemFreeAsync(address block, handle stream);
int cuDeviceGetDefaultMemPool(handle *pool, int device);
int cuMemsetD8_v2(address block, unsigned char value, size_t bytes);
int cuMemsetD8Async(address block, unsigned char value, size_t bytes, handle stream);
int cuMemcpyDtoH_v2(void *to, address from, size_t bytes);
int cuPointerGetAttribute(void *value, int attribute, address block);

#define OK(call) CHECK((call) == 0)
#define MIB ((size_t)1 << 20)

enum { NON_BLOCKING = 1, RELAXED = 2, DEVICE_ORDINAL = 9, NOT_IN_CONTEXT = 201, FAILED = 700 };

static handle primary(int device) {
  handle context;
  OK(cuDevicePrimaryCtxRetain(&context, device));
  OK(cuCtxSetCurrent(context));
  return context;
}

static handle stream_of(unsigned flags) {
  handle stream;
  OK(cuStreamCreate(&stream, flags));
  return stream;
}

static address allocated(size_t bytes) {
  address block;
  OK(cuMemAlloc_v2(&block, bytes));
  return block;
}

static void has(address block, size_t bytes, unsigned char value) {
  unsigned char *host = malloc(bytes);
  CHECK(host);
  OK(cuMemcpyDtoH_v2(host, block, bytes));
  for (size_t i = 0; i < bytes; i++) CHECK(host[i] == value);
  free(host);
}

// What the pool of one context keeps serves another context.
static void cache_of_another_context(void) {
  handle one, other;
  OK(cuCtxCreate_v2(&one, 0, 0));
  OK(cuMemFree_v2(allocated(40 * MIB)));
  OK(cuCtxCreate_v2(&other, 0, 0));
  OK(cuMemFree_v2(allocated(40 * MIB)));
  OK(cuCtxSetCurrent(one));
  address rows;
  size_t pitch;
  OK(cuMemAllocPitch_v2(&rows, &pitch, MIB, 40, 4));
  OK(cuMemFree_v2(rows));
}

static void *use_contexts(void *data) {
  (void)data;
  for (int i = 0; i < 200; i++) {
    handle context;
    address blocks[4];
    OK(cuCtxCreate_v2(&context, 0, 0));
    for (int k = 0; k < 4; k++) {
      blocks[k] = allocated(1 << 16);
      OK(cuMemsetD8_v2(blocks[k], (unsigned char)k, 1 << 16));
    }
    for (int k = 0; k < 4; k++) OK(cuMemFree_v2(blocks[k]));
    OK(cuCtxSynchronize());
    OK(cuCtxDestroy_v2(context));
  }
  return NULL;
}

// Handles of contexts come again in other threads at once.
static void contexts_of_threads(void) {
  pthread_t threads[4];
  for (int i = 0; i < 4; i++) CHECK(pthread_create(&threads[i], NULL, use_contexts, NULL) == 0);
  for (int i = 0; i < 4; i++) CHECK(pthread_join(threads[i], NULL) == 0);
}

static void *release_slowly(void *data) {
  (void)data;
  OK(cuDevicePrimaryCtxRelease_v2(0));
  return NULL;
}

// A thread makes the primary context anew while luma asks what became of it.
static void primary_made_anew(void) {
  primary(0);
  OK(cuMemFree_v2(allocated(MIB)));
  OK(cuCtxSynchronize());
  OK(cuCtxSetCurrent(NULL));
  fakecuda_set_latency("cuDevicePrimaryCtxGetState", 300000000);
  pthread_t thread;
  CHECK(pthread_create(&thread, NULL, release_slowly, NULL) == 0);
  usleep(100000);
  primary(0);
  address block = allocated(MIB);
  OK(cuMemsetD8_v2(block, 1, MIB));
  CHECK(pthread_join(thread, NULL) == 0);
  has(block, MIB, 1);
  OK(cuMemFree_v2(block));
}

// A block that work of another context's default stream uses is freed on that stream.
static void default_stream_of_another_context(void) {
  handle one = primary(0), other;
  OK(cuCtxCreate_v2(&other, 0, 0));
  for (int round = 0; round < 20; round++) {
    address first, second;
    OK(cuCtxSetCurrent(one));
    OK(cuMemAllocAsync(&first, MIB, NULL));
    OK(cuStreamSynchronize(NULL));
    OK(cuCtxSetCurrent(other));
    OK(cuMemsetD8Async(first, 0xaa, MIB, NULL));
    OK(cuMemFreeAsync(first, NULL));
    OK(cuCtxSetCurrent(one));
    OK(cuMemAllocAsync(&second, MIB, NULL));
    OK(cuMemsetD8Async(second, 0x55, MIB, NULL));
    OK(cuStreamSynchronize(NULL));
    OK(cuCtxSetCurrent(other));
    OK(cuStreamSynchronize(NULL));
    OK(cuCtxSetCurrent(one));
    has(second, MIB, 0x55);
    OK(cuMemFreeAsync(second, NULL));
  }
  // Without a context there is no default stream.
  address block;
  OK(cuMemAllocAsync(&block, MIB, NULL));
  for (int depth = 0; depth < 2; depth++) OK(cuCtxSetCurrent(NULL));
  CHECK(cuMemFreeAsync(block, NULL) == NOT_IN_CONTEXT);
  OK(cuCtxSetCurrent(one));
  OK(cuMemFreeAsync(block, NULL));
}

// On a driver that does not number streams, one comes under the handle of another one that has work.
static void handle_of_a_destroyed_stream(void) {
  primary(0);
  stream_of(NON_BLOCKING);
  for (int round = 0; round < 20; round++) {
    address first, second;
    handle old = stream_of(NON_BLOCKING);
    OK(cuMemAllocAsync(&first, MIB, old));
    OK(cuMemsetD8Async(first, 0xaa, MIB, old));
    OK(cuMemFreeAsync(first, old));
    OK(cuStreamDestroy_v2(old));
    handle stream = stream_of(NON_BLOCKING);
    CHECK(stream == old);
    OK(cuMemAllocAsync(&second, MIB, stream));
    OK(cuMemsetD8Async(second, 0x55, MIB, stream));
    OK(cuStreamSynchronize(stream));
    OK(cuCtxSynchronize());
    has(second, MIB, 0x55);
    OK(cuMemFreeAsync(second, stream));
    OK(cuStreamDestroy_v2(stream));
    OK(cuCtxSynchronize());
  }
}

static void nap(void *data) {
  (void)data;
  sleep(1);
}

// Work that takes longer than requests wait otherwise uses what is freed.
static void long_work(void) {
  primary(0);
  handle stream = stream_of(NON_BLOCKING);
  address block = allocated(40 * MIB);
  OK(cuLaunchHostFunc(stream, nap, NULL));
  OK(cuMemsetD8Async(block, 1, MIB, stream));
  OK(cuMemFree_v2(block));
  OK(cuMemFree_v2(allocated(41 * MIB)));
}

// A context ends while a stream of it is captured: what is freed afterwards is used again.
static void context_with_a_capture(void) {
  handle one = primary(0), other;
  OK(cuCtxCreate_v2(&other, 0, 0));
  OK(cuStreamBeginCapture_v2(stream_of(NON_BLOCKING), RELAXED));
  OK(cuCtxDestroy_v2(other));
  OK(cuCtxSetCurrent(one));
  for (int i = 0; i < 8; i++) OK(cuMemFree_v2(allocated(64 * MIB)));
  CHECK(fakecuda_used(0) <= 128 * MIB);
}

// A pool's memory is of its device, whatever device the stream is of.
static void pool_of_another_device(void) {
  handle streams[2], contexts[2], pool;
  address block;
  for (int device = 0; device < 2; device++) {
    contexts[device] = primary(device);
    streams[device] = stream_of(NON_BLOCKING);
    OK(cuMemAllocAsync(&block, MIB, streams[device]));
    OK(cuMemFreeAsync(block, streams[device]));
  }
  OK(cuCtxSetCurrent(contexts[0]));
  OK(cuDeviceGetDefaultMemPool(&pool, 0));
  for (int device = 0; device < 2; device++) {
    int ordinal = -1;
    OK(cuMemAllocFromPoolAsync(&block, MIB, pool, streams[device]));
    OK(cuPointerGetAttribute(&ordinal, DEVICE_ORDINAL, block));
    CHECK(ordinal == 0);
    OK(cuMemFreeAsync(block, streams[device]));
  }
}

// Of a context whose work has failed for good nothing runs any more that could use what was freed.
static void failed_work(void) {
  primary(0);
  OK(cuMemFree_v2(allocated(40 * MIB)));
  const char *names[] = {"cuCtxRecordEvent", "cuCtxSynchronize", "cuEventQuery", "cuStreamSynchronize"};
  for (int i = 0; i < 4; i++) fakecuda_fail(names[i], 0, FAILED, UINT64_MAX);
  OK(cuMemFree_v2(allocated(41 * MIB)));
}

// A large segment that is kept is not spent on a small block.
static void segments_of_their_own(void) {
  primary(0);
  OK(cuMemFree_v2(allocated(40 * MIB)));
  address small = allocated(2 * MIB);
  OK(cuMemFree_v2(allocated(40 * MIB)));
  OK(cuMemFree_v2(small));
  handle stream = stream_of(NON_BLOCKING);
  address block;
  OK(cuMemAllocAsync(&block, 40 * MIB, stream));
  OK(cuMemFreeAsync(block, stream));
}

int main(int count, char **arguments) {
  static const struct test_case cases[] = {
      {"cache_of_another_context", cache_of_another_context},
      {"contexts_of_threads", contexts_of_threads},
      {"primary_made_anew", primary_made_anew},
      {"default_stream_of_another_context", default_stream_of_another_context},
      {"handle_of_a_destroyed_stream", handle_of_a_destroyed_stream},
      {"long_work", long_work},
      {"context_with_a_capture", context_with_a_capture},
      {"pool_of_another_device", pool_of_another_device},
      {"failed_work", failed_work},
      {"segments_of_their_own", segments_of_their_own},
      {NULL, NULL},
  };
  OK(cuInit(0));
  return run_case(count, arguments, cases);
}
