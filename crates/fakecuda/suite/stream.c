/* Streams: making them, what they are, when they are busy, and host functions in them. */
#include "suite.h"

RULE(flags_are_those_asked_for) {
  unsigned int flags = 7;
  CUstream blocking = must_stream(CU_STREAM_DEFAULT), other = must_stream(CU_STREAM_NON_BLOCKING);
  OK(cu.StreamGetFlags(blocking, &flags));
  SAME(flags, CU_STREAM_DEFAULT);
  OK(cu.StreamGetFlags(other, &flags));
  SAME(flags, CU_STREAM_NON_BLOCKING);
  OK(cu.StreamDestroy(blocking));
  OK(cu.StreamDestroy(other));
  GIVES(cu.StreamCreate(&other, 0x100), CUDA_ERROR_INVALID_VALUE);
  GIVES(cu.StreamCreate(NULL, 0), CUDA_ERROR_INVALID_VALUE);
}

/* "Lower numbers represent higher priorities. '0' represents default priority"; "if the specified
 * priority is outside the numerical range [...] it will automatically be clamped". */
RULE(priorities_are_clamped) {
  int least = 7, greatest = 7, priority = 7;
  CUstream stream = NULL;
  OK(cu.CtxGetStreamPriorityRange(&least, &greatest));
  CHECK(greatest <= least);
  CHECK(greatest <= 0 && least >= 0);
  OK(cu.CtxGetStreamPriorityRange(NULL, &greatest));
  OK(cu.CtxGetStreamPriorityRange(&least, NULL));
  static const int asked[] = {-1000, 1000};
  for (int at = 0; at < 2; at++) {
    OK(cu.StreamCreateWithPriority(&stream, CU_STREAM_NON_BLOCKING, asked[at]));
    OK(cu.StreamGetPriority(stream, &priority));
    SAME((unsigned int)priority, (unsigned int)(asked[at] < 0 ? greatest : least));
    OK(cu.StreamDestroy(stream));
  }
  stream = must_stream(0);
  OK(cu.StreamGetPriority(stream, &priority));
  SAME(priority, 0);
  OK(cu.StreamDestroy(stream));
}

static unsigned long long id_of(CUstream stream) {
  unsigned long long id = 0;
  OK(cu.StreamGetId(stream, &id));
  return id;
}

/* "The Id is unique for the life of the program", though a handle comes back. */
RULE(ids_are_never_used_again) {
  enum { ROUNDS = 32 };
  unsigned long long ids[ROUNDS];
  for (int round = 0; round < ROUNDS; round++) {
    CUstream stream = must_stream(CU_STREAM_NON_BLOCKING);
    ids[round] = id_of(stream);
    SAME(id_of(stream), ids[round]);
    for (int other = 0; other < round; other++) CHECK(ids[round] != ids[other]);
    OK(cu.StreamDestroy(stream));
  }
}

/* The special streams have ids as well; NULL is the legacy stream here. */
RULE(special_streams_have_ids) {
  SAME(id_of(NULL), id_of(CU_STREAM_LEGACY));
  CHECK(id_of(CU_STREAM_PER_THREAD) != id_of(CU_STREAM_LEGACY));
}

/* The double gives the handle of a destroyed stream to the next one, as drivers may. */
RULE(handles_come_back) {
  ONLY_ON_THE_DOUBLE();
  CUstream first = must_stream(0);
  unsigned long long id = id_of(first);
  OK(cu.StreamDestroy(first));
  CUstream second = must_stream(0);
  CHECK(second == first);
  CHECK(id_of(second) != id);
  OK(cu.StreamDestroy(second));
}

/* "The returned context is the context that was active in the calling thread when the stream was
 * created"; of special handles, "the context current to the calling thread". */
RULE(a_stream_has_its_context) {
  CUcontext primary = NULL, other = NULL, found = NULL;
  OK(cu.CtxGetCurrent(&primary));
  CUstream stream = must_stream(0);
  OK(cu.CtxCreate(&other, NULL, 0, 0));
  OK(cu.StreamGetCtx(stream, &found));
  CHECK(found == primary);
  OK(cu.StreamGetCtx(NULL, &found));
  CHECK(found == other);
  OK(cu.StreamGetCtx(CU_STREAM_PER_THREAD, &found));
  CHECK(found == other);
  OK(cu.CtxDestroy(other));
  OK(cu.StreamDestroy(stream));
}

/* A stream is used with whatever context is current. */
RULE(a_stream_works_under_another_context) {
  CUcontext other = NULL;
  CUstream stream = must_stream(CU_STREAM_NON_BLOCKING);
  OK(cu.CtxCreate(&other, NULL, 0, 0));
  OK(cu.StreamSynchronize(stream));
  OK(cu.StreamQuery(stream));
  OK(cu.CtxDestroy(other));
  OK(cu.StreamDestroy(stream));
}

/* ---- Busy and idle ----------------------------------------------------------------------------------- */

RULE(an_empty_stream_is_idle) {
  CUstream stream = must_stream(CU_STREAM_NON_BLOCKING);
  OK(cu.StreamQuery(stream));
  OK(cu.StreamSynchronize(stream));
  OK(cu.StreamDestroy(stream));
}

/* "Returns CUDA_SUCCESS if all operations in the stream specified by hStream have completed, or
 * CUDA_ERROR_NOT_READY if not." */
RULE(a_host_function_keeps_its_stream_busy) {
  gate_t gate;
  CUstream stream = must_stream(CU_STREAM_NON_BLOCKING);
  CUdeviceptr block = must_alloc(4096);
  OK(cu.MemsetD8(block, 0, 4096));
  OK(cu.CtxSynchronize());
  gate_close(&gate, stream);
  OK(cu.MemsetD8Async(block, 1, 4096, stream));
  for (int round = 0; round < 10; round++) {
    GIVES(cu.StreamQuery(stream), CUDA_ERROR_NOT_READY);
    sleep_ms(2);
  }
  gate_reach(&gate, stream);
  GIVES(cu.StreamQuery(stream), CUDA_ERROR_NOT_READY);
  gate_open(&gate);
  OK(cu.StreamSynchronize(stream));
  CHECK(atomic_load(&gate.passed));
  OK(cu.StreamQuery(stream));
  must_hold(block, 1, 4096);
  OK(cu.StreamDestroy(stream));
  OK(cu.MemFree(block));
}

/* Asking again and again comes to an end. */
RULE(polling_ends) {
  CUstream stream = must_stream(CU_STREAM_NON_BLOCKING);
  CUdeviceptr block = must_alloc(MIB);
  OK(cu.MemsetD8Async(block, 1, MIB, stream));
  CUresult code;
  while ((code = cu.StreamQuery(stream)) == CUDA_ERROR_NOT_READY) sleep_ms(1);
  OK(code);
  OK(cu.StreamDestroy(stream));
  OK(cu.MemFree(block));
}

/* Streams do not wait for each other. */
RULE(other_streams_go_on) {
  gate_t gate;
  CUstream busy = must_stream(CU_STREAM_NON_BLOCKING), other = must_stream(CU_STREAM_NON_BLOCKING);
  CUdeviceptr block = must_alloc(4096);
  gate_close(&gate, busy);
  OK(cu.MemsetD8Async(block, 3, 4096, other));
  OK(cu.StreamSynchronize(other));
  CHECK(!atomic_load(&gate.passed));
  GIVES(cu.StreamQuery(busy), CUDA_ERROR_NOT_READY);
  gate_open(&gate);
  OK(cu.StreamSynchronize(busy));
  must_hold(block, 3, 4096);
  OK(cu.StreamDestroy(busy));
  OK(cu.StreamDestroy(other));
  OK(cu.MemFree(block));
}

/* "Blocks until the current context has completed all preceding requested tasks." */
RULE(the_context_waits_for_all_its_streams) {
  enum { COUNT = 4 };
  gate_t gates[COUNT];
  CUstream streams[COUNT];
  for (int at = 0; at < COUNT; at++) {
    streams[at] = must_stream(at % 2 ? CU_STREAM_NON_BLOCKING : CU_STREAM_DEFAULT);
    gate_close(&gates[at], streams[at]);
    gate_open(&gates[at]);
  }
  OK(cu.CtxSynchronize());
  for (int at = 0; at < COUNT; at++) {
    CHECK(atomic_load(&gates[at].passed));
    OK(cu.StreamQuery(streams[at]));
    OK(cu.StreamDestroy(streams[at]));
  }
}

/* "In case the device is still doing work in the stream when cuStreamDestroy() is called, the function
 * will return immediately and the resources will be released automatically once the device has
 * completed all work." */
RULE(a_destroyed_stream_finishes_its_work) {
  gate_t gate;
  CUstream stream = must_stream(CU_STREAM_NON_BLOCKING);
  CUdeviceptr block = must_alloc(4096);
  OK(cu.MemsetD8(block, 0, 4096));
  OK(cu.CtxSynchronize());
  gate_close(&gate, stream);
  OK(cu.MemsetD8Async(block, 8, 4096, stream));
  OK(cu.StreamDestroy(stream));
  CHECK(!atomic_load(&gate.passed));
  gate_open(&gate);
  OK(cu.CtxSynchronize());
  CHECK(atomic_load(&gate.passed));
  must_hold(block, 8, 4096);
  OK(cu.MemFree(block));
}

/* A block is not taken from under a stream that still writes it: cuMemFree waits, or the write is over
 * before the memory is another's. */
RULE(freeing_waits_for_work) {
  enum { BYTES = 1 << 20 };
  CUstream stream = must_stream(CU_STREAM_NON_BLOCKING);
  CUdeviceptr block = must_alloc(BYTES);
  OK(cu.MemsetD8Async(block, 1, BYTES, stream));
  OK(cu.MemFree(block));
  CUdeviceptr next = must_alloc(BYTES);
  OK(cu.MemsetD8(next, 2, BYTES));
  OK(cu.StreamSynchronize(stream));
  must_hold(next, 2, BYTES);
  OK(cu.MemFree(next));
  OK(cu.StreamDestroy(stream));
}

/* ---- Host functions ------------------------------------------------------------------------------------ */

typedef struct {
  atomic_int next;
  int seen[16];
} order_t;

typedef struct {
  order_t *order;
  int number;
} step_t;

static void CUDA_CB takes_a_step(void *argument) {
  step_t *step = argument;
  step->order->seen[atomic_fetch_add(&step->order->next, 1)] = step->number;
}

/* "The function will be called after currently enqueued work and will block work added after it." */
RULE(host_functions_run_in_order) {
  order_t order = {0};
  step_t steps[16];
  CUstream stream = must_stream(CU_STREAM_NON_BLOCKING);
  for (int at = 0; at < 16; at++) {
    steps[at] = (step_t){&order, at};
    OK(cu.LaunchHostFunc(stream, takes_a_step, &steps[at]));
  }
  OK(cu.StreamSynchronize(stream));
  SAME(atomic_load(&order.next), 16);
  for (int at = 0; at < 16; at++) SAME(order.seen[at], at);
  OK(cu.StreamDestroy(stream));
}

typedef struct {
  unsigned char *copy;
  unsigned char found;
} look_t;

static void CUDA_CB looks(void *argument) {
  look_t *look = argument;
  look->found = *look->copy;
}

RULE(host_functions_see_the_work_before) {
  unsigned char *copy = must_alloc_host(4096);
  look_t look = {copy, 0};
  CUstream stream = must_stream(CU_STREAM_NON_BLOCKING);
  CUdeviceptr block = must_alloc(4096);
  *copy = 0;
  OK(cu.MemsetD8Async(block, 5, 4096, stream));
  OK(cu.MemcpyDtoHAsync(copy, block, 4096, stream));
  OK(cu.LaunchHostFunc(stream, looks, &look));
  OK(cu.MemsetD8Async(block, 6, 4096, stream));
  OK(cu.MemcpyDtoHAsync(copy, block, 4096, stream));
  OK(cu.StreamSynchronize(stream));
  SAME(look.found, 5);
  SAME(*copy, 6);
  OK(cu.StreamDestroy(stream));
  OK(cu.MemFree(block));
  OK(cu.MemFreeHost(copy));
}

typedef struct {
  CUresult alloc, synchronize;
} inside_t;

static void CUDA_CB calls_the_driver(void *argument) {
  inside_t *inside = argument;
  CUdeviceptr block = 0;
  inside->alloc = cu.MemAlloc(&block, 4096);
  inside->synchronize = cu.CtxSynchronize();
}

/* "The host function must not make any CUDA API calls. Attempting to use a CUDA API may result in
 * CUDA_ERROR_NOT_PERMITTED, but this is not required." The double requires it. */
RULE(host_functions_call_no_driver) {
  ONLY_ON_THE_DOUBLE();
  inside_t inside = {CUDA_SUCCESS, CUDA_SUCCESS};
  CUstream stream = must_stream(CU_STREAM_NON_BLOCKING);
  OK(cu.LaunchHostFunc(stream, calls_the_driver, &inside));
  OK(cu.StreamSynchronize(stream));
  GIVES(inside.alloc, CUDA_ERROR_NOT_PERMITTED);
  GIVES(inside.synchronize, CUDA_ERROR_NOT_PERMITTED);
  OK(cu.StreamDestroy(stream));
}

typedef struct {
  CUstream stream;
  CUresult status;
  int calls;
} called_t;

static void CUDA_CB is_called(CUstream stream, CUresult status, void *argument) {
  called_t *called = argument;
  *called = (called_t){stream, status, called->calls + 1};
}

/* "For each cuStreamAddCallback call, the callback will be executed exactly once [...] and will block
 * later work in the stream until it is finished." "flags: Reserved for future use, must be 0." */
RULE(callbacks_are_called_once) {
  called_t called = {NULL, CUDA_ERROR_UNKNOWN, 0};
  CUstream stream = must_stream(CU_STREAM_NON_BLOCKING);
  OK(cu.StreamAddCallback(stream, is_called, &called, 0));
  OK(cu.StreamSynchronize(stream));
  SAME(called.calls, 1);
  CHECK(called.stream == stream);
  OK(called.status);
  GIVES(cu.StreamAddCallback(stream, is_called, &called, 1), CUDA_ERROR_INVALID_VALUE);
  OK(cu.StreamDestroy(stream));
}
