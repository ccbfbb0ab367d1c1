/* The library loaded at run time, used and closed again, over and over; and used at exit after it
 * was closed, since memory that it gave out must outlive that. The argument is its path. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE 1
#endif

#include "luma.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(condition) \
  ((condition) ? (void)0 : (fprintf(stderr, "%d: failed: %s\n", __LINE__, #condition), abort()))

typedef void *(*alloc_t)(size_t);
typedef luma_status_t (*free_t)(void *);
typedef luma_status_t (*check_t)(void);

static const char *path;
static free_t last_free;
static void *last_block;

/* ISO C has no conversion from an object's pointer to a function's. */
#define FIND(library, name, function)                 \
  do {                                                \
    void *found = dlsym((library), (name));           \
    CHECK(found != NULL);                             \
    memcpy(&(function), &found, sizeof(function));    \
  } while (0)

static void *load_use_and_close(void *unused) {
  int round;
  for (round = 0; round < 200; round++) {
    alloc_t alloc;
    free_t release;
    check_t check;
    void *block, *library = dlopen(path, round % 2 == 0 ? RTLD_NOW : RTLD_LAZY);
    if (library == NULL) {
      fprintf(stderr, "%s\n", dlerror());
    }
    CHECK(library != NULL);
    FIND(library, "luma_alloc", alloc);
    FIND(library, "luma_free", release);
    FIND(library, "luma_check", check);
    block = alloc(100000);
    CHECK(block != NULL);
    memset(block, round, 100000);
    CHECK(release(block) == LUMA_SUCCESS);
    CHECK(check() == LUMA_SUCCESS);
    CHECK(dlclose(library) == 0);
  }
  return unused;
}

static void at_exit(void) {
  CHECK(*(unsigned char *)last_block == 42);
  CHECK(last_free(last_block) == LUMA_SUCCESS);
  puts("ended");
}

int main(int argc, char **argv) {
  pthread_t threads[4];
  alloc_t alloc;
  void *library;
  size_t at;
  CHECK(argc == 2);
  path = argv[1];
  /* It is really loaded here and not with the program. */
  CHECK(dlopen(path, RTLD_NOW | RTLD_NOLOAD) == NULL);
  CHECK(atexit(at_exit) == 0);

  library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  CHECK(library != NULL);
  FIND(library, "luma_alloc", alloc);
  FIND(library, "luma_free", last_free);
  last_block = alloc(10);
  CHECK(last_block != NULL);
  *(unsigned char *)last_block = 42;
  CHECK(dlclose(library) == 0);

  (void)load_use_and_close(NULL);
  for (at = 0; at < 4; at++) {
    CHECK(pthread_create(&threads[at], NULL, load_use_and_close, NULL) == 0);
  }
  for (at = 0; at < 4; at++) {
    CHECK(pthread_join(threads[at], NULL) == 0);
  }
  return 0;
}
