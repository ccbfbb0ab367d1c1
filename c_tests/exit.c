/* luma before main and while the process ends. The argument says how it ends; each way must end
 * it with 0 and print the last word. */
#include "check.h"

#include <pthread.h>

static unsigned char *early, *kept;
static luma_pool_t *pool;
static pthread_key_t key;

/* Before main, and after all that atexit runs. */
static void __attribute__((constructor)) before_main(void) {
  early = must_alloc(1000);
  memset(early, 1, 1000);
}

static void __attribute__((destructor)) after_exit_handlers(void) {
  CHECK(early[999] == 1);
  CHECK(luma_free(early) == LUMA_SUCCESS);
  CHECK(luma_free(must_alloc(3 * MIB)) == LUMA_SUCCESS);
  CHECK(luma_check() == LUMA_SUCCESS);
  CHECK(luma_free(early + 1) == LUMA_ERROR_INVALID_POINTER && luma_last_error()[0] != '\0');
  puts("ended");
  fflush(stdout);
}

static void in_exit_handler(void) {
  unsigned char *block = must_alloc(5 * MIB);
  block[5 * MIB - 1] = 1;
  CHECK(luma_free(block) == LUMA_SUCCESS);
  if (kept != NULL) {
    CHECK(kept[99] == 7);
    CHECK(luma_free(kept) == LUMA_SUCCESS);
    kept = NULL;
  }
  if (pool != NULL) {
    CHECK(must_pool_alloc(pool, 1000) != NULL);
    CHECK(luma_pool_destroy(pool) == LUMA_SUCCESS);
    pool = NULL;
  }
  CHECK(luma_alloc(SIZE_MAX) == NULL && luma_last_status() == LUMA_ERROR_OUT_OF_MEMORY);
}

static void use_exit_handlers(void) {
  luma_pool_config_t config = host_config(64 * MIB);
  CHECK(atexit(in_exit_handler) == 0);
  pool = must_create(&config);
  kept = must_alloc(100);
  memset(kept, 7, 100);
  CHECK(atexit(in_exit_handler) == 0);
}

/* Runs when a thread ends, after what the thread had of its own in other libraries. */
static void of_thread(void *block) {
  static __thread int again;
  CHECK(*(unsigned char *)block == 9);
  CHECK(luma_free(block) == LUMA_SUCCESS);
  CHECK(luma_free((char *)block + 1) == LUMA_ERROR_INVALID_POINTER && luma_last_error()[0] != '\0');
  if (again++ < 2) { /* destructors may set it again, and are called again */
    unsigned char *next = must_alloc(10);
    *next = 9;
    CHECK(pthread_setspecific(key, next) == 0);
  }
}

static void *leave_a_block(void *unused) {
  unsigned char *block = must_alloc(2 * MIB);
  *block = 9;
  CHECK(pthread_setspecific(key, block) == 0);
  return unused;
}

static void use_thread_destructors(void) {
  int round;
  CHECK(pthread_key_create(&key, of_thread) == 0);
  for (round = 0; round < 100; round++) {
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, leave_a_block, NULL) == 0);
    CHECK(pthread_join(thread, NULL) == 0);
  }
  CHECK(stats_now().live_blocks == 1);
}

/* These go on while the process ends under them. */
static void *allocate_for_ever(void *unused) {
  for (;;) {
    void *block = luma_alloc(100000);
    if (block != NULL) {
      memset(block, 1, 100000);
      luma_free(block);
    }
  }
  return unused;
}

static void start_threads_that_go_on(void) {
  int at;
  for (at = 0; at < 4; at++) {
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, allocate_for_ever, NULL) == 0);
    CHECK(pthread_detach(thread) == 0);
  }
}

static void *end_the_process(void *unused) {
  exit(0);
  return unused;
}

int main(int argc, char **argv) {
  pthread_t thread;
  CHECK(early != NULL && early[999] == 1);
  if (asked_for(argc, argv, "exit_handlers")) {
    use_exit_handlers();
    return 0;
  }
  if (asked_for(argc, argv, "thread_destructors")) {
    use_thread_destructors();
    use_exit_handlers();
    return 0;
  }
  if (asked_for(argc, argv, "main_returns_under_threads")) {
    use_exit_handlers();
    start_threads_that_go_on();
    usleep(20000);
    return 0;
  }
  if (asked_for(argc, argv, "a_thread_exits")) {
    use_exit_handlers();
    start_threads_that_go_on();
    CHECK(pthread_create(&thread, NULL, end_the_process, NULL) == 0);
    CHECK(pthread_join(thread, NULL) == 0); /* which never comes back */
    return 1;
  }
  if (asked_for(argc, argv, "main_ends_before_its_threads")) {
    /* The last thread to end takes the process with it. */
    use_exit_handlers();
    CHECK(pthread_key_create(&key, of_thread) == 0);
    CHECK(pthread_create(&thread, NULL, leave_a_block, NULL) == 0);
    (void)leave_a_block(NULL);
    pthread_exit(NULL);
  }
  fprintf(stderr, "which case?\n");
  return 2;
}
