// luma::CachingAllocator, for programs that were written against luma-cuda 0.3.2: a training loop
// whose buffers come and go in every step, and that asks the driver for memory in the first only.
#include <luma.hpp>

#include <cstdio>
#include <exception>
#include <vector>

int main() {
    try {
        luma::CachingAllocator allocator;

        for (int step = 1; step <= 3; ++step) {
            std::vector<void *> buffers;
            for (std::size_t layer = 1; layer <= 12; ++layer) {
                buffers.push_back(allocator.alloc(layer * 100000));
            }
            for (void *buffer : buffers) {
                allocator.free(buffer);
            }
            const luma::CachingAllocator::Stats stats = allocator.stats();
            std::printf("after step %d: %llu backend calls, %llu bytes reserved, peak %llu\n", step,
                        static_cast<unsigned long long>(stats.cuda_malloc_calls),
                        static_cast<unsigned long long>(stats.reserved_bytes),
                        static_cast<unsigned long long>(stats.peak_bytes));
        }
        allocator.assert_consistency();

        allocator.empty_cache();
        const luma::CachingAllocator::Stats stats = allocator.stats();
        std::printf("cache emptied: %llu segments, %llu of %llu backend calls undone\n",
                    static_cast<unsigned long long>(stats.segments),
                    static_cast<unsigned long long>(stats.cuda_free_calls),
                    static_cast<unsigned long long>(stats.cuda_malloc_calls));

        try {
            allocator.free(&allocator);
            std::fprintf(stderr, "a pointer from elsewhere was freed\n");
            return 1;
        } catch (const luma::error &error) {
            std::printf("a pointer from elsewhere: %s\n", error.what());
        }
    } catch (const std::exception &error) {
        std::fprintf(stderr, "%s\n", error.what());
        return 1;
    }
}
