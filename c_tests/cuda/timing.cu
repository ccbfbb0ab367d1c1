/* What a block costs: luma, cudaMalloc and cudaMallocAsync, each allocating, filling by a kernel and
 * freeing, in one run. Prints one line a size: bytes, then microseconds a round of each. Argument: rounds. */
#include "kernels.cuh"

#include <chrono>

namespace {

template <class Round> double microseconds(int rounds, Round round) {
  using clock = std::chrono::steady_clock;
  round();
  RUNTIME(cudaDeviceSynchronize());
  clock::time_point start = clock::now();
  for (int at = 0; at < rounds; at++) {
    round();
  }
  RUNTIME(cudaDeviceSynchronize());
  return std::chrono::duration<double, std::micro>(clock::now() - start).count() / rounds;
}

} // namespace

int main(int argc, char **argv) {
  int rounds = argc > 1 ? atoi(argv[1]) : 20;
  int has_pools = 0;
  RUNTIME(cudaFree(0));
  register_stand_ins();
  RUNTIME(cudaDeviceGetAttribute(&has_pools, cudaDevAttrMemoryPoolsSupported, 0));
  printf("%12s %12s %12s %16s %12s\n", "bytes", "kernel", "luma", "cudaMallocAsync", "cudaMalloc");
  for (size_t bytes = 4 * KIB; bytes <= 64 * MIB; bytes *= 16) {
    void *kept = luma_alloc(bytes);
    CHECK(kept != nullptr);
    double alone = microseconds(rounds, [&] { fill_block(kept, bytes, 1); });
    OK(luma_free(kept));
    double luma = microseconds(rounds, [&] {
      void *block = luma_alloc(bytes);
      CHECK(block != nullptr);
      fill_block(block, bytes, 1);
      OK(luma_free(block));
    });
    double pooled = !has_pools ? 0 : microseconds(rounds, [&] {
      void *block;
      RUNTIME(cudaMallocAsync(&block, bytes, 0));
      fill_block(block, bytes, 1);
      RUNTIME(cudaFreeAsync(block, 0));
    });
    double plain = microseconds(rounds, [&] {
      void *block;
      RUNTIME(cudaMalloc(&block, bytes));
      fill_block(block, bytes, 1);
      RUNTIME(cudaFree(block));
    });
    printf("%12zu %12.2f %12.2f %16.2f %12.2f\n", bytes, alone, luma, pooled, plain);
    CHECK(alone > 0 && luma > 0 && plain > 0);
  }
  return 0;
}
