/* cuMemFree while work on the block is queued: whatever gets the memory next, that work never writes to it.
 *
 * The driver's cuMemFree waits for the device. One that keeps memory need not wait, but must not hand the
 * memory out before. Argument "devices": the work is another device's, for which the driver does not wait. */
#include "fill_kernel.h"

enum { ROUNDS = 4, OLD = 0xaa, NEW = 0x55 };

static const size_t sizes[] = {4, 512, 5000, 64 * KIB, MIB, 2 * MIB, 5 * MIB + 1024};

/* By what the block is written. */
enum { BY_SET, BY_COPY, BY_KERNEL, BY_GRAPH, WRITERS };

/* Who gets the memory next. */
enum { SAME_SIZE, MANY_SMALL, STREAM_ORDERED, PITCHED, TAKERS };

/* A stream, the context whose it is, and a copy's source and a kernel of that context. */
typedef struct {
  CUcontext context;
  CUstream stream;
  CUdeviceptr source;
  CUfunction fill;
} queue_t;

static queue_t new_queue(CUcontext context, CUstream stream, unsigned int flags) {
  queue_t queue = {context, stream, 0, NULL};
  OK(cuCtxPushCurrent(context));
  if (stream == NULL) queue.stream = must_stream(flags);
  queue.source = must_alloc(sizes[COUNT_OF(sizes) - 1]);
  fill_now(queue.source, OLD, sizes[COUNT_OF(sizes) - 1]);
  queue.fill = load_fill();
  OK(cuCtxPopCurrent(NULL));
  return queue;
}

static void launch_as_graph(CUdeviceptr block, size_t bytes, const queue_t *queue) {
  CUgraph graph = NULL;
  CUgraphNode node = NULL;
  CUgraphExec exec = NULL;
  CUDA_MEMSET_NODE_PARAMS set = {.dst = block, .value = OLD, .elementSize = 1, .width = bytes, .height = 1};
  OK(cuGraphCreate(&graph, 0));
  OK(cuGraphAddMemsetNode(&node, graph, NULL, 0, &set, queue->context));
  OK(cuGraphInstantiate(&exec, graph, 0));
  OK(cuGraphLaunch(exec, queue->stream));
  OK(cuGraphExecDestroy(exec));
  OK(cuGraphDestroy(graph));
}

/* Queues a write of the whole block, which comes late. */
static void write_late(CUdeviceptr block, size_t bytes, int writer, const queue_t *queue) {
  OK(cuCtxPushCurrent(queue->context));
  delay(queue->stream, 2);
  if (writer == BY_SET) OK(cuMemsetD8Async(block, OLD, bytes, queue->stream));
  if (writer == BY_COPY) OK(cuMemcpyDtoDAsync(block, queue->source, bytes, queue->stream));
  if (writer == BY_KERNEL) launch_fill(queue->fill, block, OLD, bytes, queue->stream);
  if (writer == BY_GRAPH) launch_as_graph(block, bytes, queue);
  OK(cuCtxPopCurrent(NULL));
}

/* Allocates, writes on stream `b`, lets all work end, and looks. */
static void take(size_t bytes, int taker, CUstream b, const queue_t *queue) {
  CUdeviceptr blocks[16] = {0};
  size_t count = taker == MANY_SMALL ? COUNT_OF(blocks) : 1, pitch = 0;
  size_t each = taker == MANY_SMALL ? (bytes + COUNT_OF(blocks) - 1) / COUNT_OF(blocks) : bytes;
  for (size_t at = 0; at < count; at++) {
    if (taker == STREAM_ORDERED)
      blocks[at] = must_alloc_async(each, b);
    else if (taker == PITCHED)
      OK(cuMemAllocPitch(&blocks[at], &pitch, each, 1, 4));
    else
      blocks[at] = must_alloc(each);
    OK(cuMemsetD8Async(blocks[at], NEW, each, b));
  }
  OK(cuStreamSynchronize(b));
  OK(cuCtxPushCurrent(queue->context));
  OK(cuStreamSynchronize(queue->stream));
  OK(cuCtxPopCurrent(NULL));
  for (size_t at = 0; at < count; at++) HOLDS(blocks[at], NEW, each);
  for (size_t at = 0; at < count; at++)
    OK(taker == STREAM_ORDERED ? cuMemFreeAsync(blocks[at], b) : cuMemFree(blocks[at]));
}

static void every_way(const queue_t *queue, CUstream b) {
  for (int round = 0; round < ROUNDS; round++)
    for (size_t at = 0; at < COUNT_OF(sizes); at++) {
      /* Each writer with each taker, in the course of the rounds. */
      int writer = (int)at % WRITERS, taker = ((int)at + round) % TAKERS;
      CUdeviceptr block = must_alloc(sizes[at]);
      write_late(block, sizes[at], writer, queue);
      OK(cuMemFree(block));
      take(sizes[at], taker, b, queue);
    }
}

static void *on_its_own_thread(void *context) {
  OK(cuCtxSetCurrent(context));
  CUstream b = must_stream(CU_STREAM_NON_BLOCKING);
  queue_t queue = new_queue(context, CU_STREAM_PER_THREAD, 0);
  every_way(&queue, b);
  return NULL;
}

/* The current device's memory, written by the other one. */
static void of_another_device(int other) {
  CUcontext here = NULL, there = NULL;
  OK(cuCtxGetCurrent(&here));
  OK(cuDevicePrimaryCtxRetain(&there, other));
  OK(cuCtxPushCurrent(there));
  OK(cuCtxEnablePeerAccess(here, 0));
  OK(cuCtxPopCurrent(NULL));
  CUstream b = must_stream(CU_STREAM_NON_BLOCKING);
  queue_t queue = new_queue(there, NULL, CU_STREAM_NON_BLOCKING);
  every_way(&queue, b);
}

int main(int count, char **arguments) {
  CUcontext context = start(), further = NULL;
  if (has_argument(count, arguments, "devices")) {
    CHECK(devices() > 1);
    of_another_device(1);
    use_device(1);
    of_another_device(0);
    return 0;
  }
  CUstream b = must_stream(CU_STREAM_NON_BLOCKING);
  queue_t queues[] = {new_queue(context, NULL, CU_STREAM_DEFAULT),
                      new_queue(context, NULL, CU_STREAM_NON_BLOCKING),
                      new_queue(context, CU_STREAM_LEGACY, 0)};
  for (size_t at = 0; at < COUNT_OF(queues); at++) every_way(&queues[at], b);
  on_a_thread(on_its_own_thread, context);

  OK(cuCtxCreate(&further, NULL, 0, 0));
  OK(cuCtxSetCurrent(context));
  queue_t queue = new_queue(further, NULL, CU_STREAM_NON_BLOCKING);
  every_way(&queue, b);
  /* And the memory of the further context, written by the primary one. */
  OK(cuCtxSetCurrent(further));
  CUstream c = must_stream(CU_STREAM_NON_BLOCKING);
  every_way(&queues[1], c);
  return 0;
}
