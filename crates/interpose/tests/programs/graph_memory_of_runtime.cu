// cudaMallocAsync on a captured stream is a node of the graph: instantiate, launch twice, destroy.
#include "runtime.h"

#include <vector>

enum { BYTES = 1 << 20 };

int main() {
  cudaStream_t stream;
  cudaGraph_t graph;
  cudaGraphExec_t exec;
  void *scratch = nullptr, *result = nullptr, *other = nullptr;
  std::vector<unsigned char> seen(BYTES);
  OK(cudaStreamCreate(&stream));
  OK(cudaMalloc(&result, BYTES));
  OK(cudaMallocAsync(&other, BYTES, stream));
  OK(cudaFreeAsync(other, stream));
  OK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
  OK(cudaMallocAsync(&scratch, BYTES, stream));
  OK(cudaMemsetAsync(scratch, 7, BYTES, stream));
  OK(cudaMemcpyAsync(result, scratch, BYTES, cudaMemcpyDeviceToDevice, stream));
  OK(cudaFreeAsync(scratch, stream));
  OK(cudaStreamEndCapture(stream, &graph));
  size_t nodes = 0;
  OK(cudaGraphGetNodes(graph, nullptr, &nodes));
  CHECK(nodes == 4);
  OK(cudaGraphInstantiate(&exec, graph, 0));
  for (int launch = 0; launch < 2; launch++) {
    OK(cudaMemsetAsync(result, 0, BYTES, stream));
    OK(cudaGraphLaunch(exec, stream));
    OK(cudaMallocAsync(&other, BYTES, stream));
    OK(cudaMemsetAsync(other, 9, BYTES, stream));
    OK(cudaFreeAsync(other, stream));
    OK(cudaMemcpyAsync(seen.data(), result, BYTES, cudaMemcpyDeviceToHost, stream));
    OK(cudaStreamSynchronize(stream));
    for (unsigned char byte : seen) CHECK(byte == 7);
  }
  OK(cudaGraphExecDestroy(exec));
  OK(cudaGraphDestroy(graph));
  OK(cudaDeviceGraphMemTrim(0));
  OK(cudaFree(result));
  OK(cudaStreamDestroy(stream));
  OK(cudaGetLastError());
  return 0;
}
