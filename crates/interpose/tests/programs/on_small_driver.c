// What a driver lacks stays missing.
#include "check.h"

enum { NOT_SUPPORTED = 801 };

int main(void) {
  void *handle = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  CHECK(handle);
  static const char *missing[] = {"cuMemAllocAsync", "cuGetProcAddress", "cuGetProcAddress_v2", "cuMemGetInfo_v2",
                                  NULL};
  for (const char **name = missing; *name; name++) {
    CHECK(dlsym(handle, *name) == NULL);
    const char *error = dlerror();
    CHECK(error && strstr(error, *name));
  }
  CHECK(is_hook(dlsym(handle, "cuMemAlloc_v2"), "cuMemAlloc_v2"));
  // Who has luma's by other ways gets an answer, too.
  int (*ours)(unsigned long long *, size_t, void *) =
      (int (*)(unsigned long long *, size_t, void *))dlsym(RTLD_NEXT, "cuMemAllocAsync");
  CHECK(is_hook((void *)ours, "cuMemAllocAsync"));
  unsigned long long address = 0;
  CHECK(ours(&address, 4096, NULL) == NOT_SUPPORTED);
  return 0;
}
