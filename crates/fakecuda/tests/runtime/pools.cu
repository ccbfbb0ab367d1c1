// Stream-ordered memory.
#include "check.h"

#include <cuda_runtime.h>
#include <cstdint>

int main() {
  cudaStream_t stream, other;
  cudaEvent_t event;
  cudaMemPool_t pool, own;
  int device = 0, supported;
  OK(cudaDeviceGetAttribute(&supported, cudaDevAttrMemoryPoolsSupported, device));
  CHECK(supported == 1);
  OK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  OK(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking));
  OK(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
  OK(cudaDeviceGetDefaultMemPool(&pool, device));
  OK(cudaDeviceGetMemPool(&own, device));
  CHECK(own == pool);

  uint64_t keep = UINT64_MAX, value;
  OK(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &keep));
  OK(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &value));
  CHECK(value == keep);

  void *p, *q;
  int seen = 0;
  OK(cudaMallocAsync(&p, 1 << 20, stream));
  OK(cudaMemsetAsync(p, 7, 1 << 20, stream));
  OK(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrUsedMemCurrent, &value));
  CHECK(value >= 1 << 20);
  OK(cudaMemcpyAsync(&seen, p, sizeof seen, cudaMemcpyDeviceToHost, stream));
  OK(cudaFreeAsync(p, stream));
  // The same stream may have the memory again at once.
  OK(cudaMallocAsync(&q, 1 << 20, stream));
  CHECK(q == p);
  OK(cudaStreamSynchronize(stream));
  CHECK(seen == 0x07070707);
  // Freed on another stream, after an event.
  OK(cudaEventRecord(event, stream));
  OK(cudaStreamWaitEvent(other, event));
  OK(cudaFreeAsync(q, other));
  OK(cudaFreeAsync(nullptr, other));
  OK(cudaDeviceSynchronize());
  OK(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrUsedMemCurrent, &value));
  CHECK(value == 0);
  OK(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrReservedMemCurrent, &value));
  CHECK(value >= 1 << 20);
  OK(cudaMemPoolTrimTo(pool, 0));
  OK(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrReservedMemCurrent, &value));
  CHECK(value == 0);

  // cudaFree takes memory of pools as well.
  OK(cudaMallocAsync(&p, 4096, stream));
  OK(cudaStreamSynchronize(stream));
  OK(cudaFree(p));
  p = &p;
  OK(cudaMallocAsync(&p, 0, stream));
  CHECK(p == nullptr);

  cudaMemPoolProps properties = {};
  properties.allocType = cudaMemAllocationTypePinned;
  properties.location.type = cudaMemLocationTypeDevice;
  properties.location.id = device;
  OK(cudaMemPoolCreate(&own, &properties));
  OK(cudaMallocFromPoolAsync(&p, 4096, own, stream));
  OK(cudaMemsetAsync(p, 1, 4096, stream));
  OK(cudaFreeAsync(p, stream));
  OK(cudaDeviceSetMemPool(device, own));
  OK(cudaDeviceGetMemPool(&pool, device));
  CHECK(pool == own);
  OK(cudaStreamSynchronize(stream));
  OK(cudaMemPoolDestroy(own));
  FAILS(cudaErrorInvalidValue, cudaFreeAsync(&stream, stream));
  OK(cudaStreamDestroy(stream));
  OK(cudaStreamDestroy(other));
  OK(cudaEventDestroy(event));
  OK(cudaGetLastError());
  return 0;
}
