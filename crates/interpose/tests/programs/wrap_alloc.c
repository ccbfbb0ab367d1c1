// A preloaded library that wraps a function of the driver by its symbol, as memory profilers do.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stddef.h>

static int calls;

int wrapped_calls(void);
int wrapped_calls(void) { return calls; }

int cuMemAlloc_v2(unsigned long long *address, size_t bytes);
int cuMemAlloc_v2(unsigned long long *address, size_t bytes) {
  static int (*next)(unsigned long long *, size_t);
  if (!next) next = (int (*)(unsigned long long *, size_t))dlsym(RTLD_NEXT, "cuMemAlloc_v2");
  if (!next || next == cuMemAlloc_v2) return 999;
  calls++;
  return next(address, bytes);
}
