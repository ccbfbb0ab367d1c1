// luma::allocator where the default pools hold memory that the host cannot touch: containers must
// not get as far as touching it. A program of its own, since default pools are made only once.
#include "cpp_check.hpp"

#include <vector>

int main() {
    const luma::pool_config config = simulated_config();
    CHECK(luma_init(&config) == LUMA_SUCCESS);

    std::vector<int, luma::allocator<int>> numbers;
    for (int attempt = 0; attempt < 2; ++attempt) {
        const auto refused = THROWN(luma::error, numbers.push_back(1));
        CHECK(refused.status() == LUMA_ERROR_UNSUPPORTED);
        CHECK(contains(refused.what(), "luma::allocator"));
        CHECK(contains(refused.what(), "LUMA_BACKEND=host"));
        CHECK(numbers.empty());
    }
    CHECK(luma::pool::default_pool().stats().alloc_calls == 0);

    // A typed view does not touch what it owns, so it is welcome to such memory.
    const auto block = luma::make_unique<int>(1000);
    CHECK(block.size() == 1000);
}
