/* Memory that is asked for while a stream is captured: the capture stays active, and its graph is right.
 *
 * The driver refuses cuMemAlloc where the capture's mode says so, and breaks the capture. Argument "cached": in
 * front of it there is what does neither. */
#include "program.h"

enum { BYTES = 2 << 20 };

/* Where the memory comes from: what was freed before, what is new to the program, and what was freed while work
 * that uses it is queued, with no other memory left. */
enum { HIT, MISS, PRESSED, SOURCES };

typedef struct {
  CUcontext context;
  int source;
  size_t bytes;
  bool frees;
} request_t;

static void ask_and_free(const request_t *request) {
  CUdeviceptr block = 0, ordered = 0, base = 0;
  size_t bytes = 0, total = 0, pitch = 0;
  unsigned int type = 0;
  CUresult code = cuMemAlloc(&block, request->bytes);
  /* While work is queued that must not be waited for there may be nothing. */
  if (request->source == PRESSED && code == CUDA_ERROR_OUT_OF_MEMORY) return;
  OK(code);
  OK(cuMemGetInfo(&bytes, &total));
  OK(cuMemGetAddressRange(&base, &bytes, block));
  OK(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, block));
  if (request->frees) OK(cuMemFree(block));
  if (request->source == PRESSED) return;
  OK(cuMemAllocPitch(&ordered, &pitch, 1000, 100, 4));
  if (request->frees) OK(cuMemFree(ordered));
}

static void *ask_on_a_thread(void *argument) {
  const request_t *request = argument;
  OK(cuCtxSetCurrent(request->context));
  ask_and_free(request);
  return NULL;
}

/* Stream-ordered memory of a stream that is not captured is allowed in each mode. */
static void use_another_stream(CUstream other) {
  CUdeviceptr block = must_alloc_async(BYTES, other);
  OK(cuMemsetD8Async(block, 1, BYTES, other));
  OK(cuMemFreeAsync(block, other));
}

static void is_active(CUstream stream) {
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  OK(cuStreamIsCapturing(stream, &status));
  SAME(status, CU_STREAM_CAPTURE_STATUS_ACTIVE);
}

static void capture(CUstreamCaptureMode mode, bool on_same_thread, request_t *request, CUdeviceptr result) {
  CUgraph graph = NULL;
  CUgraphExec exec = NULL;
  CUdeviceptr pressed = 0;
  CUstream stream = must_stream(CU_STREAM_NON_BLOCKING), other = must_stream(CU_STREAM_NON_BLOCKING);
  request->bytes = request->source == MISS ? 7 * BYTES : BYTES;
  if (request->source == HIT) OK(cuMemFree(must_alloc(BYTES)));
  OK(cuMemsetD8(result, 0, BYTES));
  OK(cuCtxSynchronize());
  if (request->source == PRESSED) {
    size_t free_bytes = 0, total = 0;
    OK(cuMemGetInfo(&free_bytes, &total));
    request->bytes = free_bytes / 4 * 3;
    pressed = must_alloc(request->bytes);
    delay(other, 3);
    OK(cuMemsetD8Async(pressed, 1, 4096, other));
    OK(cuMemFree(pressed));
  }

  OK(cuStreamBeginCapture(stream, mode));
  OK(cuMemsetD8Async(result, 3, BYTES / 2, stream));
  if (on_same_thread)
    ask_and_free(request);
  else
    on_a_thread(ask_on_a_thread, request);
  is_active(stream);
  if (request->source == HIT) use_another_stream(other);
  is_active(stream);
  OK(cuMemsetD8Async(result + BYTES / 2, 4, BYTES / 2, stream));
  OK(cuStreamEndCapture(stream, &graph));
  size_t nodes = 0;
  OK(cuGraphGetNodes(graph, NULL, &nodes));
  SAME(nodes, 2);
  OK(cuGraphInstantiate(&exec, graph, 0));
  OK(cuGraphLaunch(exec, stream));
  OK(cuStreamSynchronize(stream));
  HOLDS(result, 3, BYTES / 2);
  HOLDS(result + BYTES / 2, 4, BYTES / 2);
  OK(cuGraphExecDestroy(exec));
  OK(cuGraphDestroy(graph));
  OK(cuStreamDestroy(stream));
  OK(cuStreamDestroy(other));
}

int main(int count, char **arguments) {
  static const CUstreamCaptureMode modes[] = {CU_STREAM_CAPTURE_MODE_GLOBAL, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL,
                                              CU_STREAM_CAPTURE_MODE_RELAXED};
  bool cached = has_argument(count, arguments, "cached");
  request_t request = {start(), HIT, 0, true};
  CUdeviceptr result = must_alloc(BYTES);
  for (int source = HIT; source < SOURCES; source++)
    for (size_t mode = 0; mode < COUNT_OF(modes); mode++)
      for (int same = 0; same < 2; same++) {
        bool allowed = modes[mode] == CU_STREAM_CAPTURE_MODE_RELAXED ||
                       (modes[mode] == CU_STREAM_CAPTURE_MODE_THREAD_LOCAL && same == 0);
        if (!allowed && !cached) continue;
        request.source = source;
        fprintf(stderr, "source %d, mode %zu, %s thread\n", source, mode, same ? "same" : "other");
        capture(modes[mode], same == 1, &request, result);
      }
  /* The thread's own mode is as it was. */
  CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
  OK(cuThreadExchangeStreamCaptureMode(&mode));
  SAME(mode, CU_STREAM_CAPTURE_MODE_GLOBAL);
  return 0;
}
