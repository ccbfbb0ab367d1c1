/* A program in C, linked with the static runtime and nothing of C++. */
#include "check.h"

int main(void) {
  void *p;
  int version = 0, in = 7, out = 0;
  struct cudaDeviceProp properties;
  OK(cudaRuntimeGetVersion(&version));
  CHECK(version == CUDART_VERSION);
  OK(cudaGetDeviceProperties(&properties, 0));
  CHECK(properties.major == 9);
  OK(cudaMalloc(&p, sizeof in));
  OK(cudaMemcpy(p, &in, sizeof in, cudaMemcpyHostToDevice));
  OK(cudaMemcpy(&out, p, sizeof out, cudaMemcpyDeviceToHost));
  CHECK(out == 7);
  OK(cudaFree(p));
  return 0;
}
