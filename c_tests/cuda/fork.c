/* A forked child has no CUDA: its default pool says so in the driver's words, nothing hangs or
 * crashes, and the parent's memory is left alone. */
#include "driver.h"

#include <sys/wait.h>

static void in_the_child(void *block, luma_pool_t *pool, void *pooled, luma_pool_t *host) {
  int round;
  alarm(20);
  for (round = 0; round < 3; round++) {
    REFUSED(luma_alloc(1000), LUMA_ERROR_DRIVER, "forked child");
    CHECK(says("(3)"));
    FAILS(luma_free(block), LUMA_ERROR_INVALID_POINTER, "not from this pool");
    REFUSED(luma_pool_alloc(pool, 1000, 0, NULL), LUMA_ERROR_DRIVER, "forked child");
    FAILS(luma_pool_free(pool, pooled, NULL), LUMA_ERROR_INVALID_POINTER, "not from this pool");
    CHECK(pool_stats_now(pool).reserved_bytes == 0 && luma_pool_empty_cache(pool) == 0);
    OK(luma_pool_check(pool));
  }
  OK(luma_pool_destroy(pool));
  /* Host memory is the child's own. */
  OK(luma_pool_free(host, must_pool_alloc(host, 1000), NULL));
  exit(0);
}

int main(void) {
  luma_pool_config_t config = LUMA_POOL_CONFIG_INIT, on_host = host_config(MIB);
  luma_pool_t *pool, *host = must_create(&on_host);
  unsigned char *block, *pooled;
  int round;
  start_driver();
  DRIVER(set_current(primary_context(0)));
  config.backend = LUMA_BACKEND_CUDA;
  pool = must_create(&config);
  for (round = 0; round < 3; round++) {
    int status;
    pid_t child;
    block = must_alloc(3 * MIB);
    pooled = must_pool_alloc(pool, 5 * MIB);
    use(block, 3 * MIB, 1);
    use(pooled, 5 * MIB, 2);
    child = fork();
    CHECK(child >= 0);
    if (child == 0) {
      in_the_child(block, pool, pooled, host);
    }
    CHECK(waitpid(child, &status, 0) == child);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    CHECK(holds(block, 3 * MIB, 1) && holds(pooled, 5 * MIB, 2));
    OK(luma_free(block));
    OK(luma_pool_free(pool, pooled, NULL));
    OK(luma_check());
    OK(luma_pool_check(pool));
  }
  OK(luma_pool_destroy(pool));
  return 0;
}
