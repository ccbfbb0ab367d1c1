/* Blocks are freed by threads with another device's context current, and count for their own device. */
#include "program.h"

enum { ROUNDS = 200, BYTES = 4 << 20 };

typedef struct {
  CUdeviceptr block;
  CUcontext context;
  CUstream stream;
  CUresult code;
} lent_t;

static void *free_it(void *argument) {
  lent_t *lent = argument;
  if (lent->context != NULL) OK(cuCtxSetCurrent(lent->context));
  lent->code = lent->stream != NULL ? cuMemFreeAsync(lent->block, lent->stream) : cuMemFree(lent->block);
  CUcontext current = NULL;
  OK(cuCtxGetCurrent(&current));
  CHECK(current == lent->context);
  return NULL;
}

static void is_on(CUdeviceptr block, int device) {
  int ordinal = -1;
  OK(cuPointerGetAttribute(&ordinal, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, block));
  SAME(ordinal, device);
}

int main(void) {
  start();
  CHECK(devices() > 1);
  CUcontext contexts[2] = {NULL, NULL};
  contexts[1] = use_device(1);
  contexts[0] = use_device(0);
  for (int round = 0; round < ROUNDS; round++) {
    /* All that a device has passes through here: a block that went to the other device's memory is missed. */
    int device = round % 2;
    OK(cuCtxSetCurrent(contexts[device]));
    lent_t lent = {must_alloc(BYTES), contexts[1 - device], NULL, CUDA_SUCCESS};
    is_on(lent.block, device);
    fill_now(lent.block, (unsigned char)round, BYTES);
    on_a_thread(free_it, &lent);
    OK(lent.code);
    GIVES(cuMemFree(lent.block), CUDA_ERROR_INVALID_VALUE);
  }
  for (int device = 0; device < 2; device++) {
    /* What was freed is there for whoever takes nearly all. */
    size_t unused = 0, total = 0;
    OK(cuCtxSetCurrent(contexts[device]));
    OK(cuMemGetInfo(&unused, &total));
    CHECK(unused > total / 10 * 9);
    CUdeviceptr most = must_alloc(total / 10 * 9);
    is_on(most, device);
    OK(cuMemFree(most));
  }
  /* With no context current the driver refuses, and the block stays; or the block is freed. */
  OK(cuCtxSetCurrent(contexts[0]));
  lent_t lent = {must_alloc(BYTES), NULL, NULL, CUDA_SUCCESS};
  fill_now(lent.block, 6, BYTES);
  on_a_thread(free_it, &lent);
  if (lent.code != CUDA_SUCCESS) {
    SAME(lent.code, CUDA_ERROR_INVALID_CONTEXT);
    HOLDS(lent.block, 6, BYTES);
    OK(cuMemFree(lent.block));
  }
  GIVES(cuMemFree(lent.block), CUDA_ERROR_INVALID_VALUE);
  /* Stream-ordered, by a thread with the other device current. */
  lent.stream = must_stream(CU_STREAM_NON_BLOCKING);
  lent.context = contexts[1];
  for (int round = 0; round < ROUNDS; round++) {
    lent.block = must_alloc_async(BYTES, lent.stream);
    OK(cuMemsetD8Async(lent.block, 1, BYTES, lent.stream));
    on_a_thread(free_it, &lent);
    OK(lent.code);
  }
  /* Memory of a stream is its device's, whatever is current. */
  OK(cuCtxSetCurrent(contexts[1]));
  CUresult code = cuMemAllocAsync(&lent.block, BYTES, lent.stream);
  /* The driver need not take a stream of another context. */
  if (code == CUDA_SUCCESS) {
    is_on(lent.block, 0);
    OK(cuCtxSetCurrent(contexts[0]));
    OK(cuMemsetD8Async(lent.block, 3, BYTES, lent.stream));
    OK(cuMemFreeAsync(lent.block, lent.stream));
  }
  OK(cuStreamSynchronize(lent.stream));
  OK(cuStreamDestroy(lent.stream));
  return 0;
}
