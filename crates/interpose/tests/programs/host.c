// host FILE deep|local: opens a plug-in, which uses the driver.
#include "check.h"

int main(int count, char **arguments) {
  CHECK(count == 3);
  int deep = strcmp(arguments[2], "deep") == 0 ? RTLD_DEEPBIND : 0;
  void *handle = dlopen(arguments[1], RTLD_NOW | RTLD_LOCAL | deep);
  if (!handle) fprintf(stderr, "%s\n", dlerror());
  CHECK(handle);
  int (*use_driver)(void) = (int (*)(void))dlsym(handle, "use_driver");
  CHECK(use_driver);
  return use_driver();
}
