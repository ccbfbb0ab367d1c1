/* Synchronous and stream-ordered memory, freed by either function: three of the pairs are legal, the fourth is
 * an error that changes nothing. */
#include "program.h"

enum { BYTES = 300000 };

int main(void) {
  CUdeviceptr block, other;
  start();
  CUstream stream = must_stream(CU_STREAM_NON_BLOCKING);
  for (int round = 0; round < 4; round++) {
    /* "cuMemFree may be called on memory of cuMemAllocAsync", when nothing uses it any more. */
    block = must_alloc_async(BYTES, stream);
    OK(cuMemsetD8Async(block, 1, BYTES, stream));
    OK(cuStreamSynchronize(stream));
    HOLDS(block, 1, BYTES);
    OK(cuMemFree(block));
    GIVES(cuMemFree(block), CUDA_ERROR_INVALID_VALUE);
    GIVES(cuMemFreeAsync(block, stream), CUDA_ERROR_INVALID_VALUE);

    block = must_alloc_async(BYTES, stream);
    OK(cuMemFreeAsync(block, stream));
    GIVES(cuMemFreeAsync(block, stream), CUDA_ERROR_INVALID_VALUE);
    OK(cuStreamSynchronize(stream));
    GIVES(cuMemFree(block), CUDA_ERROR_INVALID_VALUE);

    block = must_alloc(BYTES);
    OK(cuMemFree(block));
    GIVES(cuMemFree(block), CUDA_ERROR_INVALID_VALUE);

    block = must_alloc(BYTES);
    fill_now(block, 2, BYTES);
    GIVES(cuMemFreeAsync(block, stream), CUDA_ERROR_INVALID_VALUE);
    /* The block is still its owner's. */
    other = must_alloc(BYTES);
    fill_now(other, 3, BYTES);
    HOLDS(block, 2, BYTES);
    OK(cuMemFree(other));
    OK(cuMemFree(block));
  }
  /* Neither takes what is inside of a block. */
  block = must_alloc(BYTES);
  other = must_alloc_async(BYTES, stream);
  OK(cuStreamSynchronize(stream));
  GIVES(cuMemFree(block + 512), CUDA_ERROR_INVALID_VALUE);
  GIVES(cuMemFreeAsync(block + 512, stream), CUDA_ERROR_INVALID_VALUE);
  GIVES(cuMemFree(other + 512), CUDA_ERROR_INVALID_VALUE);
  GIVES(cuMemFreeAsync(other + 512, stream), CUDA_ERROR_INVALID_VALUE);
  OK(cuMemFree(block));
  OK(cuMemFreeAsync(other, stream));
  /* NULL: nothing to the one, an error to the other. */
  OK(cuMemFree(0));
  GIVES(cuMemFreeAsync(0, stream), CUDA_ERROR_INVALID_VALUE);
  OK(cuStreamDestroy(stream));
  return 0;
}
