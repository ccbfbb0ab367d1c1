/* A fork while another thread is inside a call of the driver: the child's pool has forgotten what that call
 * was about. Whoever runs this makes a call of the driver slow, so that the fork comes before its end. */
#include "driver.h"

#include <pthread.h>
#include <sys/wait.h>

static luma_pool_t *pool;

static void *grow(void *unused) {
  (void)unused;
  OK(luma_pool_free(pool, must_pool_alloc(pool, 20 * MIB), NULL));
  CHECK(luma_pool_empty_cache(pool) > 0);
  return NULL;
}

static void in_the_child(void) {
  alarm(20);
  CHECK(pool_stats_now(pool).reserved_bytes == 0 && pool_stats_now(pool).segments == 0);
  REFUSED(luma_pool_alloc(pool, 1000, 0, NULL), LUMA_ERROR_DRIVER, "forked child");
  OK(luma_pool_check(pool));
  OK(luma_pool_destroy(pool));
  _exit(0);
}

int main(void) {
  luma_pool_config_t config = LUMA_POOL_CONFIG_INIT;
  pthread_t thread;
  int round;
  start_driver();
  config.backend = LUMA_BACKEND_CUDA;
  pool = must_create(&config);
  CHECK(pthread_create(&thread, NULL, grow, NULL) == 0);
  for (round = 0; round < 2; round++) {
    int status;
    pid_t child;
    usleep(200000);
    child = fork();
    CHECK(child >= 0);
    if (child == 0) {
      in_the_child();
    }
    CHECK(waitpid(child, &status, 0) == child);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  }
  CHECK(pthread_join(thread, NULL) == 0);
  OK(luma_pool_check(pool));
  OK(luma_pool_destroy(pool));
  return 0;
}
