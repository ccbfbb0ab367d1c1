/* The handle of a destroyed stream comes back for a new one, which is in no order with the work of the old. */
#include "program.h"

enum { ROUNDS = 30, BYTES = 100000 };

int main(void) {
  int recycled = 0;
  start();
  CUstream other = must_stream(CU_STREAM_NON_BLOCKING);
  for (int round = 0; round < ROUNDS; round++) {
    CUstream first = must_stream(CU_STREAM_NON_BLOCKING);
    CUdeviceptr block = must_alloc_async(BYTES, first);
    delay(first, 1);
    OK(cuMemsetD8Async(block, 1, BYTES, first));
    if (round % 3 == 2) {
      /* Freed after its stream went, on another one, which waits for nothing: the work is the program's to
       * wait for, and the event outlives the stream. */
      CUevent event = NULL;
      OK(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
      OK(cuEventRecord(event, first));
      OK(cuStreamWaitEvent(other, event, 0));
      OK(cuEventDestroy(event));
      OK(cuStreamDestroy(first));
      OK(cuMemFreeAsync(block, other));
    } else {
      OK(cuMemFreeAsync(block, first));
      /* "The function returns at once, and the stream's resources go when its work is done." */
      OK(cuStreamDestroy(first));
    }
    CUstream second = must_stream(CU_STREAM_NON_BLOCKING);
    recycled += second == first;
    CUdeviceptr next = round % 2 == 0 ? must_alloc_async(BYTES, second) : must_alloc(BYTES);
    OK(cuMemsetD8Async(next, 2, BYTES, second));
    OK(cuStreamSynchronize(second));
    OK(cuCtxSynchronize());
    HOLDS(next, 2, BYTES);
    if (round % 2 == 0)
      OK(cuMemFreeAsync(next, second));
    else
      OK(cuMemFree(next));
    OK(cuStreamDestroy(second));
  }
  /* Else nothing was shown; the double gives the last handle again. */
  CHECK(recycled > 0 || !fakecuda_present());
  OK(cuStreamDestroy(other));
  return 0;
}
