/* A device that was reset under its default pool: old pointers are dead, new memory is fresh. */
#include "check.h"

int main(void) {
  unsigned char *old, *cached, *fresh;
  luma_pool_t *pool;
  luma_pool_config_t config = host_config(16 * MIB);
  unsigned char *pooled;
  int round;

  /* Before anything exists there is nothing to forget. */
  OK(luma_device_reset(0));
  FAILS(luma_device_reset(1), LUMA_ERROR_NO_DEVICE, "device 1");
  FAILS(luma_device_reset(-1), LUMA_ERROR_NO_DEVICE, "device -1");

  pool = must_create(&config);
  pooled = must_pool_alloc(pool, 1000);
  memset(pooled, 5, 1000);
  for (round = 0; round < 50; round++) {
    old = must_alloc(3 * MIB);
    memset(old, 1, 3 * MIB);
    cached = must_alloc(5 * MIB);
    OK(luma_free(cached));
    OK(luma_device_reset(0));

    CHECK(stats_now().live_blocks == 0 && stats_now().allocated_bytes == 0);
    CHECK(stats_now().reserved_bytes == 0 && stats_now().segments == 0);
    CHECK(stats_now().requested_bytes == 0);
    CHECK(stats_now().cuda_malloc_calls == stats_now().cuda_free_calls);
    FAILS(luma_free(old), LUMA_ERROR_INVALID_POINTER, "not from this pool");
    CHECK(luma_usable_size(old) == 0 && luma_empty_cache() == 0);
    OK(luma_check());

    fresh = must_alloc(8 * MIB);
    CHECK(fresh[0] == 0 && fresh[8 * MIB - 1] == 0);
    memset(fresh, 2, 8 * MIB);
    OK(luma_free(fresh));
  }
  /* Pools of the program's own on the host are not the device's. */
  CHECK(pooled[999] == 5);
  OK(luma_pool_destroy(pool));
  return 0;
}
