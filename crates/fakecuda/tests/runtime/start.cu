// What the first calls answer where the driver does not start: the code is the argument.
#include "check.h"

#include <cuda_runtime.h>

int main(int, char **arguments) {
  cudaError_t wanted = static_cast<cudaError_t>(atoi(arguments[1]));
  int count = -1, version = -1;
  void *p;
  OK(cudaRuntimeGetVersion(&version));
  CHECK(version == CUDART_VERSION);
  OK(cudaDriverGetVersion(&version));
  CHECK(version >= 0);
  FAILS(wanted, cudaGetDeviceCount(&count));
  CHECK(count == 0);
  FAILS(wanted, cudaMalloc(&p, 64));
  FAILS(wanted, cudaSetDevice(0));
  FAILS(wanted, cudaDeviceSynchronize());
  FAILS(wanted, cudaFree(nullptr));
  OK(cudaGetLastError());
  return 0;
}
