// What the runtime of CUDA 12 has under other names or in other forms than that of 13.
#include "check.h"

#include <string.h>

static_assert(CUDART_VERSION / 1000 == 12, "compiled by the headers of CUDA 12");

static void properties() {
  cudaDeviceProp p;
  int version;
  OK(cudaRuntimeGetVersion(&version));
  CHECK(version == CUDART_VERSION);
  OK(cudaGetDeviceProperties(&p, 0));
  CHECK(p.major == 9 && p.warpSize == 32 && p.clockRate > 0 && p.memoryClockRate > 0 && strlen(p.name) > 0);
  CHECK(p.computeMode == cudaComputeModeDefault && p.maxTexture1DLinear > 0 && p.clusterLaunch == 1);
}

static void managed_memory() {
  char *p;
  cudaMemLocation location = {};
  location.type = cudaMemLocationTypeDevice;
  OK(cudaMallocManaged(reinterpret_cast<void **>(&p), 4096));
  OK(cudaMemAdvise(p, 4096, cudaMemAdviseSetPreferredLocation, cudaCpuDeviceId));
  OK(cudaMemPrefetchAsync(p, 4096, 0, nullptr));
  OK(cudaMemAdvise_v2(p, 4096, cudaMemAdviseSetPreferredLocation, location));
  OK(cudaMemPrefetchAsync_v2(p, 4096, location, 0, nullptr));
  OK(cudaThreadSynchronize());
  OK(cudaFree(p));
}

static void capture() {
  cudaStream_t stream;
  cudaStreamCaptureStatus status;
  unsigned long long id = 0, again = 0;
  cudaGraph_t graph, ended;
  const cudaGraphNode_t *dependencies;
  const cudaGraphEdgeData *edges;
  size_t count = 0;
  char *p;
  OK(cudaMalloc(reinterpret_cast<void **>(&p), 64));
  OK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  OK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
  OK(cudaMemsetAsync(p, 1, 32, stream));
  OK(cudaMemsetAsync(p, 2, 16, stream));
  OK(cudaStreamGetCaptureInfo_v2(stream, &status, &id, &graph, &dependencies, &count));
  CHECK(status == cudaStreamCaptureStatusActive && id != 0 && graph != nullptr && count == 1);
  OK(cudaStreamGetCaptureInfo_v3(stream, &status, &again, &graph, &dependencies, &edges, &count));
  CHECK(again == id && count == 1);
  // Back to the start: the last operation does not wait for the others.
  OK(cudaStreamUpdateCaptureDependencies(stream, nullptr, 0, cudaStreamSetCaptureDependencies));
  OK(cudaMemsetAsync(p + 32, 3, 32, stream));
  OK(cudaStreamEndCapture(stream, &ended));
  CHECK(ended == graph);

  size_t plain = 0, with_data = 0, roots = 0;
  OK(cudaGraphGetEdges(graph, nullptr, nullptr, &plain));
  OK(cudaGraphGetEdges_v2(graph, nullptr, nullptr, nullptr, &with_data));
  OK(cudaGraphGetRootNodes(graph, nullptr, &roots));
  CHECK(plain == 1 && with_data == 1 && roots == 2);
  cudaGraphNode_t from, to;
  OK(cudaGraphGetEdges(graph, &from, &to, &plain));
  OK(cudaGraphRemoveDependencies(graph, &from, &to, 1));
  OK(cudaGraphAddDependencies_v2(graph, &from, &to, nullptr, 1));
  OK(cudaGraphNodeGetDependencies(to, nullptr, &count));
  CHECK(count == 1);
  OK(cudaGraphNodeGetDependentNodes_v2(from, nullptr, nullptr, &count));
  CHECK(count == 1);
  cudaGraphExec_t executable;
  char seen[64];
  OK(cudaGraphInstantiate(&executable, graph, 0));
  OK(cudaGraphLaunch(executable, stream));
  OK(cudaMemcpyAsync(seen, p, sizeof seen, cudaMemcpyDeviceToHost, stream));
  OK(cudaStreamSynchronize(stream));
  CHECK(seen[0] == 2 && seen[16] == 1 && seen[32] == 3);
  OK(cudaGraphExecDestroy(executable));
  OK(cudaGraphDestroy(graph));
  OK(cudaStreamDestroy(stream));
  OK(cudaFree(p));
}

static void events() {
  cudaEvent_t start, end;
  float milliseconds = -1;
  OK(cudaEventCreate(&start));
  OK(cudaEventCreate(&end));
  OK(cudaEventRecord(start));
  OK(cudaEventRecord(end));
  OK(cudaEventSynchronize(end));
  OK(cudaEventElapsedTime(&milliseconds, start, end));
  CHECK(milliseconds >= 0);
  milliseconds = -1;
  OK(cudaEventElapsedTime_v2(&milliseconds, start, end));
  CHECK(milliseconds >= 0);
  OK(cudaEventDestroy(start));
  OK(cudaEventDestroy(end));
}

int main() {
  properties();
  managed_memory();
  capture();
  events();
  OK(cudaGetLastError());
  return 0;
}
