/* Stream capture: what it takes in, what breaks it, and what it gives. */
#include "suite.h"

enum { BYTES = 4096 };

static CUstreamCaptureStatus status_of(CUstream stream) {
  CUstreamCaptureStatus status = (CUstreamCaptureStatus)77;
  OK(cu.StreamIsCapturing(stream, &status));
  return status;
}

static CUstream must_begin(CUstreamCaptureMode mode) {
  CUstream stream = must_stream(CU_STREAM_NON_BLOCKING);
  OK(cu.StreamBeginCapture(stream, mode));
  SAME(status_of(stream), CU_STREAM_CAPTURE_STATUS_ACTIVE);
  return stream;
}

static CUgraph must_end(CUstream stream) {
  CUgraph graph = NULL;
  OK(cu.StreamEndCapture(stream, &graph));
  CHECK(graph != NULL);
  SAME(status_of(stream), CU_STREAM_CAPTURE_STATUS_NONE);
  return graph;
}

/* "The capture sequence must be terminated with cuStreamEndCapture on the stream where it was initiated
 * in order to continue using hStream"; "a NULL graph will be returned". */
static void must_end_broken(CUstream stream) {
  CUgraph graph = (CUgraph)&graph;
  SAME(status_of(stream), CU_STREAM_CAPTURE_STATUS_INVALIDATED);
  GIVES(cu.StreamEndCapture(stream, &graph), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  CHECK(graph == NULL);
  SAME(status_of(stream), CU_STREAM_CAPTURE_STATUS_NONE);
  OK(cu.StreamSynchronize(stream));
  OK(cu.StreamDestroy(stream));
}

static void must_run(CUgraph graph) {
  CUgraphExec exec = NULL;
  CUstream stream = must_stream(CU_STREAM_NON_BLOCKING);
  OK(cu.GraphInstantiateWithFlags(&exec, graph, 0));
  OK(cu.GraphLaunch(exec, stream));
  OK(cu.StreamSynchronize(stream));
  OK(cu.GraphExecDestroy(exec));
  OK(cu.StreamDestroy(stream));
}

static size_t nodes_of(CUgraph graph) {
  size_t count = 0;
  OK(cu.GraphGetNodes(graph, NULL, &count));
  return count;
}

/* ---- What is captured ------------------------------------------------------------------------------- */

/* "When a stream is in capture mode, all operations pushed into the stream will not be executed, but
 * will instead be captured into a graph." */
RULE(captured_work_is_not_run) {
  CUdeviceptr block = must_alloc(BYTES);
  OK(cu.MemsetD8(block, 0, BYTES));
  OK(cu.CtxSynchronize());
  CUstream stream = must_begin(CU_STREAM_CAPTURE_MODE_GLOBAL);
  OK(cu.MemsetD8Async(block, 1, BYTES, stream));
  OK(cu.MemsetD8Async(block, 2, BYTES / 2, stream));
  CUgraph graph = must_end(stream);
  SAME(nodes_of(graph), 2);
  must_hold(block, 0, BYTES);
  must_run(graph);
  must_hold(block, 2, BYTES / 2);
  must_hold(block + BYTES / 2, 1, BYTES / 2);
  OK(cu.GraphDestroy(graph));
  OK(cu.StreamDestroy(stream));
  OK(cu.MemFree(block));
}

/* A stream that captured nothing gives an empty graph. */
RULE(nothing_gives_an_empty_graph) {
  CUstream stream = must_begin(CU_STREAM_CAPTURE_MODE_GLOBAL);
  CUgraph graph = must_end(stream);
  SAME(nodes_of(graph), 0);
  must_run(graph);
  OK(cu.GraphDestroy(graph));
  OK(cu.StreamDestroy(stream));
}

static void CUDA_CB counts(void *argument) { atomic_fetch_add((atomic_int *)argument, 1); }

/* Host functions are captured, and called by each launch. */
RULE(host_functions_are_captured) {
  atomic_int calls = 0;
  CUgraphExec exec = NULL;
  CUstream stream = must_begin(CU_STREAM_CAPTURE_MODE_GLOBAL);
  OK(cu.LaunchHostFunc(stream, counts, &calls));
  CUgraph graph = must_end(stream);
  SAME(atomic_load(&calls), 0);
  OK(cu.GraphInstantiateWithFlags(&exec, graph, 0));
  for (int launch = 0; launch < 3; launch++) OK(cu.GraphLaunch(exec, stream));
  OK(cu.StreamSynchronize(stream));
  SAME(atomic_load(&calls), 3);
  OK(cu.GraphExecDestroy(exec));
  OK(cu.GraphDestroy(graph));
  OK(cu.StreamDestroy(stream));
}

/* cuStreamAddCallback "is not supported with cuStreamBeginCapture and cuStreamEndCapture". */
static void CUDA_CB no_callback(CUstream stream, CUresult status, void *argument) {
  (void)stream, (void)status, (void)argument;
}

RULE(callbacks_are_not_captured) {
  CUstream stream = must_begin(CU_STREAM_CAPTURE_MODE_RELAXED);
  REFUSED(cu.StreamAddCallback(stream, no_callback, NULL, 0));
  CUgraph graph = NULL;
  cu.StreamEndCapture(stream, &graph);
  if (graph != NULL) OK(cu.GraphDestroy(graph));
  OK(cu.StreamDestroy(stream));
}

/* ---- Beginning and ending ------------------------------------------------------------------------------ */

/* "Capture may not be initiated if stream is CU_STREAM_LEGACY [...] and it may only be initiated if the
 * stream is not already in capture mode." */
RULE(beginnings_are_checked) {
  CUstream stream = must_begin(CU_STREAM_CAPTURE_MODE_RELAXED);
  REFUSED(cu.StreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
  REFUSED(cu.StreamBeginCapture(NULL, CU_STREAM_CAPTURE_MODE_RELAXED));
  CUgraph graph = NULL;
  cu.StreamEndCapture(stream, &graph);
  if (graph != NULL) OK(cu.GraphDestroy(graph));
  SAME(status_of(stream), CU_STREAM_CAPTURE_STATUS_NONE);
  GIVES(cu.StreamBeginCapture(stream, (CUstreamCaptureMode)77), CUDA_ERROR_INVALID_VALUE);
  /* "Capture must have been initiated on hStream." */
  REFUSED(cu.StreamEndCapture(stream, &graph));
  OK(cu.StreamDestroy(stream));
}

typedef struct {
  CUcontext context;
  CUstream stream;
  CUresult code;
} elsewhere_t;

static void ends_elsewhere(void *argument) {
  elsewhere_t *elsewhere = argument;
  CUgraph graph = NULL;
  OK(cu.CtxSetCurrent(elsewhere->context));
  elsewhere->code = cu.StreamEndCapture(elsewhere->stream, &graph);
  if (graph != NULL) OK(cu.GraphDestroy(graph));
}

/* "If mode is not CU_STREAM_CAPTURE_MODE_RELAXED, cuStreamEndCapture must be called on this stream from
 * the same thread": CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD. */
RULE(the_thread_that_began_ends) {
  elsewhere_t elsewhere = {NULL, must_begin(CU_STREAM_CAPTURE_MODE_THREAD_LOCAL), CUDA_SUCCESS};
  OK(cu.CtxGetCurrent(&elsewhere.context));
  on_a_thread(ends_elsewhere, &elsewhere);
  GIVES(elsewhere.code, CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD);
  CUgraph graph = NULL;
  cu.StreamEndCapture(elsewhere.stream, &graph);
  if (graph != NULL) OK(cu.GraphDestroy(graph));
  OK(cu.StreamDestroy(elsewhere.stream));
}

RULE(any_thread_ends_a_relaxed_capture) {
  elsewhere_t elsewhere = {NULL, must_begin(CU_STREAM_CAPTURE_MODE_RELAXED), CUDA_ERROR_UNKNOWN};
  OK(cu.CtxGetCurrent(&elsewhere.context));
  on_a_thread(ends_elsewhere, &elsewhere);
  OK(elsewhere.code);
  OK(cu.StreamDestroy(elsewhere.stream));
}

/* "A unique id representing the capture sequence", "unique over the lifetime of the process", and the
 * graph that is being captured into. */
RULE(captures_have_ids_and_a_graph) {
  cuuint64_t first = 0, second = 0;
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  CUgraph inside = NULL;
  const CUgraphNode *dependencies = NULL;
  size_t count = 77;
  CUdeviceptr block = must_alloc(BYTES);
  CUstream stream = must_begin(CU_STREAM_CAPTURE_MODE_GLOBAL);
  OK(cu.StreamGetCaptureInfo(stream, &status, &first, &inside, &dependencies, NULL, &count));
  SAME(status, CU_STREAM_CAPTURE_STATUS_ACTIVE);
  SAME(count, 0);
  CHECK(inside != NULL);
  OK(cu.MemsetD8Async(block, 1, BYTES, stream));
  OK(cu.StreamGetCaptureInfo(stream, &status, &second, &inside, &dependencies, NULL, &count));
  SAME(second, first);
  SAME(count, 1);
  CUgraphNodeType type = CU_GRAPH_NODE_TYPE_EMPTY;
  OK(cu.GraphNodeGetType(dependencies[0], &type));
  SAME(type, CU_GRAPH_NODE_TYPE_MEMSET);
  SAME(nodes_of(inside), 1);
  OK(cu.GraphDestroy(must_end(stream)));
  OK(cu.StreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
  OK(cu.StreamGetCaptureInfo(stream, &status, &second, NULL, NULL, NULL, NULL));
  CHECK(second != first);
  OK(cu.GraphDestroy(must_end(stream)));
  OK(cu.StreamGetCaptureInfo(stream, &status, NULL, NULL, NULL, NULL, NULL));
  SAME(status, CU_STREAM_CAPTURE_STATUS_NONE);
  OK(cu.StreamDestroy(stream));
  OK(cu.MemFree(block));
}

/* ---- Several streams ------------------------------------------------------------------------------------ */

/* An event recorded in a capture takes the streams that wait for it into the capture; they are joined
 * again the same way. */
RULE(streams_fork_and_join) {
  CUdeviceptr block = must_alloc(2 * BYTES);
  OK(cu.MemsetD8(block, 0, 2 * BYTES));
  OK(cu.CtxSynchronize());
  CUevent fork = must_event(CU_EVENT_DISABLE_TIMING), join = must_event(CU_EVENT_DISABLE_TIMING);
  CUstream other = must_stream(CU_STREAM_NON_BLOCKING);
  CUstream stream = must_begin(CU_STREAM_CAPTURE_MODE_GLOBAL);
  OK(cu.MemsetD8Async(block, 1, BYTES, stream));
  OK(cu.EventRecord(fork, stream));
  OK(cu.StreamWaitEvent(other, fork, 0));
  SAME(status_of(other), CU_STREAM_CAPTURE_STATUS_ACTIVE);
  OK(cu.MemcpyDtoDAsync(block + BYTES, block, BYTES, other));
  OK(cu.EventRecord(join, other));
  OK(cu.StreamWaitEvent(stream, join, 0));
  OK(cu.MemsetD8Async(block, 2, BYTES, stream));
  CUgraph graph = must_end(stream);
  SAME(status_of(other), CU_STREAM_CAPTURE_STATUS_NONE);
  SAME(nodes_of(graph), 3);
  must_run(graph);
  must_hold(block, 2, BYTES);
  must_hold(block + BYTES, 1, BYTES);
  OK(cu.GraphDestroy(graph));
  OK(cu.EventDestroy(fork));
  OK(cu.EventDestroy(join));
  OK(cu.StreamDestroy(stream));
  OK(cu.StreamDestroy(other));
  OK(cu.MemFree(block));
}

/* "The capture sequence contains a fork that was not joined to the primary stream." */
RULE(unjoined_streams_break_the_capture) {
  CUdeviceptr block = must_alloc(BYTES);
  CUevent fork = must_event(CU_EVENT_DISABLE_TIMING);
  CUstream other = must_stream(CU_STREAM_NON_BLOCKING);
  CUstream stream = must_begin(CU_STREAM_CAPTURE_MODE_GLOBAL);
  CUgraph graph = (CUgraph)&graph;
  OK(cu.EventRecord(fork, stream));
  OK(cu.StreamWaitEvent(other, fork, 0));
  OK(cu.MemsetD8Async(block, 1, BYTES, other));
  GIVES(cu.StreamEndCapture(stream, &graph), CUDA_ERROR_STREAM_CAPTURE_UNJOINED);
  CHECK(graph == NULL);
  SAME(status_of(stream), CU_STREAM_CAPTURE_STATUS_NONE);
  SAME(status_of(other), CU_STREAM_CAPTURE_STATUS_NONE);
  OK(cu.EventDestroy(fork));
  OK(cu.StreamDestroy(stream));
  OK(cu.StreamDestroy(other));
  OK(cu.MemFree(block));
}

/* "Capture must be ended on the same stream in which it was initiated": CUDA_ERROR_STREAM_CAPTURE_UNMATCHED,
 * "the capture was not initiated in this stream". */
RULE(the_stream_that_began_ends) {
  CUevent fork = must_event(CU_EVENT_DISABLE_TIMING);
  CUstream other = must_stream(CU_STREAM_NON_BLOCKING);
  CUstream stream = must_begin(CU_STREAM_CAPTURE_MODE_GLOBAL);
  CUgraph graph = NULL;
  OK(cu.EventRecord(fork, stream));
  OK(cu.StreamWaitEvent(other, fork, 0));
  GIVES(cu.StreamEndCapture(other, &graph), CUDA_ERROR_STREAM_CAPTURE_UNMATCHED);
  cu.StreamEndCapture(stream, &graph);
  if (graph != NULL) OK(cu.GraphDestroy(graph));
  OK(cu.EventDestroy(fork));
  OK(cu.StreamDestroy(stream));
  OK(cu.StreamDestroy(other));
}

/* "Not permitted on an event which was last recorded in a capturing stream." */
RULE(captured_events_are_not_asked) {
  CUevent event = must_event(CU_EVENT_DISABLE_TIMING);
  CUstream stream = must_begin(CU_STREAM_CAPTURE_MODE_RELAXED);
  OK(cu.EventRecord(event, stream));
  GIVES(cu.EventQuery(event), CUDA_ERROR_CAPTURED_EVENT);
  CUgraph graph = NULL;
  cu.StreamEndCapture(stream, &graph);
  if (graph != NULL) OK(cu.GraphDestroy(graph));
  OK(cu.EventDestroy(event));
  OK(cu.StreamDestroy(stream));
}

/* "A dependency would have been created which crosses the capture sequence boundary." */
RULE(outside_events_are_not_waited_for) {
  CUevent event = must_event(CU_EVENT_DISABLE_TIMING);
  CUstream outside = must_stream(CU_STREAM_NON_BLOCKING);
  OK(cu.EventRecord(event, outside));
  CUstream stream = must_begin(CU_STREAM_CAPTURE_MODE_RELAXED);
  GIVES(cu.StreamWaitEvent(stream, event, 0), CUDA_ERROR_STREAM_CAPTURE_ISOLATION);
  CUgraph graph = NULL;
  cu.StreamEndCapture(stream, &graph);
  if (graph != NULL) OK(cu.GraphDestroy(graph));
  OK(cu.EventDestroy(event));
  OK(cu.StreamDestroy(outside));
  OK(cu.StreamDestroy(stream));
}

/* "The operation would have resulted in a merge of two independent capture sequences." */
RULE(captures_are_not_merged) {
  CUevent event = must_event(CU_EVENT_DISABLE_TIMING);
  CUstream one = must_begin(CU_STREAM_CAPTURE_MODE_RELAXED);
  CUstream two = must_begin(CU_STREAM_CAPTURE_MODE_RELAXED);
  OK(cu.EventRecord(event, one));
  GIVES(cu.StreamWaitEvent(two, event, 0), CUDA_ERROR_STREAM_CAPTURE_MERGE);
  CUgraph graph = NULL;
  cu.StreamEndCapture(one, &graph);
  if (graph != NULL) OK(cu.GraphDestroy(graph));
  graph = NULL;
  cu.StreamEndCapture(two, &graph);
  if (graph != NULL) OK(cu.GraphDestroy(graph));
  OK(cu.EventDestroy(event));
  OK(cu.StreamDestroy(one));
  OK(cu.StreamDestroy(two));
}

/* ---- Calls that do not go with a capture ----------------------------------------------------------------- */

/* "If the local thread has an ongoing capture sequence that was not initiated with RELAXED [...] this
 * thread is prohibited from potentially unsafe API calls", as cudaMalloc: the call fails and the capture
 * is broken. */
static void breaks_by_allocating(CUstreamCaptureMode mode) {
  CUdeviceptr block = 0;
  CUstream stream = must_begin(mode);
  GIVES(cu.MemAlloc(&block, BYTES), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  must_end_broken(stream);
  OK(cu.MemAlloc(&block, BYTES));
  OK(cu.MemFree(block));
}

RULE(allocating_breaks_a_global_capture) { breaks_by_allocating(CU_STREAM_CAPTURE_MODE_GLOBAL); }
RULE(allocating_breaks_a_local_capture) { breaks_by_allocating(CU_STREAM_CAPTURE_MODE_THREAD_LOCAL); }

/* "CU_STREAM_CAPTURE_MODE_RELAXED: The local thread is not prohibited from potentially unsafe API
 * calls." */
RULE(a_relaxed_capture_lets_allocate) {
  CUstream stream = must_begin(CU_STREAM_CAPTURE_MODE_RELAXED);
  CUdeviceptr block = must_alloc(BYTES);
  OK(cu.MemFree(block));
  OK(cu.GraphDestroy(must_end(stream)));
  OK(cu.StreamDestroy(stream));
}

/* "Sets the calling thread's stream capture interaction mode to the value contained in *mode, and
 * overwrites *mode with the previous mode for the thread." */
RULE(a_thread_can_relax_itself) {
  CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
  CUstream stream = must_begin(CU_STREAM_CAPTURE_MODE_GLOBAL);
  OK(cu.ThreadExchangeStreamCaptureMode(&mode));
  SAME(mode, CU_STREAM_CAPTURE_MODE_GLOBAL);
  CUdeviceptr block = must_alloc(BYTES);
  OK(cu.MemFree(block));
  SAME(status_of(stream), CU_STREAM_CAPTURE_STATUS_ACTIVE);
  OK(cu.ThreadExchangeStreamCaptureMode(&mode));
  SAME(mode, CU_STREAM_CAPTURE_MODE_RELAXED);
  GIVES(cu.MemAlloc(&block, BYTES), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  must_end_broken(stream);
  mode = (CUstreamCaptureMode)77;
  GIVES(cu.ThreadExchangeStreamCaptureMode(&mode), CUDA_ERROR_INVALID_VALUE);
}

static void allocates_elsewhere(void *argument) {
  elsewhere_t *elsewhere = argument;
  CUdeviceptr block = 0;
  OK(cu.CtxSetCurrent(elsewhere->context));
  elsewhere->code = cu.MemAlloc(&block, BYTES);
  if (elsewhere->code == CUDA_SUCCESS) OK(cu.MemFree(block));
}

static CUresult allocated_elsewhere(CUstreamCaptureMode mode) {
  elsewhere_t elsewhere = {NULL, must_begin(mode), CUDA_ERROR_UNKNOWN};
  OK(cu.CtxGetCurrent(&elsewhere.context));
  on_a_thread(allocates_elsewhere, &elsewhere);
  if (elsewhere.code == CUDA_SUCCESS) {
    OK(cu.GraphDestroy(must_end(elsewhere.stream)));
  } else {
    CUgraph graph = NULL;
    cu.StreamEndCapture(elsewhere.stream, &graph);
    if (graph != NULL) OK(cu.GraphDestroy(graph));
  }
  OK(cu.StreamDestroy(elsewhere.stream));
  return elsewhere.code;
}

/* "... or if any other thread has a concurrent capture sequence initiated with
 * CU_STREAM_CAPTURE_MODE_GLOBAL." */
RULE(a_global_capture_is_for_all_threads) {
  GIVES(allocated_elsewhere(CU_STREAM_CAPTURE_MODE_GLOBAL), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
}

/* Another thread's capture that is not global does not matter. */
RULE(a_local_capture_is_for_its_thread) {
  OK(allocated_elsewhere(CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
  OK(allocated_elsewhere(CU_STREAM_CAPTURE_MODE_RELAXED));
}

/* "It is invalid to synchronize or query the execution status of a stream which is being captured",
 * whatever the mode. */
RULE(waiting_breaks_a_capture) {
  CUstream stream = must_begin(CU_STREAM_CAPTURE_MODE_RELAXED);
  GIVES(cu.StreamSynchronize(stream), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  must_end_broken(stream);
  stream = must_begin(CU_STREAM_CAPTURE_MODE_RELAXED);
  GIVES(cu.StreamQuery(stream), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  must_end_broken(stream);
}

/* "It is also invalid to query the execution status of or synchronize a broader handle that encompasses
 * active stream capture, such as a device or context handle." */
RULE(the_context_is_not_waited_for) {
  CUstream stream = must_begin(CU_STREAM_CAPTURE_MODE_RELAXED);
  GIVES(cu.CtxSynchronize(), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  /* "When an invalid operation is attempted during stream capture, any associated capture graphs are
   * invalidated." */
  must_end_broken(stream);
}

/* "If this is called on CU_STREAM_LEGACY while a blocking stream in the same context is capturing, it will
 * return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT. The blocking stream capture is not invalidated." */
RULE(a_blocking_capture_shuts_the_default_stream) {
  CUstream stream = must_stream(CU_STREAM_DEFAULT);
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  CUdeviceptr block = must_alloc(BYTES);
  OK(cu.StreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
  GIVES(cu.StreamIsCapturing(NULL, &status), CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
  SAME(status_of(stream), CU_STREAM_CAPTURE_STATUS_ACTIVE);
  GIVES(cu.MemsetD8Async(block, 1, BYTES, NULL), CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
  CUgraph graph = NULL;
  cu.StreamEndCapture(stream, &graph);
  if (graph != NULL) OK(cu.GraphDestroy(graph));
  OK(cu.StreamIsCapturing(NULL, &status));
  SAME(status, CU_STREAM_CAPTURE_STATUS_NONE);
  OK(cu.MemsetD8Async(block, 1, BYTES, NULL));
  OK(cu.StreamSynchronize(NULL));
  OK(cu.StreamDestroy(stream));
  OK(cu.MemFree(block));
}

/* A capture in a non-blocking stream leaves the default stream alone. */
RULE(a_non_blocking_capture_leaves_the_default_stream) {
  CUdeviceptr block = must_alloc(BYTES);
  CUstream stream = must_begin(CU_STREAM_CAPTURE_MODE_RELAXED);
  OK(cu.MemsetD8Async(block, 1, BYTES, NULL));
  OK(cu.StreamSynchronize(NULL));
  SAME(status_of(NULL), CU_STREAM_CAPTURE_STATUS_NONE);
  OK(cu.GraphDestroy(must_end(stream)));
  OK(cu.StreamDestroy(stream));
  OK(cu.MemFree(block));
}
