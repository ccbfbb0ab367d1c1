/* A program that frees faster than the device works takes little more memory than it has in use: on the driver it
 * waits in cuMemFree, and elsewhere it must not run away. */
#include "program.h"

enum { ROUNDS = 600, BYTES = 1 << 20, LIVE = 4 };

int main(void) {
  CUdeviceptr blocks[LIVE] = {0};
  start();
  CUstream stream = must_stream(CU_STREAM_NON_BLOCKING);
  for (int round = 0; round < ROUNDS; round++) {
    CUdeviceptr *block = &blocks[round % LIVE];
    if (*block != 0) OK(cuMemFree(*block));
    *block = must_alloc(BYTES);
    if (round % 8 == 0) delay(stream, 1);
    OK(cuMemsetD8Async(*block, 1, BYTES, stream));
  }
  CHECK(!fakecuda_present() || fakecuda_peak(0) <= 160 * MIB);
  for (int at = 0; at < LIVE; at++) OK(cuMemFree(blocks[at]));
  return 0;
}
