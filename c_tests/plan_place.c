/* Static placement: lifetimes get offsets. */
#include "check.h"

#define LENGTH(array) (sizeof(array) / sizeof((array)[0]))

/* At time 1 all but the last are there: 4 + 3 + 2 bytes. */
static const luma_lifetime_t LIFETIMES[] = {
    {0, 2, 4}, {1, 3, 3}, {0, 5, 2}, {2, 5, 4}, {3, 3, 9}, {0, 9, 0}};

static void no_two_share_a_byte(const uint64_t *offsets, uint64_t height) {
  size_t one, other;
  for (one = 0; one < LENGTH(LIFETIMES); one++) {
    const luma_lifetime_t *a = &LIFETIMES[one];
    CHECK(a->lower == a->upper || offsets[one] + a->size <= height);
    for (other = 0; other < one; other++) {
      const luma_lifetime_t *b = &LIFETIMES[other];
      if (a->lower == a->upper || b->lower == b->upper || a->size == 0 || b->size == 0) {
        continue;
      }
      CHECK(a->upper <= b->lower || b->upper <= a->lower ||
            offsets[one] + a->size <= offsets[other] || offsets[other] + b->size <= offsets[one]);
    }
  }
}

static void as_low_as_can_be(void) {
  uint64_t offsets[LENGTH(LIFETIMES)];
  luma_placement_t placement = LUMA_PLACEMENT_INIT;
  OK(luma_place(LIFETIMES, LENGTH(LIFETIMES), NULL, offsets, &placement));
  CHECK(placement.height == 9 && placement.lower_bound == 9 && placement.proved == 1);
  no_two_share_a_byte(offsets, 9);
  OK(luma_place(LIFETIMES, LENGTH(LIFETIMES), NULL, offsets, NULL));
  no_two_share_a_byte(offsets, 9);
}

static void within_a_capacity(void) {
  uint64_t offsets[LENGTH(LIFETIMES)], before[LENGTH(LIFETIMES)];
  luma_place_options_t options = LUMA_PLACE_OPTIONS_INIT;
  luma_placement_t placement = LUMA_PLACEMENT_INIT;
  options.capacity = 12;
  options.time_limit_ms = 1000;
  options.seed = 3;
  options.threads = 1;
  OK(luma_place(LIFETIMES, LENGTH(LIFETIMES), &options, offsets, &placement));
  CHECK(placement.height <= 12 && placement.height >= placement.lower_bound);
  no_two_share_a_byte(offsets, 12);

  memset(offsets, 0xEE, sizeof offsets);
  memcpy(before, offsets, sizeof before);
  options.capacity = 8;
  FAILS(luma_place(LIFETIMES, LENGTH(LIFETIMES), &options, offsets, &placement),
        LUMA_ERROR_INFEASIBLE, "8");
  CHECK(memcmp(offsets, before, sizeof offsets) == 0);
}

static void what_is_refused(void) {
  static const luma_lifetime_t BACKWARDS[] = {{0, 1, 1}, {5, 4, 1}};
  uint64_t offsets[LENGTH(LIFETIMES)];
  luma_place_options_t options = LUMA_PLACE_OPTIONS_INIT;
  luma_placement_t placement = LUMA_PLACEMENT_INIT;
  placement.height = 77;
  FAILS(luma_place(NULL, 1, NULL, offsets, &placement), LUMA_ERROR_INVALID_VALUE, "lifetimes is NULL");
  FAILS(luma_place(LIFETIMES, 1, NULL, NULL, &placement), LUMA_ERROR_INVALID_VALUE, "offsets is NULL");
  FAILS(luma_place(BACKWARDS, 2, NULL, offsets, &placement), LUMA_ERROR_INVALID_VALUE, "1");
  options.reserved = 1;
  FAILS(luma_place(LIFETIMES, 1, &options, offsets, &placement), LUMA_ERROR_INVALID_VALUE, "reserved");
  options.struct_size = 8;
  FAILS(luma_place(LIFETIMES, 1, &options, offsets, &placement), LUMA_ERROR_INVALID_VALUE,
        "LUMA_PLACE_OPTIONS_INIT");
  placement.struct_size = 8;
  FAILS(luma_place(LIFETIMES, 1, NULL, offsets, &placement), LUMA_ERROR_INVALID_VALUE,
        "LUMA_PLACEMENT_INIT");
  CHECK(placement.height == 77);
}

static void nothing(void) {
  luma_placement_t placement = LUMA_PLACEMENT_INIT;
  OK(luma_place(NULL, 0, NULL, NULL, &placement));
  CHECK(placement.height == 0 && placement.proved == 1);
}

int main(void) {
  as_low_as_can_be();
  within_a_capacity();
  what_is_refused();
  nothing();
  return 0;
}
