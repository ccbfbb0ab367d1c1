/* Threads plan, look and free at once; with "fork", while the process forks children that plan as
 * well (which sanitizers do not survive among threads). */
#include "check.h"

#include <pthread.h>
#include <sys/wait.h>

enum { THREADS = 4, ROUNDS = 300, CHILDREN = 20, KEPT = 8 };

/* Two buffers that do not fit beside each other, both used at the end. */
static const luma_node_t NODES[] = {
    {LUMA_NODE_ALLOC, 0, LUMA_NO_PIPE, 0, 0}, {LUMA_NODE_OPERATION, 0, 0, 0, 1},
    {LUMA_NODE_ALLOC, 1, LUMA_NO_PIPE, 0, 0}, {LUMA_NODE_OPERATION, 0, 0, 0, 1},
    {LUMA_NODE_OPERATION, 0, 0, 0, 1},        {LUMA_NODE_FREE, 0, LUMA_NO_PIPE, 0, 0},
    {LUMA_NODE_FREE, 1, LUMA_NO_PIPE, 0, 0},
};
static const luma_use_t USES[] = {{1, 0, 0}, {3, 1, 0}, {4, 0, 0}};
static const luma_buffer_t BUFFERS[] = {{3, 0, 0}, {3, 0, 0}};
static const luma_memory_t MEMORY = {"M", 5, 0, 0};
static const uint32_t ORDER[] = {0, 1, 2, 3, 4, 5, 6};

static luma_plan_t *plan_once(void) {
  luma_graph_t graph = LUMA_GRAPH_INIT;
  luma_plan_view_t view = LUMA_PLAN_VIEW_INIT;
  luma_plan_t *plan = NULL;
  const luma_edge_t *edges = NULL;
  size_t count = 0;
  graph.nodes = NODES;
  graph.node_count = 7;
  graph.uses = USES;
  graph.use_count = 3;
  graph.buffers = BUFFERS;
  graph.buffer_count = 2;
  graph.memories = &MEMORY;
  graph.memory_count = 1;
  OK(luma_plan_spills(&graph, ORDER, 7, NULL, &plan));
  OK(luma_plan_view(plan, &view));
  CHECK(view.spill_count == 2 && view.extra_bytes == 12);
  OK(luma_check_plan(&graph, ORDER, 7, &view, NULL, NULL));
  OK(luma_plan_edges(plan, LUMA_EDGES_ALL, &edges, &count));
  CHECK(count > 0);
  return plan;
}

static void *work(void *unused) {
  luma_plan_t *kept[KEPT] = {NULL};
  int round;
  for (round = 0; round < ROUNDS; round++) {
    OK(luma_plan_free(kept[round % KEPT]));
    kept[round % KEPT] = plan_once();
  }
  for (round = 0; round < KEPT; round++) {
    OK(luma_plan_free(kept[round]));
  }
  return unused;
}

int main(int argc, char **argv) {
  const int children = asked_for(argc, argv, "fork") ? CHILDREN : 0;
  pthread_t threads[THREADS];
  luma_plan_t *before = plan_once();
  int at;
  for (at = 0; at < THREADS; at++) {
    CHECK(pthread_create(&threads[at], NULL, work, NULL) == 0);
  }
  for (at = 0; at < children; at++) {
    int status = 0;
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
      alarm(60);
      /* What was planned before is the child's, too. */
      OK(luma_plan_free(before));
      OK(luma_plan_free(plan_once()));
      _exit(0);
    }
    CHECK(waitpid(child, &status, 0) == child);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  }
  for (at = 0; at < THREADS; at++) {
    CHECK(pthread_join(threads[at], NULL) == 0);
  }
  OK(luma_plan_free(before));
  return 0;
}
