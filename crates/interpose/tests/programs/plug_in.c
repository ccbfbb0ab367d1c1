// A plug-in that uses the driver: as it is linked, or as it finds it.
#include "check.h"

#ifdef LINKED
int cuInit(unsigned flags);
int cuDeviceGet(int *device, int ordinal);
int cuDevicePrimaryCtxRetain(void **context, int device);
int cuCtxSetCurrent(void *context);
int cuMemAlloc_v2(unsigned long long *address, size_t bytes);
int cuMemFree_v2(unsigned long long address);
#endif

int use_driver(void);
int use_driver(void) {
#ifdef LINKED
  CHECK(is_hook((void *)cuMemAlloc_v2, "cuMemAlloc_v2"));
  CHECK(is_driver((void *)cuInit));
  // The driver is in the scope of this library, though not in the program's.
  CHECK(is_driver(dlsym(RTLD_DEFAULT, "cuInit")));
  CHECK(is_hook(dlsym(RTLD_DEFAULT, "cuMemAlloc_v2"), "cuMemAlloc_v2"));
  int device;
  void *context;
  unsigned long long address;
  CHECK(cuInit(0) == 0 && cuDeviceGet(&device, 0) == 0);
  CHECK(cuDevicePrimaryCtxRetain(&context, device) == 0 && cuCtxSetCurrent(context) == 0);
  CHECK(cuMemAlloc_v2(&address, 1000) == 0 && cuMemFree_v2(address) == 0);
#else
  void *handle = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  CHECK(handle);
  puts(is_hook(dlsym(handle, "cuMemAlloc_v2"), "cuMemAlloc_v2") ? "luma" : "driver");
#endif
  return 0;
}
