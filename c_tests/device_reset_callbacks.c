/* A reset of a device whose memory is gone: nothing is given back, and the pool begins anew. */
#include "check.h"

static int given, taken;
static char memory[4][4 * 1024 * 1024 + 256];

static void *give(size_t bytes, void *user) {
  (void)user;
  CHECK(bytes <= 4 * MIB && given < 4);
  return (void *)(((uintptr_t)memory[given++] + 255) / 256 * 256);
}

static void take(void *ptr, size_t bytes, void *user) {
  (void)ptr;
  (void)bytes;
  (void)user;
  taken++;
}

int main(void) {
  luma_pool_config_t config = LUMA_POOL_CONFIG_INIT;
  void *before, *after;
  luma_stats_t stats;
  config.backend = LUMA_BACKEND_CALLBACKS;
  config.alloc_fn = give;
  config.free_fn = take;
  OK(luma_init(&config));
  before = must_alloc(1000);
  CHECK(given == 1);
  OK(luma_device_reset(0));
  CHECK(taken == 0);
  FAILS(luma_free(before), LUMA_ERROR_INVALID_POINTER, "not from this pool");
  stats = stats_now();
  CHECK(stats.reserved_bytes == 0 && stats.live_blocks == 0 && stats.peak_bytes == 1024);
  CHECK(stats.cuda_malloc_calls == stats.cuda_free_calls);
  after = must_alloc(1000);
  CHECK(given == 2 && after != before);
  OK(luma_free(after));
  OK(luma_check());
  CHECK(luma_empty_cache() == 2 * MIB && taken == 1);
  return 0;
}
