/* Pools of device, pinned and managed memory. */
#include "driver.h"

static void of_kind(int32_t backend, int is_hosts, int has_context) {
  luma_pool_config_t config = LUMA_POOL_CONFIG_INIT;
  luma_pool_t *pool;
  unsigned char *blocks[8];
  int at;
  config.backend = backend;
  config.memory_limit = 20 * MIB + 256;
  pool = must_create(&config);
  CHECK(luma_pool_is_host_accessible(pool) == is_hosts);
  for (at = 0; at < 8; at++) {
    size_t bytes = (size_t)(at + 1) * 300 * KIB;
    blocks[at] = must_pool_alloc(pool, bytes);
    if (is_hosts) {
      memset(blocks[at], at, bytes);
    }
    if (has_context) {
      use(blocks[at], bytes, (unsigned char)(at + 1));
    }
    CHECK(!is_hosts || !has_context || (blocks[at][0] == at + 1 && blocks[at][bytes - 1] == at + 1));
  }
  for (at = 0; at < 8; at++) {
    CHECK(!has_context ||
          holds(blocks[at], (size_t)(at + 1) * 300 * KIB, (unsigned char)(at + 1)));
    OK(luma_pool_free(pool, blocks[at], NULL));
  }
  OK(luma_pool_check(pool));
  /* The whole limit, though it is no whole page. */
  CHECK(luma_pool_empty_cache(pool) > 0);
  blocks[0] = must_pool_alloc(pool, 20 * MIB);
  blocks[1] = must_pool_alloc(pool, 256);
  CHECK(pool_stats_now(pool).reserved_bytes == 20 * MIB + 256);
  REFUSED(luma_pool_alloc(pool, 1, 0, NULL), LUMA_ERROR_OUT_OF_MEMORY, "limit 20.00 MiB");
  OK(luma_pool_destroy(pool));
}

static void what_does_not_go(void) {
  luma_pool_config_t config = LUMA_POOL_CONFIG_INIT;
  luma_pool_t *pool = NULL;
  int count;
  DRIVER(device_count(&count));
  config.backend = LUMA_BACKEND_CUDA;
  config.device = count;
  FAILS(luma_pool_create(&config, &pool), LUMA_ERROR_NO_DEVICE, "the CUDA driver counts");
  config.device = -1;
  FAILS(luma_pool_create(&config, &pool), LUMA_ERROR_NO_DEVICE, "no device -1");
  config.device = 0;
  config.capacity = MIB;
  FAILS(luma_pool_create(&config, &pool), LUMA_ERROR_INVALID_VALUE, "capacity");
  CHECK(pool == NULL);
}

int main(void) {
  start_driver();
  of_kind(LUMA_BACKEND_CUDA, 0, 0);
  of_kind(LUMA_BACKEND_CUDA_HOST, 1, 0);
  of_kind(LUMA_BACKEND_CUDA_MANAGED, 1, 0);
  CHECK(current_context() == NULL);
  DRIVER(set_current(primary_context(0)));
  of_kind(LUMA_BACKEND_CUDA, 0, 1);
  of_kind(LUMA_BACKEND_CUDA_HOST, 1, 1);
  of_kind(LUMA_BACKEND_CUDA_MANAGED, 1, 1);
  what_does_not_go();
  return 0;
}
