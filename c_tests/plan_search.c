/* Searching for better orders: it can be stopped, and is the same again. */
#include "check.h"

enum { BUFFERS = 12, OPERATIONS = 80, NODES = 2 * BUFFERS + OPERATIONS };

static luma_node_t nodes[NODES];
static luma_use_t uses[2 * OPERATIONS];
static luma_buffer_t buffers[BUFFERS];
static const luma_memory_t MEMORY = {"M", 5, 0, 0};
static luma_graph_t graph = LUMA_GRAPH_INIT;

/* Each operation uses two of twelve buffers, of which five have room. Any order of them will do, and
 * some are much better than others. */
static void make_graph(void) {
  uint32_t at, node = 0, random = 1;
  for (at = 0; at < NODES; at++) {
    nodes[at].kind = at < BUFFERS             ? LUMA_NODE_ALLOC
                     : at < NODES - BUFFERS ? LUMA_NODE_OPERATION
                                            : LUMA_NODE_FREE;
    nodes[at].buffer = at < BUFFERS ? at : at < NODES - BUFFERS ? 0 : at - (NODES - BUFFERS);
    nodes[at].pipe = at % 3;
    nodes[at].cycles = at;
  }
  for (at = 0; at < BUFFERS; at++) {
    buffers[at].size = 1;
  }
  for (node = 0; node < OPERATIONS; node++) {
    uint32_t one, other;
    random = random * 1664525u + 1013904223u;
    one = (random >> 16) % BUFFERS;
    other = (one + 1 + (random >> 24) % (BUFFERS - 1)) % BUFFERS;
    uses[2 * node].node = uses[2 * node + 1].node = BUFFERS + node;
    uses[2 * node].buffer = one;
    uses[2 * node + 1].buffer = other;
  }
  graph.nodes = nodes;
  graph.node_count = NODES;
  graph.uses = uses;
  graph.use_count = 2 * OPERATIONS;
  graph.buffers = buffers;
  graph.buffer_count = BUFFERS;
  graph.memories = &MEMORY;
  graph.memory_count = 1;
}

static luma_plan_options_t search_options(void) {
  luma_plan_options_t options = LUMA_PLAN_OPTIONS_INIT;
  options.level = LUMA_LEVEL_SEARCH;
  options.reorder = 1;
  options.seed = 7;
  return options;
}

static luma_plan_t *must_search(const luma_plan_options_t *options, luma_plan_view_t *view) {
  luma_plan_t *plan = NULL;
  OK(luma_plan_spills(&graph, NULL, 0, options, &plan));
  OK(luma_plan_view(plan, view));
  OK(luma_check_plan(&graph, NULL, 0, view, NULL, NULL));
  return plan;
}

static int stop_at_once(const luma_progress_t *progress, void *user) {
  *(uint64_t *)user = progress->best;
  return 1;
}

static void the_callback_stops_it(void) {
  luma_plan_options_t options = search_options();
  luma_plan_view_t view = LUMA_PLAN_VIEW_INIT;
  uint64_t best = UINT64_MAX;
  luma_plan_t *plan;
  options.time_limit_ms = UINT64_MAX;
  options.progress = stop_at_once;
  options.user = &best;
  plan = must_search(&options, &view);
  CHECK(view.stopped == LUMA_STOPPED_CALLER);
  CHECK(best != UINT64_MAX && view.extra_bytes <= best);
  OK(luma_plan_free(plan));
}

static void the_clock_stops_it(void) {
  luma_plan_options_t options = search_options();
  luma_plan_view_t view = LUMA_PLAN_VIEW_INIT;
  luma_plan_t *plan;
  options.time_limit_ms = 20;
  plan = must_search(&options, &view);
  CHECK(view.stopped == LUMA_STOPPED_TIME);
  OK(luma_plan_free(plan));
}

/* For the same work the same plan, on one thread and on three. */
static void work_is_reproducible(void) {
  luma_plan_options_t options = search_options();
  luma_plan_view_t one = LUMA_PLAN_VIEW_INIT, other = LUMA_PLAN_VIEW_INIT;
  luma_plan_t *first, *second;
  options.work_limit = 3000;
  options.threads = 1;
  first = must_search(&options, &one);
  CHECK(one.stopped == LUMA_STOPPED_WORK);
  options.threads = 3;
  second = must_search(&options, &other);
  CHECK(one.order_count == other.order_count && one.extra_bytes == other.extra_bytes);
  CHECK(memcmp(one.order, other.order, one.order_count * sizeof one.order[0]) == 0);
  CHECK(memcmp(one.offsets, other.offsets, BUFFERS * sizeof one.offsets[0]) == 0);
  CHECK(memcmp(one.spills, other.spills, one.spill_count * sizeof one.spills[0]) == 0);
  OK(luma_plan_free(first));
  OK(luma_plan_free(second));
}

/* Another order is worth something here. */
static void it_is_better_than_the_given_order(void) {
  luma_plan_options_t options = search_options();
  luma_plan_view_t view = LUMA_PLAN_VIEW_INIT;
  luma_plan_t *plan = NULL;
  uint64_t kept;
  options.level = LUMA_LEVEL_EXACT;
  options.reorder = 0;
  OK(luma_plan_spills(&graph, NULL, 0, &options, &plan));
  OK(luma_plan_view(plan, &view));
  kept = view.extra_bytes;
  OK(luma_plan_free(plan));
  options = search_options();
  options.work_limit = 3000;
  plan = must_search(&options, &view);
  CHECK(view.extra_bytes < kept && view.lower_bound <= view.extra_bytes);
  OK(luma_plan_free(plan));
}

int main(void) {
  make_graph();
  the_callback_stops_it();
  the_clock_stops_it();
  work_is_reproducible();
  it_is_better_than_the_given_order();
  return 0;
}
