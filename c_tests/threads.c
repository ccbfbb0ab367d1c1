/* Eight threads that allocate, write, hand blocks to each other and free what others allocated. */
#include "check.h"

#include <pthread.h>

#define THREADS 8
#define HELD 64
#define MAILBOXES 16

typedef struct block_t {
  unsigned char *start;
  size_t bytes;
  unsigned char value;
} block_t;

/* Where threads leave blocks for whoever comes next. */
static block_t mailboxes[MAILBOXES];
static pthread_mutex_t mail = PTHREAD_MUTEX_INITIALIZER;
static luma_pool_t *pool;

static uint32_t next_random(uint32_t *state) {
  *state = *state * 1664525u + 1013904223u;
  return *state >> 8;
}

static block_t fill(luma_pool_t *from, size_t bytes, unsigned char value) {
  block_t block;
  block.start = (unsigned char *)(from == NULL ? luma_alloc(bytes)
                                              : luma_pool_alloc(from, bytes, 0, NULL));
  block.bytes = bytes;
  block.value = value;
  CHECK(block.start != NULL);
  memset(block.start, value, bytes);
  return block;
}

static void check_and_free(luma_pool_t *from, block_t block) {
  size_t at;
  for (at = 0; at < block.bytes; at++) {
    CHECK(block.start[at] == block.value);
  }
  CHECK((from == NULL ? luma_free(block.start) : luma_pool_free(from, block.start, NULL)) ==
        LUMA_SUCCESS);
}

static block_t exchange(block_t block, size_t at) {
  block_t other;
  pthread_mutex_lock(&mail);
  other = mailboxes[at];
  mailboxes[at] = block;
  pthread_mutex_unlock(&mail);
  return other;
}

static void *work(void *argument) {
  uint32_t state = (uint32_t)(uintptr_t)argument;
  unsigned char own = (unsigned char)(uintptr_t)argument;
  block_t held[HELD];
  int round, last = rounds(5000);
  size_t at;
  memset(held, 0, sizeof held);
  for (round = 0; round < last; round++) {
    /* Mostly small, now and then one that makes the pool grow. */
    size_t bytes = next_random(&state) % 100 == 0 ? 1 + next_random(&state) % (3 * MIB)
                                                  : 1 + next_random(&state) % 3000;
    at = next_random(&state) % HELD;
    if (held[at].start != NULL) {
      check_and_free(NULL, held[at]);
    }
    held[at] = fill(NULL, bytes, own);
    if (round % 4 == 0) { /* somebody else's block, to be freed here */
      block_t mine = fill(pool, 1 + next_random(&state) % 5000, own);
      block_t other = exchange(mine, next_random(&state) % MAILBOXES);
      if (other.start != NULL) {
        check_and_free(pool, other);
      }
    }
    if (round % 500 == 0) {
      /* Each thread has its own last status. */
      CHECK(luma_free(held[at].start + 1) == LUMA_ERROR_INVALID_POINTER);
      CHECK(failed_with(LUMA_ERROR_INVALID_POINTER, "inside"));
      (void)luma_empty_cache();
      CHECK(luma_check() == LUMA_SUCCESS && luma_last_status() == LUMA_SUCCESS);
    }
  }
  for (at = 0; at < HELD; at++) {
    if (held[at].start != NULL) {
      check_and_free(NULL, held[at]);
    }
  }
  return NULL;
}

int main(void) {
  pthread_t threads[THREADS];
  luma_pool_config_t config = host_config(GIB);
  size_t at;
  pool = must_create(&config);
  for (at = 0; at < THREADS; at++) {
    CHECK(pthread_create(&threads[at], NULL, work, (void *)(uintptr_t)(at + 1)) == 0);
  }
  for (at = 0; at < THREADS; at++) {
    CHECK(pthread_join(threads[at], NULL) == 0);
  }
  for (at = 0; at < MAILBOXES; at++) {
    if (mailboxes[at].start != NULL) {
      check_and_free(pool, mailboxes[at]);
    }
  }
  CHECK(stats_now().live_blocks == 0 && stats_now().allocated_bytes == 0);
  CHECK(stats_now().alloc_calls == stats_now().free_calls);
  CHECK(pool_stats_now(pool).live_blocks == 0);
  (void)luma_empty_cache();
  CHECK(stats_now().reserved_bytes == 0);
  CHECK(stats_now().cuda_malloc_calls == stats_now().cuda_free_calls);
  OK(luma_check());
  OK(luma_pool_check(pool));
  OK(luma_pool_destroy(pool));
  return 0;
}
