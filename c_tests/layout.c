/* Sizes, offsets and numbers that compiled programs carry in them. They never change; fields and
 * enumerators are only added behind these. */
#include "check.h"

#define FIELD(type, field, offset, size) \
  CHECK(offsetof(type, field) == (offset) && sizeof(((type *)0)->field) == (size))

static void structs(void) {
  CHECK(sizeof(void *) == 8 && sizeof(size_t) == 8);

  CHECK(sizeof(luma_stats_t) == 144);
  FIELD(luma_stats_t, struct_size, 0, 8);
  FIELD(luma_stats_t, allocated_bytes, 8, 8);
  FIELD(luma_stats_t, reserved_bytes, 16, 8);
  FIELD(luma_stats_t, peak_bytes, 24, 8);
  FIELD(luma_stats_t, live_blocks, 32, 8);
  FIELD(luma_stats_t, free_blocks, 40, 8);
  FIELD(luma_stats_t, segments, 48, 8);
  FIELD(luma_stats_t, cuda_malloc_calls, 56, 8);
  FIELD(luma_stats_t, cuda_free_calls, 64, 8);
  FIELD(luma_stats_t, requested_bytes, 72, 8);
  FIELD(luma_stats_t, peak_reserved_bytes, 80, 8);
  FIELD(luma_stats_t, largest_free_block, 88, 8);
  FIELD(luma_stats_t, memory_limit, 96, 8);
  FIELD(luma_stats_t, alloc_calls, 104, 8);
  FIELD(luma_stats_t, free_calls, 112, 8);
  FIELD(luma_stats_t, alloc_retries, 120, 8);
  FIELD(luma_stats_t, out_of_memory_count, 128, 8);
  FIELD(luma_stats_t, pending_bytes, 136, 8);

  CHECK(sizeof(luma_pool_config_t) == 88);
  FIELD(luma_pool_config_t, struct_size, 0, 8);
  FIELD(luma_pool_config_t, backend, 8, 4);
  FIELD(luma_pool_config_t, device, 12, 4);
  FIELD(luma_pool_config_t, preset, 16, 4);
  FIELD(luma_pool_config_t, growth, 20, 4);
  FIELD(luma_pool_config_t, memory_limit, 24, 8);
  FIELD(luma_pool_config_t, min_segment_bytes, 32, 8);
  FIELD(luma_pool_config_t, min_split_bytes, 40, 8);
  FIELD(luma_pool_config_t, split_when_double, 48, 4);
  FIELD(luma_pool_config_t, release_on_failure, 52, 4);
  FIELD(luma_pool_config_t, capacity, 56, 8);
  FIELD(luma_pool_config_t, alloc_fn, 64, 8);
  FIELD(luma_pool_config_t, free_fn, 72, 8);
  FIELD(luma_pool_config_t, user, 80, 8);
}

#define NUMBER(name, value) CHECK((int)(name) == (value))

static void enums(void) {
  CHECK(sizeof(luma_status_t) == 4);
  NUMBER(LUMA_SUCCESS, 0);
  NUMBER(LUMA_ERROR_INVALID_VALUE, 1);
  NUMBER(LUMA_ERROR_OUT_OF_MEMORY, 2);
  NUMBER(LUMA_ERROR_INVALID_POINTER, 3);
  NUMBER(LUMA_ERROR_NO_DEVICE, 4);
  NUMBER(LUMA_ERROR_DRIVER, 5);
  NUMBER(LUMA_ERROR_UNSUPPORTED, 6);
  NUMBER(LUMA_ERROR_CORRUPTED, 7);
  NUMBER(LUMA_ERROR_INFEASIBLE, 8);
  NUMBER(LUMA_ERROR_INTERNAL, 9);

  NUMBER(LUMA_BACKEND_AUTO, 0);
  NUMBER(LUMA_BACKEND_CUDA, 1);
  NUMBER(LUMA_BACKEND_HOST, 2);
  NUMBER(LUMA_BACKEND_CALLBACKS, 3);
  NUMBER(LUMA_BACKEND_CUDA_HOST, 4);
  NUMBER(LUMA_BACKEND_CUDA_MANAGED, 5);
  NUMBER(LUMA_BACKEND_SIMULATED, 6);

  NUMBER(LUMA_PRESET_DEFAULT, 0);
  NUMBER(LUMA_PRESET_XLA, 1);
  NUMBER(LUMA_PRESET_LUMA_0_3, 2);

  NUMBER(LUMA_GROWTH_DEFAULT, 0);
  NUMBER(LUMA_GROWTH_FIXED, 1);
  NUMBER(LUMA_GROWTH_DOUBLING, 2);
  NUMBER(LUMA_GROWTH_EXACT, 3);
  NUMBER(LUMA_GROWTH_PROPORTIONAL, 4);
  NUMBER(LUMA_GROWTH_PAGED, 5);

  NUMBER(LUMA_SWITCH_DEFAULT, 0);
  NUMBER(LUMA_SWITCH_ON, 1);
  NUMBER(LUMA_SWITCH_OFF, 2);
}

/* Each names a size and is zero behind it. */
static void initial_values(void) {
  luma_stats_t stats = LUMA_STATS_INIT, no_stats;
  luma_pool_config_t config = LUMA_POOL_CONFIG_INIT, no_config;
  memset(&no_stats, 0, sizeof no_stats);
  no_stats.struct_size = sizeof no_stats;
  CHECK(memcmp(&stats, &no_stats, sizeof stats) == 0);
  memset(&no_config, 0, sizeof no_config);
  no_config.struct_size = sizeof no_config;
  CHECK(memcmp(&config, &no_config, sizeof config) == 0);
}

static void words(void) {
  int status, other;
  for (status = 0; status <= 9; status++) {
    CHECK(luma_status_string(status)[0] != '\0');
    CHECK(strcmp(luma_status_string(status), luma_status_string(10)) != 0);
    for (other = 0; other < status; other++) {
      CHECK(strcmp(luma_status_string(status), luma_status_string(other)) != 0);
    }
  }
  CHECK(luma_status_string(-1) == luma_status_string(10));
  CHECK(strcmp(luma_status_string(-2147483647 - 1), luma_status_string(2147483647)) == 0);
}

static void version(void) {
  char expected[32];
  snprintf(expected, sizeof expected, "%d.%d.%d", LUMA_VERSION_MAJOR, LUMA_VERSION_MINOR,
           LUMA_VERSION_PATCH);
  CHECK(strcmp(luma_version(), expected) == 0);
}

int main(void) {
  structs();
  enums();
  initial_values();
  words();
  version();
  return 0;
}
