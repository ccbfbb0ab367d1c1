// Kernels: launches in every form, with host functions that stand in for the code; variables; attributes.
#include "check.h"
#include "fakecuda.h"

#include <cuda_runtime.h>
#include <string>
#include <vector>

__global__ void add(const float *a, const float *b, float *sum, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) sum[i] = a[i] + b[i];
}

__global__ void fill(int *to, int value, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) to[i] = value;
}

__global__ void nothing() {}

__device__ int counter[8];
__constant__ float table[16];
__managed__ int shared_counter;

template <typename T>
static T *host(void *parameter) {
  T *device = *static_cast<T **>(parameter);
  void *found = fakecuda_host_pointer(reinterpret_cast<unsigned long long>(device));
  CHECK(found != nullptr);
  return static_cast<T *>(found);
}

static fakecuda_launch_t last;

static void stand_in_add(const fakecuda_launch_t *launch, void *) {
  last = *launch;
  const float *a = host<float>(launch->params[0]), *b = host<float>(launch->params[1]);
  float *sum = host<float>(launch->params[2]);
  int n = *static_cast<int *>(launch->params[3]);
  int threads = static_cast<int>(launch->grid[0] * launch->block[0]);
  for (int i = 0; i < n && i < threads; i++) sum[i] = a[i] + b[i];
}

static void stand_in_fill(const fakecuda_launch_t *launch, void *user) {
  last = *launch;
  ++*static_cast<int *>(user);
  int *to = host<int>(launch->params[0]);
  int value = *static_cast<int *>(launch->params[1]), n = *static_cast<int *>(launch->params[2]);
  for (int i = 0; i < n; i++) to[i] = value;
}

static int fills;

static void vector_add() {
  const int n = 1 << 16;
  std::vector<float> a(n), b(n), sum(n, -1.f);
  for (int i = 0; i < n; i++) a[i] = float(i), b[i] = float(2 * i);
  float *da, *db, *dsum;
  OK(cudaMalloc(&da, n * sizeof *da));
  OK(cudaMalloc(&db, n * sizeof *db));
  OK(cudaMalloc(&dsum, n * sizeof *dsum));
  OK(cudaMemcpy(da, a.data(), n * sizeof *da, cudaMemcpyHostToDevice));
  OK(cudaMemcpy(db, b.data(), n * sizeof *db, cudaMemcpyHostToDevice));
  add<<<(n + 255) / 256, 256>>>(da, db, dsum, n);
  OK(cudaGetLastError());
  OK(cudaDeviceSynchronize());
  OK(cudaMemcpy(sum.data(), dsum, n * sizeof *dsum, cudaMemcpyDeviceToHost));
  for (int i = 0; i < n; i++) CHECK(sum[i] == float(3 * i));
  CHECK(last.grid[0] == 256 && last.grid[1] == 1 && last.block[0] == 256 && last.shared_bytes == 0);
  OK(cudaFree(da));
  OK(cudaFree(db));
  OK(cudaFree(dsum));
}

// Fills by `launch` on a stream of its own and looks at what came of it.
template <typename Launch>
static void check_launch(Launch launch) {
  const int n = 1000;
  static int value = 40;
  value++;
  cudaStream_t stream;
  int *p, before = fills;
  std::vector<int> seen(n);
  OK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  OK(cudaMalloc(&p, n * sizeof *p));
  launch(p, value, n, stream);
  OK(cudaMemcpyAsync(seen.data(), p, n * sizeof *p, cudaMemcpyDeviceToHost, stream));
  OK(cudaStreamSynchronize(stream));
  CHECK(fills == before + 1);
  CHECK(last.stream == stream && last.grid[0] == 4 && last.grid[1] == 2 && last.block[0] == 256);
  CHECK(last.shared_bytes == 512);
  for (int x : seen) CHECK(x == value);
  OK(cudaFree(p));
  OK(cudaStreamDestroy(stream));
}

static void every_form() {
  dim3 grid(4, 2), block(256);
  check_launch([&](int *p, int value, int n, cudaStream_t stream) { fill<<<grid, block, 512, stream>>>(p, value, n); });
  check_launch([&](int *p, int value, int n, cudaStream_t stream) {
    void *arguments[] = {&p, &value, &n};
    OK(cudaLaunchKernel(reinterpret_cast<void *>(fill), grid, block, arguments, 512, stream));
  });
  check_launch([&](int *p, int value, int n, cudaStream_t stream) {
    void *arguments[] = {&p, &value, &n};
    OK(cudaLaunchCooperativeKernel(reinterpret_cast<void *>(fill), grid, block, arguments, 512, stream));
  });
  check_launch([&](int *p, int value, int n, cudaStream_t stream) {
    cudaLaunchConfig_t config = {};
    config.gridDim = grid;
    config.blockDim = block;
    config.dynamicSmemBytes = 512;
    config.stream = stream;
    OK(cudaLaunchKernelEx(&config, fill, p, value, n));
  });
  check_launch([&](int *p, int value, int n, cudaStream_t stream) {
    cudaKernel_t kernel;
    OK(cudaGetKernel(&kernel, reinterpret_cast<void *>(fill)));
    void *arguments[] = {&p, &value, &n};
    OK(cudaLaunchKernel(reinterpret_cast<void *>(kernel), grid, block, arguments, 512, stream));
  });
}

static void refused() {
  void *arguments[] = {nullptr};
  void *kernel = reinterpret_cast<void *>(nothing);
  nothing<<<1, 2048>>>();
  FAILS(cudaErrorInvalidConfiguration, cudaPeekAtLastError());
  nothing<<<0, 32>>>();
  FAILS(cudaErrorInvalidConfiguration, cudaPeekAtLastError());
  FAILS(cudaErrorInvalidConfiguration, cudaLaunchKernel(kernel, dim3(1), dim3(1, 1, 65), arguments, 0, nullptr));
  FAILS(cudaErrorInvalidDeviceFunction, cudaLaunchKernel(arguments, dim3(1), dim3(1), arguments, 0, nullptr));
  FAILS(cudaErrorInvalidDeviceFunction, cudaLaunchKernel(nullptr, dim3(1), dim3(1), arguments, 0, nullptr));
  OK(cudaLaunchKernel(kernel, dim3(1), dim3(1), nullptr, 0, nullptr));
  OK(cudaDeviceSynchronize());
}

static void variables() {
  void *p;
  size_t size;
  OK(cudaGetSymbolAddress(&p, counter));
  CHECK(p != nullptr && p != static_cast<void *>(counter));
  OK(cudaGetSymbolSize(&size, counter));
  CHECK(size == sizeof counter);
  OK(cudaGetSymbolSize(&size, table));
  CHECK(size == sizeof table);

  int in[8], out[8] = {0};
  for (int i = 0; i < 8; i++) in[i] = 100 + i;
  OK(cudaMemcpyToSymbol(counter, in, sizeof in));
  OK(cudaMemcpyToSymbol(counter, in, sizeof in[0], 3 * sizeof in[0]));
  OK(cudaMemcpyFromSymbol(out, counter, sizeof out));
  CHECK(out[0] == 100 && out[3] == 100 && out[7] == 107);
  // The symbol is the memory at its address.
  OK(cudaMemcpy(out, p, sizeof out, cudaMemcpyDeviceToHost));
  CHECK(out[3] == 100 && out[4] == 104);

  cudaStream_t stream;
  OK(cudaStreamCreate(&stream));
  OK(cudaMemcpyToSymbolAsync(counter, in, sizeof in, 0, cudaMemcpyHostToDevice, stream));
  OK(cudaMemcpyFromSymbolAsync(out, counter, sizeof in[0], 7 * sizeof in[0], cudaMemcpyDeviceToHost, stream));
  OK(cudaStreamSynchronize(stream));
  CHECK(out[0] == 107);
  OK(cudaStreamDestroy(stream));

  FAILS(cudaErrorInvalidValue, cudaMemcpyToSymbol(counter, in, sizeof in, sizeof in[0]));
  FAILS(cudaErrorInvalidMemcpyDirection, cudaMemcpyToSymbol(counter, in, sizeof in, 0, cudaMemcpyDeviceToHost));
  FAILS(cudaErrorInvalidSymbol, cudaGetSymbolAddress(&p, in));

  // The host's own use of a managed variable.
  shared_counter = 5;
  shared_counter += 1;
  cudaPointerAttributes attributes;
  OK(cudaGetSymbolAddress(&p, shared_counter));
  OK(cudaPointerGetAttributes(&attributes, p));
  CHECK(attributes.type == cudaMemoryTypeManaged && p == &shared_counter);
  int seen;
  OK(cudaMemcpy(&seen, p, sizeof seen, cudaMemcpyDefault));
  CHECK(seen == 6);
}

static void attributes() {
  cudaFuncAttributes got;
  OK(cudaFuncGetAttributes(&got, fill));
  CHECK(got.maxThreadsPerBlock == 1024 && got.binaryVersion == 90);
  OK(cudaFuncSetAttribute(fill, cudaFuncAttributeMaxDynamicSharedMemorySize, 65536));
  OK(cudaFuncGetAttributes(&got, fill));
  CHECK(got.maxDynamicSharedSizeBytes == 65536);
  OK(cudaFuncSetCacheConfig(fill, cudaFuncCachePreferL1));
  FAILS(cudaErrorInvalidDeviceFunction, cudaFuncGetAttributes(&got, &got));

  const char *name;
  OK(cudaFuncGetName(&name, reinterpret_cast<void *>(fill)));
  CHECK(std::string(name) == "_Z4fillPiii");
  int blocks, grid, block;
  OK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, fill, 256, 0));
  CHECK(blocks > 0);
  OK(cudaOccupancyMaxPotentialBlockSize(&grid, &block, fill));
  CHECK(grid > 0 && block > 0 && block <= 1024);
  cudaFunction_t function;
  OK(cudaGetFuncBySymbol(&function, reinterpret_cast<void *>(fill)));
  CHECK(function != nullptr);
}

int main() {
  OK(cudaFree(nullptr));
  CHECK(fakecuda_present());
  const size_t add_sizes[] = {8, 8, 8, 4}, fill_sizes[] = {8, 4, 4};
  CHECK(fakecuda_register_kernel("add", stand_in_add, nullptr, 4, add_sizes) == FAKECUDA_OK);
  CHECK(fakecuda_register_kernel("_Z4fillPiii", stand_in_fill, &fills, 3, fill_sizes) == FAKECUDA_OK);
  vector_add();
  every_form();
  refused();
  variables();
  attributes();

  // A reset takes modules and variables along; both come back at their next use.
  OK(cudaDeviceReset());
  vector_add();
  every_form();
  int out[8], in[8] = {1, 2, 3, 4, 5, 6, 7, 8};
  OK(cudaMemcpyToSymbol(counter, in, sizeof in));
  OK(cudaMemcpyFromSymbol(out, counter, sizeof out));
  CHECK(out[7] == 8);
  return 0;
}
