/* Sizes and alignments at the edges of what numbers hold: refused or served, never wrapped. */
#include "check.h"

static void refused_in_full(void) {
  static const size_t SIZES[] = {
      SIZE_MAX,       SIZE_MAX - 100, SIZE_MAX - 254, SIZE_MAX - 255, SIZE_MAX - 256, SIZE_MAX / 2 + 1,
      SIZE_MAX / 2, (size_t)1 << 63, (size_t)1 << 48, (size_t)1 << 47,
  };
  static const size_t ALIGNMENTS[] = {0, 1, 256, 512, 4096, 2 * MIB, GIB, (size_t)1 << 63};
  size_t at, by;
  luma_stats_t before = stats_now();
  for (at = 0; at < sizeof SIZES / sizeof SIZES[0]; at++) {
    luma_stats_t after;
    REFUSED(luma_alloc(SIZES[at]), LUMA_ERROR_OUT_OF_MEMORY, "out of memory");
    for (by = 0; by < sizeof ALIGNMENTS / sizeof ALIGNMENTS[0]; by++) {
      REFUSED(luma_alloc_aligned(SIZES[at], ALIGNMENTS[by]), LUMA_ERROR_OUT_OF_MEMORY,
              "out of memory");
      REFUSED(luma_pool_alloc(luma_default_pool(0), SIZES[at], ALIGNMENTS[by], NULL),
              LUMA_ERROR_OUT_OF_MEMORY, "out of memory");
    }
    after = stats_now();
    CHECK(after.allocated_bytes == before.allocated_bytes);
    CHECK(after.requested_bytes == before.requested_bytes);
    CHECK(after.live_blocks == before.live_blocks);
    CHECK(after.peak_bytes == before.peak_bytes);
    CHECK(after.alloc_calls == after.out_of_memory_count + before.alloc_calls);
  }
  OK(luma_check());
}

static void alignments_beyond_the_device(void) {
  REFUSED(luma_alloc_aligned(1, (size_t)1 << 63), LUMA_ERROR_OUT_OF_MEMORY, "out of memory");
  REFUSED(luma_alloc_aligned(256, (size_t)1 << 62), LUMA_ERROR_OUT_OF_MEMORY, "out of memory");
  OK(luma_check());
}

static void what_is_no_alignment(void) {
  static const size_t BAD[] = {3, 5, 6, 7, 100, 255, 257, 384, 4095, SIZE_MAX, SIZE_MAX - 1,
                               ((size_t)1 << 63) + 1};
  luma_stats_t before = stats_now(), after;
  size_t at;
  for (at = 0; at < sizeof BAD / sizeof BAD[0]; at++) {
    REFUSED(luma_alloc_aligned(100, BAD[at]), LUMA_ERROR_INVALID_VALUE, "power of two");
    REFUSED(luma_alloc_aligned(0, BAD[at]), LUMA_ERROR_INVALID_VALUE, "power of two");
    REFUSED(luma_pool_alloc(luma_default_pool(0), 100, BAD[at], NULL), LUMA_ERROR_INVALID_VALUE,
            "power of two");
  }
  after = stats_now();
  CHECK(same_stats(&before, &after));
}

/* Beyond 32 bits, on a device that has that much; the pages are only taken when touched. */
static void beyond_four_gigabytes(void) {
  size_t bytes = 4 * GIB + 1;
  unsigned char *block = must_alloc(bytes);
  CHECK(luma_usable_size(block) == 4 * GIB + 256);
  CHECK(stats_now().requested_bytes == bytes);
  block[0] = 1;
  block[bytes - 1] = 2;
  CHECK(block[0] == 1 && block[bytes - 1] == 2);
  {
    unsigned char *other = must_alloc(256);
    CHECK(other + 256 <= block || other >= block + bytes);
    OK(luma_free(other));
  }
  OK(luma_free(block));
}

static void rounding_is_up_to_256(void) {
  static const size_t SIZES[] = {1, 255, 256, 257, 511, 512, 513, 4095, 4097, MIB - 1, MIB, MIB + 1};
  size_t at;
  for (at = 0; at < sizeof SIZES / sizeof SIZES[0]; at++) {
    void *block = must_alloc(SIZES[at]);
    CHECK(luma_usable_size(block) == (SIZES[at] + 255) / 256 * 256);
    OK(luma_free(block));
  }
}

int main(void) {
  refused_in_full();
  alignments_beyond_the_device();
  what_is_no_alignment();
  if (getenv("LUMA_DEBUG") == NULL) { /* which writes to all of a freed block */
    beyond_four_gigabytes();
  }
  rounding_is_up_to_256();
  OK(luma_check());
  return 0;
}
