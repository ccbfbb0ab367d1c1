/* Spill planning: a plan, what it holds, its check, and what is refused. */
#include "check.h"

#define LENGTH(array) (sizeof(array) / sizeof((array)[0]))

/* Buffer 0 of 6 bytes makes way for buffer 1 of 8 in a memory of 8, and is used again. */
static const luma_node_t NODES[] = {
    {LUMA_NODE_ALLOC, 0, LUMA_NO_PIPE, 0, 0}, {LUMA_NODE_OPERATION, 0, 7, 0, 10},
    {LUMA_NODE_ALLOC, 1, LUMA_NO_PIPE, 0, 0}, {LUMA_NODE_OPERATION, 0, 7, 0, 20},
    {LUMA_NODE_FREE, 1, LUMA_NO_PIPE, 0, 0},  {LUMA_NODE_OPERATION, 0, 7, 0, 30},
    {LUMA_NODE_FREE, 0, LUMA_NO_PIPE, 0, 0},
};
static const luma_use_t USES[] = {
    {1, 0, LUMA_ACCESS_UNKNOWN}, {3, 1, LUMA_ACCESS_WRITE}, {5, 0, LUMA_ACCESS_READ}};
static const luma_edge_t EDGES[] = {{0, 1}, {1, 2}, {2, 3}, {3, 4}, {4, 5}, {5, 6}};
static const luma_buffer_t BUFFERS[] = {{6, 0, 0}, {8, 0, 0}};
static const luma_memory_t MEMORIES[] = {{"UB", 8, 0, 0}};
static const uint32_t ORDER[] = {0, 1, 2, 3, 4, 5, 6};
/* What the plan must be: OUT (7) right after operation 1, IN (8) right before operation 5. */
static const uint32_t PLANNED[] = {0, 1, 7, 2, 3, 4, 8, 5, 6};

static luma_graph_t small_graph(void) {
  luma_graph_t graph = LUMA_GRAPH_INIT;
  graph.nodes = NODES;
  graph.node_count = LENGTH(NODES);
  graph.uses = USES;
  graph.use_count = LENGTH(USES);
  graph.edges = EDGES;
  graph.edge_count = LENGTH(EDGES);
  graph.buffers = BUFFERS;
  graph.buffer_count = LENGTH(BUFFERS);
  graph.memories = MEMORIES;
  graph.memory_count = LENGTH(MEMORIES);
  return graph;
}

static luma_plan_t *must_plan(const luma_graph_t *graph, const luma_plan_options_t *options) {
  luma_plan_t *plan = NULL;
  OK(luma_plan_spills(graph, ORDER, LENGTH(ORDER), options, &plan));
  CHECK(plan != NULL);
  return plan;
}

static luma_plan_view_t view_of(const luma_plan_t *plan) {
  luma_plan_view_t view = LUMA_PLAN_VIEW_INIT;
  OK(luma_plan_view(plan, &view));
  return view;
}

static void what_a_plan_holds(void) {
  luma_graph_t graph = small_graph();
  luma_plan_t *plan = must_plan(&graph, NULL);
  luma_plan_view_t view = view_of(plan);
  static const luma_edge_t ADDED[] = {{0, 7}, {7, 8}, {1, 7}, {8, 5}, {8, 6}};
  static const luma_edge_t DIRECT[] = {{0, 7}, {1, 7}, {7, 8}, {8, 5}, {8, 6}};
  const luma_edge_t *edges = NULL, *again = NULL;
  size_t count = 0, at;

  CHECK(view.order_count == LENGTH(PLANNED));
  CHECK(memcmp(view.order, PLANNED, sizeof PLANNED) == 0);
  CHECK(view.offset_count == 2 && view.offsets[0] <= 2 && view.offsets[1] == 0);
  CHECK(view.allocation_count == 2);
  for (at = 0; at < 2; at++) {
    CHECK(view.allocations[at].buffer == at && view.allocations[at].memory == 0);
    CHECK(view.allocations[at].offset == view.offsets[at]);
    CHECK(view.allocations[at].size == BUFFERS[at].size);
  }
  CHECK(view.spill_count == 1);
  CHECK(view.spills[0].buffer == 0 && view.spills[0].offset <= 2);
  CHECK(view.spills[0].out_node == 7 && view.spills[0].in_node == 8);
  CHECK(view.added_node_count == 2);
  CHECK(view.added_nodes[0].kind == LUMA_NODE_SPILL_OUT && view.added_nodes[0].buffer == 0);
  CHECK(view.added_nodes[0].pipe == 3 && view.added_nodes[0].cycles == 162);
  CHECK(view.added_nodes[1].kind == LUMA_NODE_SPILL_IN && view.added_nodes[1].buffer == 0);
  CHECK(view.added_nodes[1].pipe == 2 && view.added_nodes[1].cycles == 162);
  CHECK(view.peak_count == 1 && view.peaks[0] == 8);
  CHECK(view.extra_bytes == 12 && view.spill_cycles == 324);
  CHECK(view.lower_bound <= 12 && view.stopped == LUMA_STOPPED_FINISHED);
  CHECK(view.proved == 0 || view.lower_bound == 12);
  /* Operation 1, OUT, 3, IN, 5, one after the other. */
  CHECK(view.makespan == 10 + 162 + 20 + 162 + 30);

  OK(luma_plan_edges(plan, LUMA_EDGES_ALL, &edges, &count));
  CHECK(count == LENGTH(ADDED) && memcmp(edges, ADDED, sizeof ADDED) == 0);
  OK(luma_plan_edges(plan, LUMA_EDGES_ALL, &again, &count));
  CHECK(again == edges && count == LENGTH(ADDED));
  OK(luma_plan_edges(plan, LUMA_EDGES_DIRECT, &edges, &count));
  CHECK(count == LENGTH(DIRECT) && memcmp(edges, DIRECT, sizeof DIRECT) == 0);
  CHECK(view_of(plan).order == view.order);
  OK(luma_plan_free(plan));
}

static void the_other_name_gives_the_same(void) {
  luma_graph_t graph = small_graph();
  luma_plan_t *one = must_plan(&graph, NULL), *other = NULL;
  luma_plan_view_t first = view_of(one), second;
  OK(plan_spills(&graph, NULL, 0, NULL, &other));
  second = view_of(other);
  CHECK(one != other && first.order_count == second.order_count);
  CHECK(memcmp(first.order, second.order, sizeof PLANNED) == 0);
  OK(luma_plan_free(one));
  /* The other one is not touched. */
  CHECK(memcmp(second.order, PLANNED, sizeof PLANNED) == 0);
  OK(luma_plan_free(other));
}

static void costs_are_inputs(void) {
  luma_graph_t graph = small_graph();
  luma_spill_cost_t cost = LUMA_SPILL_COST_INIT;
  luma_plan_t *plan;
  luma_plan_view_t view;
  cost.out_cycles_per_byte = 1;
  cost.out_fixed_latency = 0;
  cost.in_cycles_per_byte = 10;
  cost.in_fixed_latency = 5;
  cost.out_pipe = LUMA_NO_PIPE;
  graph.cost = &cost;
  plan = must_plan(&graph, NULL);
  view = view_of(plan);
  CHECK(view.added_nodes[0].cycles == 6 && view.added_nodes[0].pipe == LUMA_NO_PIPE);
  CHECK(view.added_nodes[1].cycles == 65 && view.spill_cycles == 71);
  OK(luma_plan_free(plan));

  CHECK(luma_spill_cycles(6, 2, 150) == 162);
  CHECK(luma_spill_cycles(UINT64_MAX, 2, 150) == UINT64_MAX);
  CHECK(luma_spill_extra_bytes(6, 1) == 6 && luma_spill_extra_bytes(6, 0) == 12);
  CHECK(luma_spill_extra_bytes(UINT64_MAX, 0) == UINT64_MAX);
}

/* The plan as it is, then with one thing wrong after the other. */
static void plans_are_checked(void) {
  luma_graph_t graph = small_graph();
  luma_plan_t *plan = must_plan(&graph, NULL);
  luma_plan_view_t view = view_of(plan), own = LUMA_PLAN_VIEW_INIT;
  luma_plan_report_t report = LUMA_PLAN_REPORT_INIT;
  uint32_t order[LENGTH(PLANNED)], changed[LENGTH(ORDER)];
  uint64_t offsets[2], peaks[1] = {99};
  luma_spill_t spills[1];

  OK(luma_check_plan(&graph, ORDER, LENGTH(ORDER), &view, &report, peaks));
  CHECK(report.violation == LUMA_VIOLATION_NONE);
  CHECK(report.node == LUMA_NONE && report.buffer == LUMA_NONE && report.position == LUMA_NONE);
  CHECK(report.extra_bytes == 12 && report.spill_cycles == 324 && peaks[0] == 8);
  CHECK(report.makespan == view.makespan);
  OK(luma_check_plan(&graph, NULL, 0, &view, NULL, NULL));

  /* Plans from elsewhere have three arrays. */
  memcpy(order, view.order, sizeof order);
  memcpy(offsets, view.offsets, sizeof offsets);
  memcpy(spills, view.spills, sizeof spills);
  own.order = order;
  own.order_count = LENGTH(order);
  own.offsets = offsets;
  own.offset_count = LENGTH(offsets);
  own.spills = spills;
  own.spill_count = LENGTH(spills);
  OK(luma_check_plan(&graph, ORDER, LENGTH(ORDER), &own, &report, NULL));

  /* SPILL_IN after the use. */
  order[6] = 5;
  order[7] = 8;
  peaks[0] = 99;
  FAILS(luma_check_plan(&graph, NULL, 0, &own, &report, peaks), LUMA_ERROR_CORRUPTED,
        "use_while_spilled");
  CHECK(report.violation == LUMA_VIOLATION_USE_WHILE_SPILLED);
  CHECK(report.node == 5 && report.buffer == 0 && report.position == 6);
  CHECK(report.extra_bytes == 0 && peaks[0] == 99);
  FAILS(luma_check_plan(&graph, NULL, 0, &own, NULL, NULL), LUMA_ERROR_CORRUPTED, "buffer 0");
  memcpy(order, view.order, sizeof order);

  offsets[1] = LUMA_NO_OFFSET;
  FAILS(luma_check_plan(&graph, NULL, 0, &own, &report, NULL), LUMA_ERROR_CORRUPTED, "no offset");
  CHECK(report.violation == LUMA_VIOLATION_MISSING_OFFSET && report.buffer == 1);
  offsets[1] = 1;
  FAILS(luma_check_plan(&graph, NULL, 0, &own, &report, NULL), LUMA_ERROR_CORRUPTED, "UB");
  CHECK(report.violation == LUMA_VIOLATION_OFFSET_RANGE && report.buffer == 1 && report.node == 2);
  memcpy(offsets, view.offsets, sizeof offsets);

  spills[0].out_node = 9;
  FAILS(luma_check_plan(&graph, NULL, 0, &own, &report, NULL), LUMA_ERROR_CORRUPTED, "not 7 and 8");
  CHECK(report.violation == LUMA_VIOLATION_SPILL_NUMBER);
  memcpy(spills, view.spills, sizeof spills);

  memcpy(changed, ORDER, sizeof changed);
  changed[5] = 6;
  changed[6] = 5;
  FAILS(luma_check_plan(&graph, changed, LENGTH(changed), &own, &report, NULL),
        LUMA_ERROR_CORRUPTED, "given order");
  CHECK(report.violation == LUMA_VIOLATION_ORDER_CHANGED && report.node == 5);

  /* What is no check at all writes nothing. */
  report.violation = 77;
  FAILS(luma_check_plan(NULL, NULL, 0, &own, &report, NULL), LUMA_ERROR_INVALID_VALUE, "NULL");
  FAILS(luma_check_plan(&graph, NULL, 0, NULL, &report, NULL), LUMA_ERROR_INVALID_VALUE, "NULL");
  own.order = NULL;
  FAILS(luma_check_plan(&graph, NULL, 0, &own, &report, NULL), LUMA_ERROR_INVALID_VALUE, "order");
  CHECK(report.violation == 77);
  OK(luma_plan_free(plan));
}

typedef struct heard_t {
  int calls;
  uint64_t best;
} heard_t;

static int listen(const luma_progress_t *progress, void *user) {
  heard_t *heard = (heard_t *)user;
  CHECK(progress->struct_size >= sizeof *progress && progress->lower_bound <= progress->best);
  heard->calls++;
  heard->best = progress->best;
  return 0;
}

static void levels(void) {
  static const int32_t LEVELS[] = {LUMA_LEVEL_HEURISTIC, LUMA_LEVEL_EXACT, LUMA_LEVEL_SEARCH};
  luma_graph_t graph = small_graph();
  size_t at;
  for (at = 0; at < LENGTH(LEVELS); at++) {
    luma_plan_options_t options = LUMA_PLAN_OPTIONS_INIT;
    heard_t heard = {0, 0};
    luma_plan_t *plan;
    luma_plan_view_t view;
    options.level = LEVELS[at];
    options.reorder = LEVELS[at] == LUMA_LEVEL_SEARCH;
    options.time_limit_ms = 200;
    options.seed = 5;
    options.threads = 1;
    options.progress = listen;
    options.user = &heard;
    plan = must_plan(&graph, &options);
    view = view_of(plan);
    /* The edges leave one order. */
    CHECK(view.extra_bytes == 12 && view.lower_bound <= 12);
    CHECK(LEVELS[at] != LUMA_LEVEL_EXACT || (view.proved == 1 && view.lower_bound == 12));
    OK(luma_check_plan(&graph, ORDER, LENGTH(ORDER), &view, NULL, NULL));
    OK(luma_plan_free(plan));
  }
}

static void bad_arguments(void) {
  luma_graph_t graph = small_graph();
  luma_plan_options_t options = LUMA_PLAN_OPTIONS_INIT;
  luma_plan_view_t view = LUMA_PLAN_VIEW_INIT;
  luma_plan_t *plan = NULL, *later;
  luma_node_t nodes[LENGTH(NODES)];
  luma_memory_t memory = {NULL, 5, 0, 0};
  luma_use_t use = {1, 0, 9};
  const luma_edge_t *edges = NULL;
  size_t count = 0;

  FAILS(luma_plan_spills(NULL, NULL, 0, NULL, &plan), LUMA_ERROR_INVALID_VALUE, "luma_graph_t is NULL");
  FAILS(luma_plan_spills(&graph, NULL, 0, NULL, NULL), LUMA_ERROR_INVALID_VALUE, "out is NULL");
  FAILS(luma_plan_spills(&graph, NULL, 7, NULL, &plan), LUMA_ERROR_INVALID_VALUE, "order is NULL");
  options.level = 3;
  FAILS(luma_plan_spills(&graph, NULL, 0, &options, &plan), LUMA_ERROR_INVALID_VALUE, "level");
  options.level = 0;
  options.reorder = 2;
  FAILS(luma_plan_spills(&graph, NULL, 0, &options, &plan), LUMA_ERROR_INVALID_VALUE, "reorder");
  options.struct_size = 0;
  FAILS(luma_plan_spills(&graph, NULL, 0, &options, &plan), LUMA_ERROR_INVALID_VALUE,
        "LUMA_PLAN_OPTIONS_INIT");

  graph.struct_size = sizeof graph - 8;
  FAILS(luma_plan_spills(&graph, NULL, 0, NULL, &plan), LUMA_ERROR_INVALID_VALUE, "LUMA_GRAPH_INIT");
  graph = small_graph();
  graph.nodes = NULL;
  FAILS(luma_plan_spills(&graph, NULL, 0, NULL, &plan), LUMA_ERROR_INVALID_VALUE, "nodes is NULL");
  graph.nodes = NODES;
  graph.node_count = SIZE_MAX;
  FAILS(luma_plan_spills(&graph, NULL, 0, NULL, &plan), LUMA_ERROR_INVALID_VALUE, "nodes");
  graph = small_graph();
  graph.uses = &use;
  graph.use_count = 1;
  FAILS(luma_plan_spills(&graph, NULL, 0, NULL, &plan), LUMA_ERROR_INVALID_VALUE, "access");
  graph = small_graph();
  memcpy(nodes, NODES, sizeof nodes);
  nodes[1].kind = LUMA_NODE_SPILL_IN;
  graph.nodes = nodes;
  FAILS(luma_plan_spills(&graph, NULL, 0, NULL, &plan), LUMA_ERROR_INVALID_VALUE, "node 1");

  /* No plan can be, and a memory without a name goes by its index. */
  graph = small_graph();
  graph.memories = &memory;
  FAILS(luma_plan_spills(&graph, NULL, 0, NULL, &plan), LUMA_ERROR_INFEASIBLE, "memory 0");
  CHECK(says("buffer 0") && says("6") && says("5"));
  CHECK(plan == NULL);

  FAILS(luma_plan_view(NULL, &view), LUMA_ERROR_INVALID_VALUE, "plan is NULL");
  FAILS(luma_plan_view((const luma_plan_t *)&graph, &view), LUMA_ERROR_INVALID_POINTER, "not a plan");
  FAILS(luma_plan_free((luma_plan_t *)&graph), LUMA_ERROR_INVALID_POINTER, "not a plan");
  OK(luma_plan_free(NULL));
  graph = small_graph();
  plan = must_plan(&graph, NULL);
  FAILS(luma_plan_view(plan, NULL), LUMA_ERROR_INVALID_VALUE, "NULL");
  FAILS(luma_plan_edges(plan, LUMA_EDGES_ALL, NULL, &count), LUMA_ERROR_INVALID_VALUE, "edges is NULL");
  FAILS(luma_plan_edges(plan, LUMA_EDGES_ALL, &edges, NULL), LUMA_ERROR_INVALID_VALUE,
        "count is NULL");
  FAILS(luma_plan_edges(plan, 2, &edges, &count), LUMA_ERROR_INVALID_VALUE, "edge_set");
  OK(luma_plan_free(plan));
  FAILS(luma_plan_free(plan), LUMA_ERROR_INVALID_POINTER, "freed already");
  FAILS(luma_plan_edges(plan, LUMA_EDGES_ALL, &edges, &count), LUMA_ERROR_INVALID_POINTER,
        "freed already");
  /* A handle never means the plan that came after it. */
  later = must_plan(&graph, NULL);
  FAILS(luma_plan_free(plan), LUMA_ERROR_INVALID_POINTER, "freed already");
  OK(luma_plan_free(later));
}

/* Nothing is a graph, too. */
static void empty_graphs(void) {
  luma_graph_t graph = LUMA_GRAPH_INIT;
  luma_plan_t *plan = NULL;
  luma_plan_view_t view;
  const luma_edge_t *edges = NULL;
  size_t count = 1;
  OK(luma_plan_spills(&graph, NULL, 0, NULL, &plan));
  view = view_of(plan);
  CHECK(view.order_count == 0 && view.spill_count == 0 && view.proved == 1);
  OK(luma_plan_edges(plan, LUMA_EDGES_ALL, &edges, &count));
  CHECK(count == 0);
  OK(luma_check_plan(&graph, NULL, 0, &view, NULL, NULL));
  OK(luma_plan_free(plan));
}

int main(void) {
  what_a_plan_holds();
  the_other_name_gives_the_same();
  costs_are_inputs();
  plans_are_checked();
  levels();
  bad_arguments();
  empty_graphs();
  return 0;
}
