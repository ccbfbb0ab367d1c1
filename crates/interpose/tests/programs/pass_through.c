/* With nothing in front of the driver, or with what is there told to stay out of the way, each request is a call of
 * the driver: tools that watch them see each block and each overrun. */
#include "program.h"

enum { BLOCKS = 50 };

int main(void) {
  CUdeviceptr blocks[BLOCKS];
  static const char *const names[] = {"cuMemAlloc_v2", "cuMemFree_v2", "cuMemAllocPitch_v2", "cuMemAllocAsync",
                                      "cuMemFreeAsync", "cuMemGetInfo_v2", "cuMemGetAddressRange_v2"};
  uint64_t before[COUNT_OF(names)];
  start();
  if (!fakecuda_present()) return 0;
  for (size_t at = 0; at < COUNT_OF(names); at++) before[at] = fakecuda_calls(names[at]);
  for (int round = 0; round < 2; round++) {
    size_t pitch = 0, bytes = 0, total = 0;
    for (int at = 0; at < BLOCKS; at++) {
      CUdeviceptr base = 0;
      blocks[at] = must_alloc(1000);
      OK(cuMemGetAddressRange(&base, &bytes, blocks[at]));
      CHECK(base == blocks[at] && bytes == 1000);
      /* An overrun is one. */
      GIVES(cuMemsetD8(blocks[at], 1, 1001), CUDA_ERROR_INVALID_VALUE);
    }
    for (int at = 0; at < BLOCKS; at++) OK(cuMemFree(blocks[at]));
    for (int at = 0; at < BLOCKS; at++) OK(cuMemAllocPitch(&blocks[at], &pitch, 1000, 10, 4));
    for (int at = 0; at < BLOCKS; at++) OK(cuMemFree(blocks[at]));
    for (int at = 0; at < BLOCKS; at++) blocks[at] = must_alloc_async(1000, NULL);
    for (int at = 0; at < BLOCKS; at++) OK(cuMemFreeAsync(blocks[at], NULL));
    OK(cuCtxSynchronize());
    OK(cuMemGetInfo(&bytes, &total));
    SAME(bytes, total - fakecuda_used(0));
  }
  static const uint64_t calls[COUNT_OF(names)] = {2 * BLOCKS, 4 * BLOCKS, 2 * BLOCKS, 2 * BLOCKS,
                                                  2 * BLOCKS, 2,          2 * BLOCKS};
  for (size_t at = 0; at < COUNT_OF(names); at++) SAME(fakecuda_calls(names[at]) - before[at], calls[at]);
  SAME(fakecuda_used(0), 0);
  return 0;
}
