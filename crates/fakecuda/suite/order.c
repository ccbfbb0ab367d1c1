/* The legacy default stream, and what it waits for. */
#include "suite.h"

enum { BYTES = 4096 };

/* Puts a set into the stream behind a closed gate, then another into `next`; whether that waited is
 * seen by which value is left. Gives that value. */
static unsigned char left_after(CUstream first, CUstream next) {
  gate_t gate;
  unsigned char *seen = must_alloc_host(1);
  CUdeviceptr block = must_alloc(BYTES);
  OK(cu.MemsetD8(block, 0, BYTES));
  OK(cu.CtxSynchronize());
  gate_close(&gate, first);
  OK(cu.MemsetD8Async(block, 1, BYTES, first));
  OK(cu.MemsetD8Async(block, 2, BYTES, next));
  OK(cu.MemcpyDtoHAsync(seen, block, 1, next));
  sleep_ms(20);
  gate_open(&gate);
  OK(cu.StreamSynchronize(next));
  OK(cu.StreamSynchronize(first));
  OK(cu.CtxSynchronize());
  unsigned char value = 0;
  OK(cu.MemcpyDtoH(&value, block, 1));
  OK(cu.MemFree(block));
  OK(cu.MemFreeHost(seen));
  return value;
}

/* "The legacy default stream [...] is a stream that synchronizes with all other streams in the same
 * CUcontext except for non-blocking streams": "when an action is taken in the legacy stream, it first
 * waits on all blocking streams". */
RULE(the_default_stream_waits_for_blocking_ones) {
  CUstream stream = must_stream(CU_STREAM_DEFAULT);
  SAME(left_after(stream, NULL), 2);
  SAME(left_after(stream, CU_STREAM_LEGACY), 2);
  OK(cu.StreamDestroy(stream));
}

/* "... the action is queued in the legacy stream, and then all blocking streams wait on the legacy
 * stream." */
RULE(blocking_streams_wait_for_the_default_one) {
  CUstream stream = must_stream(CU_STREAM_DEFAULT);
  SAME(left_after(NULL, stream), 2);
  OK(cu.StreamDestroy(stream));
}

/* Two blocking streams are joined by an action of the default stream between them. */
RULE(the_default_stream_orders_others) {
  gate_t gate;
  CUstream one = must_stream(CU_STREAM_DEFAULT), two = must_stream(CU_STREAM_DEFAULT);
  CUdeviceptr block = must_alloc(BYTES), other = must_alloc(BYTES);
  OK(cu.MemsetD8(block, 0, BYTES));
  OK(cu.CtxSynchronize());
  gate_close(&gate, one);
  OK(cu.MemsetD8Async(block, 1, BYTES, one));
  OK(cu.MemsetD8Async(other, 9, BYTES, NULL));
  OK(cu.MemsetD8Async(block, 2, BYTES, two));
  GIVES(cu.StreamQuery(two), CUDA_ERROR_NOT_READY);
  GIVES(cu.StreamQuery(NULL), CUDA_ERROR_NOT_READY);
  gate_open(&gate);
  OK(cu.StreamSynchronize(two));
  CHECK(atomic_load(&gate.passed));
  must_hold(block, 2, BYTES);
  OK(cu.StreamDestroy(one));
  OK(cu.StreamDestroy(two));
  OK(cu.MemFree(block));
  OK(cu.MemFree(other));
}

/* CU_STREAM_NON_BLOCKING: "the created stream should perform no implicit synchronization with stream
 * 0 (the NULL stream)". */
RULE(non_blocking_streams_take_no_part) {
  gate_t gate;
  CUstream stream = must_stream(CU_STREAM_NON_BLOCKING);
  CUdeviceptr block = must_alloc(BYTES);
  gate_close(&gate, stream);
  OK(cu.MemsetD8Async(block, 1, BYTES, NULL));
  OK(cu.StreamSynchronize(NULL));
  CHECK(!atomic_load(&gate.passed));
  GIVES(cu.StreamQuery(stream), CUDA_ERROR_NOT_READY);
  gate_open(&gate);
  OK(cu.StreamSynchronize(stream));
  /* And the other way round. */
  gate_close(&gate, NULL);
  OK(cu.MemsetD8Async(block, 2, BYTES, stream));
  OK(cu.StreamSynchronize(stream));
  CHECK(!atomic_load(&gate.passed));
  gate_open(&gate);
  OK(cu.StreamSynchronize(NULL));
  must_hold(block, 2, BYTES);
  OK(cu.StreamDestroy(stream));
  OK(cu.MemFree(block));
}

/* Waiting for a blocking stream is not waiting for the default one. */
RULE(waiting_for_one_stream_waits_for_that_one) {
  gate_t gate;
  CUstream one = must_stream(CU_STREAM_DEFAULT), two = must_stream(CU_STREAM_DEFAULT);
  gate_close(&gate, one);
  OK(cu.StreamSynchronize(two));
  OK(cu.StreamQuery(two));
  CHECK(!atomic_load(&gate.passed));
  gate_open(&gate);
  OK(cu.StreamSynchronize(one));
  OK(cu.StreamDestroy(one));
  OK(cu.StreamDestroy(two));
}

/* A synchronous copy is work of the default stream: it waits for blocking streams. */
RULE(synchronous_copies_wait_for_blocking_streams) {
  unsigned char seen = 0;
  CUstream stream = must_stream(CU_STREAM_DEFAULT);
  CUdeviceptr block = must_alloc(BYTES);
  OK(cu.MemsetD8(block, 0, BYTES));
  OK(cu.MemsetD8Async(block, 4, BYTES, stream));
  OK(cu.MemcpyDtoH(&seen, block, 1));
  SAME(seen, 4);
  OK(cu.StreamDestroy(stream));
  OK(cu.MemFree(block));
}

/* An event recorded in the default stream covers the blocking streams' work before it. */
RULE(events_of_the_default_stream_cover_blocking_ones) {
  gate_t gate;
  CUstream stream = must_stream(CU_STREAM_DEFAULT);
  CUevent event = must_event(CU_EVENT_DISABLE_TIMING);
  gate_close(&gate, stream);
  OK(cu.EventRecord(event, NULL));
  GIVES(cu.EventQuery(event), CUDA_ERROR_NOT_READY);
  gate_open(&gate);
  OK(cu.EventSynchronize(event));
  CHECK(atomic_load(&gate.passed));
  OK(cu.EventDestroy(event));
  OK(cu.StreamDestroy(stream));
}

typedef struct {
  CUcontext context;
  CUdeviceptr block;
} per_thread_t;

static void uses_its_own_stream(void *argument) {
  per_thread_t *given = argument;
  OK(cu.CtxSetCurrent(given->context));
  OK(cu.MemsetD8Async(given->block, 7, BYTES, CU_STREAM_PER_THREAD));
  OK(cu.StreamSynchronize(CU_STREAM_PER_THREAD));
}

/* "The per-thread default stream is an implicit stream local to both the thread and the CUcontext", and
 * "is not a non-blocking stream and will synchronize with the legacy default stream". */
RULE(each_thread_has_a_default_stream) {
  gate_t gate;
  per_thread_t given = {NULL, must_alloc(BYTES)};
  OK(cu.CtxGetCurrent(&given.context));
  OK(cu.MemsetD8(given.block, 0, BYTES));
  OK(cu.CtxSynchronize());
  gate_close(&gate, CU_STREAM_PER_THREAD);
  GIVES(cu.StreamQuery(CU_STREAM_PER_THREAD), CUDA_ERROR_NOT_READY);
  on_a_thread(uses_its_own_stream, &given);
  CHECK(!atomic_load(&gate.passed));
  gate_open(&gate);
  OK(cu.StreamSynchronize(CU_STREAM_PER_THREAD));
  must_hold(given.block, 7, BYTES);
  SAME(left_after(CU_STREAM_PER_THREAD, NULL), 2);
  SAME(left_after(NULL, CU_STREAM_PER_THREAD), 2);
  OK(cu.MemFree(given.block));
}
