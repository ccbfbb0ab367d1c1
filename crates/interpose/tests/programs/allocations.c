// Look-ups take no memory: the library may be asked from inside an allocator.
#include "check.h"

extern void *__libc_malloc(size_t bytes);
extern void *__libc_calloc(size_t count, size_t bytes);
extern void *__libc_realloc(void *block, size_t bytes);

static volatile int allocated;

void *malloc(size_t bytes) {
  allocated++;
  return __libc_malloc(bytes);
}
void *calloc(size_t count, size_t bytes) {
  allocated++;
  return __libc_calloc(count, bytes);
}
void *realloc(void *block, size_t bytes) {
  allocated++;
  return __libc_realloc(block, bytes);
}

int main(void) {
  void *handle = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  CHECK(handle);
  // What the linker sets up at its first calls is its own.
  CHECK(dlsym(handle, "cuInit") && dlsym(RTLD_NEXT, "open"));
  CHECK(dlvsym(handle, "cuInit", "NONE") == NULL && dlerror());
  int before = allocated;
  for (int i = 0; i < 100; i++) {
    void *found = dlsym(handle, "cuMemAlloc_v2");
    CHECK(is_hook(found, "cuMemAlloc_v2"));
    CHECK(dlsym(handle, "cuGetProcAddress_v2") && dlsym(handle, "cuCtxCreate_v2"));
    CHECK(dlsym(RTLD_NEXT, "open") && dlsym(RTLD_DEFAULT, "luma_alloc"));
  }
  CHECK(allocated == before);
  return 0;
}
