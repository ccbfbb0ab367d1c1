// The default stream of a program that nvcc compiles for one default stream a thread ("per-thread" as
// the argument), or for one of all threads ("legacy").
#include "check.h"
#include "fakecuda.h"

#include <cuda_runtime.h>
#include <atomic>
#include <cstring>
#include <thread>

static std::atomic<bool> open{false}, held{false}, marked{false};

__global__ void mark(int *) {}

int main(int, char **arguments) {
  bool per_thread = !strcmp(arguments[1], "per-thread");
  int *p, *q, seen = 0;
  OK(cudaMalloc(&p, sizeof *p));
  OK(cudaMalloc(&q, sizeof *q));
  OK(cudaMemset(q, 0, sizeof *q));
  OK(cudaDeviceSynchronize());
  const size_t sizes[] = {8};
  auto note = [](const fakecuda_launch_t *, void *) { marked = true; };
  CHECK(fakecuda_register_kernel("mark", note, nullptr, 1, sizes) == FAKECUDA_OK);

  std::thread other([&] {
    auto hold = [](void *) {
      while (!open) std::this_thread::yield();
    };
    OK(cudaLaunchHostFunc(nullptr, hold, nullptr));
    OK(cudaMemsetAsync(p, 1, sizeof *p, nullptr));
    held = true;
    // Waits for its own stream in either case.
    OK(cudaStreamSynchronize(nullptr));
    int mine = 0;
    OK(cudaMemcpy(&mine, p, sizeof mine, cudaMemcpyDeviceToHost));
    CHECK(mine == 0x01010101);
  });
  while (!held) std::this_thread::yield();

  OK(cudaMemsetAsync(q, 3, sizeof *q, nullptr));
  mark<<<1, 1>>>(q);
  OK(cudaGetLastError());
  if (per_thread) {
    // The other thread's stream is busy; this one is not held up.
    OK(cudaStreamSynchronize(nullptr));
    OK(cudaMemcpyAsync(&seen, q, sizeof seen, cudaMemcpyDeviceToHost, nullptr));
    OK(cudaStreamSynchronize(cudaStreamPerThread));
    CHECK(seen == 0x03030303);
    CHECK(marked);
    CHECK(!open);
    open = true;
  } else {
    GIVES(cudaErrorNotReady, cudaStreamQuery(nullptr));
    CHECK(!marked);
    open = true;
    OK(cudaStreamSynchronize(nullptr));
  }
  OK(cudaMemcpy(&seen, q, sizeof seen, cudaMemcpyDeviceToHost));
  CHECK(seen == 0x03030303);
  other.join();

  unsigned long long id, legacy, own;
  OK(cudaStreamGetId(nullptr, &id));
  OK(cudaStreamGetId(cudaStreamLegacy, &legacy));
  OK(cudaStreamGetId(cudaStreamPerThread, &own));
  CHECK(legacy != own && id == (per_thread ? own : legacy));
  return 0;
}
