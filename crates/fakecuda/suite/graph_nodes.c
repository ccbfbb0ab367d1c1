/* Nodes that are added to graphs by hand, and changes to graphs and to what was made of them. */
#include "suite.h"

enum { BYTES = 4096 };

typedef struct {
  CUcontext context;
  CUgraph graph;
  CUstream stream;
  CUdeviceptr block;
} bench_t;

static bench_t must_begin(void) {
  bench_t bench = {0};
  OK(cu.CtxGetCurrent(&bench.context));
  OK(cu.GraphCreate(&bench.graph, 0));
  bench.stream = must_stream(CU_STREAM_NON_BLOCKING);
  bench.block = must_alloc(BYTES);
  OK(cu.MemsetD8(bench.block, 0, BYTES));
  OK(cu.CtxSynchronize());
  return bench;
}

static void end(bench_t *bench) {
  OK(cu.GraphDestroy(bench->graph));
  OK(cu.StreamDestroy(bench->stream));
  OK(cu.MemFree(bench->block));
}

static CUDA_MEMSET_NODE_PARAMS set_of(CUdeviceptr at, unsigned int value, size_t bytes) {
  CUDA_MEMSET_NODE_PARAMS params;
  memset(&params, 0, sizeof params);
  params.dst = at;
  params.elementSize = 1;
  params.value = value;
  params.width = bytes;
  params.height = 1;
  return params;
}

static CUgraphNode must_add_set(bench_t *bench, CUgraphNode after, CUdeviceptr at, unsigned int value,
                                size_t bytes) {
  CUDA_MEMSET_NODE_PARAMS params = set_of(at, value, bytes);
  CUgraphNode node = NULL;
  OK(cu.GraphAddMemsetNode(&node, bench->graph, after ? &after : NULL, after ? 1 : 0, &params,
                           bench->context));
  return node;
}

static CUgraphExec must_instantiate(CUgraph graph) {
  CUgraphExec exec = NULL;
  OK(cu.GraphInstantiateWithFlags(&exec, graph, 0));
  return exec;
}

static void launch(CUgraphExec exec, CUstream stream) {
  OK(cu.GraphLaunch(exec, stream));
  OK(cu.StreamSynchronize(stream));
}

/* A set of rows, by elements of one, two and four bytes. */
RULE(sets_have_rows_and_elements) {
  static unsigned char host[BYTES];
  bench_t bench = must_begin();
  CUDA_MEMSET_NODE_PARAMS params = set_of(bench.block, 0x0201, 5);
  CUgraphNode node = NULL;
  params.elementSize = 2;
  params.pitch = 100;
  params.height = 3;
  OK(cu.GraphAddMemsetNode(&node, bench.graph, NULL, 0, &params, bench.context));
  CUgraphExec exec = must_instantiate(bench.graph);
  launch(exec, bench.stream);
  OK(cu.MemcpyDtoH(host, bench.block, BYTES));
  for (size_t at = 0; at < 400; at++)
    SAME(host[at], at < 300 && at % 100 < 10 ? (at % 2 ? 2 : 1) : 0);
  OK(cu.GraphExecDestroy(exec));
  end(&bench);
}

RULE(copies_are_nodes) {
  bench_t bench = must_begin();
  unsigned char *host = must_alloc_host(BYTES);
  CUgraphNode set = must_add_set(&bench, NULL, bench.block, 6, BYTES), copy = NULL;
  CUDA_MEMCPY3D params;
  memset(&params, 0, sizeof params);
  params.srcMemoryType = CU_MEMORYTYPE_DEVICE;
  params.srcDevice = bench.block;
  params.dstMemoryType = CU_MEMORYTYPE_HOST;
  params.dstHost = host;
  params.WidthInBytes = BYTES;
  params.Height = 1;
  params.Depth = 1;
  OK(cu.GraphAddMemcpyNode(&copy, bench.graph, &set, 1, &params, bench.context));
  CUgraphExec exec = must_instantiate(bench.graph);
  memset(host, 0, BYTES);
  launch(exec, bench.stream);
  CHECK(host[0] == 6 && host[BYTES - 1] == 6);
  OK(cu.GraphExecDestroy(exec));
  end(&bench);
  OK(cu.MemFreeHost(host));
}

/* "The node executes an embedded child graph. The child graph is cloned in this call." */
RULE(child_graphs_are_cloned) {
  bench_t bench = must_begin();
  CUgraph child = NULL;
  CUgraphNode node = NULL, after = NULL;
  OK(cu.GraphCreate(&child, 0));
  CUDA_MEMSET_NODE_PARAMS params = set_of(bench.block, 3, BYTES);
  CUgraphNode inner = NULL;
  OK(cu.GraphAddMemsetNode(&inner, child, NULL, 0, &params, bench.context));
  OK(cu.GraphAddChildGraphNode(&node, bench.graph, NULL, 0, child));
  OK(cu.GraphDestroy(child));
  after = must_add_set(&bench, node, bench.block, 4, BYTES / 2);
  CHECK(after != NULL);
  CUgraphExec exec = must_instantiate(bench.graph);
  launch(exec, bench.stream);
  must_hold(bench.block, 4, BYTES / 2);
  must_hold(bench.block + BYTES / 2, 3, BYTES / 2);
  OK(cu.GraphExecDestroy(exec));
  end(&bench);
}

/* "Each launch of the graph will record event to capture execution of the node's dependencies." */
RULE(events_are_recorded_by_nodes) {
  gate_t gate;
  bench_t bench = must_begin();
  CUevent event = must_event(CU_EVENT_DISABLE_TIMING);
  CUgraphNode set = must_add_set(&bench, NULL, bench.block, 8, BYTES), node = NULL;
  OK(cu.GraphAddEventRecordNode(&node, bench.graph, &set, 1, event));
  CUgraphExec exec = must_instantiate(bench.graph);
  OK(cu.EventQuery(event));
  gate_close(&gate, bench.stream);
  OK(cu.GraphLaunch(exec, bench.stream));
  GIVES(cu.EventQuery(event), CUDA_ERROR_NOT_READY);
  gate_open(&gate);
  OK(cu.EventSynchronize(event));
  must_hold(bench.block, 8, BYTES);
  OK(cu.StreamSynchronize(bench.stream));
  OK(cu.GraphExecDestroy(exec));
  OK(cu.EventDestroy(event));
  end(&bench);
}

/* "Each launch of the graph will wait for all work captured in event." */
RULE(events_are_waited_for_by_nodes) {
  gate_t gate;
  bench_t bench = must_begin();
  CUevent event = must_event(CU_EVENT_DISABLE_TIMING);
  CUstream other = must_stream(CU_STREAM_NON_BLOCKING);
  CUgraphNode wait = NULL;
  OK(cu.GraphAddEventWaitNode(&wait, bench.graph, NULL, 0, event));
  must_add_set(&bench, wait, bench.block, 2, BYTES);
  CUgraphExec exec = must_instantiate(bench.graph);
  gate_close(&gate, other);
  OK(cu.MemsetD8Async(bench.block, 1, BYTES, other));
  OK(cu.EventRecord(event, other));
  OK(cu.GraphLaunch(exec, bench.stream));
  sleep_ms(10);
  GIVES(cu.StreamQuery(bench.stream), CUDA_ERROR_NOT_READY);
  gate_open(&gate);
  OK(cu.StreamSynchronize(bench.stream));
  must_hold(bench.block, 2, BYTES);
  OK(cu.GraphExecDestroy(exec));
  OK(cu.EventDestroy(event));
  OK(cu.StreamDestroy(other));
  end(&bench);
}

/* Edges are what was asked for, and can be taken away again. */
RULE(edges_are_known) {
  bench_t bench = must_begin();
  CUgraphNode one = NULL, two = NULL, from[4], to[4];
  size_t count = 4;
  OK(cu.GraphAddEmptyNode(&one, bench.graph, NULL, 0));
  OK(cu.GraphAddEmptyNode(&two, bench.graph, &one, 1));
  OK(cu.GraphGetEdges(bench.graph, from, to, NULL, &count));
  SAME(count, 1);
  CHECK(from[0] == one && to[0] == two);
  count = 4;
  OK(cu.GraphNodeGetDependencies(two, from, NULL, &count));
  SAME(count, 1);
  CHECK(from[0] == one);
  OK(cu.GraphRemoveDependencies(bench.graph, &one, &two, NULL, 1));
  OK(cu.GraphGetEdges(bench.graph, NULL, NULL, NULL, &count));
  SAME(count, 0);
  OK(cu.GraphGetRootNodes(bench.graph, NULL, &count));
  SAME(count, 2);
  OK(cu.GraphAddDependencies(bench.graph, &one, &two, NULL, 1));
  /* With its edges. */
  OK(cu.GraphDestroyNode(one));
  OK(cu.GraphGetEdges(bench.graph, NULL, NULL, NULL, &count));
  SAME(count, 0);
  OK(cu.GraphGetNodes(bench.graph, NULL, &count));
  SAME(count, 1);
  end(&bench);
}

/* A graph whose nodes depend on each other in a circle is not made executable. */
RULE(circles_are_refused) {
  bench_t bench = must_begin();
  CUgraphNode one = NULL, two = NULL;
  CUgraphExec exec = NULL;
  OK(cu.GraphAddEmptyNode(&one, bench.graph, NULL, 0));
  OK(cu.GraphAddEmptyNode(&two, bench.graph, &one, 1));
  CUresult added = cu.GraphAddDependencies(bench.graph, &two, &one, NULL, 1);
  CHECK(added != CUDA_SUCCESS ||
        cu.GraphInstantiateWithFlags(&exec, bench.graph, 0) != CUDA_SUCCESS);
  end(&bench);
}

/* "Dependencies may not have any duplicate entries", and lie in the same graph. */
RULE(dependencies_are_checked) {
  bench_t bench = must_begin();
  CUgraph other = NULL;
  CUgraphNode one = NULL, two = NULL, stranger = NULL;
  OK(cu.GraphCreate(&other, 0));
  OK(cu.GraphAddEmptyNode(&stranger, other, NULL, 0));
  OK(cu.GraphAddEmptyNode(&one, bench.graph, NULL, 0));
  CUgraphNode twice[2] = {one, one};
  GIVES(cu.GraphAddEmptyNode(&two, bench.graph, twice, 2), CUDA_ERROR_INVALID_VALUE);
  GIVES(cu.GraphAddEmptyNode(&two, bench.graph, &stranger, 1), CUDA_ERROR_INVALID_VALUE);
  OK(cu.GraphDestroy(other));
  end(&bench);
}

/* ---- Changes to what was made executable -------------------------------------------------------------------- */

/* "The updated parameters apply to future launches": of the executable, not of the graph. */
RULE(nodes_of_executables_are_changed) {
  bench_t bench = must_begin();
  CUgraphNode node = must_add_set(&bench, NULL, bench.block, 1, BYTES);
  CUgraphExec exec = must_instantiate(bench.graph);
  CUDA_MEMSET_NODE_PARAMS params = set_of(bench.block, 2, BYTES);
  OK(cu.GraphExecMemsetNodeSetParams(exec, node, &params, bench.context));
  launch(exec, bench.stream);
  must_hold(bench.block, 2, BYTES);
  CUgraphExec second = must_instantiate(bench.graph);
  launch(second, bench.stream);
  must_hold(bench.block, 1, BYTES);
  OK(cu.GraphExecDestroy(exec));
  OK(cu.GraphExecDestroy(second));
  end(&bench);
}

/* "Updates the node parameters in the instantiated graph with the node parameters in a topologically
 * identical graph." */
RULE(executables_are_updated) {
  bench_t bench = must_begin(), other = must_begin();
  must_add_set(&bench, NULL, bench.block, 1, BYTES);
  must_add_set(&other, NULL, bench.block, 5, BYTES);
  CUgraphExec exec = must_instantiate(bench.graph);
  CUgraphExecUpdateResultInfo info;
  memset(&info, 0, sizeof info);
  OK(cu.GraphExecUpdate(exec, other.graph, &info));
  SAME(info.result, CU_GRAPH_EXEC_UPDATE_SUCCESS);
  launch(exec, bench.stream);
  must_hold(bench.block, 5, BYTES);
  /* Of another shape. */
  CUgraphNode more = NULL;
  OK(cu.GraphAddEmptyNode(&more, other.graph, NULL, 0));
  GIVES(cu.GraphExecUpdate(exec, other.graph, &info), CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE);
  CHECK(info.result != CU_GRAPH_EXEC_UPDATE_SUCCESS);
  launch(exec, bench.stream);
  must_hold(bench.block, 5, BYTES);
  OK(cu.GraphExecDestroy(exec));
  end(&other);
  end(&bench);
}

static void CUDA_CB adds(void *argument) { atomic_fetch_add((atomic_int *)argument, 1); }

/* What a host node calls can be read and changed. */
RULE(host_nodes_are_changed) {
  bench_t bench = must_begin();
  atomic_int first = 0, second = 0;
  CUDA_HOST_NODE_PARAMS params, read;
  CUgraphNode node = NULL;
  memset(&params, 0, sizeof params);
  params.fn = adds;
  params.userData = &first;
  OK(cu.GraphAddHostNode(&node, bench.graph, NULL, 0, &params));
  memset(&read, 0, sizeof read);
  OK(cu.GraphHostNodeGetParams(node, &read));
  CHECK(read.fn == adds && read.userData == &first);
  CUgraphExec exec = must_instantiate(bench.graph);
  params.userData = &second;
  OK(cu.GraphExecHostNodeSetParams(exec, node, &params));
  launch(exec, bench.stream);
  SAME(atomic_load(&first), 0);
  SAME(atomic_load(&second), 1);
  OK(cu.GraphExecDestroy(exec));
  end(&bench);
}

/* ---- Capturing into a graph ---------------------------------------------------------------------------------- */

/* "All operations pushed into the stream will not be executed, but will instead be captured into hGraph",
 * behind the dependencies that are given; "the graph will be returned by cuStreamEndCapture" as it is. */
RULE(streams_capture_into_a_graph) {
  bench_t bench = must_begin();
  CUgraphNode first = must_add_set(&bench, NULL, bench.block, 1, BYTES);
  CUgraph same = NULL;
  OK(cu.StreamBeginCaptureToGraph(bench.stream, bench.graph, &first, NULL, 1,
                                  CU_STREAM_CAPTURE_MODE_GLOBAL));
  OK(cu.MemsetD8Async(bench.block, 2, BYTES / 2, bench.stream));
  OK(cu.StreamEndCapture(bench.stream, &same));
  CHECK(same == bench.graph);
  size_t count = 0;
  OK(cu.GraphGetEdges(bench.graph, NULL, NULL, NULL, &count));
  SAME(count, 1);
  CUgraphExec exec = must_instantiate(bench.graph);
  launch(exec, bench.stream);
  must_hold(bench.block, 2, BYTES / 2);
  must_hold(bench.block + BYTES / 2, 1, BYTES / 2);
  OK(cu.GraphExecDestroy(exec));
  end(&bench);
}

/* Nodes that were added by hand to the graph of a capture become dependencies of what is captured next. */
RULE(dependencies_of_a_capture_are_changed) {
  bench_t bench = must_begin();
  CUgraph graph = NULL, inside = NULL;
  CUstreamCaptureStatus status;
  const CUgraphNode *dependencies = NULL;
  size_t count = 0;
  OK(cu.StreamBeginCapture(bench.stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
  OK(cu.StreamGetCaptureInfo(bench.stream, &status, NULL, &inside, NULL, NULL, NULL));
  CUDA_MEMSET_NODE_PARAMS params = set_of(bench.block, 7, BYTES);
  CUgraphNode node = NULL;
  OK(cu.GraphAddMemsetNode(&node, inside, NULL, 0, &params, bench.context));
  OK(cu.StreamUpdateCaptureDependencies(bench.stream, &node, NULL, 1,
                                        CU_STREAM_SET_CAPTURE_DEPENDENCIES));
  OK(cu.StreamGetCaptureInfo(bench.stream, &status, NULL, NULL, &dependencies, NULL, &count));
  SAME(count, 1);
  CHECK(dependencies[0] == node);
  OK(cu.MemsetD8Async(bench.block, 8, BYTES / 2, bench.stream));
  OK(cu.StreamEndCapture(bench.stream, &graph));
  CUgraphExec exec = must_instantiate(graph);
  launch(exec, bench.stream);
  must_hold(bench.block, 8, BYTES / 2);
  must_hold(bench.block + BYTES / 2, 7, BYTES / 2);
  OK(cu.GraphExecDestroy(exec));
  OK(cu.GraphDestroy(graph));
  end(&bench);
}
