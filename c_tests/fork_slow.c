/* A fork while another thread's backend calls take longer than a fork waits for: the child's pool
 * works, and takes nothing back twice. */
#include "check.h"

#include <pthread.h>
#include <sys/wait.h>

static luma_pool_t *pool;
static volatile int slow, in_free;
static volatile pid_t parent;
static void *being_freed;

static void *give(size_t bytes, void *user) {
  void *memory = NULL;
  (void)user;
  return posix_memalign(&memory, 2 * MIB, bytes) == 0 ? memory : NULL;
}

static void take(void *memory, size_t bytes, void *user) {
  (void)bytes;
  (void)user;
  if (getpid() != parent) {
    CHECK(memory != being_freed);
  } else if (slow) {
    being_freed = memory;
    in_free = 1;
    sleep(2);
  }
  free(memory);
}

static void *lower_the_limit(void *unused) {
  OK(luma_pool_set_limit(pool, 2 * MIB));
  return unused;
}

int main(void) {
  luma_pool_config_t config = LUMA_POOL_CONFIG_INIT;
  pthread_t thread;
  pid_t child;
  int status = 0;
  alarm(60);
  parent = getpid();
  config.backend = LUMA_BACKEND_CALLBACKS;
  config.alloc_fn = give;
  config.free_fn = take;
  pool = must_create(&config);
  OK(luma_pool_free(pool, must_pool_alloc(pool, 8 * MIB), NULL));

  slow = 1;
  CHECK(pthread_create(&thread, NULL, lower_the_limit, NULL) == 0);
  while (!in_free) {
    usleep(1000);
  }
  child = fork();
  if (child == 0) {
    alarm(20);
    OK(luma_pool_free(pool, must_pool_alloc(pool, 4 * MIB), NULL));
    OK(luma_pool_check(pool));
    CHECK(luma_pool_empty_cache(pool) > 0);
    OK(luma_pool_destroy(pool));
    _exit(0);
  }
  CHECK(child > 0 && waitpid(child, &status, 0) == child);
  CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  CHECK(pthread_join(thread, NULL) == 0);
  CHECK(pool_stats_now(pool).memory_limit == 2 * MIB);
  OK(luma_pool_destroy(pool));
  return 0;
}
