// A driver that takes its own functions from the program's scope, where luma's come first.
#include <stddef.h>
#include <string.h>

int cuInit(unsigned flags);
int cuInit(unsigned flags) { return (int)flags; }

int cuMemAlloc_v2(unsigned long long *address, size_t bytes);
int cuMemAlloc_v2(unsigned long long *address, size_t bytes) {
  if (!address) return 1;
  *address = bytes;
  return 42;
}

int cuGetProcAddress_v2(const char *name, void **function, int version, unsigned long long flags, int *status);
int cuGetProcAddress_v2(const char *name, void **function, int version, unsigned long long flags, int *status) {
  *function = NULL;
  if (strcmp(name, "cuMemAlloc") == 0 && version >= 3020 && flags < 3) *function = (void *)cuMemAlloc_v2;
  if (strcmp(name, "cuGetProcAddress") == 0) *function = (void *)cuGetProcAddress_v2;
  if (status) *status = *function == NULL;
  return 0;
}
