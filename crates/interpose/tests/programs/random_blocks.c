/* A long run over blocks of all kinds and sizes, on several threads: each holds what its owner wrote, and nobody
 * touches device memory from the host, which the double's strict mode answers with SIGSEGV. */
#include "program.h"

enum { THREADS = 3, HELD = 40, STEPS = 1500 };

typedef struct {
  CUdeviceptr start;
  size_t bytes;
  unsigned char value;
  bool is_ordered;
} block_t;

static CUcontext contexts[8];

static unsigned int next(unsigned int *state) {
  *state = *state * 1664525u + 1013904223u;
  return *state >> 8;
}

static size_t any_size(unsigned int *seed) {
  switch (next(seed) % 8) {
    case 0: return MIB + next(seed) % (4 * MIB);
    case 1: return 64 * KIB + next(seed) % (512 * KIB);
    default: return 1 + next(seed) % 20000;
  }
}

/* Both ends, and some in the middle. */
static void look(const block_t *block, CUstream stream) {
  unsigned char seen[3][64];
  size_t part = block->bytes < 64 ? block->bytes : 64;
  CUdeviceptr places[] = {block->start, block->start + (block->bytes - part) / 2,
                          block->start + block->bytes - part};
  for (int at = 0; at < 3; at++) OK(cuMemcpyDtoHAsync(seen[at], places[at], part, stream));
  OK(cuStreamSynchronize(stream));
  for (int at = 0; at < 3; at++)
    for (size_t byte = 0; byte < part; byte++) SAME(seen[at][byte], block->value);
}

static void *live_through_it(void *argument) {
  unsigned int seed = (unsigned int)(uintptr_t)argument;
  block_t blocks[HELD] = {{0, 0, 0, false}};
  OK(cuCtxSetCurrent(contexts[seed % (unsigned int)devices()]));
  CUstream stream = must_stream(CU_STREAM_NON_BLOCKING);
  for (int step = 0; step < STEPS; step++) {
    block_t *block = &blocks[next(&seed) % HELD];
    if (block->start == 0) {
      block->bytes = any_size(&seed);
      block->value = (unsigned char)next(&seed);
      block->is_ordered = next(&seed) % 2;
      block->start = block->is_ordered ? must_alloc_async(block->bytes, stream) : must_alloc(block->bytes);
      OK(cuMemsetD8Async(block->start, block->value, block->bytes, stream));
    } else {
      look(block, stream);
      if (next(&seed) % 2) OK(cuMemsetD8Async(block->start, 0xee, block->bytes, stream));
      OK(block->is_ordered ? cuMemFreeAsync(block->start, stream) : cuMemFree(block->start));
      block->start = 0;
    }
  }
  for (int at = 0; at < HELD; at++)
    if (blocks[at].start != 0) {
      look(&blocks[at], stream);
      OK(cuMemFree(blocks[at].start));
    }
  OK(cuStreamDestroy(stream));
  return NULL;
}

int main(void) {
  pthread_t threads[THREADS];
  start();
  for (int device = devices() - 1; device >= 0; device--) contexts[device] = use_device(device);
  for (size_t at = 0; at < THREADS; at++)
    CHECK(pthread_create(&threads[at], NULL, live_through_it, (void *)(uintptr_t)(at + 1)) == 0);
  for (size_t at = 0; at < THREADS; at++) CHECK(pthread_join(threads[at], NULL) == 0);
  return 0;
}
