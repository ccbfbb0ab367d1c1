/* Random programs over many streams, checked against a plain model.
 *
 * The program keeps a vector clock for each stream: what is known to have run before its next operation.
 * Where an operation touches memory that another stream has touched without that being known, an event is
 * recorded and waited for; everything else is left to the driver. So every program is free of races, and
 * its outcome is that of running the operations one after another. */
#include "suite.h"

enum {
  LEGACY,
  BLOCKING,
  OTHER_BLOCKING,
  PER_THREAD,
  NON_BLOCKING,
  OTHER_NON_BLOCKING,
  STREAMS,
  DEVICE_BLOCKS = 6,
  HOST_BLOCKS = 3,
  BLOCKS = DEVICE_BLOCKS + HOST_BLOCKS,
  EVENTS = 8,
  BYTES = 1500,
  OPERATIONS = 300,
};

typedef struct {
  unsigned int known[STREAMS];
} clock_vector_t;

typedef struct {
  unsigned int writer, written; /* by which stream, as its how manyth operation */
  unsigned int read[STREAMS];   /* since then, by each stream */
} touched_t;

typedef struct program program_t;

typedef struct {
  program_t *program;
  unsigned int block;
  unsigned char value;
} host_write_t;

struct program {
  uint64_t random;
  bool pools;
  CUstream streams[STREAMS], capturing;
  unsigned int counts[STREAMS];
  clock_vector_t clocks[STREAMS];
  CUevent events[EVENTS];
  unsigned int next_event;
  CUdeviceptr blocks[BLOCKS];
  touched_t touched[BLOCKS];
  unsigned char model[BLOCKS][BYTES];
  host_write_t writes[OPERATIONS];
  unsigned int write_count;
};

static unsigned int below(program_t *program, unsigned int bound) {
  program->random = program->random * 6364136223846793005u + 1442695040888963407u;
  return (unsigned int)(program->random >> 33) % bound;
}

static bool is_blocking(unsigned int stream) { return stream > LEGACY && stream <= PER_THREAD; }

/* ---- What is known to run before what -------------------------------------------------------------------- */

static void learn(program_t *program, unsigned int stream, unsigned int from) {
  for (unsigned int other = 0; other < STREAMS; other++) {
    unsigned int known = program->clocks[from].known[other];
    if (program->clocks[stream].known[other] < known) program->clocks[stream].known[other] = known;
  }
}

/* The next operation of a stream, with what the legacy default stream implies. */
static void begin(program_t *program, unsigned int stream) {
  if (stream == LEGACY) {
    for (unsigned int other = 0; other < STREAMS; other++)
      if (is_blocking(other)) learn(program, LEGACY, other);
  } else if (is_blocking(stream)) {
    learn(program, stream, LEGACY);
  }
  program->clocks[stream].known[stream] = ++program->counts[stream];
}

/* Makes a stream wait for all that another has got so far. */
static void join(program_t *program, unsigned int stream, unsigned int other) {
  CUevent event = program->events[program->next_event++ % EVENTS];
  begin(program, other);
  OK(cu.EventRecord(event, program->streams[other]));
  OK(cu.StreamWaitEvent(program->streams[stream], event, 0));
  learn(program, stream, other);
}

static void behind(program_t *program, unsigned int stream, unsigned int other, unsigned int number) {
  if (stream != other && program->clocks[stream].known[other] < number) join(program, stream, other);
}

static void before_reading(program_t *program, unsigned int stream, unsigned int block) {
  behind(program, stream, program->touched[block].writer, program->touched[block].written);
}

static void before_writing(program_t *program, unsigned int stream, unsigned int block) {
  before_reading(program, stream, block);
  for (unsigned int other = 0; other < STREAMS; other++)
    behind(program, stream, other, program->touched[block].read[other]);
}

static void has_read(program_t *program, unsigned int stream, unsigned int block) {
  program->touched[block].read[stream] = program->counts[stream];
}

static void has_written(program_t *program, unsigned int stream, unsigned int block) {
  program->touched[block] = (touched_t){.writer = stream, .written = program->counts[stream]};
}

/* ---- Operations ------------------------------------------------------------------------------------------- */

static void sets(program_t *program, unsigned int stream) {
  unsigned int block = below(program, DEVICE_BLOCKS), from = below(program, BYTES);
  unsigned int bytes = 1 + below(program, BYTES - from);
  unsigned char value = (unsigned char)below(program, 256);
  before_writing(program, stream, block);
  begin(program, stream);
  OK(cu.MemsetD8Async(program->blocks[block] + from, value, bytes, program->streams[stream]));
  has_written(program, stream, block);
  memset(program->model[block] + from, value, bytes);
}

/* Between any two blocks, of the device or of the host. */
static void copies(program_t *program, unsigned int stream) {
  unsigned int to = below(program, BLOCKS), from = (to + 1 + below(program, BLOCKS - 1)) % BLOCKS;
  unsigned int at = below(program, BYTES), bytes = 1 + below(program, BYTES - at);
  before_writing(program, stream, to);
  before_reading(program, stream, from);
  begin(program, stream);
  OK(cu.MemcpyAsync(program->blocks[to] + at, program->blocks[from] + at, bytes,
                    program->streams[stream]));
  has_written(program, stream, to);
  has_read(program, stream, from);
  memcpy(program->model[to] + at, program->model[from] + at, bytes);
}

static void CUDA_CB writes_on_the_host(void *argument) {
  host_write_t *write = argument;
  memset((void *)(uintptr_t)write->program->blocks[write->block], write->value, BYTES / 2);
}

static void calls(program_t *program, unsigned int stream) {
  unsigned int block = DEVICE_BLOCKS + below(program, HOST_BLOCKS);
  host_write_t *write = &program->writes[program->write_count++];
  *write = (host_write_t){program, block, (unsigned char)below(program, 256)};
  before_writing(program, stream, block);
  begin(program, stream);
  OK(cu.LaunchHostFunc(program->streams[stream], writes_on_the_host, write));
  has_written(program, stream, block);
  memset(program->model[block], write->value, BYTES / 2);
}

/* Gives a block back in the stream's order, and takes another at once. */
static void reallocates(program_t *program, unsigned int stream) {
  if (!program->pools) return;
  unsigned int block = below(program, DEVICE_BLOCKS);
  unsigned char value = (unsigned char)below(program, 256);
  before_writing(program, stream, block);
  begin(program, stream);
  OK(cu.MemFreeAsync(program->blocks[block], program->streams[stream]));
  OK(cu.MemAllocAsync(&program->blocks[block], BYTES, program->streams[stream]));
  OK(cu.MemsetD8Async(program->blocks[block], value, BYTES, program->streams[stream]));
  has_written(program, stream, block);
  memset(program->model[block], value, BYTES);
}

/* A graph of a set and a copy, which is gone as soon as it was launched. */
static void launches(program_t *program, unsigned int stream) {
  unsigned int one = below(program, DEVICE_BLOCKS), two = (one + 1) % DEVICE_BLOCKS;
  unsigned char value = (unsigned char)below(program, 256);
  CUgraph graph = NULL;
  CUgraphExec exec = NULL;
  OK(cu.StreamBeginCapture(program->capturing, CU_STREAM_CAPTURE_MODE_RELAXED));
  OK(cu.MemsetD8Async(program->blocks[one], value, BYTES, program->capturing));
  OK(cu.MemcpyDtoDAsync(program->blocks[two], program->blocks[one], BYTES / 3, program->capturing));
  OK(cu.StreamEndCapture(program->capturing, &graph));
  OK(cu.GraphInstantiateWithFlags(&exec, graph, 0));
  OK(cu.GraphDestroy(graph));
  before_writing(program, stream, one);
  before_writing(program, stream, two);
  begin(program, stream);
  OK(cu.GraphLaunch(exec, program->streams[stream]));
  OK(cu.GraphExecDestroy(exec));
  has_written(program, stream, one);
  has_written(program, stream, two);
  memset(program->model[one], value, BYTES);
  memset(program->model[two], value, BYTES / 3);
}

/* A stream is destroyed with work in it; what comes after is made to wait for that. */
static void replaces(program_t *program, unsigned int stream) {
  if (stream == LEGACY || stream == PER_THREAD) return;
  for (unsigned int other = 0; other < STREAMS; other++)
    if (other != stream) join(program, other, stream);
  CUevent event = program->events[program->next_event++ % EVENTS];
  OK(cu.EventRecord(event, program->streams[stream]));
  OK(cu.StreamDestroy(program->streams[stream]));
  program->streams[stream] = must_stream(is_blocking(stream) ? CU_STREAM_DEFAULT : CU_STREAM_NON_BLOCKING);
  OK(cu.StreamWaitEvent(program->streams[stream], event, 0));
}

/* Waits for one stream, which need not bring the others on. */
static void waits(program_t *program, unsigned int stream) {
  OK(cu.StreamSynchronize(program->streams[stream]));
  for (unsigned int other = 0; other < STREAMS; other++) learn(program, other, stream);
}

static void asks(program_t *program, unsigned int stream) {
  GIVES_EITHER(cu.StreamQuery(program->streams[stream]), CUDA_SUCCESS, CUDA_ERROR_NOT_READY);
}

static void must_agree(program_t *program, uint64_t seed) {
  unsigned char found[BYTES];
  /* Not the context, in which another thread may be capturing. */
  for (unsigned int stream = 0; stream < STREAMS; stream++)
    OK(cu.StreamSynchronize(program->streams[stream]));
  for (unsigned int block = 0; block < BLOCKS; block++) {
    OK(cu.MemcpyDtoH(found, program->blocks[block], BYTES));
    for (size_t at = 0; at < BYTES; at++)
      if (found[at] != program->model[block][at])
        suite_fail(__FILE__, __LINE__, "seed %llu: byte %zu of block %u is 0x%02x, not 0x%02x",
                   (unsigned long long)seed, at, block, found[at], program->model[block][at]);
  }
  for (unsigned int stream = 0; stream < STREAMS; stream++)
    for (unsigned int other = 0; other < STREAMS; other++)
      program->clocks[stream].known[other] = program->counts[other];
}

static void runs(uint64_t seed) {
  static void (*const operations[])(program_t *, unsigned int) = {
      sets, sets, copies, copies, copies, calls, reallocates, launches, replaces, waits, asks};
  program_t *program = calloc(1, sizeof *program);
  CHECK(program != NULL);
  program->random = seed * 2654435761u + 1;
  program->pools = attribute(CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED);
  for (unsigned int stream = 0; stream < STREAMS; stream++)
    program->streams[stream] = stream == LEGACY       ? NULL
                               : stream == PER_THREAD ? CU_STREAM_PER_THREAD
                               : must_stream(is_blocking(stream) ? CU_STREAM_DEFAULT
                                                                 : CU_STREAM_NON_BLOCKING);
  program->capturing = must_stream(CU_STREAM_NON_BLOCKING);
  for (int event = 0; event < EVENTS; event++) program->events[event] = must_event(CU_EVENT_DISABLE_TIMING);
  for (unsigned int block = 0; block < BLOCKS; block++) {
    if (block >= DEVICE_BLOCKS)
      program->blocks[block] = (CUdeviceptr)(uintptr_t)must_alloc_host(BYTES);
    else if (program->pools)
      OK(cu.MemAllocAsync(&program->blocks[block], BYTES, NULL));
    else
      program->blocks[block] = must_alloc(BYTES);
    OK(cu.MemsetD8Async(program->blocks[block], 0, BYTES, NULL));
  }
  must_agree(program, seed);
  for (int operation = 0; operation < OPERATIONS; operation++) {
    unsigned int which = below(program, sizeof operations / sizeof operations[0]);
    operations[which](program, below(program, STREAMS));
    if (operation % 60 == 59) must_agree(program, seed);
  }
  for (unsigned int block = 0; block < BLOCKS; block++) {
    if (block >= DEVICE_BLOCKS)
      OK(cu.MemFreeHost((void *)(uintptr_t)program->blocks[block]));
    else
      OK(cu.MemFree(program->blocks[block]));
  }
  for (int event = 0; event < EVENTS; event++) OK(cu.EventDestroy(program->events[event]));
  for (unsigned int stream = 0; stream < STREAMS; stream++)
    if (stream != LEGACY && stream != PER_THREAD) OK(cu.StreamDestroy(program->streams[stream]));
  OK(cu.StreamDestroy(program->capturing));
  free(program);
}

RULE(random_programs_are_as_the_model) {
  for (uint64_t seed = 1; seed <= 12; seed++) runs(seed);
}

/* The model without its events is wrong now and then where queues run late: it is the events that make it
 * right. */
RULE(without_events_it_would_show) {
  ONLY_ON_THE_DOUBLE();
  if (!suite_is_lazy()) suite_skip("not in the lazy mode");
  CUstream one = must_stream(CU_STREAM_NON_BLOCKING), two = must_stream(CU_STREAM_NON_BLOCKING);
  CUdeviceptr block = must_alloc(BYTES);
  int wrong = 0;
  for (int round = 0; round < 20; round++) {
    unsigned char found = 0;
    OK(cu.MemsetD8Async(block, 1, BYTES, one));
    OK(cu.MemsetD8Async(block, 2, BYTES, two));
    OK(cu.CtxSynchronize());
    OK(cu.MemcpyDtoH(&found, block, 1));
    wrong += found != 2;
  }
  CHECK(wrong > 0 && wrong < 20);
  OK(cu.StreamDestroy(one));
  OK(cu.StreamDestroy(two));
  OK(cu.MemFree(block));
}

typedef struct {
  CUcontext context;
  uint64_t seed;
} thread_t;

static void *runs_on_a_thread(void *argument) {
  thread_t *thread = argument;
  OK(cu.CtxSetCurrent(thread->context));
  for (uint64_t round = 0; round < 3; round++) runs(thread->seed + round);
  return NULL;
}

/* Several at once, whose default streams get in each other's way. */
RULE(random_programs_at_once) {
  enum { THREADS = 4 };
  pthread_t threads[THREADS];
  thread_t given[THREADS];
  for (int at = 0; at < THREADS; at++) {
    given[at].seed = 100 * (uint64_t)(at + 1);
    OK(cu.CtxGetCurrent(&given[at].context));
    CHECK(pthread_create(&threads[at], NULL, runs_on_a_thread, &given[at]) == 0);
  }
  for (int at = 0; at < THREADS; at++) CHECK(pthread_join(threads[at], NULL) == 0);
}
