/* Sizes, offsets and numbers that compiled programs carry in them. They never change; fields and
 * enumerators are only added behind these. */
#include "check.h"

#define FIELD(type, field, offset, size) \
  CHECK(offsetof(type, field) == (offset) && sizeof(((type *)0)->field) == (size))

static void structs(void) {
  CHECK(sizeof(void *) == 8 && sizeof(size_t) == 8);

  CHECK(sizeof(luma_stats_t) == 192);
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
  FIELD(luma_stats_t, handler_calls, 144, 8);
  FIELD(luma_stats_t, event_records, 152, 8);
  FIELD(luma_stats_t, event_queries, 160, 8);
  FIELD(luma_stats_t, stream_waits, 168, 8);
  FIELD(luma_stats_t, oom_waits, 176, 8);
  FIELD(luma_stats_t, oom_wait_ns, 184, 8);

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

static void report_structs(void) {
  CHECK(sizeof(luma_oom_stream_t) == 24);
  FIELD(luma_oom_stream_t, stream_id, 0, 8);
  FIELD(luma_oom_stream_t, bytes, 8, 8);
  FIELD(luma_oom_stream_t, blocks, 16, 8);

  CHECK(sizeof(luma_oom_report_t) == 392);
  FIELD(luma_oom_report_t, struct_size, 0, 8);
  FIELD(luma_oom_report_t, requested_bytes, 8, 8);
  FIELD(luma_oom_report_t, rounded_bytes, 16, 8);
  FIELD(luma_oom_report_t, alignment, 24, 8);
  FIELD(luma_oom_report_t, allocated_bytes, 32, 8);
  FIELD(luma_oom_report_t, live_blocks, 40, 8);
  FIELD(luma_oom_report_t, reserved_bytes, 48, 8);
  FIELD(luma_oom_report_t, largest_free_block, 56, 8);
  FIELD(luma_oom_report_t, idle_bytes, 64, 8);
  FIELD(luma_oom_report_t, stuck_bytes, 72, 8);
  FIELD(luma_oom_report_t, pending_bytes, 80, 8);
  FIELD(luma_oom_report_t, pending_streams, 88, 8);
  FIELD(luma_oom_report_t, pending, 96, 192);
  FIELD(luma_oom_report_t, memory_limit, 288, 8);
  FIELD(luma_oom_report_t, device_free_bytes, 296, 8);
  FIELD(luma_oom_report_t, device_total_bytes, 304, 8);
  FIELD(luma_oom_report_t, give_backs, 312, 8);
  FIELD(luma_oom_report_t, waits, 320, 8);
  FIELD(luma_oom_report_t, wait_ns, 328, 8);
  FIELD(luma_oom_report_t, handler_calls, 336, 8);
  FIELD(luma_oom_report_t, device_is_known, 344, 4);
  FIELD(luma_oom_report_t, backend, 348, 4);
  FIELD(luma_oom_report_t, device, 352, 4);
  FIELD(luma_oom_report_t, action, 356, 4);
  FIELD(luma_oom_report_t, action_bytes, 360, 8);
  FIELD(luma_oom_report_t, action_address, 368, 8);
  FIELD(luma_oom_report_t, action_pool, 376, 8);
  FIELD(luma_oom_report_t, action_stream, 384, 8);
}

static void planning_structs(void) {
  CHECK(sizeof(luma_node_t) == 24);
  FIELD(luma_node_t, kind, 0, 4);
  FIELD(luma_node_t, buffer, 4, 4);
  FIELD(luma_node_t, pipe, 8, 4);
  FIELD(luma_node_t, reserved, 12, 4);
  FIELD(luma_node_t, cycles, 16, 8);

  CHECK(sizeof(luma_use_t) == 12);
  FIELD(luma_use_t, node, 0, 4);
  FIELD(luma_use_t, buffer, 4, 4);
  FIELD(luma_use_t, access, 8, 4);

  CHECK(sizeof(luma_edge_t) == 8);
  FIELD(luma_edge_t, from, 0, 4);
  FIELD(luma_edge_t, to, 4, 4);

  CHECK(sizeof(luma_buffer_t) == 16);
  FIELD(luma_buffer_t, size, 0, 8);
  FIELD(luma_buffer_t, memory, 8, 4);
  FIELD(luma_buffer_t, reserved, 12, 4);

  CHECK(sizeof(luma_memory_t) == 24);
  FIELD(luma_memory_t, name, 0, 8);
  FIELD(luma_memory_t, capacity, 8, 8);
  FIELD(luma_memory_t, single, 16, 4);
  FIELD(luma_memory_t, reserved, 20, 4);

  CHECK(sizeof(luma_spill_cost_t) == 56);
  FIELD(luma_spill_cost_t, struct_size, 0, 8);
  FIELD(luma_spill_cost_t, out_cycles_per_byte, 8, 8);
  FIELD(luma_spill_cost_t, out_fixed_latency, 16, 8);
  FIELD(luma_spill_cost_t, in_cycles_per_byte, 24, 8);
  FIELD(luma_spill_cost_t, in_fixed_latency, 32, 8);
  FIELD(luma_spill_cost_t, out_pipe, 40, 4);
  FIELD(luma_spill_cost_t, in_pipe, 44, 4);
  FIELD(luma_spill_cost_t, charge_backed_out, 48, 4);
  FIELD(luma_spill_cost_t, reserved, 52, 4);

  CHECK(sizeof(luma_graph_t) == 96);
  FIELD(luma_graph_t, struct_size, 0, 8);
  FIELD(luma_graph_t, nodes, 8, 8);
  FIELD(luma_graph_t, node_count, 16, 8);
  FIELD(luma_graph_t, uses, 24, 8);
  FIELD(luma_graph_t, use_count, 32, 8);
  FIELD(luma_graph_t, edges, 40, 8);
  FIELD(luma_graph_t, edge_count, 48, 8);
  FIELD(luma_graph_t, buffers, 56, 8);
  FIELD(luma_graph_t, buffer_count, 64, 8);
  FIELD(luma_graph_t, memories, 72, 8);
  FIELD(luma_graph_t, memory_count, 80, 8);
  FIELD(luma_graph_t, cost, 88, 8);

  CHECK(sizeof(luma_progress_t) == 32);
  FIELD(luma_progress_t, struct_size, 0, 8);
  FIELD(luma_progress_t, best, 8, 8);
  FIELD(luma_progress_t, lower_bound, 16, 8);
  FIELD(luma_progress_t, work, 24, 8);

  CHECK(sizeof(luma_plan_options_t) == 64);
  FIELD(luma_plan_options_t, struct_size, 0, 8);
  FIELD(luma_plan_options_t, level, 8, 4);
  FIELD(luma_plan_options_t, reorder, 12, 4);
  FIELD(luma_plan_options_t, time_limit_ms, 16, 8);
  FIELD(luma_plan_options_t, work_limit, 24, 8);
  FIELD(luma_plan_options_t, seed, 32, 8);
  FIELD(luma_plan_options_t, threads, 40, 4);
  FIELD(luma_plan_options_t, reserved, 44, 4);
  FIELD(luma_plan_options_t, progress, 48, 8);
  FIELD(luma_plan_options_t, user, 56, 8);
}

static void plan_structs(void) {
  CHECK(sizeof(luma_allocation_t) == 24);
  FIELD(luma_allocation_t, buffer, 0, 4);
  FIELD(luma_allocation_t, memory, 4, 4);
  FIELD(luma_allocation_t, offset, 8, 8);
  FIELD(luma_allocation_t, size, 16, 8);

  CHECK(sizeof(luma_spill_t) == 24);
  FIELD(luma_spill_t, buffer, 0, 4);
  FIELD(luma_spill_t, out_node, 4, 4);
  FIELD(luma_spill_t, in_node, 8, 4);
  FIELD(luma_spill_t, reserved, 12, 4);
  FIELD(luma_spill_t, offset, 16, 8);

  CHECK(sizeof(luma_plan_view_t) == 144);
  FIELD(luma_plan_view_t, struct_size, 0, 8);
  FIELD(luma_plan_view_t, order, 8, 8);
  FIELD(luma_plan_view_t, order_count, 16, 8);
  FIELD(luma_plan_view_t, offsets, 24, 8);
  FIELD(luma_plan_view_t, offset_count, 32, 8);
  FIELD(luma_plan_view_t, spills, 40, 8);
  FIELD(luma_plan_view_t, spill_count, 48, 8);
  FIELD(luma_plan_view_t, allocations, 56, 8);
  FIELD(luma_plan_view_t, allocation_count, 64, 8);
  FIELD(luma_plan_view_t, added_nodes, 72, 8);
  FIELD(luma_plan_view_t, added_node_count, 80, 8);
  FIELD(luma_plan_view_t, peaks, 88, 8);
  FIELD(luma_plan_view_t, peak_count, 96, 8);
  FIELD(luma_plan_view_t, extra_bytes, 104, 8);
  FIELD(luma_plan_view_t, lower_bound, 112, 8);
  FIELD(luma_plan_view_t, spill_cycles, 120, 8);
  FIELD(luma_plan_view_t, makespan, 128, 8);
  FIELD(luma_plan_view_t, proved, 136, 4);
  FIELD(luma_plan_view_t, stopped, 140, 4);

  CHECK(sizeof(luma_plan_report_t) == 48);
  FIELD(luma_plan_report_t, struct_size, 0, 8);
  FIELD(luma_plan_report_t, violation, 8, 4);
  FIELD(luma_plan_report_t, node, 12, 4);
  FIELD(luma_plan_report_t, buffer, 16, 4);
  FIELD(luma_plan_report_t, position, 20, 4);
  FIELD(luma_plan_report_t, extra_bytes, 24, 8);
  FIELD(luma_plan_report_t, spill_cycles, 32, 8);
  FIELD(luma_plan_report_t, makespan, 40, 8);

  CHECK(sizeof(luma_lifetime_t) == 24);
  FIELD(luma_lifetime_t, lower, 0, 8);
  FIELD(luma_lifetime_t, upper, 8, 8);
  FIELD(luma_lifetime_t, size, 16, 8);

  CHECK(sizeof(luma_place_options_t) == 64);
  FIELD(luma_place_options_t, struct_size, 0, 8);
  FIELD(luma_place_options_t, capacity, 8, 8);
  FIELD(luma_place_options_t, time_limit_ms, 16, 8);
  FIELD(luma_place_options_t, work_limit, 24, 8);
  FIELD(luma_place_options_t, seed, 32, 8);
  FIELD(luma_place_options_t, threads, 40, 4);
  FIELD(luma_place_options_t, reserved, 44, 4);
  FIELD(luma_place_options_t, progress, 48, 8);
  FIELD(luma_place_options_t, user, 56, 8);

  CHECK(sizeof(luma_placement_t) == 32);
  FIELD(luma_placement_t, struct_size, 0, 8);
  FIELD(luma_placement_t, height, 8, 8);
  FIELD(luma_placement_t, lower_bound, 16, 8);
  FIELD(luma_placement_t, proved, 24, 4);
  FIELD(luma_placement_t, stopped, 28, 4);
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

  NUMBER(LUMA_OOM_NONE, 0);
  NUMBER(LUMA_OOM_ASK_FOR_LESS, 1);
  NUMBER(LUMA_OOM_RAISE_LIMIT, 2);
  NUMBER(LUMA_OOM_FREE_BLOCK, 3);
  NUMBER(LUMA_OOM_WAIT_FOR_STREAM, 4);
  NUMBER(LUMA_OOM_EMPTY_OTHER_POOL, 5);
  NUMBER(LUMA_OOM_FREE_SEVERAL, 6);
}

static void planning_enums(void) {
  NUMBER(LUMA_NODE_OPERATION, 0);
  NUMBER(LUMA_NODE_COPY_IN, 1);
  NUMBER(LUMA_NODE_ALLOC, 2);
  NUMBER(LUMA_NODE_FREE, 3);
  NUMBER(LUMA_NODE_SPILL_OUT, 4);
  NUMBER(LUMA_NODE_SPILL_IN, 5);

  NUMBER(LUMA_ACCESS_UNKNOWN, 0);
  NUMBER(LUMA_ACCESS_READ, 1);
  NUMBER(LUMA_ACCESS_WRITE, 2);
  NUMBER(LUMA_ACCESS_READ_WRITE, 3);

  NUMBER(LUMA_LEVEL_HEURISTIC, 0);
  NUMBER(LUMA_LEVEL_EXACT, 1);
  NUMBER(LUMA_LEVEL_SEARCH, 2);

  NUMBER(LUMA_STOPPED_FINISHED, 0);
  NUMBER(LUMA_STOPPED_TIME, 1);
  NUMBER(LUMA_STOPPED_CALLER, 2);
  NUMBER(LUMA_STOPPED_WORK, 3);

  NUMBER(LUMA_VIOLATION_NONE, 0);
  NUMBER(LUMA_VIOLATION_GRAPH, 1);
  NUMBER(LUMA_VIOLATION_UNKNOWN_NODE, 2);
  NUMBER(LUMA_VIOLATION_DUPLICATE_NODE, 3);
  NUMBER(LUMA_VIOLATION_MISSING_NODE, 4);
  NUMBER(LUMA_VIOLATION_UNKNOWN_BUFFER, 5);
  NUMBER(LUMA_VIOLATION_MISSING_OFFSET, 6);
  NUMBER(LUMA_VIOLATION_OFFSET_RANGE, 7);
  NUMBER(LUMA_VIOLATION_EDGE_ORDER, 8);
  NUMBER(LUMA_VIOLATION_SPILL_EDGE, 9);
  NUMBER(LUMA_VIOLATION_NESTED_SPILL, 10);
  NUMBER(LUMA_VIOLATION_USE_WHILE_SPILLED, 11);
  NUMBER(LUMA_VIOLATION_USE_NOT_RESIDENT, 12);
  NUMBER(LUMA_VIOLATION_SINGLE, 13);
  NUMBER(LUMA_VIOLATION_OVER_CAPACITY, 14);
  NUMBER(LUMA_VIOLATION_OVERLAP, 15);
  NUMBER(LUMA_VIOLATION_SPILL_NUMBER, 16);
  NUMBER(LUMA_VIOLATION_ORDER_CHANGED, 17);

  NUMBER(LUMA_EDGES_ALL, 0);
  NUMBER(LUMA_EDGES_DIRECT, 1);
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

#define IS_ZERO_BEHIND_ITS_SIZE(type, init) \
  do { \
    type value = init, nothing; \
    memset(&nothing, 0, sizeof nothing); \
    nothing.struct_size = sizeof nothing; \
    CHECK(memcmp(&value, &nothing, sizeof value) == 0); \
  } while (0)

static void other_initial_values(void) {
  luma_spill_cost_t cost = LUMA_SPILL_COST_INIT;
  IS_ZERO_BEHIND_ITS_SIZE(luma_oom_report_t, LUMA_OOM_REPORT_INIT);
  IS_ZERO_BEHIND_ITS_SIZE(luma_graph_t, LUMA_GRAPH_INIT);
  IS_ZERO_BEHIND_ITS_SIZE(luma_plan_options_t, LUMA_PLAN_OPTIONS_INIT);
  IS_ZERO_BEHIND_ITS_SIZE(luma_plan_view_t, LUMA_PLAN_VIEW_INIT);
  IS_ZERO_BEHIND_ITS_SIZE(luma_plan_report_t, LUMA_PLAN_REPORT_INIT);
  IS_ZERO_BEHIND_ITS_SIZE(luma_place_options_t, LUMA_PLACE_OPTIONS_INIT);
  IS_ZERO_BEHIND_ITS_SIZE(luma_placement_t, LUMA_PLACEMENT_INIT);
  CHECK(cost.struct_size == sizeof cost);
  CHECK(cost.out_cycles_per_byte == 2 && cost.out_fixed_latency == 150 && cost.out_pipe == 3);
  CHECK(cost.in_cycles_per_byte == 2 && cost.in_fixed_latency == 150 && cost.in_pipe == 2);
  CHECK(cost.charge_backed_out == 0 && cost.reserved == 0);
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
  report_structs();
  planning_structs();
  plan_structs();
  enums();
  planning_enums();
  initial_values();
  other_initial_values();
  words();
  version();
  return 0;
}
