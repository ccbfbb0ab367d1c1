/* The default pool's functions, and what they leave in the last status and message. */
#include "check.h"

static void a_block_is_usable_and_counted(void) {
  luma_stats_t before = stats_now(), during, after;
  unsigned char *block = must_alloc(1000);
  CHECK(is_aligned(block, 256));
  memset(block, 0x5A, 1000);
  CHECK(luma_usable_size(block) == 1024 && luma_last_status() == LUMA_SUCCESS);
  /* All of it is the caller's. */
  memset(block, 0xA5, 1024);

  during = stats_now();
  CHECK(during.allocated_bytes == before.allocated_bytes + 1024);
  CHECK(during.requested_bytes == before.requested_bytes + 1000);
  CHECK(during.live_blocks == before.live_blocks + 1);
  CHECK(during.alloc_calls == before.alloc_calls + 1);
  CHECK(during.reserved_bytes >= during.allocated_bytes);
  CHECK(during.segments >= 1 && during.cuda_malloc_calls >= 1);

  OK(luma_free(block));
  after = stats_now();
  CHECK(after.allocated_bytes == before.allocated_bytes);
  CHECK(after.requested_bytes == before.requested_bytes);
  CHECK(after.live_blocks == before.live_blocks);
  CHECK(after.free_calls == before.free_calls + 1);
  CHECK(after.peak_bytes >= during.allocated_bytes);
  CHECK(luma_usable_size(block) == 0);
}

static void alignments(void) {
  size_t alignment;
  for (alignment = 1; alignment <= 64 * MIB; alignment *= 2) {
    void *block = luma_alloc_aligned(100, alignment);
    CHECK(block != NULL && is_aligned(block, 256) && is_aligned(block, alignment));
    memset(block, 1, 100);
    OK(luma_free(block));
  }
  {
    void *block = luma_alloc_aligned(100, 0);
    CHECK(block != NULL && is_aligned(block, 256));
    OK(luma_free(block));
  }
}

static void nothing_is_neither_allocated_nor_freed(void) {
  luma_stats_t before = stats_now(), after;
  CHECK(luma_alloc(0) == NULL && luma_last_status() == LUMA_SUCCESS);
  CHECK(luma_last_error()[0] == '\0');
  CHECK(luma_alloc_aligned(0, 4096) == NULL && luma_last_status() == LUMA_SUCCESS);
  OK(luma_free(NULL));
  CHECK(luma_usable_size(NULL) == 0);
  after = stats_now();
  CHECK(same_stats(&before, &after));
}

static void peaks_begin_anew(void) {
  void *kept = must_alloc(1 * MIB);
  OK(luma_free(must_alloc(8 * MIB)));
  CHECK(stats_now().peak_bytes >= 9 * MIB);
  OK(luma_reset_peak());
  CHECK(stats_now().peak_bytes == stats_now().allocated_bytes);
  CHECK(stats_now().peak_reserved_bytes == stats_now().reserved_bytes);
  OK(luma_free(kept));
  CHECK(stats_now().peak_bytes == stats_now().allocated_bytes + 1 * MIB);
}

static void the_cache_is_given_back(void) {
  size_t before_free, during_free, after_free, total, same_total;
  (void)luma_empty_cache();
  CHECK(luma_last_status() == LUMA_SUCCESS);
  OK(luma_memory_info(&before_free, &total));
  {
    void *block = must_alloc(32 * MIB);
    OK(luma_memory_info(&during_free, &same_total));
    CHECK(same_total == total && during_free <= before_free - 32 * MIB);
    (void)luma_empty_cache();
    CHECK(luma_last_status() == LUMA_SUCCESS);
    CHECK(luma_usable_size(block) == 32 * MIB);
    OK(luma_free(block));
  }
  CHECK(luma_empty_cache() >= 32 * MIB && luma_last_status() == LUMA_SUCCESS);
  OK(luma_memory_info(&after_free, &same_total));
  CHECK(after_free == total);
  CHECK(stats_now().reserved_bytes == 0 && stats_now().segments == 0);
  CHECK(stats_now().cuda_malloc_calls == stats_now().cuda_free_calls);
  CHECK(luma_empty_cache() == 0 && luma_last_status() == LUMA_SUCCESS);
}

static void null_arguments(void) {
  size_t bytes = 7;
  FAILS(luma_memory_info(NULL, &bytes), LUMA_ERROR_INVALID_VALUE, "free_bytes");
  FAILS(luma_memory_info(&bytes, NULL), LUMA_ERROR_INVALID_VALUE, "total_bytes");
  CHECK(bytes == 7);
  FAILS(luma_stats(NULL), LUMA_ERROR_INVALID_VALUE, "NULL");
}

/* A failure stays to be asked for, as often as one likes, until the next call. */
static void the_last_status_is_that_of_the_last_call(void) {
  char message[1024];
  void *block = must_alloc(1);
  FAILS(luma_free((char *)block + 1), LUMA_ERROR_INVALID_POINTER, "inside");
  snprintf(message, sizeof message, "%s", luma_last_error());
  CHECK(luma_last_status() == LUMA_ERROR_INVALID_POINTER);
  CHECK(luma_status_string(luma_last_status())[0] != '\0' && luma_version()[0] != '\0');
  CHECK(luma_last_status() == LUMA_ERROR_INVALID_POINTER);
  CHECK(strcmp(luma_last_error(), message) == 0);

  OK(luma_check());
  CHECK(luma_free((char *)block + 1) == LUMA_ERROR_INVALID_POINTER);
  CHECK(luma_usable_size(block) == 256);
  CHECK(luma_last_status() == LUMA_SUCCESS && luma_last_error()[0] == '\0');
  CHECK(luma_free((char *)block + 1) == LUMA_ERROR_INVALID_POINTER);
  (void)stats_now(); /* which checks that the call left success */
  OK(luma_free(block));
}

int main(void) {
  CHECK(luma_last_status() == LUMA_SUCCESS && luma_last_error()[0] == '\0');
  a_block_is_usable_and_counted();
  alignments();
  nothing_is_neither_allocated_nor_freed();
  peaks_begin_anew();
  the_cache_is_given_back();
  null_arguments();
  the_last_status_is_that_of_the_last_call();
  OK(luma_check());
  return 0;
}
