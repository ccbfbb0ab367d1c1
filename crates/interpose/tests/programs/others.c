// A program that looks the driver up under several preloaded libraries.
#include "check.h"

int main(void) {
  puts("text");
  void *handle = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  CHECK(handle);
  int (*look_ups)(void) = (int (*)(void))dlsym(RTLD_DEFAULT, "wrapped_look_ups");
  int before = look_ups ? look_ups() : 0;
  int (*alloc)(unsigned long long *, size_t) =
      (int (*)(unsigned long long *, size_t))dlsym(handle, "cuMemAlloc_v2");
  CHECK(is_hook((void *)alloc, "cuMemAlloc_v2"));
  int (*init)(unsigned) = (int (*)(unsigned))dlsym(handle, "cuInit");
  CHECK(is_driver((void *)init));
  CHECK(dlsym(handle, "cuNoSuchFunction") == NULL && dlerror());
  if (look_ups) {
    // The other one sees what it would see without us, and its own answers stay.
    CHECK(look_ups() >= before + 3);
    CHECK(lies_in(dlsym(handle, "cuProfilerStart"), "wrap_dlsym"));
  }
  // luma's own way to the driver goes round the hooks.
  unsigned long long address = 0;
  CHECK(init(0) == 0);
  CHECK(alloc(&address, 0) != 0);
  void *(*luma)(size_t) = (void *(*)(size_t))dlsym(RTLD_DEFAULT, "luma_alloc");
  CHECK(is_hook((void *)luma, "luma_alloc"));
  int asked = answers("cuMemAlloc_v2");
  CHECK(luma(4096) != NULL);
  CHECK(answers("cuMemAlloc_v2") == asked);
  return 0;
}
