/* What only the double has: failures on demand, counters, capacities, a look behind device addresses. On a
 * board each of these is skipped. */
#include "suite.h"

#include <signal.h>
#include <time.h>

enum { BYTES = 1 << 20 };

/* ---- Failures on demand ------------------------------------------------------------------------------------ */

RULE(the_kth_call_fails) {
  ONLY_ON_THE_DOUBLE();
  CUdeviceptr block = 0;
  uint64_t before = fakecuda_failed();
  SAME(fakecuda_fail("cuMemAlloc_v2", 2, CUDA_ERROR_OUT_OF_MEMORY, 1), FAKECUDA_OK);
  for (int call = 0; call < 5; call++) {
    CUresult code = cu.MemAlloc(&block, BYTES);
    SAME(code, call == 2 ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS);
    if (code == CUDA_SUCCESS) OK(cu.MemFree(block));
  }
  SAME(fakecuda_failed(), before + 1);
}

/* A call that is made to fail has done nothing. */
RULE(failed_calls_do_nothing) {
  ONLY_ON_THE_DOUBLE();
  CUdeviceptr block = must_alloc(BYTES);
  OK(cu.MemsetD8(block, 1, BYTES));
  OK(cu.CtxSynchronize());
  uint64_t used = fakecuda_used(0), live = fakecuda_live(FAKECUDA_LIVE_ALLOCATIONS);
  fakecuda_fail("*", 0, CUDA_ERROR_UNKNOWN, UINT64_MAX);
  CUdeviceptr other = 0;
  CUstream stream = NULL;
  GIVES(cu.MemAlloc(&other, BYTES), CUDA_ERROR_UNKNOWN);
  GIVES(cu.MemFree(block), CUDA_ERROR_UNKNOWN);
  GIVES(cu.MemsetD8(block, 2, BYTES), CUDA_ERROR_UNKNOWN);
  GIVES(cu.StreamCreate(&stream, 0), CUDA_ERROR_UNKNOWN);
  SAME(fakecuda_fail_clear(), FAKECUDA_OK);
  SAME(fakecuda_used(0), used);
  SAME(fakecuda_live(FAKECUDA_LIVE_ALLOCATIONS), live);
  must_hold(block, 1, BYTES);
  OK(cu.MemFree(block));
}

RULE(wishes_are_checked) {
  ONLY_ON_THE_DOUBLE();
  SAME(fakecuda_fail("cuNoSuchFunction", 0, CUDA_ERROR_UNKNOWN, 1), FAKECUDA_INVALID_VALUE);
  SAME(fakecuda_set_latency("cuNoSuchFunction", 1), FAKECUDA_INVALID_VALUE);
}

/* ---- Counters ------------------------------------------------------------------------------------------------ */

RULE(calls_are_counted) {
  ONLY_ON_THE_DOUBLE();
  uint64_t allocs = fakecuda_calls("cuMemAlloc_v2"), frees = fakecuda_calls("cuMemFree_v2");
  for (int call = 0; call < 3; call++) OK(cu.MemFree(must_alloc(BYTES)));
  CUdeviceptr block = 0;
  REFUSED(cu.MemAlloc(&block, 0));
  SAME(fakecuda_calls("cuMemAlloc_v2"), allocs + 4);
  SAME(fakecuda_calls("cuMemFree_v2"), frees + 3);
  SAME(fakecuda_calls("cuNoSuchFunction"), 0);
}

/* Of each kind of thing it is known how many there are: none is lost, none is counted twice. */
RULE(live_things_are_counted) {
  ONLY_ON_THE_DOUBLE();
  need_pools();
  need_virtual_memory();
  uint64_t before[FAKECUDA_LIVE_POOLS + 1];
  for (unsigned int kind = 0; kind <= FAKECUDA_LIVE_POOLS; kind++) before[kind] = fakecuda_live(kind);
  CUdeviceptr block = must_alloc(BYTES), managed = 0, reserved = 0;
  void *host = must_alloc_host(BYTES);
  OK(cu.MemAllocManaged(&managed, BYTES, CU_MEM_ATTACH_GLOBAL));
  SAME(fakecuda_live(FAKECUDA_LIVE_ALLOCATIONS), before[FAKECUDA_LIVE_ALLOCATIONS] + 3);
  CUmemAllocationProp prop;
  CUmemGenericAllocationHandle handle = 0;
  size_t bytes = 0;
  memset(&prop, 0, sizeof prop);
  prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  prop.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  OK(cu.MemGetAllocationGranularity(&bytes, &prop, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
  OK(cu.MemAddressReserve(&reserved, bytes, 0, 0, 0));
  OK(cu.MemCreate(&handle, bytes, &prop, 0));
  OK(cu.MemMap(reserved, bytes, 0, handle, 0));
  OK(cu.MemRelease(handle));
  SAME(fakecuda_live(FAKECUDA_LIVE_RESERVATIONS), before[FAKECUDA_LIVE_RESERVATIONS] + 1);
  SAME(fakecuda_live(FAKECUDA_LIVE_PHYSICAL), before[FAKECUDA_LIVE_PHYSICAL] + 1);
  SAME(fakecuda_live(FAKECUDA_LIVE_MAPPINGS), before[FAKECUDA_LIVE_MAPPINGS] + 1);
  CUstream stream = must_stream(0);
  CUevent event = must_event(0);
  CUcontext context = NULL;
  CUmemoryPool pool = NULL;
  CUmemPoolProps props;
  CUgraph graph = NULL;
  CUgraphExec exec = NULL;
  CUmodule module = NULL;
  memset(&props, 0, sizeof props);
  props.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  props.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  OK(cu.MemPoolCreate(&pool, &props));
  OK(cu.GraphCreate(&graph, 0));
  OK(cu.GraphInstantiateWithFlags(&exec, graph, 0));
  OK(cu.ModuleLoadData(&module, ".version 6.0\n.target sm_50\n.address_size 64\n"
                                ".visible .entry nothing()\n{\n  ret;\n}\n"));
  OK(cu.CtxCreate(&context, NULL, 0, 0));
  for (unsigned int kind = FAKECUDA_LIVE_STREAMS; kind <= FAKECUDA_LIVE_POOLS; kind++)
    if (fakecuda_live(kind) != before[kind] + 1)
      suite_fail(__FILE__, __LINE__, "of kind %u there are %llu, not %llu", kind,
                 (unsigned long long)fakecuda_live(kind), (unsigned long long)before[kind] + 1);
  OK(cu.CtxDestroy(context));
  OK(cu.ModuleUnload(module));
  OK(cu.GraphExecDestroy(exec));
  OK(cu.GraphDestroy(graph));
  OK(cu.MemPoolDestroy(pool));
  OK(cu.EventDestroy(event));
  OK(cu.StreamDestroy(stream));
  OK(cu.MemUnmap(reserved, bytes));
  OK(cu.MemAddressFree(reserved, bytes));
  OK(cu.MemFreeHost(host));
  OK(cu.MemFree(managed));
  OK(cu.MemFree(block));
  for (unsigned int kind = 0; kind <= FAKECUDA_LIVE_POOLS; kind++)
    if (fakecuda_live(kind) != before[kind])
      suite_fail(__FILE__, __LINE__, "of kind %u there are %llu, not %llu", kind,
                 (unsigned long long)fakecuda_live(kind), (unsigned long long)before[kind]);
}

/* ---- Memory ---------------------------------------------------------------------------------------------------- */

/* What is used is what cuMemGetInfo leaves, to the byte, and nothing at the end. */
RULE(memory_is_counted_exactly) {
  ONLY_ON_THE_DOUBLE();
  size_t free_bytes = 0, total = 0;
  uint64_t before = fakecuda_used(0);
  CUdeviceptr block = must_alloc(40 * MIB);
  CHECK(fakecuda_used(0) >= before + 40 * MIB);
  CHECK(fakecuda_peak(0) >= fakecuda_used(0));
  OK(cu.MemGetInfo(&free_bytes, &total));
  SAME(total, fakecuda_capacity(0));
  SAME(free_bytes, fakecuda_capacity(0) - fakecuda_used(0));
  OK(cu.MemFree(block));
  SAME(fakecuda_used(0), before);
  CHECK(fakecuda_peak(0) >= before + 40 * MIB);
}

/* The capacity is set at any time; below what is used, nothing is free, and nothing breaks. */
RULE(the_capacity_is_set) {
  ONLY_ON_THE_DOUBLE();
  size_t free_bytes = 7, total = 0;
  CUdeviceptr block = must_alloc(40 * MIB), other = 0;
  SAME(fakecuda_set_capacity(0, 64 * MIB), FAKECUDA_OK);
  GIVES(cu.MemAlloc(&other, 40 * MIB), CUDA_ERROR_OUT_OF_MEMORY);
  OK(cu.MemAlloc(&other, 10 * MIB));
  OK(cu.MemFree(other));
  SAME(fakecuda_set_capacity(0, 16 * MIB), FAKECUDA_OK);
  OK(cu.MemGetInfo(&free_bytes, &total));
  SAME(free_bytes, 0);
  GIVES(cu.MemAlloc(&other, 512), CUDA_ERROR_OUT_OF_MEMORY);
  OK(cu.MemFree(block));
  block = must_alloc(512);
  OK(cu.MemFree(block));
  SAME(fakecuda_set_capacity(99, MIB), FAKECUDA_INVALID_DEVICE);
}

/* The bytes behind a device address. */
RULE(the_host_can_look_behind_addresses) {
  ONLY_ON_THE_DOUBLE();
  CUdeviceptr block = must_alloc(BYTES);
  OK(cu.MemsetD8(block, 5, BYTES));
  OK(cu.CtxSynchronize());
  unsigned char *bytes = fakecuda_host_pointer(block + 100);
  CHECK(bytes != NULL);
  CHECK(bytes[0] == 5 && bytes[BYTES - 101] == 5);
  bytes[0] = 6;
  must_hold(block + 100, 6, 1);
  OK(cu.MemFree(block));
  int on_stack = 0;
  CHECK(fakecuda_host_pointer((unsigned long long)(uintptr_t)&on_stack) == NULL);
}

/* Freed memory does not come back as it was. */
RULE(freed_memory_is_poisoned) {
  ONLY_ON_THE_DOUBLE();
  static const size_t sizes[] = {100, 4096, 300000, 4 * MIB};
  for (size_t at = 0; at < sizeof sizes / sizeof sizes[0]; at++) {
    CUdeviceptr block = must_alloc(sizes[at]);
    OK(cu.MemsetD8(block, 0x11, sizes[at]));
    OK(cu.MemFree(block));
    CUdeviceptr next = must_alloc(sizes[at]);
    unsigned char byte = 0x11;
    OK(cu.MemcpyDtoH(&byte, next + sizes[at] / 2, 1));
    CHECK(byte != 0x11);
    OK(cu.MemFree(next));
  }
}

/* ---- Time ------------------------------------------------------------------------------------------------------- */

static double milliseconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

RULE(calls_take_the_time_that_is_set) {
  ONLY_ON_THE_DOUBLE();
  SAME(fakecuda_set_latency("cuMemAlloc_v2", 20000000), FAKECUDA_OK);
  double start = milliseconds();
  OK(cu.MemFree(must_alloc(BYTES)));
  CHECK(milliseconds() - start >= 19);
  SAME(fakecuda_set_latency("cuMemAlloc_v2", 0), FAKECUDA_OK);
}

/* ---- Strict mode --------------------------------------------------------------------------------------------------- */

static void touches(void *argument) {
  CUdeviceptr at = *(CUdeviceptr *)argument;
  *(volatile unsigned char *)(uintptr_t)at = 1;
}

static void must_not_be_touched(CUdeviceptr at) {
  SAME(in_a_child(touches, &at), 128 + SIGSEGV);
}

/* In the strict mode the host cannot reach device memory by its address, of whatever origin; pinned and
 * managed memory it can. */
RULE(the_host_may_not_touch_device_memory) {
  ONLY_ON_THE_DOUBLE();
  if (!suite_is_strict()) suite_skip("not in the strict mode");
  need_pools();
  CUdeviceptr block = must_alloc(BYTES), ordered = 0, managed = 0;
  unsigned char *host = must_alloc_host(BYTES);
  must_not_be_touched(block);
  must_not_be_touched(block + BYTES - 1);
  OK(cu.MemAllocAsync(&ordered, BYTES, NULL));
  OK(cu.StreamSynchronize(NULL));
  must_not_be_touched(ordered);
  OK(cu.MemAllocManaged(&managed, BYTES, CU_MEM_ATTACH_GLOBAL));
  *(volatile unsigned char *)(uintptr_t)managed = 1;
  host[BYTES - 1] = 1;
  OK(cu.MemFree(block));
  must_not_be_touched(block);
  OK(cu.MemFreeAsync(ordered, NULL));
  OK(cu.StreamSynchronize(NULL));
  OK(cu.MemFree(managed));
  OK(cu.MemFreeHost(host));
}

/* ---- Lazy mode ---------------------------------------------------------------------------------------------------- */

static void CUDA_CB marks(void *argument) { atomic_store((atomic_bool *)argument, true); }

/* In the lazy mode nothing runs before someone waits or asks. */
RULE(lazy_queues_run_when_asked) {
  ONLY_ON_THE_DOUBLE();
  if (!suite_is_lazy()) suite_skip("not in the lazy mode");
  atomic_bool ran = false;
  CUstream stream = must_stream(CU_STREAM_NON_BLOCKING);
  OK(cu.LaunchHostFunc(stream, marks, &ran));
  sleep_ms(30);
  CHECK(!atomic_load(&ran));
  OK(cu.StreamSynchronize(stream));
  CHECK(atomic_load(&ran));
  OK(cu.StreamDestroy(stream));
}

/* A missing event shows: the work of another stream has not run when this stream's is over. */
RULE(lazy_queues_show_missing_events) {
  ONLY_ON_THE_DOUBLE();
  if (!suite_is_lazy()) suite_skip("not in the lazy mode");
  CUstream one = must_stream(CU_STREAM_NON_BLOCKING), two = must_stream(CU_STREAM_NON_BLOCKING);
  CUdeviceptr block = must_alloc(BYTES);
  unsigned char *seen = must_alloc_host(BYTES);
  OK(cu.MemsetD8(block, 1, BYTES));
  OK(cu.CtxSynchronize());
  OK(cu.MemsetD8Async(block, 2, BYTES, one));
  OK(cu.MemcpyDtoHAsync(seen, block, BYTES, two));
  OK(cu.StreamSynchronize(two));
  SAME(seen[0], 1);
  OK(cu.StreamSynchronize(one));
  OK(cu.StreamDestroy(one));
  OK(cu.StreamDestroy(two));
  OK(cu.MemFree(block));
  OK(cu.MemFreeHost(seen));
}

/* ---- What it does not do ------------------------------------------------------------------------------------------ */

/* NVIDIA's own runtime asks for these; the double has no private interface. */
RULE(there_are_no_private_tables) {
  ONLY_ON_THE_DOUBLE();
  const void *table = &table;
  CUuuid id;
  memset(&id, 0x5a, sizeof id);
  GIVES(cu.GetExportTable(&table, &id), CUDA_ERROR_NOT_FOUND);
  CHECK(table == NULL);
}

RULE(it_says_what_it_supports) {
  ONLY_ON_THE_DOUBLE();
  SAME(fakecuda_supports("cuMemAlloc_v2"), 1);
  SAME(fakecuda_supports("cuGraphicsMapResources"), 0);
  SAME((unsigned int)fakecuda_supports("cuNoSuchFunction"), (unsigned int)FAKECUDA_ABSENT);
}
