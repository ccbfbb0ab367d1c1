// A program that uses the driver if it is there: it was linked without, and finds luma's functions.
#include "check.h"

__attribute__((weak)) int cuMemAlloc_v2(unsigned long long *address, size_t bytes);
__attribute__((weak)) int cuGetProcAddress_v2(const char *name, void **function, int version,
                                              unsigned long long flags, int *status);
__attribute__((weak)) int cuInit(unsigned flags);

enum { NOT_INITIALIZED = 3 };

int main(void) {
  unsigned long long address = 0;
  void *found = NULL;
  CHECK(!cuInit);
  CHECK(cuMemAlloc_v2 && cuGetProcAddress_v2);
  CHECK(cuMemAlloc_v2(&address, 4096) == NOT_INITIALIZED);
  CHECK(cuGetProcAddress_v2("cuInit", &found, 12000, 0, NULL) == NOT_INITIALIZED && !found);
  return 0;
}
