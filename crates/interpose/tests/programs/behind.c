// Preloaded behind the library: what is behind that.
#define _GNU_SOURCE
#include <dlfcn.h>

void *behind(const char *name);
void *behind(const char *name) { return dlsym(RTLD_NEXT, name); }
