/* Calls after the driver has shut down: frees are quiet, requests that need the driver fail with its
 * words, and the process ends well. */
#include "streams.h"

static void *kept, *ordered;
static stream_t stream;
static luma_pool_t *pool;

/* Registered before the driver's own handler, so it runs after that. */
static void late(void) {
  size_t free_bytes, total;
  CHECK(cu.memory_info(&free_bytes, &total) == 4);
  OK(luma_free(kept));
  OK(luma_free_async(ordered, stream));
  /* The driver has taken everything: what is given back goes without a word. */
  CHECK(luma_pool_empty_cache(pool) > 0);
  REFUSED(luma_pool_alloc(pool, 100 * MIB, 0, NULL), LUMA_ERROR_DRIVER, "the process is ending");
  OK(luma_pool_destroy(pool));
  puts("ended");
}

int main(void) {
  luma_pool_config_t config = LUMA_POOL_CONFIG_INIT;
  CHECK(atexit(late) == 0);
  find_stream_functions();
  config.backend = LUMA_BACKEND_CUDA;
  pool = must_create(&config);
  kept = must_alloc(1000);
  DRIVER(set_current(primary_context(0)));
  STREAM(create(&stream, 1));
  ordered = luma_alloc_async(1000, stream);
  CHECK(ordered != NULL);
  OK(luma_pool_free(pool, must_pool_alloc(pool, 5 * MIB), NULL));
  return 0;
}
