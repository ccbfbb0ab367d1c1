/* Every block begins at a multiple of 512, which is what textures and vector loads take; blocks do not overlap,
 * and hold all bytes that were asked for, up to the last. */
#include "program.h"

enum { BLOCKS = 200 };

typedef struct {
  CUdeviceptr start;
  size_t bytes;
} block_t;

static unsigned int next(unsigned int *state) {
  *state = *state * 1664525u + 1013904223u;
  return *state >> 8;
}

static int by_start(const void *one, const void *other) {
  CUdeviceptr a = ((const block_t *)one)->start, b = ((const block_t *)other)->start;
  return a < b ? -1 : a > b;
}

int main(void) {
  block_t blocks[BLOCKS];
  unsigned int seed = 1;
  start();
  CUstream stream = must_stream(CU_STREAM_NON_BLOCKING);
  for (int round = 0; round < 5; round++) {
    for (int at = 0; at < BLOCKS; at++) {
      /* Around powers of two, and anything. */
      size_t power = (size_t)1 << next(&seed) % 19, bytes = next(&seed) % 2 ? power + next(&seed) % 3 : 1;
      if (next(&seed) % 3 == 0) bytes = 1 + next(&seed) % 300000;
      if (at % 3 == 0)
        blocks[at].start = must_alloc(bytes);
      else if (at % 3 == 1)
        blocks[at].start = must_alloc_async(bytes, stream);
      else {
        size_t pitch = 0, rows = 1 + next(&seed) % 9, width = 1 + bytes / rows;
        static const unsigned int elements[] = {4, 8, 16};
        OK(cuMemAllocPitch(&blocks[at].start, &pitch, width, rows, elements[at % 3]));
        CHECK(pitch % 512 == 0 && pitch >= width);
        bytes = pitch * (rows - 1) + width;
      }
      blocks[at].bytes = bytes;
      SAME(blocks[at].start % 512, 0);
      OK(cuMemsetD8Async(blocks[at].start, (unsigned char)at, bytes, stream));
    }
    OK(cuStreamSynchronize(stream));
    for (int at = 0; at < BLOCKS; at++) HOLDS(blocks[at].start, (unsigned char)at, blocks[at].bytes);
    qsort(blocks, BLOCKS, sizeof *blocks, by_start);
    for (int at = 1; at < BLOCKS; at++) CHECK(blocks[at - 1].start + blocks[at - 1].bytes <= blocks[at].start);
    for (int at = 0; at < BLOCKS; at++) OK(cuMemFree(blocks[at].start));
  }
  OK(cuStreamDestroy(stream));
  return 0;
}
