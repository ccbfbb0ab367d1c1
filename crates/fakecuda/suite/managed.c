/* Managed memory: advice and prefetching, which change where it lies and nothing else. */
#include "suite.h"

enum { BYTES = 1 << 20 };

static CUdeviceptr must_alloc_managed(void) {
  if (!attribute(CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY)) suite_skip("no managed memory");
  if (!attribute(CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS)) suite_skip("no prefetching");
  CUdeviceptr block = 0;
  OK(cu.MemAllocManaged(&block, BYTES, CU_MEM_ATTACH_GLOBAL));
  return block;
}

static CUmemLocation location_of(CUmemLocationType type, int id) {
  CUmemLocation location;
  memset(&location, 0, sizeof location);
  location.type = type;
  location.id = id;
  return location;
}

/* Prefetching is stream work that leaves contents alone. */
RULE(prefetching_keeps_contents) {
  CUdeviceptr block = must_alloc_managed();
  CUstream stream = must_stream(CU_STREAM_NON_BLOCKING);
  memset((void *)(uintptr_t)block, 3, BYTES);
  OK(cu.MemPrefetchAsync(block, BYTES, location_of(CU_MEM_LOCATION_TYPE_DEVICE, 0), 0, stream));
  OK(cu.StreamSynchronize(stream));
  must_hold(block, 3, BYTES);
  OK(cu.MemPrefetchAsync(block, BYTES, location_of(CU_MEM_LOCATION_TYPE_HOST, 0), 0, stream));
  OK(cu.StreamSynchronize(stream));
  CHECK(*(unsigned char *)(uintptr_t)(block + BYTES - 1) == 3);
  OK(cu.StreamDestroy(stream));
  OK(cu.MemFree(block));
}

/* Advice is for managed memory, and is read back. */
RULE(advice_is_read_back) {
  CUdeviceptr block = must_alloc_managed();
  int mostly_read = 7;
  OK(cu.MemRangeGetAttribute(&mostly_read, sizeof mostly_read, CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, block,
                             BYTES));
  SAME(mostly_read, 0);
  CUmemLocation device = location_of(CU_MEM_LOCATION_TYPE_DEVICE, 0);
  OK(cu.MemAdvise(block, BYTES, CU_MEM_ADVISE_SET_READ_MOSTLY, device));
  OK(cu.MemRangeGetAttribute(&mostly_read, sizeof mostly_read, CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, block,
                             BYTES));
  SAME(mostly_read, 1);
  OK(cu.MemAdvise(block, BYTES, CU_MEM_ADVISE_UNSET_READ_MOSTLY, device));
  OK(cu.MemFree(block));
}

/* "The memory range must refer to managed memory." */
RULE(only_managed_memory_is_prefetched) {
  OK(cu.MemFree(must_alloc_managed()));
  CUdeviceptr block = must_alloc(BYTES);
  REFUSED(cu.MemPrefetchAsync(block, BYTES, location_of(CU_MEM_LOCATION_TYPE_DEVICE, 0), 0, NULL));
  OK(cu.MemFree(block));
}
