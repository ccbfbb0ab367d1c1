/* Checked mode: misuse is found, and said. The argument says which case; the test that runs this sets
 * LUMA_DEBUG, and in some cases how large the quarantine is. Some cases end with blocks that nobody
 * freed, and the test reads what is said of them at exit. */
#include "check.h"

#include <sys/wait.h>

/* What was logged since `forget`. */
static char heard[16384];
static int worst = 99;

static void listen_to(int level, const char *message, void *user) {
  size_t length = strlen(heard);
  (void)user;
  worst = level < worst ? level : worst;
  snprintf(heard + length, sizeof heard - length, "%s\n", message);
}

static void forget(void) {
  heard[0] = '\0';
  worst = 99;
}

static int was_heard(const char *part) { return strstr(heard, part) != NULL; }

/* Named in the call stacks. */
__attribute__((noinline)) unsigned char *make_a_block(luma_pool_t *pool, size_t bytes);
__attribute__((noinline)) void free_the_block(luma_pool_t *pool, unsigned char *block);

__attribute__((noinline)) unsigned char *make_a_block(luma_pool_t *pool, size_t bytes) {
  unsigned char *block = must_pool_alloc(pool, bytes);
  memset(block, 1, bytes);
  return block;
}

__attribute__((noinline)) void free_the_block(luma_pool_t *pool, unsigned char *block) {
  OK(luma_pool_free(pool, block, NULL));
}

static luma_pool_t *new_pool(void) {
  luma_pool_config_t config = host_config(64 * MIB);
  return must_create(&config);
}

/* A block of 1000 bytes that was freed, and whose byte 300 was written afterwards. */
static unsigned char *write_after_free(luma_pool_t *pool) {
  unsigned char *block = make_a_block(pool, 1000);
  free_the_block(pool, block);
  block[300] = 0x2A;
  return block;
}

static void is_told(const unsigned char *block) {
  char expected[128];
  snprintf(expected, sizeof expected,
           "a write to a freed block: of the 1024 bytes at %p (1000 asked for)", (const void *)block);
  CHECK(worst == 1 && was_heard(expected));
  CHECK(was_heard("the one at offset 300 became 0x2a after the free; freed ") &&
        was_heard(" allocations ago"));
}

/* It is logged as an error, and luma_check says it once. */
static void is_found_and_told(luma_pool_t *pool, const unsigned char *block) {
  is_told(block);
  FAILS(luma_pool_check(pool), LUMA_ERROR_CORRUPTED, "at offset 300 became 0x2a");
  forget();
  OK(luma_pool_check(pool));
  CHECK(heard[0] == '\0');
}

static void found_by_a_check(void) {
  luma_pool_t *pool = new_pool();
  unsigned char *block = write_after_free(pool);
  FAILS(luma_pool_check(pool), LUMA_ERROR_CORRUPTED, "at offset 300 became 0x2a");
  is_told(block);
  forget();
  OK(luma_pool_check(pool));
  /* Found again where it is written again, and the message says how many there were. */
  block[1023] = 0;
  free_the_block(pool, make_a_block(pool, 5000));
  write_after_free(pool);
  FAILS(luma_pool_check(pool), LUMA_ERROR_CORRUPTED, "offset 1023 became 0x00");
  CHECK(says("and 1 more"));
  OK(luma_pool_destroy(pool));
}

static void found_as_it_leaves(void) {
  luma_pool_t *pool = new_pool();
  unsigned char *block = write_after_free(pool);
  int at;
  for (at = 0; at < 4; at++) {
    CHECK(heard[0] == '\0');
    free_the_block(pool, make_a_block(pool, 100));
  }
  is_found_and_told(pool, block);
  OK(luma_pool_destroy(pool));
}

static void found_as_the_cache_goes(void) {
  luma_pool_t *pool = new_pool();
  unsigned char *block = write_after_free(pool);
  CHECK(luma_pool_empty_cache(pool) > 0);
  is_found_and_told(pool, block);
  OK(luma_pool_destroy(pool));
}

static void found_as_a_limit_is_set(void) {
  luma_pool_t *pool = new_pool();
  unsigned char *block = write_after_free(pool);
  OK(luma_pool_set_limit(pool, 32 * MIB));
  is_found_and_told(pool, block);
  OK(luma_pool_destroy(pool));
}

/* What is in quarantine is not missing where memory is short. */
static void found_out_of_memory(void) {
  luma_pool_t *pool = new_pool();
  unsigned char *block = write_after_free(pool), *whole;
  whole = must_pool_alloc(pool, 64 * MIB);
  is_found_and_told(pool, block);
  OK(luma_pool_free(pool, whole, NULL));
  OK(luma_pool_destroy(pool));
}

static void found_at_the_end(void) {
  luma_pool_t *pool = new_pool();
  unsigned char *block = write_after_free(pool);
  OK(luma_pool_destroy(pool));
  is_told(block);
}

/* A second free is answered and logged, and changes nothing. */
static void freed_twice(void) {
  luma_pool_t *pool = new_pool();
  unsigned char *block = make_a_block(pool, 1000);
  free_the_block(pool, block);
  FAILS(luma_pool_free(pool, block, NULL), LUMA_ERROR_INVALID_POINTER,
        "is free already (in quarantine): the block of 1024 bytes");
  CHECK(worst == 1 && was_heard("a bad free: ") && was_heard("is free already (in quarantine)"));
  forget();
  FAILS(luma_pool_free(pool, block + 300, NULL), LUMA_ERROR_INVALID_POINTER,
        "300 bytes inside the block of 1024 bytes");
  CHECK(worst == 1 && was_heard("a bad free: ") && was_heard("free already (in quarantine)"));
  CHECK(luma_pool_empty_cache(pool) > 0);
  forget();
  FAILS(luma_free(block), LUMA_ERROR_INVALID_POINTER, "not from this pool");
  CHECK(worst == 1 && was_heard("a bad free: ") && was_heard("not from this pool"));
  OK(luma_pool_check(pool));
  OK(luma_pool_destroy(pool));
}

/* A block in quarantine counts as freed, serves nobody, and its bytes are pending. */
static void counted_as_freed(void) {
  luma_pool_t *pool = new_pool();
  luma_stats_t stats;
  unsigned char *block = make_a_block(pool, 1000), *other;
  free_the_block(pool, block);
  stats = pool_stats_now(pool);
  CHECK(stats.allocated_bytes == 0 && stats.live_blocks == 0 && stats.requested_bytes == 0);
  CHECK(stats.pending_bytes == 1024 && stats.free_calls == 1 && luma_usable_size(block) == 0);
  other = make_a_block(pool, 1000);
  CHECK(other != block);
  free_the_block(pool, other);
  CHECK(pool_stats_now(pool).pending_bytes == 2048);
  /* Too large for it. */
  free_the_block(pool, make_a_block(pool, 20 * MIB));
  CHECK(pool_stats_now(pool).pending_bytes == 2048);
  CHECK(luma_pool_empty_cache(pool) >= 20 * MIB);
  stats = pool_stats_now(pool);
  CHECK(stats.pending_bytes == 0 && stats.reserved_bytes == 0);
  CHECK(stats.cuda_malloc_calls == stats.cuda_free_calls);
  OK(luma_pool_destroy(pool));
}

/* With a quarantine of nothing, blocks are used again at once; they are poisoned all the same. */
static void without_a_quarantine(void) {
  luma_pool_t *pool = new_pool();
  unsigned char *block = make_a_block(pool, 1000);
  free_the_block(pool, block);
  CHECK(pool_stats_now(pool).pending_bytes == 0 && block[999] == 0xDF);
  CHECK(must_pool_alloc(pool, 1000) == block);
  OK(luma_pool_free(pool, block, NULL));
  FAILS(luma_pool_free(pool, block, NULL), LUMA_ERROR_INVALID_POINTER, "free already");
  OK(luma_pool_destroy(pool));
}

/* Who made a block and who freed it. */
static void stacks_are_kept(void) {
  luma_pool_t *pool = new_pool();
  unsigned char *block = write_after_free(pool);
  FAILS(luma_pool_check(pool), LUMA_ERROR_CORRUPTED, "at offset 300");
  CHECK(was_heard("allocated by:") && was_heard("make_a_block") && was_heard("freed by:") &&
        was_heard("free_the_block"));
  forget();
  FAILS(luma_pool_free(pool, block, NULL), LUMA_ERROR_INVALID_POINTER, "free already");
  CHECK(!says("make_a_block"));
  CHECK(was_heard("about to be freed again") && was_heard("allocated by:\n    luma_pool_alloc") &&
        was_heard("freed again by:\n    luma_pool_free") && was_heard("free_the_block"));
  forget();
  make_a_block(pool, 77);
  OK(luma_pool_destroy(pool));
  CHECK(was_heard("256 bytes at ") && was_heard("(77 asked for)") && was_heard("make_a_block"));
}

/* A pool that ends with live blocks says which. */
static void live_at_a_pools_end(void) {
  char expected[64];
  luma_pool_t *pool = new_pool();
  unsigned char *small = make_a_block(pool, 10), *large = make_a_block(pool, 3 * MIB);
  free_the_block(pool, make_a_block(pool, 100));
  OK(luma_pool_destroy(pool));
  snprintf(expected, sizeof expected, "256 bytes at %p (10 asked for), allocated ", (void *)small);
  CHECK(worst == 2 && was_heard(expected));
  snprintf(expected, sizeof expected, "3145728 bytes at %p (3145728 asked for)", (void *)large);
  CHECK(was_heard(expected) && was_heard("and 2 allocations ago"));
  CHECK(was_heard("a pool was destroyed with 2 live blocks"));
}

static unsigned char *freed_by_a_handler;

static void free_it(void) { luma_free(freed_by_a_handler); }

/* Three blocks in two pools are live at exit, and one is freed by a handler before that. A child that
 * ends says nothing of them. */
static void live_at_exit(void) {
  luma_pool_t *pool = new_pool();
  pid_t child;
  int ended = 0;
  luma_set_log_callback(NULL, NULL);
  CHECK(must_alloc(1000) != NULL && must_alloc(500) != NULL);
  CHECK(make_a_block(pool, 3000) != NULL);
  freed_by_a_handler = must_alloc(7777);
  CHECK(atexit(free_it) == 0);
  child = fork();
  CHECK(child >= 0);
  if (child == 0) {
    exit(0);
  }
  CHECK(waitpid(child, &ended, 0) == child && WIFEXITED(ended) && WEXITSTATUS(ended) == 0);
}

/* More than are listed one by one, the largest of them. */
static void many_live_at_exit(void) {
  size_t at;
  luma_set_log_callback(NULL, NULL);
  for (at = 1; at <= 250; at++) {
    CHECK(must_alloc(at * 256) != NULL);
  }
}

int main(int argc, char **argv) {
  static const struct {
    const char *name;
    void (*run)(void);
  } CASES[] = {
      {"found_by_a_check", found_by_a_check},
      {"found_as_it_leaves", found_as_it_leaves},
      {"found_as_the_cache_goes", found_as_the_cache_goes},
      {"found_as_a_limit_is_set", found_as_a_limit_is_set},
      {"found_out_of_memory", found_out_of_memory},
      {"found_at_the_end", found_at_the_end},
      {"freed_twice", freed_twice},
      {"counted_as_freed", counted_as_freed},
      {"without_a_quarantine", without_a_quarantine},
      {"stacks_are_kept", stacks_are_kept},
      {"live_at_a_pools_end", live_at_a_pools_end},
      {"live_at_exit", live_at_exit},
      {"many_live_at_exit", many_live_at_exit},
  };
  size_t at;
  luma_set_log_callback(listen_to, NULL);
  for (at = 0; at < sizeof CASES / sizeof CASES[0]; at++) {
    if (asked_for(argc, argv, CASES[at].name)) {
      OK(luma_pool_destroy(new_pool()));
      forget();
      CASES[at].run();
      return 0;
    }
  }
  fprintf(stderr, "which case?\n");
  return 2;
}
