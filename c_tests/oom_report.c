/* The report of a request that failed for want of memory: its figures, and each action that it may
 * name, which is then done and is enough. */
#include "check.h"

#include <pthread.h>

static luma_oom_report_t report_now(void) {
  luma_oom_report_t report = LUMA_OOM_REPORT_INIT;
  OK(luma_oom_report(&report));
  return report;
}

/* What was said of the last refusal. */
static char message[1024];

static int said(const char *part) { return strstr(message, part) != NULL; }

static luma_oom_report_t refused(luma_pool_t *pool, size_t bytes, size_t alignment) {
  REFUSED(luma_pool_alloc(pool, bytes, alignment, NULL), LUMA_ERROR_OUT_OF_MEMORY, "out of memory");
  snprintf(message, sizeof message, "%s", luma_last_error());
  return report_now();
}

static void without_a_failure(void) {
  luma_oom_report_t report = LUMA_OOM_REPORT_INIT;
  report.live_blocks = 77;
  FAILS(luma_oom_report(&report), LUMA_ERROR_INVALID_VALUE, "no request of this thread");
  CHECK(report.live_blocks == 77);
  FAILS(luma_oom_report(NULL), LUMA_ERROR_INVALID_VALUE, "NULL");
  report.struct_size = 8;
  FAILS(luma_oom_report(&report), LUMA_ERROR_INVALID_VALUE, "LUMA_OOM_REPORT_INIT");
}

static int has_nothing(size_t bytes, void *user) {
  (void)bytes;
  (void)user;
  return 0;
}

static void every_figure(void) {
  luma_pool_config_t config = host_config(GIB);
  luma_pool_t *pool;
  unsigned char *first, *between, *last;
  luma_oom_report_t report;
  luma_stats_t stats;
  config.memory_limit = 64 * MIB;
  pool = must_create(&config);
  first = must_pool_alloc(pool, 20 * MIB);
  between = must_pool_alloc(pool, 256);
  last = must_pool_alloc(pool, 30 * MIB - 100);
  OK(luma_pool_free(pool, first, NULL));
  OK(luma_add_oom_handler(has_nothing, NULL));
  report = refused(pool, 40 * MIB - 1, 4096);
  OK(luma_remove_oom_handler(has_nothing, NULL));
  stats = pool_stats_now(pool);
  CHECK(report.requested_bytes == 40 * MIB - 1 && report.rounded_bytes == 40 * MIB);
  CHECK(report.alignment == 4096);
  CHECK(report.allocated_bytes == stats.allocated_bytes && report.live_blocks == 2);
  CHECK(report.reserved_bytes == stats.reserved_bytes);
  CHECK(report.largest_free_block == stats.largest_free_block);
  CHECK(report.idle_bytes == 0);
  CHECK(report.stuck_bytes == stats.reserved_bytes - stats.allocated_bytes);
  CHECK(report.pending_bytes == 0 && report.pending_streams == 0 && report.pending[7].bytes == 0);
  CHECK(report.memory_limit == 64 * MIB);
  CHECK(report.device_is_known == 1 && report.device_total_bytes == GIB);
  CHECK(report.device_free_bytes == GIB - stats.reserved_bytes);
  CHECK(report.backend == LUMA_BACKEND_HOST && report.device == 0);
  CHECK(report.handler_calls == 1 && stats.handler_calls == 1);
  CHECK(report.waits == 0 && report.wait_ns == 0);
  CHECK(report.action == LUMA_OOM_RAISE_LIMIT && report.action_bytes > 64 * MIB);
  CHECK(report.action_address == NULL && report.action_pool == NULL);

  /* Calls that succeed, and other failures, keep it. */
  OK(luma_pool_check(pool));
  FAILS(luma_pool_free(pool, between + 1, NULL), LUMA_ERROR_INVALID_POINTER, "inside");
  CHECK(report_now().requested_bytes == 40 * MIB - 1);

  OK(luma_pool_set_limit(pool, report.action_bytes));
  first = (unsigned char *)luma_pool_alloc(pool, 40 * MIB - 1, 4096, NULL);
  CHECK(first != NULL);
  OK(luma_pool_free(pool, first, NULL));
  OK(luma_pool_free(pool, between, NULL));
  OK(luma_pool_free(pool, last, NULL));
  OK(luma_pool_destroy(pool));
}

static void ask_for_less(void) {
  luma_pool_config_t config = host_config(16 * MIB);
  luma_pool_t *pool = must_create(&config);
  luma_oom_report_t report = refused(pool, 16 * MIB + 1, 0);
  CHECK(report.action == LUMA_OOM_ASK_FOR_LESS && report.action_bytes == 16 * MIB);
  report = refused(pool, SIZE_MAX, 0);
  CHECK(report.action == LUMA_OOM_ASK_FOR_LESS && report.rounded_bytes == UINT64_MAX);
  OK(luma_pool_free(pool, must_pool_alloc(pool, 16 * MIB), NULL));
  OK(luma_pool_destroy(pool));
}

static void raise_the_limit(void) {
  luma_pool_config_t config = host_config(256 * MIB);
  luma_pool_t *pool;
  luma_oom_report_t report;
  config.memory_limit = 16 * MIB;
  pool = must_create(&config);
  report = refused(pool, 20 * MIB, 0);
  CHECK(report.action == LUMA_OOM_RAISE_LIMIT && report.action_bytes == 20 * MIB);
  CHECK(said("The request is larger than the limit: raise it to 20.00 MiB"));
  OK(luma_pool_set_limit(pool, report.action_bytes));
  OK(luma_pool_free(pool, must_pool_alloc(pool, 20 * MIB), NULL));
  OK(luma_pool_destroy(pool));
}

/* The smallest of those that are enough, which is not the smallest of all. */
static void free_a_block(void) {
  luma_pool_config_t config = host_config(64 * MIB);
  luma_pool_t *pool = must_create(&config);
  unsigned char *blocks[3];
  luma_oom_report_t report;
  char expected[64];
  blocks[0] = must_pool_alloc(pool, 40 * MIB);
  blocks[1] = must_pool_alloc(pool, 6 * MIB);
  blocks[2] = must_pool_alloc(pool, 18 * MIB);
  report = refused(pool, 16 * MIB, 0);
  CHECK(report.action == LUMA_OOM_FREE_BLOCK);
  CHECK(report.action_address == blocks[2] && report.action_bytes == 18 * MIB);
  snprintf(expected, sizeof expected, "at %p, which is enough", (void *)blocks[2]);
  CHECK(said("Free the block of 18.00 MiB") && said(expected));
  OK(luma_pool_free(pool, report.action_address, NULL));
  CHECK(must_pool_alloc(pool, 16 * MIB) != NULL);
  OK(luma_pool_destroy(pool));
}

static void free_several(void) {
  luma_pool_config_t config = host_config(64 * MIB);
  luma_pool_t *pool = must_create(&config);
  unsigned char *blocks[4];
  luma_oom_report_t report;
  int at;
  for (at = 0; at < 4; at++) {
    blocks[at] = must_pool_alloc(pool, 16 * MIB);
  }
  report = refused(pool, 40 * MIB, 0);
  CHECK(report.action == LUMA_OOM_FREE_SEVERAL && report.action_bytes == 40 * MIB);
  for (at = 0; at < 3; at++) {
    OK(luma_pool_free(pool, blocks[at], NULL));
  }
  CHECK(must_pool_alloc(pool, 40 * MIB) != NULL);
  OK(luma_pool_destroy(pool));
}

/* Two pools of one device, which is the one that all pools without a capacity share. */
static void empty_another_pool(void) {
  luma_pool_config_t config = host_config(0);
  luma_pool_t *pool = must_create(&config), *other = must_create(&config);
  luma_oom_report_t report;
  OK(luma_pool_free(other, must_pool_alloc(other, 40 * MIB), NULL));
  report = refused(pool, 50 * MIB, 0);
  CHECK(report.action == LUMA_OOM_EMPTY_OTHER_POOL && report.action_pool == other);
  CHECK(said("Another pool of the device holds 40.00 MiB"));
  CHECK(report.action_bytes == 40 * MIB);
  CHECK(luma_pool_empty_cache(report.action_pool) == report.action_bytes);
  CHECK(must_pool_alloc(pool, 50 * MIB) != NULL);
  OK(luma_pool_destroy(pool));
  OK(luma_pool_destroy(other));
}

/* Each thread has its own. */
static void *in_another_thread(void *unused) {
  without_a_failure();
  REFUSED(luma_alloc(SIZE_MAX), LUMA_ERROR_OUT_OF_MEMORY, "out of memory");
  CHECK(report_now().requested_bytes == SIZE_MAX);
  return unused;
}

int main(void) {
  pthread_t thread;
  CHECK(setenv("LUMA_HOST_CAPACITY", "64M", 1) == 0);
  without_a_failure();
  every_figure();
  ask_for_less();
  raise_the_limit();
  free_a_block();
  free_several();
  empty_another_pool();
  CHECK(pthread_create(&thread, NULL, in_another_thread, NULL) == 0);
  CHECK(pthread_join(thread, NULL) == 0);
  CHECK(report_now().requested_bytes != SIZE_MAX);
  return 0;
}
