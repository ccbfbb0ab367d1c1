/* The driver's cuMemFree returns when the device has done what was queued, on all streams: the host may then read
 * what the device wrote to its memory, and free it. */
#include "program.h"

enum { BYTES = 1 << 20 };

int main(void) {
  CUcontext primary = start(), further = NULL;
  void *pinned = NULL;
  OK(cuMemHostAlloc(&pinned, BYTES, CU_MEMHOSTALLOC_PORTABLE));
  CUdeviceptr source = must_alloc(BYTES);
  CUstream streams[] = {must_stream(CU_STREAM_NON_BLOCKING), must_stream(CU_STREAM_DEFAULT), NULL};
  OK(cuCtxCreate(&further, NULL, 0, 0));
  streams[2] = must_stream(CU_STREAM_NON_BLOCKING);
  OK(cuCtxSetCurrent(primary));
  for (int round = 0; round < 12; round++) {
    /* The block that is freed is no part of the work. */
    CUdeviceptr block = must_alloc(BYTES);
    CUstream stream = streams[round % 3];
    unsigned char value = (unsigned char)(round + 1);
    CUevent event = NULL;
    OK(cuMemsetD8(source, value, BYTES));
    OK(cuCtxSynchronize());
    memset(pinned, 0, BYTES);
    OK(cuCtxSetCurrent(round % 3 == 2 ? further : primary));
    OK(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
    delay(stream, 2);
    OK(cuMemcpyDtoHAsync(pinned, source, BYTES, stream));
    OK(cuEventRecord(event, stream));
    OK(cuCtxSetCurrent(primary));
    OK(cuMemFree(block));
    for (size_t at = 0; at < BYTES; at++) SAME(((volatile unsigned char *)pinned)[at], value);
    OK(cuEventQuery(event));
    OK(cuEventDestroy(event));
  }
  OK(cuMemFreeHost(pinned));
  OK(cuMemFree(source));
  return 0;
}
