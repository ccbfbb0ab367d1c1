/* The first call of all, heard by a log callback that calls luma itself; and what does not count as
 * a first use. */
#include "check.h"

static int heard;

static void call_luma(int level, const char *message, void *user) {
  (void)level;
  (void)user;
  CHECK(message[0] != '\0');
  heard++;
  OK(luma_free(must_alloc(1000)));
  OK(luma_check());
}

int main(void) {
  luma_pool_config_t config = LUMA_POOL_CONFIG_INIT;
  int byte = 0;

  /* A wrong free makes no pool, so the program may still say how the pool is made. */
  FAILS(luma_free(&byte), LUMA_ERROR_INVALID_POINTER, "not from this pool");
  CHECK(luma_usable_size(&byte) == 0);
  if (getenv("FIRST_USE_INIT") != NULL) {
    config.memory_limit = 64 * MIB;
    OK(luma_init(&config));
    CHECK(stats_now().memory_limit == 64 * MIB);
    return 0;
  }

  /* Bad values in the environment and the choice of the backend are told while the first call is
   * under way. */
  luma_set_log_callback(call_luma, NULL);
  OK(luma_free(must_alloc(1000)));
  CHECK(heard >= 1);
  luma_set_log_callback(NULL, NULL);
  CHECK(stats_now().live_blocks == 0);
  return 0;
}
