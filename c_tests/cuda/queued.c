/* Work that is queued on the default stream when a block is freed still finds the block as it was. */
#include "driver.h"

#define BYTES (4 * MIB)

int main(void) {
  luma_pool_config_t config = LUMA_POOL_CONFIG_INIT;
  luma_pool_t *pool;
  int (*copy)(address_t to, const void *from, size_t bytes, void *stream);
  void *found, *target;
  unsigned char *source;
  start_driver();
  found = driver_function("cuMemcpyHtoDAsync_v2");
  memcpy(&copy, &found, sizeof found);
  DRIVER(set_current(primary_context(0)));
  target = must_alloc(BYTES);
  config.backend = LUMA_BACKEND_CUDA_HOST;
  pool = must_create(&config);
  source = must_pool_alloc(pool, BYTES);
  memset(source, 5, BYTES);
  CHECK(copy((address_t)(uintptr_t)target, source, BYTES, NULL) == 0);
  OK(luma_pool_free(pool, source, NULL));
  /* Its memory goes once the copy is done. */
  CHECK(luma_pool_empty_cache(pool) > 0);
  CHECK(holds(target, BYTES, 5));

  source = must_pool_alloc(pool, BYTES);
  memset(source, 6, BYTES);
  CHECK(copy((address_t)(uintptr_t)target, source, BYTES, NULL) == 0);
  OK(luma_pool_free(pool, source, NULL));
  CHECK(holds(target, BYTES, 6));
  OK(luma_pool_destroy(pool));
  OK(luma_free(target));
  return 0;
}
