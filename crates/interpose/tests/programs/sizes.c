/* What the driver says of first calls, sizes and arguments that are out of the ordinary. The lines that this
 * writes are the same with anything in front of the driver. */
#include "program.h"

#define SAY(call) printf("%s: %d\n", #call, (int)(call))

static const size_t sizes[] = {0, SIZE_MAX, SIZE_MAX - 1, SIZE_MAX - 511, SIZE_MAX - 512, SIZE_MAX / 2,
                               (size_t)1 << 63, (size_t)1 << 60, (size_t)1 << 47};

static void say_all(void) {
  CUdeviceptr block = 0x1234;
  size_t pitch = 0x1234, bytes = 0x1234;
  CUstream stream = NULL;
  SAY(cuMemFree(0));
  SAY(cuMemFreeAsync(0, stream));
  SAY(cuMemAlloc(NULL, 100));
  SAY(cuMemAlloc(NULL, 0));
  SAY(cuMemAllocAsync(NULL, 100, stream));
  SAY(cuMemAllocAsync(&block, 100, (CUstream)&block));
  SAY(cuMemAllocFromPoolAsync(&block, 100, NULL, stream));
  SAY(cuMemAllocPitch(NULL, &pitch, 100, 100, 4));
  SAY(cuMemAllocPitch(&block, NULL, 100, 100, 4));
  SAY(cuMemAllocPitch(&block, &pitch, 0, 100, 4));
  SAY(cuMemAllocPitch(&block, &pitch, 100, 0, 4));
  SAY(cuMemAllocPitch(&block, &pitch, 100, 100, 0));
  SAY(cuMemAllocPitch(&block, &pitch, 100, 100, 5));
  SAY(cuMemGetInfo(NULL, &bytes));
  SAY(cuMemGetInfo(&bytes, NULL));
  SAY(cuMemGetInfo(NULL, NULL));
  SAY(cuMemGetAddressRange(&block, &bytes, 0));
  SAY(cuMemGetAddressRange(NULL, NULL, 0));
  SAY(cuPointerGetAttribute(NULL, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, 16));
  SAY(cuPointerGetAttributes(0, NULL, NULL, 16));
  SAY(cuIpcGetMemHandle(NULL, 16));
  for (size_t at = 0; at < COUNT_OF(sizes); at++) {
    printf("%zx\n", sizes[at]);
    SAY(cuMemAlloc(&block, sizes[at]));
    SAY(cuMemAllocAsync(&block, sizes[at], stream));
    SAY(cuMemAllocPitch(&block, &pitch, sizes[at], 1, 4));
    SAY(cuMemAllocPitch(&block, &pitch, 1, sizes[at], 4));
    SAY(cuMemAllocPitch(&block, &pitch, sizes[at], sizes[at], 16));
    SAY(cuMemAllocPitch(&block, &pitch, (size_t)1 << 32, (size_t)1 << 32, 16));
  }
  /* Nothing was written where nothing was given. */
  printf("%llx %zx %zx\n", block, pitch, bytes);
}

int main(void) {
  CUdeviceptr block = 0;
  CUcontext context = NULL;
  alarm(PROGRAM_SECONDS);
  puts("before cuInit");
  say_all();
  SAY(cuInit(0));
  puts("without a context");
  say_all();
  use_device(0);
  puts("with a context");
  say_all();
  SAY(cuCtxGetCurrent(&context));
  /* None of it is a lasting error, and no memory went with it. */
  SAY(cuMemAlloc(&block, 1));
  SAY(cuMemFree(block));
  OK(cuCtxSynchronize());
  return 0;
}
