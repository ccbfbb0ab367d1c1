// A preloaded library that wraps a function of the C library.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

int puts(const char *text) {
  static int (*next)(const char *);
  if (!next) next = (int (*)(const char *))dlsym(RTLD_NEXT, "puts");
  if (!next || next == puts) {
    fputs("RTLD_NEXT gave the caller's own function\n", stderr);
    abort();
  }
  fputs("wrapped ", stdout);
  return next(text);
}
