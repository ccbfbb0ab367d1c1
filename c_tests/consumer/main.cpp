// Uses the installed C++ header and library.
#include <luma.hpp>

#include <cstdio>
#include <exception>
#include <numeric>
#include <vector>

int main() {
    try {
        luma::pool_config config;
        config.backend = LUMA_BACKEND_HOST;
        luma::pool pool(config);
        std::vector<int, luma::pool_allocator<int>> numbers(1000, pool);
        std::iota(numbers.begin(), numbers.end(), 0);
        if (pool.stats().live_blocks != 1 || numbers.back() != 999) {
            std::fprintf(stderr, "the vector is not in the pool\n");
            return 1;
        }
        try {
            static_cast<void>(pool.alloc(static_cast<std::size_t>(-1)));
            std::fprintf(stderr, "all memory there is was handed out\n");
            return 1;
        } catch (const luma::out_of_memory &error) {
            std::printf("C++: luma %s: %s\n", luma_version(), error.what());
        }
    } catch (const std::exception &error) {
        std::fprintf(stderr, "%s\n", error.what());
        return 1;
    }
}
