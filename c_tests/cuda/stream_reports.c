/* What users of other allocators reported of streams, each as a scenario on this one. The number in a name is
 * the row of docs/reports.md. */
#include "streams.h"

enum { MAIN_OPENS_AFTER_MS = 50 };

typedef struct {
  context_t context;
  luma_pool_t *pool;
  stream_t stream;
  void *block;
  atomic_int is_taken;
  atomic_int is_full;
} shared_t;

static void *takes_and_frees_later(void *user) {
  shared_t *shared = (shared_t *)user;
  unsigned char *block;
  DRIVER(set_current(shared->context));
  block = take(shared->pool, 64 * KIB, PER_THREAD_STREAM);
  write_block(block, 64 * KIB, 3, PER_THREAD_STREAM);
  atomic_store(&shared->is_taken, 1);
  while (!atomic_load(&shared->is_full)) {
    sleep_ms(1);
  }
  must_hold(block, 64 * KIB, 3, PER_THREAD_STREAM);
  give(shared->pool, block, PER_THREAD_STREAM);
  return NULL;
}

/* Another stream runs the pool out of memory, which tidies up everywhere; a block of before is freed after. */
static void r16_a_block_is_freed_after_others_ran_out(void) {
  enum { MOST = 4096 };
  static unsigned char *blocks[MOST];
  luma_pool_t *pool = pool_of(32 * MIB);
  shared_t shared = {current_context(), pool, new_stream(NON_BLOCKING), NULL, 0, 0};
  pthread_t thread;
  int count = 0;
  CHECK(pthread_create(&thread, NULL, takes_and_frees_later, &shared) == 0);
  while (!atomic_load(&shared.is_taken)) {
    sleep_ms(1);
  }
  while (count < MOST) {
    void *block = luma_pool_alloc(pool, (size_t)(1 + count % 5) * 300 * KIB, 0, shared.stream);
    if (block == NULL) {
      CHECK(luma_last_status() == LUMA_ERROR_OUT_OF_MEMORY);
      break;
    }
    blocks[count++] = block;
  }
  CHECK(count > 10 && count < MOST);
  atomic_store(&shared.is_full, 1);
  CHECK(pthread_join(thread, NULL) == 0);
  while (count > 0) {
    give(pool, blocks[--count], shared.stream);
  }
  end_pool(pool);
  STREAM(destroy(shared.stream));
}

/* A block was named for a stream that is then destroyed: the stream is not called again, and the block's
 * memory comes back. */
static void r17_a_named_stream_is_destroyed(void) {
  int is_told, round;
  for (is_told = 0; is_told < 2; is_told++) {
    for (round = 0; round < 8; round++) {
      stream_t own = new_stream(NON_BLOCKING), user = new_stream(NON_BLOCKING);
      unsigned char *block = must_alloc_async(MIB, own), *other;
      write_block(block, MIB, 1, own);
      STREAM(synchronize(own));
      write_block(block, MIB, 2, user);
      OK(luma_record_stream(block, user));
      if (is_told) {
        OK(luma_release_stream(user));
      }
      STREAM(destroy(user));
      OK(luma_free_async(block, own));
      (void)luma_empty_cache();
      other = must_alloc_async(MIB, own);
      OK(luma_free_async(other, own));
      STREAM(synchronize_all());
      (void)luma_empty_cache();
      CHECK(stats_now().pending_bytes == 0 && stats_now().live_blocks == 0);
      CHECK(stats_now().reserved_bytes == 0);
      STREAM(destroy(own));
    }
  }
}

/* The host runs ahead of a second stream by one step only, so no more than a few blocks are ever needed. */
static void r18_named_blocks_do_not_pile_up(void) {
  const size_t bytes = 16 * MIB;
  stream_t own = new_stream(NON_BLOCKING), user = new_stream(NON_BLOCKING);
  event_t steps[2], ready = new_event();
  int step;
  steps[0] = new_event();
  steps[1] = new_event();
  for (step = 0; step < 100; step++) {
    unsigned char *block = must_alloc_async(bytes, own);
    write_block(block, 64 * KIB, (unsigned)step, own);
    STREAM(event_record(ready, own));
    STREAM(wait_event(user, ready, 0));
    write_block(block, 32 * KIB, (unsigned)step, user);
    OK(luma_record_stream(block, user));
    STREAM(event_record(steps[step % 2], user));
    OK(luma_free_async(block, own));
    if (step > 0) {
      STREAM(event_synchronize(steps[(step + 1) % 2]));
    }
  }
  CHECK(stats_now().reserved_bytes <= 3 * bytes || !reuses_at_once());
  /* The last block waits for a record that only a call which names the stream can make. */
  OK(luma_release_stream(user));
  STREAM(synchronize_all());
  CHECK(stats_now().pending_bytes == 0);
  (void)luma_empty_cache();
  CHECK(stats_now().reserved_bytes == 0);
  for (step = 0; step < 2; step++) {
    STREAM(event_destroy(steps[step]));
  }
  STREAM(event_destroy(ready));
  STREAM(destroy(own));
  STREAM(destroy(user));
}

/* Of eight streams with a pending block each only one ends, and that is enough. */
static void r19_one_pending_block_is_enough(void) {
  enum { STREAMS = 8 };
  const size_t bytes = 4 * MIB;
  int ends, at;
  for (ends = 0; ends < STREAMS; ends++) {
    luma_pool_t *pool = pool_of(STREAMS * bytes);
    stream_t streams[STREAMS], other = new_stream(NON_BLOCKING);
    unsigned char *blocks[STREAMS], *block;
    gate_t gates[STREAMS];
    for (at = 0; at < STREAMS; at++) {
      streams[at] = new_stream(NON_BLOCKING);
      blocks[at] = take(pool, bytes, streams[at]);
    }
    for (at = 0; at < STREAMS; at++) {
      close_gate(&gates[at], streams[at]);
      write_block(blocks[at], bytes, 1, streams[at]);
      give(pool, blocks[at], streams[at]);
    }
    finish(&gates[ends], streams[ends]);
    block = take(pool, bytes, other);
    CHECK(overlap(block, bytes, blocks[ends], bytes) || has_pages());
    for (at = 0; at < STREAMS; at++) {
      CHECK(at == ends || !atomic_load(&gates[at].is_open));
    }
    write_block(block, bytes, 2, other);
    for (at = 0; at < STREAMS; at++) {
      finish(&gates[at], streams[at]);
    }
    must_hold(block, bytes, 2, other);
    give(pool, block, other);
    end_pool(pool);
    for (at = 0; at < STREAMS; at++) {
      STREAM(destroy(streams[at]));
    }
    STREAM(destroy(other));
  }
}

/* Streams that have blocks of their own are not made to wait for each other. */
static void r20_streams_do_not_wait_for_each_other(void) {
  enum { STREAMS = 4 };
  const int count = rounds(1000);
  luma_pool_t *pool = pool_of(0);
  stream_t streams[STREAMS];
  gate_t gates[STREAMS];
  uint64_t waited, reserved;
  int at, round;
  for (at = 0; at < STREAMS; at++) {
    streams[at] = new_stream(NON_BLOCKING);
    give(pool, take(pool, 40 * KIB, streams[at]), streams[at]);
  }
  for (at = 0; at < STREAMS; at++) {
    close_gate(&gates[at], streams[at]);
    give(pool, take(pool, 40 * KIB, streams[at]), streams[at]);
  }
  waited = waits();
  reserved = pool_stats_now(pool).reserved_bytes;
  for (round = 0; round < count; round++) {
    for (at = 0; at < STREAMS; at++) {
      size_t bytes = (size_t)(1 + (round + at) % 20) * 2 * KIB;
      give(pool, take(pool, bytes, streams[at]), streams[at]);
    }
  }
  CHECK(waits() == waited);
  CHECK(pool_stats_now(pool).reserved_bytes == reserved || !reuses_at_once());
  for (at = 0; at < STREAMS; at++) {
    finish(&gates[at], streams[at]);
  }
  end_pool(pool);
  for (at = 0; at < STREAMS; at++) {
    STREAM(destroy(streams[at]));
  }
}

/* A stream that is gone left fragments of all sizes; another one needs nearly everything. */
static void r21_fragments_of_a_gone_stream_are_used(void) {
  enum { SIZES = 12 };
  int is_told, at;
  for (is_told = 0; is_told < 2; is_told++) {
    luma_pool_t *pool = pool_of(100 * MIB);
    stream_t gone = new_stream(NON_BLOCKING), other = new_stream(NON_BLOCKING);
    unsigned char *blocks[SIZES], *block;
    give(pool, take(pool, KIB, other), other);
    for (at = 0; at < SIZES; at++) {
      blocks[at] = take(pool, (size_t)(at + 1) * MIB, gone);
      write_block(blocks[at], (size_t)(at + 1) * MIB, 1, gone);
    }
    for (at = 0; at < SIZES; at++) {
      give(pool, blocks[at * 5 % SIZES], gone);
    }
    if (is_told) {
      OK(luma_release_stream(gone));
    }
    STREAM(destroy(gone));
    block = take(pool, 90 * MIB, other);
    write_block(block, 90 * MIB, 2, other);
    must_hold(block, 90 * MIB, 2, other);
    give(pool, block, other);
    end_pool(pool);
    STREAM(destroy(other));
  }
}

/* What a stream used once serves all others when it is done. */
static void r22_a_stream_used_once_keeps_nothing(void) {
  luma_pool_t *pool = pool_of(120 * MIB);
  stream_t once = new_stream(NON_BLOCKING);
  unsigned char *block;
  uint64_t reserved;
  give(pool, take(pool, KIB, NULL), NULL);
  block = take(pool, 80 * MIB, once);
  write_block(block, 80 * MIB, 1, once);
  give(pool, block, once);
  STREAM(synchronize(once));
  reserved = pool_stats_now(pool).reserved_bytes;
  block = take(pool, 80 * MIB, NULL);
  CHECK(pool_stats_now(pool).reserved_bytes == reserved || !reuses_at_once());
  give(pool, block, NULL);
  end_pool(pool);
  STREAM(destroy(once));
}

/* A request beyond the limit during a capture is refused, gives nothing back, and leaves the capture as it
 * is. */
static void r23_running_out_leaves_a_capture_alone(void) {
  int mode;
  for (mode = 0; mode < CAPTURE_MODES; mode++) {
    luma_pool_t *pool = pool_of(32 * MIB);
    stream_t stream = new_stream(NON_BLOCKING);
    graph_t graph = NULL;
    uint64_t frees, asked;
    int status;
    give(pool, take(pool, 16 * MIB, NULL), NULL);
    STREAM(synchronize_all());
    frees = driver_frees();
    asked = queries();
    STREAM(begin_capture(stream, mode));
    REFUSED(luma_pool_alloc(pool, 40 * MIB, 0, stream), LUMA_ERROR_OUT_OF_MEMORY, "out of memory");
    CHECK(driver_frees() == frees && queries() == asked);
    STREAM(is_capturing(stream, &status));
    CHECK(status == CAPTURING);
    STREAM(end_capture(stream, &graph));
    CHECK(graph != NULL);
    STREAM(graph_destroy(graph));
    end_pool(pool);
    STREAM(destroy(stream));
  }
}

/* A pool of the program's own puts its frees off no longer than the streams need. */
static void r24_a_pool_of_ones_own_reuses(void) {
  luma_pool_t *pool = pool_of(8 * MIB);
  stream_t own = new_stream(NON_BLOCKING), user = new_stream(NON_BLOCKING);
  int round;
  for (round = 0; round < 10; round++) {
    unsigned char *block = take(pool, 8 * MIB, own);
    write_block(block, 8 * MIB, 1, own);
    STREAM(synchronize(own));
    write_block(block, 8 * MIB, 2, user);
    give(pool, block, user);
    STREAM(synchronize(user));
  }
  CHECK(pool_stats_now(pool).cuda_malloc_calls <= 2 || !reuses_at_once());
  end_pool(pool);
  STREAM(destroy(own));
  STREAM(destroy(user));
}

static void *empties_the_cache(void *user) {
  shared_t *shared = (shared_t *)user;
  DRIVER(set_current(shared->context));
  atomic_store(&shared->is_taken, 1);
  (void)luma_pool_empty_cache(shared->pool);
  atomic_store(&shared->is_full, 1);
  return NULL;
}

/* One thread empties the cache, and the driver may make it wait for the device; another, on which the
 * device's work depends, goes on. */
static void r25_giving_back_stops_no_launch(void) {
  luma_pool_t *pool = pool_of(0);
  shared_t shared = {current_context(), pool, new_stream(NON_BLOCKING), NULL, 0, 0};
  stream_t other = new_stream(NON_BLOCKING);
  /* Beside it is room that is not given back. */
  unsigned char *kept = take(pool, 64 * KIB, other);
  pthread_t thread;
  gate_t gate;
  int round;
  give(pool, take(pool, 16 * MIB, other), other);
  give(pool, take(pool, 4 * MIB, shared.stream), shared.stream);
  STREAM(synchronize_all());
  close_gate(&gate, shared.stream);
  CHECK(pthread_create(&thread, NULL, empties_the_cache, &shared) == 0);
  while (!atomic_load(&shared.is_taken)) {
    sleep_ms(1);
  }
  for (round = 0; round < 20; round++) {
    /* It need not grow: a request that does is the driver's to keep waiting. */
    give(pool, take(pool, 64 * KIB, other), other);
    (void)pool_stats_now(pool);
    sleep_ms(1);
  }
  open_gate(&gate);
  CHECK(pthread_join(thread, NULL) == 0);
  give(pool, kept, other);
  end_pool(pool);
  STREAM(destroy(other));
  STREAM(destroy(shared.stream));
}

static void frees_in_order(void *user) {
  shared_t *shared = (shared_t *)user;
  OK(luma_free_async(shared->block, shared->stream));
  atomic_store(&shared->is_taken, 1);
}

static void frees_plainly(void *user) {
  shared_t *shared = (shared_t *)user;
  OK(luma_free(shared->block));
  atomic_store(&shared->is_taken, 1);
}

/* A host function may not call the driver, yet it may free. */
static void r26_a_host_function_frees(void) {
  static void (*const functions[])(void *) = {frees_in_order, frees_plainly};
  int is_named, which;
  for (which = 0; which < 2; which++) {
    for (is_named = 0; is_named < 2; is_named++) {
      stream_t stream = new_stream(NON_BLOCKING), user = new_stream(NON_BLOCKING);
      shared_t shared = {NULL, NULL, stream, must_alloc_async(4 * MIB, stream), 0, 0};
      unsigned char *other;
      write_block(shared.block, 4 * MIB, 1, stream);
      if (is_named) {
        write_block(shared.block, 4 * MIB, 1, user);
        OK(luma_record_stream(shared.block, user));
      }
      STREAM(host_function(stream, functions[which], &shared));
      STREAM(synchronize(stream));
      CHECK(atomic_load(&shared.is_taken));
      FAILS(luma_free(shared.block), LUMA_ERROR_INVALID_POINTER, "free already");
      other = must_alloc_async(4 * MIB, user);
      OK(luma_free_async(other, user));
      STREAM(synchronize_all());
      (void)luma_empty_cache();
      CHECK(stats_now().pending_bytes == 0 && stats_now().live_blocks == 0);
      CHECK(stats_now().reserved_bytes == 0);
      OK(luma_check());
      STREAM(destroy(stream));
      STREAM(destroy(user));
    }
  }
}

/* Neither an emptied cache nor a request that cannot be served takes memory from under queued work. */
static void r27_memory_under_work_is_not_given_back(void) {
  int is_alone;
  for (is_alone = 0; is_alone < 2; is_alone++) {
    luma_pool_t *pool = pool_of(32 * MIB);
    stream_t stream = new_stream(NON_BLOCKING);
    unsigned char *block = take(pool, 16 * MIB, stream);
    seen_t seen;
    gate_t gate;
    opener_t opener;
    new_seen(&seen);
    if (!is_alone) {
      give(pool, take(pool, KIB, NULL), NULL);
    }
    close_gate(&gate, stream);
    write_block(block, 16 * MIB, 1, stream);
    queue_look(&seen, block, 16 * MIB, 1, stream);
    give(pool, block, stream);
    /* Longer than a request waits. */
    open_later(&opener, &gate, 8 * MAIN_OPENS_AFTER_MS);
    REFUSED(luma_pool_alloc(pool, 40 * MIB, 0, NULL), LUMA_ERROR_OUT_OF_MEMORY, "out of memory");
    (void)luma_pool_empty_cache(pool);
    CHECK(atomic_load(&seen.is_done) || pool_stats_now(pool).reserved_bytes >= 16 * MIB);
    opened(&opener);
    STREAM(synchronize(stream));
    CHECK(atomic_load(&seen.is_done));
    end_pool(pool);
    end_seen(&seen);
    STREAM(destroy(stream));
  }
}

int main(void) {
  wait_shortly();
  start_streams();
  RUN(r16_a_block_is_freed_after_others_ran_out());
  RUN(r17_a_named_stream_is_destroyed());
  RUN(r18_named_blocks_do_not_pile_up());
  RUN(r19_one_pending_block_is_enough());
  RUN(r20_streams_do_not_wait_for_each_other());
  RUN(r21_fragments_of_a_gone_stream_are_used());
  RUN(r22_a_stream_used_once_keeps_nothing());
  RUN(r23_running_out_leaves_a_capture_alone());
  RUN(r24_a_pool_of_ones_own_reuses());
  RUN(r25_giving_back_stops_no_launch());
  RUN(r26_a_host_function_frees());
  RUN(r27_memory_under_work_is_not_given_back());
  CHECK(stats_now().live_blocks == 0 && stats_now().reserved_bytes == 0);
  end_streams();
  return 0;
}
