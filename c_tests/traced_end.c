/* What a record says of blocks that end with their pool, and of calls while the process exits. */
#include "check.h"

static void *last;

static void free_last(void) { OK(luma_free(last)); }

int main(void) {
  int round;
  /* Registered first, so it runs after luma's own handler. */
  CHECK(atexit(free_last) == 0);
  for (round = 0; round < 3; round++) {
    luma_pool_config_t config = host_config(16 * MIB);
    luma_pool_t *pool = must_create(&config);
    CHECK(luma_pool_alloc(pool, 5000, 0, NULL) != NULL);
    OK(luma_pool_destroy(pool));
  }
  last = must_alloc(7000);
  return 0;
}
