/* Allocation while streams are captured: the capture stays as it is and ends in a graph, what it allocates is
 * its own for as long as a graph or an executable of it is there, and nothing is queried, freed or waited
 * for. */
#include "streams.h"

#define BLOCK (4 * MIB)

static const char *const MODE_NAMES[CAPTURE_MODES] = {"global", "thread-local", "relaxed"};

static void must_be_capturing(stream_t stream) {
  int status = NOT_CAPTURING;
  STREAM(is_capturing(stream, &status));
  CHECK(status == CAPTURING);
}

static graph_t must_end(stream_t stream) {
  graph_t graph = NULL;
  must_be_capturing(stream);
  STREAM(end_capture(stream, &graph));
  CHECK(graph != NULL);
  return graph;
}

static exec_t must_instantiate(graph_t graph) {
  exec_t exec = NULL;
  STREAM(instantiate(&exec, graph, 0));
  CHECK(exec != NULL);
  return exec;
}

static void run(exec_t exec) {
  stream_t stream = new_stream(NON_BLOCKING);
  STREAM(launch(exec, stream));
  STREAM(synchronize(stream));
  STREAM(destroy(stream));
}

/* The driver tells luma that a graph is gone when it likes to: all of a pool can be had after a while. */
static void must_come_back(luma_pool_t *pool, size_t bytes, stream_t stream) {
  int attempt;
  for (attempt = 0; attempt < 100; attempt++) {
    void *block = luma_pool_alloc(pool, bytes, 0, stream);
    if (block != NULL) {
      give(pool, block, stream);
      return;
    }
    CHECK(luma_last_status() == LUMA_ERROR_OUT_OF_MEMORY);
    sleep_ms(10);
  }
  check_failed(__FILE__, __LINE__, "memory of a graph that is gone did not come back");
}

/* ---- Three modes, two kinds of streams, both threads, with memory in the cache and without ------------------- */

typedef enum {
  ON_THE_CAPTURED_STREAM,
  ON_THE_DEFAULT_STREAM,
  ON_ANOTHER_STREAM,
  WAYS,
} way_t;

typedef struct {
  context_t context;
  luma_pool_t *pool;
  stream_t captured;
  stream_t other;
  way_t way;
  size_t bytes;
} request_t;

static void *requests(void *user) {
  request_t *request = (request_t *)user;
  stream_t streams[WAYS];
  stream_t stream;
  luma_stats_t stats;
  unsigned char *block;
  streams[ON_THE_CAPTURED_STREAM] = request->captured;
  streams[ON_THE_DEFAULT_STREAM] = NULL;
  streams[ON_ANOTHER_STREAM] = request->other;
  stream = streams[request->way];
  DRIVER(set_current(request->context));
  block = take(request->pool, request->bytes, stream);
  if (request->way == ON_THE_CAPTURED_STREAM) {
    write_block(block, request->bytes, 6, stream);
  }
  give(request->pool, block, stream);
  /* Questions are no harm either, nor is tidying where luma knows of the capture. */
  stats = pool_stats_now(request->pool);
  CHECK(stats.live_blocks == 0);
  if (request->way == ON_THE_CAPTURED_STREAM) {
    (void)luma_pool_empty_cache(request->pool);
  }
  OK(luma_pool_check(request->pool));
  return NULL;
}

static void requests_leave_the_capture(int mode, unsigned flags, int is_elsewhere, int is_cached,
                                       way_t way) {
  luma_pool_t *pool = pool_of(0);
  stream_t captured = new_stream(flags), other = new_stream(NON_BLOCKING);
  request_t request = {current_context(), pool, captured, other, way, 3 * MIB};
  graph_t graph;
  exec_t exec;
  if (is_cached) {
    stream_t stream = new_stream(NON_BLOCKING);
    give(pool, take(pool, 16 * MIB, stream), stream);
    STREAM(synchronize(stream));
    give(pool, take(pool, KIB, other), other);
    STREAM(synchronize(other));
    STREAM(destroy(stream));
  }
  STREAM(begin_capture(captured, mode));
  if (is_elsewhere) {
    on_a_thread(requests, &request);
  } else {
    (void)requests(&request);
  }
  graph = must_end(captured);
  exec = must_instantiate(graph);
  run(exec);
  STREAM(exec_destroy(exec));
  STREAM(graph_destroy(graph));
  STREAM(destroy(captured));
  STREAM(destroy(other));
  STREAM(synchronize_all());
  sleep_ms(1);
  OK(luma_pool_check(pool));
  OK(luma_pool_destroy(pool));
}

/* ---- Memory of a capture ---------------------------------------------------------------------------------------- */

/* A graph that writes a block of its own, and what is made of it. */
typedef struct {
  unsigned char *block;
  graph_t graph;
  graph_t clone;
  exec_t exec;
  exec_t clone_exec;
} made_t;

static made_t make(luma_pool_t *pool, int mode, unsigned value) {
  made_t made;
  stream_t stream = new_stream(NON_BLOCKING);
  STREAM(begin_capture(stream, mode));
  made.block = take(pool, BLOCK, stream);
  write_block(made.block, BLOCK, value, stream);
  give(pool, made.block, stream);
  made.graph = must_end(stream);
  made.exec = must_instantiate(made.graph);
  STREAM(clone(&made.clone, made.graph));
  made.clone_exec = must_instantiate(made.clone);
  /* The graphs outlive the stream that they were captured from. */
  STREAM(destroy(stream));
  return made;
}

/* Destroys one of the four; whichever executables are left run before that. */
static void destroy_one(made_t *made, int which) {
  if (made->exec != NULL) {
    run(made->exec);
  }
  if (made->clone_exec != NULL) {
    run(made->clone_exec);
  }
  switch (which) {
  case 0:
    STREAM(graph_destroy(made->graph));
    made->graph = NULL;
    break;
  case 1:
    STREAM(graph_destroy(made->clone));
    made->clone = NULL;
    break;
  case 2:
    STREAM(exec_destroy(made->exec));
    made->exec = NULL;
    break;
  default:
    STREAM(exec_destroy(made->clone_exec));
    made->clone_exec = NULL;
    break;
  }
}

/* All the memory that others can have, block by block; none of it is a graph's. Gives how many. */
static size_t take_the_rest(luma_pool_t *pool, unsigned char **blocks, size_t most, stream_t stream,
                            const made_t *made, size_t count) {
  size_t taken = 0, at;
  while (taken < most) {
    void *block = luma_pool_alloc(pool, BLOCK, 0, stream);
    if (block == NULL) {
      CHECK(luma_last_status() == LUMA_ERROR_OUT_OF_MEMORY);
      break;
    }
    for (at = 0; at < count; at++) {
      CHECK(!overlap(block, BLOCK, made[at].block, BLOCK));
    }
    write_block(block, BLOCK, 100 + (unsigned)taken, stream);
    blocks[taken++] = (unsigned char *)block;
  }
  return taken;
}

static void memory_is_the_graphs(int mode, const int order[4], int is_exhaustive) {
  enum { BLOCKS = 6, GRAPHS = 2 };
  luma_pool_t *pool = pool_of(BLOCKS * BLOCK);
  stream_t stream = new_stream(NON_BLOCKING);
  unsigned char *others[BLOCKS];
  made_t made[GRAPHS];
  size_t count, at;
  int step;
  give(pool, take(pool, BLOCK, stream), stream);
  STREAM(synchronize(stream));
  for (at = 0; at < GRAPHS; at++) {
    made[at] = make(pool, mode, 7 + (unsigned)at);
  }
  /* Both may run at once, so they share nothing. */
  CHECK(!overlap(made[0].block, BLOCK, made[1].block, BLOCK));
  /* To the end of the memory, or nearly, where no request is refused, which takes time. */
  count = take_the_rest(pool, others, is_exhaustive ? BLOCKS : BLOCKS - GRAPHS, stream, made, GRAPHS);
  CHECK(count <= BLOCKS - GRAPHS && count >= 1);
  for (step = 0; step < 4; step++) {
    for (at = 0; at < GRAPHS; at++) {
      destroy_one(&made[at], order[(step + (int)at) % 4]);
    }
  }
  for (at = 0; at < count; at++) {
    must_hold(others[at], BLOCK, 100 + (unsigned)at, stream);
    give(pool, others[at], stream);
  }
  must_come_back(pool, BLOCKS * BLOCK, stream);
  end_pool(pool);
  STREAM(destroy(stream));
}

/* All orders of four, or some of them. */
static void in_every_order(int mode, int are_all) {
  int a, b, c;
  for (a = 0; a < 4; a++) {
    for (b = 0; b < 4; b++) {
      for (c = 0; c < 4; c++) {
        int order[4] = {a, b, c, 6 - a - b - c};
        if (a != b && a != c && b != c && (are_all || c == (a + 1) % 4)) {
          memory_is_the_graphs(mode, order, a == 0 && b == 2);
        }
      }
    }
  }
}

/* A block that the capture leaves live is its owner's after the graph is gone, too. */
static void a_block_outlives_its_graph(int mode) {
  luma_pool_t *pool = pool_of(2 * BLOCK);
  stream_t stream = new_stream(NON_BLOCKING);
  unsigned char *block, *other;
  graph_t graph;
  exec_t exec;
  STREAM(begin_capture(stream, mode));
  block = take(pool, BLOCK, stream);
  write_block(block, BLOCK, 5, stream);
  graph = must_end(stream);
  exec = must_instantiate(graph);
  run(exec);
  must_hold(block, BLOCK, 5, stream);
  STREAM(exec_destroy(exec));
  STREAM(graph_destroy(graph));
  other = take(pool, BLOCK, stream);
  CHECK(!overlap(block, BLOCK, other, BLOCK));
  write_block(other, BLOCK, 6, stream);
  must_hold(block, BLOCK, 5, stream);
  give(pool, block, stream);
  give(pool, other, stream);
  must_come_back(pool, 2 * BLOCK, stream);
  end_pool(pool);
  STREAM(destroy(stream));
}

/* A block of before that is freed in the capture is still the graph's to work on. */
static void a_block_of_before_is_freed_inside(int mode) {
  luma_pool_t *pool = pool_of(3 * BLOCK);
  stream_t stream = new_stream(NON_BLOCKING), second = new_stream(NON_BLOCKING);
  unsigned char *block = take(pool, BLOCK, stream), *others[3];
  size_t count = 0, at;
  graph_t graph;
  exec_t exec;
  write_block(block, BLOCK, 1, stream);
  STREAM(synchronize(stream));
  STREAM(begin_capture(stream, mode));
  write_block(block, BLOCK, 2, stream);
  give(pool, block, stream);
  graph = must_end(stream);
  exec = must_instantiate(graph);
  while (count < 3) {
    void *other = luma_pool_alloc(pool, BLOCK, 0, second);
    if (other == NULL) {
      break;
    }
    CHECK(!overlap(block, BLOCK, other, BLOCK));
    write_block(other, BLOCK, 50 + (unsigned)count, second);
    others[count++] = (unsigned char *)other;
  }
  CHECK(count >= 1);
  run(exec);
  for (at = 0; at < count; at++) {
    must_hold(others[at], BLOCK, 50 + (unsigned)at, second);
    give(pool, others[at], second);
  }
  STREAM(exec_destroy(exec));
  STREAM(graph_destroy(graph));
  must_come_back(pool, 3 * BLOCK, second);
  end_pool(pool);
  STREAM(destroy(stream));
  STREAM(destroy(second));
}

/* A capture that comes to nothing keeps no memory. */
static void a_broken_capture_keeps_nothing(int mode) {
  luma_pool_t *pool = pool_of(2 * BLOCK);
  stream_t stream = new_stream(NON_BLOCKING);
  graph_t graph = NULL;
  STREAM(begin_capture(stream, mode));
  give(pool, take(pool, BLOCK, stream), stream);
  /* What is forbidden under any capture. */
  CHECK(st.synchronize(stream) != 0);
  CHECK(st.end_capture(stream, &graph) != 0 && graph == NULL);
  must_come_back(pool, 2 * BLOCK, stream);
  end_pool(pool);
  STREAM(destroy(stream));
}

/* A stream that joins a capture by an event is part of it. */
static void a_stream_joins(int mode) {
  luma_pool_t *pool = pool_of(4 * BLOCK);
  stream_t stream = new_stream(NON_BLOCKING), joined = new_stream(NON_BLOCKING);
  event_t fork = new_event(), join = new_event();
  unsigned char *first, *second, *other;
  graph_t graph;
  exec_t exec;
  give(pool, take(pool, KIB, joined), joined);
  STREAM(synchronize(joined));
  STREAM(begin_capture(stream, mode));
  first = take(pool, BLOCK, stream);
  write_block(first, BLOCK, 1, stream);
  STREAM(event_record(fork, stream));
  STREAM(wait_event(joined, fork, 0));
  give(pool, first, stream);
  /* Not ordered after what the first stream does from here on. */
  second = take(pool, BLOCK, joined);
  write_block(second, BLOCK, 2, joined);
  give(pool, second, joined);
  STREAM(event_record(join, joined));
  STREAM(wait_event(stream, join, 0));
  graph = must_end(stream);
  exec = must_instantiate(graph);
  other = take(pool, BLOCK, stream);
  CHECK(!overlap(other, BLOCK, first, BLOCK) && !overlap(other, BLOCK, second, BLOCK));
  write_block(other, BLOCK, 3, stream);
  run(exec);
  must_hold(other, BLOCK, 3, stream);
  give(pool, other, stream);
  STREAM(exec_destroy(exec));
  STREAM(graph_destroy(graph));
  must_come_back(pool, 4 * BLOCK, stream);
  end_pool(pool);
  STREAM(event_destroy(fork));
  STREAM(event_destroy(join));
  STREAM(destroy(stream));
  STREAM(destroy(joined));
}

/* ---- What a capture forbids ---------------------------------------------------------------------------------------- */

/* Out of memory in a capture: nothing is given back, asked or waited for; after it, all is as before. */
static void running_out_is_clean(int mode) {
  luma_pool_t *pool = pool_of(4 * BLOCK);
  stream_t stream = new_stream(NON_BLOCKING), other = new_stream(NON_BLOCKING);
  unsigned char *live = take(pool, BLOCK, NULL);
  uint64_t frees, asked, waited;
  luma_stats_t before, after;
  graph_t graph;
  give(pool, take(pool, BLOCK, other), other);
  give(pool, take(pool, 2 * BLOCK, stream), stream);
  STREAM(synchronize_all());
  before = pool_stats_now(pool);
  frees = driver_frees();
  asked = queries();
  waited = waits();
  STREAM(begin_capture(stream, mode));
  REFUSED(luma_pool_alloc(pool, 4 * BLOCK, 0, stream), LUMA_ERROR_OUT_OF_MEMORY, "out of memory");
  CHECK(driver_frees() == frees && queries() == asked && waits() == waited);
  must_be_capturing(stream);
  graph = must_end(stream);
  after = pool_stats_now(pool);
  CHECK(after.reserved_bytes == before.reserved_bytes);
  CHECK(after.allocated_bytes == before.allocated_bytes && after.live_blocks == before.live_blocks);
  STREAM(graph_destroy(graph));
  give(pool, live, NULL);
  must_come_back(pool, 4 * BLOCK, stream);
  end_pool(pool);
  STREAM(destroy(stream));
  STREAM(destroy(other));
}

typedef struct {
  context_t context;
  atomic_int is_over;
  int count;
} busy_t;

static void *works_on(void *user) {
  busy_t *busy = (busy_t *)user;
  int at;
  DRIVER(set_current(busy->context));
  for (at = 0; at < 40; at++) {
    /* Every other one is more than there ever was. */
    size_t bytes = at % 2 == 0 ? 100 * KIB : (size_t)(at + 1) * MIB;
    unsigned char *block = must_alloc(bytes);
    OK(luma_free(block));
    if (at % 10 == 9) {
      (void)luma_empty_cache();
    }
    busy->count++;
  }
  atomic_store(&busy->is_over, 1);
  return NULL;
}

/* Another thread goes on with the default pool during a capture that forbids it the driver's unsafe calls. */
static void other_threads_go_on(int mode) {
  stream_t stream = new_stream(NON_BLOCKING);
  busy_t busy = {current_context(), 0, 0};
  pthread_t thread;
  graph_t graph;
  unsigned char *block;
  int attempt;
  STREAM(begin_capture(stream, mode));
  block = must_alloc_async(BLOCK, stream);
  CHECK(pthread_create(&thread, NULL, works_on, &busy) == 0);
  while (!atomic_load(&busy.is_over)) {
    write_block(block, BLOCK, 1, stream);
    sleep_ms(2);
  }
  CHECK(pthread_join(thread, NULL) == 0);
  CHECK(busy.count == 40);
  graph = must_end(stream);
  STREAM(graph_destroy(graph));
  OK(luma_free_async(block, stream));
  must_come_back(luma_default_pool(0), BLOCK, stream);
  STREAM(synchronize_all());
  for (attempt = 0; attempt < 100 && stats_now().reserved_bytes > 0; attempt++) {
    (void)luma_empty_cache();
    sleep_ms(10);
  }
  CHECK(stats_now().live_blocks == 0 && stats_now().reserved_bytes == 0);
  STREAM(destroy(stream));
}

int main(void) {
  int mode, is_elsewhere, is_cached, way;
  unsigned flags;
  wait_shortly();
  start_streams();
  for (mode = 0; mode < CAPTURE_MODES; mode++) {
    (void)fprintf(stderr, "mode %s\n", MODE_NAMES[mode]);
    for (flags = BLOCKING; flags <= NON_BLOCKING; flags++) {
      for (is_elsewhere = 0; is_elsewhere < 2; is_elsewhere++) {
        for (is_cached = 0; is_cached < 2; is_cached++) {
          for (way = 0; way < WAYS; way++) {
            RUN(requests_leave_the_capture(mode, flags, is_elsewhere, is_cached, (way_t)way));
          }
        }
      }
    }
    RUN(in_every_order(mode, mode == CAPTURE_GLOBAL));
    RUN(a_block_outlives_its_graph(mode));
    RUN(a_block_of_before_is_freed_inside(mode));
    RUN(a_broken_capture_keeps_nothing(mode));
    RUN(a_stream_joins(mode));
    RUN(running_out_is_clean(mode));
    RUN(other_threads_go_on(mode));
  }
  end_streams();
  CHECK(fakecuda_live(FAKECUDA_LIVE_GRAPHS) == 0);
  return 0;
}
