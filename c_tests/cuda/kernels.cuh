/* Kernels that write and check blocks, with what stands in for them on the driver double. */
#ifndef LUMA_TESTS_KERNELS_CUH
#define LUMA_TESTS_KERNELS_CUH

#include "../check.h"

#include <fakecuda.h>

#include <cuda_runtime.h>

#define RUNTIME(call) \
  do { \
    cudaError_t outcome_ = (call); \
    if (outcome_ != cudaSuccess) { \
      fprintf(stderr, "%s\n", cudaGetErrorString(outcome_)); \
      check_failed(__FILE__, __LINE__, "the runtime failed: " #call); \
    } \
  } while (0)

/* What a block of this value holds at a place: another byte beside it, and another block has others. */
static __host__ __device__ inline unsigned char expected(unsigned value, size_t at) {
  return (unsigned char)((value * 2654435761u + (unsigned)at * 40503u) >> 13);
}

static __host__ __device__ inline void fill_from(unsigned char *block, size_t bytes, unsigned value,
                                                 size_t first, size_t step) {
  for (size_t at = first; at < bytes; at += step) {
    block[at] = expected(value, at);
  }
}

static __host__ __device__ inline unsigned wrong_from(const unsigned char *block, size_t bytes,
                                                      unsigned value, size_t first, size_t step) {
  unsigned wrong = 0;
  for (size_t at = first; at < bytes; at += step) {
    wrong += block[at] != expected(value, at);
  }
  return wrong;
}

__global__ void fill(unsigned char *block, size_t bytes, unsigned value) {
  fill_from(block, bytes, value, blockIdx.x * (size_t)blockDim.x + threadIdx.x,
            gridDim.x * (size_t)blockDim.x);
}

/* Adds the number of bytes that are not as `fill` left them. */
__global__ void count_wrong(const unsigned char *block, size_t bytes, unsigned value,
                            unsigned *wrong) {
  unsigned found = wrong_from(block, bytes, value, blockIdx.x * (size_t)blockDim.x + threadIdx.x,
                              gridDim.x * (size_t)blockDim.x);
  if (found > 0) {
    atomicAdd(wrong, found);
  }
}

template <class T> static T parameter(const fakecuda_launch_t *launch, size_t at) {
  return *static_cast<T *>(launch->params[at]);
}

/* Where a stand-in finds what a pointer parameter points to. */
template <class T> static T *pointer_parameter(const fakecuda_launch_t *launch, size_t at) {
  unsigned long long address = parameter<unsigned long long>(launch, at);
  return static_cast<T *>(fakecuda_host_pointer(address));
}

static void fill_stand_in(const fakecuda_launch_t *launch, void *) {
  fill_from(pointer_parameter<unsigned char>(launch, 0), parameter<size_t>(launch, 1),
            parameter<unsigned>(launch, 2), 0, 1);
}

static void count_wrong_stand_in(const fakecuda_launch_t *launch, void *) {
  unsigned *wrong = pointer_parameter<unsigned>(launch, 3);
  *wrong += wrong_from(pointer_parameter<unsigned char>(launch, 0), parameter<size_t>(launch, 1),
                       parameter<unsigned>(launch, 2), 0, 1);
}

/* To be called once the driver is loaded. */
static inline void register_stand_ins() {
  static const size_t fill_sizes[] = {sizeof(void *), sizeof(size_t), sizeof(unsigned)};
  static const size_t wrong_sizes[] = {sizeof(void *), sizeof(size_t), sizeof(unsigned),
                                       sizeof(void *)};
  if (fakecuda_present()) {
    CHECK(fakecuda_register_kernel("fill", fill_stand_in, NULL, 3, fill_sizes) == FAKECUDA_OK);
    CHECK(fakecuda_register_kernel("count_wrong", count_wrong_stand_in, NULL, 4, wrong_sizes) ==
          FAKECUDA_OK);
  }
}

static inline void fill_block(void *block, size_t bytes, unsigned value, cudaStream_t stream = 0) {
  unsigned blocks = (unsigned)(bytes / 4096 < 512 ? bytes / 4096 + 1 : 512);
  fill<<<blocks, 256, 0, stream>>>(static_cast<unsigned char *>(block), bytes, value);
  RUNTIME(cudaGetLastError());
}

/* Counts on the device, into memory of the runtime's own. */
class Checker {
public:
  Checker() {
    RUNTIME(cudaMalloc(&wrong_, sizeof(unsigned)));
    RUNTIME(cudaMemset(wrong_, 0, sizeof(unsigned)));
  }
  ~Checker() { RUNTIME(cudaFree(wrong_)); }
  Checker(const Checker &) = delete;
  Checker &operator=(const Checker &) = delete;

  void check(const void *block, size_t bytes, unsigned value, cudaStream_t stream = 0) {
    unsigned blocks = (unsigned)(bytes / 4096 < 512 ? bytes / 4096 + 1 : 512);
    count_wrong<<<blocks, 256, 0, stream>>>(static_cast<const unsigned char *>(block), bytes, value,
                                            wrong_);
    RUNTIME(cudaGetLastError());
  }
  /* Bytes that were wrong in all checks so far. */
  unsigned wrong() const {
    unsigned wrong;
    RUNTIME(cudaMemcpy(&wrong, wrong_, sizeof wrong, cudaMemcpyDeviceToHost));
    return wrong;
  }

private:
  unsigned *wrong_ = nullptr;
};

#endif
