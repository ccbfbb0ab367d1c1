/* Forks while other threads allocate: the child has a pool that works, and copies of its own. */
#include "check.h"

#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>

#define FORKS 200
#define THREADS 3
#define SECONDS 20

static volatile int done;
static luma_pool_t *pool;

static void *allocate_all_the_time(void *unused) {
  size_t bytes = 1000;
  while (!done) {
    unsigned char *block = must_alloc(bytes), *other = must_pool_alloc(pool, bytes);
    block[0] = block[bytes - 1] = 1;
    other[0] = other[bytes - 1] = 2;
    CHECK(luma_free(block) == LUMA_SUCCESS);
    CHECK(luma_pool_free(pool, other, NULL) == LUMA_SUCCESS);
    bytes = bytes * 7 % (4 * MIB) + 1;
    if (bytes % 5 == 0) { /* so that backend calls are in progress at some forks */
      (void)luma_empty_cache();
      (void)luma_pool_empty_cache(pool);
    }
  }
  return unused;
}

static void wait_for(pid_t child) {
  int status = 0;
  CHECK(child > 0);
  CHECK(waitpid(child, &status, 0) == child);
  CHECK(!WIFSIGNALED(status)); /* SIGALRM: it hung */
  CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static void use_everything(unsigned char *shared, unsigned char *pooled) {
  luma_pool_config_t config = host_config(16 * MIB);
  luma_pool_t *own;
  unsigned char *blocks[50];
  size_t at;
  for (at = 0; at < 50; at++) {
    blocks[at] = must_alloc(at * 10000 + 1);
    memset(blocks[at], (int)at, at * 10000 + 1);
  }
  for (at = 0; at < 50; at++) {
    CHECK(blocks[at][at * 10000] == at);
    OK(luma_free(blocks[at]));
  }
  OK(luma_check());
  OK(luma_pool_check(pool));

  /* What it inherited is its own: to read, to change and to free. */
  CHECK(shared[0] == 'p' && shared[99999] == 'p' && pooled[0] == 'p');
  memset(shared, 'c', 100000);
  memset(pooled, 'c', 100000);
  OK(luma_free(shared));
  OK(luma_pool_free(pool, pooled, NULL));
  FAILS(luma_free(shared), LUMA_ERROR_INVALID_POINTER, "0x");
  (void)luma_empty_cache();
  own = must_create(&config);
  OK(luma_pool_free(own, must_pool_alloc(own, 1000), NULL));
  OK(luma_pool_destroy(own));
  OK(luma_check());
}

static void as_child(unsigned char *shared, unsigned char *pooled) {
  pid_t grandchild;
  alarm(SECONDS);
  /* It forks before and after it used luma itself. */
  grandchild = fork();
  if (grandchild == 0) {
    alarm(SECONDS);
    use_everything(shared, pooled);
    _exit(0);
  }
  wait_for(grandchild);
  use_everything(shared, pooled);
  grandchild = fork();
  if (grandchild == 0) {
    alarm(SECONDS);
    OK(luma_free(must_alloc(3 * MIB)));
    OK(luma_check());
    _exit(0);
  }
  wait_for(grandchild);
  _exit(0);
}

int main(int argc, char **argv) {
  pthread_t threads[THREADS];
  luma_pool_config_t config = host_config(GIB);
  unsigned char *shared, *pooled;
  /* With sanitizers, whose own locks do not survive a fork beside threads, there are none. */
  int with_threads = !asked_for(argc, argv, "alone"), round;
  int forks = getenv("LUMA_DEBUG") == NULL ? FORKS : FORKS / 10;
  size_t at;
  pool = must_create(&config);
  shared = must_alloc(100000);
  pooled = must_pool_alloc(pool, 100000);
  memset(shared, 'p', 100000);
  memset(pooled, 'p', 100000);
  for (at = 0; at < THREADS && with_threads; at++) {
    CHECK(pthread_create(&threads[at], NULL, allocate_all_the_time, NULL) == 0);
  }
  for (round = 0; round < forks; round++) {
    pid_t child = fork();
    if (child == 0) {
      as_child(shared, pooled);
    }
    wait_for(child);
    CHECK(shared[0] == 'p' && shared[99999] == 'p' && pooled[0] == 'p' && pooled[99999] == 'p');
    CHECK(luma_usable_size(shared) == 100096);
  }
  done = 1;
  for (at = 0; at < THREADS && with_threads; at++) {
    CHECK(pthread_join(threads[at], NULL) == 0);
  }
  OK(luma_free(shared));
  OK(luma_pool_free(pool, pooled, NULL));
  CHECK(stats_now().live_blocks == 0);
  OK(luma_check());
  OK(luma_pool_check(pool));
  OK(luma_pool_destroy(pool));
  return 0;
}
