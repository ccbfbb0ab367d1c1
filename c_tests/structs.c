/* Structs of programs that were compiled with an older or a newer header than the library. */
#include "check.h"

typedef struct newer_stats_t {
  luma_stats_t known;
  uint64_t added[4];
} newer_stats_t;

typedef struct newer_config_t {
  luma_pool_config_t known;
  uint64_t added[4];
} newer_config_t;

static void without_a_size(void) {
  luma_stats_t stats = LUMA_STATS_INIT;
  luma_pool_config_t config = LUMA_POOL_CONFIG_INIT;
  luma_pool_t *pool = NULL;
  stats.struct_size = 0;
  stats.live_blocks = 77;
  FAILS(luma_stats(&stats), LUMA_ERROR_INVALID_VALUE, "LUMA_STATS_INIT");
  CHECK(stats.struct_size == 0 && stats.live_blocks == 77);
  config.struct_size = 0;
  FAILS(luma_pool_create(&config, &pool), LUMA_ERROR_INVALID_VALUE, "LUMA_POOL_CONFIG_INIT");
  FAILS(luma_init(&config), LUMA_ERROR_INVALID_VALUE, "LUMA_POOL_CONFIG_INIT");
  CHECK(pool == NULL);
}

static void smaller_than_the_first_version(void) {
  luma_stats_t stats = LUMA_STATS_INIT;
  luma_pool_config_t config = LUMA_POOL_CONFIG_INIT;
  luma_pool_t *pool = NULL;
  stats.struct_size = 143;
  FAILS(luma_stats(&stats), LUMA_ERROR_INVALID_VALUE, "143");
  config.struct_size = sizeof config - 8;
  FAILS(luma_pool_create(&config, &pool), LUMA_ERROR_INVALID_VALUE, "80");
  CHECK(pool == NULL);
}

static void a_size_that_no_struct_has(void) {
  luma_stats_t stats = LUMA_STATS_INIT;
  luma_pool_config_t config = LUMA_POOL_CONFIG_INIT;
  luma_pool_t *pool = NULL;
  stats.struct_size = SIZE_MAX;
  FAILS(luma_stats(&stats), LUMA_ERROR_INVALID_VALUE, "struct_size");
  config.struct_size = (size_t)1 << 40;
  FAILS(luma_pool_create(&config, &pool), LUMA_ERROR_INVALID_VALUE, "struct_size");
  CHECK(pool == NULL);
}

/* What a newer program has behind the known fields is zero afterwards, and its size is kept. */
static void newer_output(void) {
  newer_stats_t newer;
  luma_stats_t stats;
  void *block = must_alloc(1000);
  memset(&newer, 0xEE, sizeof newer);
  newer.known.struct_size = sizeof newer;
  OK(luma_stats(&newer.known));
  CHECK(newer.known.struct_size == sizeof newer);
  CHECK(newer.added[0] == 0 && newer.added[1] == 0 && newer.added[2] == 0 && newer.added[3] == 0);
  stats = stats_now();
  newer.known.struct_size = sizeof stats;
  CHECK(same_stats(&newer.known, &stats) && stats.live_blocks == 1);

  memset(&newer, 0xEE, sizeof newer);
  newer.known.struct_size = sizeof newer - 8;
  OK(luma_pool_stats(luma_default_pool(0), &newer.known));
  CHECK(newer.added[2] == 0 && newer.added[3] == UINT64_C(0xEEEEEEEEEEEEEEEE));
  OK(luma_free(block));
}

/* A newer program that uses nothing new is served; one that does is told. */
static void newer_input(void) {
  newer_config_t newer;
  luma_pool_t *pool = NULL;
  memset(&newer, 0, sizeof newer);
  newer.known = host_config(16 * MIB);
  newer.known.struct_size = sizeof newer;
  OK(luma_pool_create(&newer.known, &pool));
  OK(luma_pool_free(pool, must_pool_alloc(pool, 100), NULL));
  OK(luma_pool_destroy(pool));

  pool = NULL;
  newer.added[3] = (uint64_t)1 << 56;
  FAILS(luma_pool_create(&newer.known, &pool), LUMA_ERROR_INVALID_VALUE, "does not know");
  CHECK(pool == NULL);
  newer.known.struct_size = sizeof newer - 8;
  OK(luma_pool_create(&newer.known, &pool));
  OK(luma_pool_destroy(pool));
}

static void numbers_that_mean_nothing(void) {
  static const int32_t BAD[] = {-1, 99, INT32_MAX, INT32_MIN};
  size_t at;
  for (at = 0; at < sizeof BAD / sizeof BAD[0]; at++) {
    luma_pool_t *pool = NULL;
    luma_pool_config_t config = host_config(MIB);
    config.backend = BAD[at];
    FAILS(luma_pool_create(&config, &pool), LUMA_ERROR_INVALID_VALUE, "backend");
    config = host_config(MIB);
    config.preset = BAD[at];
    FAILS(luma_pool_create(&config, &pool), LUMA_ERROR_INVALID_VALUE, "preset");
    config = host_config(MIB);
    config.growth = BAD[at];
    FAILS(luma_pool_create(&config, &pool), LUMA_ERROR_INVALID_VALUE, "growth");
    config = host_config(MIB);
    config.split_when_double = BAD[at];
    FAILS(luma_pool_create(&config, &pool), LUMA_ERROR_INVALID_VALUE, "split_when_double");
    config = host_config(MIB);
    config.release_on_failure = BAD[at];
    FAILS(luma_pool_create(&config, &pool), LUMA_ERROR_INVALID_VALUE, "release_on_failure");
    config = host_config(MIB);
    config.device = BAD[at];
    FAILS(luma_pool_create(&config, &pool), LUMA_ERROR_NO_DEVICE, "device");
    config = host_config(MIB);
    config.min_segment_bytes = 100;
    FAILS(luma_pool_create(&config, &pool), LUMA_ERROR_INVALID_VALUE, "min_segment_bytes");
    config = host_config(MIB);
    config.min_split_bytes = 257;
    FAILS(luma_pool_create(&config, &pool), LUMA_ERROR_INVALID_VALUE, "min_split_bytes");
    CHECK(pool == NULL);
  }
}

static void null_structs(void) {
  luma_pool_t *pool = NULL;
  luma_pool_config_t config = LUMA_POOL_CONFIG_INIT;
  FAILS(luma_pool_create(NULL, &pool), LUMA_ERROR_INVALID_VALUE, "NULL");
  FAILS(luma_pool_create(&config, NULL), LUMA_ERROR_INVALID_VALUE, "out is NULL");
  FAILS(luma_init(NULL), LUMA_ERROR_INVALID_VALUE, "NULL");
  FAILS(luma_pool_stats(luma_default_pool(0), NULL), LUMA_ERROR_INVALID_VALUE, "NULL");
  CHECK(pool == NULL);
}

int main(void) {
  without_a_size();
  smaller_than_the_first_version();
  a_size_that_no_struct_has();
  newer_output();
  newer_input();
  numbers_that_mean_nothing();
  null_structs();
  return 0;
}
