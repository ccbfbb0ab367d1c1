// Luma's functions call the driver's, not themselves, though the driver says that they are its own.
#include "check.h"

int main(void) {
  void *handle = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  CHECK(handle);
  int (*get)(const char *, void **, int, unsigned long long, int *) =
      (int (*)(const char *, void **, int, unsigned long long, int *))dlsym(handle, "cuGetProcAddress_v2");
  CHECK(get);
  void *found = NULL;
  CHECK(get("cuGetProcAddress", &found, 12000, 0, NULL) == 0);
  get = (int (*)(const char *, void **, int, unsigned long long, int *))found;
  CHECK(get("cuMemAlloc", &found, 12000, 0, NULL) == 0);
  CHECK(is_hook(found, "cuMemAlloc_v2"));
  unsigned long long address = 0;
  CHECK(((int (*)(unsigned long long *, size_t))found)(&address, 4096) == 42);
  CHECK(address == 4096);
  return 0;
}
