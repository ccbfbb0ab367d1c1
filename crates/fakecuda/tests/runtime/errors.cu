// The last error: what sets it, what clears it, whose it is; names and texts; failures of the driver.
#include "check.h"
#include "fakecuda.h"

#include <cuda_runtime.h>
#include <cstring>
#include <thread>

static void last_error() {
  void *p;
  OK(cudaGetLastError());
  GIVES(cudaErrorInvalidValue, cudaFree(reinterpret_cast<void *>(0x1234)));
  // Looking does not clear, and neither does success.
  GIVES(cudaErrorInvalidValue, cudaPeekAtLastError());
  OK(cudaMalloc(&p, 64));
  GIVES(cudaErrorInvalidValue, cudaPeekAtLastError());
  // The newest error replaces it.
  GIVES(cudaErrorInvalidDevice, cudaSetDevice(99));
  GIVES(cudaErrorInvalidDevice, cudaGetLastError());
  OK(cudaGetLastError());
  OK(cudaPeekAtLastError());

  // Each thread has its own.
  GIVES(cudaErrorInvalidDevice, cudaSetDevice(-1));
  std::thread([&] {
    OK(cudaPeekAtLastError());
    FAILS(cudaErrorInvalidValue, cudaFree(static_cast<char *>(p) + 1));
  }).join();
  GIVES(cudaErrorInvalidDevice, cudaGetLastError());
  OK(cudaFree(p));
  FAILS(cudaErrorInvalidValue, cudaFree(p));
  FAILS(cudaErrorInvalidValue, cudaMalloc(nullptr, 64));
}

static void not_ready_is_no_error() {
  cudaStream_t stream;
  cudaEvent_t event;
  static volatile bool go;
  OK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  OK(cudaEventCreate(&event));
  OK(cudaLaunchHostFunc(stream, [](void *) { while (!go) std::this_thread::yield(); }, nullptr));
  OK(cudaEventRecord(event, stream));
  GIVES(cudaErrorNotReady, cudaStreamQuery(stream));
  GIVES(cudaErrorNotReady, cudaEventQuery(event));
  OK(cudaPeekAtLastError());
  go = true;
  OK(cudaStreamSynchronize(stream));
  OK(cudaStreamQuery(stream));
  OK(cudaEventQuery(event));
  OK(cudaEventDestroy(event));
  OK(cudaStreamDestroy(stream));
}

static void driver_failures() {
  void *p = nullptr;
  CHECK(fakecuda_fail("cuMemAlloc_v2", 1, cudaErrorMemoryAllocation, 1) == FAKECUDA_OK);
  OK(cudaMalloc(&p, 64));
  void *unchanged = p, *q = p;
  FAILS(cudaErrorMemoryAllocation, cudaMalloc(&q, 64));
  CHECK(q == unchanged);
  OK(cudaMalloc(&q, 64));
  CHECK(fakecuda_failed() == 1);
  OK(cudaFree(p));
  OK(cudaFree(q));

  // More than there is.
  size_t free_bytes, total;
  OK(cudaMemGetInfo(&free_bytes, &total));
  FAILS(cudaErrorMemoryAllocation, cudaMalloc(&p, total + 1));
  FAILS(cudaErrorMemoryAllocation, cudaMalloc(&p, SIZE_MAX));
  FAILS(cudaErrorMemoryAllocation, cudaMalloc(&p, SIZE_MAX - 4096));
}

static void texts() {
  CHECK(!strcmp(cudaGetErrorName(cudaSuccess), "cudaSuccess"));
  CHECK(!strcmp(cudaGetErrorString(cudaSuccess), "no error"));
  CHECK(!strcmp(cudaGetErrorName(cudaErrorMemoryAllocation), "cudaErrorMemoryAllocation"));
  CHECK(!strcmp(cudaGetErrorString(cudaErrorMemoryAllocation), "out of memory"));
  CHECK(!strcmp(cudaGetErrorString(cudaErrorCudartUnloading), "driver shutting down"));
  CHECK(!strcmp(cudaGetErrorString(static_cast<cudaError_t>(12345)), "unrecognized error code"));
}

static void unsupported() {
  cudaArray_t array;
  cudaChannelFormatDesc format = cudaCreateChannelDesc<float>();
  CHECK(format.x == 32 && format.y == 0 && format.f == cudaChannelFormatKindFloat);
  FAILS(cudaErrorNotSupported, cudaMallocArray(&array, &format, 16));
}

static void directions() {
  char a[4] = {0}, b[4] = {0};
  FAILS(cudaErrorInvalidMemcpyDirection, cudaMemcpy(a, b, 4, static_cast<cudaMemcpyKind>(7)));
  FAILS(cudaErrorInvalidPitchValue, cudaMemcpy2D(a, 1, b, 4, 2, 2, cudaMemcpyHostToHost));
}

int main() {
  OK(cudaFree(nullptr));
  CHECK(fakecuda_present());
  last_error();
  not_ready_is_no_error();
  driver_failures();
  texts();
  unsupported();
  directions();
  return 0;
}
