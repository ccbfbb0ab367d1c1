/* Stream-ordered memory that is freed on one stream and allocated on another, with no event between: the
 * first stream's queued work never writes to the second one's memory. */
#include "program.h"

enum { STREAMS = 4, THREADS = 3, ROUNDS = 60, HELD = 6 };

typedef struct {
  CUdeviceptr address;
  size_t bytes;
  CUstream stream;
  unsigned char value;
} block_t;

/* Any sequence of numbers that is the same in each run. */
static unsigned int next(unsigned int *state) {
  *state = *state * 1664525u + 1013904223u;
  return *state >> 8;
}

/* The block, as its own stream sees it after its work. */
static void look(const block_t *block) {
  unsigned char *copy = malloc(block->bytes);
  CHECK(copy != NULL);
  OK(cuMemcpyDtoHAsync(copy, block->address, block->bytes, block->stream));
  OK(cuStreamSynchronize(block->stream));
  for (size_t at = 0; at < block->bytes; at++)
    if (copy[at] != block->value)
      fail(__FILE__, __LINE__, "byte %zu of %zu is 0x%02x, not 0x%02x", at, block->bytes, copy[at],
           block->value);
  free(copy);
}

/* Each round writes late on the stream that frees; a block is looked at before it is freed. */
static void exchange(CUstream *streams, size_t count, unsigned int seed) {
  block_t blocks[HELD] = {{0, 0, NULL, 0}};
  for (int round = 0; round < ROUNDS; round++) {
    block_t *block = &blocks[round % HELD];
    if (block->address != 0) {
      look(block);
      delay(block->stream, 1);
      OK(cuMemsetD8Async(block->address, 0xee, block->bytes, block->stream));
      OK(cuMemFreeAsync(block->address, block->stream));
    }
    static const size_t sizes[] = {256, 4000, 70000, MIB};
    block->bytes = sizes[next(&seed) % COUNT_OF(sizes)];
    block->stream = streams[next(&seed) % count];
    block->value = (unsigned char)next(&seed);
    block->address = must_alloc_async(block->bytes, block->stream);
    OK(cuMemsetD8Async(block->address, block->value, block->bytes, block->stream));
  }
  for (int at = 0; at < HELD; at++) {
    look(&blocks[at]);
    OK(cuMemFreeAsync(blocks[at].address, blocks[at].stream));
  }
}

static CUstream streams[STREAMS];

static void *exchange_on_a_thread(void *context) {
  OK(cuCtxSetCurrent(context));
  exchange(streams, STREAMS, (unsigned int)(uintptr_t)pthread_self());
  return NULL;
}

int main(void) {
  pthread_t threads[THREADS];
  CUcontext context = start();
  streams[0] = must_stream(CU_STREAM_NON_BLOCKING);
  streams[1] = must_stream(CU_STREAM_NON_BLOCKING);

  /* The smallest case: one block, two streams. */
  for (int round = 0; round < 20; round++) {
    block_t second = {0, 4096, streams[1], 2};
    CUdeviceptr first = must_alloc_async(4096, streams[0]);
    delay(streams[0], 1);
    OK(cuMemsetD8Async(first, 1, 4096, streams[0]));
    OK(cuMemFreeAsync(first, streams[0]));
    second.address = must_alloc_async(4096, streams[1]);
    OK(cuMemsetD8Async(second.address, second.value, 4096, streams[1]));
    OK(cuStreamSynchronize(streams[1]));
    OK(cuStreamSynchronize(streams[0]));
    look(&second);
    OK(cuMemFreeAsync(second.address, streams[1]));
  }

  streams[2] = must_stream(CU_STREAM_DEFAULT);
  streams[3] = CU_STREAM_LEGACY;
  exchange(streams, STREAMS, 1);
  for (int at = 0; at < THREADS; at++)
    CHECK(pthread_create(&threads[at], NULL, exchange_on_a_thread, context) == 0);
  for (int at = 0; at < THREADS; at++) CHECK(pthread_join(threads[at], NULL) == 0);
  for (int at = 0; at < STREAMS - 1; at++) OK(cuStreamDestroy(streams[at]));
  return 0;
}
