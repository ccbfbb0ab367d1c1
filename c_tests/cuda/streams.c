/* Allocation in the order of streams: who may have a freed block, when, and at what cost. With the argument
 * "host", what host memory makes of streams. */
#include "streams.h"

#define SLOT (4 * MIB)

/* A pool whose first stream this is reuses its blocks at once, however busy the stream is, and asks the
 * driver for nothing. */
static void one_stream_reuses_at_once(stream_t stream) {
  luma_pool_t *pool = pool_of(0);
  gate_t gate;
  unsigned char *block;
  uint64_t events, asked;
  int round;
  give(pool, take(pool, 16 * MIB, stream), stream);
  close_gate(&gate, stream);
  block = take(pool, MIB, stream);
  write_block(block, MIB, 1, stream);
  give(pool, block, stream);
  events = fakecuda_calls("cuEventRecord") + fakecuda_calls("cuEventCreate");
  asked = queries() + waits();
  for (round = 0; round < rounds(200); round++) {
    size_t bytes = (size_t)(1 + round % 7) * 100 * KIB;
    unsigned char *first = take(pool, bytes, stream), *again;
    write_block(first, bytes, (unsigned)round, stream);
    give(pool, first, stream);
    again = take(pool, bytes, stream);
    CHECK(again == first || !reuses_at_once());
    give(pool, again, stream);
  }
  CHECK(fakecuda_calls("cuEventRecord") + fakecuda_calls("cuEventCreate") == events);
  CHECK(queries() + waits() == asked);
  finish(&gate, stream);
  end_pool(pool);
}

/* A second stream gets a block only when the work before its free is done, of whatever kind the memory is. */
static void others_get_what_is_done(int32_t backend, unsigned flags) {
  luma_pool_config_t config = LUMA_POOL_CONFIG_INIT;
  luma_pool_t *pool;
  gate_t gate;
  stream_t first = new_stream(flags), second = new_stream(flags);
  unsigned char *freed, *other, *all;
  config.backend = backend;
  config.memory_limit = 4 * SLOT;
  pool = must_create(&config);
  freed = take(pool, SLOT, first);
  close_gate(&gate, first);
  write_block(freed, SLOT, 1, first);
  give(pool, freed, first);
  other = take(pool, SLOT, second);
  CHECK(!overlap(freed, SLOT, other, SLOT));
  write_block(other, SLOT, 2, second);
  sound(pool);
  /* With both streams known: a block that is freed now, and what is left of the first. */
  give(pool, take(pool, SLOT, first), first);
  all = take(pool, SLOT, second);
  CHECK(!overlap(freed, SLOT, all, SLOT) && !overlap(other, SLOT, all, SLOT));
  write_block(all, SLOT, 3, second);
  finish(&gate, first);
  must_hold(other, SLOT, 2, second);
  must_hold(all, SLOT, 3, second);
  give(pool, other, second);
  give(pool, all, second);
  STREAM(synchronize(second));
  /* All is done, so all of it is anyone's, in one piece. */
  all = take(pool, 4 * SLOT, first);
  give(pool, all, first);
  STREAM(synchronize(first));
  all = take(pool, 4 * SLOT, second);
  give(pool, all, second);
  all = take(pool, 4 * SLOT, NULL);
  give(pool, all, NULL);
  end_pool(pool);
  STREAM(destroy(first));
  STREAM(destroy(second));
}

/* One stream that does not end holds back its own block, and none of the many that are done. */
static void a_blocked_stream_holds_back_its_own(void) {
  enum { MOST = 1000 };
  static unsigned char *blocks[MOST];
  const size_t bytes = 64 * KIB;
  const int count = rounds(MOST);
  luma_pool_t *pool = pool_of(0);
  gate_t gate;
  stream_t blocked = new_stream(NON_BLOCKING), done = new_stream(NON_BLOCKING);
  stream_t third = new_stream(NON_BLOCKING);
  unsigned char *held = take(pool, bytes, blocked);
  uint64_t reserved, waited;
  int at;
  for (at = 0; at < count; at++) {
    blocks[at] = take(pool, bytes, done);
  }
  close_gate(&gate, blocked);
  write_block(held, bytes, 1, blocked);
  give(pool, held, blocked);
  for (at = 0; at < count; at++) {
    write_block(blocks[at], bytes, 2, done);
    give(pool, blocks[at], done);
  }
  STREAM(synchronize(done));
  reserved = pool_stats_now(pool).reserved_bytes;
  waited = waits();
  for (at = 0; at < count; at++) {
    blocks[at] = take(pool, bytes, third);
    CHECK(!overlap(blocks[at], bytes, held, bytes));
  }
  CHECK(waits() == waited);
  CHECK(pool_stats_now(pool).reserved_bytes == reserved || !reuses_at_once());
  for (at = 0; at < count; at++) {
    give(pool, blocks[at], third);
  }
  finish(&gate, blocked);
  end_pool(pool);
  STREAM(destroy(blocked));
  STREAM(destroy(done));
  STREAM(destroy(third));
}

/* The handle of a destroyed stream comes again for another one, whose work does not wait for the first's. */
static void handles_come_again(int is_told, int is_alone) {
  luma_pool_t *pool = pool_of(4 * SLOT);
  gate_t gate;
  stream_t old = new_stream(NON_BLOCKING), fresh;
  unsigned char *freed = take(pool, SLOT, old), *block, *all;
  event_t done = new_event();
  if (!is_alone) {
    give(pool, take(pool, KIB, NULL), NULL);
  }
  close_gate(&gate, old);
  write_block(freed, SLOT, 1, old);
  STREAM(event_record(done, old));
  give(pool, freed, old);
  if (is_told) {
    OK(luma_release_stream(old));
  }
  STREAM(destroy(old));
  fresh = new_stream(NON_BLOCKING);
  block = take(pool, SLOT, fresh);
  CHECK(!overlap(freed, SLOT, block, SLOT));
  write_block(block, SLOT, 2, fresh);
  STREAM(synchronize(fresh));
  open_gate(&gate);
  STREAM(event_synchronize(done));
  must_hold(block, SLOT, 2, fresh);
  give(pool, block, fresh);
  all = take(pool, 4 * SLOT, fresh);
  give(pool, all, fresh);
  end_pool(pool);
  STREAM(event_destroy(done));
  STREAM(destroy(fresh));
}

static void many_streams_are_gone(int are_told) {
  enum { STREAMS = 100 };
  luma_pool_t *pool = pool_of(64 * MIB);
  unsigned char *all;
  int at;
  for (at = 0; at < STREAMS; at++) {
    stream_t stream = new_stream(at % 2 == 0 ? NON_BLOCKING : BLOCKING);
    unsigned char *block = take(pool, 512 * KIB, stream);
    write_block(block, 512 * KIB, (unsigned)at, stream);
    give(pool, block, stream);
    if (are_told) {
      OK(luma_release_stream(stream));
    }
    STREAM(destroy(stream));
  }
  all = take(pool, 64 * MIB, NULL);
  write_block(all, 64 * MIB, 7, NULL);
  must_hold(all, 64 * MIB, 7, NULL);
  give(pool, all, NULL);
  end_pool(pool);
}

/* NULL and the legacy stream's own handle are one stream. */
static void the_default_stream_has_two_names(void) {
  luma_pool_t *pool = pool_of(2 * SLOT);
  gate_t gate;
  unsigned char *block = take(pool, 2 * SLOT, NULL), *again;
  close_gate(&gate, NULL);
  give(pool, block, LEGACY_STREAM);
  again = take(pool, 2 * SLOT, NULL);
  give(pool, again, LEGACY_STREAM);
  again = take(pool, 2 * SLOT, LEGACY_STREAM);
  give(pool, again, NULL);
  finish(&gate, NULL);
  end_pool(pool);
}

typedef struct {
  context_t context;
  luma_pool_t *pool;
  unsigned char *freed;
} elsewhere_t;

static void *take_on_the_thread_s_own_stream(void *user) {
  elsewhere_t *elsewhere = (elsewhere_t *)user;
  unsigned char *block;
  DRIVER(set_current(elsewhere->context));
  block = take(elsewhere->pool, SLOT, PER_THREAD_STREAM);
  CHECK(!overlap(block, SLOT, elsewhere->freed, SLOT));
  write_block(block, SLOT, 2, PER_THREAD_STREAM);
  STREAM(synchronize(PER_THREAD_STREAM));
  give(elsewhere->pool, block, PER_THREAD_STREAM);
  return NULL;
}

/* The per-thread default stream is another one in each thread, though its handle is the same. */
static void each_thread_has_its_default_stream(int is_alone) {
  luma_pool_t *pool = pool_of(4 * SLOT);
  elsewhere_t elsewhere = {current_context(), pool, NULL};
  gate_t gate;
  unsigned char *again;
  uint64_t reserved;
  if (!is_alone) {
    give(pool, take(pool, KIB, NULL), NULL);
    STREAM(synchronize_all());
  }
  elsewhere.freed = take(pool, SLOT, PER_THREAD_STREAM);
  close_gate(&gate, PER_THREAD_STREAM);
  write_block(elsewhere.freed, SLOT, 1, PER_THREAD_STREAM);
  give(pool, elsewhere.freed, PER_THREAD_STREAM);
  on_a_thread(take_on_the_thread_s_own_stream, &elsewhere);
  reserved = pool_stats_now(pool).reserved_bytes;
  again = take(pool, SLOT, PER_THREAD_STREAM);
  CHECK(pool_stats_now(pool).reserved_bytes == reserved || !reuses_at_once());
  give(pool, again, PER_THREAD_STREAM);
  finish(&gate, PER_THREAD_STREAM);
  /* The other thread is gone, and its stream with it. */
  again = take(pool, 4 * SLOT, PER_THREAD_STREAM);
  give(pool, again, PER_THREAD_STREAM);
  end_pool(pool);
}

/* A block that was named for another stream waits for that one, however it is freed. */
static void named_streams_are_waited_for(int is_plain) {
  stream_t own = is_plain ? NULL : new_stream(NON_BLOCKING), user = new_stream(NON_BLOCKING);
  gate_t gate;
  unsigned char *block = is_plain ? must_alloc(SLOT) : must_alloc_async(SLOT, own);
  unsigned char *other;
  uint64_t waited;
  STREAM(synchronize_all());
  close_gate(&gate, user);
  write_block(block, SLOT, 1, user);
  OK(luma_record_stream(block, user));
  OK(luma_record_stream(block, user));
  OK(luma_record_stream(block, own));
  OK(is_plain ? luma_free(block) : luma_free_async(block, own));
  FAILS(luma_free_async(block, own), LUMA_ERROR_INVALID_POINTER, "free already");
  other = is_plain ? must_alloc(SLOT) : must_alloc_async(SLOT, own);
  CHECK(!overlap(block, SLOT, other, SLOT));
  write_block(other, SLOT, 2, own);
  /* It asks, and does not wait. */
  waited = waits();
  CHECK(stats_now().pending_bytes >= SLOT);
  CHECK(waits() == waited);
  /* Nothing was recorded on the stream since the free, which no call has named since then. */
  OK(luma_release_stream(user));
  finish(&gate, user);
  must_hold(other, SLOT, 2, own);
  CHECK(stats_now().pending_bytes == 0);
  OK(luma_check());
  OK(luma_free_async(other, own));
  STREAM(synchronize_all());
  (void)luma_empty_cache();
  CHECK(stats_now().reserved_bytes == 0);
  if (!is_plain) {
    STREAM(destroy(own));
  }
  STREAM(destroy(user));
}

typedef struct {
  context_t context;
  void *block;
  stream_t stream;
} free_t;

static void *free_under(void *user) {
  free_t *what = (free_t *)user;
  DRIVER(set_current(what->context));
  OK(luma_free_async(what->block, what->stream));
  CHECK(current_context() == what->context);
  return NULL;
}

/* Neither the thread nor its current device matter to a free; the stream's order holds all the same. */
static void any_thread_frees(int devices) {
  context_t contexts[3], here = current_context();
  int at, is_second_known;
  for (is_second_known = 0; is_second_known < 2; is_second_known++) {
    stream_t stream = new_stream(NON_BLOCKING), other = new_stream(NON_BLOCKING);
    contexts[0] = here;
    contexts[1] = NULL;
    contexts[2] = devices >= 2 ? primary_context(1) : NULL;
    for (at = 0; at < 3; at++) {
      gate_t gate;
      free_t what = {contexts[at], must_alloc_async(SLOT, stream), stream};
      unsigned char *block, *fresh;
      uint64_t reserved;
      if (is_second_known) {
        OK(luma_free_async(must_alloc_async(KIB, other), other));
      }
      close_gate(&gate, stream);
      write_block(what.block, SLOT, 5, stream);
      on_a_thread(free_under, &what);
      fresh = must_alloc_async(SLOT, other);
      CHECK(!overlap(fresh, SLOT, what.block, SLOT));
      reserved = stats_now().reserved_bytes;
      block = must_alloc_async(SLOT, stream);
      CHECK(stats_now().reserved_bytes == reserved || !reuses_at_once());
      finish(&gate, stream);
      OK(luma_free_async(block, stream));
      OK(luma_free_async(fresh, other));
      STREAM(synchronize_all());
    }
    OK(luma_check());
    (void)luma_empty_cache();
    CHECK(stats_now().reserved_bytes == 0);
    STREAM(destroy(stream));
    STREAM(destroy(other));
  }
  if (devices < 2) {
    puts("SKIPPED: frees under another device: there is one device");
  }
  CHECK(current_context() == here);
}

/* Streams and blocks of a second device, used and freed under the first. */
static void a_second_device(int devices) {
  context_t here = current_context(), there;
  stream_t streams[2];
  gate_t gate;
  unsigned char *freed, *block;
  int at;
  if (devices < 2) {
    return;
  }
  there = primary_context(1);
  DRIVER(set_current(there));
  for (at = 0; at < 2; at++) {
    streams[at] = new_stream(NON_BLOCKING);
  }
  freed = must_alloc_async(SLOT, streams[0]);
  OK(luma_free_async(must_alloc_async(KIB, streams[1]), streams[1]));
  close_gate(&gate, streams[0]);
  write_block(freed, SLOT, 1, streams[0]);
  DRIVER(set_current(here));
  OK(luma_free_async(freed, streams[0]));
  CHECK(current_context() == here);
  DRIVER(set_current(there));
  block = must_alloc_async(SLOT, streams[1]);
  CHECK(!overlap(block, SLOT, freed, SLOT));
  write_block(block, SLOT, 2, streams[1]);
  finish(&gate, streams[0]);
  must_hold(block, SLOT, 2, streams[1]);
  OK(luma_free_async(block, streams[1]));
  STREAM(synchronize_all());
  (void)luma_empty_cache();
  CHECK(stats_now().reserved_bytes == 0);
  for (at = 0; at < 2; at++) {
    STREAM(destroy(streams[at]));
  }
  DRIVER(set_current(here));
}

/* Memory that a stream still works on is not given back to the driver, and nobody waits for ever for it. */
static void busy_memory_stays(int is_alone) {
  luma_pool_t *pool = pool_of(0);
  stream_t stream = new_stream(NON_BLOCKING), other = new_stream(NON_BLOCKING);
  unsigned char *block = take(pool, 2 * SLOT, stream);
  seen_t seen;
  gate_t gate;
  opener_t opener;
  new_seen(&seen);
  if (!is_alone) {
    give(pool, take(pool, SLOT, other), other);
    STREAM(synchronize(other));
  }
  close_gate(&gate, stream);
  write_block(block, 2 * SLOT, 3, stream);
  queue_look(&seen, block, 2 * SLOT, 3, stream);
  give(pool, block, stream);
  open_later(&opener, &gate, 100);
  (void)luma_pool_empty_cache(pool);
  CHECK(atomic_load(&seen.is_done) || pool_stats_now(pool).reserved_bytes >= 2 * SLOT);
  opened(&opener);
  STREAM(synchronize(stream));
  CHECK(atomic_load(&seen.is_done));
  end_pool(pool);
  end_seen(&seen);
  STREAM(destroy(stream));
  STREAM(destroy(other));
}

/* A pool that ends with work of several streams queued waits for it before its memory goes. */
static void a_pool_ends_under_work(void) {
  luma_pool_t *pool = pool_of(0);
  stream_t streams[3];
  seen_t seen[3];
  gate_t gates[3];
  opener_t openers[3];
  int at;
  for (at = 0; at < 3; at++) {
    unsigned char *block;
    streams[at] = new_stream(NON_BLOCKING);
    new_seen(&seen[at]);
    block = take(pool, SLOT, streams[at]);
    close_gate(&gates[at], streams[at]);
    write_block(block, SLOT, (unsigned)at, streams[at]);
    queue_look(&seen[at], block, SLOT, (unsigned)at, streams[at]);
    if (at != 1) {
      give(pool, block, streams[at]);
    }
    open_later(&openers[at], &gates[at], 20 * (at + 1));
  }
  OK(luma_pool_destroy(pool));
  for (at = 0; at < 3; at++) {
    opened(&openers[at]);
    STREAM(synchronize(streams[at]));
    CHECK(atomic_load(&seen[at].is_done));
    end_seen(&seen[at]);
    STREAM(destroy(streams[at]));
  }
}

static void what_is_wrong_is_refused(void) {
  stream_t stream = new_stream(NON_BLOCKING);
  luma_pool_t *pool = pool_of(0), *second = pool_of(0);
  unsigned char *block = must_alloc_async(1000, stream), *pools = take(pool, 1000, stream);
  int local = 0;
  OK(luma_free_async(NULL, stream));
  OK(luma_record_stream(NULL, stream));
  CHECK(luma_alloc_async(0, stream) == NULL && luma_last_status() == LUMA_SUCCESS);
  REFUSED(luma_alloc_async(SIZE_MAX, stream), LUMA_ERROR_OUT_OF_MEMORY, "out of memory");
  REFUSED(luma_alloc_async(SIZE_MAX / 2, stream), LUMA_ERROR_OUT_OF_MEMORY, "out of memory");
  FAILS(luma_free_async(&local, stream), LUMA_ERROR_INVALID_POINTER, "not from this pool");
  FAILS(luma_free_async(block + 256, stream), LUMA_ERROR_INVALID_POINTER, "");
  FAILS(luma_record_stream(&local, stream), LUMA_ERROR_INVALID_POINTER, "");
  FAILS(luma_record_stream(block + 256, stream), LUMA_ERROR_INVALID_POINTER, "");
  FAILS(luma_pool_free(second, pools, stream), LUMA_ERROR_INVALID_POINTER, "");
  FAILS(luma_free_async(pools, stream), LUMA_ERROR_INVALID_POINTER, "");
  CHECK(luma_usable_size(block) == 1024);
  OK(luma_free_async(block, stream));
  FAILS(luma_free_async(block, stream), LUMA_ERROR_INVALID_POINTER, "free already");
  FAILS(luma_free(block), LUMA_ERROR_INVALID_POINTER, "free already");
  FAILS(luma_record_stream(block, stream), LUMA_ERROR_INVALID_POINTER, "");
  give(pool, pools, stream);
  FAILS(luma_pool_free(pool, pools, stream), LUMA_ERROR_INVALID_POINTER, "free already");
  end_pool(pool);
  end_pool(second);
  OK(luma_check());
  STREAM(destroy(stream));
}

static void *callback_alloc(size_t bytes, void *user) {
  (void)user;
  return aligned_alloc(256, (bytes + 255) / 256 * 256);
}

static void callback_free(void *block, size_t bytes, void *user) {
  (void)bytes;
  (void)user;
  free(block);
}

/* Nobody can say when work on memory from a caller's own functions is done. */
static void callbacks_know_no_streams(stream_t stream) {
  luma_pool_config_t config = LUMA_POOL_CONFIG_INIT;
  luma_pool_t *pool;
  unsigned char *block;
  config.backend = LUMA_BACKEND_CALLBACKS;
  config.alloc_fn = callback_alloc;
  config.free_fn = callback_free;
  pool = must_create(&config);
  REFUSED(luma_pool_alloc(pool, 1000, 0, stream), LUMA_ERROR_UNSUPPORTED, "stream");
  block = must_pool_alloc(pool, 1000);
  FAILS(luma_pool_free(pool, block, stream), LUMA_ERROR_UNSUPPORTED, "stream");
  CHECK(pool_stats_now(pool).live_blocks == 1);
  OK(luma_pool_free(pool, block, NULL));
  OK(luma_pool_check(pool));
  OK(luma_pool_destroy(pool));
}

/* Host memory is done with when a call returns: any value is a stream, and blocks are everyone's at once. */
static void host_memory_takes_any_stream(void) {
  luma_pool_config_t config = host_config(16 * MIB);
  luma_pool_t *pool;
  int local, at;
  config.memory_limit = 8 * MIB;
  pool = must_create(&config);
  for (at = 0; at < 20; at++) {
    stream_t stream = at % 2 == 0 ? (stream_t)&local : (stream_t)(uintptr_t)at;
    unsigned char *block = take(pool, 8 * MIB, stream);
    memset(block, at, 8 * MIB);
    give(pool, block, at % 3 == 0 ? NULL : stream);
  }
  sound(pool);
  CHECK(pool_stats_now(pool).pending_bytes == 0 || !reuses_at_once());
  OK(luma_pool_destroy(pool));
}

/* The default pool over host memory. */
static void host_memory_by_default(void) {
  int local, at;
  for (at = 0; at < 20; at++) {
    unsigned char *block = must_alloc_async(MIB, &local);
    memset(block, at, MIB);
    OK(luma_record_stream(block, (stream_t)(uintptr_t)at));
    OK(at % 2 == 0 ? luma_free_async(block, &local) : luma_free(block));
    FAILS(luma_free_async(block, &local), LUMA_ERROR_INVALID_POINTER, "");
  }
  OK(luma_release_stream(&local));
  CHECK(stats_now().pending_bytes == 0 && stats_now().live_blocks == 0);
  OK(luma_check());
  (void)luma_empty_cache();
  CHECK(stats_now().reserved_bytes == 0);
}

int main(int argc, char **argv) {
  static const int32_t kinds[] = {LUMA_BACKEND_CUDA, LUMA_BACKEND_CUDA_HOST,
                                  LUMA_BACKEND_CUDA_MANAGED};
  stream_t stream;
  size_t kind;
  int devices, choice;
  wait_shortly();
  if (asked_for(argc, argv, "host")) {
    RUN(host_memory_by_default());
    RUN(host_memory_takes_any_stream());
    return 0;
  }
  start_streams();
  DRIVER(device_count(&devices));
  stream = new_stream(NON_BLOCKING);
  RUN(one_stream_reuses_at_once(stream));
  RUN(one_stream_reuses_at_once(NULL));
  RUN(one_stream_reuses_at_once(PER_THREAD_STREAM));
  for (kind = 0; kind < sizeof kinds / sizeof *kinds; kind++) {
    RUN(others_get_what_is_done(kinds[kind], NON_BLOCKING));
    RUN(others_get_what_is_done(kinds[kind], BLOCKING));
  }
  RUN(a_blocked_stream_holds_back_its_own());
  for (choice = 0; choice < 4; choice++) {
    RUN(handles_come_again(choice % 2, choice / 2));
  }
  for (choice = 0; choice < 2; choice++) {
    RUN(many_streams_are_gone(choice));
    RUN(each_thread_has_its_default_stream(choice));
    RUN(named_streams_are_waited_for(choice));
    RUN(busy_memory_stays(choice));
  }
  RUN(the_default_stream_has_two_names());
  RUN(any_thread_frees(devices));
  RUN(a_second_device(devices));
  RUN(a_pool_ends_under_work());
  RUN(what_is_wrong_is_refused());
  RUN(callbacks_know_no_streams(stream));
  RUN(host_memory_takes_any_stream());
  STREAM(destroy(stream));
  (void)luma_empty_cache();
  CHECK(stats_now().live_blocks == 0 && stats_now().reserved_bytes == 0);
  end_streams();
  return 0;
}
