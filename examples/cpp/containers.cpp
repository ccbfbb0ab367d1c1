// The standard allocators: luma::allocator is the default pool, luma::pool_allocator any pool.
#include <luma.hpp>

#include <cstdio>
#include <exception>
#include <functional>
#include <unordered_map>
#include <utility>
#include <vector>

namespace {

template <class T> using vector = std::vector<T, luma::allocator<T>>;
template <class T> using pool_vector = std::vector<T, luma::pool_allocator<T>>;

// Vector instructions want aligned data, and a container of these gets it.
struct alignas(64) lane {
    float values[16];
};

luma::pool host_pool() {
    luma::pool_config config;
    config.backend = LUMA_BACKEND_HOST;
    return luma::pool(config);
}

} // namespace

int main() {
    try {
        // Containers write to their memory, so the default pool has to be host memory. This is for
        // machines with a GPU; it must come before the first use of luma.
        luma::pool_config config;
        config.backend = LUMA_BACKEND_HOST;
        if (luma_init(&config) != LUMA_SUCCESS) {
            std::fprintf(stderr, "luma_init: %s\n", luma_last_error());
            return 1;
        }

        vector<int> numbers;
        for (int i = 0; i < 100000; ++i) {
            numbers.push_back(i);
        }
        std::printf("default pool: %zu numbers in a block of %zu bytes\n", numbers.size(),
                    luma_usable_size(numbers.data()));

        // A pool for each kind of data: its use can be seen, limited and checked by itself.
        luma::pool pool = host_pool();
        luma::pool other = host_pool();
        pool_vector<lane> lanes(1000, pool);
        std::unordered_map<int, double, std::hash<int>, std::equal_to<int>,
                           luma::pool_allocator<std::pair<const int, double>>>
            index(pool);
        for (int i = 0; i < 1000; ++i) {
            index[i] = i / 8.0;
        }
        std::printf("own pool: %zu lanes and %zu entries in %llu blocks\n", lanes.size(),
                    index.size(), static_cast<unsigned long long>(pool.stats().live_blocks));

        // A move takes the pool along; an assigned copy stays in the pool of its target.
        pool_vector<lane> target(other);
        target = lanes;
        std::printf("copied: %llu block(s) in the other pool\n",
                    static_cast<unsigned long long>(other.stats().live_blocks));
        target = std::move(lanes);
        std::printf("moved:  %llu block(s) in the other pool\n",
                    static_cast<unsigned long long>(other.stats().live_blocks));

        pool.check();
        other.check();
        std::printf("both pools are consistent\n");
    } catch (const std::exception &error) {
        std::fprintf(stderr, "%s\n", error.what());
        return 1;
    }
}
