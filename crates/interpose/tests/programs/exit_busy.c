/* The process ends while other threads are in the middle of allocating and freeing: they get the driver's codes, and
 * nothing hangs or crashes. */
#include "program.h"

enum { THREADS = 4 };

static CUcontext context;

/* The driver has begun to shut down, or has done so. */
static bool is_over(CUresult code) {
  return code == CUDA_ERROR_DEINITIALIZED || code == CUDA_ERROR_CONTEXT_IS_DESTROYED ||
         code == CUDA_ERROR_INVALID_CONTEXT;
}

static void *allocate_for_ever(void *argument) {
  size_t bytes = (size_t)(uintptr_t)argument;
  CUstream stream = NULL;
  OK(cuCtxSetCurrent(context));
  OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  for (;;) {
    CUdeviceptr block = 0, ordered = 0;
    CUresult code = cuMemAlloc(&block, bytes);
    if (code == CUDA_SUCCESS) code = cuMemAllocAsync(&ordered, bytes, stream);
    if (code == CUDA_SUCCESS) code = cuMemsetD8Async(ordered, 1, bytes, stream);
    if (code == CUDA_SUCCESS) code = cuMemFreeAsync(ordered, stream);
    if (code == CUDA_SUCCESS) code = cuMemFree(block);
    if (is_over(code)) return NULL;
    OK(code);
  }
}

int main(void) {
  pthread_t threads[THREADS];
  context = start();
  for (size_t at = 0; at < THREADS; at++)
    CHECK(pthread_create(&threads[at], NULL, allocate_for_ever, (void *)(uintptr_t)(at * MIB + 1000)) == 0);
  sleep_ms(30);
  return 3;
}
