// A child of fork has no CUDA, but can call, launch and exit.
#include "check.h"

#include <cuda_runtime.h>
#include <sys/wait.h>
#include <unistd.h>

__global__ void kernel() {}

// Whether `work` ends well in a child.
template <typename Work>
static bool in_child(Work work) {
  pid_t child = fork();
  if (child == 0) {
    work();
    exit(0);
  }
  int status = -1;
  waitpid(child, &status, 0);
  return status == 0;
}

int main() {
  // Before its first call the parent has nothing that a child could break.
  CHECK(in_child([] {
    void *p;
    OK(cudaMalloc(&p, 64));
    OK(cudaFree(p));
  }));

  void *p;
  OK(cudaMalloc(&p, 64));
  kernel<<<1, 1>>>();
  OK(cudaDeviceSynchronize());
  CHECK(in_child([&] {
    void *q;
    int count = -1;
    FAILS(cudaErrorInitializationError, cudaMalloc(&q, 64));
    FAILS(cudaErrorInitializationError, cudaFree(p));
    FAILS(cudaErrorInitializationError, cudaGetDeviceCount(&count));
    FAILS(cudaErrorInitializationError, cudaSetDevice(0));
    kernel<<<1, 1>>>();
    FAILS(cudaErrorInitializationError, cudaPeekAtLastError());
  }));
  OK(cudaMemset(p, 0, 64));
  OK(cudaFree(p));
  return 0;
}
