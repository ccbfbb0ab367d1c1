// What dlsym and dlvsym give under the library. The program knows no driver but the one that it opens.
#include "check.h"

#include <pthread.h>

static void *driver(void) {
  void *handle = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  CHECK(handle);
  return handle;
}

static void hooks_of_the_driver(void) {
  void *handle = driver();
  CHECK(is_hook(dlsym(handle, "cuMemAlloc_v2"), "cuMemAlloc_v2"));
  CHECK(is_hook(dlsym(handle, "cuMemFreeAsync_ptsz"), "cuMemFreeAsync_ptsz"));
  CHECK(answers("cuMemAlloc_v2") == 1);
  CHECK(is_driver(dlsym(handle, "cuInit")));
}

// Under a version a name is found where the library has it under that one.
static void hooks_by_version(void) {
  void *handle = driver();
  CHECK(dlvsym(handle, "cuMemAlloc_v2", "NO_SUCH_VERSION") == NULL);
  const char *error = dlerror();
  CHECK(error && strstr(error, "cuMemAlloc_v2"));
  void *plain = dlopen(getenv("VERSIONED"), RTLD_NOW | RTLD_LOCAL);
  CHECK(plain);
  CHECK(is_hook(dlvsym(plain, "cuMemAlloc_v2", "DRIVER_1"), "cuMemAlloc_v2"));
  CHECK(dlvsym(plain, "cuMemFree_v2", "DRIVER_1") == NULL);
  CHECK(lies_in(dlvsym(plain, "cuInit", "DRIVER_1"), "versioned"));
}

static void foreign_handles(void) {
  void *math = dlopen("libm.so.6", RTLD_NOW);
  CHECK(math);
  CHECK(dlsym(math, "cuMemAlloc_v2") == NULL);
  CHECK(dlsym(math, "cuGetProcAddress") == NULL);
  CHECK(lies_in(dlsym(math, "cosf"), "libm"));
}

// The linker's text of a miss is there after it, once.
static void error_text(void) {
  void *handle = driver();
  CHECK(dlerror() == NULL);
  CHECK(dlsym(handle, "cuNoSuchFunction") == NULL);
  const char *error = dlerror();
  CHECK(error && strstr(error, "cuNoSuchFunction"));
  CHECK(dlerror() == NULL);

  void *math = dlopen("libm.so.6", RTLD_NOW);
  CHECK(dlsym(math, "cuMemAlloc_v2") == NULL);
  error = dlerror();
  CHECK(error && strstr(error, "cuMemAlloc_v2") && strstr(error, "libm"));
  CHECK(dlerror() == NULL);

  CHECK(dlsym(handle, "cuMemAlloc_v2") != NULL);
  CHECK(dlerror() == NULL);
}

// No driver is in the program's scope, though ours are there under its names.
static void no_driver_in_scope(void) {
  CHECK(dlsym(RTLD_DEFAULT, "cuMemAlloc_v2") == NULL);
  const char *error = dlerror();
  CHECK(error && strstr(error, "cuMemAlloc_v2"));
  void *program = dlopen(NULL, RTLD_NOW);
  CHECK(program);
  CHECK(dlsym(program, "cuMemAlloc_v2") == NULL);
  error = dlerror();
  CHECK(error && strstr(error, "cuMemAlloc_v2"));
  CHECK(dlsym(RTLD_DEFAULT, "cuInit") == NULL);
}

// The driver that is opened for everyone is in the program's scope from then on.
static void driver_in_scope(void) {
  CHECK(dlsym(RTLD_DEFAULT, "cuMemAlloc_v2") == NULL);
  CHECK(dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL));
  CHECK(is_hook(dlsym(RTLD_DEFAULT, "cuMemAlloc_v2"), "cuMemAlloc_v2"));
  CHECK(is_driver(dlsym(RTLD_DEFAULT, "cuInit")));
  CHECK(is_hook(dlsym(dlopen(NULL, RTLD_NOW), "cuMemAlloc_v2"), "cuMemAlloc_v2"));
}

static void similar_names(void) {
  static const char *names[] = {"cublasCreate_v2", "cudnnCreate",  "curl_easy_init", "cuMemAlloc_v",
                                "cuMemAlloc_v22",  "cuMemAllocate", "cumemalloc_v2",  "cuMemAlloc_v2_ptsz",
                                "luma",            "luma_alloc_of_another",   NULL};
  void *handle = dlopen(getenv("OTHER"), RTLD_NOW | RTLD_LOCAL);
  CHECK(handle);
  for (const char **name = names; *name; name++) CHECK(lies_in(dlsym(handle, *name), "other_names"));
}

static void names_of_32_bits(void) {
  void *handle = driver();
  static const char *names[] = {"cuMemAlloc", "cuMemFree", "cuMemGetInfo", "cuMemAllocPitch",
                                "cuMemGetAddressRange", "cuArrayCreate", "cuArray3DCreate", "cuCtxCreate", NULL};
  for (const char **name = names; *name; name++) CHECK(is_driver(dlsym(handle, *name)));
}

// Another copy of luma gives way, but only where there is one.
static void one_luma(void) {
  void *other = dlopen(getenv("LUMA"), RTLD_NOW | RTLD_LOCAL);
  CHECK(other);
  CHECK(is_hook(dlsym(other, "luma_alloc"), "luma_alloc"));
  CHECK(dlsym(other, "luma_no_such_function") == NULL);
  CHECK(dlsym(dlopen("libm.so.6", RTLD_NOW), "luma_alloc") == NULL);
}

static void off(void) {
  void *handle = driver();
  CHECK(is_driver(dlsym(handle, "cuMemAlloc_v2")));
  int (*get)(const char *, void **, int, unsigned long long, int *) =
      (int (*)(const char *, void **, int, unsigned long long, int *))dlsym(handle, "cuGetProcAddress_v2");
  CHECK(is_driver((void *)get));
  void *found = NULL;
  int status;
  CHECK(get("cuMemAlloc", &found, 13000, 0, &status) == 0 && is_driver(found));
  CHECK(answers("cuMemAlloc_v2") == 0);
}

static void *handle_of_all;

static void *looks_up(void *unused) {
  void *open_function = dlsym(RTLD_DEFAULT, "open");
  for (int i = 0; i < 10000; i++) {
    switch (i % 5) {
    case 0: CHECK(dlsym(RTLD_NEXT, "open") == open_function); break;
    case 1: CHECK(dlsym(RTLD_DEFAULT, "open") == open_function); break;
    case 2: CHECK(is_hook(dlsym(handle_of_all, "cuMemAlloc_v2"), "cuMemAlloc_v2")); break;
    case 3: CHECK(is_driver(dlsym(handle_of_all, "cuInit"))); break;
    case 4: CHECK(dlsym(handle_of_all, "cuNoSuchFunction") == NULL && dlerror()); break;
    }
  }
  return unused;
}

static void threads(void) {
  handle_of_all = driver();
  pthread_t threads[8];
  for (int i = 0; i < 8; i++) CHECK(pthread_create(&threads[i], NULL, looks_up, NULL) == 0);
  for (int i = 0; i < 8; i++) CHECK(pthread_join(threads[i], NULL) == 0);
  CHECK(answers("cuMemAlloc_v2") == 8 * 2000);
}

// RTLD_NEXT is what comes behind the caller: behind the program this library, behind its own library another's.
static void next_of_the_caller(void) {
  void *found = dlsym(RTLD_NEXT, "cuMemAlloc_v2");
  CHECK(is_hook(found, "cuMemAlloc_v2"));
  void *(*behind)(const char *) = (void *(*)(const char *))dlsym(RTLD_DEFAULT, "behind");
  CHECK(behind);
  CHECK(behind("cuMemAlloc_v2") == NULL);
  CHECK(dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL));
  CHECK(is_driver(behind("cuMemAlloc_v2")));
}

int main(int count, char **arguments) {
  static const struct test_case cases[] = {
      {"hooks_of_the_driver", hooks_of_the_driver},
      {"hooks_by_version", hooks_by_version},
      {"foreign_handles", foreign_handles},
      {"error_text", error_text},
      {"no_driver_in_scope", no_driver_in_scope},
      {"driver_in_scope", driver_in_scope},
      {"similar_names", similar_names},
      {"names_of_32_bits", names_of_32_bits},
      {"one_luma", one_luma},
      {"off", off},
      {"threads", threads},
      {"next_of_the_caller", next_of_the_caller},
      {NULL, NULL},
  };
  return run_case(count, arguments, cases);
}
