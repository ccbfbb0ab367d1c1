/* Plan the spills of a small attention kernel, and print the plan.
 *
 * One tile of queries meets every tile of keys and values: scores = Q * K, weights = exp(scores),
 * output += weights * V. Q and the output live throughout; K and V come in once and are used by
 * every head, though the memory has no room for all of them. Nothing here needs a device. */
#include <luma.h>

#include <inttypes.h>
#include <stdio.h>

enum { TILES = 4, HEADS = 3, L1 = 0, UB = 1, COPY_PIPE = 2, CUBE = 10, VECTOR = 11 };
enum { MAX_NODES = 400, MAX_USES = 400, MAX_BUFFERS = 100 };

static luma_node_t nodes[MAX_NODES];
static luma_use_t uses[MAX_USES];
static luma_buffer_t buffers[MAX_BUFFERS];
static const char *names[MAX_BUFFERS];
static size_t node_count, use_count, buffer_count;

static uint32_t add_node(int32_t kind, uint32_t buffer, uint32_t pipe, uint64_t cycles) {
    luma_node_t node = {0, 0, 0, 0, 0};
    node.kind = kind;
    node.buffer = buffer;
    node.pipe = pipe;
    node.cycles = cycles;
    nodes[node_count] = node;
    return (uint32_t)node_count++;
}

/* A buffer comes into being here. */
static uint32_t alloc_buffer(const char *name, uint32_t memory, uint64_t size) {
    luma_buffer_t buffer = {0, 0, 0};
    buffer.size = size;
    buffer.memory = memory;
    buffers[buffer_count] = buffer;
    names[buffer_count] = name;
    add_node(LUMA_NODE_ALLOC, (uint32_t)buffer_count, LUMA_NO_PIPE, 0);
    return (uint32_t)buffer_count++;
}

static void free_buffer(uint32_t buffer) {
    add_node(LUMA_NODE_FREE, buffer, LUMA_NO_PIPE, 0);
}

static void add_use(uint32_t node, uint32_t buffer, int32_t access) {
    luma_use_t use = {0, 0, 0};
    use.node = node;
    use.buffer = buffer;
    use.access = access;
    uses[use_count++] = use;
}

/* A buffer that is copied in from outside: it need not be written back when it is spilled. */
static uint32_t copied_in(const char *name, uint64_t size) {
    const uint32_t buffer = alloc_buffer(name, L1, size);
    add_use(add_node(LUMA_NODE_COPY_IN, 0, COPY_PIPE, 2 * size + 150), buffer, LUMA_ACCESS_WRITE);
    return buffer;
}

/* target = one * other, or target += one * other. */
static void multiply(uint32_t target, int32_t access, uint32_t one, uint32_t other) {
    const uint32_t node = add_node(LUMA_NODE_OPERATION, 0, CUBE, 400);
    add_use(node, one, LUMA_ACCESS_READ);
    add_use(node, other, LUMA_ACCESS_READ);
    add_use(node, target, access);
}

static void build(void) {
    uint32_t keys[TILES], values[TILES];
    int head, tile;
    for (head = 0; head < HEADS; head++) {
        const uint32_t query = copied_in("Q", 256);
        const uint32_t output = alloc_buffer("output", UB, 256);
        for (tile = 0; tile < TILES; tile++) {
            uint32_t scores, weights, node;
            if (head == 0) {
                keys[tile] = copied_in("K", 256);
                values[tile] = copied_in("V", 256);
            }
            scores = alloc_buffer("scores", UB, 512);
            multiply(scores, LUMA_ACCESS_WRITE, query, keys[tile]);
            weights = alloc_buffer("weights", UB, 256);
            node = add_node(LUMA_NODE_OPERATION, 0, VECTOR, 200);
            add_use(node, scores, LUMA_ACCESS_READ);
            add_use(node, weights, LUMA_ACCESS_WRITE);
            free_buffer(scores);
            multiply(output, LUMA_ACCESS_READ_WRITE, weights, values[tile]);
            free_buffer(weights);
        }
        free_buffer(query);
        free_buffer(output);
    }
    for (tile = 0; tile < TILES; tile++) {
        free_buffer(keys[tile]);
        free_buffer(values[tile]);
    }
}

static void print_plan(const luma_graph_t *graph, const char *title, const luma_plan_view_t *plan) {
    uint64_t places[MAX_BUFFERS];
    size_t at;
    printf("%s: %zu spills move %" PRIu64 " bytes (no plan of this order moves fewer than %" PRIu64
           "%s), %" PRIu64 " cycles in all\n",
           title, plan->spill_count, plan->extra_bytes, plan->lower_bound,
           plan->proved ? ": proved the least" : "", plan->makespan);
    for (at = 0; at < plan->peak_count; at++) {
        printf("  %-2s holds up to %" PRIu64 " of %" PRIu64 " bytes\n", graph->memories[at].name,
               plan->peaks[at], graph->memories[at].capacity);
    }
    for (at = 0; at < plan->offset_count; at++) {
        places[at] = plan->offsets[at];
    }
    for (at = 0; at < plan->spill_count; at++) {
        const luma_spill_t *spill = &plan->spills[at];
        printf("  node %3" PRIu32 ": %s leaves offset %4" PRIu64 "; node %3" PRIu32
               ": it comes back to %4" PRIu64 "\n",
               spill->out_node, names[spill->buffer], places[spill->buffer], spill->in_node,
               spill->offset);
        places[spill->buffer] = spill->offset;
    }
}

static int make_plan(const luma_graph_t *graph, const uint32_t *order, int32_t level,
                     const char *title) {
    luma_plan_options_t options = LUMA_PLAN_OPTIONS_INIT;
    luma_plan_view_t view = LUMA_PLAN_VIEW_INIT;
    luma_plan_report_t report = LUMA_PLAN_REPORT_INIT;
    luma_plan_t *plan = NULL;
    luma_status_t status;

    options.level = level;
    options.time_limit_ms = 1000;
    if (luma_plan_spills(graph, order, node_count, &options, &plan) != LUMA_SUCCESS ||
        luma_plan_view(plan, &view) != LUMA_SUCCESS) {
        fprintf(stderr, "%s: %s\n", title, luma_last_error());
        luma_plan_free(plan);
        return 1;
    }
    print_plan(graph, title, &view);

    /* The checker shares no code with the planner. */
    status = luma_check_plan(graph, order, node_count, &view, &report, NULL);
    if (status == LUMA_SUCCESS) {
        printf("  checked: valid, %" PRIu64 " bytes\n\n", report.extra_bytes);
    } else {
        fprintf(stderr, "not valid: %s\n", luma_last_error());
    }
    luma_plan_free(plan);
    return status == LUMA_SUCCESS ? 0 : 1;
}

int main(void) {
    static uint32_t order[MAX_NODES];
    luma_memory_t memories[2] = {{"L1", 1536, 0, 0}, {"UB", 1024, 0, 0}};
    luma_graph_t graph = LUMA_GRAPH_INIT;
    size_t at;

    build();
    graph.nodes = nodes;
    graph.node_count = node_count;
    graph.uses = uses;
    graph.use_count = use_count;
    graph.buffers = buffers;
    graph.buffer_count = buffer_count;
    graph.memories = memories;
    graph.memory_count = 2;
    for (at = 0; at < node_count; at++) {
        order[at] = (uint32_t)at;
    }
    printf("%zu nodes, %zu buffers\n\n", node_count, buffer_count);
    if (make_plan(&graph, order, LUMA_LEVEL_HEURISTIC, "heuristic") != 0 ||
        make_plan(&graph, order, LUMA_LEVEL_EXACT, "exact") != 0) {
        return 1;
    }

    /* What cannot be planned is told. */
    memories[UB].capacity = 700;
    {
        luma_plan_t *plan = NULL;
        if (luma_plan_spills(&graph, NULL, 0, NULL, &plan) == LUMA_SUCCESS) {
            fprintf(stderr, "768 bytes were planned into 700\n");
            luma_plan_free(plan);
            return 1;
        }
        printf("with a UB of 700 bytes: %s: %s\n", luma_status_string((int)luma_last_status()),
               luma_last_error());
    }
    return 0;
}
