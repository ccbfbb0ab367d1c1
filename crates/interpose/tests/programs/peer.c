/* Memory of one device used by another: copies need nothing, kernels need cuCtxEnablePeerAccess once, for memory
 * that is there and for memory that comes. */
#include "fill_kernel.h"

enum { BYTES = 3 << 20 };

static CUcontext contexts[2];

static CUdeviceptr new_block(int device, unsigned char value) {
  OK(cuCtxSetCurrent(contexts[device]));
  CUdeviceptr block = must_alloc(BYTES);
  fill_now(block, value, BYTES);
  return block;
}

/* What kernels of the current context may do. */
static unsigned int access_to(CUdeviceptr block) {
  unsigned int flags = 99;
  OK(cuPointerGetAttribute(&flags, CU_POINTER_ATTRIBUTE_ACCESS_FLAGS, block));
  return flags;
}

/* A kernel of device 1 writes the block of device 0. */
static void write_from_1(CUdeviceptr block, CUfunction fill, unsigned char value) {
  OK(cuCtxSetCurrent(contexts[1]));
  SAME(access_to(block), CU_POINTER_ATTRIBUTE_ACCESS_FLAG_READWRITE);
  launch_fill(fill, block, value, BYTES, NULL);
  OK(cuCtxSynchronize());
  OK(cuCtxSetCurrent(contexts[0]));
  HOLDS(block, value, BYTES);
}

int main(void) {
  start();
  CHECK(devices() > 1);
  contexts[1] = use_device(1);
  CUfunction fill = load_fill();
  contexts[0] = use_device(0);

  CUdeviceptr zero = new_block(0, 1), one = new_block(1, 2);
  OK(cuMemcpyPeer(zero, contexts[0], one, contexts[1], BYTES));
  OK(cuCtxSynchronize());
  HOLDS(zero, 2, BYTES);
  fill_now(zero, 3, BYTES);
  OK(cuMemcpyDtoD(one, zero, BYTES));
  OK(cuCtxSynchronize());
  HOLDS(one, 3, BYTES);
  OK(cuMemFree(one));

  /* Cached and new memory alike, before and after access is enabled. */
  CUdeviceptr cached = new_block(0, 4);
  OK(cuMemFree(cached));
  OK(cuCtxSetCurrent(contexts[1]));
  SAME(access_to(zero), 0);
  OK(cuCtxEnablePeerAccess(contexts[0], 0));
  GIVES(cuCtxEnablePeerAccess(contexts[0], 0), CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED);
  write_from_1(zero, fill, 5);
  for (int round = 0; round < 5; round++) {
    CUdeviceptr block = new_block(0, 6);
    write_from_1(block, fill, 7);
    CUdeviceptr large = must_alloc((size_t)(20 + round) * MIB);
    write_from_1(large, fill, 8);
    OK(cuMemFree(block));
    OK(cuMemFree(large));
  }
  OK(cuCtxSetCurrent(contexts[1]));
  OK(cuCtxDisablePeerAccess(contexts[0]));
  SAME(access_to(zero), 0);
  OK(cuMemFree(zero));
  return 0;
}
