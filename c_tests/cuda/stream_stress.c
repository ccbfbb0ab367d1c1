/* Programs of operations over streams, threads and devices, from a seed. Queued work writes every block and
 * queued work checks it, so a block that is given away too early is found. Little memory, so that requests
 * have to wait for it.
 *
 * Arguments: seed, streams a device, threads, devices, operations a thread. In the environment: with FAILS=k a
 * call of the driver fails now and then, k calls after it was wished for; with ROOMY there is memory for all. */

/* Calls of this program may be the ones that fail: they do nothing then, and are made again. */
#define STREAM(call) \
  ((st.call) == 0 || (are_failing && ((st.call) == 0 || (st.call) == 0 || (st.call) == 0)) \
       ? (void)0 \
       : check_failed(__FILE__, __LINE__, "the driver failed: " #call))

static int are_failing;

#include "streams.h"

enum {
  MOST_STREAMS = 32,
  MOST_THREADS = 16,
  MOST_DEVICES = 4,
  BLOCKS = 24,
  LOOKS = 48,
  EXCHANGED = 16,
};

#define CAPACITY (12 * MIB)
#define LARGEST ((size_t)1 << 20)

/* A stream that comes and goes; whoever uses it holds the lock for reading. */
typedef struct {
  pthread_rwlock_t lock;
  stream_t stream;
  unsigned generation;
} slot_t;

static struct {
  context_t context;
  slot_t slots[MOST_STREAMS];
  atomic_ullong live_bytes;
} devices[MOST_DEVICES];

typedef struct {
  unsigned char *start;
  size_t bytes;
  unsigned value;
  int device;
  int slot;
  unsigned generation;
  /* After all that was queued on it. */
  event_t used;
} block_t;

typedef struct {
  int number;
  unsigned long long state;
  pthread_t thread;
  block_t blocks[BLOCKS];
  int count;
  seen_t looks[LOOKS];
  unsigned written;
  unsigned long long allocated, refused;
} worker_t;

static int stream_count = 6, thread_count = 4, device_count = 1, operations = 1000;
static unsigned long long seed = 1, fails_after;
static worker_t workers[MOST_THREADS];
static pthread_mutex_t exchange_lock = PTHREAD_MUTEX_INITIALIZER;
static block_t exchange[EXCHANGED];
static int exchanged;

static size_t below(worker_t *worker, size_t bound) {
  unsigned long long x = worker->state;
  x ^= x << 13;
  x ^= x >> 7;
  x ^= x << 17;
  worker->state = x;
  return (size_t)((x >> 11) % bound);
}

static void must_succeed(luma_status_t (*call)(void *block, stream_t stream), void *block,
                         stream_t stream) {
  int tries;
  for (tries = 0; tries < 4; tries++) {
    luma_status_t status = call(block, stream);
    if (status == LUMA_SUCCESS) {
      return;
    }
    /* What fails has changed nothing, and can be done again. */
    CHECK(are_failing && status != LUMA_ERROR_INVALID_POINTER);
  }
  check_failed(__FILE__, __LINE__, "a call fails again and again");
}

static luma_status_t free_plainly(void *block, stream_t unused) {
  (void)unused;
  return luma_free(block);
}

static void make_current(context_t context) {
  int tries = 0;
  while (cu.set_current(context) != 0) {
    CHECK(are_failing && ++tries < 4);
  }
}

static void synchronize_all(void) {
  int device;
  for (device = 0; device < device_count; device++) {
    make_current(devices[device].context);
    STREAM(synchronize_all());
  }
}

static void enter(const worker_t *worker) {
  make_current(devices[worker->number % device_count].context);
}

/* ---- Blocks ------------------------------------------------------------------------------------------------ */

static slot_t *slot_of(const block_t *block) { return &devices[block->device].slots[block->slot]; }

static void hold(slot_t *slot) { CHECK(pthread_rwlock_rdlock(&slot->lock) == 0); }
static void let_go(slot_t *slot) { CHECK(pthread_rwlock_unlock(&slot->lock) == 0); }

/* Makes the stream wait for what was queued on the block elsewhere, and holds it. The device is current. */
static slot_t *bring_to(block_t *block, int to) {
  slot_t *slot = &devices[block->device].slots[to];
  hold(slot);
  if (block->slot != to || block->generation != slot->generation) {
    STREAM(wait_event(slot->stream, block->used, 0));
    block->slot = to;
    block->generation = slot->generation;
  }
  return slot;
}

/* Holds the block's own stream; another one, if that is gone. */
static slot_t *bring_home(worker_t *worker, block_t *block) {
  slot_t *slot = slot_of(block);
  hold(slot);
  if (slot->generation == block->generation) {
    return slot;
  }
  let_go(slot);
  return bring_to(block, (int)below(worker, (size_t)stream_count));
}

static seen_t *free_look(worker_t *worker) {
  for (;;) {
    int at;
    for (at = 0; at < LOOKS; at++) {
      if (atomic_load(&worker->looks[at].is_done)) {
        return &worker->looks[at];
      }
    }
    synchronize_all();
  }
}

static void queue_check(seen_t *seen, block_t *block, slot_t *slot) {
  make_current(devices[block->device].context);
  queue_look(seen, block->start, block->bytes, block->value, slot->stream);
  STREAM(event_record(block->used, slot->stream));
}

static void queue_write(worker_t *worker, block_t *block, slot_t *slot) {
  make_current(devices[block->device].context);
  block->value = (unsigned)worker->number << 24 | (worker->written++ & 0xffffff);
  write_block(block->start, block->bytes, block->value, slot->stream);
  STREAM(event_record(block->used, slot->stream));
}

static void forget(worker_t *worker, block_t *block) {
  atomic_fetch_sub(&devices[block->device].live_bytes, block->bytes);
  make_current(devices[block->device].context);
  STREAM(event_destroy(block->used));
  enter(worker);
}

static block_t take_out(worker_t *worker) {
  int at = (int)below(worker, (size_t)worker->count);
  block_t block = worker->blocks[at];
  worker->blocks[at] = worker->blocks[--worker->count];
  return block;
}

/* ---- Operations ------------------------------------------------------------------------------------------------ */

/* Frees in the order of a stream, whichever device is current. */
static void free_in_order(worker_t *worker, block_t block) {
  slot_t *slot;
  make_current(devices[block.device].context);
  slot = below(worker, 4) == 0 ? bring_to(&block, (int)below(worker, (size_t)stream_count))
                               : bring_home(worker, &block);
  if (below(worker, 4) == 0) {
    size_t other = below(worker, (size_t)device_count + 1);
    make_current(other == (size_t)device_count ? NULL : devices[other].context);
  }
  must_succeed(luma_free_async, block.start, slot->stream);
  let_go(slot);
  forget(worker, &block);
}

/* Frees with luma_free when the work is done. */
static void free_when_done(worker_t *worker, block_t block) {
  make_current(devices[block.device].context);
  STREAM(event_synchronize(block.used));
  must_succeed(free_plainly, block.start, NULL);
  forget(worker, &block);
}

/* Another stream reads the block while it is freed; luma is told of that. The other stream may be gone by
 * then. */
static void free_under_a_reader(worker_t *worker, block_t block) {
  seen_t *seen = free_look(worker);
  int reader = (int)below(worker, (size_t)stream_count);
  slot_t *slot = &devices[block.device].slots[reader];
  make_current(devices[block.device].context);
  hold(slot);
  STREAM(wait_event(slot->stream, block.used, 0));
  queue_look(seen, block.start, block.bytes, block.value, slot->stream);
  must_succeed(luma_record_stream, block.start, slot->stream);
  let_go(slot);
  free_in_order(worker, block);
}

static void allocate(worker_t *worker) {
  block_t block;
  slot_t *slot;
  size_t bytes = LARGEST;
  while (bytes > 512 && below(worker, 3) > 0) {
    bytes /= 2;
  }
  if (worker->count == BLOCKS) {
    free_in_order(worker, take_out(worker));
  }
  enter(worker);
  block.bytes = (1 + below(worker, bytes / 4)) * 4;
  block.device = worker->number % device_count;
  block.slot = (int)below(worker, (size_t)stream_count);
  slot = &devices[block.device].slots[block.slot];
  hold(slot);
  block.start = luma_alloc_async(block.bytes, slot->stream);
  block.generation = slot->generation;
  if (block.start == NULL) {
    let_go(slot);
    worker->refused++;
    if (!are_failing) {
      CHECK(luma_last_status() == LUMA_ERROR_OUT_OF_MEMORY);
      CHECK(atomic_load(&devices[block.device].live_bytes) > CAPACITY / 8);
    }
    while (worker->count > BLOCKS / 2) {
      free_in_order(worker, take_out(worker));
    }
    return;
  }
  worker->allocated++;
  atomic_fetch_add(&devices[block.device].live_bytes, block.bytes);
  STREAM(event_create(&block.used, EVENT_WITHOUT_TIMING));
  queue_write(worker, &block, slot);
  let_go(slot);
  worker->blocks[worker->count++] = block;
}

/* A block from beginning to end on the default stream, or on the thread's own. */
static void on_a_default_stream(worker_t *worker, stream_t stream) {
  seen_t *seen = free_look(worker);
  unsigned value = (unsigned)worker->number << 24 | (worker->written++ & 0xffffff);
  size_t bytes = (1 + below(worker, 64 * KIB)) * 4;
  void *block;
  enter(worker);
  block = stream == NULL ? luma_alloc(bytes) : luma_alloc_async(bytes, stream);
  if (block != NULL) {
    write_block(block, bytes, value, stream);
    queue_look(seen, block, bytes, value, stream);
    must_succeed(stream == NULL ? free_plainly : luma_free_async, block, stream);
  }
}

static void check_one(worker_t *worker, int is_written) {
  block_t *block = &worker->blocks[below(worker, (size_t)worker->count)];
  seen_t *seen = free_look(worker);
  slot_t *slot;
  make_current(devices[block->device].context);
  slot = below(worker, 2) == 0 ? bring_home(worker, block)
                               : bring_to(block, (int)below(worker, (size_t)stream_count));
  queue_check(seen, block, slot);
  if (is_written) {
    queue_write(worker, block, slot);
  }
  let_go(slot);
  enter(worker);
}

/* Blocks change threads, and with them devices. */
static void exchange_one(worker_t *worker) {
  CHECK(pthread_mutex_lock(&exchange_lock) == 0);
  if (worker->count > 0 && exchanged < EXCHANGED && below(worker, 2) == 0) {
    exchange[exchanged++] = take_out(worker);
  } else if (worker->count < BLOCKS && exchanged > 0) {
    worker->blocks[worker->count++] = exchange[--exchanged];
  }
  CHECK(pthread_mutex_unlock(&exchange_lock) == 0);
}

/* Destroys a stream with whatever is queued on it, and makes another. */
static void replace_stream(worker_t *worker) {
  int device = worker->number % device_count;
  slot_t *slot = &devices[device].slots[1 + below(worker, (size_t)stream_count - 1)];
  enter(worker);
  if (pthread_rwlock_trywrlock(&slot->lock) != 0) {
    return;
  }
  if (below(worker, 2) == 0) {
    (void)luma_release_stream(slot->stream);
  }
  STREAM(destroy(slot->stream));
  STREAM(create(&slot->stream, below(worker, 2) == 0 ? NON_BLOCKING : BLOCKING));
  slot->generation++;
  let_go(slot);
}

static void be_slow(void *unused) {
  struct timespec time = {0, 200000};
  (void)unused;
  (void)nanosleep(&time, NULL);
}

static void slow_down(worker_t *worker) {
  slot_t *slot = &devices[worker->number % device_count].slots[below(worker, (size_t)stream_count)];
  enter(worker);
  hold(slot);
  STREAM(host_function(slot->stream, be_slow, NULL));
  let_go(slot);
}

static void look_around(worker_t *worker) {
  luma_stats_t stats = LUMA_STATS_INIT;
  enter(worker);
  switch (below(worker, 3)) {
  case 0:
    (void)luma_empty_cache();
    break;
  case 1:
    if (luma_stats(&stats) == LUMA_SUCCESS) {
      CHECK(stats.allocated_bytes + stats.pending_bytes + stats.largest_free_block <=
            stats.reserved_bytes);
    } else {
      CHECK(are_failing);
    }
    break;
  default:
    if (are_failing) {
      /* The driver may not even say what is current. */
      CHECK(luma_check() != LUMA_ERROR_CORRUPTED);
    } else {
      OK(luma_check());
    }
    break;
  }
}

static void fail_a_call(worker_t *worker) {
  static const unsigned codes[] = {1, 2, 700, 999};
  (void)fakecuda_fail("*", fails_after, codes[below(worker, 4)], 1);
}

static void operate(worker_t *worker) {
  size_t choice = below(worker, 100);
  if (are_failing && worker->number == 0 && below(worker, 8) == 0) {
    fail_a_call(worker);
  }
  if (choice < 34 || worker->count == 0) {
    allocate(worker);
  } else if (choice < 46) {
    check_one(worker, 0);
  } else if (choice < 54) {
    check_one(worker, 1);
  } else if (choice < 68) {
    free_in_order(worker, take_out(worker));
  } else if (choice < 74) {
    free_under_a_reader(worker, take_out(worker));
  } else if (choice < 78) {
    free_when_done(worker, take_out(worker));
  } else if (choice < 84) {
    exchange_one(worker);
  } else if (choice < 87) {
    on_a_default_stream(worker, NULL);
  } else if (choice < 90) {
    on_a_default_stream(worker, PER_THREAD_STREAM);
  } else if (choice < 94) {
    slow_down(worker);
  } else if (choice < 97) {
    replace_stream(worker);
  } else {
    look_around(worker);
  }
}

static void *work(void *user) {
  worker_t *worker = (worker_t *)user;
  int at;
  enter(worker);
  for (at = 0; at < LOOKS; at++) {
    new_seen(&worker->looks[at]);
  }
  for (at = 0; at < operations; at++) {
    operate(worker);
  }
  while (worker->count > 0) {
    check_one(worker, 0);
    free_in_order(worker, take_out(worker));
  }
  return NULL;
}

/* ---- Beginning and end ---------------------------------------------------------------------------------------------- */

static void begin(void) {
  int device, at;
  for (device = 0; device < device_count; device++) {
    devices[device].context = primary_context(device);
    DRIVER(set_current(devices[device].context));
    for (at = 0; at < stream_count; at++) {
      slot_t *slot = &devices[device].slots[at];
      CHECK(pthread_rwlock_init(&slot->lock, NULL) == 0);
      /* The first is the default stream, which is never destroyed. */
      slot->stream = at == 0 ? NULL : new_stream(at % 2 == 0 ? NON_BLOCKING : BLOCKING);
    }
    if (getenv("ROOMY") != NULL) {
      continue;
    }
    if (seed % 2 == 0 && fakecuda_present()) {
      /* The driver refuses what is too much. The pinned memory for checks is the host's. */
      CHECK(fakecuda_set_capacity(device, CAPACITY) == FAKECUDA_OK);
    } else {
      OK(luma_pool_set_limit(luma_default_pool(device), CAPACITY));
    }
  }
}

static void end(void) {
  worker_t *last = &workers[0];
  int device, at;
  are_failing = 0;
  (void)fakecuda_fail_clear();
  while (exchanged > 0) {
    free_in_order(last, exchange[--exchanged]);
  }
  synchronize_all();
  for (at = 0; at < thread_count; at++) {
    int look_at;
    for (look_at = 0; look_at < LOOKS; look_at++) {
      CHECK(atomic_load(&workers[at].looks[look_at].is_done));
      end_seen(&workers[at].looks[look_at]);
    }
  }
  for (device = 0; device < device_count; device++) {
    luma_stats_t stats;
    DRIVER(set_current(devices[device].context));
    for (at = 1; at < stream_count; at++) {
      STREAM(destroy(devices[device].slots[at].stream));
    }
    CHECK(atomic_load(&devices[device].live_bytes) == 0);
    stats = stats_now();
    CHECK(stats.live_blocks == 0 && stats.allocated_bytes == 0);
    OK(luma_check());
    (void)luma_empty_cache();
    stats = stats_now();
    CHECK(stats.reserved_bytes == 0 && stats.pending_bytes == 0 && stats.cuda_malloc_calls == stats.cuda_free_calls);
    OK(luma_check());
  }
  end_streams();
  CHECK(fakecuda_live(FAKECUDA_LIVE_ALLOCATIONS) == 0);
  CHECK(fakecuda_live(FAKECUDA_LIVE_PHYSICAL) == 0);
  CHECK(fakecuda_live(FAKECUDA_LIVE_MAPPINGS) == 0);
  CHECK(fakecuda_live(FAKECUDA_LIVE_EVENTS) == 0);
}

static int at_most(const char *text, int most) {
  int value = atoi(text);
  return value < 1 ? 1 : value > most ? most : value;
}

int main(int argc, char **argv) {
  const char *fails = getenv("FAILS");
  unsigned long long allocated = 0, refused = 0;
  int at;
  wait_shortly();
  start_streams();
  DRIVER(device_count(&device_count));
  if (argc > 1) {
    seed = strtoull(argv[1], NULL, 10);
  }
  if (argc > 2) {
    stream_count = at_most(argv[2], MOST_STREAMS - 1) + 1;
  }
  if (argc > 3) {
    thread_count = at_most(argv[3], MOST_THREADS);
  }
  device_count = at_most(argc > 4 ? argv[4] : "2", device_count < 2 ? device_count : MOST_DEVICES);
  if (argc > 5) {
    operations = at_most(argv[5], 1 << 30);
  }
  if (getenv("LUMA_DEBUG") != NULL) {
    operations = operations / 4 + 1;
  }
  begin();
  are_failing = fails != NULL && fakecuda_present();
  fails_after = fails == NULL ? 0 : strtoull(fails, NULL, 10);
  for (at = 0; at < thread_count; at++) {
    workers[at].number = at;
    workers[at].state = (seed + 1) * 0x9E3779B97F4A7C15ull + (unsigned long long)at * 0xD1B54A32D192ED03ull;
    CHECK(workers[at].state != 0);
    CHECK(pthread_create(&workers[at].thread, NULL, work, &workers[at]) == 0);
  }
  for (at = 0; at < thread_count; at++) {
    CHECK(pthread_join(workers[at].thread, NULL) == 0);
    allocated += workers[at].allocated;
    refused += workers[at].refused;
  }
  end();
  printf("%llu blocks, %llu requests refused\n", allocated, refused);
  CHECK(allocated > refused);
  return 0;
}
