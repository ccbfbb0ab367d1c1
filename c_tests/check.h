/* What the C tests share: checks that hold in release builds too, and say where they failed.
 * Every program is compiled as C99, C11, C17 and C++17, so it is written in what they share. */
#ifndef LUMA_CHECK_H
#define LUMA_CHECK_H

/* fork, threads and alarm under -std=c99; compilers for C++ set it themselves. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE 1
#endif

#include "luma.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define KIB ((size_t)1 << 10)
#define MIB ((size_t)1 << 20)
#define GIB ((size_t)1 << 30)

/* Without exit handlers, which may be what is tested. */
static inline void check_failed(const char *file, int line, const char *what) {
  fprintf(stderr, "%s:%d: %s; last: %d %s\n", file, line, what, (int)luma_last_status(),
          luma_last_error());
  fflush(NULL);
  _exit(1);
}

#define CHECK(condition) \
  ((condition) ? (void)0 : check_failed(__FILE__, __LINE__, "failed: " #condition))

/* The call succeeds, and the thread's last status and message say so. */
#define OK(call) \
  ((call) == LUMA_SUCCESS && luma_last_status() == LUMA_SUCCESS && luma_last_error()[0] == '\0' \
       ? (void)0 \
       : check_failed(__FILE__, __LINE__, "did not succeed: " #call))

/* The call fails with this status, and leaves it and a message that contains `part`. */
#define FAILS(call, status, part) \
  ((call) == (status) && failed_with((status), (part)) \
       ? (void)0 \
       : check_failed(__FILE__, __LINE__, "did not fail as it should: " #call))

/* The call, which gives a pointer, gives NULL in the same way. */
#define REFUSED(call, status, part) \
  ((call) == NULL && failed_with((status), (part)) \
       ? (void)0 \
       : check_failed(__FILE__, __LINE__, "was not refused as it should be: " #call))

static inline int says(const char *part) { return strstr(luma_last_error(), part) != NULL; }

static inline int failed_with(luma_status_t status, const char *part) {
  return luma_last_status() == status && luma_last_error()[0] != '\0' && says(part);
}

static inline int is_aligned(const void *ptr, size_t alignment) {
  return (uintptr_t)ptr % alignment == 0;
}

/* A block of the default pool, which must be there. */
static inline unsigned char *must_alloc(size_t bytes) {
  void *block = luma_alloc(bytes);
  CHECK(block != NULL && luma_last_status() == LUMA_SUCCESS);
  return (unsigned char *)block;
}

static inline unsigned char *must_pool_alloc(luma_pool_t *pool, size_t bytes) {
  void *block = luma_pool_alloc(pool, bytes, 0, NULL);
  CHECK(block != NULL && luma_last_status() == LUMA_SUCCESS);
  return (unsigned char *)block;
}

static inline luma_stats_t stats_now(void) {
  luma_stats_t stats = LUMA_STATS_INIT;
  OK(luma_stats(&stats));
  return stats;
}

static inline luma_stats_t pool_stats_now(luma_pool_t *pool) {
  luma_stats_t stats = LUMA_STATS_INIT;
  OK(luma_pool_stats(pool, &stats));
  return stats;
}

static inline int same_stats(const luma_stats_t *a, const luma_stats_t *b) {
  return memcmp(a, b, sizeof *a) == 0;
}

/* A pool of host memory on a device of its own. */
static inline luma_pool_config_t host_config(size_t capacity) {
  luma_pool_config_t config = LUMA_POOL_CONFIG_INIT;
  config.backend = LUMA_BACKEND_HOST;
  config.capacity = capacity;
  return config;
}

static inline luma_pool_t *must_create(const luma_pool_config_t *config) {
  luma_pool_t *pool = NULL;
  OK(luma_pool_create(config, &pool));
  CHECK(pool != NULL);
  return pool;
}

/* Fewer rounds where every call ends with the full check. */
static inline int rounds(int without_checks) {
  return getenv("LUMA_DEBUG") == NULL ? without_checks : without_checks / 50;
}

/* Which case a program with several is asked for. */
static inline int asked_for(int argc, char **argv, const char *name) {
  return argc > 1 && strcmp(argv[1], name) == 0;
}

#endif
