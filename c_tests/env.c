/* What the environment asks for, as a program sees it. The argument says which case; the test that
 * runs this sets the variables. */
#include "check.h"

/* Bad values are ignored: everything is as without them. */
static void defaults(void) {
  size_t free_bytes, total;
  OK(luma_memory_info(&free_bytes, &total));
  CHECK(total == 16 * GIB && free_bytes == total);
  OK(luma_free(must_alloc(1000)));
  OK(luma_free(must_alloc(1000)));
  CHECK(stats_now().memory_limit == 0);
}

/* Every call says that there is no device, each time, and nothing else happens. */
static void no_device(void) {
  int round, byte = 0;
  for (round = 0; round < 3; round++) {
    luma_stats_t stats = LUMA_STATS_INIT;
    size_t free_bytes = 5, total = 6;
    REFUSED(luma_alloc(100), LUMA_ERROR_NO_DEVICE, "CUDA");
    REFUSED(luma_alloc_aligned(100, 512), LUMA_ERROR_NO_DEVICE, "CUDA");
    FAILS(luma_free(&byte), LUMA_ERROR_INVALID_POINTER, "not from this pool");
    OK(luma_free(NULL));
    CHECK(luma_empty_cache() == 0 && failed_with(LUMA_ERROR_NO_DEVICE, "CUDA"));
    FAILS(luma_stats(&stats), LUMA_ERROR_NO_DEVICE, "CUDA");
    FAILS(luma_reset_peak(), LUMA_ERROR_NO_DEVICE, "CUDA");
    FAILS(luma_check(), LUMA_ERROR_NO_DEVICE, "CUDA");
    CHECK(luma_usable_size(&byte) == 0);
    FAILS(luma_memory_info(&free_bytes, &total), LUMA_ERROR_NO_DEVICE, "CUDA");
    CHECK(free_bytes == 5 && total == 6 && stats.segments == 0);
    REFUSED(luma_default_pool(0), LUMA_ERROR_NO_DEVICE, "CUDA");
  }
  {
    /* Pools that name their backend are not concerned. */
    luma_pool_config_t config = host_config(MIB);
    luma_pool_t *pool = must_create(&config);
    OK(luma_pool_free(pool, must_pool_alloc(pool, 1000), NULL));
    OK(luma_pool_destroy(pool));
  }
}

/* 50 % of 3 GiB. */
static void half_the_device(void) {
  size_t free_bytes, total;
  void *block;
  OK(luma_memory_info(&free_bytes, &total));
  CHECK(total == 3 * GIB);
  CHECK(stats_now().memory_limit == 3 * GIB / 2);
  block = must_alloc(3 * GIB / 2);
  REFUSED(luma_alloc(1), LUMA_ERROR_OUT_OF_MEMORY, "limit 1.50 GiB");
  OK(luma_free(block));
}

/* A device of 5 MiB, which pools without a capacity of their own share. */
static void capacity(void) {
  luma_pool_config_t config = LUMA_POOL_CONFIG_INIT;
  luma_pool_t *pool;
  size_t free_bytes, total;
  void *block = must_alloc(5 * MIB);
  OK(luma_memory_info(&free_bytes, &total));
  CHECK(total == 5 * MIB && free_bytes == 0);
  config.backend = LUMA_BACKEND_HOST;
  pool = must_create(&config);
  REFUSED(luma_pool_alloc(pool, 1, 0, NULL), LUMA_ERROR_OUT_OF_MEMORY, "0 bytes free of 5.00 MiB");
  OK(luma_free(block));
  REFUSED(luma_alloc(5 * MIB + 1), LUMA_ERROR_OUT_OF_MEMORY, "LUMA_HOST_CAPACITY");
  OK(luma_pool_destroy(pool));
}

/* Freed memory is overwritten, all of it, and nothing but it. */
static void poison(void) {
  unsigned char *before = must_alloc(1024), *block = must_alloc(1000), *after = must_alloc(1024);
  size_t at;
  memset(before, 1, 1024);
  memset(block, 2, 1000);
  memset(after, 3, 1024);
  OK(luma_free(block));
  for (at = 0; at < 1024; at++) {
    CHECK(block[at] == 0xDF && before[at] == 1 && after[at] == 3);
  }
  OK(luma_free(before));
  OK(luma_free(after));
}

/* XLA's first region is 2 MiB and the second 4; the limit is only for default pools. */
static void preset_and_limit_of_default_pools(void) {
  luma_pool_config_t config = host_config(64 * MIB);
  luma_pool_t *pool = must_create(&config);
  void *first = must_alloc(1000);
  CHECK(stats_now().reserved_bytes == 2 * MIB);
  CHECK(must_alloc(2 * MIB) != first && stats_now().reserved_bytes == 6 * MIB);
  CHECK(stats_now().memory_limit == 10 * MIB);
  CHECK(pool_stats_now(pool).memory_limit == 0);
  OK(luma_pool_free(pool, must_pool_alloc(pool, 30 * MIB), NULL));
  OK(luma_pool_destroy(pool));
}

/* 20 calls: 8 blocks, of which 7 are freed; one request in each pool that is refused. */
static void traced(void) {
  luma_pool_config_t config = host_config(MIB);
  luma_pool_t *pool = must_create(&config);
  void *blocks[4], *pooled[4];
  size_t at;
  for (at = 0; at < 4; at++) {
    blocks[at] = must_alloc((at + 1) * 1000);
    pooled[at] = must_pool_alloc(pool, (at + 1) * 100);
  }
  REFUSED(luma_alloc(17 * GIB), LUMA_ERROR_OUT_OF_MEMORY, "out of memory");
  REFUSED(luma_pool_alloc(pool, 2 * MIB, 0, NULL), LUMA_ERROR_OUT_OF_MEMORY, "out of memory");
  for (at = 0; at < 4; at++) {
    OK(luma_pool_free(pool, pooled[at], NULL));
    if (at > 0) {
      OK(luma_free(blocks[at]));
    }
  }
  OK(luma_pool_destroy(pool));
}

int main(int argc, char **argv) {
  static const struct {
    const char *name;
    void (*run)(void);
  } CASES[] = {
      {"defaults", defaults}, {"no_device", no_device}, {"half_the_device", half_the_device},
      {"capacity", capacity}, {"poison", poison},       {"traced", traced},
      {"preset_and_limit_of_default_pools", preset_and_limit_of_default_pools},
  };
  size_t at;
  for (at = 0; at < sizeof CASES / sizeof CASES[0]; at++) {
    if (asked_for(argc, argv, CASES[at].name)) {
      CASES[at].run();
      return 0;
    }
  }
  fprintf(stderr, "which case?\n");
  return 2;
}
