// Graphs: by capture and node by node, with memory of their own, and what they keep alive.
#include "check.h"
#include "fakecuda.h"

#include <cuda_runtime.h>
#include <chrono>
#include <thread>

__global__ void increase(int *p, int by, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) p[i] += by;
}

static void stand_in(const fakecuda_launch_t *launch, void *) {
  int *p = static_cast<int *>(fakecuda_host_pointer(*static_cast<unsigned long long *>(launch->params[0])));
  CHECK(p != nullptr);
  int by = *static_cast<int *>(launch->params[1]), n = *static_cast<int *>(launch->params[2]);
  for (int i = 0; i < n; i++) p[i] += by;
}

static void count(void *counter) { ++*static_cast<int *>(counter); }

__device__ int variable[4];

static const int n = 100;

static int first_of(const int *p, cudaStream_t stream) {
  int seen = -1;
  OK(cudaMemcpyAsync(&seen, p, sizeof seen, cudaMemcpyDeviceToHost, stream));
  OK(cudaStreamSynchronize(stream));
  return seen;
}

static void captured(cudaStream_t stream) {
  int *p, calls = 0;
  cudaStreamCaptureStatus status;
  unsigned long long id;
  cudaGraph_t graph;
  cudaGraphExec_t executable;
  OK(cudaMalloc(&p, n * sizeof *p));
  // The stream does not wait for the default stream, nor does the host for a set of device memory.
  OK(cudaMemset(p, 0, n * sizeof *p));
  OK(cudaDeviceSynchronize());
  OK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
  OK(cudaStreamIsCapturing(stream, &status));
  CHECK(status == cudaStreamCaptureStatusActive);
  OK(cudaStreamGetCaptureInfo(stream, &status, &id));
  CHECK(status == cudaStreamCaptureStatusActive && id != 0);
  increase<<<1, n, 0, stream>>>(p, 2, n);
  OK(cudaGetLastError());
  OK(cudaLaunchHostFunc(stream, count, &calls));
  OK(cudaStreamEndCapture(stream, &graph));
  OK(cudaStreamIsCapturing(stream, &status));
  CHECK(status == cudaStreamCaptureStatusNone);
  // Nothing has run yet.
  CHECK(first_of(p, stream) == 0 && calls == 0);

  size_t nodes = 0, edges = 0;
  OK(cudaGraphGetNodes(graph, nullptr, &nodes));
  CHECK(nodes == 2);
  OK(cudaGraphGetEdges(graph, nullptr, nullptr, nullptr, &edges));
  CHECK(edges == 1);
  OK(cudaGraphInstantiate(&executable, graph, 0));
  OK(cudaGraphDestroy(graph));
  OK(cudaGraphUpload(executable, stream));
  for (int i = 0; i < 3; i++) OK(cudaGraphLaunch(executable, stream));
  CHECK(first_of(p, stream) == 6 && calls == 3);
  OK(cudaGraphExecDestroy(executable));
  OK(cudaFree(p));
}

static void forbidden_in_capture(cudaStream_t stream) {
  void *p;
  cudaGraph_t graph;
  OK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
  FAILS(cudaErrorStreamCaptureUnsupported, cudaMalloc(&p, 4096));
  FAILS(cudaErrorStreamCaptureInvalidated, cudaStreamEndCapture(stream, &graph));
  CHECK(graph == nullptr);
  OK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
  FAILS(cudaErrorStreamCaptureUnsupported, cudaStreamSynchronize(stream));
  FAILS(cudaErrorStreamCaptureInvalidated, cudaStreamEndCapture(stream, &graph));

  OK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
  cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
  OK(cudaThreadExchangeStreamCaptureMode(&mode));
  OK(cudaMalloc(&p, 4096));
  OK(cudaThreadExchangeStreamCaptureMode(&mode));
  CHECK(mode == cudaStreamCaptureModeRelaxed);
  OK(cudaStreamEndCapture(stream, &graph));
  OK(cudaGraphDestroy(graph));
  OK(cudaFree(p));
}

static void node_by_node(cudaStream_t stream) {
  cudaGraph_t graph, clone;
  cudaGraphNode_t set, add, read, call, found;
  cudaGraphExec_t executable;
  int *p, seen = 0, calls = 0, by = 5, size = n;
  OK(cudaMalloc(&p, n * sizeof *p));
  OK(cudaGraphCreate(&graph, 0));
  cudaMemsetParams to_three = {};
  to_three.dst = p;
  to_three.value = 3;
  to_three.elementSize = 4;
  to_three.width = n;
  to_three.height = 1;
  OK(cudaGraphAddMemsetNode(&set, graph, nullptr, 0, &to_three));
  void *arguments[] = {&p, &by, &size};
  cudaKernelNodeParams kernel = {};
  kernel.func = reinterpret_cast<void *>(increase);
  kernel.gridDim = dim3(1);
  kernel.blockDim = dim3(n);
  kernel.kernelParams = arguments;
  OK(cudaGraphAddKernelNode(&add, graph, &set, 1, &kernel));
  OK(cudaGraphAddMemcpyNode1D(&read, graph, &add, 1, &seen, p, sizeof seen, cudaMemcpyDeviceToHost));
  cudaHostNodeParams host = {count, &calls};
  OK(cudaGraphAddHostNode(&call, graph, nullptr, 0, &host));
  OK(cudaGraphAddDependencies(graph, &read, &call, nullptr, 1));

  cudaGraphNodeType type;
  OK(cudaGraphNodeGetType(add, &type));
  CHECK(type == cudaGraphNodeTypeKernel);
  size_t roots = 1;
  OK(cudaGraphGetRootNodes(graph, &found, &roots));
  CHECK(roots == 1 && found == set);
  OK(cudaGraphClone(&clone, graph));
  OK(cudaGraphNodeFindInClone(&found, add, clone));
  CHECK(found != nullptr && found != add);
  OK(cudaGraphDestroy(graph));

  OK(cudaGraphInstantiate(&executable, clone, 0));
  by = 1000;  // the value at the time of adding is what counts
  OK(cudaGraphLaunch(executable, stream));
  OK(cudaStreamSynchronize(stream));
  CHECK(seen == 8 && calls == 1);
  OK(cudaGraphExecDestroy(executable));
  OK(cudaGraphDestroy(clone));
  OK(cudaFree(p));
}

// What an instantiated graph can be told to do instead.
static void changed(cudaStream_t stream) {
  cudaGraph_t graph, child;
  cudaGraphNode_t set, add, inside, recorded;
  cudaGraphExec_t executable;
  cudaEvent_t event, other;
  int *p, calls = 0, other_calls = 0, by = 1, size = n;
  OK(cudaMalloc(&p, 2 * n * sizeof *p));
  OK(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
  OK(cudaEventCreateWithFlags(&other, cudaEventDisableTiming));
  OK(cudaGraphCreate(&child, 0));
  cudaHostNodeParams host = {count, &calls};
  OK(cudaGraphAddHostNode(&inside, child, nullptr, 0, &host));
  OK(cudaGraphCreate(&graph, 0));
  cudaMemsetParams zero = {};
  zero.dst = p;
  zero.elementSize = 4;
  zero.width = 2 * n;
  zero.height = 1;
  OK(cudaGraphAddMemsetNode(&set, graph, nullptr, 0, &zero));
  void *arguments[] = {&p, &by, &size};
  cudaKernelNodeParams kernel = {};
  kernel.func = reinterpret_cast<void *>(increase);
  kernel.gridDim = dim3(1);
  kernel.blockDim = dim3(n);
  kernel.kernelParams = arguments;
  OK(cudaGraphAddKernelNode(&add, graph, &set, 1, &kernel));
  OK(cudaGraphAddEventRecordNode(&recorded, graph, &add, 1, event));
  OK(cudaGraphAddChildGraphNode(&inside, graph, &recorded, 1, child));
  OK(cudaGraphDestroy(child));
  OK(cudaGraphInstantiate(&executable, graph, 0));
  OK(cudaGraphLaunch(executable, stream));
  OK(cudaEventSynchronize(event));
  CHECK(first_of(p, stream) == 1 && calls == 1);

  by = 20;
  OK(cudaGraphExecKernelNodeSetParams(executable, add, &kernel));
  zero.value = 300;
  OK(cudaGraphExecMemsetNodeSetParams(executable, set, &zero));
  OK(cudaGraphExecEventRecordNodeSetEvent(executable, recorded, other));
  OK(cudaGraphLaunch(executable, stream));
  OK(cudaEventSynchronize(other));
  CHECK(first_of(p, stream) == 320 && first_of(p + n, stream) == 300 && calls == 2);

  // By a whole graph of the same shape: back to what that says.
  OK(cudaGraphChildGraphNodeGetGraph(inside, &child));
  cudaGraphNode_t call;
  size_t one = 1;
  OK(cudaGraphGetNodes(child, &call, &one));
  host.userData = &other_calls;
  OK(cudaGraphHostNodeSetParams(call, &host));
  cudaGraphExecUpdateResultInfo result;
  OK(cudaGraphExecUpdate(executable, graph, &result));
  CHECK(result.result == cudaGraphExecUpdateSuccess);
  OK(cudaGraphLaunch(executable, stream));
  CHECK(first_of(p, stream) == 1 && calls == 2 && other_calls == 1);
  OK(cudaGraphDestroyNode(inside));
  FAILS(cudaErrorGraphExecUpdateFailure, cudaGraphExecUpdate(executable, graph, &result));

  OK(cudaGraphExecDestroy(executable));
  OK(cudaGraphDestroy(graph));
  OK(cudaEventDestroy(event));
  OK(cudaEventDestroy(other));
  OK(cudaFree(p));
}

static void symbol_nodes(cudaStream_t stream) {
  cudaGraph_t graph;
  cudaGraphNode_t in, out;
  cudaGraphExec_t executable;
  int value = 12, seen = 0;
  OK(cudaGraphCreate(&graph, 0));
  OK(cudaGraphAddMemcpyNodeToSymbol(&in, graph, nullptr, 0, variable, &value, sizeof value, 8, cudaMemcpyHostToDevice));
  OK(cudaGraphAddMemcpyNodeFromSymbol(&out, graph, &in, 1, &seen, variable, sizeof seen, 8, cudaMemcpyDeviceToHost));
  OK(cudaGraphInstantiate(&executable, graph, 0));
  OK(cudaGraphLaunch(executable, stream));
  OK(cudaStreamSynchronize(stream));
  CHECK(seen == 12);
  FAILS(cudaErrorInvalidValue, cudaGraphAddMemcpyNodeToSymbol(&in, graph, nullptr, 0, variable, &value, sizeof value, 16,
                                                              cudaMemcpyHostToDevice));
  OK(cudaGraphExecDestroy(executable));
  OK(cudaGraphDestroy(graph));
}

static void copy_node(cudaStream_t stream) {
  cudaGraph_t graph;
  cudaGraphNode_t node;
  cudaGraphExec_t executable;
  int a[2] = {3, 4}, b[2] = {0, 0};
  int *p;
  OK(cudaMalloc(&p, sizeof a));
  OK(cudaMemcpy(p, a, sizeof a, cudaMemcpyHostToDevice));
  OK(cudaDeviceSynchronize());
  OK(cudaGraphCreate(&graph, 0));
  OK(cudaGraphAddMemcpyNode1D(&node, graph, nullptr, 0, b, p, sizeof b[0], cudaMemcpyDeviceToHost));
  cudaMemcpy3DParms parameters;
  OK(cudaGraphMemcpyNodeGetParams(node, &parameters));
  CHECK(parameters.srcPtr.ptr == p && parameters.dstPtr.ptr == b && parameters.kind == cudaMemcpyDeviceToHost);
  CHECK(parameters.extent.width == sizeof b[0] && parameters.extent.height == 1 && parameters.extent.depth == 1);
  OK(cudaGraphInstantiate(&executable, graph, 0));
  OK(cudaGraphExecMemcpyNodeSetParams1D(executable, node, b + 1, p + 1, sizeof b[0], cudaMemcpyDeviceToHost));
  OK(cudaGraphLaunch(executable, stream));
  OK(cudaStreamSynchronize(stream));
  CHECK(b[0] == 0 && b[1] == 4);
  OK(cudaGraphExecDestroy(executable));
  OK(cudaGraphDestroy(graph));
  OK(cudaFree(p));
}

static void memory_of_a_graph(cudaStream_t stream) {
  cudaGraph_t graph;
  cudaGraphExec_t executable;
  int *p, seen = 0;
  OK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
  OK(cudaMallocAsync(&p, n * sizeof *p, stream));
  OK(cudaMemsetAsync(p, 0, n * sizeof *p, stream));
  increase<<<1, n, 0, stream>>>(p, 9, n);
  OK(cudaMemcpyAsync(&seen, p + n - 1, sizeof seen, cudaMemcpyDeviceToHost, stream));
  OK(cudaFreeAsync(p, stream));
  OK(cudaStreamEndCapture(stream, &graph));
  OK(cudaGraphInstantiate(&executable, graph, 0));
  for (int i = 0; i < 2; i++) {
    seen = 0;
    OK(cudaGraphLaunch(executable, stream));
    OK(cudaStreamSynchronize(stream));
    CHECK(seen == 9);
  }
  OK(cudaGraphExecDestroy(executable));
  OK(cudaGraphDestroy(graph));
  OK(cudaDeviceGraphMemTrim(0));
}

static void user_objects(cudaStream_t stream) {
  cudaGraph_t graph;
  cudaGraphExec_t executable;
  cudaUserObject_t object;
  int destroyed = 0;
  OK(cudaGraphCreate(&graph, 0));
  OK(cudaUserObjectCreate(&object, &destroyed, count, 1, cudaUserObjectNoDestructorSync));
  OK(cudaGraphRetainUserObject(graph, object, 1, cudaGraphUserObjectMove));
  OK(cudaGraphInstantiate(&executable, graph, 0));
  OK(cudaGraphDestroy(graph));
  OK(cudaGraphLaunch(executable, stream));
  OK(cudaStreamSynchronize(stream));
  CHECK(destroyed == 0);
  OK(cudaGraphExecDestroy(executable));
  // The destructor runs some time after the last reference is gone.
  for (int i = 0; i < 1000 && !*static_cast<volatile int *>(&destroyed); i++)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  CHECK(destroyed == 1);
}

int main() {
  cudaStream_t stream;
  OK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  const size_t sizes[] = {8, 4, 4};
  CHECK(fakecuda_register_kernel("increase", stand_in, nullptr, 3, sizes) == FAKECUDA_OK);
  captured(stream);
  forbidden_in_capture(stream);
  node_by_node(stream);
  changed(stream);
  copy_node(stream);
  symbol_nodes(stream);
  memory_of_a_graph(stream);
  user_objects(stream);
  OK(cudaStreamDestroy(stream));
  OK(cudaGetLastError());
  return 0;
}
