/* Memory that the driver's pools keep is there for cuMemAlloc when the program trims them.
 *
 * Argument "cached": what stands in front of the driver trims the device's pools itself, those that the program
 * keeps to the driver by making one of its own the current one. */
#include "program.h"

static CUmemoryPool new_pool(void) {
  CUmemoryPool pool = NULL;
  CUmemPoolProps props = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                          .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0}};
  OK(cuMemPoolCreate(&pool, &props));
  return pool;
}

static void keep_all(CUmemoryPool pool) {
  cuuint64_t threshold = UINT64_MAX;
  OK(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &threshold));
}

static void fill(CUmemoryPool pool, CUstream stream, size_t bytes) {
  CUdeviceptr block = 0;
  OK(cuMemAllocFromPoolAsync(&block, bytes, pool, stream));
  OK(cuMemsetD8Async(block, 1, 4096, stream));
  OK(cuMemFreeAsync(block, stream));
  OK(cuStreamSynchronize(stream));
}

int main(int count, char **arguments) {
  bool cached = has_argument(count, arguments, "cached");
  size_t free_bytes = 0, total = 0;
  CUmemoryPool standard = NULL;
  start();
  CUstream stream = must_stream(CU_STREAM_NON_BLOCKING);
  OK(cuMemGetInfo(&free_bytes, &total));
  size_t most = total / 10 * 7;
  CUmemoryPool own = new_pool();
  OK(cuDeviceGetDefaultMemPool(&standard, 0));
  CUmemoryPool pools[] = {own, standard};
  if (cached) OK(cuDeviceSetMemPool(0, own));
  for (int round = 0; round < 3; round++)
    for (size_t at = 0; at < COUNT_OF(pools); at++) {
      CUdeviceptr block = 0;
      keep_all(pools[at]);
      fill(pools[at], stream, most);
      OK(cuMemPoolTrimTo(pools[at], 0));
      block = must_alloc(most);
      OK(cuMemFree(block));
      /* Kept until somebody else lacks it. */
      fill(pools[at], stream, most);
      if (cached) {
        block = must_alloc(most);
        OK(cuMemFree(block));
      }
      OK(cuMemPoolTrimTo(pools[at], 0));
      /* And from one pool to the other. */
      fill(pools[1 - at], stream, most);
      OK(cuMemPoolTrimTo(pools[1 - at], 0));
    }
  OK(cuMemPoolDestroy(own));
  OK(cuStreamDestroy(stream));
  return 0;
}
