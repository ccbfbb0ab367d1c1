/* Allocation in the order of streams under real kernels, which fill blocks and verify them: many streams, reuse
 * across streams, captured graphs, and requests that must wait on a card that is nearly full. Arguments: rounds,
 * and "full" to fill the card (by plain allocations) for the last part rather than a pool of a limit. */
#include "kernels.cuh"

#include <vector>

#ifndef LUMA_HAS_STREAMS
extern "C" {
void *luma_alloc_async(size_t bytes, luma_stream_t stream);
luma_status_t luma_free_async(void *ptr, luma_stream_t stream);
luma_status_t luma_record_stream(void *ptr, luma_stream_t stream);
luma_status_t luma_release_stream(luma_stream_t stream);
}
#endif

namespace {

enum { STREAMS = 8 };

struct Block {
  void *start;
  size_t bytes;
  unsigned value;
  int stream;
};

unsigned long long state = 0x9E3779B97F4A7C15ull;

size_t below(size_t bound) {
  state ^= state << 13;
  state ^= state >> 7;
  state ^= state << 17;
  return (size_t)(state % bound);
}

class Streams {
public:
  Streams() {
    for (int at = 0; at < STREAMS; at++) {
      RUNTIME(cudaStreamCreateWithFlags(&streams_[at],
                                        at % 2 == 0 ? cudaStreamNonBlocking : cudaStreamDefault));
    }
    RUNTIME(cudaEventCreateWithFlags(&event_, cudaEventDisableTiming));
  }
  ~Streams() {
    for (cudaStream_t stream : streams_) {
      RUNTIME(cudaStreamDestroy(stream));
    }
    RUNTIME(cudaEventDestroy(event_));
  }
  Streams(const Streams &) = delete;
  Streams &operator=(const Streams &) = delete;

  cudaStream_t operator[](int at) const { return streams_[at]; }

  /* What is queued on one so far comes before what is queued on the other from now on. */
  void order(int first, int second) {
    RUNTIME(cudaEventRecord(event_, streams_[first]));
    RUNTIME(cudaStreamWaitEvent(streams_[second], event_, 0));
  }

  void replace(int at) {
    RUNTIME(cudaStreamDestroy(streams_[at]));
    RUNTIME(cudaStreamCreateWithFlags(&streams_[at], cudaStreamNonBlocking));
  }

private:
  cudaStream_t streams_[STREAMS];
  cudaEvent_t event_;
};

/* Blocks are filled on one stream, checked on the same or another, and freed with all of that still queued. */
void blocks_keep_their_contents(size_t rounds) {
  Streams streams;
  Checker checker;
  std::vector<Block> live;
  for (size_t round = 0; round < rounds; round++) {
    if (live.size() < 8 || (live.size() < 60 && below(2) == 0)) {
      Block block = {nullptr, 1 + below((size_t)1 << (8 + below(14))), (unsigned)round,
                     (int)below(STREAMS)};
      block.start = luma_alloc_async(block.bytes, streams[block.stream]);
      CHECK(block.start != nullptr);
      fill_block(block.start, block.bytes, block.value, streams[block.stream]);
      live.push_back(block);
    } else {
      size_t at = below(live.size());
      Block block = live[at];
      int other = (int)below(STREAMS);
      live[at] = live.back();
      live.pop_back();
      switch (below(3)) {
      case 0:
        checker.check(block.start, block.bytes, block.value, streams[block.stream]);
        OK(luma_free_async(block.start, streams[block.stream]));
        break;
      case 1:
        /* The last user frees. */
        streams.order(block.stream, other);
        checker.check(block.start, block.bytes, block.value, streams[other]);
        OK(luma_free_async(block.start, streams[other]));
        break;
      default:
        /* The owner frees, and names the last user. */
        streams.order(block.stream, other);
        checker.check(block.start, block.bytes, block.value, streams[other]);
        OK(luma_record_stream(block.start, streams[other]));
        OK(luma_free_async(block.start, streams[block.stream]));
        break;
      }
    }
    if (round % 200 == 199) {
      (void)luma_empty_cache();
    }
    if (round % 500 == 499) {
      OK(luma_check());
      CHECK(checker.wrong() == 0);
    }
  }
  for (const Block &block : live) {
    checker.check(block.start, block.bytes, block.value, streams[block.stream]);
    OK(luma_free_async(block.start, streams[block.stream]));
  }
  RUNTIME(cudaDeviceSynchronize());
  CHECK(checker.wrong() == 0);
}

/* One stream's blocks become another's, again and again, also under handles that come again. */
void blocks_change_streams(size_t rounds) {
  Streams streams;
  Checker checker;
  for (size_t round = 0; round < rounds; round++) {
    int at = (int)(round % STREAMS);
    size_t bytes = 4 * MIB;
    void *block = luma_alloc_async(bytes, streams[at]);
    CHECK(block != nullptr);
    fill_block(block, bytes, (unsigned)round, streams[at]);
    checker.check(block, bytes, (unsigned)round, streams[at]);
    OK(luma_free_async(block, streams[at]));
    if (round % 16 == 15) {
      streams.replace(at);
    }
  }
  RUNTIME(cudaDeviceSynchronize());
  CHECK(checker.wrong() == 0);
  CHECK(stats_now().pending_bytes == 0);
}

/* A graph whose kernels fill and verify a block of the capture's own, replayed while others allocate. */
void graphs_keep_their_memory(size_t rounds) {
  Streams streams;
  Checker checker;
  const size_t bytes = 2 * MIB;
  cudaGraph_t graph;
  cudaGraphExec_t executable;
  RUNTIME(cudaStreamBeginCapture(streams[0], cudaStreamCaptureModeGlobal));
  void *inside = luma_alloc_async(bytes, streams[0]);
  CHECK(inside != nullptr);
  fill_block(inside, bytes, 77, streams[0]);
  checker.check(inside, bytes, 77, streams[0]);
  OK(luma_free_async(inside, streams[0]));
  RUNTIME(cudaStreamEndCapture(streams[0], &graph));
  RUNTIME(cudaGraphInstantiate(&executable, graph, 0));
  RUNTIME(cudaGraphDestroy(graph));
  for (size_t round = 0; round < rounds; round++) {
    int at = 1 + (int)(round % (STREAMS - 1));
    void *block = luma_alloc_async(bytes, streams[at]);
    CHECK(block != nullptr);
    fill_block(block, bytes, (unsigned)round, streams[at]);
    RUNTIME(cudaGraphLaunch(executable, streams[0]));
    checker.check(block, bytes, (unsigned)round, streams[at]);
    OK(luma_free_async(block, streams[at]));
  }
  RUNTIME(cudaDeviceSynchronize());
  CHECK(checker.wrong() == 0);
  RUNTIME(cudaGraphExecDestroy(executable));
}

/* Requests wait for what other streams are about to finish, where there is no more memory. */
void a_full_card(size_t rounds, bool is_full) {
  enum { BLOCKS = 6 };
  const size_t bytes = is_full ? 256 * MIB : 2 * MIB;
  Streams streams;
  Checker checker;
  void *taken = nullptr;
  size_t free_bytes, total;
  (void)luma_empty_cache();
  if (is_full) {
    RUNTIME(cudaMemGetInfo(&free_bytes, &total));
    CHECK(free_bytes > (BLOCKS + 4) * bytes);
    /* In one piece, and never managed memory: the driver has nothing to move out of the way. */
    RUNTIME(cudaMalloc(&taken, (free_bytes - (BLOCKS + 2) * bytes) / MIB * MIB));
  } else {
    OK(luma_pool_set_limit(luma_default_pool(0), BLOCKS * bytes));
  }
  for (size_t round = 0; round < rounds; round++) {
    int at = (int)(round % STREAMS);
    void *blocks[2];
    for (void *&block : blocks) {
      block = luma_alloc_async(bytes, streams[at]);
      CHECK(block != nullptr);
      fill_block(block, bytes, (unsigned)round, streams[at]);
    }
    for (void *block : blocks) {
      checker.check(block, bytes, (unsigned)round, streams[at]);
      OK(luma_free_async(block, streams[at]));
    }
  }
  /* More than two streams' blocks at once. */
  void *all = luma_alloc_async((BLOCKS - 1) * bytes, streams[1]);
  CHECK(all != nullptr);
  fill_block(all, (BLOCKS - 1) * bytes, 5, streams[1]);
  checker.check(all, (BLOCKS - 1) * bytes, 5, streams[1]);
  REFUSED(luma_alloc_async((BLOCKS + 4) * bytes, streams[2]), LUMA_ERROR_OUT_OF_MEMORY,
          "out of memory");
  OK(luma_free_async(all, streams[1]));
  RUNTIME(cudaDeviceSynchronize());
  CHECK(checker.wrong() == 0);
  if (is_full) {
    RUNTIME(cudaFree(taken));
  } else {
    OK(luma_pool_set_limit(luma_default_pool(0), 0));
  }
}

} // namespace

int main(int argc, char **argv) {
  size_t rounds = argc > 1 ? strtoull(argv[1], NULL, 10) : 2000;
  bool is_full = argc > 2 && strcmp(argv[2], "full") == 0;
  RUNTIME(cudaSetDevice(0));
  RUNTIME(cudaFree(0));
  register_stand_ins();
  blocks_keep_their_contents(rounds);
  blocks_change_streams(rounds / 4);
  graphs_keep_their_memory(rounds / 8);
  a_full_card(is_full ? 64 : 32, is_full);
  RUNTIME(cudaDeviceSynchronize());
  OK(luma_check());
  CHECK(stats_now().live_blocks == 0 && stats_now().pending_bytes == 0);
  for (int attempt = 0; attempt < 100 && stats_now().reserved_bytes > 0; attempt++) {
    /* The driver tells that the graph is gone when it likes to. */
    (void)luma_empty_cache();
    (void)usleep(10000);
  }
  CHECK(stats_now().reserved_bytes == 0);
  return 0;
}
