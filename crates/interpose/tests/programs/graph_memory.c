/* Memory of a graph is the graph's: a captured cuMemAllocAsync is a node, which allocates at each launch at the
 * same address, and whatever else the program allocates in the meantime is other memory. */
#include "program.h"

enum { BYTES = 2 << 20, BLOCKS = 16 };

static CUmemoryPool standard;

static CUgraph capture(CUstream stream, CUdeviceptr *scratch, CUdeviceptr result, CUstreamCaptureMode mode) {
  CUgraph graph = NULL;
  OK(cuStreamBeginCapture(stream, mode));
  if (mode == CU_STREAM_CAPTURE_MODE_GLOBAL)
    OK(cuMemAllocAsync(scratch, BYTES, stream));
  else
    OK(cuMemAllocFromPoolAsync(scratch, BYTES, standard, stream));
  OK(cuMemsetD8Async(*scratch, 3, BYTES, stream));
  OK(cuMemcpyDtoDAsync(result, *scratch, BYTES, stream));
  OK(cuMemFreeAsync(*scratch, stream));
  OK(cuStreamEndCapture(stream, &graph));
  CHECK(graph != NULL);
  return graph;
}

static int nodes_of_type(CUgraph graph, CUgraphNodeType wanted) {
  CUgraphNode nodes[16];
  size_t count = COUNT_OF(nodes);
  int found = 0;
  OK(cuGraphGetNodes(graph, nodes, &count));
  for (size_t at = 0; at < count; at++) {
    CUgraphNodeType type = CU_GRAPH_NODE_TYPE_EMPTY;
    OK(cuGraphNodeGetType(nodes[at], &type));
    found += type == wanted;
  }
  return found;
}

int main(void) {
  static const CUstreamCaptureMode modes[] = {CU_STREAM_CAPTURE_MODE_GLOBAL, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL,
                                              CU_STREAM_CAPTURE_MODE_RELAXED};
  start();
  OK(cuDeviceGetDefaultMemPool(&standard, 0));
  CUstream stream = must_stream(CU_STREAM_NON_BLOCKING);
  CUdeviceptr result = must_alloc(BYTES);
  for (size_t at = 0; at < COUNT_OF(modes); at++) {
    CUdeviceptr scratch = 0, blocks[BLOCKS];
    CUgraphExec exec = NULL;
    /* Cached memory of the same size does not serve the capture. */
    OK(cuMemFreeAsync(must_alloc_async(BYTES, stream), stream));
    OK(cuMemFree(must_alloc(BYTES)));
    OK(cuStreamSynchronize(stream));
    CUgraph graph = capture(stream, &scratch, result, modes[at]);
    SAME(nodes_of_type(graph, CU_GRAPH_NODE_TYPE_MEM_ALLOC), 1);
    SAME(nodes_of_type(graph, CU_GRAPH_NODE_TYPE_MEM_FREE), 1);
    OK(cuGraphInstantiate(&exec, graph, 0));
    for (int launch = 0; launch < 2; launch++) {
      for (int block = 0; block < BLOCKS; block++) {
        blocks[block] = block % 2 == 0 ? must_alloc(BYTES) : must_alloc_async(BYTES, stream);
        CHECK(blocks[block] != scratch);
        OK(cuMemsetD8Async(blocks[block], 4, BYTES, stream));
      }
      OK(cuMemsetD8Async(result, 0, BYTES, stream));
      OK(cuGraphLaunch(exec, stream));
      OK(cuStreamSynchronize(stream));
      HOLDS(result, 3, BYTES);
      for (int block = 0; block < BLOCKS; block++) {
        HOLDS(blocks[block], 4, BYTES);
        OK(block % 2 == 0 ? cuMemFree(blocks[block]) : cuMemFreeAsync(blocks[block], stream));
      }
    }
    /* The graph has freed it. */
    CHECK(cuMemFree(scratch) != CUDA_SUCCESS);
    OK(cuGraphExecDestroy(exec));
    OK(cuGraphDestroy(graph));
    OK(cuCtxSynchronize());
    OK(cuDeviceGraphMemTrim(0));
    cuuint64_t kept = 1;
    OK(cuDeviceGetGraphMemAttribute(0, CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT, &kept));
    SAME(kept, 0);

    /* Allocated in the graph, freed outside of it by either function. */
    for (int way = 0; way < 2; way++) {
      OK(cuStreamBeginCapture(stream, modes[at]));
      OK(cuMemAllocAsync(&scratch, BYTES, stream));
      OK(cuMemsetD8Async(scratch, 6, BYTES, stream));
      OK(cuStreamEndCapture(stream, &graph));
      OK(cuGraphInstantiate(&exec, graph, 0));
      OK(cuGraphLaunch(exec, stream));
      OK(cuStreamSynchronize(stream));
      HOLDS(scratch, 6, BYTES);
      OK(way == 0 ? cuMemFreeAsync(scratch, stream) : cuMemFree(scratch));
      OK(cuStreamSynchronize(stream));
      OK(cuGraphExecDestroy(exec));
      OK(cuGraphDestroy(graph));
    }
  }
  OK(cuMemFree(result));
  OK(cuStreamDestroy(stream));
  return 0;
}
