// Objects that outlive main: pools, blocks and containers of static and thread storage duration are
// destroyed in their order, and the library still answers.
#include "cpp_check.hpp"

#include <thread>
#include <vector>

template <class T> using vector = std::vector<T, luma::allocator<T>>;

namespace {

// Destroyed last, so it sees that all the others gave their memory back.
struct last_word {
    ~last_word() {
        if (luma::pool::default_pool().stats().live_blocks != 0 || luma_check() != LUMA_SUCCESS) {
            std::fprintf(stderr, "blocks are left at exit: %s\n", luma_last_error());
            std::_Exit(1);
        }
        std::puts("all destroyed");
    }
};

const last_word word;
vector<int> numbers(1000, 1);
luma::pool pool(host_config());
std::vector<int, luma::pool_allocator<int>> pooled(1000, 2, pool);
luma::unique_ptr<float> block = luma::make_unique<float>(pool, 1000);
luma::CachingAllocator caching;
thread_local vector<int> of_thread;

} // namespace

int main() {
    of_thread.assign(1000, 3);
    std::thread([] { of_thread.assign(1000, 4); }).join();
    numbers.resize(100000, 1);
    CHECK(caching.alloc(1000) != nullptr);
    CHECK(pooled.back() + of_thread.back() + numbers.back() == 6);
    CHECK(block.size() == 1000);
    std::exit(0); // as main's end does, but also from deep inside a program
}
