/* The driver's own memory pools, and memory in the order of a stream. */
#include "suite.h"

static CUmemoryPool default_pool(void) {
  CUmemoryPool pool = NULL;
  need_pools();
  OK(cu.DeviceGetDefaultMemPool(&pool, 0));
  CHECK(pool != NULL);
  return pool;
}

static CUmemPoolProps device_props(void) {
  CUmemPoolProps props;
  memset(&props, 0, sizeof props);
  props.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  props.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  props.location.id = 0;
  return props;
}

static CUmemoryPool must_create(void) {
  need_pools();
  CUmemPoolProps props = device_props();
  CUmemoryPool pool = NULL;
  OK(cu.MemPoolCreate(&pool, &props));
  CHECK(pool != NULL);
  return pool;
}

static cuuint64_t of_pool(CUmemoryPool pool, CUmemPool_attribute which) {
  cuuint64_t value = 0;
  OK(cu.MemPoolGetAttribute(pool, which, &value));
  return value;
}

static CUdeviceptr must_alloc_from(CUmemoryPool pool, size_t bytes, CUstream stream) {
  CUdeviceptr block = 0;
  OK(cu.MemAllocFromPoolAsync(&block, bytes, pool, stream));
  CHECK(block != 0);
  return block;
}

/* "By default, a device's current memory pool is its default memory pool." */
RULE(the_default_pool_is_current) {
  CUmemoryPool standard = default_pool(), current = NULL, again = NULL;
  OK(cu.DeviceGetMemPool(&current, 0));
  CHECK(current == standard);
  OK(cu.DeviceGetDefaultMemPool(&again, 0));
  CHECK(again == standard);
  CUdevice other = second_device();
  OK(cu.DeviceGetDefaultMemPool(&again, other));
  CHECK(again != standard);
  GIVES(cu.DeviceGetDefaultMemPool(&again, 99), CUDA_ERROR_INVALID_DEVICE);
}

/* "A device's default memory pool cannot be destroyed." */
RULE(the_default_pool_is_kept) { REFUSED(cu.MemPoolDestroy(default_pool())); }

/* "Destroying the current mempool of a device sets the default mempool of that device as the current
 * mempool." */
RULE(a_pool_can_be_made_current) {
  CUmemoryPool pool = must_create(), current = NULL;
  OK(cu.DeviceSetMemPool(0, pool));
  OK(cu.DeviceGetMemPool(&current, 0));
  CHECK(current == pool);
  CUstream stream = must_stream(CU_STREAM_NON_BLOCKING);
  CUdeviceptr block = 0;
  OK(cu.MemAllocAsync(&block, 4096, stream));
  OK(cu.StreamSynchronize(stream));
  CHECK(of_pool(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT) >= 4096);
  OK(cu.MemFreeAsync(block, stream));
  OK(cu.StreamSynchronize(stream));
  OK(cu.MemPoolDestroy(pool));
  OK(cu.DeviceGetMemPool(&current, 0));
  CHECK(current == default_pool());
  OK(cu.StreamDestroy(stream));
}

/* "The memory pool must be local to the specified device." */
RULE(a_pool_is_for_its_device) {
  CUmemoryPool pool = must_create();
  REFUSED(cu.DeviceSetMemPool(second_device(), pool));
  OK(cu.MemPoolDestroy(pool));
}

/* The threshold is zero by default; the reuse policies are enabled by default. */
RULE(attributes_have_their_defaults) {
  CUmemoryPool pool = must_create();
  SAME(of_pool(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD), 0);
  static const CUmemPool_attribute policies[] = {
      CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES, CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC,
      CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES};
  for (size_t at = 0; at < sizeof policies / sizeof policies[0]; at++) {
    int on = 7, off = 0;
    OK(cu.MemPoolGetAttribute(pool, policies[at], &on));
    SAME(on, 1);
    OK(cu.MemPoolSetAttribute(pool, policies[at], &off));
    OK(cu.MemPoolGetAttribute(pool, policies[at], &on));
    SAME(on, 0);
  }
  SAME(of_pool(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT), 0);
  SAME(of_pool(pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH), 0);
  OK(cu.MemPoolDestroy(pool));
}

/* "More than the release threshold bytes of memory [...] the allocator will try to release memory back
 * to the OS on the next call to stream, event or context synchronize." */
RULE(the_threshold_keeps_memory) {
  CUmemoryPool pool = must_create();
  CUstream stream = must_stream(CU_STREAM_NON_BLOCKING);
  cuuint64_t all = UINT64_MAX;
  OK(cu.MemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &all));
  SAME(of_pool(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD), all);
  CUdeviceptr block = must_alloc_from(pool, 8 * MIB, stream);
  OK(cu.MemFreeAsync(block, stream));
  OK(cu.StreamSynchronize(stream));
  CHECK(of_pool(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT) >= 8 * MIB);
  SAME(of_pool(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT), 0);
  /* "Releases memory back to the OS until the pool contains fewer than minBytesToKeep reserved bytes,
   * or there is no more memory that the allocator can safely release." */
  OK(cu.MemPoolTrimTo(pool, 0));
  SAME(of_pool(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT), 0);
  OK(cu.MemPoolDestroy(pool));
  OK(cu.StreamDestroy(stream));
}

/* With no threshold, memory is released by the next synchronisation. */
RULE(without_a_threshold_memory_is_released) {
  CUmemoryPool pool = must_create();
  CUstream stream = must_stream(CU_STREAM_NON_BLOCKING);
  CUdeviceptr block = must_alloc_from(pool, 8 * MIB, stream);
  OK(cu.StreamSynchronize(stream));
  OK(cu.MemFreeAsync(block, stream));
  OK(cu.StreamSynchronize(stream));
  CHECK(of_pool(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT) < 8 * MIB);
  OK(cu.MemPoolDestroy(pool));
  OK(cu.StreamDestroy(stream));
}

/* "If the pool has less than minBytesToKeep reserved, the TrimTo operation is a no-op. Otherwise the
 * pool will be guaranteed to have at least minBytesToKeep bytes reserved after the operation"; "The
 * allocator cannot release OS allocations that back outstanding asynchronous allocations." */
RULE(trimming_keeps_what_it_is_told) {
  CUmemoryPool pool = must_create();
  CUstream stream = must_stream(CU_STREAM_NON_BLOCKING);
  cuuint64_t all = UINT64_MAX;
  OK(cu.MemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &all));
  CUdeviceptr live = must_alloc_from(pool, 8 * MIB, stream);
  CUdeviceptr freed = must_alloc_from(pool, 40 * MIB, stream);
  OK(cu.MemsetD8Async(live, 6, 8 * MIB, stream));
  OK(cu.MemFreeAsync(freed, stream));
  OK(cu.StreamSynchronize(stream));
  cuuint64_t before = of_pool(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT);
  OK(cu.MemPoolTrimTo(pool, (size_t)before));
  SAME(of_pool(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT), before);
  OK(cu.MemPoolTrimTo(pool, 0));
  CHECK(of_pool(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT) >= 8 * MIB);
  must_hold(live, 6, 8 * MIB);
  OK(cu.MemFreeAsync(live, stream));
  OK(cu.StreamSynchronize(stream));
  OK(cu.MemPoolDestroy(pool));
  OK(cu.StreamDestroy(stream));
}

/* The high marks stay until they are reset; "it is illegal to set this attribute to a non-zero
 * value". */
RULE(high_marks_are_reset) {
  CUmemoryPool pool = must_create();
  CUstream stream = must_stream(CU_STREAM_NON_BLOCKING);
  cuuint64_t zero = 0, one = 1;
  CUdeviceptr block = must_alloc_from(pool, 8 * MIB, stream);
  OK(cu.MemFreeAsync(block, stream));
  OK(cu.StreamSynchronize(stream));
  OK(cu.MemPoolTrimTo(pool, 0));
  CHECK(of_pool(pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH) >= 8 * MIB);
  CHECK(of_pool(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH) >= 8 * MIB);
  OK(cu.MemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH, &zero));
  OK(cu.MemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH, &zero));
  CHECK(of_pool(pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH) < 8 * MIB);
  CHECK(of_pool(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH) < 8 * MIB);
  GIVES(cu.MemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH, &one),
        CUDA_ERROR_INVALID_VALUE);
  OK(cu.MemPoolDestroy(pool));
  OK(cu.StreamDestroy(stream));
}

/* The memory is there for work after the allocation in its stream, and is its own. */
RULE(stream_ordered_memory_is_memory) {
  need_pools();
  enum { COUNT = 8, BYTES = 100000 };
  CUstream stream = must_stream(CU_STREAM_NON_BLOCKING);
  CUdeviceptr blocks[COUNT];
  for (int at = 0; at < COUNT; at++) {
    OK(cu.MemAllocAsync(&blocks[at], BYTES, stream));
    SAME(blocks[at] % 256, 0);
    OK(cu.MemsetD8Async(blocks[at], (unsigned char)at, BYTES, stream));
  }
  OK(cu.StreamSynchronize(stream));
  for (int at = 0; at < COUNT; at++) {
    must_hold(blocks[at], (unsigned char)at, BYTES);
    OK(cu.MemFreeAsync(blocks[at], stream));
  }
  OK(cu.StreamSynchronize(stream));
  OK(cu.StreamDestroy(stream));
}

/* A free in a stream is for the work after it: the block can be allocated again at once in the same
 * stream, and work before the free still has it. */
RULE(freed_memory_is_reused_in_stream_order) {
  need_pools();
  enum { BYTES = 1 << 20 };
  gate_t gate;
  unsigned char *seen = must_alloc_host(2 * BYTES);
  CUstream stream = must_stream(CU_STREAM_NON_BLOCKING);
  CUdeviceptr first = 0, second = 0;
  OK(cu.MemAllocAsync(&first, BYTES, stream));
  OK(cu.StreamSynchronize(stream));
  gate_close(&gate, stream);
  OK(cu.MemsetD8Async(first, 1, BYTES, stream));
  OK(cu.MemcpyDtoHAsync(seen, first, BYTES, stream));
  OK(cu.MemFreeAsync(first, stream));
  OK(cu.MemAllocAsync(&second, BYTES, stream));
  OK(cu.MemsetD8Async(second, 2, BYTES, stream));
  OK(cu.MemcpyDtoHAsync(seen + BYTES, second, BYTES, stream));
  OK(cu.MemFreeAsync(second, stream));
  gate_open(&gate);
  OK(cu.StreamSynchronize(stream));
  CHECK(seen[0] == 1 && seen[BYTES - 1] == 1);
  CHECK(seen[BYTES] == 2 && seen[2 * BYTES - 1] == 2);
  OK(cu.MemFreeHost(seen));
  OK(cu.StreamDestroy(stream));
}

/* Memory freed in one stream is not given to another that is not ordered behind it. */
RULE(freed_memory_waits_for_its_stream) {
  need_pools();
  enum { BYTES = 1 << 20 };
  gate_t gate;
  unsigned char *seen = must_alloc_host(BYTES);
  CUstream one = must_stream(CU_STREAM_NON_BLOCKING), two = must_stream(CU_STREAM_NON_BLOCKING);
  CUdeviceptr first = 0, second = 0;
  OK(cu.MemAllocAsync(&first, BYTES, one));
  OK(cu.MemsetD8Async(first, 1, BYTES, one));
  OK(cu.StreamSynchronize(one));
  gate_close(&gate, one);
  OK(cu.MemcpyDtoHAsync(seen, first, BYTES, one));
  OK(cu.MemFreeAsync(first, one));
  OK(cu.MemAllocAsync(&second, BYTES, two));
  OK(cu.MemsetD8Async(second, 2, BYTES, two));
  /* The driver may order `two` behind the free, so `two` is not waited for while the gate is shut. */
  sleep_ms(20);
  gate_open(&gate);
  OK(cu.StreamSynchronize(one));
  OK(cu.StreamSynchronize(two));
  CHECK(seen[0] == 1 && seen[BYTES - 1] == 1);
  must_hold(second, 2, BYTES);
  OK(cu.MemFreeAsync(second, two));
  OK(cu.StreamSynchronize(two));
  OK(cu.MemFreeHost(seen));
  OK(cu.StreamDestroy(one));
  OK(cu.StreamDestroy(two));
}

/* cuMemFree frees stream-ordered memory, too. */
RULE(pool_memory_is_freed_at_once) {
  CUmemoryPool pool = must_create();
  CUstream stream = must_stream(CU_STREAM_NON_BLOCKING);
  CUdeviceptr block = must_alloc_from(pool, 4096, stream);
  OK(cu.StreamSynchronize(stream));
  OK(cu.MemFree(block));
  SAME(of_pool(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT), 0);
  OK(cu.MemPoolDestroy(pool));
  OK(cu.StreamDestroy(stream));
}

/* cuMemFreeAsync is for memory of pools and graphs, once. */
RULE(only_pool_memory_is_freed_by_a_stream) {
  need_pools();
  CUstream stream = must_stream(CU_STREAM_NON_BLOCKING);
  int on_stack = 0;
  GIVES(cu.MemFreeAsync((CUdeviceptr)(uintptr_t)&on_stack, stream), CUDA_ERROR_INVALID_VALUE);
  if (fakecuda_present()) {
    /* "Must have been returned by [...]" is all that the documentation says of these. */
    CUdeviceptr block = must_alloc(4096);
    GIVES(cu.MemFreeAsync(block, stream), CUDA_ERROR_INVALID_VALUE);
    OK(cu.MemFree(block));
    OK(cu.MemAllocAsync(&block, 4096, stream));
    OK(cu.MemFreeAsync(block, stream));
    GIVES(cu.MemFreeAsync(block, stream), CUDA_ERROR_INVALID_VALUE);
    OK(cu.StreamSynchronize(stream));
  }
  OK(cu.StreamDestroy(stream));
}

/* CUDA_ERROR_OUT_OF_MEMORY; "CUDA_ERROR_INVALID_CONTEXT (default stream specified with no current
 * context)". */
RULE(stream_ordered_refusals) {
  CUmemoryPool pool = default_pool();
  CUdeviceptr block = 0;
  size_t free_bytes = 0, total = 0;
  CUstream stream = must_stream(CU_STREAM_NON_BLOCKING);
  OK(cu.MemGetInfo(&free_bytes, &total));
  GIVES(cu.MemAllocAsync(&block, 2 * total, stream), CUDA_ERROR_OUT_OF_MEMORY);
  GIVES(cu.MemAllocFromPoolAsync(&block, 2 * total, pool, stream), CUDA_ERROR_OUT_OF_MEMORY);
  GIVES(cu.MemAllocAsync(NULL, 4096, stream), CUDA_ERROR_INVALID_VALUE);
  OK(cu.StreamDestroy(stream));
  CUcontext context = NULL;
  OK(cu.CtxPopCurrent(&context));
  GIVES(cu.MemAllocAsync(&block, 4096, NULL), CUDA_ERROR_INVALID_CONTEXT);
  OK(cu.CtxPushCurrent(context));
}

/* "Applications can control the maximum size of the pool." */
RULE(a_pool_has_a_most) {
  need_pools();
  CUmemPoolProps props = device_props();
  CUmemoryPool pool = NULL;
  props.maxSize = 64 * MIB;
  OK(cu.MemPoolCreate(&pool, &props));
  CUstream stream = must_stream(CU_STREAM_NON_BLOCKING);
  CUdeviceptr block = 0;
  /* "This value may be higher than what was initially passed [...] due to alignment." */
  GIVES(cu.MemAllocFromPoolAsync(&block, 1024 * MIB, pool, stream), CUDA_ERROR_OUT_OF_MEMORY);
  block = must_alloc_from(pool, 16 * MIB, stream);
  OK(cu.MemFreeAsync(block, stream));
  OK(cu.StreamSynchronize(stream));
  OK(cu.MemPoolDestroy(pool));
  OK(cu.StreamDestroy(stream));
}

/* "If any pointers obtained from this pool haven't been freed [...] the resources associated with the
 * pool will be released automatically once there are no more outstanding allocations." */
RULE(a_destroyed_pool_leaves_its_blocks) {
  CUmemoryPool pool = must_create();
  CUstream stream = must_stream(CU_STREAM_NON_BLOCKING);
  size_t during = 0, after = 0, total = 0;
  CUdeviceptr block = must_alloc_from(pool, 64 * MIB, stream);
  OK(cu.MemsetD8Async(block, 3, 64 * MIB, stream));
  OK(cu.MemPoolDestroy(pool));
  OK(cu.StreamSynchronize(stream));
  must_hold(block + 32 * MIB, 3, MIB);
  OK(cu.MemGetInfo(&during, &total));
  OK(cu.MemFreeAsync(block, stream));
  OK(cu.StreamSynchronize(stream));
  OK(cu.MemGetInfo(&after, &total));
  CHECK(after > during + 32 * MIB);
  OK(cu.StreamDestroy(stream));
}

/* "By default, the pool's memory will be accessible from the device it is allocated on"; other devices
 * are let in by cuMemPoolSetAccess. */
RULE(a_pool_s_access_is_set) {
  CUdevice other = second_device();
  int can = 0;
  OK(cu.DeviceCanAccessPeer(&can, other, 0));
  if (!can) suite_skip("no peer access");
  CUmemoryPool pool = must_create();
  CUmemLocation location;
  CUmemAccess_flags flags = CU_MEM_ACCESS_FLAGS_PROT_NONE;
  memset(&location, 0, sizeof location);
  location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  OK(cu.MemPoolGetAccess(&flags, pool, &location));
  SAME(flags, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
  location.id = other;
  OK(cu.MemPoolGetAccess(&flags, pool, &location));
  SAME(flags, CU_MEM_ACCESS_FLAGS_PROT_NONE);
  CUmemAccessDesc desc;
  memset(&desc, 0, sizeof desc);
  desc.location = location;
  desc.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  OK(cu.MemPoolSetAccess(pool, &desc, 1));
  OK(cu.MemPoolGetAccess(&flags, pool, &location));
  SAME(flags, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
  OK(cu.MemPoolDestroy(pool));
}
