/* Many threads in the driver at once: "the driver API is thread-safe". */
#include "suite.h"

enum { THREADS = 6, ROUNDS = 60, BYTES = 20000 };

typedef struct {
  CUcontext context;
  unsigned char mark;
  atomic_bool *over;
} worker_t;

static void with_memory(const worker_t *worker) {
  CUdeviceptr block = must_alloc(BYTES), base = 0;
  size_t bytes = 0;
  OK(cu.MemsetD8(block, worker->mark, BYTES));
  OK(cu.MemGetAddressRange(&base, &bytes, block + BYTES / 2));
  SAME(base, block);
  SAME(bytes, BYTES);
  must_hold(block, worker->mark, BYTES);
  OK(cu.MemFree(block));
}

static void with_streams(const worker_t *worker) {
  CUstream one = must_stream(CU_STREAM_NON_BLOCKING), two = must_stream(CU_STREAM_DEFAULT);
  CUevent event = must_event(CU_EVENT_DISABLE_TIMING);
  CUdeviceptr block = must_alloc(BYTES);
  unsigned char *host = must_alloc_host(BYTES);
  OK(cu.MemsetD8Async(block, worker->mark, BYTES, one));
  OK(cu.EventRecord(event, one));
  OK(cu.StreamWaitEvent(two, event, 0));
  OK(cu.MemcpyDtoHAsync(host, block, BYTES, two));
  OK(cu.StreamDestroy(one));
  OK(cu.StreamSynchronize(two));
  CHECK(host[0] == worker->mark && host[BYTES - 1] == worker->mark);
  OK(cu.StreamDestroy(two));
  OK(cu.EventDestroy(event));
  OK(cu.MemFree(block));
  OK(cu.MemFreeHost(host));
}

static void with_virtual_memory(const worker_t *worker) {
  if (!attribute(CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED)) return;
  CUmemAllocationProp prop;
  CUmemAccessDesc desc;
  CUmemGenericAllocationHandle handle = 0;
  CUdeviceptr at = 0;
  size_t bytes = 0;
  memset(&prop, 0, sizeof prop);
  prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  prop.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  memset(&desc, 0, sizeof desc);
  desc.location = prop.location;
  desc.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  OK(cu.MemGetAllocationGranularity(&bytes, &prop, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
  OK(cu.MemAddressReserve(&at, bytes, 0, 0, 0));
  OK(cu.MemCreate(&handle, bytes, &prop, 0));
  OK(cu.MemMap(at, bytes, 0, handle, 0));
  OK(cu.MemRelease(handle));
  OK(cu.MemSetAccess(at, bytes, &desc, 1));
  OK(cu.MemsetD8(at, worker->mark, BYTES));
  must_hold(at, worker->mark, BYTES);
  OK(cu.MemUnmap(at, bytes));
  OK(cu.MemAddressFree(at, bytes));
}

static void with_pools(const worker_t *worker) {
  if (!attribute(CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED)) return;
  CUstream stream = must_stream(CU_STREAM_NON_BLOCKING);
  CUdeviceptr block = 0;
  OK(cu.MemAllocAsync(&block, BYTES, stream));
  OK(cu.MemsetD8Async(block, worker->mark, BYTES, stream));
  OK(cu.StreamSynchronize(stream));
  must_hold(block, worker->mark, BYTES);
  OK(cu.MemFreeAsync(block, stream));
  OK(cu.StreamDestroy(stream));
}

/* In this thread's mode, which does not care for what other threads do. */
static void with_a_capture(const worker_t *worker) {
  CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
  CUstream stream = must_stream(CU_STREAM_NON_BLOCKING);
  CUdeviceptr block = must_alloc(BYTES);
  CUgraph graph = NULL;
  CUgraphExec exec = NULL;
  OK(cu.ThreadExchangeStreamCaptureMode(&mode));
  OK(cu.StreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
  OK(cu.MemsetD8Async(block, worker->mark, BYTES, stream));
  OK(cu.StreamEndCapture(stream, &graph));
  OK(cu.GraphInstantiateWithFlags(&exec, graph, 0));
  OK(cu.GraphLaunch(exec, stream));
  OK(cu.GraphExecDestroy(exec));
  OK(cu.GraphDestroy(graph));
  OK(cu.StreamSynchronize(stream));
  OK(cu.ThreadExchangeStreamCaptureMode(&mode));
  must_hold(block, worker->mark, BYTES);
  OK(cu.StreamDestroy(stream));
  OK(cu.MemFree(block));
}

static void with_a_context(const worker_t *worker) {
  CUcontext context = NULL, current = NULL;
  OK(cu.CtxCreate(&context, NULL, 0, 0));
  CUdeviceptr block = must_alloc(BYTES);
  OK(cu.MemsetD8(block, worker->mark, BYTES));
  must_hold(block, worker->mark, BYTES);
  OK(cu.CtxDestroy(context));
  OK(cu.CtxGetCurrent(&current));
  CHECK(current == worker->context);
}

static void *works(void *argument) {
  worker_t *worker = argument;
  static void (*const kinds[])(const worker_t *) = {with_memory,   with_streams,   with_virtual_memory,
                                                    with_pools,    with_a_capture, with_a_context};
  OK(cu.CtxSetCurrent(worker->context));
  for (unsigned int round = 0; round < ROUNDS; round++) {
    /* Contexts are expensive on a board. */
    size_t kind = (round * 7 + worker->mark) % (round < 12 ? 6 : 5);
    kinds[kind](worker);
  }
  return NULL;
}

/* Asks while others change what is asked for. */
static void *looks_on(void *argument) {
  worker_t *worker = argument;
  OK(cu.CtxSetCurrent(worker->context));
  while (!atomic_load(worker->over)) {
    size_t free_bytes = 0, total = 0;
    unsigned int type = 0;
    OK(cu.MemGetInfo(&free_bytes, &total));
    CHECK(free_bytes <= total);
    cu.PointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, (CUdeviceptr)(uintptr_t)&type);
    /* Not the context, which would break the captures of the other threads. */
    OK(cu.StreamSynchronize(NULL));
  }
  return NULL;
}

RULE(threads_do_not_get_in_each_other_s_way) {
  pthread_t threads[THREADS], looker;
  worker_t workers[THREADS + 1];
  atomic_bool over = false;
  CUcontext context = NULL;
  OK(cu.CtxGetCurrent(&context));
  for (int at = 0; at <= THREADS; at++) workers[at] = (worker_t){context, (unsigned char)(at + 1), &over};
  CHECK(pthread_create(&looker, NULL, looks_on, &workers[THREADS]) == 0);
  for (int at = 0; at < THREADS; at++) CHECK(pthread_create(&threads[at], NULL, works, &workers[at]) == 0);
  for (int at = 0; at < THREADS; at++) CHECK(pthread_join(threads[at], NULL) == 0);
  atomic_store(&over, true);
  CHECK(pthread_join(looker, NULL) == 0);
  if (fakecuda_present()) {
    SAME(fakecuda_live(FAKECUDA_LIVE_ALLOCATIONS), 0);
    SAME(fakecuda_live(FAKECUDA_LIVE_STREAMS), 0);
    SAME(fakecuda_live(FAKECUDA_LIVE_EVENTS), 0);
    SAME(fakecuda_live(FAKECUDA_LIVE_GRAPHS), 0);
    SAME(fakecuda_live(FAKECUDA_LIVE_GRAPH_EXECS), 0);
    SAME(fakecuda_live(FAKECUDA_LIVE_PHYSICAL), 0);
    SAME(fakecuda_live(FAKECUDA_LIVE_RESERVATIONS), 0);
    SAME(fakecuda_live(FAKECUDA_LIVE_CONTEXTS), 1);
  }
}

typedef struct {
  CUcontext context;
  CUdeviceptr block;
} visitor_t;

static void leaves_work(void *argument) {
  visitor_t *visitor = argument;
  OK(cu.CtxSetCurrent(visitor->context));
  OK(cu.MemsetD8Async(visitor->block, 5, BYTES, CU_STREAM_PER_THREAD));
}

/* A thread that ends leaves its default stream's work, which is done all the same. */
RULE(threads_come_and_go) {
  visitor_t visitor = {NULL, must_alloc(BYTES)};
  OK(cu.CtxGetCurrent(&visitor.context));
  for (int round = 0; round < 100; round++) {
    OK(cu.MemsetD8(visitor.block, 0, BYTES));
    OK(cu.CtxSynchronize());
    on_a_thread(leaves_work, &visitor);
    OK(cu.CtxSynchronize());
    must_hold(visitor.block + BYTES - 1, 5, 1);
  }
  OK(cu.MemFree(visitor.block));
}

typedef struct {
  CUcontext context;
  CUstream stream;
  CUdeviceptr counter_block;
  atomic_int *count;
} sharer_t;

static void CUDA_CB counts(void *argument) { atomic_fetch_add((atomic_int *)argument, 1); }

static void *shares_a_stream(void *argument) {
  sharer_t *sharer = argument;
  OK(cu.CtxSetCurrent(sharer->context));
  for (int round = 0; round < ROUNDS; round++) {
    OK(cu.LaunchHostFunc(sharer->stream, counts, sharer->count));
    OK(cu.MemsetD8Async(sharer->counter_block, (unsigned char)round, BYTES, sharer->stream));
    if (round % 7 == 0) OK(cu.StreamSynchronize(sharer->stream));
  }
  OK(cu.StreamSynchronize(sharer->stream));
  return NULL;
}

/* One stream, and the default one, are used by any number of threads. */
RULE(threads_share_streams) {
  pthread_t threads[THREADS];
  atomic_int count = 0;
  CUstream stream = must_stream(CU_STREAM_DEFAULT);
  sharer_t sharer[2] = {{NULL, stream, must_alloc(BYTES), &count}, {NULL, NULL, must_alloc(BYTES), &count}};
  OK(cu.CtxGetCurrent(&sharer[0].context));
  sharer[1].context = sharer[0].context;
  for (int at = 0; at < THREADS; at++)
    CHECK(pthread_create(&threads[at], NULL, shares_a_stream, &sharer[at % 2]) == 0);
  for (int at = 0; at < THREADS; at++) CHECK(pthread_join(threads[at], NULL) == 0);
  SAME(atomic_load(&count), THREADS * ROUNDS);
  OK(cu.StreamDestroy(stream));
  OK(cu.MemFree(sharer[0].counter_block));
  OK(cu.MemFree(sharer[1].counter_block));
}
