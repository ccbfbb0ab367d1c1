/* Frees of what is no live block's start: refused with the case named, and nothing is changed. */
#include "check.h"

static unsigned char in_data[512];

static void not_ours(void) {
  unsigned char on_stack[512];
  void *on_heap = malloc(512);
  CHECK(on_heap != NULL);
  FAILS(luma_free(in_data), LUMA_ERROR_INVALID_POINTER, "not from this pool");
  FAILS(luma_free(on_stack), LUMA_ERROR_INVALID_POINTER, "not from this pool");
  FAILS(luma_free(on_heap), LUMA_ERROR_INVALID_POINTER, "not from this pool");
  FAILS(luma_free((void *)(uintptr_t)1), LUMA_ERROR_INVALID_POINTER, "0x1 is not from this pool");
  FAILS(luma_free((void *)UINTPTR_MAX), LUMA_ERROR_INVALID_POINTER, "not from this pool");
  free(on_heap);
}

static void inside_a_block(void) {
  char expected[64];
  unsigned char *block = must_alloc(4096);
  snprintf(expected, sizeof expected, "1 bytes inside the block of 4096 bytes at %p", (void *)block);
  FAILS(luma_free(block + 1), LUMA_ERROR_INVALID_POINTER, expected);
  snprintf(expected, sizeof expected, "256 bytes inside the block of 4096 bytes at %p",
           (void *)block);
  FAILS(luma_free(block + 256), LUMA_ERROR_INVALID_POINTER, expected);
  FAILS(luma_free(block + 4095), LUMA_ERROR_INVALID_POINTER, "4095 bytes inside");
  CHECK(luma_usable_size(block) == 4096 && luma_usable_size(block + 256) == 0);
  OK(luma_free(block));
}

static void freed_already(void) {
  unsigned char *before = must_alloc(1024), *block = must_alloc(1024), *after = must_alloc(1024);
  OK(luma_free(block));
  FAILS(luma_free(block), LUMA_ERROR_INVALID_POINTER, "free already");
  FAILS(luma_free(block + 512), LUMA_ERROR_INVALID_POINTER, "free already");
  /* Merged with its neighbours, it is free all the same. */
  OK(luma_free(before));
  OK(luma_free(after));
  FAILS(luma_free(block), LUMA_ERROR_INVALID_POINTER, "free already");
}

/* When a pool's memory went back, nobody knows it any more. */
static void given_back(void) {
  luma_pool_config_t config = host_config(64 * MIB);
  luma_pool_t *pool = must_create(&config);
  unsigned char *block = must_pool_alloc(pool, 1000);
  OK(luma_pool_free(pool, block, NULL));
  CHECK(luma_pool_empty_cache(pool) > 0);
  FAILS(luma_pool_free(pool, block, NULL), LUMA_ERROR_INVALID_POINTER, "not from this pool");
  OK(luma_pool_destroy(pool));
  FAILS(luma_free(block), LUMA_ERROR_INVALID_POINTER, "not from this pool");
}

static void of_another_pool(void) {
  luma_pool_config_t config = host_config(64 * MIB);
  luma_pool_t *pool = must_create(&config), *other = must_create(&config);
  unsigned char *ours = must_alloc(256), *theirs = must_pool_alloc(pool, 256);
  FAILS(luma_free(theirs), LUMA_ERROR_INVALID_POINTER, "another pool");
  FAILS(luma_pool_free(other, theirs, NULL), LUMA_ERROR_INVALID_POINTER, "another pool");
  FAILS(luma_pool_free(pool, ours, NULL), LUMA_ERROR_INVALID_POINTER, "luma_free");
  CHECK(luma_usable_size(theirs) == 0);
  CHECK(pool_stats_now(pool).live_blocks == 1);
  OK(luma_pool_free(pool, theirs, NULL));
  OK(luma_pool_free(luma_default_pool(0), ours, NULL));
  OK(luma_pool_destroy(pool));
  OK(luma_pool_destroy(other));
}

int main(void) {
  luma_stats_t before, after;
  void *kept;
  /* Nothing was ever allocated: it is refused all the same. */
  FAILS(luma_free(in_data), LUMA_ERROR_INVALID_POINTER, "not from this pool");

  kept = must_alloc(100);
  before = stats_now();
  not_ours();
  after = stats_now();
  CHECK(same_stats(&before, &after));
  inside_a_block();
  freed_already();
  given_back();
  of_another_pool();
  CHECK(luma_usable_size(kept) == 256 && stats_now().live_blocks == 1);
  OK(luma_free(kept));
  OK(luma_check());
  return 0;
}
