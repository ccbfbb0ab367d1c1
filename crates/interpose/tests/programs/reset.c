/* Reset and release of a primary context take its memory along, cached and live, and what comes after begins
 * anew: old pointers are errors and no crash, new memory works, and nothing of the old is left. */
#include "program.h"

enum { BYTES = 3 << 20 };

/* Live and freed blocks of all kinds. */
typedef struct {
  CUdeviceptr live, freed, pitched;
} blocks_t;

static blocks_t make(CUstream stream) {
  blocks_t blocks = {0, 0, 0};
  size_t pitch = 0;
  blocks.live = must_alloc(BYTES);
  blocks.freed = must_alloc(BYTES);
  OK(cuMemAllocPitch(&blocks.pitched, &pitch, 1000, 100, 16));
  fill_now(blocks.live, 1, BYTES);
  OK(cuMemsetD8Async(blocks.live, 1, BYTES, stream));
  /* Pools belong to the device: what happens to their live memory is not documented. */
  OK(cuMemFreeAsync(must_alloc_async(BYTES, stream), stream));
  OK(cuMemFree(blocks.freed));
  return blocks;
}

/* Unknown to the driver, whatever is asked. */
static void are_gone(const blocks_t *blocks) {
  CUdeviceptr all[] = {blocks->live, blocks->freed, blocks->pitched};
  for (size_t at = 0; at < COUNT_OF(all); at++) {
    CUdeviceptr base = 0;
    unsigned int type = 0;
    size_t bytes = 0;
    GIVES(cuMemFree(all[at]), CUDA_ERROR_INVALID_VALUE);
    GIVES(cuMemFreeAsync(all[at], NULL), CUDA_ERROR_INVALID_VALUE);
    GIVES(cuMemGetAddressRange(&base, &bytes, all[at]), CUDA_ERROR_NOT_FOUND);
    GIVES(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, all[at]), CUDA_ERROR_INVALID_VALUE);
    CHECK(cuMemsetD8(all[at], 1, 16) != CUDA_SUCCESS);
  }
}

/* All memory can be had, by blocks of any size. */
static void works(void) {
  size_t unused = 0, total = 0;
  OK(cuMemGetInfo(&unused, &total));
  CHECK(unused > total / 10 * 9);
  CUdeviceptr most = must_alloc(total / 10 * 8), small = must_alloc(100);
  fill_now(most, 3, BYTES);
  fill_now(small, 4, 100);
  HOLDS(most, 3, BYTES);
  HOLDS(small, 4, 100);
  OK(cuMemFree(small));
  OK(cuMemFree(most));
}

static bool is_active(int device) {
  unsigned int flags = 0;
  int active = 0;
  OK(cuDevicePrimaryCtxGetState(device, &flags, &active));
  return active != 0;
}

int main(void) {
  alarm(PROGRAM_SECONDS);
  OK(cuInit(0));
  for (int round = 0; round < 4; round++) {
    for (int device = 0; device < devices(); device++) {
      blocks_t blocks;
      CUcontext context = use_device(device);
      blocks = make(must_stream(CU_STREAM_NON_BLOCKING));
      OK(cuDevicePrimaryCtxReset(device));
      CHECK(!is_active(device));
      SAME(fakecuda_used(device), 0);
      /* The reset context is current still, and works again. */
      if (cuCtxSetCurrent(context) != CUDA_SUCCESS || cuMemFree(0) != CUDA_SUCCESS) (void)use_device(device);
      are_gone(&blocks);
      works();

      /* The last release does the same. Retained twice here: once as it was made, once after the reset. */
      blocks = make(must_stream(CU_STREAM_NON_BLOCKING));
      OK(cuCtxSetCurrent(NULL));
      int releases = 0;
      while (is_active(device)) {
        OK(cuDevicePrimaryCtxRelease(device));
        CHECK(++releases <= 2);
      }
      SAME(fakecuda_used(device), 0);
      use_device(device);
      are_gone(&blocks);
      works();
      OK(cuCtxSetCurrent(NULL));
      while (is_active(device)) OK(cuDevicePrimaryCtxRelease(device));
      SAME(fakecuda_used(device), 0);
    }
  }
  SAME(fakecuda_live(FAKECUDA_LIVE_EVENTS), 0);
  SAME(fakecuda_live(FAKECUDA_LIVE_CONTEXTS), 0);
  return 0;
}
