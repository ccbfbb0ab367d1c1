/* Pools over two functions of the program: good ones, bad ones, and ones that call luma. */
#include "check.h"

typedef struct source_t {
  size_t given, taken_back, calls;
  int refuse;
  void *answer;             /* given instead of memory, if set */
  luma_pool_t *calls_inside; /* allocated from and freed to inside of each call */
} source_t;

static void use_inside(source_t *source) {
  if (source->calls_inside != NULL) {
    unsigned char *block = must_pool_alloc(source->calls_inside, 1000);
    memset(block, 1, 1000);
    OK(luma_pool_free(source->calls_inside, block, NULL));
    OK(luma_free(must_alloc(1000)));
  }
}

static void *give(size_t bytes, void *user) {
  source_t *source = (source_t *)user;
  void *memory = NULL;
  source->calls++;
  use_inside(source);
  if (source->refuse) {
    return NULL;
  }
  if (source->answer != NULL) {
    return source->answer;
  }
  CHECK(bytes % 256 == 0);
  if (posix_memalign(&memory, 256, bytes) != 0) {
    return NULL;
  }
  source->given += bytes;
  return memory;
}

static void take_back(void *ptr, size_t bytes, void *user) {
  source_t *source = (source_t *)user;
  source->calls++;
  use_inside(source);
  source->taken_back += bytes;
  if (ptr != source->answer) {
    free(ptr);
  }
}

static luma_pool_config_t config_over(source_t *source) {
  luma_pool_config_t config = LUMA_POOL_CONFIG_INIT;
  config.backend = LUMA_BACKEND_CALLBACKS;
  config.alloc_fn = give;
  config.free_fn = take_back;
  config.user = source;
  return config;
}

static luma_pool_t *pool_over(source_t *source) {
  luma_pool_config_t config;
  memset(source, 0, sizeof *source);
  config = config_over(source);
  return must_create(&config);
}

static void memory_comes_and_goes(void) {
  source_t source;
  luma_pool_t *pool = pool_over(&source);
  unsigned char *one = must_pool_alloc(pool, 1000), *two = must_pool_alloc(pool, 5 * MIB);
  CHECK(is_aligned(one, 256) && is_aligned(two, 256));
  memset(one, 1, 1000);
  memset(two, 2, 5 * MIB);
  CHECK(pool_stats_now(pool).reserved_bytes == source.given);
  CHECK(luma_pool_is_host_accessible(pool) == 0 && luma_last_status() == LUMA_SUCCESS);
  OK(luma_pool_free(pool, two, NULL));
  CHECK(luma_pool_empty_cache(pool) == source.taken_back && source.taken_back >= 5 * MIB);
  CHECK(one[999] == 1);
  OK(luma_pool_check(pool));
  OK(luma_pool_destroy(pool)); /* with a live block */
  CHECK(source.given == source.taken_back);
}

static void half_a_pair_is_refused(void) {
  source_t source;
  luma_pool_t *pool = NULL;
  luma_pool_config_t config = config_over(&source);
  config.free_fn = NULL;
  FAILS(luma_pool_create(&config, &pool), LUMA_ERROR_INVALID_VALUE, "free_fn");
  config.alloc_fn = NULL;
  FAILS(luma_pool_create(&config, &pool), LUMA_ERROR_INVALID_VALUE, "alloc_fn");
  config = config_over(&source);
  config.backend = LUMA_BACKEND_HOST;
  FAILS(luma_pool_create(&config, &pool), LUMA_ERROR_INVALID_VALUE, "LUMA_BACKEND_CALLBACKS");
  config = config_over(&source);
  config.capacity = MIB;
  FAILS(luma_pool_create(&config, &pool), LUMA_ERROR_INVALID_VALUE, "capacity");
  config = config_over(&source);
  config.growth = LUMA_GROWTH_FIXED;
  FAILS(luma_pool_create(&config, &pool), LUMA_ERROR_INVALID_VALUE, "memory_limit");
  CHECK(pool == NULL);
}

static void a_source_that_has_nothing(void) {
  source_t source;
  luma_pool_t *pool = pool_over(&source);
  source.refuse = 1;
  REFUSED(luma_pool_alloc(pool, 1000, 0, NULL), LUMA_ERROR_OUT_OF_MEMORY, "callbacks");
  CHECK(source.calls >= 1 && source.calls < 10);
  CHECK(pool_stats_now(pool).segments == 0 && pool_stats_now(pool).cuda_malloc_calls == 0);
  source.refuse = 0;
  OK(luma_pool_free(pool, must_pool_alloc(pool, 1000), NULL));
  OK(luma_pool_destroy(pool));
  CHECK(source.given == source.taken_back);
}

/* Such memory is given back at once: it is the program's own, and whole. */
static void a_source_that_misaligns(void) {
  static unsigned char memory[4 * 1024 * 1024 + 512];
  source_t source;
  luma_pool_t *pool = pool_over(&source);
  unsigned char *even = memory + (256 - (uintptr_t)memory % 256);
  source.answer = even + 16;
  REFUSED(luma_pool_alloc(pool, 1000, 0, NULL), LUMA_ERROR_INVALID_VALUE, "multiple of 256");
  CHECK(source.taken_back == 2 * MIB && source.calls == 2);
  CHECK(pool_stats_now(pool).reserved_bytes == 0);
  CHECK(pool_stats_now(pool).cuda_malloc_calls == pool_stats_now(pool).cuda_free_calls);
  OK(luma_pool_check(pool));
  source.answer = even;
  CHECK(must_pool_alloc(pool, 1000) == even);
  OK(luma_pool_destroy(pool));
}

/* The second block would lie on the first one's memory, so that must not be given back either. */
static void a_source_that_repeats_itself(void) {
  static unsigned char memory[4 * 1024 * 1024 + 512];
  source_t source;
  luma_pool_t *pool = pool_over(&source);
  unsigned char *block;
  source.answer = memory + (256 - (uintptr_t)memory % 256);
  block = must_pool_alloc(pool, 2 * MIB);
  CHECK(block == source.answer);
  memset(block, 7, 2 * MIB);
  REFUSED(luma_pool_alloc(pool, 2 * MIB, 0, NULL), LUMA_ERROR_INVALID_VALUE, "overlaps");
  CHECK(source.taken_back == 0);
  CHECK(pool_stats_now(pool).reserved_bytes == 2 * MIB && block[2 * MIB - 1] == 7);
  OK(luma_pool_check(pool));
  OK(luma_pool_free(pool, block, NULL));
  OK(luma_pool_destroy(pool));
  CHECK(source.taken_back == 2 * MIB);
}

/* No lock is held around the functions: they may use other pools, even their own. */
static void a_source_that_calls_luma(void) {
  source_t source, inner_source;
  luma_pool_t *inner = pool_over(&inner_source), *pool = pool_over(&source);
  unsigned char *block;
  source.calls_inside = inner;
  block = must_pool_alloc(pool, 3 * MIB);
  OK(luma_pool_free(pool, block, NULL));
  CHECK(luma_pool_empty_cache(pool) >= 3 * MIB);

  /* Its own pool has room for what is asked inside, so that is no endless regress. */
  source.calls_inside = NULL;
  block = must_pool_alloc(pool, 1 * MIB);
  source.calls_inside = pool;
  OK(luma_pool_free(pool, must_pool_alloc(pool, 8 * MIB), NULL));
  CHECK(luma_pool_empty_cache(pool) > 0);
  OK(luma_pool_check(pool));
  source.calls_inside = NULL;
  OK(luma_pool_destroy(pool));
  OK(luma_pool_destroy(inner));
  CHECK(source.given == source.taken_back && inner_source.given == inner_source.taken_back);
}

static luma_pool_t *destroyed_inside;

static void *destroy_own_pool(size_t bytes, void *user) {
  (void)bytes;
  (void)user;
  FAILS(luma_pool_destroy(destroyed_inside), LUMA_ERROR_INVALID_VALUE, "callback");
  return NULL;
}

static void a_source_that_destroys_its_pool(void) {
  source_t source;
  luma_pool_config_t config = config_over(&source);
  memset(&source, 0, sizeof source);
  config.alloc_fn = destroy_own_pool;
  destroyed_inside = must_create(&config);
  REFUSED(luma_pool_alloc(destroyed_inside, 1, 0, NULL), LUMA_ERROR_OUT_OF_MEMORY, "callbacks");
  OK(luma_pool_destroy(destroyed_inside));
}

int main(void) {
  memory_comes_and_goes();
  half_a_pair_is_refused();
  a_source_that_has_nothing();
  a_source_that_misaligns();
  a_source_that_repeats_itself();
  a_source_that_calls_luma();
  a_source_that_destroys_its_pool();
  return 0;
}
