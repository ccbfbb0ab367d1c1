/* luma_init: what it sets, and when it comes too late. The argument says which case. */
#include "check.h"

static luma_pool_config_t small(void) {
  luma_pool_config_t config = LUMA_POOL_CONFIG_INIT;
  config.memory_limit = 8 * MIB;
  return config;
}

/* Before the first use it shapes the default pool; once, and before anything else did. */
static void before_first_use(void) {
  luma_pool_config_t config = small();
  luma_pool_t *pool;
  void *block;
  CHECK(luma_usable_size(&config) == 0); /* a question makes no pool */
  OK(luma_init(&config));
  FAILS(luma_init(&config), LUMA_ERROR_INVALID_VALUE, "one exists already");
  CHECK(stats_now().memory_limit == 8 * MIB);
  block = must_alloc(8 * MIB);
  REFUSED(luma_alloc(256), LUMA_ERROR_OUT_OF_MEMORY, "limit 8.00 MiB");
  pool = luma_default_pool(0);
  CHECK(pool != NULL && pool_stats_now(pool).memory_limit == 8 * MIB);
  OK(luma_free(block));
}

static void after_first_use(void) {
  luma_pool_config_t config = small();
  luma_stats_t before, after;
  OK(luma_free(must_alloc(1)));
  before = stats_now();
  FAILS(luma_init(&config), LUMA_ERROR_INVALID_VALUE, "before the first use");
  after = stats_now();
  CHECK(same_stats(&before, &after) && after.memory_limit == 0);
  OK(luma_free(must_alloc(100 * MIB)));
}

/* A pool of one's own is no use of a default pool. */
static void after_other_pools(void) {
  luma_pool_config_t own = host_config(MIB), config = small();
  luma_pool_t *pool = must_create(&own);
  OK(luma_init(&config));
  CHECK(stats_now().memory_limit == 8 * MIB);
  CHECK(pool_stats_now(pool).memory_limit == 0);
  OK(luma_pool_destroy(pool));
}

/* A bad one leaves everything to be done right. */
static void after_a_bad_one(void) {
  luma_pool_config_t config = small();
  config.backend = LUMA_BACKEND_CUDA;
  FAILS(luma_init(&config), LUMA_ERROR_NO_DEVICE, "CUDA");
  config.backend = 77;
  FAILS(luma_init(&config), LUMA_ERROR_INVALID_VALUE, "77");
  config.backend = LUMA_BACKEND_HOST;
  config.memory_limit = 4 * MIB;
  OK(luma_init(&config));
  CHECK(stats_now().memory_limit == 4 * MIB);
}

static void *give(size_t bytes, void *user) {
  void *memory = NULL;
  ++*(int *)user;
  return posix_memalign(&memory, 256, bytes) == 0 ? memory : NULL;
}

static void take_back(void *ptr, size_t bytes, void *user) {
  (void)bytes;
  --*(int *)user;
  free(ptr);
}

/* Any backend may be the default pool's. */
static void over_callbacks(void) {
  int held = 0;
  luma_pool_config_t config = LUMA_POOL_CONFIG_INIT;
  size_t free_bytes = 1, total = 1;
  void *block;
  config.backend = LUMA_BACKEND_CALLBACKS;
  config.alloc_fn = give;
  config.free_fn = take_back;
  config.user = &held;
  OK(luma_init(&config));
  block = must_alloc(1000);
  CHECK(held == 1);
  FAILS(luma_memory_info(&free_bytes, &total), LUMA_ERROR_UNSUPPORTED, "callbacks");
  CHECK(free_bytes == 1 && total == 1);
  OK(luma_pool_set_limit(luma_default_pool(0), 64 * MIB));
  OK(luma_memory_info(&free_bytes, &total));
  CHECK(total == 64 * MIB && free_bytes == total - stats_now().reserved_bytes);
  OK(luma_free(block));
  CHECK(luma_empty_cache() > 0 && held == 0);
}

/* The environment says a limit of 1 MiB and another preset; what is set here wins. */
static void over_the_environment(void) {
  luma_pool_config_t config = small();
  OK(luma_init(&config));
  CHECK(stats_now().memory_limit == 8 * MIB);
  OK(luma_free(must_alloc(8 * MIB)));
}

/* Fields that are left at 0 are what the environment says. */
static void beside_the_environment(void) {
  luma_pool_config_t config = LUMA_POOL_CONFIG_INIT;
  OK(luma_init(&config));
  CHECK(stats_now().memory_limit == 1 * MIB);
  REFUSED(luma_alloc(2 * MIB), LUMA_ERROR_OUT_OF_MEMORY, "LUMA_MEMORY_LIMIT");
}

int main(int argc, char **argv) {
  static const struct {
    const char *name;
    void (*run)(void);
  } CASES[] = {
      {"before_first_use", before_first_use},   {"after_first_use", after_first_use},
      {"after_other_pools", after_other_pools}, {"after_a_bad_one", after_a_bad_one},
      {"over_callbacks", over_callbacks},       {"over_the_environment", over_the_environment},
      {"beside_the_environment", beside_the_environment},
  };
  size_t at;
  for (at = 0; at < sizeof CASES / sizeof CASES[0]; at++) {
    if (asked_for(argc, argv, CASES[at].name)) {
      CASES[at].run();
      OK(luma_check());
      return 0;
    }
  }
  fprintf(stderr, "which case?\n");
  return 2;
}
