// Two devices: properties, choice, peers, resets.
#include "check.h"

#include <cuda.h>
#include <cuda_runtime.h>
#include <cstring>
#include <string>
#include <thread>

static void properties() {
  int count, runtime, driver;
  cudaDeviceProp p, q;
  OK(cudaRuntimeGetVersion(&runtime));
  OK(cudaDriverGetVersion(&driver));
  CHECK(runtime == CUDART_VERSION && driver >= runtime / 1000 * 1000);
  OK(cudaGetDeviceCount(&count));
  CHECK(count == 2);
  OK(cudaGetDeviceProperties(&p, 0));
  OK(cudaGetDeviceProperties(&q, 1));
  CHECK(p.major == 9 && p.minor == 0 && p.warpSize == 32 && strlen(p.name) > 0 && p.totalGlobalMem > 0);
  CHECK(p.maxThreadsPerBlock == 1024 && p.multiProcessorCount > 0 && p.unifiedAddressing == 1);
  CHECK(p.maxGridSize[0] == 2147483647 && p.maxThreadsDim[2] == 64 && p.textureAlignment == 512);
  CHECK(memcmp(&p.uuid, &q.uuid, sizeof p.uuid) != 0);
  char bus[32];
  int device = -1, value;
  OK(cudaDeviceGetPCIBusId(bus, sizeof bus, 1));
  OK(cudaDeviceGetByPCIBusId(&device, bus));
  CHECK(device == 1);
  OK(cudaDeviceGetAttribute(&value, cudaDevAttrMultiProcessorCount, 0));
  CHECK(value == p.multiProcessorCount);
  FAILS(cudaErrorInvalidDevice, cudaGetDeviceProperties(&p, 2));
}

static void choice() {
  int device;
  void *p;
  cudaPointerAttributes attributes;
  OK(cudaGetDevice(&device));
  CHECK(device == 0);
  OK(cudaSetDevice(1));
  OK(cudaGetDevice(&device));
  CHECK(device == 1);
  OK(cudaMalloc(&p, 4096));
  OK(cudaPointerGetAttributes(&attributes, p));
  CHECK(attributes.device == 1);
  // A new thread starts with the first device, and may free what belongs to another.
  std::thread([&] {
    int device;
    OK(cudaGetDevice(&device));
    CHECK(device == 0);
    OK(cudaFree(p));
  }).join();
  FAILS(cudaErrorInvalidDevice, cudaSetDevice(2));
  OK(cudaGetDevice(&device));
  CHECK(device == 1);
  OK(cudaSetDevice(0));
}

static void peers() {
  int can, a = 5, b = 0, *p, *q;
  OK(cudaDeviceCanAccessPeer(&can, 0, 1));
  CHECK(can == 1);
  OK(cudaDeviceEnablePeerAccess(1, 0));
  FAILS(cudaErrorPeerAccessAlreadyEnabled, cudaDeviceEnablePeerAccess(1, 0));
  OK(cudaMalloc(&p, sizeof *p));
  OK(cudaSetDevice(1));
  OK(cudaMalloc(&q, sizeof *q));
  OK(cudaSetDevice(0));
  OK(cudaMemcpy(p, &a, sizeof a, cudaMemcpyHostToDevice));
  OK(cudaMemcpyPeer(q, 1, p, 0, sizeof *p));
  OK(cudaMemcpy(&b, q, sizeof b, cudaMemcpyDefault));
  CHECK(b == 5);
  OK(cudaMemset(p, 0, sizeof *p));
  OK(cudaMemcpyPeerAsync(p, 0, q, 1, sizeof *q, nullptr));
  OK(cudaMemcpy(&b, p, sizeof b, cudaMemcpyDefault));
  CHECK(b == 5);
  OK(cudaDeviceDisablePeerAccess(1));
  FAILS(cudaErrorPeerAccessNotEnabled, cudaDeviceDisablePeerAccess(1));
  OK(cudaFree(p));
  OK(cudaFree(q));
}

static void reset() {
  void *p, *q;
  cudaStream_t stream;
  OK(cudaMalloc(&p, 4096));
  OK(cudaStreamCreate(&stream));
  OK(cudaDeviceReset());
  FAILS(cudaErrorInvalidValue, cudaFree(p));
  OK(cudaMalloc(&q, 4096));
  // Another thread's context is gone as well; it gets the new one.
  OK(cudaMemset(q, 1, 4096));
  OK(cudaFree(q));
}

// Threads that hold on to a context that another thread resets.
static void reset_under_a_thread() {
  void *p;
  std::thread other([&] {
    OK(cudaMalloc(&p, 64));
    std::thread([] { OK(cudaDeviceReset()); }).join();
    FAILS(cudaErrorInvalidValue, cudaFree(p));
    OK(cudaMalloc(&p, 64));
    OK(cudaFree(p));
  });
  other.join();
}

// A reset by the driver's own function, past the runtime.
static void reset_by_the_driver() {
  CUresult (*reset)(CUdevice);
  cudaDriverEntryPointQueryResult result;
  void *p, *found;
  OK(cudaMalloc(&p, 64));
  OK(cudaGetDriverEntryPointByVersion("cuDevicePrimaryCtxReset", &found, 11000, cudaEnableDefault, &result));
  CHECK(result == cudaDriverEntryPointSuccess);
  memcpy(&reset, &found, sizeof reset);
  CHECK(reset(0) == CUDA_SUCCESS);
  OK(cudaMalloc(&p, 64));
  OK(cudaMemset(p, 1, 64));
  OK(cudaFree(p));
}

static void entry_points() {
  void *a, *b;
  cudaDriverEntryPointQueryResult result;
  OK(cudaGetDriverEntryPointByVersion("cuMemAlloc", &a, 12000, cudaEnableDefault, &result));
  CHECK(a != nullptr && result == cudaDriverEntryPointSuccess);
  OK(cudaGetDriverEntryPointByVersion("cuMemcpyAsync", &a, 12000, cudaEnableLegacyStream, &result));
  OK(cudaGetDriverEntryPointByVersion("cuMemcpyAsync", &b, 12000, cudaEnablePerThreadDefaultStream, &result));
  CHECK(a != b);
  OK(cudaGetDriverEntryPointByVersion("cuNoSuchThing", &a, 12000, cudaEnableDefault, &result));
  CHECK(a == nullptr && result == cudaDriverEntryPointSymbolNotFound);
  OK(cudaGetDriverEntryPointByVersion("cuMemAllocAsync", &a, 11000, cudaEnableDefault, &result));
  CHECK(a == nullptr && result == cudaDriverEntryPointVersionNotSufficent);
}

int main() {
  properties();
  choice();
  peers();
  reset();
  reset_under_a_thread();
  reset_by_the_driver();
  entry_points();
  OK(cudaGetLastError());
  return 0;
}
