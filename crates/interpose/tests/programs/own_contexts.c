/* Contexts of cuCtxCreate: each has its own memory, and takes it along when it is destroyed, though another one
 * is current, blocks are live, and work is queued. Handles of destroyed contexts come back. */
#include "program.h"

enum { ROUNDS = 20, BYTES = 3 << 20 };

static CUcontext new_context(int device) {
  CUcontext context = NULL;
  OK(cuCtxCreate(&context, NULL, 0, device));
  return context;
}

static CUcontext owner(CUdeviceptr block) {
  CUcontext context = NULL;
  OK(cuPointerGetAttribute(&context, CU_POINTER_ATTRIBUTE_CONTEXT, block));
  return context;
}

int main(void) {
  int recycled = 0;
  CUcontext primary = start(), last = NULL;
  CUdeviceptr kept = must_alloc(BYTES);
  fill_now(kept, 9, BYTES);
  uint64_t used = 0;
  for (int round = 0; round < ROUNDS; round++) {
    int device = round % devices();
    CUcontext context = new_context(device);
    recycled += context == last;
    last = context;
    CUdeviceptr live = must_alloc(BYTES), freed = must_alloc(2 * BYTES);
    CHECK(owner(live) == context && owner(freed) == context);
    CUstream stream = must_stream(CU_STREAM_NON_BLOCKING);
    delay(stream, 1);
    OK(cuMemsetD8Async(live, 1, BYTES, stream));
    OK(cuMemFree(freed));
    /* The cache of one context serves no other. */
    OK(cuCtxSetCurrent(primary));
    CUdeviceptr other = must_alloc(2 * BYTES);
    CHECK(owner(other) == primary);
    fill_now(other, 2, BYTES);
    if (round % 2 == 0) OK(cuCtxSetCurrent(context));
    /* Freed with the wrong context current, which is no error. */
    OK(cuMemFree(other));
    if (round % 3 == 0) OK(cuMemFree(live));
    OK(cuCtxDestroy(context));
    OK(cuCtxSetCurrent(primary));
    GIVES(cuMemFree(live), CUDA_ERROR_INVALID_VALUE);
    GIVES(cuMemFree(freed), CUDA_ERROR_INVALID_VALUE);
    HOLDS(kept, 9, BYTES);
    if (round == ROUNDS / 2) used = fakecuda_used(0);
  }
  CHECK(recycled > 0 || !fakecuda_present());
  /* Nothing of the destroyed ones is left: what there is, the primary one's cache included, does not grow. */
  CHECK(fakecuda_used(0) <= used);
  for (int device = 1; device < devices(); device++) SAME(fakecuda_used(device), 0);
  SAME(fakecuda_live(FAKECUDA_LIVE_CONTEXTS), 1);
  OK(cuDevicePrimaryCtxReset(0));
  SAME(fakecuda_used(0), 0);
  return 0;
}
