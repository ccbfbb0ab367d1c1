/* Primary and other contexts, and which one is current. */
#include "suite.h"

static CUcontext current_context(void) {
  CUcontext context = (CUcontext)1;
  OK(cu.CtxGetCurrent(&context));
  return context;
}

static int active(void) {
  unsigned int flags = 0;
  int is_active = -1;
  OK(cu.DevicePrimaryCtxGetState(0, &flags, &is_active));
  return is_active;
}

static CUcontext new_context(void) {
  CUcontext context = NULL;
  OK(cu.CtxCreate(&context, NULL, 0, 0));
  CHECK(context != NULL);
  return context;
}

static unsigned long long id_of(CUcontext context) {
  unsigned long long id = 0;
  OK(cu.CtxGetId(context, &id));
  return id;
}

/* The double answers calls with memory of a context that is no more; a board need not. */
static void must_be_gone(CUdeviceptr block) {
  if (fakecuda_present()) GIVES(cu.MemFree(block), CUDA_ERROR_INVALID_VALUE);
}

/* ---- The primary context ------------------------------------------------------------------------ */

/* "Unlike cuCtxCreate() the newly retained context is not pushed onto the stack." */
FRESH_RULE(retaining_does_not_make_current) {
  CUcontext context = NULL;
  OK(cu.Init(0));
  CHECK(current_context() == NULL);
  OK(cu.DevicePrimaryCtxRetain(&context, 0));
  CHECK(context != NULL);
  CHECK(current_context() == NULL);
  OK(cu.DevicePrimaryCtxRelease(0));
}

/* There is one primary context a device, whoever retains it. */
RULE(primary_is_one_a_device) {
  CUcontext again = NULL;
  OK(cu.DevicePrimaryCtxRetain(&again, 0));
  CHECK(again == current_context());
  OK(cu.DevicePrimaryCtxRelease(0));
  CHECK(second_context() != again);
}

/* It is active from the first retain to the last release. */
FRESH_RULE(primary_is_active_while_retained) {
  CUcontext context = NULL;
  OK(cu.Init(0));
  SAME(active(), 0);
  OK(cu.DevicePrimaryCtxRetain(&context, 0));
  SAME(active(), 1);
  OK(cu.DevicePrimaryCtxRetain(&context, 0));
  OK(cu.DevicePrimaryCtxRelease(0));
  SAME(active(), 1);
  OK(cu.DevicePrimaryCtxRelease(0));
  SAME(active(), 0);
}

/* "Releasing a primary context that has not been previously retained will fail with
 * CUDA_ERROR_INVALID_CONTEXT." */
FRESH_RULE(primary_is_released_as_often_as_retained) {
  CUcontext context = NULL;
  OK(cu.Init(0));
  GIVES(cu.DevicePrimaryCtxRelease(0), CUDA_ERROR_INVALID_CONTEXT);
  OK(cu.DevicePrimaryCtxRetain(&context, 0));
  OK(cu.DevicePrimaryCtxRelease(0));
  GIVES(cu.DevicePrimaryCtxRelease(0), CUDA_ERROR_INVALID_CONTEXT);
}

/* "The context is automatically reset once the last reference to it is released": its memory is
 * gone, and the next retain starts afresh. */
FRESH_RULE(last_release_frees_what_the_context_had) {
  size_t before = 0, after = 0, total = 0;
  suite_begin();
  OK(cu.MemGetInfo(&before, &total));
  CUdeviceptr block = must_alloc(64 * MIB);
  OK(cu.DevicePrimaryCtxRelease(0));
  CUcontext context = NULL;
  OK(cu.DevicePrimaryCtxRetain(&context, 0));
  OK(cu.CtxSetCurrent(context));
  OK(cu.MemGetInfo(&after, &total));
  CHECK(after + 32 * MIB > before);
  must_be_gone(block);
}

/* "Explicitly destroys and cleans up all resources associated with the current device in the current
 * process." and "Resetting the primary context does not release it". */
FRESH_RULE(reset_frees_but_does_not_release) {
  CUcontext context = suite_begin();
  CUdeviceptr block = must_alloc(MIB);
  OK(cu.DevicePrimaryCtxReset(0));
  /* Still retained, so this is no release too many. */
  OK(cu.DevicePrimaryCtxRelease(0));
  OK(cu.DevicePrimaryCtxRetain(&context, 0));
  OK(cu.CtxSetCurrent(context));
  must_be_gone(block);
  block = must_alloc(MIB);
  OK(cu.MemFree(block));
}

/* The flags set for the primary context are those it reports, also before it is active. */
FRESH_RULE(primary_has_the_flags_set_for_it) {
  unsigned int flags = 0;
  int is_active = 0;
  OK(cu.Init(0));
  OK(cu.DevicePrimaryCtxSetFlags(0, CU_CTX_SCHED_BLOCKING_SYNC));
  OK(cu.DevicePrimaryCtxGetState(0, &flags, &is_active));
  SAME(flags & CU_CTX_SCHED_MASK, CU_CTX_SCHED_BLOCKING_SYNC);
  CUcontext context = NULL;
  OK(cu.DevicePrimaryCtxRetain(&context, 0));
  OK(cu.CtxSetCurrent(context));
  OK(cu.CtxGetFlags(&flags));
  SAME(flags & CU_CTX_SCHED_MASK, CU_CTX_SCHED_BLOCKING_SYNC);
}

/* "Only one of the scheduling flags can be set." */
RULE(primary_flags_are_checked) {
  GIVES(cu.DevicePrimaryCtxSetFlags(0, CU_CTX_SCHED_SPIN | CU_CTX_SCHED_YIELD),
        CUDA_ERROR_INVALID_VALUE);
  GIVES(cu.DevicePrimaryCtxSetFlags(0, 0x40000000), CUDA_ERROR_INVALID_VALUE);
}

/* ---- Other contexts -------------------------------------------------------------------------------- */

/* "If a context is already current to the thread, it is supplanted by the newly created context and
 * may be restored by a subsequent call to cuCtxPopCurrent()." */
RULE(a_created_context_is_pushed) {
  CUcontext primary = current_context(), popped = NULL;
  CUcontext context = new_context();
  CHECK(context != primary);
  CHECK(current_context() == context);
  OK(cu.CtxPopCurrent(&popped));
  CHECK(popped == context);
  CHECK(current_context() == primary);
  OK(cu.CtxDestroy(context));
  CHECK(current_context() == primary);
}

/* "If ctx is current to the calling thread then ctx will also be popped." */
RULE(a_destroyed_context_is_popped) {
  CUcontext primary = current_context();
  CUcontext context = new_context();
  OK(cu.CtxDestroy(context));
  CHECK(current_context() == primary);
}

/* A context that is not current is destroyed all the same, and the current one stays. */
RULE(destroying_another_keeps_the_current) {
  CUcontext primary = current_context();
  CUcontext context = new_context();
  OK(cu.CtxSetCurrent(primary));
  OK(cu.CtxDestroy(context));
  CHECK(current_context() == primary);
  CUdeviceptr block = must_alloc(1000);
  OK(cu.MemFree(block));
}

/* Push and pop are a stack of each thread. */
RULE(contexts_are_stacked) {
  CUcontext primary = current_context(), popped = NULL;
  CUcontext context = new_context();
  OK(cu.CtxPushCurrent(primary));
  OK(cu.CtxPushCurrent(context));
  OK(cu.CtxPushCurrent(primary));
  CHECK(current_context() == primary);
  OK(cu.CtxPopCurrent(&popped));
  CHECK(popped == primary && current_context() == context);
  OK(cu.CtxPopCurrent(NULL));
  CHECK(current_context() == primary);
  OK(cu.CtxPopCurrent(&popped));
  CHECK(popped == primary && current_context() == context);
  OK(cu.CtxDestroy(context));
  CHECK(current_context() == primary);
}

/* "If there exists a CUDA context stack on the calling CPU thread, this will replace the top of that
 * stack with ctx. If ctx is NULL then this will be equivalent to popping the top." */
RULE(setting_replaces_the_top) {
  CUcontext primary = current_context(), popped = NULL;
  CUcontext context = new_context();
  OK(cu.CtxSetCurrent(primary));
  OK(cu.CtxPopCurrent(&popped));
  CHECK(popped == primary);
  CHECK(current_context() == primary);
  OK(cu.CtxPushCurrent(context));
  OK(cu.CtxSetCurrent(NULL));
  CHECK(current_context() == primary);
  OK(cu.CtxSetCurrent(NULL));
  CHECK(current_context() == NULL);
  /* "or a no-op if the calling CPU thread's CUDA context stack is empty" */
  OK(cu.CtxSetCurrent(NULL));
  OK(cu.CtxDestroy(context));
}

/* With no context there is nothing to pop, and nothing to work in. */
FRESH_RULE(without_a_context_work_is_refused) {
  CUcontext popped = NULL;
  CUdeviceptr block = 0;
  CUstream stream = NULL;
  CUevent event = NULL;
  void *host = NULL;
  CUdevice device;
  size_t free_bytes, total_bytes;
  unsigned int flags;
  OK(cu.Init(0));
  GIVES(cu.CtxPopCurrent(&popped), CUDA_ERROR_INVALID_CONTEXT);
  GIVES(cu.CtxGetDevice(&device), CUDA_ERROR_INVALID_CONTEXT);
  GIVES(cu.CtxGetFlags(&flags), CUDA_ERROR_INVALID_CONTEXT);
  GIVES(cu.CtxSynchronize(), CUDA_ERROR_INVALID_CONTEXT);
  GIVES(cu.MemAlloc(&block, 1000), CUDA_ERROR_INVALID_CONTEXT);
  GIVES(cu.MemAllocHost(&host, 1000), CUDA_ERROR_INVALID_CONTEXT);
  GIVES(cu.MemGetInfo(&free_bytes, &total_bytes), CUDA_ERROR_INVALID_CONTEXT);
  GIVES(cu.StreamCreate(&stream, 0), CUDA_ERROR_INVALID_CONTEXT);
  GIVES(cu.EventCreate(&event, 0), CUDA_ERROR_INVALID_CONTEXT);
  GIVES(cu.StreamSynchronize(NULL), CUDA_ERROR_INVALID_CONTEXT);
}

/* The context's own device, whichever device the thread used before. */
RULE(a_context_knows_its_device) {
  CUdevice device = -1;
  OK(cu.CtxGetDevice(&device));
  SAME(device, 0);
  CUcontext other = second_context();
  OK(cu.CtxPushCurrent(other));
  OK(cu.CtxGetDevice(&device));
  SAME(device, 1);
  OK(cu.CtxPopCurrent(NULL));
  OK(cu.CtxGetDevice(&device));
  SAME(device, 0);
}

/* "The Id is unique for the life of the program". "If context is supplied as NULL and there is one
 * current, the Id of the current context is returned." */
RULE(context_ids_are_never_used_again) {
  CUcontext primary = current_context();
  unsigned long long last = id_of(primary);
  SAME(id_of(NULL), last);
  for (int round = 0; round < 4; round++) {
    CUcontext context = new_context();
    unsigned long long id = id_of(context);
    SAME(id_of(NULL), id);
    CHECK(id != last && id != id_of(primary));
    last = id;
    OK(cu.CtxDestroy(context));
  }
}

typedef struct {
  CUcontext context;
  atomic_int step;
} shared_context_t;

static void uses_a_destroyed_context(void *argument) {
  shared_context_t *shared = argument;
  OK(cu.CtxSetCurrent(shared->context));
  atomic_store(&shared->step, 1);
  while (atomic_load(&shared->step) != 2) sleep_ms(1);
  CHECK(current_context() == shared->context);
  CUdeviceptr block = 0;
  GIVES(cu.MemAlloc(&block, 1000), CUDA_ERROR_CONTEXT_IS_DESTROYED);
  OK(cu.CtxSetCurrent(NULL));
}

static void *uses_a_destroyed_context_on_a_thread(void *argument) {
  uses_a_destroyed_context(argument);
  return NULL;
}

/* "If ctx is current to other threads, then ctx will remain current to those threads, and attempting
 * to access ctx from those threads will result in the error CUDA_ERROR_CONTEXT_IS_DESTROYED." */
RULE(a_destroyed_context_stays_current_elsewhere) {
  shared_context_t shared = {new_context(), 0};
  OK(cu.CtxPopCurrent(NULL));
  pthread_t thread;
  CHECK(pthread_create(&thread, NULL, uses_a_destroyed_context_on_a_thread, &shared) == 0);
  while (atomic_load(&shared.step) != 1) sleep_ms(1);
  OK(cu.CtxDestroy(shared.context));
  atomic_store(&shared.step, 2);
  CHECK(pthread_join(thread, NULL) == 0);
}

/* "Destroys and cleans up all resources associated with the context", memory among them. */
RULE(a_destroyed_context_takes_its_memory_along) {
  size_t before = 0, after = 0, total = 0;
  CUcontext context = new_context();
  OK(cu.CtxDestroy(context));
  OK(cu.MemGetInfo(&before, &total));
  context = new_context();
  CUdeviceptr block = must_alloc(64 * MIB);
  OK(cu.CtxDestroy(context));
  OK(cu.MemGetInfo(&after, &total));
  CHECK(after + 32 * MIB > before);
  must_be_gone(block);
}

/* A NULL context is refused. */
RULE(no_context_is_refused) {
  GIVES_EITHER(cu.CtxDestroy(NULL), CUDA_ERROR_INVALID_VALUE, CUDA_ERROR_INVALID_CONTEXT);
  GIVES_EITHER(cu.CtxPushCurrent(NULL), CUDA_ERROR_INVALID_VALUE, CUDA_ERROR_INVALID_CONTEXT);
  GIVES(cu.CtxCreate(NULL, NULL, 0, 0), CUDA_ERROR_INVALID_VALUE);
}

/* The flags a context was made with. */
RULE(a_context_has_its_flags) {
  CUcontext context = NULL;
  unsigned int flags = 0, version = 0;
  OK(cu.CtxCreate(&context, NULL, CU_CTX_SCHED_YIELD, 0));
  OK(cu.CtxGetFlags(&flags));
  SAME(flags & CU_CTX_SCHED_MASK, CU_CTX_SCHED_YIELD);
  OK(cu.CtxGetApiVersion(context, &version));
  CHECK(version >= 3020);
  OK(cu.CtxDestroy(context));
  GIVES(cu.CtxCreate(&context, NULL, 0x40000000, 0), CUDA_ERROR_INVALID_VALUE);
}

/* Limits: what can be asked for and set. */
RULE(limits_are_kept) {
  size_t stack = 0, after = 0;
  OK(cu.CtxGetLimit(&stack, CU_LIMIT_STACK_SIZE));
  CHECK(stack > 0);
  OK(cu.CtxSetLimit(CU_LIMIT_STACK_SIZE, 2 * stack));
  OK(cu.CtxGetLimit(&after, CU_LIMIT_STACK_SIZE));
  CHECK(after >= 2 * stack);
  OK(cu.CtxSetLimit(CU_LIMIT_STACK_SIZE, stack));
}

/* No call about memory changes which context is current. */
RULE(work_leaves_the_current_context) {
  CUcontext primary = current_context();
  CUcontext other = new_context();
  CUdeviceptr theirs = must_alloc(4096);
  OK(cu.CtxPopCurrent(NULL));
  CUdeviceptr ours = must_alloc(4096);
  CHECK(theirs != ours);
  OK(cu.MemsetD8(ours, 1, 4096));
  OK(cu.MemFree(theirs));
  CHECK(current_context() == primary);
  must_hold(ours, 1, 4096);
  OK(cu.MemFree(ours));
  CHECK(current_context() == primary);
  OK(cu.CtxDestroy(other));
  CHECK(current_context() == primary);
}
