/* Contexts of the program's own come and go: what was in them goes with them, and addresses that the driver
 * gives to another pool afterwards are that pool's. */
#include "driver.h"

static context_t begun(void) {
  context_t own;
  DRIVER(context_create(&own, 0, 0));
  CHECK(current_context() == own);
  return own;
}

int main(void) {
  context_t primary;
  size_t before = 0, after = 0, total;
  int round;
  start_driver();
  primary = primary_context(0);
  for (round = 0; round < 8; round++) {
    /* The first default pool of all is that of a context which does not last. */
    context_t own = begun();
    unsigned char *block;
    CHECK(stats_now().live_blocks == 0 && stats_now().reserved_bytes == 0);
    CHECK(must_alloc(1000) != NULL);
    block = must_alloc(20 * MIB);
    use(block, 20 * MIB, 1);
    OK(luma_free(block));
    DRIVER(context_destroy(own));

    DRIVER(set_current(primary));
    block = must_alloc(20 * MIB);
    use(block, 20 * MIB, 2);
    CHECK(luma_usable_size(block) == 20 * MIB);
    OK(luma_free(block));
    FAILS(luma_free(block), LUMA_ERROR_INVALID_POINTER, "free already");
    OK(luma_check());
    (void)luma_empty_cache();
    CHECK(stats_now().live_blocks == 0 && stats_now().reserved_bytes == 0);
    DRIVER(memory_info(&after, &total));
    if (round == 1) {
      before = after;
    }
  }
  CHECK(after >= before);
  return 0;
}
