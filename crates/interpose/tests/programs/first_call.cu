// Programs begin with cudaFree(0) to have a context, ask for no bytes, and for more than there are addresses.
#include "runtime.h"

#include <cstdint>

int main() {
  void *block = nullptr;
  size_t unused = 0, total = 0, pitch = 0;
  OK(cudaFree(nullptr));
  OK(cudaMemGetInfo(&unused, &total));
  CHECK(unused > 0 && unused <= total);
  // No bytes are no error to the runtime, and no block.
  block = &unused;
  OK(cudaMalloc(&block, 0));
  CHECK(block == nullptr);
  OK(cudaFree(block));
  const size_t sizes[] = {SIZE_MAX, SIZE_MAX - 1, SIZE_MAX - 511, SIZE_MAX / 2 + 1, size_t(1) << 60};
  for (size_t bytes : sizes) {
    block = nullptr;
    GIVES(cudaMalloc(&block, bytes), cudaErrorMemoryAllocation);
    CHECK(block == nullptr);
    GIVES(cudaMallocAsync(&block, bytes, nullptr), cudaErrorMemoryAllocation);
    cudaError_t code = cudaMallocPitch(&block, &pitch, bytes, 2);
    CHECK(code == cudaErrorMemoryAllocation || code == cudaErrorInvalidValue);
    CHECK(cudaGetLastError() == code);
  }
  // None of that lasts.
  OK(cudaMalloc(&block, 100));
  OK(cudaMemset(block, 1, 100));
  OK(cudaDeviceSynchronize());
  OK(cudaFree(block));
  OK(cudaGetLastError());
  return 0;
}
