/* After fork the child has no CUDA: every call gives CUDA_ERROR_NOT_INITIALIZED, nothing hangs or crashes, and
 * the parent's memory stays as it was. The child may go on without CUDA, and start programs. */
#include "program.h"

enum { BYTES = 3 << 20 };

static CUdeviceptr live, freed, ordered;
static CUstream stream;

static void in_the_child(void) {
  CUdeviceptr block = 0, base = 0;
  size_t bytes = 0, total = 0, pitch = 0;
  unsigned int type = 0;
  CUipcMemHandle handle;
  void *attribute = &type;
  CUpointer_attribute which = CU_POINTER_ATTRIBUTE_MEMORY_TYPE;
  alarm(10);
  for (int turn = 0; turn < 2; turn++) {
    GIVES(cuMemAlloc(&block, BYTES), CUDA_ERROR_NOT_INITIALIZED);
    GIVES(cuMemAlloc(&block, 16), CUDA_ERROR_NOT_INITIALIZED);
    GIVES(cuMemAllocPitch(&block, &pitch, 100, 100, 4), CUDA_ERROR_NOT_INITIALIZED);
    GIVES(cuMemAllocAsync(&block, BYTES, stream), CUDA_ERROR_NOT_INITIALIZED);
    GIVES(cuMemFree(live), CUDA_ERROR_NOT_INITIALIZED);
    GIVES(cuMemFree(freed), CUDA_ERROR_NOT_INITIALIZED);
    GIVES(cuMemFree(0), CUDA_ERROR_NOT_INITIALIZED);
    GIVES(cuMemFreeAsync(ordered, stream), CUDA_ERROR_NOT_INITIALIZED);
    GIVES(cuMemGetInfo(&bytes, &total), CUDA_ERROR_NOT_INITIALIZED);
    GIVES(cuMemGetAddressRange(&base, &bytes, live), CUDA_ERROR_NOT_INITIALIZED);
    GIVES(cuPointerGetAttribute(&type, which, live), CUDA_ERROR_NOT_INITIALIZED);
    GIVES(cuPointerGetAttributes(1, &which, &attribute, live), CUDA_ERROR_NOT_INITIALIZED);
    GIVES(cuIpcGetMemHandle(&handle, live), CUDA_ERROR_NOT_INITIALIZED);
    GIVES(cuStreamDestroy(stream), CUDA_ERROR_NOT_INITIALIZED);
    GIVES(cuDevicePrimaryCtxReset(0), CUDA_ERROR_NOT_INITIALIZED);
    GIVES(cuDevicePrimaryCtxRelease(0), CUDA_ERROR_NOT_INITIALIZED);
    GIVES(cuInit(0), CUDA_ERROR_NOT_INITIALIZED);
    /* The child's own memory works. */
    char *host = malloc(MIB);
    CHECK(host != NULL);
    memset(host, 1, MIB);
    free(host);
  }
}

int main(int count, char **arguments) {
  if (has_argument(count, arguments, "started")) return start() == NULL;
  start();
  stream = must_stream(CU_STREAM_NON_BLOCKING);
  live = must_alloc(BYTES);
  freed = must_alloc(BYTES);
  ordered = must_alloc_async(BYTES, stream);
  fill_now(live, 5, BYTES);
  OK(cuMemFree(freed));
  for (int round = 0; round < 3; round++) {
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
      in_the_child();
      /* Through the exit handlers, and by another program. */
      if (round == 0) exit(0);
      if (round == 1) {
        execl("/proc/self/exe", arguments[0], "started", (char *)NULL);
        _exit(9);
      }
      _exit(0);
    }
    CHECK(child > 0);
    SAME(ended(child), 0);
    HOLDS(live, 5, BYTES);
    CUdeviceptr block = must_alloc(BYTES);
    fill_now(block, 6, BYTES);
    HOLDS(live, 5, BYTES);
    OK(cuMemFree(block));
  }
  OK(cuMemFreeAsync(ordered, stream));
  OK(cuMemFree(live));
  return 0;
}
