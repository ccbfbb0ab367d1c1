/* Explicit pools: their lives, their handles, and that they keep apart. */
#include "check.h"

#define OFTEN 10000

static void every_function_refuses(luma_pool_t *bad, const char *part) {
  luma_stats_t stats = LUMA_STATS_INIT;
  unsigned char byte = 0;
  REFUSED(luma_pool_alloc(bad, 1, 0, NULL), LUMA_ERROR_INVALID_VALUE, part);
  FAILS(luma_pool_free(bad, &byte, NULL), LUMA_ERROR_INVALID_VALUE, part);
  CHECK(luma_pool_empty_cache(bad) == 0 && failed_with(LUMA_ERROR_INVALID_VALUE, part));
  FAILS(luma_pool_stats(bad, &stats), LUMA_ERROR_INVALID_VALUE, part);
  CHECK(stats.struct_size == sizeof stats && stats.segments == 0);
  FAILS(luma_pool_check(bad), LUMA_ERROR_INVALID_VALUE, part);
  FAILS(luma_pool_set_limit(bad, MIB), LUMA_ERROR_INVALID_VALUE, part);
  CHECK(luma_pool_is_host_accessible(bad) == 0 && failed_with(LUMA_ERROR_INVALID_VALUE, part));
  FAILS(luma_pool_destroy(bad), LUMA_ERROR_INVALID_VALUE, part);
}

static void what_is_no_pool(void) {
  int variable = 0;
  every_function_refuses(NULL, "NULL");
  every_function_refuses((luma_pool_t *)&variable, "is no pool");
  every_function_refuses((luma_pool_t *)(uintptr_t)1, "is no pool");
  every_function_refuses((luma_pool_t *)UINTPTR_MAX, "is no pool");
}

/* A handle never means the pool that came after it. */
static void handles_stay_dead(void) {
  static luma_pool_t *dead[OFTEN];
  luma_pool_config_t config = host_config(4 * MIB);
  luma_pool_t *living = must_create(&config);
  unsigned char *kept = must_pool_alloc(living, 1000);
  int at, before;
  memset(kept, 3, 1000);
  for (at = 0; at < OFTEN; at++) {
    luma_pool_t *pool = must_create(&config);
    CHECK(pool != living);
    for (before = at > 100 ? at - 100 : 0; before < at; before++) {
      CHECK(pool != dead[before]);
    }
    if (at % 3 != 0) { /* some are destroyed with a live block, some without */
      unsigned char *block = must_pool_alloc(pool, 5000);
      block[4999] = 1;
      if (at % 3 == 1) {
        OK(luma_pool_free(pool, block, NULL));
      }
    }
    OK(luma_pool_destroy(pool));
    dead[at] = pool;
    FAILS(luma_pool_destroy(pool), LUMA_ERROR_INVALID_VALUE, "destroyed");
  }
  for (at = 0; at < OFTEN; at++) {
    FAILS(luma_pool_check(dead[at]), LUMA_ERROR_INVALID_VALUE, "destroyed");
  }
  every_function_refuses(dead[0], "destroyed");
  every_function_refuses(dead[OFTEN - 1], "destroyed");
  CHECK(kept[0] == 3 && kept[999] == 3);
  OK(luma_pool_check(living));
  OK(luma_pool_destroy(living));
}

static void default_pools_stay(void) {
  luma_pool_t *pool = luma_default_pool(0);
  void *block = must_alloc(100);
  CHECK(pool != NULL && pool == luma_default_pool(0));
  CHECK(pool_stats_now(pool).live_blocks == stats_now().live_blocks);
  FAILS(luma_pool_destroy(pool), LUMA_ERROR_INVALID_VALUE, "default pool cannot be destroyed");
  CHECK(luma_usable_size(block) == 256);
  OK(luma_pool_free(pool, block, NULL));
  REFUSED(luma_default_pool(1), LUMA_ERROR_NO_DEVICE, "device 1");
  REFUSED(luma_default_pool(-2), LUMA_ERROR_NO_DEVICE, "device -2");
  CHECK(luma_default_pool(LUMA_CURRENT_DEVICE) == pool);
}

static void pools_keep_apart(void) {
  luma_pool_config_t config = host_config(64 * MIB);
  luma_pool_t *one = must_create(&config), *two = must_create(&config);
  unsigned char *in_one = must_pool_alloc(one, 60 * MIB), *in_two = must_pool_alloc(two, 60 * MIB);
  CHECK(one != two);
  CHECK(in_one + 60 * MIB <= in_two || in_two + 60 * MIB <= in_one);
  in_one[0] = 1;
  in_two[0] = 2;
  CHECK(luma_pool_is_host_accessible(one) == 1 && luma_last_status() == LUMA_SUCCESS);
  OK(luma_pool_destroy(one));
  CHECK(in_two[0] == 2);
  OK(luma_pool_free(two, in_two, NULL));
  OK(luma_pool_free(two, NULL, NULL));
  CHECK(luma_pool_empty_cache(two) >= 60 * MIB);
  CHECK(pool_stats_now(two).reserved_bytes == 0);
  CHECK(pool_stats_now(two).cuda_malloc_calls == pool_stats_now(two).cuda_free_calls);
  OK(luma_pool_destroy(two));
}

/* Pools on one device share what it has; a destroyed pool's part is there for the others. */
static void pools_share_a_device(void) {
  luma_pool_config_t config = LUMA_POOL_CONFIG_INIT;
  luma_pool_t *one, *two;
  size_t free_bytes, total;
  config.backend = LUMA_BACKEND_HOST;
  (void)luma_empty_cache();
  OK(luma_memory_info(&free_bytes, &total));
  one = must_create(&config);
  two = must_create(&config);
  CHECK(must_pool_alloc(one, total / 4 * 3) != NULL);
  REFUSED(luma_pool_alloc(two, total / 2, 0, NULL), LUMA_ERROR_OUT_OF_MEMORY, "out of memory");
  REFUSED(luma_alloc(total / 2), LUMA_ERROR_OUT_OF_MEMORY, "out of memory");
  OK(luma_pool_destroy(one));
  CHECK(must_pool_alloc(two, total / 4 * 3) != NULL);
  OK(luma_pool_destroy(two));
  OK(luma_memory_info(&free_bytes, &total));
  CHECK(free_bytes + stats_now().reserved_bytes == total);
}

/* Every preset and every way to grow; each pool serves, merges and gives back. */
static void presets_and_growths(void) {
  int32_t preset, growth;
  for (preset = LUMA_PRESET_DEFAULT; preset <= LUMA_PRESET_LUMA_0_3; preset++) {
    for (growth = LUMA_GROWTH_DEFAULT; growth <= LUMA_GROWTH_PAGED; growth++) {
      luma_pool_config_t config = host_config(64 * MIB);
      luma_pool_t *pool;
      unsigned char *blocks[16];
      size_t at;
      config.preset = preset;
      config.growth = growth;
      pool = must_create(&config);
      for (at = 0; at < 16; at++) {
        blocks[at] = must_pool_alloc(pool, (at + 1) * 100000);
        memset(blocks[at], (int)at, (at + 1) * 100000);
      }
      for (at = 0; at < 16; at++) {
        CHECK(blocks[at][0] == at && blocks[at][(at + 1) * 100000 - 1] == at);
        OK(luma_pool_free(pool, blocks[at], NULL));
      }
      OK(luma_pool_check(pool));
      CHECK(luma_pool_empty_cache(pool) > 0 && pool_stats_now(pool).reserved_bytes == 0);
      OK(luma_pool_destroy(pool));
    }
  }
}

static void backends_that_are_not_there(void) {
  static const int32_t CUDA[] = {LUMA_BACKEND_CUDA, LUMA_BACKEND_CUDA_HOST,
                                 LUMA_BACKEND_CUDA_MANAGED};
  size_t at;
  for (at = 0; at < 3; at++) {
    luma_pool_config_t config = LUMA_POOL_CONFIG_INIT;
    luma_pool_t *pool = NULL;
    config.backend = CUDA[at];
    FAILS(luma_pool_create(&config, &pool), LUMA_ERROR_NO_DEVICE, "CUDA");
    CHECK(pool == NULL);
  }
}

/* Addresses without memory: a device of a size that no machine has. */
static void simulated(void) {
  luma_pool_config_t config = LUMA_POOL_CONFIG_INIT;
  luma_pool_t *pool;
  config.backend = LUMA_BACKEND_SIMULATED;
  config.capacity = (uint64_t)1 << 50;
  pool = must_create(&config);
  CHECK(must_pool_alloc(pool, (size_t)1 << 49) != must_pool_alloc(pool, (size_t)1 << 49));
  REFUSED(luma_pool_alloc(pool, 1, 0, NULL), LUMA_ERROR_OUT_OF_MEMORY, "simulated");
  CHECK(luma_pool_is_host_accessible(pool) == 0 && luma_last_status() == LUMA_SUCCESS);
  OK(luma_pool_destroy(pool));
}

int main(void) {
  what_is_no_pool();
  handles_stay_dead();
  default_pools_stay();
  pools_keep_apart();
  pools_share_a_device();
  presets_and_growths();
  backends_that_are_not_there();
  simulated();
  return 0;
}
