/* Memory that belongs to a thread is freed by the destructors of the thread's own data, when most of what else was the
 * thread's has gone. */
#include "program.h"

enum { THREADS = 20, BYTES = 1 << 20 };

static pthread_key_t key;
static CUcontext context;
static CUstream stream;
static atomic_int ended_well;

/* What a thread has. */
typedef struct {
  CUdeviceptr block, ordered;
} own_t;

static void free_own(void *argument) {
  own_t *own = argument;
  CUdeviceptr more = 0;
  size_t unused = 0, total = 0;
  OK(cuCtxSetCurrent(context));
  OK(cuMemFree(own->block));
  OK(cuMemFreeAsync(own->ordered, stream));
  OK(cuMemAlloc(&more, BYTES));
  OK(cuMemGetInfo(&unused, &total));
  GIVES(cuMemFree(more + 512), CUDA_ERROR_INVALID_VALUE);
  OK(cuMemFree(more));
  free(own);
  atomic_fetch_add(&ended_well, 1);
}

static void *own_something(void *argument) {
  (void)argument;
  own_t *own = malloc(sizeof *own);
  CHECK(own != NULL);
  OK(cuCtxSetCurrent(context));
  own->block = must_alloc(BYTES);
  own->ordered = must_alloc_async(BYTES, stream);
  CHECK(pthread_setspecific(key, own) == 0);
  return NULL;
}

/* Its first call of the driver is in the destructor. */
static void *own_what_another_made(void *argument) {
  CHECK(pthread_setspecific(key, argument) == 0);
  return NULL;
}

int main(void) {
  context = start();
  stream = must_stream(CU_STREAM_NON_BLOCKING);
  CHECK(pthread_key_create(&key, free_own) == 0);
  for (int at = 0; at < THREADS; at++) {
    if (at % 2 == 0) {
      on_a_thread(own_something, NULL);
    } else {
      own_t *own = malloc(sizeof *own);
      CHECK(own != NULL);
      own->block = must_alloc(BYTES);
      own->ordered = must_alloc_async(BYTES, stream);
      on_a_thread(own_what_another_made, own);
    }
  }
  SAME(atomic_load(&ended_well), THREADS);
  OK(cuStreamSynchronize(stream));
  OK(cuStreamDestroy(stream));
  return 0;
}
