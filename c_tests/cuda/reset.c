/* A device that is reset under its default pool: old pointers are refused, and the pool goes on. */
#include "driver.h"

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
  return 0;
}
