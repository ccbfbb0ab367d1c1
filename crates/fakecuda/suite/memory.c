/* Device memory: allocating, freeing, what is left, and the range an address lies in. */
#include "suite.h"

/* "The allocated memory is suitably aligned for any kind of variable": the programming guide says to
 * at least 256 bytes. */
RULE(blocks_are_aligned) {
  static const size_t sizes[] = {1, 3, 255, 256, 257, 4096, 100001, MIB + 1};
  enum { COUNT = sizeof sizes / sizeof sizes[0] };
  CUdeviceptr blocks[COUNT];
  for (size_t at = 0; at < COUNT; at++) {
    blocks[at] = must_alloc(sizes[at]);
    SAME(blocks[at] % 256, 0);
  }
  for (size_t at = 0; at < COUNT; at++) OK(cu.MemFree(blocks[at]));
}

/* Live blocks do not overlap. */
RULE(blocks_are_apart) {
  enum { COUNT = 64, BYTES = 3000 };
  CUdeviceptr blocks[COUNT];
  for (int at = 0; at < COUNT; at++) {
    blocks[at] = must_alloc(BYTES);
    for (int other = 0; other < at; other++)
      CHECK(blocks[at] >= blocks[other] + BYTES || blocks[other] >= blocks[at] + BYTES);
    OK(cu.MemsetD8(blocks[at], (unsigned char)at, BYTES));
  }
  for (int at = 0; at < COUNT; at++) {
    must_hold(blocks[at], (unsigned char)at, BYTES);
    OK(cu.MemFree(blocks[at]));
  }
}

/* "If bytesize is 0, cuMemAlloc() returns CUDA_ERROR_INVALID_VALUE." */
RULE(no_bytes_are_refused) {
  CUdeviceptr block = 0;
  GIVES(cu.MemAlloc(&block, 0), CUDA_ERROR_INVALID_VALUE);
}

RULE(no_place_for_the_answer_is_refused) {
  GIVES(cu.MemAlloc(NULL, 1024), CUDA_ERROR_INVALID_VALUE);
}

/* What no device has is refused, also where rounding up would wrap. */
RULE(too_much_is_out_of_memory) {
  CUdeviceptr block = 0;
  size_t total = 0, free_before = 0, free_after = 0;
  OK(cu.MemGetInfo(&free_before, &total));
  GIVES(cu.MemAlloc(&block, total + 1), CUDA_ERROR_OUT_OF_MEMORY);
  GIVES(cu.MemAlloc(&block, (size_t)1 << 60), CUDA_ERROR_OUT_OF_MEMORY);
  GIVES_EITHER(cu.MemAlloc(&block, SIZE_MAX), CUDA_ERROR_OUT_OF_MEMORY, CUDA_ERROR_INVALID_VALUE);
  GIVES_EITHER(cu.MemAlloc(&block, SIZE_MAX - 511), CUDA_ERROR_OUT_OF_MEMORY,
               CUDA_ERROR_INVALID_VALUE);
  /* The refusal is no lasting error, and takes nothing. */
  block = must_alloc(1024);
  OK(cu.MemFree(block));
  OK(cu.MemGetInfo(&free_after, &total));
  CHECK(free_after + 64 * MIB > free_before);
}

/* Freeing NULL does nothing. */
RULE(freeing_null_is_fine) { OK(cu.MemFree(0)); }

/* Only what an allocation call gave may be freed. */
RULE(freeing_what_is_no_block_is_refused) {
  int on_stack = 0;
  CUdeviceptr block = must_alloc(MIB);
  GIVES(cu.MemFree((CUdeviceptr)(uintptr_t)&on_stack), CUDA_ERROR_INVALID_VALUE);
  GIVES(cu.MemFree(block + 512), CUDA_ERROR_INVALID_VALUE);
  GIVES(cu.MemFree(1), CUDA_ERROR_INVALID_VALUE);
  OK(cu.MemFree(block));
}

RULE(freeing_twice_is_refused) {
  CUdeviceptr block = must_alloc(MIB);
  OK(cu.MemFree(block));
  GIVES(cu.MemFree(block), CUDA_ERROR_INVALID_VALUE);
}

typedef struct {
  CUdeviceptr block;
  CUcontext context;
} lent_t;

static void frees_with_a_context(void *argument) {
  lent_t *lent = argument;
  OK(cu.CtxSetCurrent(lent->context));
  OK(cu.MemFree(lent->block));
}

/* A block may be freed by another thread that uses its context. */
RULE(blocks_are_freed_by_any_thread) {
  lent_t lent = {must_alloc(MIB), NULL};
  OK(cu.CtxGetCurrent(&lent.context));
  on_a_thread(frees_with_a_context, &lent);
  GIVES(cu.MemFree(lent.block), CUDA_ERROR_INVALID_VALUE);
}

/* Addresses are unique in the process, so the other device's context finds the block. */
RULE(blocks_are_freed_with_another_device_current) {
  lent_t lent = {must_alloc(MIB), second_context()};
  on_a_thread(frees_with_a_context, &lent);
  GIVES(cu.MemFree(lent.block), CUDA_ERROR_INVALID_VALUE);
}

/* What is allocated is no longer free, and freed is free again. */
RULE(free_memory_counts_blocks) {
  size_t before = 0, during = 0, after = 0, total = 0, total_again = 0;
  /* The first block of a context may take a reserve along. */
  OK(cu.MemFree(must_alloc(64 * MIB)));
  OK(cu.MemGetInfo(&before, &total));
  CUdeviceptr block = must_alloc(64 * MIB);
  OK(cu.MemGetInfo(&during, &total_again));
  SAME(total_again, total);
  OK(cu.MemFree(block));
  OK(cu.MemGetInfo(&after, &total));
  /* Others may use a board meanwhile, so what is asked is less than the block's size. */
  CHECK(during + 32 * MIB < before);
  CHECK(after > during + 32 * MIB);
  CHECK(after <= total);
}

/* Each device counts its own. */
RULE(free_memory_is_a_device_s_own) {
  CUcontext other = second_context();
  size_t before = 0, during = 0, total = 0;
  OK(cu.CtxPushCurrent(other));
  OK(cu.MemGetInfo(&before, &total));
  OK(cu.CtxPopCurrent(NULL));
  CUdeviceptr block = must_alloc(64 * MIB);
  OK(cu.CtxPushCurrent(other));
  OK(cu.MemGetInfo(&during, &total));
  CHECK(during + 32 * MIB > before);
  OK(cu.CtxPopCurrent(NULL));
  OK(cu.MemFree(block));
}

/* "Returns the base address in *pbase and size in *psize of the allocation that contains the input
 * pointer dptr." */
RULE(a_range_is_the_whole_block) {
  CUdeviceptr block = must_alloc(100000), base = 0;
  size_t bytes = 0;
  static const size_t offsets[] = {0, 1, 50000, 99999};
  for (size_t at = 0; at < sizeof offsets / sizeof offsets[0]; at++) {
    OK(cu.MemGetAddressRange(&base, &bytes, block + offsets[at]));
    SAME(base, block);
    SAME(bytes, 100000);
  }
  /* "Both parameters are optional." */
  bytes = 0;
  base = 0;
  OK(cu.MemGetAddressRange(NULL, &bytes, block));
  SAME(bytes, 100000);
  OK(cu.MemGetAddressRange(&base, NULL, block));
  SAME(base, block);
  OK(cu.MemFree(block));
}

/* "CUDA_ERROR_NOT_FOUND", where there is no block. */
RULE(no_block_has_no_range) {
  CUdeviceptr block = must_alloc(100000), base = 0;
  size_t bytes = 0;
  int on_stack = 0;
  OK(cu.MemFree(block));
  GIVES_EITHER(cu.MemGetAddressRange(&base, &bytes, (CUdeviceptr)(uintptr_t)&on_stack),
               CUDA_ERROR_NOT_FOUND, CUDA_ERROR_INVALID_VALUE);
  GIVES_EITHER(cu.MemGetAddressRange(&base, &bytes, 0), CUDA_ERROR_NOT_FOUND,
               CUDA_ERROR_INVALID_VALUE);
}

enum { THREADS = 4, ROUNDS = 200, HELD = 8 };

static void *allocates_and_frees(void *argument) {
  CUcontext context = (CUcontext)argument;
  CUdeviceptr blocks[HELD] = {0};
  unsigned char mark = (unsigned char)(uintptr_t)&blocks;
  OK(cu.CtxSetCurrent(context));
  for (int round = 0; round < ROUNDS; round++) {
    CUdeviceptr *place = &blocks[round % HELD];
    if (*place != 0) {
      must_hold(*place, mark, 700);
      OK(cu.MemFree(*place));
    }
    *place = must_alloc((size_t)(700 + round * 13));
    OK(cu.MemsetD8(*place, mark, 700));
  }
  for (int at = 0; at < HELD; at++) OK(cu.MemFree(blocks[at]));
  return NULL;
}

/* Any number of threads may allocate at once. */
RULE(threads_allocate_at_once) {
  CUcontext context = NULL;
  pthread_t threads[THREADS];
  OK(cu.CtxGetCurrent(&context));
  for (int at = 0; at < THREADS; at++)
    CHECK(pthread_create(&threads[at], NULL, allocates_and_frees, context) == 0);
  for (int at = 0; at < THREADS; at++) CHECK(pthread_join(threads[at], NULL) == 0);
}

/* "Allocates at least WidthInBytes * Height bytes"; "The pitch returned in *pPitch is the width in
 * bytes of the allocation." */
RULE(a_pitch_holds_a_row) {
  CUdeviceptr block = 0;
  size_t pitch = 0, bytes = 0;
  OK(cu.MemAllocPitch(&block, &pitch, 100, 7, 4));
  CHECK(pitch >= 100);
  SAME(pitch % (size_t)attribute(CU_DEVICE_ATTRIBUTE_TEXTURE_PITCH_ALIGNMENT), 0);
  SAME(block % 256, 0);
  OK(cu.MemGetAddressRange(NULL, &bytes, block));
  CHECK(bytes >= pitch * 6 + 100);
  OK(cu.MemsetD2D8(block, pitch, 5, 100, 7));
  must_hold(block + 6 * pitch, 5, 100);
  OK(cu.MemFree(block));
}

/* "ElementSizeBytes may be 4, 8 or 16." */
RULE(a_pitch_is_for_known_elements) {
  CUdeviceptr block = 0;
  size_t pitch = 0;
  GIVES(cu.MemAllocPitch(&block, &pitch, 100, 7, 3), CUDA_ERROR_INVALID_VALUE);
  GIVES(cu.MemAllocPitch(&block, &pitch, 0, 7, 4), CUDA_ERROR_INVALID_VALUE);
  GIVES(cu.MemAllocPitch(&block, &pitch, 100, 0, 4), CUDA_ERROR_INVALID_VALUE);
}
