/* What cuMemGetInfo says: never more free than there is, freed memory is free, and what is free can be had.
 *
 * Argument "limit BYTES": the program may have so much of the device, and sees a device of that size. */
#include "program.h"

static size_t unused(void) {
  size_t free_bytes = 0, total = 0;
  OK(cuMemGetInfo(&free_bytes, &total));
  CHECK(total > 0 && free_bytes <= total);
  return free_bytes;
}

static size_t total(void) {
  size_t free_bytes = 0, bytes = 0;
  OK(cuMemGetInfo(&free_bytes, &bytes));
  return bytes;
}

/* The usual way to take a share of a device. */
static void take_nine_tenths(void) {
  size_t bytes = unused() / 10 * 9;
  CUdeviceptr block = must_alloc(bytes);
  fill_now(block + bytes - 64, 1, 64);
  CHECK(unused() < bytes);
  OK(cuMemFree(block));
}

/* Capacity below what is used, as when another process took memory: no error, and nothing is free. */
static void lower_the_capacity(void) {
  CUdeviceptr block = must_alloc(64 * MIB), more = 0;
  uint64_t capacity = fakecuda_capacity(0);
  OK(cuMemFree(must_alloc(32 * MIB)));
  CHECK(fakecuda_set_capacity(0, 48 * MIB) == FAKECUDA_OK);
  CHECK(unused() <= 48 * MIB);
  /* Nobody has to have so much, but for what was the program's before. */
  CUresult code = cuMemAlloc(&more, 80 * MIB);
  CHECK(code == CUDA_ERROR_OUT_OF_MEMORY || code == CUDA_SUCCESS);
  if (code == CUDA_SUCCESS) OK(cuMemFree(more));
  CHECK(unused() <= 48 * MIB);
  CHECK(fakecuda_set_capacity(0, capacity) == FAKECUDA_OK);
  OK(cuMemFree(block));
  CHECK(unused() > capacity / 10 * 9);
}

/* Each context of a device says the same of it, wherever the memory was freed. */
static void ask_in_another_context(void) {
  CUcontext before = NULL, further = NULL;
  OK(cuCtxGetCurrent(&before));
  OK(cuMemFree(must_alloc(100 * MIB)));
  size_t here = unused();
  OK(cuCtxCreate(&further, NULL, 0, 0));
  size_t there = unused();
  CHECK(there + 20 * MIB > here && here + 20 * MIB > there);
  OK(cuMemFree(must_alloc(80 * MIB)));
  OK(cuCtxSetCurrent(before));
  CHECK(unused() + 20 * MIB > here);
  OK(cuCtxDestroy(further));
}

int main(int count, char **arguments) {
  start();
  size_t limit = count > 2 && has_argument(count, arguments, "limit") ? strtoull(arguments[2], NULL, 10) : 0;
  size_t before = unused(), all = total();
  if (limit != 0) {
    SAME(all, limit);
    CHECK(before <= limit);
    CUdeviceptr block = 0;
    GIVES(cuMemAlloc(&block, limit + 1), CUDA_ERROR_OUT_OF_MEMORY);
    block = must_alloc(limit / 2);
    CUdeviceptr more = 0;
    size_t pitch = 0;
    GIVES(cuMemAlloc(&more, limit / 2 + 1), CUDA_ERROR_OUT_OF_MEMORY);
    GIVES(cuMemAllocAsync(&more, limit / 2 + 1, NULL), CUDA_ERROR_OUT_OF_MEMORY);
    GIVES(cuMemAllocPitch(&more, &pitch, limit / 512, 257, 16), CUDA_ERROR_OUT_OF_MEMORY);
    CHECK(unused() <= limit / 2);
    OK(cuMemFree(block));
    CHECK(unused() > limit / 10 * 9);
  }
  for (int round = 0; round < 3 && limit == 0; round++) {
    CUdeviceptr blocks[10];
    for (size_t at = 0; at < COUNT_OF(blocks); at++) blocks[at] = must_alloc(10 * MIB);
    /* Others may use a board meanwhile, so what is asked is less than the blocks' size. */
    CHECK(unused() + 80 * MIB < before);
    for (size_t at = 0; at < COUNT_OF(blocks); at++) OK(cuMemFree(blocks[at]));
    CHECK(unused() + 20 * MIB > before);
    SAME(total(), all);
    CUstream stream = must_stream(CU_STREAM_NON_BLOCKING);
    CUdeviceptr ordered = must_alloc_async(100 * MIB, stream);
    CHECK(unused() + 80 * MIB < before);
    OK(cuMemFreeAsync(ordered, stream));
    OK(cuCtxSynchronize());
    CHECK(unused() + 20 * MIB > before);
    OK(cuStreamDestroy(stream));
    take_nine_tenths();
  }
  if (limit == 0) ask_in_another_context();
  if (limit == 0 && fakecuda_present()) lower_the_capacity();
  return 0;
}
