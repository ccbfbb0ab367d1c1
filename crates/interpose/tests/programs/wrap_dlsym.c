// A preloaded library that has a dlsym, too, as profilers have: it counts look-ups, and answers for one name. It
// finds the one behind it in one of the usual ways.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#if defined(__aarch64__)
#define OLDEST "GLIBC_2.17"
#else
#define OLDEST "GLIBC_2.2.5"
#endif

static int look_ups;

int wrapped_look_ups(void);
int wrapped_look_ups(void) { return look_ups; }

int cuProfilerStart(void);
int cuProfilerStart(void) { return 4711; }

void *dlsym(void *restrict handle, const char *restrict name) {
  static void *(*next)(void *, const char *);
  if (!next) next = (void *(*)(void *, const char *))dlvsym(RTLD_NEXT, "dlsym", OLDEST);
  if (!next || next == dlsym) abort();
  __atomic_fetch_add(&look_ups, 1, __ATOMIC_RELAXED);
  if (handle != RTLD_NEXT && strcmp(name, "cuProfilerStart") == 0) return (void *)cuProfilerStart;
  return next(handle, name);
}
