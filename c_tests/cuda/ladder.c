/* What a request does before it is refused: it waits for the work that would make it fit and for no other, for
 * a bounded time, lets other threads go on, looks again after every step, and asks the handlers last. */
#include "streams.h"

#define BLOCK (4 * MIB)

enum { STREAMS = 8, OPENS_AFTER_MS = 40 };

/* Long enough for what the tests open meanwhile, on a slow machine too. */
#define WAIT "1"

/* A full pool: on each stream one block that is freed behind a closed gate. */
typedef struct {
  luma_pool_t *pool;
  stream_t streams[STREAMS];
  unsigned char *blocks[STREAMS];
  seen_t seen[STREAMS];
  gate_t gates[STREAMS];
} full_t;

static void fill_up(full_t *full) {
  int at;
  full->pool = pool_of(STREAMS * BLOCK);
  for (at = 0; at < STREAMS; at++) {
    full->streams[at] = new_stream(NON_BLOCKING);
    full->blocks[at] = take(full->pool, BLOCK, full->streams[at]);
    new_seen(&full->seen[at]);
  }
  for (at = 0; at < STREAMS; at++) {
    close_gate(&full->gates[at], full->streams[at]);
    write_block(full->blocks[at], BLOCK, (unsigned)at, full->streams[at]);
    queue_look(&full->seen[at], full->blocks[at], BLOCK, (unsigned)at, full->streams[at]);
    give(full->pool, full->blocks[at], full->streams[at]);
  }
}

/* How many gates are still closed. */
static int closed(const full_t *full) {
  int at, count = 0;
  for (at = 0; at < STREAMS; at++) {
    count += !atomic_load(&full->gates[at].is_open);
  }
  return count;
}

static void end_full(full_t *full) {
  int at;
  for (at = 0; at < STREAMS; at++) {
    finish(&full->gates[at], full->streams[at]);
    CHECK(atomic_load(&full->seen[at].is_done));
  }
  end_pool(full->pool);
  for (at = 0; at < STREAMS; at++) {
    end_seen(&full->seen[at]);
    STREAM(destroy(full->streams[at]));
  }
}

/* Whichever stream ends, the request has its block; all others stay blocked. */
static void one_end_is_enough(int ends) {
  full_t full;
  stream_t other = new_stream(NON_BLOCKING);
  opener_t opener;
  unsigned char *block;
  fill_up(&full);
  open_later(&opener, &full.gates[ends], OPENS_AFTER_MS);
  block = take(full.pool, BLOCK, other);
  CHECK(closed(&full) == STREAMS - 1);
  opened(&opener);
  write_block(block, BLOCK, 99, other);
  must_hold(block, BLOCK, 99, other);
  give(full.pool, block, other);
  end_full(&full);
  STREAM(destroy(other));
}

/* A larger request waits for as many as it needs, one after the other. */
static void several_ends_are_waited_for(void) {
  full_t full;
  stream_t other = new_stream(NON_BLOCKING);
  opener_t openers[2];
  unsigned char *block;
  if (!has_pages()) {
    STREAM(destroy(other));
    return;
  }
  fill_up(&full);
  open_later(&openers[0], &full.gates[2], OPENS_AFTER_MS);
  open_later(&openers[1], &full.gates[3], 2 * OPENS_AFTER_MS);
  block = take(full.pool, 2 * BLOCK, other);
  CHECK(closed(&full) == STREAMS - 2);
  opened(&openers[0]);
  opened(&openers[1]);
  write_block(block, 2 * BLOCK, 98, other);
  must_hold(block, 2 * BLOCK, 98, other);
  give(full.pool, block, other);
  end_full(&full);
  STREAM(destroy(other));
}

/* Where no stream ends, the request is refused, and nothing is lost. */
static void waiting_is_bounded(void) {
  full_t full;
  stream_t other = new_stream(NON_BLOCKING);
  luma_stats_t before, after;
  fill_up(&full);
  before = pool_stats_now(full.pool);
  REFUSED(luma_pool_alloc(full.pool, BLOCK, 0, other), LUMA_ERROR_OUT_OF_MEMORY, "out of memory");
  CHECK(closed(&full) == STREAMS);
  after = pool_stats_now(full.pool);
  CHECK(after.allocated_bytes == before.allocated_bytes && after.live_blocks == before.live_blocks);
  CHECK(after.out_of_memory_count == before.out_of_memory_count + 1);
  end_full(&full);
  STREAM(destroy(other));
}

/* The report of a refusal says what waits for which stream, and names one whose end would have been enough. */
static void the_report_names_a_stream(void) {
  full_t full;
  stream_t other = new_stream(NON_BLOCKING);
  luma_oom_report_t report = LUMA_OOM_REPORT_INIT;
  unsigned char *block;
  int at, named = -1;
  fill_up(&full);
  REFUSED(luma_pool_alloc(full.pool, BLOCK, 0, other), LUMA_ERROR_OUT_OF_MEMORY, "waiting for");
  OK(luma_oom_report(&report));
  CHECK(report.pending_streams == STREAMS && report.pending_bytes == STREAMS * BLOCK);
  CHECK(report.pending[0].bytes == BLOCK && report.pending[0].blocks == 1);
  CHECK(report.waits > 0 && report.wait_ns > 0);
  CHECK(report.action == LUMA_OOM_WAIT_FOR_STREAM && report.action_bytes == BLOCK);
  for (at = 0; at < STREAMS; at++) {
    unsigned long long id = 0;
    STREAM(id(full.streams[at], &id));
    named = id + 1 == report.action_stream ? at : named;
  }
  CHECK(named >= 0);
  finish(&full.gates[named], full.streams[named]);
  block = take(full.pool, BLOCK, other);
  CHECK(closed(&full) == STREAMS - 1);
  give(full.pool, block, other);
  end_full(&full);
  STREAM(destroy(other));
}

/* What is more than the pool may ever have waits for nobody. */
static void what_cannot_fit_is_refused(void) {
  full_t full;
  uint64_t waited;
  fill_up(&full);
  waited = waits();
  REFUSED(luma_pool_alloc(full.pool, (STREAMS + 1) * BLOCK, 0, NULL), LUMA_ERROR_OUT_OF_MEMORY,
          "out of memory");
  CHECK(waits() == waited && closed(&full) == STREAMS);
  end_full(&full);
}

typedef struct {
  context_t context;
  luma_pool_t *pool;
  stream_t stream;
  size_t bytes;
  void *block;
  atomic_int is_done;
  pthread_t thread;
} waiter_t;

static void *wait_for_memory(void *user) {
  waiter_t *waiter = (waiter_t *)user;
  DRIVER(set_current(waiter->context));
  waiter->block = luma_pool_alloc(waiter->pool, waiter->bytes, 0, waiter->stream);
  CHECK(waiter->block != NULL || luma_last_status() == LUMA_ERROR_OUT_OF_MEMORY);
  atomic_store(&waiter->is_done, 1);
  return NULL;
}

static void start_waiting(waiter_t *waiter, luma_pool_t *pool, size_t bytes) {
  waiter->context = current_context();
  waiter->pool = pool;
  waiter->stream = new_stream(NON_BLOCKING);
  waiter->bytes = bytes;
  waiter->block = NULL;
  atomic_store(&waiter->is_done, 0);
  CHECK(pthread_create(&waiter->thread, NULL, wait_for_memory, waiter) == 0);
  sleep_ms(OPENS_AFTER_MS);
}

/* Its request was served. */
static void served(waiter_t *waiter) {
  CHECK(pthread_join(waiter->thread, NULL) == 0);
  CHECK(waiter->block != NULL);
  give(waiter->pool, waiter->block, waiter->stream);
  STREAM(synchronize(waiter->stream));
  STREAM(destroy(waiter->stream));
}

/* While one thread waits, another allocates and frees what there is. */
static void others_go_on(void) {
  full_t full;
  waiter_t waiter;
  stream_t other = new_stream(NON_BLOCKING);
  const size_t small = 256 * KIB;
  unsigned char *room;
  int round;
  fill_up(&full);
  /* Room for the other thread, and too little for the one that waits. */
  finish(&full.gates[0], full.streams[0]);
  room = take(full.pool, BLOCK - small, other);
  start_waiting(&waiter, full.pool, BLOCK);
  for (round = 0; round < 100; round++) {
    give(full.pool, take(full.pool, small, other), other);
    (void)pool_stats_now(full.pool);
  }
  CHECK(!atomic_load(&waiter.is_done) && closed(&full) == STREAMS - 1);
  open_gate(&full.gates[5]);
  served(&waiter);
  CHECK(closed(&full) == STREAMS - 2);
  give(full.pool, room, other);
  end_full(&full);
  STREAM(destroy(other));
}

/* A wait ends when another thread frees what is needed, though no stream that was waited for has ended. */
static void a_free_ends_a_wait(void) {
  full_t full;
  waiter_t waiter;
  stream_t other = new_stream(NON_BLOCKING);
  unsigned char *live;
  fill_up(&full);
  finish(&full.gates[0], full.streams[0]);
  live = take(full.pool, BLOCK, other);
  start_waiting(&waiter, full.pool, BLOCK);
  CHECK(!atomic_load(&waiter.is_done));
  give(full.pool, live, other);
  served(&waiter);
  CHECK(closed(&full) == STREAMS - 1);
  end_full(&full);
  STREAM(destroy(other));
}

static pthread_mutex_t program_s_lock = PTHREAD_MUTEX_INITIALIZER;

static void takes_the_program_s_lock(void *unused) {
  (void)unused;
  CHECK(pthread_mutex_lock(&program_s_lock) == 0);
  CHECK(pthread_mutex_unlock(&program_s_lock) == 0);
}

static void *empties_the_cache(void *user) {
  waiter_t *waiter = (waiter_t *)user;
  DRIVER(set_current(waiter->context));
  (void)luma_pool_empty_cache(waiter->pool);
  return NULL;
}

/* A stream waits for a lock of the program's, whose holder uses the pool while others wait for the stream in
 * it: it must not be kept out. */
static void no_lock_is_held_while_waiting(void) {
  luma_pool_t *pool = pool_of(2 * BLOCK);
  stream_t stream = new_stream(NON_BLOCKING), other = new_stream(NON_BLOCKING);
  unsigned char *small = take(pool, 64 * KIB, other), *block = take(pool, BLOCK, stream);
  waiter_t waiter, tidier;
  int round;
  CHECK(pthread_mutex_lock(&program_s_lock) == 0);
  STREAM(host_function(stream, takes_the_program_s_lock, NULL));
  write_block(block, BLOCK, 1, stream);
  give(pool, block, stream);
  tidier.context = current_context();
  tidier.pool = pool;
  CHECK(pthread_create(&tidier.thread, NULL, empties_the_cache, &tidier) == 0);
  start_waiting(&waiter, pool, BLOCK + MIB);
  for (round = 0; round < 50; round++) {
    give(pool, small, other);
    small = take(pool, 64 * KIB, other);
    (void)pool_stats_now(pool);
  }
  CHECK(!atomic_load(&waiter.is_done));
  CHECK(pthread_mutex_unlock(&program_s_lock) == 0);
  served(&waiter);
  CHECK(pthread_join(tidier.thread, NULL) == 0);
  give(pool, small, other);
  end_pool(pool);
  STREAM(destroy(stream));
  STREAM(destroy(other));
}

/* ---- Handlers ---------------------------------------------------------------------------------------------- */

typedef struct {
  luma_pool_t *pool;
  void *block;
  stream_t stream;
  int calls;
  int closed_gates;
  const full_t *full;
} handler_t;

static int frees_a_block(size_t bytes, void *user) {
  handler_t *handler = (handler_t *)user;
  CHECK(bytes >= BLOCK);
  handler->calls++;
  handler->closed_gates = closed(handler->full);
  REFUSED(luma_pool_alloc(handler->pool, 2 * STREAMS * BLOCK, 0, NULL), LUMA_ERROR_OUT_OF_MEMORY,
          "");
  if (handler->block == NULL) {
    return 0;
  }
  OK(luma_pool_free(handler->pool, handler->block, handler->stream));
  handler->block = NULL;
  return 1;
}

/* They are asked when waiting has not helped, and not before. */
static void handlers_come_last(void) {
  full_t full;
  handler_t handler = {NULL, NULL, NULL, 0, 0, NULL};
  stream_t other = new_stream(NON_BLOCKING);
  opener_t opener;
  unsigned char *block;
  fill_up(&full);
  handler.pool = full.pool;
  handler.full = &full;
  OK(luma_add_oom_handler(frees_a_block, &handler));

  open_later(&opener, &full.gates[0], OPENS_AFTER_MS);
  handler.block = take(full.pool, BLOCK, other);
  opened(&opener);
  CHECK(handler.calls == 0);

  /* No stream ends: after the wait the handler frees a block, which is enough. */
  handler.stream = other;
  block = take(full.pool, BLOCK, other);
  CHECK(handler.calls == 1 && handler.closed_gates == STREAMS - 1);
  CHECK(closed(&full) == STREAMS - 1);

  /* One that frees nothing is asked once. */
  REFUSED(luma_pool_alloc(full.pool, BLOCK, 0, other), LUMA_ERROR_OUT_OF_MEMORY, "out of memory");
  CHECK(handler.calls == 2);
  OK(luma_remove_oom_handler(frees_a_block, &handler));
  give(full.pool, block, other);
  end_full(&full);
  STREAM(destroy(other));
}

/* ---- The driver's own pools ----------------------------------------------------------------------------------- */

static struct {
  int (*default_pool)(void **pool, int device);
  int (*set_attribute)(void *pool, int attribute, void *value);
  int (*alloc)(address_t *address, size_t bytes, stream_t stream);
  int (*free)(address_t address, stream_t stream);
} pools;

#define FIND_POOL(member, name) \
  do { \
    void *found = driver_function(name); \
    memcpy(&pools.member, &found, sizeof found); \
  } while (0)

#define POOLS(call) \
  ((pools.call) == 0 ? (void)0 : check_failed(__FILE__, __LINE__, "the driver failed: " #call))

/* What the driver's pool of freed memory keeps is given to a request that needs it. */
static void the_driver_s_pool_is_trimmed(void) {
  void *pool = NULL;
  uint64_t all = UINT64_MAX, none = 0;
  size_t free_bytes, total, bytes;
  stream_t stream;
  address_t address = 0;
  unsigned char *block;
  if (!has_driver_function("cuMemAllocAsync") || !has_driver_function("cuDeviceGetDefaultMemPool")) {
    puts("SKIPPED: the driver has no pools");
    return;
  }
  FIND_POOL(default_pool, "cuDeviceGetDefaultMemPool");
  FIND_POOL(set_attribute, "cuMemPoolSetAttribute");
  FIND_POOL(alloc, "cuMemAllocAsync");
  FIND_POOL(free, "cuMemFreeAsync");
  if (pools.default_pool(&pool, 0) != 0) {
    puts("SKIPPED: the device has no pools");
    return;
  }
  stream = new_stream(NON_BLOCKING);
  POOLS(set_attribute(pool, POOL_RELEASE_THRESHOLD, &all));
  (void)luma_empty_cache();
  OK(luma_memory_info(&free_bytes, &total));
  bytes = free_bytes / 4 * 3 / (2 * MIB) * (2 * MIB);
  POOLS(alloc(&address, bytes, stream));
  POOLS(free(address, stream));
  STREAM(synchronize(stream));
  block = must_alloc(bytes);
  use(block, bytes, 3);
  OK(luma_free(block));
  (void)luma_empty_cache();
  POOLS(set_attribute(pool, POOL_RELEASE_THRESHOLD, &none));
  STREAM(destroy(stream));
}

int main(void) {
  CHECK(setenv("LUMA_OOM_WAIT", WAIT, 1) == 0);
  start_streams();
  RUN(one_end_is_enough(0));
  RUN(one_end_is_enough(4));
  RUN(one_end_is_enough(STREAMS - 1));
  RUN(several_ends_are_waited_for());
  RUN(what_cannot_fit_is_refused());
  RUN(waiting_is_bounded());
  RUN(the_report_names_a_stream());
  RUN(others_go_on());
  RUN(a_free_ends_a_wait());
  RUN(no_lock_is_held_while_waiting());
  RUN(handlers_come_last());
  RUN(the_driver_s_pool_is_trimmed());
  CHECK(stats_now().live_blocks == 0 && stats_now().reserved_bytes == 0);
  end_streams();
  return 0;
}
