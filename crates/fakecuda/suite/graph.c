/* Graphs: nodes, launches, memory that belongs to a graph, and what lives as long as one. */
#include "suite.h"

enum { BYTES = 1 << 20 };

static CUgraph must_create(void) {
  CUgraph graph = NULL;
  OK(cu.GraphCreate(&graph, 0));
  CHECK(graph != NULL);
  return graph;
}

static CUgraphExec must_instantiate(CUgraph graph, unsigned long long flags) {
  CUgraphExec exec = NULL;
  OK(cu.GraphInstantiateWithFlags(&exec, graph, flags));
  CHECK(exec != NULL);
  return exec;
}

static void launch(CUgraphExec exec, CUstream stream) {
  OK(cu.GraphLaunch(exec, stream));
  OK(cu.StreamSynchronize(stream));
}

typedef struct {
  atomic_int next;
  int seen[8];
} order_t;

typedef struct {
  order_t *order;
  int number;
} step_t;

static void CUDA_CB takes_a_step(void *argument) {
  step_t *step = argument;
  step->order->seen[atomic_fetch_add(&step->order->next, 1)] = step->number;
}

static CUgraphNode must_add_host(CUgraph graph, const CUgraphNode *after, size_t count, step_t *step) {
  CUDA_HOST_NODE_PARAMS params;
  memset(&params, 0, sizeof params);
  params.fn = takes_a_step;
  params.userData = step;
  CUgraphNode node = NULL;
  OK(cu.GraphAddHostNode(&node, graph, after, count, &params));
  CHECK(node != NULL);
  return node;
}

/* Nodes run after those that they depend on, whatever order they were added in. */
RULE(nodes_run_in_the_order_of_their_edges) {
  order_t order = {0};
  step_t steps[3] = {{&order, 0}, {&order, 1}, {&order, 2}};
  CUgraph graph = must_create();
  CUgraphNode last = must_add_host(graph, NULL, 0, &steps[2]);
  CUgraphNode first = must_add_host(graph, NULL, 0, &steps[0]);
  CUgraphNode middle = must_add_host(graph, &first, 1, &steps[1]);
  OK(cu.GraphAddDependencies(graph, &middle, &last, NULL, 1));
  CUstream stream = must_stream(CU_STREAM_NON_BLOCKING);
  CUgraphExec exec = must_instantiate(graph, 0);
  launch(exec, stream);
  SAME(atomic_load(&order.next), 3);
  for (int at = 0; at < 3; at++) SAME(order.seen[at], at);
  size_t nodes = 0, roots = 0;
  OK(cu.GraphGetNodes(graph, NULL, &nodes));
  OK(cu.GraphGetRootNodes(graph, NULL, &roots));
  SAME(nodes, 3);
  SAME(roots, 1);
  OK(cu.GraphExecDestroy(exec));
  OK(cu.GraphDestroy(graph));
  OK(cu.StreamDestroy(stream));
}

/* An executable graph is its own: it runs after the graph it came from is gone. */
RULE(executables_outlive_their_graph) {
  order_t order = {0};
  step_t step = {&order, 5};
  CUgraph graph = must_create();
  must_add_host(graph, NULL, 0, &step);
  CUgraphExec exec = must_instantiate(graph, 0);
  OK(cu.GraphDestroy(graph));
  CUstream stream = must_stream(CU_STREAM_NON_BLOCKING);
  launch(exec, stream);
  SAME(atomic_load(&order.next), 1);
  OK(cu.GraphExecDestroy(exec));
  OK(cu.StreamDestroy(stream));
}

/* "If the executable graph is in-flight, it will not be terminated, but rather freed asynchronously on
 * completion." */
RULE(a_running_executable_may_be_destroyed) {
  order_t order = {0};
  step_t step = {&order, 5};
  gate_t gate;
  CUgraph graph = must_create();
  must_add_host(graph, NULL, 0, &step);
  CUgraphExec exec = must_instantiate(graph, 0);
  CUstream stream = must_stream(CU_STREAM_NON_BLOCKING);
  gate_close(&gate, stream);
  OK(cu.GraphLaunch(exec, stream));
  OK(cu.GraphExecDestroy(exec));
  OK(cu.GraphDestroy(graph));
  gate_open(&gate);
  OK(cu.StreamSynchronize(stream));
  SAME(atomic_load(&order.next), 1);
  OK(cu.StreamDestroy(stream));
}

/* "Each launch is ordered behind both any previous work in hStream and any previous launches of
 * hGraphExec." */
RULE(launches_run_one_after_another) {
  gate_t gate;
  CUgraph graph = must_create();
  CUdeviceptr block = must_alloc(BYTES);
  CUDA_MEMSET_NODE_PARAMS params;
  memset(&params, 0, sizeof params);
  params.dst = block;
  params.elementSize = 1;
  params.value = 3;
  params.width = BYTES;
  params.height = 1;
  CUgraphNode node = NULL;
  CUcontext context = NULL;
  OK(cu.CtxGetCurrent(&context));
  OK(cu.GraphAddMemsetNode(&node, graph, NULL, 0, &params, context));
  CUgraphExec exec = must_instantiate(graph, 0);
  CUstream one = must_stream(CU_STREAM_NON_BLOCKING), two = must_stream(CU_STREAM_NON_BLOCKING);
  OK(cu.MemsetD8(block, 0, BYTES));
  OK(cu.CtxSynchronize());
  gate_close(&gate, one);
  OK(cu.GraphLaunch(exec, one));
  OK(cu.GraphLaunch(exec, two));
  sleep_ms(10);
  GIVES(cu.StreamQuery(two), CUDA_ERROR_NOT_READY);
  gate_open(&gate);
  OK(cu.StreamSynchronize(two));
  OK(cu.StreamSynchronize(one));
  must_hold(block, 3, BYTES);
  OK(cu.GraphExecDestroy(exec));
  OK(cu.GraphDestroy(graph));
  OK(cu.StreamDestroy(one));
  OK(cu.StreamDestroy(two));
  OK(cu.MemFree(block));
}

/* A clone is as the graph was when it was cloned. */
RULE(clones_are_copies) {
  order_t order = {0};
  step_t steps[2] = {{&order, 0}, {&order, 1}};
  CUgraph graph = must_create(), clone = NULL;
  must_add_host(graph, NULL, 0, &steps[0]);
  OK(cu.GraphClone(&clone, graph));
  must_add_host(graph, NULL, 0, &steps[1]);
  size_t nodes = 0;
  OK(cu.GraphGetNodes(clone, NULL, &nodes));
  SAME(nodes, 1);
  OK(cu.GraphDestroy(graph));
  CUstream stream = must_stream(CU_STREAM_NON_BLOCKING);
  CUgraphExec exec = must_instantiate(clone, 0);
  launch(exec, stream);
  SAME(atomic_load(&order.next), 1);
  OK(cu.GraphExecDestroy(exec));
  OK(cu.GraphDestroy(clone));
  OK(cu.StreamDestroy(stream));
}

/* A captured copy node copies what is there when the graph runs. */
RULE(copies_are_of_the_time_of_the_launch) {
  unsigned char *host = must_alloc_host(BYTES);
  CUdeviceptr block = must_alloc(BYTES);
  CUstream stream = must_stream(CU_STREAM_NON_BLOCKING);
  CUgraph graph = NULL;
  OK(cu.StreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
  OK(cu.MemcpyHtoDAsync(block, host, BYTES, stream));
  OK(cu.StreamEndCapture(stream, &graph));
  CUgraphExec exec = must_instantiate(graph, 0);
  for (int round = 1; round < 4; round++) {
    memset(host, round, BYTES);
    launch(exec, stream);
    must_hold(block, (unsigned char)round, BYTES);
  }
  OK(cu.GraphExecDestroy(exec));
  OK(cu.GraphDestroy(graph));
  OK(cu.StreamDestroy(stream));
  OK(cu.MemFree(block));
  OK(cu.MemFreeHost(host));
}

/* ---- Memory of a graph ---------------------------------------------------------------------------------- */

/* A graph captured from `stream`: allocates, sets to `value`, copies the first byte to `seen`; frees at
 * the end if it is told to. The allocation's address comes back. */
static CUgraph captured_allocation(CUstream stream, unsigned char value, unsigned char *seen, bool freed,
                                   CUdeviceptr *block) {
  CUgraph graph = NULL;
  OK(cu.StreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
  OK(cu.MemAllocAsync(block, BYTES, stream));
  CHECK(*block != 0);
  OK(cu.MemsetD8Async(*block, value, BYTES, stream));
  OK(cu.MemcpyDtoHAsync(seen, *block, 1, stream));
  if (freed) OK(cu.MemFreeAsync(*block, stream));
  OK(cu.StreamEndCapture(stream, &graph));
  CHECK(graph != NULL);
  return graph;
}

/* "During stream capture, this function results in the creation of an allocation node", and of a free
 * node; the graph runs any number of times. */
RULE(captured_allocations_are_nodes) {
  need_pools();
  unsigned char *seen = must_alloc_host(1);
  CUstream stream = must_stream(CU_STREAM_NON_BLOCKING);
  CUdeviceptr block = 0;
  CUgraph graph = captured_allocation(stream, 9, seen, true, &block);
  CUgraphNode nodes[8];
  size_t count = 8;
  int allocations = 0, frees = 0;
  OK(cu.GraphGetNodes(graph, nodes, &count));
  SAME(count, 4);
  for (size_t at = 0; at < count; at++) {
    CUgraphNodeType type;
    OK(cu.GraphNodeGetType(nodes[at], &type));
    if (type == CU_GRAPH_NODE_TYPE_MEM_ALLOC) {
      CUDA_MEM_ALLOC_NODE_PARAMS params;
      OK(cu.GraphMemAllocNodeGetParams(nodes[at], &params));
      SAME(params.dptr, block);
      SAME(params.bytesize, BYTES);
      allocations++;
    }
    if (type == CU_GRAPH_NODE_TYPE_MEM_FREE) {
      CUdeviceptr freed = 0;
      OK(cu.GraphMemFreeNodeGetParams(nodes[at], &freed));
      SAME(freed, block);
      frees++;
    }
  }
  SAME(allocations, 1);
  SAME(frees, 1);
  CUgraphExec exec = must_instantiate(graph, 0);
  for (int round = 0; round < 3; round++) {
    *seen = 0;
    launch(exec, stream);
    SAME(*seen, 9);
  }
  OK(cu.GraphExecDestroy(exec));
  OK(cu.GraphDestroy(graph));
  OK(cu.StreamDestroy(stream));
  OK(cu.MemFreeHost(seen));
}

/* "If the allocation is not freed in the same graph, then it can be accessed [...] by stream operations
 * ordered after the graph's execution but before the allocation is freed"; "if any allocations created by
 * hGraphExec remain unfreed [...] the launch will fail with CUDA_ERROR_INVALID_VALUE." */
RULE(unfreed_allocations_stop_the_next_launch) {
  need_pools();
  unsigned char *seen = must_alloc_host(1);
  CUstream stream = must_stream(CU_STREAM_NON_BLOCKING);
  CUdeviceptr block = 0;
  CUgraph graph = captured_allocation(stream, 7, seen, false, &block);
  CUgraphExec exec = must_instantiate(graph, 0);
  launch(exec, stream);
  must_hold(block, 7, BYTES);
  GIVES(cu.GraphLaunch(exec, stream), CUDA_ERROR_INVALID_VALUE);
  OK(cu.MemFreeAsync(block, stream));
  launch(exec, stream);
  must_hold(block, 7, BYTES);
  OK(cu.MemFreeAsync(block, stream));
  OK(cu.StreamSynchronize(stream));
  OK(cu.GraphExecDestroy(exec));
  OK(cu.GraphDestroy(graph));
  OK(cu.StreamDestroy(stream));
  OK(cu.MemFreeHost(seen));
}

/* "CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH, which makes each launch behave as though it called
 * cuMemFreeAsync for every unfreed allocation." */
RULE(unfreed_allocations_can_be_freed_by_the_launch) {
  need_pools();
  unsigned char *seen = must_alloc_host(1);
  CUstream stream = must_stream(CU_STREAM_NON_BLOCKING);
  CUdeviceptr block = 0;
  CUgraph graph = captured_allocation(stream, 7, seen, false, &block);
  CUgraphExec exec = must_instantiate(graph, CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH);
  for (int round = 0; round < 3; round++) {
    launch(exec, stream);
    must_hold(block, 7, BYTES);
  }
  OK(cu.MemFreeAsync(block, stream));
  OK(cu.StreamSynchronize(stream));
  OK(cu.GraphExecDestroy(exec));
  OK(cu.GraphDestroy(graph));
  OK(cu.StreamDestroy(stream));
  OK(cu.MemFreeHost(seen));
}

/* "If hGraph contains any allocation or free nodes, there can be at most one executable graph in existence
 * for that graph at a time"; "the graph cannot be cloned." */
RULE(graphs_with_memory_are_instantiated_once) {
  need_pools();
  unsigned char *seen = must_alloc_host(1);
  CUstream stream = must_stream(CU_STREAM_NON_BLOCKING);
  CUdeviceptr block = 0;
  CUgraph graph = captured_allocation(stream, 7, seen, true, &block), clone = NULL;
  CUgraphExec exec = must_instantiate(graph, 0), second = NULL;
  REFUSED(cu.GraphInstantiateWithFlags(&second, graph, 0));
  REFUSED(cu.GraphClone(&clone, graph));
  OK(cu.GraphExecDestroy(exec));
  exec = must_instantiate(graph, 0);
  OK(cu.GraphExecDestroy(exec));
  OK(cu.GraphDestroy(graph));
  OK(cu.StreamDestroy(stream));
  OK(cu.MemFreeHost(seen));
}

/* Allocation and free nodes added by hand: the address "remains fixed across instantiations and
 * launches"; a second free of it in the graph is refused, and the free of another's memory. */
RULE(memory_nodes_are_checked) {
  need_pools();
  CUgraph graph = must_create();
  CUDA_MEM_ALLOC_NODE_PARAMS params;
  memset(&params, 0, sizeof params);
  params.poolProps.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  params.poolProps.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  params.bytesize = BYTES;
  CUgraphNode allocation = NULL, freed = NULL;
  OK(cu.GraphAddMemAllocNode(&allocation, graph, NULL, 0, &params));
  CHECK(params.dptr != 0);
  CUdeviceptr other = must_alloc(4096);
  GIVES(cu.GraphAddMemFreeNode(&freed, graph, &allocation, 1, other), CUDA_ERROR_INVALID_VALUE);
  OK(cu.GraphAddMemFreeNode(&freed, graph, &allocation, 1, params.dptr));
  GIVES(cu.GraphAddMemFreeNode(&freed, graph, &allocation, 1, params.dptr), CUDA_ERROR_INVALID_VALUE);
  CUstream stream = must_stream(CU_STREAM_NON_BLOCKING);
  CUgraphExec exec = must_instantiate(graph, 0);
  launch(exec, stream);
  launch(exec, stream);
  OK(cu.GraphExecDestroy(exec));
  OK(cu.GraphDestroy(graph));
  OK(cu.StreamDestroy(stream));
  OK(cu.MemFree(other));
}

/* What graphs keep for their memory is seen, and given back by cuDeviceGraphMemTrim. */
RULE(graph_memory_is_counted_and_trimmed) {
  need_pools();
  unsigned char *seen = must_alloc_host(1);
  CUstream stream = must_stream(CU_STREAM_NON_BLOCKING);
  CUdeviceptr block = 0;
  cuuint64_t used = 0, reserved = 0;
  CUgraph graph = captured_allocation(stream, 7, seen, false, &block);
  CUgraphExec exec = must_instantiate(graph, 0);
  launch(exec, stream);
  OK(cu.DeviceGetGraphMemAttribute(0, CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT, &used));
  OK(cu.DeviceGetGraphMemAttribute(0, CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT, &reserved));
  CHECK(used >= BYTES && reserved >= used);
  OK(cu.MemFreeAsync(block, stream));
  OK(cu.StreamSynchronize(stream));
  OK(cu.GraphExecDestroy(exec));
  OK(cu.GraphDestroy(graph));
  OK(cu.CtxSynchronize());
  OK(cu.DeviceGraphMemTrim(0));
  OK(cu.DeviceGetGraphMemAttribute(0, CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT, &used));
  OK(cu.DeviceGetGraphMemAttribute(0, CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT, &reserved));
  SAME(used, 0);
  SAME(reserved, 0);
  OK(cu.StreamDestroy(stream));
  OK(cu.MemFreeHost(seen));
}

/* ---- User objects ----------------------------------------------------------------------------------------- */

static void CUDA_CB is_destroyed(void *argument) { atomic_fetch_add((atomic_int *)argument, 1); }

/* The destructor runs on the driver's own thread. */
static void must_be_destroyed(atomic_int *count) {
  for (int round = 0; round < 5000 && atomic_load(count) == 0; round++) sleep_ms(1);
  SAME(atomic_load(count), 1);
}

static CUuserObject must_create_object(atomic_int *count, unsigned int references) {
  CUuserObject object = NULL;
  OK(cu.UserObjectCreate(&object, count, is_destroyed, references, CU_USER_OBJECT_NO_DESTRUCTOR_SYNC));
  return object;
}

/* "The object's destructor is invoked if the reference count reaches zero." */
RULE(user_objects_live_as_long_as_references) {
  atomic_int count = 0;
  CUuserObject object = must_create_object(&count, 2);
  OK(cu.UserObjectRetain(object, 1));
  OK(cu.UserObjectRelease(object, 2));
  sleep_ms(5);
  SAME(atomic_load(&count), 0);
  OK(cu.UserObjectRelease(object, 1));
  must_be_destroyed(&count);
  GIVES(cu.UserObjectCreate(&object, &count, is_destroyed, 1, 0), CUDA_ERROR_INVALID_VALUE);
  GIVES(cu.UserObjectCreate(&object, &count, is_destroyed, 0, CU_USER_OBJECT_NO_DESTRUCTOR_SYNC),
        CUDA_ERROR_INVALID_VALUE);
}

/* A graph's references are released with the graph and with the last executable made of it. */
RULE(user_objects_live_as_long_as_graphs) {
  atomic_int count = 0;
  order_t order = {0};
  step_t step = {&order, 1};
  CUgraph graph = must_create();
  must_add_host(graph, NULL, 0, &step);
  CUuserObject object = must_create_object(&count, 1);
  OK(cu.GraphRetainUserObject(graph, object, 1, CU_GRAPH_USER_OBJECT_MOVE));
  CUgraphExec exec = must_instantiate(graph, 0);
  OK(cu.GraphDestroy(graph));
  sleep_ms(5);
  SAME(atomic_load(&count), 0);
  CUstream stream = must_stream(CU_STREAM_NON_BLOCKING);
  launch(exec, stream);
  SAME(atomic_load(&count), 0);
  OK(cu.GraphExecDestroy(exec));
  must_be_destroyed(&count);
  OK(cu.StreamDestroy(stream));
}

RULE(user_objects_are_released_by_hand) {
  atomic_int count = 0;
  CUgraph graph = must_create();
  CUuserObject object = must_create_object(&count, 1);
  OK(cu.GraphRetainUserObject(graph, object, 2, 0));
  OK(cu.UserObjectRelease(object, 1));
  OK(cu.GraphReleaseUserObject(graph, object, 1));
  sleep_ms(5);
  SAME(atomic_load(&count), 0);
  OK(cu.GraphReleaseUserObject(graph, object, 1));
  must_be_destroyed(&count);
  OK(cu.GraphDestroy(graph));
}
