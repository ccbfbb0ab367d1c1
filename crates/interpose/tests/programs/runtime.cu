// A program of the runtime: its allocations come through luma's functions, which the runtime has found by itself.
#include "check.h"
#include "fakecuda.h"

#include <cuda_runtime.h>

#define OK(call) CHECK((call) == cudaSuccess)

int main(int count, char **arguments) {
  CHECK(count == 2);
  bool hooked = strcmp(arguments[1], "hooked") == 0;
  void *block;
  OK(cudaMalloc(&block, 4096));
  OK(cudaMemset(block, 1, 4096));
  OK(cudaFree(block));
  cudaStream_t stream;
  OK(cudaStreamCreate(&stream));
  OK(cudaMallocAsync(&block, 4096, stream));
  OK(cudaFreeAsync(block, stream));
  OK(cudaStreamSynchronize(stream));
  OK(cudaStreamDestroy(stream));
  size_t free_bytes, all_bytes;
  OK(cudaMemGetInfo(&free_bytes, &all_bytes));
  CHECK(free_bytes <= all_bytes);
  static const char *used[] = {"cuMemAlloc_v2", "cuMemFree_v2", "cuMemAllocAsync", "cuMemFreeAsync",
                               "cuMemGetInfo_v2"};
  for (const char *symbol : used) CHECK(answers(symbol) >= 1 == hooked);
  // They had what the program asked for from the driver, or from luma, which had it there.
  CHECK(fakecuda_calls("cuMemAlloc_v2") >= 1);
  CHECK(cudaPeekAtLastError() == cudaSuccess);
  return 0;
}
