// An object of the program's is destroyed after the driver has shut down, since it was made before.
#include "check.h"

#include <cuda_runtime.h>

struct Late {
  void *pointer = nullptr;
  cudaStream_t stream = nullptr;
  ~Late() {
    GIVES(cudaErrorCudartUnloading, cudaFree(pointer));
    GIVES(cudaErrorCudartUnloading, cudaStreamDestroy(stream));
    GIVES(cudaErrorCudartUnloading, cudaGetLastError());
    printf("late\n");
  }
};

static Late late;

__global__ void kernel() {}

int main() {
  OK(cudaMalloc(&late.pointer, 4096));
  OK(cudaStreamCreate(&late.stream));
  kernel<<<1, 1>>>();
  OK(cudaGetLastError());
  return 0;
}
