/* The limit of a pool: never exceeded, and wholly usable. */
#include "check.h"

#include <pthread.h>

static luma_pool_t *limited(uint64_t limit, int32_t preset) {
  luma_pool_config_t config = host_config(GIB);
  config.memory_limit = limit;
  config.preset = preset;
  return must_create(&config);
}

static void the_whole_limit_can_be_used(void) {
  static const size_t LIMITS[] = {256, 1000 * 256, 3 * MIB + 256, 64 * MIB, 100 * MIB - 256};
  int32_t preset;
  size_t at;
  for (preset = LUMA_PRESET_DEFAULT; preset <= LUMA_PRESET_LUMA_0_3; preset++) {
    for (at = 0; at < sizeof LIMITS / sizeof LIMITS[0]; at++) {
      size_t limit = LIMITS[at];
      luma_pool_t *pool = limited(limit, preset);
      unsigned char *block = must_pool_alloc(pool, limit);
      block[0] = block[limit - 1] = 1;
      CHECK(pool_stats_now(pool).reserved_bytes == limit);
      CHECK(pool_stats_now(pool).memory_limit == limit);
      CHECK(pool_stats_now(pool).largest_free_block == 0 && pool_stats_now(pool).free_blocks == 0);
      REFUSED(luma_pool_alloc(pool, 1, 0, NULL), LUMA_ERROR_OUT_OF_MEMORY, "limit");
      OK(luma_pool_free(pool, block, NULL));
      REFUSED(luma_pool_alloc(pool, limit + 1, 0, NULL), LUMA_ERROR_OUT_OF_MEMORY,
              "larger than the limit");
      OK(luma_pool_free(pool, must_pool_alloc(pool, limit), NULL));
      OK(luma_pool_check(pool));
      OK(luma_pool_destroy(pool));
    }
  }
}

static void many_blocks_fill_it_too(void) {
  enum { COUNT = 1000 };
  static unsigned char *blocks[COUNT];
  luma_pool_t *pool = limited(COUNT * 4 * KIB, LUMA_PRESET_DEFAULT);
  size_t at;
  for (at = 0; at < COUNT; at++) {
    blocks[at] = must_pool_alloc(pool, 4 * KIB);
  }
  REFUSED(luma_pool_alloc(pool, 1, 0, NULL), LUMA_ERROR_OUT_OF_MEMORY, "limit");
  CHECK(pool_stats_now(pool).reserved_bytes == COUNT * 4 * KIB);
  for (at = 0; at < COUNT; at++) {
    OK(luma_pool_free(pool, blocks[at], NULL));
  }
  OK(luma_pool_destroy(pool));
}

static void a_limit_can_be_changed(void) {
  luma_pool_t *pool = limited(0, LUMA_PRESET_DEFAULT);
  unsigned char *block = must_pool_alloc(pool, 10 * MIB), *other = must_pool_alloc(pool, 20 * MIB);
  CHECK(pool_stats_now(pool).memory_limit == 0);
  memset(block, 1, 10 * MIB);

  /* Below what is live: refused, and nothing changes. */
  {
    luma_stats_t before = pool_stats_now(pool), after;
    FAILS(luma_pool_set_limit(pool, 29 * MIB), LUMA_ERROR_INVALID_VALUE, "free blocks first");
    FAILS(luma_pool_set_limit(pool, 1), LUMA_ERROR_INVALID_VALUE, "free blocks first");
    after = pool_stats_now(pool);
    CHECK(same_stats(&before, &after));
  }

  /* What is free beyond it goes at once. */
  OK(luma_pool_free(pool, other, NULL));
  OK(luma_pool_set_limit(pool, 12 * MIB));
  CHECK(pool_stats_now(pool).reserved_bytes <= 12 * MIB);
  CHECK(pool_stats_now(pool).memory_limit == 12 * MIB);
  REFUSED(luma_pool_alloc(pool, 3 * MIB, 0, NULL), LUMA_ERROR_OUT_OF_MEMORY, "limit");
  CHECK(block[0] == 1 && block[10 * MIB - 1] == 1);

  /* Raised, and none at all. */
  OK(luma_pool_set_limit(pool, 16 * MIB));
  OK(luma_pool_free(pool, must_pool_alloc(pool, 6 * MIB), NULL));
  OK(luma_pool_set_limit(pool, 0));
  OK(luma_pool_free(pool, must_pool_alloc(pool, 500 * MIB), NULL));
  OK(luma_pool_check(pool));
  OK(luma_pool_destroy(pool));
}

static void default_pools_have_one_as_well(void) {
  luma_pool_t *pool = luma_default_pool(0);
  size_t free_bytes, total;
  void *block;
  OK(luma_pool_set_limit(pool, 8 * MIB));
  block = must_alloc(8 * MIB);
  REFUSED(luma_alloc(1), LUMA_ERROR_OUT_OF_MEMORY, "limit");
  OK(luma_memory_info(&free_bytes, &total));
  CHECK(free_bytes == 0 && total > 8 * MIB);
  OK(luma_free(block));
  OK(luma_pool_set_limit(pool, 0));
}

static luma_pool_t *contended;

static void *allocate_often(void *unused) {
  int round, last = rounds(1000);
  for (round = 0; round < last; round++) {
    void *blocks[4];
    size_t at;
    for (at = 0; at < 4; at++) {
      blocks[at] = luma_pool_alloc(contended, (at + 1) * 700 * KIB, 0, NULL);
    }
    for (at = 0; at < 4; at++) {
      CHECK(luma_pool_free(contended, blocks[at], NULL) == LUMA_SUCCESS);
    }
  }
  return unused;
}

/* While others allocate, it is lowered and raised; what is reserved never exceeds it. */
static void a_limit_holds_at_every_moment(void) {
  pthread_t threads[4];
  int at, round, last = rounds(2000);
  contended = limited(32 * MIB, LUMA_PRESET_DEFAULT);
  for (at = 0; at < 4; at++) {
    CHECK(pthread_create(&threads[at], NULL, allocate_often, NULL) == 0);
  }
  for (round = 0; round < last; round++) {
    luma_stats_t stats;
    uint64_t limit = round % 2 == 0 ? 10 * MIB : 32 * MIB;
    luma_status_t status = luma_pool_set_limit(contended, limit);
    CHECK(status == LUMA_SUCCESS || status == LUMA_ERROR_INVALID_VALUE);
    stats = pool_stats_now(contended);
    CHECK(stats.reserved_bytes <= stats.memory_limit);
    CHECK(stats.memory_limit == 10 * MIB || stats.memory_limit == 32 * MIB);
  }
  for (at = 0; at < 4; at++) {
    CHECK(pthread_join(threads[at], NULL) == 0);
  }
  CHECK(pool_stats_now(contended).live_blocks == 0);
  OK(luma_pool_check(contended));
  OK(luma_pool_destroy(contended));
}

int main(void) {
  the_whole_limit_can_be_used();
  many_blocks_fill_it_too();
  a_limit_can_be_changed();
  default_pools_have_one_as_well();
  a_limit_holds_at_every_moment();
  return 0;
}
