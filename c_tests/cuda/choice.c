/* Which backend the default pool takes on this machine: the argument says `cuda`, `host`, or words of the
 * message with which it must be refused. */
#include "../check.h"

int main(int argc, char **argv) {
  int round;
  CHECK(argc == 2);
  for (round = 0; round < 3; round++) {
    if (asked_for(argc, argv, "cuda") || asked_for(argc, argv, "host")) {
      luma_pool_t *pool = luma_default_pool(0);
      CHECK(pool != NULL);
      CHECK(luma_pool_is_host_accessible(pool) == asked_for(argc, argv, "host"));
      OK(luma_free(must_alloc(3 * MIB)));
      OK(luma_check());
    } else {
      size_t free_bytes, total;
      REFUSED(luma_alloc(1000), LUMA_ERROR_NO_DEVICE, argv[1]);
      FAILS(luma_memory_info(&free_bytes, &total), LUMA_ERROR_NO_DEVICE, argv[1]);
      REFUSED(luma_default_pool(0), LUMA_ERROR_NO_DEVICE, argv[1]);
    }
  }
  (void)luma_empty_cache();
  return 0;
}
