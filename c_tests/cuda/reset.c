/* A device that is reset under its default pool: old pointers are refused, and the pool goes on. */
#include "driver.h"

/* A pool of the program's own has forgotten the device, too: neither its next blocks nor its end touch memory
 * that is somebody else's by now. */
static void under_a_pool(int32_t backend, int32_t growth) {
  luma_pool_config_t config = LUMA_POOL_CONFIG_INIT;
  luma_pool_t *pool;
  unsigned char *old, *fresh;
  address_t others[2];
  int at;
  config.backend = backend;
  config.growth = growth;
  pool = must_create(&config);
  old = must_pool_alloc(pool, 5 * MIB);
  OK(luma_pool_free(pool, must_pool_alloc(pool, 20 * MIB), NULL));
  DRIVER(primary_reset(0));
  OK(luma_device_reset(0));
  CHECK(pool_stats_now(pool).live_blocks == 0 && pool_stats_now(pool).reserved_bytes == 0);
  FAILS(luma_pool_free(pool, old, NULL), LUMA_ERROR_INVALID_POINTER, "not from this pool");
  DRIVER(set_current(primary_context(0)));
  for (at = 0; at < 2; at++) {
    DRIVER(alloc(&others[at], 32 * MIB));
    DRIVER(set(others[at], 9, 32 * MIB));
  }
  fresh = must_pool_alloc(pool, 20 * MIB);
  use(fresh, 20 * MIB, 3);
  OK(luma_pool_destroy(pool));
  for (at = 0; at < 2; at++) {
    CHECK(holds((void *)(uintptr_t)others[at], 32 * MIB, 9));
    DRIVER(free(others[at]));
  }
}

int main(void) {
  int round;
  size_t before, after, total;
  start_driver();
  DRIVER(set_current(primary_context(0)));
  OK(luma_free(must_alloc(1000)));
  (void)luma_empty_cache();
  DRIVER(memory_info(&before, &total));
  for (round = 0; round < 20; round++) {
    unsigned char *old = must_alloc(3 * MIB), *cached = must_alloc(5 * MIB), *fresh;
    use(old, 3 * MIB, 1);
    OK(luma_free(cached));
    DRIVER(primary_reset(0));
    OK(luma_device_reset(0));
    CHECK(stats_now().live_blocks == 0 && stats_now().reserved_bytes == 0);
    CHECK(stats_now().cuda_malloc_calls == stats_now().cuda_free_calls);
    FAILS(luma_free(old), LUMA_ERROR_INVALID_POINTER, "not from this pool");
    CHECK(luma_usable_size(old) == 0 && luma_empty_cache() == 0);
    OK(luma_check());

    fresh = must_alloc(8 * MIB);
    DRIVER(set_current(primary_context(0)));
    use(fresh, 8 * MIB, 2);
    OK(luma_free(fresh));
  }
  /* Nothing of all the rounds is left behind. */
  CHECK(luma_empty_cache() > 0);
  DRIVER(memory_info(&after, &total));
  CHECK(after >= before);

  under_a_pool(LUMA_BACKEND_CUDA, LUMA_GROWTH_DEFAULT);
  under_a_pool(LUMA_BACKEND_CUDA, LUMA_GROWTH_PROPORTIONAL);
  under_a_pool(LUMA_BACKEND_CUDA_MANAGED, LUMA_GROWTH_DEFAULT);
  under_a_pool(LUMA_BACKEND_CUDA_HOST, LUMA_GROWTH_DEFAULT);
  DRIVER(memory_info(&after, &total));
  CHECK(after >= before);
  return 0;
}
