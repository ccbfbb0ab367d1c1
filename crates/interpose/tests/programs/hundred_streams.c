/* Blocks of a hundred streams that were destroyed: their memory serves others, and nothing is left of them. */
#include "program.h"

enum { STREAMS = 100, ROUNDS = 5 };

/* Each round takes more than half of what is free, so that it needs the memory of the round before. */
static void use_hundred_streams(size_t bytes) {
  CUstream streams[STREAMS];
  CUdeviceptr blocks[STREAMS];
  for (int at = 0; at < STREAMS; at++) {
    streams[at] = must_stream(at % 2 == 0 ? CU_STREAM_NON_BLOCKING : CU_STREAM_DEFAULT);
    blocks[at] = must_alloc_async(bytes, streams[at]);
    OK(cuMemsetD8Async(blocks[at], (unsigned char)at, bytes, streams[at]));
  }
  for (int at = 0; at < STREAMS; at++) {
    if (at % 3 != 0) OK(cuMemFreeAsync(blocks[at], streams[at]));
    OK(cuStreamDestroy(streams[at]));
  }
  OK(cuCtxSynchronize());
  /* What was not freed before its stream went is freed on the default stream, or at once. */
  for (int at = 0; at < STREAMS; at += 3) {
    HOLDS(blocks[at], (unsigned char)at, 64);
    OK(at % 2 == 0 ? cuMemFreeAsync(blocks[at], NULL) : cuMemFree(blocks[at]));
  }
}

int main(void) {
  size_t unused = 0, total = 0;
  uint64_t events = 0;
  start();
  OK(cuMemGetInfo(&unused, &total));
  size_t bytes = unused / STREAMS * 6 / 10;
  for (int round = 0; round < ROUNDS; round++) {
    use_hundred_streams(bytes);
    /* On stream 0, in one piece and stream-ordered. */
    CUdeviceptr block = must_alloc(unused / 10 * 6);
    fill_now(block, 9, 4096);
    HOLDS(block, 9, 4096);
    OK(cuMemFree(block));
    block = must_alloc_async(unused / 10 * 6, NULL);
    OK(cuMemFreeAsync(block, NULL));
    OK(cuCtxSynchronize());
    SAME(fakecuda_live(FAKECUDA_LIVE_STREAMS), 0);
    /* Events that were made for streams are used again, or went with them. */
    if (round == 0) events = fakecuda_live(FAKECUDA_LIVE_EVENTS);
    CHECK(fakecuda_live(FAKECUDA_LIVE_EVENTS) <= events);
  }
  return 0;
}
