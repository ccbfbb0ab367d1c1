/* What only the double does with memory: what fresh and freed memory holds, who can touch it, exact
 * counting, failures that leave nothing behind. */
#include "suite.h"

#include <setjmp.h>
#include <signal.h>

enum { FRESH = 0xcb, FREED = 0xdb };

static unsigned char *host(CUdeviceptr at) {
  unsigned char *bytes = fakecuda_host_pointer(at);
  CHECK(bytes != NULL);
  return bytes;
}

static sigjmp_buf touched_nothing;

static void on_fault(int signal) {
  (void)signal;
  siglongjmp(touched_nothing, 1);
}

/* Whether this program dies if it writes there. */
static bool is_out_of_reach(void *address) {
  struct sigaction action, before;
  memset(&action, 0, sizeof action);
  action.sa_handler = on_fault;
  CHECK(sigaction(SIGSEGV, &action, &before) == 0);
  bool faulted = sigsetjmp(touched_nothing, 1) != 0;
  if (!faulted) *(volatile unsigned char *)address = 1;
  CHECK(sigaction(SIGSEGV, &before, NULL) == 0);
  return faulted;
}

static CUdeviceptr as_pointer(void *address) { return (CUdeviceptr)(uintptr_t)address; }

static unsigned long long buffer_id(CUdeviceptr at) {
  unsigned long long id = 0;
  OK(cu.PointerGetAttribute(&id, CU_POINTER_ATTRIBUTE_BUFFER_ID, at));
  return id;
}

static bool all_are(const unsigned char *bytes, int value, size_t count) {
  for (size_t at = 0; at < count; at++)
    if (bytes[at] != value) return false;
  return true;
}

/* ---- What memory holds ------------------------------------------------------------------------ */

/* Nobody finds zeros, or what another block held. */
RULE(fresh_memory_holds_a_pattern) {
  ONLY_ON_THE_DOUBLE();
  static const size_t sizes[] = {1, 1000, 300000, MIB, 5 * MIB};
  for (size_t at = 0; at < sizeof sizes / sizeof sizes[0]; at++) {
    CUdeviceptr block = must_alloc(sizes[at]);
    CHECK(host(block)[0] == FRESH && host(block)[sizes[at] - 1] == FRESH);
    OK(cu.MemsetD8(block, 1, sizes[at]));
    OK(cu.MemFree(block));
    block = must_alloc(sizes[at]);
    CHECK(host(block)[0] == FRESH && host(block)[sizes[at] - 1] == FRESH);
    OK(cu.MemFree(block));
  }
  void *pinned = must_alloc_host(10000);
  CHECK(all_are(pinned, FRESH, 10000));
  OK(cu.MemFreeHost(pinned));
}

/* A freed block beside a live one keeps its pages; they do not hold what they held. */
RULE(freed_memory_holds_a_pattern) {
  ONLY_ON_THE_DOUBLE();
  CUdeviceptr neighbour = must_alloc(1000), block = must_alloc(10000);
  unsigned char *bytes = host(block);
  OK(cu.MemsetD8(block, 1, 10000));
  OK(cu.MemsetD8(neighbour, 2, 1000));
  OK(cu.MemFree(block));
  CHECK(all_are(bytes, FREED, 10000));
  must_hold(neighbour, 2, 1000);
  CHECK(fakecuda_host_pointer(block) == NULL);
  OK(cu.MemFree(neighbour));
}

/* The pattern comes in the order of the stream, not before. */
RULE(stream_ordered_memory_is_freed_in_order) {
  ONLY_ON_THE_DOUBLE();
  if (!attribute(CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED)) suite_skip("no memory pools");
  CUmemoryPool pool = NULL;
  cuuint64_t all = UINT64_MAX;
  OK(cu.DeviceGetDefaultMemPool(&pool, 0));
  OK(cu.MemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &all));
  gate_t gate;
  CUstream stream = must_stream(CU_STREAM_NON_BLOCKING);
  CUdeviceptr block = 0;
  OK(cu.MemAllocAsync(&block, 5000, stream));
  OK(cu.MemsetD8Async(block, 1, 5000, stream));
  OK(cu.StreamSynchronize(stream));
  unsigned char *bytes = host(block);
  gate_close(&gate, stream);
  OK(cu.MemFreeAsync(block, stream));
  gate_reach(&gate, stream);
  CHECK(all_are(bytes, 1, 5000));
  /* For work before the free it is still there. */
  CHECK(host(block) == bytes && host(block + 4999) == bytes + 4999);
  gate_open(&gate);
  OK(cu.StreamSynchronize(stream));
  CHECK(all_are(bytes, FREED, 5000));
  /* The segment stays with the pool, and the block is the next one's. */
  CUdeviceptr next = 0;
  OK(cu.MemAllocAsync(&next, 5000, stream));
  SAME(next, block);
  OK(cu.StreamSynchronize(stream));
  CHECK(all_are(bytes, FRESH, 5000));
  OK(cu.MemFreeAsync(next, stream));
  OK(cu.StreamSynchronize(stream));
  OK(cu.MemPoolTrimTo(pool, 0));
  SAME(fakecuda_used(0), 0);
  OK(cu.StreamDestroy(stream));
}

/* ---- Who can touch it ------------------------------------------------------------------------- */

/* A program that touches device memory dies in the strict mode, as it does on a board. Pinned and
 * managed memory are the host's in any mode. */
RULE(device_memory_is_not_the_host_s) {
  ONLY_ON_THE_DOUBLE();
  CUdeviceptr block = must_alloc(MIB), small = must_alloc(1000), managed = 0;
  void *pinned = must_alloc_host(1000);
  OK(cu.MemAllocManaged(&managed, 1000, CU_MEM_ATTACH_GLOBAL));
  CHECK(is_out_of_reach((void *)(uintptr_t)block) == suite_is_strict());
  CHECK(is_out_of_reach((void *)(uintptr_t)small) == suite_is_strict());
  CHECK(!is_out_of_reach(host(block)));
  CHECK(!is_out_of_reach(pinned));
  CHECK(!is_out_of_reach((void *)(uintptr_t)managed));
  must_hold(block, 1, 1);
  must_hold(as_pointer(pinned), 1, 1);
  must_hold(managed, 1, 1);
  OK(cu.MemFree(block));
  OK(cu.MemFree(small));
  OK(cu.MemFree(managed));
  OK(cu.MemFreeHost(pinned));
}

/* What was freed is nowhere. */
RULE(freed_pages_are_out_of_reach) {
  ONLY_ON_THE_DOUBLE();
  CUdeviceptr large = must_alloc(4 * MIB), small = must_alloc(1000), managed = 0;
  unsigned char *pinned = must_alloc_host(1000);
  OK(cu.MemAllocManaged(&managed, 1000, CU_MEM_ATTACH_GLOBAL));
  void *places[] = {host(large), host(small), pinned, host(managed)};
  enum { COUNT = sizeof places / sizeof places[0] };
  for (int at = 0; at < COUNT; at++) CHECK(!is_out_of_reach(places[at]));
  OK(cu.MemFree(large));
  OK(cu.MemFree(small));
  OK(cu.MemFree(managed));
  OK(cu.MemFreeHost(pinned));
  for (int at = 0; at < COUNT; at++) CHECK(is_out_of_reach(places[at]));
}

/* Copies and sets find out that an address is freed, or that a block ends. */
RULE(ranges_are_checked) {
  ONLY_ON_THE_DOUBLE();
  char bytes[64] = {0};
  CUdeviceptr block = must_alloc(1000), freed = must_alloc(1000);
  OK(cu.MemFree(freed));
  GIVES(cu.MemcpyHtoD(freed, bytes, 1), CUDA_ERROR_INVALID_VALUE);
  GIVES(cu.MemcpyDtoH(bytes, freed, 1), CUDA_ERROR_INVALID_VALUE);
  GIVES(cu.MemsetD8(freed, 0, 1), CUDA_ERROR_INVALID_VALUE);
  OK(cu.MemcpyHtoD(block + 936, bytes, 64));
  GIVES(cu.MemcpyHtoD(block + 937, bytes, 64), CUDA_ERROR_INVALID_VALUE);
  GIVES(cu.MemsetD8(block, 0, 1001), CUDA_ERROR_INVALID_VALUE);
  GIVES(cu.MemsetD8(block, 0, SIZE_MAX), CUDA_ERROR_INVALID_VALUE);
  OK(cu.MemFree(block));
}

/* Mapped memory may be for reading only, and a copy may go over neighbouring mappings. */
RULE(mappings_are_checked_one_by_one) {
  ONLY_ON_THE_DOUBLE();
  if (!attribute(CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED))
    suite_skip("no virtual memory");
  CUmemAllocationProp prop;
  memset(&prop, 0, sizeof prop);
  prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  prop.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  CUmemAccessDesc access;
  memset(&access, 0, sizeof access);
  access.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  size_t page = 0;
  OK(cu.MemGetAllocationGranularity(&page, &prop, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
  CUdeviceptr at = 0;
  CUmemGenericAllocationHandle handles[2] = {0, 0};
  OK(cu.MemAddressReserve(&at, 3 * page, 0, 0, 0));
  for (int part = 0; part < 2; part++) {
    OK(cu.MemCreate(&handles[part], page, &prop, 0));
    OK(cu.MemMap(at + (size_t)part * page, page, 0, handles[part], 0));
    OK(cu.MemRelease(handles[part]));
  }
  CHECK(is_out_of_reach(host(at)));
  access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  OK(cu.MemSetAccess(at, 2 * page, &access, 1));
  CHECK(host(at)[0] == FRESH && host(at + page)[page - 1] == FRESH);
  OK(cu.MemsetD8(at + page - 100, 3, 200));
  OK(cu.CtxSynchronize());
  GIVES(cu.MemsetD8(at + 2 * page - 100, 3, 200), CUDA_ERROR_INVALID_VALUE);
  access.flags = CU_MEM_ACCESS_FLAGS_PROT_READ;
  OK(cu.MemSetAccess(at + page, page, &access, 1));
  must_hold(at + page - 100, 3, 200);
  GIVES(cu.MemsetD8(at + page - 100, 4, 200), CUDA_ERROR_INVALID_VALUE);
  OK(cu.MemsetD8(at + page - 100, 4, 100));
  OK(cu.CtxSynchronize());
  unsigned char *bytes = host(at);
  OK(cu.MemUnmap(at, 2 * page));
  CHECK(is_out_of_reach(bytes));
  OK(cu.MemAddressFree(at, 3 * page));
  SAME(fakecuda_used(0), 0);
}

/* ---- Counting --------------------------------------------------------------------------------- */

/* Blocks take multiples of 512 bytes, from 1 MiB on of 2 MiB, and nothing else. */
RULE(memory_is_counted_exactly) {
  ONLY_ON_THE_DOUBLE();
  static const struct {
    size_t bytes, taken;
  } cases[] = {{1, 512},           {512, 512},          {513, 1024},         {MIB - 1, MIB},
               {MIB, 2 * MIB},     {2 * MIB, 2 * MIB},  {2 * MIB + 1, 4 * MIB}};
  SAME(fakecuda_used(0), 0);
  for (size_t at = 0; at < sizeof cases / sizeof cases[0]; at++) {
    size_t free_bytes = 0, total = 0;
    CUdeviceptr block = must_alloc(cases[at].bytes);
    SAME(fakecuda_used(0), cases[at].taken);
    OK(cu.MemGetInfo(&free_bytes, &total));
    SAME(free_bytes, total - cases[at].taken);
    OK(cu.MemFree(block));
    SAME(fakecuda_used(0), 0);
  }
  SAME(fakecuda_peak(0), 4 * MIB);
}

/* The last byte of a device can be had, and not one more. */
RULE(a_device_can_be_filled) {
  ONLY_ON_THE_DOUBLE();
  enum { BLOCKS = 8 };
  CUdeviceptr blocks[BLOCKS], more = 0;
  SAME(fakecuda_set_capacity(0, BLOCKS * 2 * MIB), FAKECUDA_OK);
  for (int at = 0; at < BLOCKS; at++) blocks[at] = must_alloc(2 * MIB);
  GIVES(cu.MemAlloc(&more, 1), CUDA_ERROR_OUT_OF_MEMORY);
  /* Less than what is in use: nothing is free, and freeing goes on. */
  SAME(fakecuda_set_capacity(0, 2 * MIB), FAKECUDA_OK);
  size_t free_bytes = 1, total = 0;
  OK(cu.MemGetInfo(&free_bytes, &total));
  SAME(free_bytes, 0);
  SAME(total, 2 * MIB);
  for (int at = 0; at < BLOCKS; at++) OK(cu.MemFree(blocks[at]));
  OK(cu.MemGetInfo(&free_bytes, &total));
  SAME(free_bytes, total);
}

/* Blocks of all sizes come and go, share pages or not, and keep what they hold to the last byte. */
RULE(blocks_keep_their_contents) {
  enum { BLOCKS = 200, ROUNDS = 4000, MOST = 600 * 1024 };
  static struct {
    CUdeviceptr at;
    size_t bytes;
  } blocks[BLOCKS];
  unsigned int random = 12345;
  for (int round = 0; round < ROUNDS; round++) {
    random = random * 1664525 + 1013904223;
    int place = (int)(random >> 16) % BLOCKS;
    unsigned char value = (unsigned char)place;
    if (blocks[place].at != 0) {
      must_hold(blocks[place].at, value, 1);
      must_hold(blocks[place].at + blocks[place].bytes - 1, value, 1);
      OK(cu.MemFree(blocks[place].at));
      blocks[place].at = 0;
    } else {
      blocks[place].bytes = 1 + (random >> 4) % MOST;
      blocks[place].at = must_alloc(blocks[place].bytes);
      OK(cu.MemsetD8(blocks[place].at, value, blocks[place].bytes));
    }
  }
  for (int place = 0; place < BLOCKS; place++) {
    if (blocks[place].at == 0) continue;
    must_hold(blocks[place].at, (unsigned char)place, blocks[place].bytes);
    OK(cu.MemFree(blocks[place].at));
  }
}

/* An address comes back, an identity does not. */
RULE(addresses_are_recycled) {
  ONLY_ON_THE_DOUBLE();
  static const size_t sizes[] = {1000, 200000, 3 * MIB};
  for (size_t at = 0; at < sizeof sizes / sizeof sizes[0]; at++) {
    CUdeviceptr first = must_alloc(sizes[at]);
    unsigned long long id = buffer_id(first);
    OK(cu.MemFree(first));
    CUdeviceptr second = must_alloc(sizes[at]);
    SAME(second, first);
    CHECK(buffer_id(second) != id);
    OK(cu.MemFree(second));
  }
}

/* What a stream waits for by an event is its own, and the pool need not grow; not if it is told to
 * leave events alone. */
RULE(a_pool_follows_events) {
  ONLY_ON_THE_DOUBLE();
  if (!attribute(CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED)) suite_skip("no memory pools");
  CUmemoryPool pool = NULL;
  int off = 0;
  OK(cu.DeviceGetDefaultMemPool(&pool, 0));
  CUstream one = must_stream(CU_STREAM_NON_BLOCKING), two = must_stream(CU_STREAM_NON_BLOCKING);
  CUevent event = must_event(CU_EVENT_DISABLE_TIMING);
  for (int follows = 1; follows >= 0; follows--) {
    gate_t gate;
    CUdeviceptr first = 0, second = 0, third = 0;
    OK(cu.MemAllocAsync(&first, 3 * MIB, one));
    gate_close(&gate, one);
    OK(cu.MemFreeAsync(first, one));
    OK(cu.MemAllocAsync(&second, 3 * MIB, two));
    CHECK(second != first);
    OK(cu.EventRecord(event, one));
    OK(cu.StreamWaitEvent(two, event, 0));
    OK(cu.MemAllocAsync(&third, 3 * MIB, two));
    CHECK((third == first) == (follows == 1));
    OK(cu.MemFreeAsync(second, two));
    OK(cu.MemFreeAsync(third, two));
    gate_open(&gate);
    OK(cu.StreamSynchronize(two));
    OK(cu.MemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES, &off));
  }
  OK(cu.EventDestroy(event));
  OK(cu.StreamDestroy(one));
  OK(cu.StreamDestroy(two));
}

/* A pool that may not look for itself takes a free as complete when the program has waited for it. */
RULE(a_pool_may_be_told_not_to_look) {
  ONLY_ON_THE_DOUBLE();
  if (!attribute(CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED)) suite_skip("no memory pools");
  CUmemoryPool pool = NULL;
  int off = 0;
  cuuint64_t all = UINT64_MAX;
  OK(cu.DeviceGetDefaultMemPool(&pool, 0));
  OK(cu.MemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &all));
  OK(cu.MemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC, &off));
  CUstream one = must_stream(CU_STREAM_NON_BLOCKING), two = must_stream(CU_STREAM_NON_BLOCKING);
  CUevent event = must_event(CU_EVENT_DISABLE_TIMING);
  CUdeviceptr first = 0, second = 0, third = 0;
  OK(cu.MemAllocAsync(&first, 3 * MIB, one));
  OK(cu.MemFreeAsync(first, one));
  OK(cu.EventRecord(event, one));
  /* Complete, but nobody has waited. */
  while (cu.EventQuery(event) == CUDA_ERROR_NOT_READY) sleep_ms(1);
  OK(cu.MemAllocAsync(&second, 3 * MIB, two));
  CHECK(second != first);
  OK(cu.StreamSynchronize(one));
  OK(cu.MemAllocAsync(&third, 3 * MIB, two));
  SAME(third, first);
  OK(cu.MemFreeAsync(second, two));
  OK(cu.MemFreeAsync(third, two));
  OK(cu.StreamSynchronize(two));
  OK(cu.EventDestroy(event));
  OK(cu.StreamDestroy(one));
  OK(cu.StreamDestroy(two));
}

/* Full, a pool takes what another stream will free, and waits for it; not if it is told not to. */
RULE(a_full_pool_waits_for_frees) {
  ONLY_ON_THE_DOUBLE();
  if (!attribute(CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED)) suite_skip("no memory pools");
  CUmemoryPool pool = NULL;
  int off = 0;
  gate_t gate;
  SAME(fakecuda_set_capacity(0, 16 * MIB), FAKECUDA_OK);
  OK(cu.DeviceGetDefaultMemPool(&pool, 0));
  CUstream one = must_stream(CU_STREAM_NON_BLOCKING), two = must_stream(CU_STREAM_NON_BLOCKING);
  CUdeviceptr first = 0, second = 0;
  OK(cu.MemAllocAsync(&first, 12 * MIB, one));
  gate_close(&gate, one);
  OK(cu.MemFreeAsync(first, one));
  OK(cu.MemAllocAsync(&second, 12 * MIB, two));
  SAME(second, first);
  gate_reach(&gate, one);
  GIVES(cu.StreamQuery(two), CUDA_ERROR_NOT_READY);
  gate_open(&gate);
  OK(cu.StreamSynchronize(two));
  OK(cu.MemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES, &off));
  gate_close(&gate, two);
  OK(cu.MemFreeAsync(second, two));
  GIVES(cu.MemAllocAsync(&first, 12 * MIB, one), CUDA_ERROR_OUT_OF_MEMORY);
  gate_open(&gate);
  OK(cu.StreamSynchronize(two));
  SAME(fakecuda_used(0), 0);
  OK(cu.StreamDestroy(one));
  OK(cu.StreamDestroy(two));
}

/* A pool may be of host memory: the host's to touch, a device's only if it is let in, and nothing of a
 * device's capacity. */
RULE(pools_may_be_of_host_memory) {
  ONLY_ON_THE_DOUBLE();
  if (!attribute(CU_DEVICE_ATTRIBUTE_HOST_MEMORY_POOLS_SUPPORTED)) suite_skip("no host memory pools");
  CUmemPoolProps props;
  memset(&props, 0, sizeof props);
  props.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  props.location.type = CU_MEM_LOCATION_TYPE_HOST;
  CUmemoryPool pool = NULL;
  CUdeviceptr block = 0;
  OK(cu.MemPoolCreate(&pool, &props));
  OK(cu.MemAllocFromPoolAsync(&block, 10000, pool, NULL));
  OK(cu.CtxSynchronize());
  SAME(fakecuda_used(0), 0);
  unsigned char *bytes = (unsigned char *)(uintptr_t)block;
  CHECK(all_are(bytes, FRESH, 10000));
  unsigned int type = 0;
  OK(cu.PointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, block));
  SAME(type, CU_MEMORYTYPE_HOST);
  GIVES(cu.MemsetD8(block, 5, 10000), CUDA_ERROR_INVALID_VALUE);
  CUmemAccessDesc access;
  memset(&access, 0, sizeof access);
  access.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  OK(cu.MemPoolSetAccess(pool, &access, 1));
  OK(cu.MemsetD8(block, 5, 10000));
  OK(cu.CtxSynchronize());
  CHECK(all_are(bytes, 5, 10000));
  OK(cu.MemFreeAsync(block, NULL));
  OK(cu.MemPoolDestroy(pool));
  OK(cu.CtxSynchronize());
  CHECK(is_out_of_reach(bytes));
  SAME(fakecuda_live(FAKECUDA_LIVE_POOLS), 0);
}

/* ---- Failures and ends ------------------------------------------------------------------------ */

/* A call that is made to fail changes nothing. */
RULE(failed_calls_leave_nothing) {
  ONLY_ON_THE_DOUBLE();
  static const char *const names[] = {"cuMemAlloc_v2",     "cuMemAllocPitch_v2", "cuMemAllocHost_v2",
                                      "cuMemHostAlloc",    "cuMemAllocManaged",  "cuMemAllocAsync",
                                      "cuMemAddressReserve"};
  CUdeviceptr block = 0;
  size_t pitch = 0;
  void *pinned = NULL;
  for (size_t at = 0; at < sizeof names / sizeof names[0]; at++)
    SAME(fakecuda_fail(names[at], 0, CUDA_ERROR_OUT_OF_MEMORY, 1), FAKECUDA_OK);
  GIVES(cu.MemAlloc(&block, 1000), CUDA_ERROR_OUT_OF_MEMORY);
  GIVES(cu.MemAllocPitch(&block, &pitch, 100, 100, 4), CUDA_ERROR_OUT_OF_MEMORY);
  GIVES(cu.MemAllocHost(&pinned, 1000), CUDA_ERROR_OUT_OF_MEMORY);
  GIVES(cu.MemHostAlloc(&pinned, 1000, 0), CUDA_ERROR_OUT_OF_MEMORY);
  GIVES(cu.MemAllocManaged(&block, 1000, CU_MEM_ATTACH_GLOBAL), CUDA_ERROR_OUT_OF_MEMORY);
  GIVES(cu.MemAllocAsync(&block, 1000, NULL), CUDA_ERROR_OUT_OF_MEMORY);
  GIVES(cu.MemAddressReserve(&block, 4 * MIB, 0, 0, 0), CUDA_ERROR_OUT_OF_MEMORY);
  CHECK(block == 0 && pinned == NULL);
  SAME(fakecuda_failed(), sizeof names / sizeof names[0]);
  SAME(fakecuda_used(0), 0);
  SAME(fakecuda_live(FAKECUDA_LIVE_ALLOCATIONS), 0);
  SAME(fakecuda_live(FAKECUDA_LIVE_RESERVATIONS), 0);
  /* Each was to fail once. */
  OK(cu.MemAlloc(&block, 1000));
  OK(cu.MemFree(block));
}

/* Resetting a device takes all of its context's memory, and the old addresses are known no more. */
RULE(a_reset_takes_all_memory) {
  ONLY_ON_THE_DOUBLE();
  CUdeviceptr small = must_alloc(1000), large = must_alloc(3 * MIB), managed = 0;
  CUcontext context = NULL;
  char *registered = aligned_alloc(4096, 8192);
  OK(cu.MemAllocManaged(&managed, 1000, CU_MEM_ATTACH_GLOBAL));
  OK(cu.MemHostRegister(registered, 8192, 0));
  must_alloc_host(1000);
  SAME(fakecuda_live(FAKECUDA_LIVE_ALLOCATIONS), 5);
  OK(cu.DevicePrimaryCtxReset(0));
  SAME(fakecuda_live(FAKECUDA_LIVE_ALLOCATIONS), 0);
  SAME(fakecuda_used(0), 0);
  OK(cu.DevicePrimaryCtxRetain(&context, 0));
  OK(cu.CtxSetCurrent(context));
  GIVES(cu.MemFree(small), CUDA_ERROR_INVALID_VALUE);
  GIVES(cu.MemFree(large), CUDA_ERROR_INVALID_VALUE);
  GIVES(cu.MemFree(managed), CUDA_ERROR_INVALID_VALUE);
  GIVES(cu.MemHostUnregister(registered), CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
  free(registered);
}
