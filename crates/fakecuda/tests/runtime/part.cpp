// A library with a runtime of its own, which runtimes.cu loads.
#include "check.h"

// The version of the runtime that this part calls.
extern "C" int part_version() {
  int version = 0;
  OK(cudaRuntimeGetVersion(&version));
  return version;
}

extern "C" void *part_allocate(size_t bytes, int value) {
  void *p;
  OK(cudaMalloc(&p, bytes));
  OK(cudaMemset(p, value, bytes));
  return p;
}

extern "C" int part_free(void *p) { return cudaFree(p); }

// The runtime's address of a function: which runtime this part is linked with.
extern "C" void *part_identity() { return reinterpret_cast<void *>(cudaFree); }

extern "C" void part_leave_error() { GIVES(cudaErrorInvalidDevice, cudaSetDevice(77)); }

extern "C" int part_last_error() { return cudaGetLastError(); }
