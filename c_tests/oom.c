/* Out of memory: the handlers, in order and each once a request, and the message. */
#include "check.h"

#define LIMIT (64 * MIB)

static luma_pool_t *pool;

/* What the handlers did, a letter each. */
static char heard[64];
static size_t heard_bytes;

static void hear(char who, size_t bytes) {
  size_t length = strlen(heard);
  CHECK(length + 1 < sizeof heard);
  heard[length] = who;
  heard_bytes = bytes;
}

static void forget(void) { memset(heard, 0, sizeof heard); }

static void refused(size_t bytes) {
  REFUSED(luma_pool_alloc(pool, bytes, 0, NULL), LUMA_ERROR_OUT_OF_MEMORY, "out of memory");
}

static int has_nothing(size_t bytes, void *user) {
  hear(*(const char *)user, bytes);
  return 0;
}

static int lies(size_t bytes, void *user) {
  hear(*(const char *)user, bytes);
  return 1;
}

static void *hoard;

static int frees_the_hoard(size_t bytes, void *user) {
  hear(*(const char *)user, bytes);
  if (hoard == NULL) {
    return 0;
  }
  OK(luma_pool_free(pool, hoard, NULL));
  hoard = NULL;
  return 1;
}

static int allocates(size_t bytes, void *user) {
  void *small;
  hear(*(const char *)user, bytes);
  /* What there is, it gets; what there is not fails plainly, without a handler. */
  small = luma_alloc(1000);
  CHECK(small != NULL);
  OK(luma_free(small));
  refused(2 * LIMIT);
  CHECK(luma_last_status() == LUMA_ERROR_OUT_OF_MEMORY);
  return 0;
}

static int removes_itself(size_t bytes, void *user) {
  hear(*(const char *)user, bytes);
  OK(luma_remove_oom_handler(removes_itself, user));
  return 0;
}

static char a[] = "a", b[] = "b", c[] = "c";

static void each_is_called_once_and_in_order(void) {
  OK(luma_add_oom_handler(has_nothing, a));
  OK(luma_add_oom_handler(has_nothing, b));
  OK(luma_add_oom_handler(has_nothing, c));
  forget();
  refused(LIMIT + 1);
  CHECK(strcmp(heard, "abc") == 0 && heard_bytes == LIMIT + 1);
  OK(luma_pool_free(pool, must_pool_alloc(pool, LIMIT), NULL));
  CHECK(strcmp(heard, "abc") == 0); /* what can be served concerns no handler */
  OK(luma_remove_oom_handler(has_nothing, b));
  forget();
  refused(LIMIT + 1);
  CHECK(strcmp(heard, "ac") == 0);
  OK(luma_remove_oom_handler(has_nothing, a));
  OK(luma_remove_oom_handler(has_nothing, c));
  forget();
  refused(LIMIT + 1);
  CHECK(strcmp(heard, "") == 0);
}

static void one_that_frees_is_the_last(void) {
  OK(luma_add_oom_handler(has_nothing, a));
  OK(luma_add_oom_handler(frees_the_hoard, b));
  OK(luma_add_oom_handler(has_nothing, c));
  hoard = must_pool_alloc(pool, LIMIT / 2);
  forget();
  OK(luma_pool_free(pool, must_pool_alloc(pool, LIMIT), NULL));
  CHECK(strcmp(heard, "ab") == 0 && heard_bytes == LIMIT);

  /* It frees too little: the next one is asked, and none is asked again. */
  hoard = must_pool_alloc(pool, LIMIT / 2);
  {
    void *kept = must_pool_alloc(pool, LIMIT / 4);
    forget();
    refused(LIMIT);
    CHECK(strcmp(heard, "abc") == 0 && hoard == NULL);
    OK(luma_pool_free(pool, kept, NULL));
  }
  OK(luma_remove_oom_handler(has_nothing, a));
  OK(luma_remove_oom_handler(frees_the_hoard, b));
  OK(luma_remove_oom_handler(has_nothing, c));
}

static void liars_do_not_make_it_loop(void) {
  OK(luma_add_oom_handler(lies, a));
  OK(luma_add_oom_handler(lies, b));
  forget();
  refused(LIMIT + 1);
  CHECK(strcmp(heard, "ab") == 0);
  forget();
  refused(SIZE_MAX - 4096);
  CHECK(strlen(heard) <= 2);
  OK(luma_remove_oom_handler(lies, a));
  OK(luma_remove_oom_handler(lies, b));
}

static void one_that_allocates_is_not_called_inside_itself(void) {
  OK(luma_add_oom_handler(allocates, a));
  OK(luma_add_oom_handler(has_nothing, b));
  forget();
  refused(LIMIT + 1);
  CHECK(strcmp(heard, "ab") == 0);
  CHECK(says("64.00 MiB (67108865 bytes) asked for"));
  OK(luma_remove_oom_handler(allocates, a));
  OK(luma_remove_oom_handler(has_nothing, b));
}

static void one_may_remove_itself(void) {
  OK(luma_add_oom_handler(removes_itself, a));
  OK(luma_add_oom_handler(has_nothing, b));
  forget();
  refused(LIMIT + 1);
  refused(LIMIT + 1);
  CHECK(strcmp(heard, "abb") == 0);
  OK(luma_remove_oom_handler(has_nothing, b));
}

static void the_list_is_checked(void) {
  FAILS(luma_add_oom_handler(NULL, a), LUMA_ERROR_INVALID_VALUE, "NULL");
  FAILS(luma_remove_oom_handler(NULL, a), LUMA_ERROR_INVALID_VALUE, "NULL");
  FAILS(luma_remove_oom_handler(lies, a), LUMA_ERROR_INVALID_VALUE, "no handler");
  OK(luma_add_oom_handler(lies, a));
  FAILS(luma_add_oom_handler(lies, a), LUMA_ERROR_INVALID_VALUE, "already");
  FAILS(luma_remove_oom_handler(lies, b), LUMA_ERROR_INVALID_VALUE, "no handler");
  FAILS(luma_remove_oom_handler(has_nothing, a), LUMA_ERROR_INVALID_VALUE, "no handler");
  OK(luma_remove_oom_handler(lies, a));
}

/* All that one needs to know, and what to do. */
static void the_message_has_every_figure(void) {
  unsigned char *first = must_pool_alloc(pool, 20 * MIB), *between = must_pool_alloc(pool, 256),
                *last = must_pool_alloc(pool, 30 * MIB);
  OK(luma_pool_free(pool, first, NULL));
  OK(luma_pool_set_limit(pool, LIMIT));
  REFUSED(luma_pool_alloc(pool, 40 * MIB, 4096, NULL), LUMA_ERROR_OUT_OF_MEMORY,
          "40.00 MiB (41943040 bytes) asked for");
  CHECK(says("at a multiple of 4096"));
  CHECK(says("allocated 30.00 MiB (31457536 bytes) in 2 blocks"));
  CHECK(says("reserved ") && says("largest free block ") && says("free behind live blocks "));
  CHECK(says("limit 64.00 MiB (67108864 bytes)"));
  CHECK(says("host device has ") && says(" free of 1.00 GiB (1073741824 bytes)"));
  CHECK(says("raise the limit") && says("luma_pool_set_limit") && says("handler"));
  refused(100 * MIB);
  CHECK(says("The request is larger than the limit"));
  OK(luma_pool_set_limit(pool, 0));
  refused(2 * GIB);
  CHECK(says("limit none") && says("larger than the device") && says("LUMA_HOST_CAPACITY"));
  OK(luma_pool_set_limit(pool, LIMIT));
  OK(luma_pool_free(pool, between, NULL));
  OK(luma_pool_free(pool, last, NULL));
}

static void refusals_are_counted(void) {
  luma_stats_t before = pool_stats_now(pool), after;
  refused(LIMIT + 1);
  refused(SIZE_MAX);
  after = pool_stats_now(pool);
  CHECK(after.out_of_memory_count == before.out_of_memory_count + 2);
  CHECK(after.alloc_calls == before.alloc_calls + 2);
  CHECK(after.allocated_bytes == before.allocated_bytes);
}

int main(void) {
  luma_pool_config_t config = host_config(GIB);
  config.memory_limit = LIMIT;
  pool = must_create(&config);
  each_is_called_once_and_in_order();
  one_that_frees_is_the_last();
  liars_do_not_make_it_loop();
  one_that_allocates_is_not_called_inside_itself();
  one_may_remove_itself();
  the_list_is_checked();
  the_message_has_every_figure();
  refusals_are_counted();
  OK(luma_pool_check(pool));
  OK(luma_pool_destroy(pool));
  return 0;
}
