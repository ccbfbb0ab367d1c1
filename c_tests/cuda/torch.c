/* The functions for PyTorch's pluggable allocator, called as PyTorch calls them: with the device and the stream
 * of the tensor, whatever is current, and without a look at what they answer. */
#include "streams.h"

#include <math.h>

#define BLOCK (3 * MIB)

enum { LOG_ERROR = 1 };

static char heard[4096];
static unsigned errors_heard;

static void hear(int level, const char *message, void *user) {
  (void)user;
  if (level == LOG_ERROR) {
    errors_heard++;
    snprintf(heard, sizeof heard, "%s", message);
  }
}

/* The call fails with this status, and what it says is in the thread's last message and in the log. */
#define TOLD(call, status, part) \
  do { \
    unsigned before_ = errors_heard; \
    (call); \
    CHECK(failed_with((status), (part))); \
    CHECK(errors_heard == before_ + 1 && strstr(heard, part) != NULL); \
  } while (0)

/* The call succeeds, and nothing is logged. */
#define QUIET(call) \
  do { \
    unsigned before_ = errors_heard; \
    (call); \
    CHECK(luma_last_status() == LUMA_SUCCESS && errors_heard == before_); \
  } while (0)

static unsigned char *new_tensor(size_t bytes, int device, stream_t stream) {
  void *block;
  QUIET(block = luma_torch_alloc((ptrdiff_t)bytes, device, stream));
  CHECK(block != NULL);
  return (unsigned char *)block;
}

static void drop_tensor(void *block, size_t bytes, int device, stream_t stream) {
  QUIET(luma_torch_free(block, (ptrdiff_t)bytes, device, stream));
}

static luma_pool_t *pool_on(int device) {
  luma_pool_t *pool = luma_default_pool(device);
  CHECK(pool != NULL);
  return pool;
}

static uint64_t live_on(int device) { return pool_stats_now(pool_on(device)).live_blocks; }

/* With no work left: nothing is live or pending, and all memory goes back. */
static void nothing_is_left_on(int device) {
  luma_stats_t stats;
  int attempt;
  STREAM(synchronize_all());
  /* The driver tells luma that a graph is gone when it likes to. */
  for (attempt = 0; attempt < 100; attempt++) {
    QUIET(luma_torch_empty_cache());
    stats = pool_stats_now(pool_on(device));
    if (stats.reserved_bytes == 0) {
      break;
    }
    sleep_ms(10);
  }
  OK(luma_pool_check(pool_on(device)));
  CHECK(stats.live_blocks == 0 && stats.reserved_bytes == 0 && stats.pending_bytes == 0);
  CHECK(stats.cuda_malloc_calls == stats.cuda_free_calls);
}

/* The very first call comes in the midst of a capture, which goes on. */
static void first_call_in_a_capture(void) {
  stream_t stream = new_stream(NON_BLOCKING);
  int status = NOT_CAPTURING;
  graph_t graph = NULL;
  unsigned char *block;
  STREAM(begin_capture(stream, CAPTURE_GLOBAL));
  block = new_tensor(BLOCK, 0, stream);
  write_block(block, BLOCK, 5, stream);
  STREAM(is_capturing(stream, &status));
  CHECK(status == CAPTURING);
  STREAM(end_capture(stream, &graph));
  CHECK(graph != NULL);
  STREAM(graph_destroy(graph));
  drop_tensor(block, BLOCK, 0, stream);
  STREAM(destroy(stream));
  nothing_is_left_on(0);
}

static void bad_arguments(int devices) {
  int on_the_stack = 0;
  luma_stats_t before;
  unsigned char *block = new_tensor(BLOCK, 0, NULL);
  before = pool_stats_now(pool_on(0));

  QUIET(CHECK(luma_torch_alloc(0, 0, NULL) == NULL));
  TOLD(CHECK(luma_torch_alloc(-1, 0, NULL) == NULL), LUMA_ERROR_INVALID_VALUE, "the size is -1 bytes");
  TOLD(CHECK(luma_torch_alloc(PTRDIFF_MIN, 0, NULL) == NULL), LUMA_ERROR_INVALID_VALUE, "the size is -");
  TOLD(CHECK(luma_torch_alloc(PTRDIFF_MAX, 0, NULL) == NULL), LUMA_ERROR_OUT_OF_MEMORY, "out of memory");
  TOLD(CHECK(luma_torch_alloc(1, devices, NULL) == NULL), LUMA_ERROR_NO_DEVICE, "device");
  TOLD(CHECK(luma_torch_alloc(1, -7, NULL) == NULL), LUMA_ERROR_NO_DEVICE, "device");

  QUIET(luma_torch_free(NULL, 0, 0, NULL));
  QUIET(luma_torch_free(NULL, -1, -1, NULL));
  TOLD(luma_torch_free(&on_the_stack, 4, 0, NULL), LUMA_ERROR_INVALID_POINTER, "not from this pool");
  TOLD(luma_torch_free(block + 256, 256, 0, NULL), LUMA_ERROR_INVALID_POINTER, "inside");
  QUIET(luma_torch_record_stream(NULL, NULL));
  TOLD(luma_torch_record_stream(&on_the_stack, NULL), LUMA_ERROR_INVALID_POINTER, "not from this pool");

  TOLD(luma_torch_set_memory_fraction(-0.1, 0), LUMA_ERROR_INVALID_VALUE, "the fraction is -0.1");
  TOLD(luma_torch_set_memory_fraction(1.5, 0), LUMA_ERROR_INVALID_VALUE, "the fraction is 1.5");
  TOLD(luma_torch_set_memory_fraction((double)NAN, 0), LUMA_ERROR_INVALID_VALUE, "NaN");
  TOLD(luma_torch_set_memory_fraction(0.5, devices), LUMA_ERROR_NO_DEVICE, "device");

  CHECK(pool_stats_now(pool_on(0)).live_blocks == before.live_blocks);
  drop_tensor(block, BLOCK, 0, NULL);
  TOLD(luma_torch_free(block, (ptrdiff_t)BLOCK, 0, NULL), LUMA_ERROR_INVALID_POINTER, "free already");
  nothing_is_left_on(0);
}

/* The device is the argument's, and what is current stays so. */
static void devices_and_contexts(int devices) {
  context_t home = current_context();
  int device, current;
  for (device = 0; device < devices; device++) {
    context_t primary = primary_context(device), own;
    DRIVER(context_create(&own, 0, device));
    DRIVER(pop(&own));
    for (current = 0; current < 4; current++) {
      context_t contexts[4];
      unsigned char *block;
      uint64_t before = live_on(device);
      contexts[0] = NULL;
      contexts[1] = home;
      contexts[2] = primary;
      contexts[3] = own;
      DRIVER(set_current(contexts[current]));
      block = new_tensor(BLOCK, device, NULL);
      CHECK(current_context() == contexts[current]);
      CHECK(live_on(device) == before + 1);
      DRIVER(set_current(primary));
      use(block, BLOCK, (unsigned char)(17 + device));
      DRIVER(set_current(contexts[(current + 1) % 4]));
      drop_tensor(block, BLOCK, device, NULL);
      CHECK(current_context() == contexts[(current + 1) % 4]);
      CHECK(live_on(device) == before);
    }
    DRIVER(set_current(primary));
    DRIVER(context_destroy(own));
    nothing_is_left_on(device);
  }
  DRIVER(set_current(home));
}

/* Memory that a stream freed serves that stream at once, and no other before its work is done; nor its own
 * while a stream that was named still uses it. */
static void streams_and_records(int device) {
  stream_t one = new_stream(NON_BLOCKING), two = new_stream(NON_BLOCKING);
  gate_t gate;
  unsigned char *block, *same, *other, *recorded;
  block = new_tensor(BLOCK, device, one);
  drop_tensor(new_tensor(BLOCK, device, two), BLOCK, device, two);
  close_gate(&gate, one);
  write_block(block, BLOCK, 1, one);
  drop_tensor(block, BLOCK, device, one);
  other = new_tensor(BLOCK, device, two);
  CHECK(!overlap(block, BLOCK, other, BLOCK));
  same = new_tensor(BLOCK, device, one);
  CHECK(same == block || !reuses_at_once());
  finish(&gate, one);

  recorded = new_tensor(BLOCK, device, one);
  QUIET(luma_torch_record_stream(recorded, two));
  close_gate(&gate, two);
  write_block(recorded, BLOCK, 2, two);
  drop_tensor(recorded, BLOCK, device, one);
  block = new_tensor(BLOCK, device, one);
  CHECK(!overlap(block, BLOCK, recorded, BLOCK));
  finish(&gate, two);

  drop_tensor(same, BLOCK, device, one);
  drop_tensor(block, BLOCK, device, one);
  drop_tensor(other, BLOCK, device, two);
  STREAM(synchronize_all());
  STREAM(destroy(one));
  STREAM(destroy(two));
  nothing_is_left_on(device);
}

/* What a capture allocated is its graph's, whether it was freed inside, later, or by another stream. */
static void captures(int device) {
  stream_t stream = new_stream(NON_BLOCKING), other = new_stream(NON_BLOCKING);
  unsigned char *before, *inside, *output, *later;
  graph_t graph = NULL;
  exec_t exec = NULL;
  int replay, status = NOT_CAPTURING;
  before = new_tensor(BLOCK, device, stream);
  STREAM(begin_capture(stream, CAPTURE_GLOBAL));
  inside = new_tensor(BLOCK, device, stream);
  write_block(inside, BLOCK, 3, stream);
  output = new_tensor(BLOCK, device, stream);
  STREAM(copy(address_of(output), address_of(inside), BLOCK, stream));
  drop_tensor(inside, BLOCK, device, stream);
  /* A tensor that is older than the capture dies in it. */
  drop_tensor(before, BLOCK, device, stream);
  STREAM(is_capturing(stream, &status));
  CHECK(status == CAPTURING);
  STREAM(end_capture(stream, &graph));
  CHECK(graph != NULL);
  STREAM(instantiate(&exec, graph, 0));
  STREAM(graph_destroy(graph));
  for (replay = 0; replay < 3; replay++) {
    later = new_tensor(BLOCK, device, other);
    CHECK(!overlap(later, BLOCK, inside, BLOCK) && !overlap(later, BLOCK, output, BLOCK));
    write_block(later, BLOCK, 9, other);
    STREAM(launch(exec, stream));
    must_hold(output, BLOCK, 3, stream);
    must_hold(later, BLOCK, 9, other);
    drop_tensor(later, BLOCK, device, other);
  }
  drop_tensor(output, BLOCK, device, stream);
  later = new_tensor(BLOCK, device, stream);
  CHECK(!overlap(later, BLOCK, output, BLOCK));
  drop_tensor(later, BLOCK, device, stream);
  STREAM(exec_destroy(exec));
  STREAM(synchronize_all());
  sleep_ms(1);

  /* A capture that broke: Python unwinds, and its tensors die. */
  STREAM(begin_capture(stream, CAPTURE_GLOBAL));
  inside = new_tensor(BLOCK, device, stream);
  CHECK(st.synchronize(stream) != 0);
  drop_tensor(inside, BLOCK, device, stream);
  CHECK(st.end_capture(stream, &graph) != 0);
  STREAM(destroy(stream));
  STREAM(destroy(other));
  STREAM(synchronize_all());
  sleep_ms(1);
  nothing_is_left_on(device);
}

/* ---- Every call of the driver fails once ----------------------------------------------------------------------- */

/* One round; 0: no call was left to fail. Nothing is lost, though nobody learns that a free failed. */
static int with_one_failure(int device, unsigned long long skip, int code) {
  context_t own = current_context();
  stream_t one = new_stream(NON_BLOCKING), two = new_stream(NON_BLOCKING);
  unsigned long long before = fakecuda_failed();
  unsigned char *kept = new_tensor(BLOCK, device, one), *other = new_tensor(BLOCK, device, two);
  void *block;
  CHECK(fakecuda_fail("*", skip, code, 1) == 0);
  block = luma_torch_alloc(7 * MIB, device, one);
  CHECK(block != NULL || fakecuda_failed() > before);
  luma_torch_record_stream(kept, two);
  luma_torch_free(kept, (ptrdiff_t)BLOCK, device, one);
  luma_torch_free(other, (ptrdiff_t)BLOCK, device, two);
  luma_torch_free(block, 7 * MIB, device, one);
  luma_torch_empty_cache();
  luma_torch_set_memory_fraction(1.0, device);
  (void)fakecuda_fail_clear();
  CHECK(current_context() == own);
  CHECK(live_on(device) == 0);
  STREAM(destroy(one));
  STREAM(destroy(two));
  nothing_is_left_on(device);
  return fakecuda_failed() > before;
}

static void failures(int device) {
  static const int codes[] = {999, 2, 400, 709};
  size_t code, count = reuses_at_once() ? sizeof codes / sizeof *codes : 1;
  for (code = 0; code < count; code++) {
    unsigned long long skip = 0;
    while (with_one_failure(device, skip, codes[code])) {
      skip++;
    }
    CHECK(skip >= 8);
  }
}

static void fractions(int device) {
  size_t total, free_bytes;
  unsigned char *block;
  DRIVER(memory_info(&free_bytes, &total));
  QUIET(luma_torch_set_memory_fraction(0.25, device));
  CHECK(pool_stats_now(pool_on(device)).memory_limit == total / 4);
  TOLD(CHECK(luma_torch_alloc((ptrdiff_t)(total / 2), device, NULL) == NULL), LUMA_ERROR_OUT_OF_MEMORY,
       "out of memory");
  block = new_tensor(total / 8, device, NULL);
  TOLD(luma_torch_set_memory_fraction(0.1, device), LUMA_ERROR_INVALID_VALUE, "limit");
  drop_tensor(block, total / 8, device, NULL);
  QUIET(luma_torch_set_memory_fraction(0.0, device));
  TOLD(CHECK(luma_torch_alloc(1, device, NULL) == NULL), LUMA_ERROR_OUT_OF_MEMORY, "limit");
  QUIET(luma_torch_set_memory_fraction(1.0, device));
  drop_tensor(new_tensor(total / 2, device, NULL), total / 2, device, NULL);
  nothing_is_left_on(device);
}

/* ---- After the driver has shut down: PyTorch's own statics free what they hold ---------------------------------- */

static stream_t last_stream;
static void *on_default_stream, *on_a_stream;

static void late(void) {
  size_t free_bytes, total;
  CHECK(cu.memory_info(&free_bytes, &total) == 4);
  drop_tensor(on_default_stream, BLOCK, 0, NULL);
  drop_tensor(on_a_stream, BLOCK, 0, last_stream);
  QUIET(luma_torch_empty_cache());
  TOLD(CHECK(luma_torch_alloc(100 * MIB, 0, last_stream) == NULL), LUMA_ERROR_DRIVER, "the process is ending");
  puts("ended");
}

int main(void) {
  int devices, device;
  CHECK(atexit(late) == 0);
  luma_set_log_callback(hear, NULL);
  start_streams();
  DRIVER(device_count(&devices));
  RUN(first_call_in_a_capture());
  RUN(bad_arguments(devices));
  RUN(devices_and_contexts(devices));
  for (device = devices - 1; device >= 0; device--) {
    DRIVER(set_current(primary_context(device)));
    RUN(streams_and_records(device));
    RUN(captures(device));
    RUN(fractions(device));
    if (fakecuda_present() && device == devices - 1) {
      RUN(failures(device));
    }
  }
  end_streams();
  last_stream = new_stream(NON_BLOCKING);
  on_default_stream = new_tensor(BLOCK, 0, NULL);
  on_a_stream = new_tensor(BLOCK, 0, last_stream);
  return 0;
}
