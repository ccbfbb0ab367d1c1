/* Streams, events and captures of the driver as these programs see them beside luma, and queued work that
 * writes and checks blocks. No kernels are needed: sets, copies and host functions are work of a stream on
 * any driver. */
#ifndef LUMA_TESTS_STREAMS_H
#define LUMA_TESTS_STREAMS_H

#include "driver.h"

#include <fakecuda.h>

#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

#ifndef LUMA_HAS_STREAMS
void *luma_alloc_async(size_t bytes, luma_stream_t stream);
luma_status_t luma_free_async(void *ptr, luma_stream_t stream);
luma_status_t luma_record_stream(void *ptr, luma_stream_t stream);
luma_status_t luma_release_stream(luma_stream_t stream);
#endif

typedef void *stream_t;
typedef void *event_t;
typedef void *graph_t;
typedef void *exec_t;

/* Values of the driver's header. */
enum { BLOCKING = 0, NON_BLOCKING = 1 };
enum { CAPTURE_GLOBAL, CAPTURE_THREAD_LOCAL, CAPTURE_RELAXED, CAPTURE_MODES };
enum { NOT_CAPTURING, CAPTURING, CAPTURE_BROKEN };
enum { EVENT_WITHOUT_TIMING = 2, NOT_READY = 600, POOL_RELEASE_THRESHOLD = 4 };
#define LEGACY_STREAM ((stream_t)(uintptr_t)1)
#define PER_THREAD_STREAM ((stream_t)(uintptr_t)2)

/* How long a request may wait in these programs before it is refused, as LUMA_OOM_WAIT has it. */
#define SHORT_WAIT "0.3"

/* A program that takes longer hangs. */
enum { PROGRAM_SECONDS = 100 };

static struct {
  int (*create)(stream_t *stream, unsigned flags);
  int (*destroy)(stream_t stream);
  int (*synchronize)(stream_t stream);
  int (*query)(stream_t stream);
  int (*id)(stream_t stream, unsigned long long *id);
  int (*wait_event)(stream_t stream, event_t event, unsigned flags);
  int (*event_create)(event_t *event, unsigned flags);
  int (*event_destroy)(event_t event);
  int (*event_record)(event_t event, stream_t stream);
  int (*event_synchronize)(event_t event);
  int (*synchronize_all)(void);
  int (*host_function)(stream_t stream, void (*function)(void *), void *user);
  int (*set)(address_t address, unsigned value, size_t count, stream_t stream);
  int (*to_host)(void *host, address_t address, size_t bytes, stream_t stream);
  int (*copy)(address_t to, address_t from, size_t bytes, stream_t stream);
  int (*host_alloc)(void **block, size_t bytes, unsigned flags);
  int (*host_free)(void *block);
  int (*begin_capture)(stream_t stream, int mode);
  int (*end_capture)(stream_t stream, graph_t *graph);
  int (*is_capturing)(stream_t stream, int *status);
  int (*instantiate)(exec_t *exec, graph_t graph, unsigned long long flags);
  int (*launch)(exec_t exec, stream_t stream);
  int (*clone)(graph_t *clone, graph_t graph);
  int (*graph_destroy)(graph_t graph);
  int (*exec_destroy)(exec_t exec);
} st;

#define FIND_STREAM(member, name) \
  do { \
    void *found = driver_function(name); \
    memcpy(&st.member, &found, sizeof found); \
  } while (0)

/* A program that makes calls fail defines what it makes of its own. */
#ifndef STREAM
#define STREAM(call) \
  ((st.call) == 0 ? (void)0 : check_failed(__FILE__, __LINE__, "the driver failed: " #call))
#endif

static inline void find_stream_functions(void) {
  (void)alarm(PROGRAM_SECONDS);
  start_driver();
  FIND_STREAM(create, "cuStreamCreate");
  FIND_STREAM(destroy, "cuStreamDestroy_v2");
  FIND_STREAM(synchronize, "cuStreamSynchronize");
  FIND_STREAM(query, "cuStreamQuery");
  FIND_STREAM(id, "cuStreamGetId");
  FIND_STREAM(wait_event, "cuStreamWaitEvent");
  FIND_STREAM(event_create, "cuEventCreate");
  FIND_STREAM(event_destroy, "cuEventDestroy_v2");
  FIND_STREAM(event_record, "cuEventRecord");
  FIND_STREAM(event_synchronize, "cuEventSynchronize");
  FIND_STREAM(synchronize_all, "cuCtxSynchronize");
  FIND_STREAM(host_function, "cuLaunchHostFunc");
  FIND_STREAM(set, "cuMemsetD32Async");
  FIND_STREAM(to_host, "cuMemcpyDtoHAsync_v2");
  FIND_STREAM(copy, "cuMemcpyDtoDAsync_v2");
  FIND_STREAM(host_alloc, "cuMemHostAlloc");
  FIND_STREAM(host_free, "cuMemFreeHost");
  FIND_STREAM(begin_capture, "cuStreamBeginCapture_v2");
  FIND_STREAM(end_capture, "cuStreamEndCapture");
  FIND_STREAM(is_capturing, "cuStreamIsCapturing");
  FIND_STREAM(instantiate, "cuGraphInstantiateWithFlags");
  FIND_STREAM(launch, "cuGraphLaunch");
  FIND_STREAM(clone, "cuGraphClone");
  FIND_STREAM(graph_destroy, "cuGraphDestroy");
  FIND_STREAM(exec_destroy, "cuGraphExecDestroy");
}

/* Before the first use of luma: requests that wait are refused soon. */
static inline void wait_shortly(void) { CHECK(setenv("LUMA_OOM_WAIT", SHORT_WAIT, 1) == 0); }

/* Freed blocks are kept from reuse for a while where every call is checked: then no address is promised. */
static inline int reuses_at_once(void) { return getenv("LUMA_DEBUG") == NULL; }

/* Without pages each block of these sizes is a segment of its own, and two of them become one only when the
 * driver took them back, which it does not while any stream is busy. */
static inline int has_pages(void) { return getenv("FAKECUDA_NO_VMM") == NULL; }

static inline void sleep_ms(long milliseconds) {
  struct timespec time;
  time.tv_sec = milliseconds / 1000;
  time.tv_nsec = milliseconds % 1000 * 1000000;
  (void)nanosleep(&time, NULL);
}

static inline stream_t new_stream(unsigned flags) {
  stream_t stream = NULL;
  STREAM(create(&stream, flags));
  return stream;
}

static inline event_t new_event(void) {
  event_t event = NULL;
  STREAM(event_create(&event, EVENT_WITHOUT_TIMING));
  return event;
}

static inline address_t address_of(const void *block) { return (address_t)(uintptr_t)block; }

static inline int overlap(const void *one, size_t bytes, const void *other, size_t other_bytes) {
  return address_of(one) < address_of(other) + other_bytes &&
         address_of(other) < address_of(one) + bytes;
}

/* Says which part of the program runs, which is of interest when it fails. */
#define RUN(call) (fputs(#call "\n", stderr), (call))

/* ---- A host function that keeps its stream busy until the gate opens ------------------------------------ */

typedef struct {
  atomic_int is_open;
} gate_t;

static inline void wait_at_gate(void *user) {
  gate_t *gate = (gate_t *)user;
  while (!atomic_load(&gate->is_open)) {
    sleep_ms(1);
  }
}

/* What is queued on the stream from now on waits. The gate must outlive its opening and the stream's work. */
static inline void close_gate(gate_t *gate, stream_t stream) {
  atomic_store(&gate->is_open, 0);
  STREAM(host_function(stream, wait_at_gate, gate));
}

static inline void open_gate(gate_t *gate) { atomic_store(&gate->is_open, 1); }

/* Opens it and waits for what was behind it. */
static inline void finish(gate_t *gate, stream_t stream) {
  open_gate(gate);
  STREAM(synchronize(stream));
}

typedef struct {
  gate_t *gate;
  long milliseconds;
  pthread_t thread;
} opener_t;

static inline void *open_in_time(void *user) {
  opener_t *opener = (opener_t *)user;
  sleep_ms(opener->milliseconds);
  open_gate(opener->gate);
  return NULL;
}

/* Opens a gate from another thread, a while after this returns. */
static inline void open_later(opener_t *opener, gate_t *gate, long milliseconds) {
  opener->gate = gate;
  opener->milliseconds = milliseconds;
  CHECK(pthread_create(&opener->thread, NULL, open_in_time, opener) == 0);
}

static inline void opened(opener_t *opener) { CHECK(pthread_join(opener->thread, NULL) == 0); }

static inline void on_a_thread(void *(*body)(void *), void *user) {
  pthread_t thread;
  CHECK(pthread_create(&thread, NULL, body, user) == 0);
  CHECK(pthread_join(thread, NULL) == 0);
}

/* ---- Queued work that writes blocks and checks them ------------------------------------------------------ */

/* The ends of a block, which a check looks at, and where they are copied to. */
enum { SEEN_WORDS = 1024 };

typedef struct {
  unsigned *words;
  size_t count;
  unsigned value;
  atomic_int is_queued;
  atomic_int is_done;
} seen_t;

static inline void look(void *user) {
  seen_t *seen = (seen_t *)user;
  size_t at;
  /* Pairs with the store in `queue_look`: the driver's own ordering is not seen by detectors of data races. */
  (void)atomic_load(&seen->is_queued);
  for (at = 0; at < seen->count; at++) {
    if (seen->words[at] != seen->value) {
      fprintf(stderr, "a block holds %08x where its owner wrote %08x\n", seen->words[at],
              seen->value);
      check_failed(__FILE__, __LINE__, "a block changed under its owner");
    }
  }
  atomic_store(&seen->is_done, 1);
}

static inline void write_block(const void *block, size_t bytes, unsigned value, stream_t stream) {
  STREAM(set(address_of(block), value, bytes / 4, stream));
}

/* Queues a look at both ends of a block. `seen` holds room for it: see `new_seen`. */
static inline void queue_look(seen_t *seen, const void *block, size_t bytes, unsigned value,
                              stream_t stream) {
  size_t words = bytes / 4, half = SEEN_WORDS / 2;
  atomic_store(&seen->is_done, 0);
  seen->value = value;
  if (words <= SEEN_WORDS) {
    seen->count = words;
    STREAM(to_host(seen->words, address_of(block), 4 * words, stream));
  } else {
    seen->count = SEEN_WORDS;
    STREAM(to_host(seen->words, address_of(block), 4 * half, stream));
    STREAM(to_host(seen->words + half, address_of(block) + 4 * (words - half), 4 * half, stream));
  }
  atomic_store(&seen->is_queued, 1);
  STREAM(host_function(stream, look, seen));
}

static inline void new_seen(seen_t *seen) {
  void *words = NULL;
  STREAM(host_alloc(&words, 4 * SEEN_WORDS, 1));
  seen->words = (unsigned *)words;
  seen->count = 0;
  seen->value = 0;
  atomic_store(&seen->is_done, 1);
}

static inline void end_seen(seen_t *seen) { STREAM(host_free(seen->words)); }

/* For `must_hold`: pinned memory comes and goes when all streams are idle only. */
static seen_t watched;
static pthread_mutex_t watched_lock = PTHREAD_MUTEX_INITIALIZER;

/* Both ends of a block hold the value when the stream has come here; waits for that. */
static inline void must_hold(const void *block, size_t bytes, unsigned value, stream_t stream) {
  CHECK(pthread_mutex_lock(&watched_lock) == 0);
  queue_look(&watched, block, bytes, value, stream);
  STREAM(synchronize(stream));
  CHECK(atomic_load(&watched.is_done));
  CHECK(pthread_mutex_unlock(&watched_lock) == 0);
}

/* Starts the driver with device 0's primary context current. */
static inline void start_streams(void) {
  find_stream_functions();
  DRIVER(set_current(primary_context(0)));
  new_seen(&watched);
}

/* The program made no streams that it did not destroy, nor did luma. */
static inline void end_streams(void) {
  end_seen(&watched);
  CHECK(fakecuda_live(FAKECUDA_LIVE_STREAMS) == 0);
}

/* ---- Pools ------------------------------------------------------------------------------------------------ */

/* A pool of device memory of its own, which may hold so much (0: as the device has). */
static inline luma_pool_t *pool_of(uint64_t limit) {
  luma_pool_config_t config = LUMA_POOL_CONFIG_INIT;
  config.backend = LUMA_BACKEND_CUDA;
  config.memory_limit = limit;
  return must_create(&config);
}

static inline unsigned char *take(luma_pool_t *pool, size_t bytes, stream_t stream) {
  void *block = luma_pool_alloc(pool, bytes, 0, stream);
  CHECK(block != NULL && luma_last_status() == LUMA_SUCCESS);
  return (unsigned char *)block;
}

static inline void give(luma_pool_t *pool, void *block, stream_t stream) {
  OK(luma_pool_free(pool, block, stream));
}

static inline unsigned char *must_alloc_async(size_t bytes, stream_t stream) {
  void *block = luma_alloc_async(bytes, stream);
  CHECK(block != NULL && luma_last_status() == LUMA_SUCCESS);
  return (unsigned char *)block;
}

/* The figures agree with each other, and nothing is broken. */
static inline void sound(luma_pool_t *pool) {
  luma_stats_t stats = pool_stats_now(pool);
  CHECK(stats.allocated_bytes + stats.pending_bytes <= stats.reserved_bytes);
  CHECK(stats.allocated_bytes + stats.pending_bytes + stats.largest_free_block <=
        stats.reserved_bytes);
  CHECK(stats.requested_bytes <= stats.allocated_bytes);
  OK(luma_pool_check(pool));
}

/* With no work left: nothing is live or pending, and all memory can go back. */
static inline void end_pool(luma_pool_t *pool) {
  luma_stats_t stats;
  STREAM(synchronize_all());
  sound(pool);
  stats = pool_stats_now(pool);
  CHECK(stats.live_blocks == 0 && stats.allocated_bytes == 0);
  CHECK(stats.pending_bytes == 0 || !reuses_at_once());
  (void)luma_pool_empty_cache(pool);
  stats = pool_stats_now(pool);
  CHECK(stats.reserved_bytes == 0 && stats.cuda_malloc_calls == stats.cuda_free_calls);
  OK(luma_pool_destroy(pool));
}

/* ---- What the driver was asked ----------------------------------------------------------------------------- */

/* Calls of all these functions so far; 0 on a driver that does not count. */
static inline uint64_t calls_of(const char *const *names, size_t count) {
  uint64_t calls = 0;
  size_t at;
  for (at = 0; at < count; at++) {
    calls += fakecuda_calls(names[at]);
  }
  return calls;
}

static const char *const WAITS[] = {"cuStreamSynchronize", "cuEventSynchronize", "cuCtxSynchronize",
                                    "cuStreamWaitEvent"};
static const char *const QUERIES[] = {"cuStreamQuery", "cuEventQuery"};
static const char *const FREES[] = {"cuMemFree_v2", "cuMemUnmap", "cuMemRelease", "cuMemFreeHost",
                                    "cuMemAddressFree"};

static inline uint64_t waits(void) { return calls_of(WAITS, sizeof WAITS / sizeof *WAITS); }
static inline uint64_t queries(void) { return calls_of(QUERIES, sizeof QUERIES / sizeof *QUERIES); }
static inline uint64_t driver_frees(void) { return calls_of(FREES, sizeof FREES / sizeof *FREES); }

#endif
