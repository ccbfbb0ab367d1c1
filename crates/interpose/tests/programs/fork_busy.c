/* fork while other threads are inside of malloc, of cuMemAlloc and of cuMemFree: the child finds no lock held. */
#include "program.h"

enum { THREADS = 3, FORKS = 60 };

static atomic_bool stop;
static CUcontext context;

static void *allocate_on_the_device(void *argument) {
  size_t bytes = (size_t)(uintptr_t)argument;
  OK(cuCtxSetCurrent(context));
  CUstream stream = must_stream(CU_STREAM_NON_BLOCKING);
  while (!atomic_load(&stop)) {
    CUdeviceptr block = must_alloc(bytes), ordered = must_alloc_async(bytes, stream);
    OK(cuMemsetD8Async(block, 1, bytes, stream));
    OK(cuMemFreeAsync(ordered, stream));
    OK(cuMemFree(block));
  }
  return NULL;
}

static void *allocate_on_the_host(void *argument) {
  while (!atomic_load(&stop)) {
    void *volatile block = malloc((size_t)(uintptr_t)argument);
    free(block);
  }
  return NULL;
}

int main(void) {
  pthread_t device[THREADS], host[THREADS];
  context = start();
  for (size_t at = 0; at < THREADS; at++) {
    void *bytes = (void *)(uintptr_t)(at == 0 ? 100 : at * 3 * MIB);
    CHECK(pthread_create(&device[at], NULL, allocate_on_the_device, bytes) == 0);
    CHECK(pthread_create(&host[at], NULL, allocate_on_the_host, bytes) == 0);
  }
  for (int fork_number = 0; fork_number < FORKS; fork_number++) {
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
      CUdeviceptr block = 0;
      alarm(10);
      GIVES(cuMemAlloc(&block, MIB), CUDA_ERROR_NOT_INITIALIZED);
      GIVES(cuMemAllocAsync(&block, MIB, NULL), CUDA_ERROR_NOT_INITIALIZED);
      GIVES(cuMemFree((CUdeviceptr)0x7f0000000000), CUDA_ERROR_NOT_INITIALIZED);
      void *volatile memory = malloc(MIB);
      free(memory);
      if (fork_number % 2 == 0) exit(0);
      _exit(0);
    }
    CHECK(child > 0);
    SAME(ended(child), 0);
  }
  atomic_store(&stop, true);
  for (size_t at = 0; at < THREADS; at++) {
    CHECK(pthread_join(device[at], NULL) == 0);
    CHECK(pthread_join(host[at], NULL) == 0);
  }
  OK(cuCtxSynchronize());
  return 0;
}
