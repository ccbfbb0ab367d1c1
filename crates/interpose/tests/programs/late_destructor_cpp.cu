// A static object whose destructor frees device memory after the driver has shut down, and one that does so before.
#include "runtime.h"

struct Late {
  void *block = nullptr;
  ~Late() {
    GIVES(cudaFree(block), cudaErrorCudartUnloading);
    std::puts("late");
    std::fflush(stdout);
  }
};

// Made before the driver is loaded and destroyed after it has gone.
static Late late;

struct Early {
  void *block = nullptr;
  Early() { OK(cudaMalloc(&block, 100)); }
  ~Early() {
    OK(cudaFree(block));
    std::puts("early");
  }
};

static Early &early() {
  static Early one;
  return one;
}

int main() {
  OK(cudaMalloc(&late.block, 4096));
  CHECK(early().block != nullptr);
  return 3;
}
