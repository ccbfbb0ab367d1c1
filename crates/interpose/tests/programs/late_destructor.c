/* Destructors that free device memory after the driver has shut down get CUDA_ERROR_DEINITIALIZED, without a word,
 * and the process ends as it would have. */
#include "program.h"

static CUdeviceptr live, freed, ordered;
static CUstream stream;

static void free_late(void) {
  CUdeviceptr block = 0;
  size_t bytes = 0, total = 0;
  GIVES(cuMemFree(live), CUDA_ERROR_DEINITIALIZED);
  GIVES(cuMemFreeAsync(ordered, stream), CUDA_ERROR_DEINITIALIZED);
  GIVES(cuMemAlloc(&block, 100), CUDA_ERROR_DEINITIALIZED);
  GIVES(cuMemGetInfo(&bytes, &total), CUDA_ERROR_DEINITIALIZED);
  GIVES(cuStreamDestroy(stream), CUDA_ERROR_DEINITIALIZED);
  puts("late");
  fflush(stdout);
}

/* Registered before the driver's own handler: runs after it. */
__attribute__((constructor)) static void at_exit_first(void) { CHECK(atexit(free_late) == 0); }

/* Runs while the driver still works. */
static void free_early(void) {
  OK(cuMemFree(freed));
  puts("early");
}

int main(void) {
  start();
  stream = must_stream(CU_STREAM_NON_BLOCKING);
  live = must_alloc(1000);
  freed = must_alloc(MIB);
  ordered = must_alloc_async(1000, stream);
  CHECK(atexit(free_early) == 0);
  return 3;
}
