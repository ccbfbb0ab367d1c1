/* No two live blocks overlap, and none overlaps the runtime's own: kernels fill each block and check it
 * again before it is freed. Arguments: rounds, and the most bytes of a block in KiB. */
#include "kernels.cuh"

#include <vector>

namespace {

struct Block {
  void *start;
  size_t bytes;
  unsigned value;
  bool is_the_runtimes;
};

unsigned long long state = 0x9E3779B97F4A7C15ull;

size_t below(size_t bound) {
  state ^= state << 13;
  state ^= state >> 7;
  state ^= state << 17;
  return (size_t)(state % bound);
}

/* Sizes of every order of magnitude up to the largest. */
size_t size_up_to(size_t largest) {
  size_t bytes = largest;
  while (bytes > 256 && below(3) > 0) {
    bytes /= 4;
  }
  return 1 + below(bytes);
}

void run(size_t rounds, size_t largest) {
  Checker checker;
  std::vector<Block> live;
  for (size_t round = 0; round < rounds; round++) {
    if (live.size() < 8 || (live.size() < 120 && below(2) == 0)) {
      Block block = {nullptr, size_up_to(largest), (unsigned)round, below(8) == 0};
      if (block.is_the_runtimes) {
        RUNTIME(cudaMalloc(&block.start, block.bytes));
      } else {
        block.start = luma_alloc_aligned(block.bytes, (size_t)256 << below(5));
        CHECK(block.start != nullptr);
      }
      fill_block(block.start, block.bytes, block.value);
      live.push_back(block);
    } else {
      size_t at = below(live.size());
      Block block = live[at];
      live[at] = live.back();
      live.pop_back();
      checker.check(block.start, block.bytes, block.value);
      if (block.is_the_runtimes) {
        RUNTIME(cudaFree(block.start));
      } else {
        OK(luma_free(block.start));
      }
    }
    if (round % 100 == 99) {
      OK(luma_check());
      CHECK(checker.wrong() == 0);
    }
    if (round % 150 == 149) {
      /* With checks of blocks that go still queued. */
      (void)luma_empty_cache();
    }
  }
  for (const Block &block : live) {
    checker.check(block.start, block.bytes, block.value);
  }
  CHECK(checker.wrong() == 0);
  for (const Block &block : live) {
    if (block.is_the_runtimes) {
      RUNTIME(cudaFree(block.start));
    } else {
      OK(luma_free(block.start));
    }
  }
}

/* The check itself finds what it is for. */
void a_wrong_byte_is_found() {
  Checker checker;
  void *block = luma_alloc(5000);
  CHECK(block != nullptr);
  fill_block(block, 5000, 3);
  checker.check(block, 5000, 3);
  CHECK(checker.wrong() == 0);
  RUNTIME(cudaMemset(static_cast<char *>(block) + 4321, expected(3, 4321) + 1, 1));
  checker.check(block, 5000, 3);
  CHECK(checker.wrong() == 1);
  OK(luma_free(block));
}

/* What is queued on the default stream when a block is freed finds the block there, though it is given back
 * to the driver at once. */
void queued_work_finds_its_block() {
  Checker checker;
  for (unsigned round = 0; round < 20; round++) {
    void *block = luma_alloc(8 * MIB), *other = luma_alloc(8 * MIB);
    CHECK(block != nullptr && other != nullptr);
    fill_block(block, 8 * MIB, round);
    fill_block(other, 8 * MIB, round + 1);
    checker.check(block, 8 * MIB, round);
    OK(luma_free(block));
    CHECK(luma_empty_cache() >= 8 * MIB);
    checker.check(other, 8 * MIB, round + 1);
    OK(luma_free(other));
    CHECK(luma_empty_cache() >= 8 * MIB);
    CHECK(checker.wrong() == 0);
  }
}

} // namespace

int main(int argc, char **argv) {
  size_t rounds = argc > 1 ? strtoull(argv[1], NULL, 10) : 1000;
  size_t largest = (argc > 2 ? strtoull(argv[2], NULL, 10) : 512) * KIB;
  RUNTIME(cudaSetDevice(0));
  RUNTIME(cudaFree(0));
  register_stand_ins();
  a_wrong_byte_is_found();
  queued_work_finds_its_block();
  run(rounds, largest);
  OK(luma_check());
  CHECK(stats_now().live_blocks == 0);
  (void)luma_empty_cache();
  CHECK(stats_now().reserved_bytes == 0);
  return 0;
}
