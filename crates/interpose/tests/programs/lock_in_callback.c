/* A host function takes a lock of the program, which another thread holds while it allocates: nothing in front
 * of the driver may wait for the stream while it holds what the allocating thread needs. SIGALRM is failure.
 *
 * Argument "cached": freeing under the lock, too, which the driver's own cuMemFree would not survive. */
#include "program.h"

enum { ROUNDS = 20 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static CUcontext context;
static CUstream busy;
static size_t most;

static void CUDA_CB take_the_lock(void *argument) {
  (void)argument;
  CHECK(pthread_mutex_lock(&lock) == 0);
  CHECK(pthread_mutex_unlock(&lock) == 0);
}

/* Frees what the stream still uses, and asks for nearly all memory: one of the two has to wait for the host
 * function. */
static void *free_and_allocate_all(void *block) {
  CUdeviceptr all = 0;
  OK(cuCtxSetCurrent(context));
  OK(cuMemFree(*(CUdeviceptr *)block));
  OK(cuMemAlloc(&all, most));
  OK(cuMemFree(all));
  return NULL;
}

int main(int count, char **arguments) {
  bool cached = has_argument(count, arguments, "cached");
  size_t unused = 0, total = 0;
  context = start();
  alarm(30);
  busy = must_stream(CU_STREAM_NON_BLOCKING);
  CUstream own = must_stream(CU_STREAM_NON_BLOCKING);
  OK(cuMemGetInfo(&unused, &total));
  most = unused / 4 * 3;
  for (int round = 0; round < ROUNDS; round++) {
    pthread_t thread;
    CUdeviceptr used = must_alloc(most), small = must_alloc(4096), others[3] = {0};
    CHECK(pthread_mutex_lock(&lock) == 0);
    OK(cuLaunchHostFunc(busy, take_the_lock, NULL));
    OK(cuMemsetD8Async(used, 1, 4096, busy));
    CHECK(pthread_create(&thread, NULL, free_and_allocate_all, &used) == 0);
    /* The other thread comes to its wait. */
    sleep_ms(5);
    for (int turn = 0; turn < 3; turn++) {
      others[turn] = must_alloc(4096);
      CUdeviceptr ordered = must_alloc_async(4096, own);
      OK(cuMemFreeAsync(ordered, own));
      OK(cuMemGetInfo(&unused, &total));
      size_t bytes = 0;
      OK(cuMemGetAddressRange(NULL, &bytes, small));
      if (cached) OK(cuMemFree(others[turn]));
      sleep_ms(1);
    }
    CHECK(pthread_mutex_unlock(&lock) == 0);
    CHECK(pthread_join(thread, NULL) == 0);
    for (int turn = 0; turn < 3 && !cached; turn++) OK(cuMemFree(others[turn]));
    OK(cuMemFree(small));
  }
  return 0;
}
