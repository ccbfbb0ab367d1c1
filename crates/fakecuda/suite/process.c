/* The driver and the life of a process: fork and exit. */
#include "suite.h"

static void calls_after_fork(void *argument) {
  CUdeviceptr block = *(CUdeviceptr *)argument, other = 0;
  CUcontext context = NULL;
  CUstream stream = NULL;
  void *host = NULL;
  size_t free_bytes, total;
  int count = 0;
  GIVES(cu.MemAlloc(&other, 1024), CUDA_ERROR_NOT_INITIALIZED);
  GIVES(cu.MemFree(block), CUDA_ERROR_NOT_INITIALIZED);
  GIVES(cu.MemAllocHost(&host, 1024), CUDA_ERROR_NOT_INITIALIZED);
  GIVES(cu.MemGetInfo(&free_bytes, &total), CUDA_ERROR_NOT_INITIALIZED);
  GIVES(cu.StreamCreate(&stream, 0), CUDA_ERROR_NOT_INITIALIZED);
  GIVES(cu.StreamSynchronize(NULL), CUDA_ERROR_NOT_INITIALIZED);
  GIVES(cu.DeviceGetCount(&count), CUDA_ERROR_NOT_INITIALIZED);
  GIVES(cu.DevicePrimaryCtxRetain(&context, 0), CUDA_ERROR_NOT_INITIALIZED);
  GIVES(cu.Init(0), CUDA_ERROR_NOT_INITIALIZED);
}

/* "The CUDA driver does not support fork after initialisation": in the child every call is refused, and the
 * parent goes on. */
RULE(a_child_of_a_running_driver_has_none) {
  CUdeviceptr block = must_alloc(4096);
  OK(cu.MemsetD8(block, 3, 4096));
  OK(cu.CtxSynchronize());
  suite_follow(in_a_child(calls_after_fork, &block));
  must_hold(block, 3, 4096);
  OK(cu.MemFree(block));
}

static void works(void *argument) {
  (void)argument;
  suite_begin();
  CUdeviceptr block = must_alloc(4096);
  CUstream stream = must_stream(CU_STREAM_NON_BLOCKING);
  OK(cu.MemsetD8Async(block, 4, 4096, stream));
  OK(cu.StreamSynchronize(stream));
  must_hold(block, 4, 4096);
  OK(cu.StreamDestroy(stream));
  OK(cu.MemFree(block));
}

/* A child that parted before has a driver of its own, and so has the parent. */
FRESH_RULE(a_child_from_before_has_its_own) {
  suite_follow(in_a_child(works, NULL));
  works(NULL);
}

static void *allocates_all_the_time(void *argument) {
  CUcontext context = NULL;
  OK(cu.DevicePrimaryCtxRetain(&context, 0));
  OK(cu.CtxSetCurrent(context));
  while (!atomic_load((atomic_bool *)argument)) {
    CUdeviceptr block = must_alloc(4096);
    OK(cu.MemsetD8Async(block, 1, 4096, NULL));
    OK(cu.MemFree(block));
  }
  return NULL;
}

/* The child is refused, and does not hang, also when another thread was inside the driver at the fork. */
RULE(fork_while_others_work) {
  atomic_bool over = false;
  pthread_t thread;
  CUdeviceptr block = must_alloc(4096);
  CHECK(pthread_create(&thread, NULL, allocates_all_the_time, &over) == 0);
  for (int round = 0; round < 10; round++) suite_follow(in_a_child(calls_after_fork, &block));
  atomic_store(&over, true);
  CHECK(pthread_join(thread, NULL) == 0);
  OK(cu.MemFree(block));
}

/* ---- Exit ------------------------------------------------------------------------------------------------- */

static CUdeviceptr left;
static CUstream left_stream;

static void frees_late(void) {
  size_t free_bytes, total;
  /* Each is checked; the process's status is this handler's. */
  GIVES(cu.MemFree(left), CUDA_ERROR_DEINITIALIZED);
  GIVES(cu.MemGetInfo(&free_bytes, &total), CUDA_ERROR_DEINITIALIZED);
  GIVES(cu.StreamDestroy(left_stream), CUDA_ERROR_DEINITIALIZED);
  _exit(42);
}

static void leaves(void *argument) {
  (void)argument;
  if (atexit(frees_late) != 0) _exit(1);
  suite_begin();
  left = must_alloc(4096);
  left_stream = must_stream(0);
  OK(cu.MemsetD8Async(left, 1, 4096, left_stream));
  exit(0);
}

/* Exit handlers that were registered before the driver was initialised run after its own: every call is
 * refused with CUDA_ERROR_DEINITIALIZED, "the CUDA driver is in the process of shutting down". */
FRESH_RULE(late_exit_handlers_find_it_gone) {
  ONLY_ON_THE_DOUBLE();
  int status = in_a_child(leaves, NULL);
  if (status == 42) return;
  suite_follow(status);
  suite_fail(__FILE__, __LINE__, "the exit handler did not run");
}

static void frees_early(void) {
  CUcontext context = NULL;
  OK(cu.CtxGetCurrent(&context));
  CHECK(context != NULL);
  OK(cu.MemFree(left));
  _exit(42);
}

static void leaves_a_handler(void *argument) {
  (void)argument;
  suite_begin();
  left = must_alloc(4096);
  if (atexit(frees_early) != 0) _exit(1);
  exit(0);
}

/* Those that were registered after it find the driver, and the context that was current on their thread. */
FRESH_RULE(early_exit_handlers_find_it) {
  int status = in_a_child(leaves_a_handler, NULL);
  if (status == 42) return;
  suite_follow(status);
  suite_fail(__FILE__, __LINE__, "the exit handler did not run");
}

static void CUDA_CB sleeps(void *argument) {
  (void)argument;
  sleep_ms(50);
}

static void ends_with_work_left(void *argument) {
  (void)argument;
  suite_begin();
  CUstream stream = must_stream(CU_STREAM_NON_BLOCKING);
  OK(cu.LaunchHostFunc(stream, sleeps, NULL));
  OK(cu.MemsetD8Async(must_alloc(4096), 1, 4096, stream));
  exit(0);
}

/* A process ends well with streams that are still busy. */
FRESH_RULE(a_process_ends_with_work_left) { suite_follow(in_a_child(ends_with_work_left, NULL)); }
