// Checks, and where an address lies.
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(condition)                                                                                       \
  do {                                                                                                         \
    if (!(condition)) {                                                                                        \
      fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition);                                          \
      exit(1);                                                                                                 \
    }                                                                                                          \
  } while (0)

// Whether an address lies in a library whose file name has this in it.
static inline int lies_in(const void *address, const char *file) {
  Dl_info info;
  if (address == NULL || dladdr(address, &info) == 0) return 0;
  const char *slash = strrchr(info.dli_fname, '/');
  return strstr(slash ? slash + 1 : info.dli_fname, file) != NULL;
}

// Whether it is luma's function of this name.
static inline int is_hook(const void *address, const char *symbol) {
  Dl_info info;
  return lies_in(address, "luma_interpose") && dladdr(address, &info) && info.dli_sname &&
         strcmp(info.dli_sname, symbol) == 0;
}

// Whether it is the driver's.
static inline int is_driver(const void *address) {
  return lies_in(address, "cuda") && !lies_in(address, "luma");
}

// How many look-ups of a symbol were answered with luma's function; -1: this is not running under the library.
static inline int answers(const char *symbol) {
  int (*function)(const char *) = (int (*)(const char *))dlsym(RTLD_DEFAULT, "luma_interpose_answers");
  return function ? function(symbol) : -1;
}

struct test_case {
  const char *name;
  void (*run)(void);
};

// Runs the case that the first argument names.
static inline int run_case(int count, char **arguments, const struct test_case *cases) {
  CHECK(count > 1);
  for (; cases->name; cases++) {
    if (strcmp(cases->name, arguments[1]) == 0) {
      cases->run();
      return 0;
    }
  }
  CHECK(!"there is no such case");
}
