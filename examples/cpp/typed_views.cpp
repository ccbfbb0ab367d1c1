// luma::unique_ptr: typed, owned views over untyped blocks. It never touches what it owns, so the
// same code serves device memory; here the pool is host memory, and the program fills it itself.
#include <luma.hpp>

#include <cstdio>
#include <exception>
#include <utility>
#include <vector>

namespace {

struct layer {
    luma::unique_ptr<float> weights;
    luma::unique_ptr<double> statistics; // sums want more digits than weights
};

layer make_layer(luma::pool_ref pool, std::size_t inputs, std::size_t outputs) {
    return {luma::make_unique<float>(pool, inputs * outputs),
            luma::make_unique<double>(pool, outputs)};
}

void show(const char *when, const luma::pool &pool) {
    const luma_stats_t stats = pool.stats();
    std::printf("%-20s %llu blocks, %llu bytes asked for, %llu allocated\n", when,
                static_cast<unsigned long long>(stats.live_blocks),
                static_cast<unsigned long long>(stats.requested_bytes),
                static_cast<unsigned long long>(stats.allocated_bytes));
}

} // namespace

int main() {
    try {
        luma::pool_config config;
        config.backend = LUMA_BACKEND_HOST;
        luma::pool pool(config);

        std::vector<layer> model;
        model.push_back(make_layer(pool, 784, 256));
        model.push_back(make_layer(pool, 256, 10));
        show("two layers:", pool);

        // Where the host may touch the memory, get() is a plain pointer.
        if (pool.is_host_accessible()) {
            const layer &last = model.back();
            for (std::size_t out = 0; out < last.statistics.size(); ++out) {
                double sum = 0.0;
                for (std::size_t in = 0; in < 256; ++in) {
                    float &weight = last.weights.get()[out * 256 + in];
                    weight = 0.01F * static_cast<float>(out);
                    sum += static_cast<double>(weight);
                }
                last.statistics.get()[out] = sum;
            }
            std::printf("the last output's weights add up to %.3f\n", last.statistics.get()[9]);
        }

        // Ownership moves; the block is freed by its last owner, in the pool that it came from.
        luma::unique_ptr<float> kept = std::move(model.front().weights);
        model.clear();
        show("one block kept:", pool);
        std::printf("it holds %zu floats, %zu bytes\n", kept.size(), kept.size_bytes());
        kept.reset();
        show("nothing kept:", pool);
    } catch (const std::exception &error) {
        std::fprintf(stderr, "%s\n", error.what());
        return 1;
    }
}
