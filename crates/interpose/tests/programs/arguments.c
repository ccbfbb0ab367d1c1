// arguments HOOKED...: each function, called with nothing but zeros, gives what the driver gives: before cuInit, after
// it, and with a context.
//
// Linked with the driver, under the library and behind.c.
#include "check.h"

typedef int (*function)(size_t, size_t, size_t, size_t, size_t, size_t, size_t, size_t);

static void *driver(const char *name) {
  void *(*behind)(const char *) = (void *(*)(const char *))dlsym(RTLD_DEFAULT, "behind");
  CHECK(behind);
  void *found = behind(name);
  CHECK(is_driver(found));
  return found;
}

static void compare(const char *when, int count, char **names) {
  for (int i = 1; i < count; i++) {
    function ours = (function)dlsym(RTLD_DEFAULT, names[i]);
    CHECK(is_hook((void *)ours, names[i]));
    int their_code = ((function)driver(names[i]))(0, 0, 0, 0, 0, 0, 0, 0);
    int our_code = ours(0, 0, 0, 0, 0, 0, 0, 0);
    if (our_code != their_code) {
      fprintf(stderr, "%s %s: %d, the driver's %d\n", names[i], when, our_code, their_code);
    }
  }
}

int main(int count, char **names) {
  int (*init)(unsigned) = (int (*)(unsigned))driver("cuInit");
  int (*retain)(void **, int) = (int (*)(void **, int))driver("cuDevicePrimaryCtxRetain");
  int (*set)(void *) = (int (*)(void *))driver("cuCtxSetCurrent");
  int (*info)(size_t *, size_t *) = (int (*)(size_t *, size_t *))dlsym(RTLD_DEFAULT, "cuMemGetInfo_v2");
  int (*their_info)(size_t *, size_t *) = (int (*)(size_t *, size_t *))driver("cuMemGetInfo_v2");
  compare("before cuInit", count, names);
  CHECK(init(0) == 0);
  compare("after cuInit", count, names);
  void *context;
  for (int i = 0; i < 2; i++) CHECK(retain(&context, 0) == 0);
  CHECK(set(context) == 0);
  size_t bytes;
  CHECK(info(NULL, &bytes) == their_info(NULL, &bytes));
  CHECK(info(&bytes, NULL) == their_info(&bytes, NULL));
  compare("with a context", count, names);
  return 0;
}
