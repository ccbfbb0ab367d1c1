/* A program built for per-thread default streams: stream 0 is another stream in each thread. Compiled
 * with CUDA_API_PER_THREAD_DEFAULT_STREAM, so every name is the _ptds or _ptsz form. */
#include "suite.h"

enum { BYTES = 4096 };

/* Without that macro the names are the ordinary ones, and the rules do not hold. */
static void must_be_compiled_so(void) {
#ifndef CUDA_API_PER_THREAD_DEFAULT_STREAM
  suite_skip("not compiled with CUDA_API_PER_THREAD_DEFAULT_STREAM");
#endif
}

typedef struct {
  CUcontext context;
  CUdeviceptr block;
  unsigned long long id;
} other_t;

static void works_in_its_stream(void *argument) {
  other_t *other = argument;
  OK(cu.CtxSetCurrent(other->context));
  OK(cu.StreamGetId(NULL, &other->id));
  OK(cu.MemsetD8Async(other->block, 3, BYTES, NULL));
  OK(cu.StreamSynchronize(NULL));
  must_hold(other->block, 3, BYTES);
}

static other_t other_with(CUdeviceptr block) {
  other_t other = {NULL, block, 0};
  OK(cu.CtxGetCurrent(&other.context));
  return other;
}

/* Stream 0 is the thread's own, so a busy one keeps no other thread waiting. */
RULE(stream_zero_is_the_thread_s) {
  must_be_compiled_so();
  gate_t gate;
  unsigned long long id = 0, same = 0;
  other_t other = other_with(must_alloc(BYTES));
  OK(cu.StreamGetId(NULL, &id));
  OK(cu.StreamGetId(CU_STREAM_PER_THREAD, &same));
  SAME(id, same);
  gate_close(&gate, NULL);
  on_a_thread(works_in_its_stream, &other);
  CHECK(!atomic_load(&gate.passed));
  CHECK(other.id != id);
  GIVES(cu.StreamQuery(NULL), CUDA_ERROR_NOT_READY);
  GIVES(cu.StreamQuery(CU_STREAM_PER_THREAD), CUDA_ERROR_NOT_READY);
  gate_open(&gate);
  OK(cu.StreamSynchronize(NULL));
  OK(cu.MemFree(other.block));
}

/* The legacy stream is still there under its own handle, and synchronises with stream 0. */
RULE(the_legacy_stream_still_synchronises) {
  must_be_compiled_so();
  gate_t gate;
  CUdeviceptr block = must_alloc(BYTES);
  unsigned long long own = 0, legacy = 0;
  OK(cu.StreamGetId(NULL, &own));
  OK(cu.StreamGetId(CU_STREAM_LEGACY, &legacy));
  CHECK(own != legacy);
  gate_close(&gate, NULL);
  OK(cu.MemsetD8Async(block, 1, BYTES, NULL));
  OK(cu.MemsetD8Async(block, 2, BYTES, CU_STREAM_LEGACY));
  GIVES(cu.StreamQuery(CU_STREAM_LEGACY), CUDA_ERROR_NOT_READY);
  gate_open(&gate);
  OK(cu.StreamSynchronize(CU_STREAM_LEGACY));
  must_hold(block, 2, BYTES);
  OK(cu.MemFree(block));
}

/* Synchronous copies and sets are work of stream 0, so of the thread's. */
RULE(synchronous_work_is_the_thread_s) {
  must_be_compiled_so();
  unsigned char host[64];
  CUdeviceptr block = must_alloc(BYTES);
  OK(cu.MemsetD8(block, 5, BYTES));
  OK(cu.MemsetD16(block, 0x0606, 8));
  OK(cu.MemsetD32(block + 16, 0x07070707, 4));
  OK(cu.MemcpyDtoH(host, block, sizeof host));
  CHECK(host[0] == 6 && host[15] == 6 && host[16] == 7 && host[31] == 7 && host[32] == 5);
  OK(cu.MemcpyHtoD(block + 64, host, sizeof host));
  OK(cu.MemcpyDtoD(block + 128, block + 64, sizeof host));
  must_hold(block + 128 + 32, 5, 32);
  OK(cu.MemFree(block));
}

/* An event recorded in stream 0 covers this thread's work. */
RULE(events_of_stream_zero_are_the_thread_s) {
  must_be_compiled_so();
  gate_t gate;
  CUevent event = must_event(CU_EVENT_DISABLE_TIMING);
  CUstream stream = must_stream(CU_STREAM_NON_BLOCKING);
  CUdeviceptr block = must_alloc(BYTES);
  gate_close(&gate, NULL);
  OK(cu.MemsetD8Async(block, 1, BYTES, NULL));
  OK(cu.EventRecord(event, NULL));
  OK(cu.StreamWaitEvent(stream, event, 0));
  OK(cu.MemsetD8Async(block, 2, BYTES, stream));
  GIVES(cu.EventQuery(event), CUDA_ERROR_NOT_READY);
  gate_open(&gate);
  OK(cu.StreamSynchronize(stream));
  must_hold(block, 2, BYTES);
  OK(cu.EventDestroy(event));
  OK(cu.StreamDestroy(stream));
  OK(cu.MemFree(block));
}

/* The thread's stream can be captured, which the legacy one cannot. */
RULE(stream_zero_can_be_captured) {
  must_be_compiled_so();
  CUgraph graph = NULL;
  CUgraphExec exec = NULL;
  CUdeviceptr block = must_alloc(BYTES);
  OK(cu.MemsetD8(block, 0, BYTES));
  OK(cu.StreamBeginCapture(NULL, CU_STREAM_CAPTURE_MODE_RELAXED));
  OK(cu.MemsetD8Async(block, 4, BYTES, NULL));
  OK(cu.StreamEndCapture(NULL, &graph));
  CHECK(graph != NULL);
  must_hold(block, 0, BYTES);
  OK(cu.GraphInstantiateWithFlags(&exec, graph, 0));
  OK(cu.GraphLaunch(exec, NULL));
  OK(cu.StreamSynchronize(NULL));
  must_hold(block, 4, BYTES);
  OK(cu.GraphExecDestroy(exec));
  OK(cu.GraphDestroy(graph));
  OK(cu.MemFree(block));
}

/* Memory in the order of the thread's stream. */
RULE(stream_ordered_memory_of_stream_zero) {
  must_be_compiled_so();
  need_pools();
  CUdeviceptr block = 0;
  OK(cu.MemAllocAsync(&block, BYTES, NULL));
  OK(cu.MemsetD8Async(block, 6, BYTES, NULL));
  OK(cu.StreamSynchronize(NULL));
  must_hold(block, 6, BYTES);
  OK(cu.MemFreeAsync(block, NULL));
  OK(cu.StreamSynchronize(NULL));
}
