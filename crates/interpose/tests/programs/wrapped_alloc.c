// wrapped_alloc first|behind: linked with the driver, under wrap_alloc.c, which stands before the library or behind it.
#include "check.h"

int cuInit(unsigned flags);
int cuDeviceGet(int *device, int ordinal);
int cuDevicePrimaryCtxRetain(void **context, int device);
int cuCtxSetCurrent(void *context);
int cuMemAlloc_v2(unsigned long long *address, size_t bytes);
int cuMemFree_v2(unsigned long long address);

int main(int count, char **arguments) {
  CHECK(count == 2);
  int first = strcmp(arguments[1], "first") == 0;
  int (*wrapped_calls)(void) = (int (*)(void))dlsym(RTLD_DEFAULT, "wrapped_calls");
  CHECK(wrapped_calls);
  // The program's scope gives whoever stands first in it; a handle gives luma's.
  CHECK(lies_in((void *)cuMemAlloc_v2, first ? "wrap_alloc" : "luma_interpose"));
  CHECK(lies_in(dlsym(RTLD_DEFAULT, "cuMemAlloc_v2"), first ? "wrap_alloc" : "luma_interpose"));
  CHECK(lies_in(dlsym(dlopen(NULL, RTLD_NOW), "cuMemAlloc_v2"), first ? "wrap_alloc" : "luma_interpose"));
  CHECK(is_hook(dlsym(dlopen("libcuda.so.1", RTLD_NOW), "cuMemAlloc_v2"), "cuMemAlloc_v2"));
  int device;
  void *context;
  unsigned long long address;
  CHECK(cuInit(0) == 0 && cuDeviceGet(&device, 0) == 0);
  CHECK(cuDevicePrimaryCtxRetain(&context, device) == 0 && cuCtxSetCurrent(context) == 0);
  CHECK(cuMemAlloc_v2(&address, 1 << 20) == 0);
  CHECK(wrapped_calls() == 1);
  CHECK(cuMemFree_v2(address) == 0);
  return 0;
}
