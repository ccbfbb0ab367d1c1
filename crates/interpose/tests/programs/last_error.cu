// The runtime's last error: set by a request that fails, and clean after one that succeeded, whatever was tried in
// between. Argument "repaired": what stands in front of the driver tries again, and succeeds.
#include "runtime.h"

#include <cstring>

enum { OUT_OF_MEMORY = 2 };

int main(int count, char **arguments) {
  bool repaired = count > 1 && !std::strcmp(arguments[1], "repaired");
  void *block = nullptr, *kept = nullptr;
  size_t unused = 0, total = 0;
  OK(cudaFree(nullptr));
  OK(cudaMemGetInfo(&unused, &total));
  if (fakecuda_present() && repaired) {
    // Requests for new memory, each of which fails once.
    void *blocks[6];
    for (void *&one : blocks) {
      CHECK(fakecuda_fail("cuMemAlloc_v2", 0, OUT_OF_MEMORY, 1) == FAKECUDA_OK);
      OK(cudaMalloc(&one, total / 8));
      OK(cudaPeekAtLastError());
      CHECK(fakecuda_fail_clear() == FAKECUDA_OK);
    }
    CHECK(fakecuda_failed() > 0);
    for (void *one : blocks) OK(cudaFree(one));
  }
  // A request that nothing can serve.
  GIVES(cudaMalloc(&block, total + 1), cudaErrorMemoryAllocation);
  GIVES(cudaPeekAtLastError(), cudaErrorMemoryAllocation);
  GIVES(cudaGetLastError(), cudaErrorMemoryAllocation);
  OK(cudaGetLastError());
  for (int round = 0; round < 4; round++) {
    // One that memory which was freed has to serve, in another size.
    for (int at = 0; at < 3; at++) {
      OK(cudaMalloc(&block, total / 4));
      OK(cudaMalloc(&kept, total / 2));
      OK(cudaFree(block));
      OK(cudaFree(kept));
    }
    OK(cudaMalloc(&block, total / 10 * 9));
    OK(cudaPeekAtLastError());
    OK(cudaFree(block));
    // An error of the program's own.
    int on_stack = 0;
    GIVES(cudaFree(&on_stack), cudaErrorInvalidValue);
    GIVES(cudaGetLastError(), cudaErrorInvalidValue);
    OK(cudaPeekAtLastError());
  }
  return 0;
}
