/* luma beside the CUDA runtime: each leaves the other's state alone. */
#include "kernels.cuh"

#include <thread>

namespace {

int device_of(const void *block) {
  cudaPointerAttributes attributes;
  RUNTIME(cudaPointerGetAttributes(&attributes, block));
  CHECK(attributes.type == cudaMemoryTypeDevice);
  return attributes.device;
}

int current_device() {
  int device;
  RUNTIME(cudaGetDevice(&device));
  return device;
}

/* luma comes first: it makes the primary context, which the runtime then takes. */
void luma_before_the_runtime() {
  void *block = luma_alloc(5000);
  CHECK(block != nullptr);
  CHECK(current_device() == 0 && device_of(block) == 0);
  RUNTIME(cudaMemset(block, 1, 5000));
  OK(luma_free(block));
}

/* A request that fails, or that a second try repairs, is no error of the runtime's. */
void errors_stay_apart() {
  REFUSED(luma_alloc(SIZE_MAX / 4), LUMA_ERROR_OUT_OF_MEMORY, "out of memory");
  RUNTIME(cudaPeekAtLastError());
  void *too_much = nullptr;
  CHECK(cudaMalloc(&too_much, SIZE_MAX / 4) == cudaErrorMemoryAllocation);
  void *block = luma_alloc(5000);
  CHECK(block != nullptr && luma_last_status() == LUMA_SUCCESS);
  CHECK(cudaGetLastError() == cudaErrorMemoryAllocation);
  OK(luma_free(block));
}

void every_device_has_its_pool() {
  int count;
  RUNTIME(cudaGetDeviceCount(&count));
  for (int device = 0; device < count; device++) {
    RUNTIME(cudaSetDevice(device));
    Checker checker;
    void *block = luma_alloc(3 * MIB);
    CHECK(block != nullptr && device_of(block) == device && current_device() == device);
    fill_block(block, 3 * MIB, 5);
    checker.check(block, 3 * MIB, 5);
    CHECK(checker.wrong() == 0);
    /* Freed from another thread, whose device is 0. */
    std::thread([&] {
      CHECK(current_device() == 0);
      OK(luma_free(block));
      CHECK(current_device() == 0);
    }).join();
    CHECK(stats_now().live_blocks == 0 && current_device() == device);
  }
  RUNTIME(cudaSetDevice(0));
}

void both_know_the_same_memory() {
  size_t free_bytes, total, free_to_luma, total_to_luma;
  OK(luma_free(must_alloc(5 * MIB)));
  RUNTIME(cudaMemGetInfo(&free_bytes, &total));
  OK(luma_memory_info(&free_to_luma, &total_to_luma));
  CHECK(total == total_to_luma && free_bytes == free_to_luma);
}

void pinned_memory_is_copied_from() {
  luma_pool_config_t config = LUMA_POOL_CONFIG_INIT;
  config.backend = LUMA_BACKEND_CUDA_HOST;
  luma_pool_t *pool = must_create(&config);
  unsigned char *pinned = must_pool_alloc(pool, MIB);
  unsigned char *device = must_alloc(MIB);
  cudaStream_t stream;
  Checker checker;
  RUNTIME(cudaStreamCreate(&stream));
  for (size_t at = 0; at < MIB; at++) {
    pinned[at] = expected(9, at);
  }
  RUNTIME(cudaMemcpyAsync(device, pinned, MIB, cudaMemcpyHostToDevice, stream));
  RUNTIME(cudaStreamSynchronize(stream));
  checker.check(device, MIB, 9);
  CHECK(checker.wrong() == 0);
  RUNTIME(cudaStreamDestroy(stream));
  OK(luma_free(device));
  OK(luma_pool_free(pool, pinned, NULL));
  OK(luma_pool_destroy(pool));
}

void a_reset_is_survived() {
  for (int round = 0; round < 3; round++) {
    void *old = luma_alloc(5 * MIB);
    CHECK(old != nullptr);
    fill_block(old, 5 * MIB, 1);
    RUNTIME(cudaDeviceReset());
    OK(luma_device_reset(0));
    FAILS(luma_free(old), LUMA_ERROR_INVALID_POINTER, "not from this pool");
    void *fresh = luma_alloc(5 * MIB);
    CHECK(fresh != nullptr);
    {
      Checker checker;
      fill_block(fresh, 5 * MIB, 2);
      checker.check(fresh, 5 * MIB, 2);
      CHECK(checker.wrong() == 0);
    }
    OK(luma_free(fresh));
  }
}

} // namespace

int main() {
  luma_before_the_runtime();
  register_stand_ins();
  errors_stay_apart();
  every_device_has_its_pool();
  both_know_the_same_memory();
  pinned_memory_is_copied_from();
  a_reset_is_survived();
  OK(luma_check());
  return 0;
}
