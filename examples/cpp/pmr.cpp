// A pool as a std::pmr::memory_resource: containers, their strings and their nodes all live in it.
#include <luma.hpp>

#include <cstdio>
#include <exception>
#include <map>
#include <memory_resource>
#include <string>
#include <vector>

int main() {
    try {
        luma::pool_config config;
        config.backend = LUMA_BACKEND_HOST;
        config.memory_limit = std::uint64_t{16} << 20;
        luma::pool pool(config);
        luma::memory_resource resource(pool);

        {
            // The resource is handed on to every string inside.
            std::pmr::map<std::pmr::string, std::pmr::vector<double>> columns(&resource);
            for (const char *name : {"temperature of the device", "power drawn by the device"}) {
                auto &column = columns[std::pmr::string(name, &resource)];
                for (int i = 0; i < 10000; ++i) {
                    column.push_back(i * 0.5);
                }
            }
            for (const auto &[name, column] : columns) {
                std::printf("%s: %zu values, the last is %.1f\n", name.c_str(), column.size(),
                            column.back());
            }
            const luma_stats_t stats = pool.stats();
            std::printf("in the pool: %llu blocks, %llu bytes\n",
                        static_cast<unsigned long long>(stats.live_blocks),
                        static_cast<unsigned long long>(stats.allocated_bytes));

            // Many small, short-lived objects: an arena takes large blocks from the pool.
            std::pmr::monotonic_buffer_resource arena(64 * 1024, &resource);
            std::pmr::vector<std::pmr::string> words(&arena);
            for (int i = 0; i < 1000; ++i) {
                words.emplace_back("a word too long for the small buffer");
            }
            std::printf("with %zu strings in an arena: %llu blocks\n", words.size(),
                        static_cast<unsigned long long>(pool.stats().live_blocks));

            // Beyond the limit a container throws std::bad_alloc, which says more than usual.
            try {
                columns.begin()->second.resize(std::size_t{4} << 20);
                std::fprintf(stderr, "32 MiB fitted under a limit of 16 MiB\n");
                return 1;
            } catch (const std::bad_alloc &error) {
                std::printf("too large: %s\n", error.what());
            }
        }
        std::printf("afterwards: %llu blocks\n",
                    static_cast<unsigned long long>(pool.stats().live_blocks));

        // Containers write to their memory, so memory that the host cannot touch is refused.
        luma::pool_config device;
        device.backend = LUMA_BACKEND_SIMULATED;
        const luma::pool device_pool(device);
        try {
            luma::memory_resource refused(device_pool);
            std::fprintf(stderr, "a resource over device memory was made\n");
            return 1;
        } catch (const luma::error &error) {
            std::printf("device memory: %s\n", error.what());
        }
    } catch (const std::exception &error) {
        std::fprintf(stderr, "%s\n", error.what());
        return 1;
    }
}
