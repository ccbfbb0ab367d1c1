/* Registration caches take memory with the same address and buffer id for the same memory. So an id stays while
 * memory is kept, and is new when the driver got the memory back and gave it out again; and the driver is given
 * memory back by its public cuMemFree, which such a cache sees. */
#include "program.h"

enum { ROUNDS = 10 };

static unsigned long long id(CUdeviceptr block) {
  unsigned long long number = 0;
  OK(cuPointerGetAttribute(&number, CU_POINTER_ATTRIBUTE_BUFFER_ID, block));
  CHECK(number != 0);
  return number;
}

int main(void) {
  size_t free_bytes = 0, total = 0;
  start();
  OK(cuMemGetInfo(&free_bytes, &total));
  int same_address = 0, given_back = 0;
  /* So large that it does not fit beside what is taken below. */
  size_t bytes = total / 8;
  for (int round = 0; round < ROUNDS; round++) {
    CUdeviceptr block = must_alloc(bytes);
    unsigned long long first = id(block);
    SAME(id(block + bytes - 1), first);
    uint64_t frees = fakecuda_calls("cuMemFree_v2");
    OK(cuMemFree(block));
    /* All memory is wanted: what was kept is given back, or is a part of that. */
    if (round % 2 == 1) OK(cuMemFree(must_alloc(free_bytes / 20 * 19)));
    CUdeviceptr again = must_alloc(bytes);
    if (fakecuda_present()) {
      bool was_freed = fakecuda_calls("cuMemFree_v2") != frees;
      given_back += was_freed;
      same_address += again == block;
      if (again == block) SAME(id(again) != first, was_freed);
      if (!was_freed) SAME(id(again), first);
    }
    OK(cuMemFree(again));
    OK(cuCtxSynchronize());
  }
  CHECK((same_address > 0 && given_back > 0) || !fakecuda_present());
  return 0;
}
