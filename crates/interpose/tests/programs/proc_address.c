// What cuGetProcAddress gives under the library, in both of its forms.
#include "check.h"

enum { FOUND = 0, NOT_FOUND = 1, NEWER_ONLY = 2 };
enum { INVALID_VALUE = 1, SYMBOL_NOT_FOUND = 500 };
enum { LEGACY = 1, PER_THREAD = 2 };

typedef int (*first_form)(const char *, void **, int, unsigned long long);
typedef int (*second_form)(const char *, void **, int, unsigned long long, int *);

static void *handle;

static first_form first(void) { return (first_form)dlsym(handle, "cuGetProcAddress"); }
static second_form second(void) { return (second_form)dlsym(handle, "cuGetProcAddress_v2"); }

static void both_forms(void) {
  void *found = NULL;
  int status = -1;
  CHECK(is_hook((void *)first(), "cuGetProcAddress") && is_hook((void *)second(), "cuGetProcAddress_v2"));
  CHECK(first()("cuMemAlloc", &found, 11030, 0) == 0 && is_hook(found, "cuMemAlloc_v2"));
  CHECK(second()("cuMemFree", &found, 12000, LEGACY, &status) == 0 && status == FOUND);
  CHECK(is_hook(found, "cuMemFree_v2"));
  CHECK(second()("cuMemAllocAsync", &found, 12000, PER_THREAD, &status) == 0);
  CHECK(is_hook(found, "cuMemAllocAsync_ptsz"));
  CHECK(second()("cuMemAlloc", &found, 12000, PER_THREAD, &status) == 0 && is_hook(found, "cuMemAlloc_v2"));
  CHECK(second()("cuMemAlloc", &found, 12000, 0, NULL) == 0 && is_hook(found, "cuMemAlloc_v2"));
  CHECK(second()("cuInit", &found, 12000, 0, &status) == 0 && is_driver(found));
  // Before 3.2 the name is the function of 32 bits.
  CHECK(second()("cuMemAlloc", &found, 3010, 0, &status) == 0 && is_driver(found));
  CHECK(answers("cuMemAlloc_v2") == 3 && answers("cuMemFree_v2") == 1);
}

// It is asked for itself, and what it gave is asked for all else.
static void itself(void) {
  void *found = NULL;
  int status = -1;
  CHECK(second()("cuGetProcAddress", &found, 11030, 0, &status) == 0);
  CHECK(is_hook(found, "cuGetProcAddress"));
  first_form older = (first_form)found;
  CHECK(older("cuGetProcAddress", &found, 12000, 0) == 0 && is_hook(found, "cuGetProcAddress_v2"));
  second_form newer = (second_form)found;
  CHECK(newer("cuGetProcAddress", &found, 13000, 0, &status) == 0 && is_hook(found, "cuGetProcAddress_v2"));
  int before = answers("cuMemAlloc_v2");
  for (int i = 0; i < 481; i++) {
    CHECK(newer("cuMemAlloc", &found, 13000, 0, &status) == 0 && is_hook(found, "cuMemAlloc_v2"));
  }
  CHECK(answers("cuMemAlloc_v2") == before + 481);
}

// The driver is older than what is asked for (FAKECUDA_VERSION=11020).
static void old_driver(void) {
  void *found = &found;
  int status = -1;
  CHECK(second()("cuGetProcAddress", &found, 11020, 0, &status) == 0);
  CHECK(status == NOT_FOUND && found == NULL);
  CHECK(second()("cuMemAlloc", &found, 3020, 0, &status) == 0 && is_hook(found, "cuMemAlloc_v2"));
  found = &found;
  CHECK(second()("cuMemAllocAsync", &found, 11010, 0, &status) == 0);
  CHECK(status == NEWER_ONLY && found == NULL);
  found = &found;
  CHECK(second()("cuMemAlloc", &found, 12000, 0, &status) == INVALID_VALUE && found == &found);
  CHECK(first()("cuMemCreate", &found, 10010, 0) == SYMBOL_NOT_FOUND && found == NULL);
}

// The driver lacks cuMemAllocAsync (FAKECUDA_MISSING).
static void missing(void) {
  void *found = &found;
  int status = -1;
  CHECK(second()("cuMemAllocAsync", &found, 12000, 0, &status) == 0);
  CHECK(status == NOT_FOUND && found == NULL);
  CHECK(first()("cuMemAllocAsync", &found, 12000, 0) == SYMBOL_NOT_FOUND && found == NULL);
}

// A look-up fails (FAKECUDA_FAIL).
static void failing(void) {
  void *found = &found;
  int status = -1;
  CHECK(second()("cuMemAlloc", &found, 12000, 0, &status) == 999);
  CHECK(found == &found && status == -1);
  CHECK(second()("cuMemAlloc", &found, 12000, 0, &status) == 0 && is_hook(found, "cuMemAlloc_v2"));
}

static void bad_arguments(void) {
  void *found = &found;
  int status = -1;
  CHECK(first()(NULL, &found, 12000, 0) == INVALID_VALUE && found == &found);
  CHECK(second()(NULL, &found, 12000, 0, &status) == INVALID_VALUE && found == &found);
  CHECK(first()("cuMemAlloc", NULL, 12000, 0) == INVALID_VALUE);
  CHECK(second()("cuMemAlloc", NULL, 12000, 0, &status) == INVALID_VALUE);
  CHECK(second()("cuMemAlloc", &found, 12000, 64, &status) == INVALID_VALUE && found == &found);
  CHECK(second()("", &found, 12000, 0, &status) == 0 && status == NOT_FOUND && found == NULL);
}

int main(int count, char **arguments) {
  static const struct test_case cases[] = {
      {"both_forms", both_forms}, {"itself", itself},   {"old_driver", old_driver},
      {"missing", missing},       {"failing", failing}, {"bad_arguments", bad_arguments},
      {NULL, NULL},
  };
  handle = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  CHECK(handle);
  return run_case(count, arguments, cases);
}
