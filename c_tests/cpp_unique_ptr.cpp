// luma::unique_ptr: ownership of typed blocks that nobody touches.
#include "cpp_check.hpp"

#include <new>
#include <type_traits>
#include <utility>
#include <vector>

using floats = luma::unique_ptr<float>;

static_assert(!std::is_copy_constructible_v<floats>);
static_assert(!std::is_copy_assignable_v<floats>);
static_assert(std::is_nothrow_move_constructible_v<floats>);
static_assert(std::is_nothrow_move_assignable_v<floats>);
static_assert(std::is_nothrow_swappable_v<floats>);
static_assert(std::is_nothrow_default_constructible_v<floats>);
static_assert(std::is_same_v<floats::pointer, float *>);
static_assert(std::is_same_v<luma::unique_ptr<double[]>::pointer, double *>);

struct alignas(4096) page {
    unsigned char bytes[4096];
};

// Its constructor must never run: the memory may lie on a device.
struct constructed {
    constructed() { std::abort(); }
    int value;
};

static void it_owns_a_block_of_elements() {
    luma::pool pool(host_config());
    {
        const floats block = luma::make_unique<float>(pool, 1000);
        CHECK(block);
        CHECK(block.size() == 1000);
        CHECK(block.size_bytes() == 4000);
        CHECK(block.get_pool() == pool.ref());
        CHECK(block.stream() == nullptr);
        CHECK(aligned(block.get(), 256));
        CHECK(pool.stats().requested_bytes == 4000);
        for (std::size_t i = 0; i < block.size(); ++i) {
            block.get()[i] = static_cast<float>(i);
        }
        CHECK(block.get()[999] == 999.0F);
    }
    CHECK(pool.stats().live_blocks == 0);
    CHECK(pool.stats().free_calls == 1);
}

static void the_array_spelling_means_the_same() {
    luma::pool pool(host_config());
    const luma::unique_ptr<double[]> block = luma::make_unique<double[]>(pool, 10);
    CHECK(block.size() == 10 && block.size_bytes() == 80);
}

static void over_aligned_elements_are_aligned() {
    luma::pool pool(host_config());
    const auto first = luma::make_unique<page>(pool, 1);
    const auto small = luma::make_unique<char>(pool, 1);
    const auto second = luma::make_unique<page>(pool, 3);
    CHECK(aligned(first.get(), 4096) && aligned(second.get(), 4096));
    const auto of_default_pool = luma::make_unique<page>(2);
    CHECK(aligned(of_default_pool.get(), 4096));
}

static void elements_are_never_touched() {
    luma::pool simulated(simulated_config());
    const auto block = luma::make_unique<constructed>(simulated, std::size_t{1} << 20);
    CHECK(block.size() == std::size_t{1} << 20);
    CHECK(!block.get_pool().is_host_accessible());
}

static void moves_and_swaps_hand_over() {
    luma::pool first_pool(host_config());
    luma::pool second_pool(host_config());
    floats a = luma::make_unique<float>(first_pool, 10);
    floats b = luma::make_unique<float>(second_pool, 20);
    float *a_ptr = a.get();
    float *b_ptr = b.get();

    swap(a, b);
    CHECK(a.get() == b_ptr && a.size() == 20 && a.get_pool() == second_pool.ref());
    CHECK(b.get() == a_ptr && b.size() == 10 && b.get_pool() == first_pool.ref());

    a = std::move(b); // frees the block of the second pool
    CHECK(second_pool.stats().live_blocks == 0);
    CHECK(a.get() == a_ptr && a.size() == 10);
    CHECK(!b && b.size() == 0 && b.get() == nullptr);
    CHECK(b == nullptr && nullptr == b && a != nullptr && nullptr != a);

    floats c(std::move(a));
    CHECK(c.get() == a_ptr && !a);
    floats &same = c;
    c = std::move(same);
    CHECK(c.get() == a_ptr && c.size() == 10);
    c = nullptr;
    CHECK(first_pool.stats().live_blocks == 0);

    std::vector<floats> many;
    for (std::size_t i = 1; i <= 100; ++i) {
        many.push_back(luma::make_unique<float>(first_pool, i));
    }
    CHECK(first_pool.stats().live_blocks == 100);
    many.clear();
    CHECK(first_pool.stats().live_blocks == 0);
}

static void released_blocks_are_the_callers_and_can_be_adopted() {
    luma::pool pool(host_config());
    floats block = luma::make_unique<float>(pool, 5);
    float *ptr = block.release();
    CHECK(!block && block.size() == 0);
    CHECK(pool.stats().live_blocks == 1);
    {
        const floats adopted(ptr, 5, pool);
        CHECK(adopted.size() == 5);
    }
    CHECK(pool.stats().live_blocks == 0);
}

static void reset_frees_once() {
    luma::pool pool(host_config());
    floats block = luma::make_unique<float>(pool, 5);
    block.reset();
    block.reset();
    CHECK(!block && pool.stats().free_calls == 1);

    // Freed behind its back: dropped, and nothing else is harmed.
    block = luma::make_unique<float>(pool, 5);
    pool.free(block.get());
    block.reset();
    CHECK(luma_last_status() == LUMA_ERROR_INVALID_POINTER);
    CHECK(pool.stats().live_blocks == 0);
    pool.check();
}

static void no_elements_are_no_block() {
    luma::pool pool(host_config());
    const floats none = luma::make_unique<float>(pool, 0);
    CHECK(!none && none.size() == 0);
    const floats empty;
    CHECK(empty == nullptr);
    CHECK(pool.stats().alloc_calls == 0);
}

static void sizes_cannot_wrap() {
    luma::pool pool(host_config());
    THROWN(std::bad_array_new_length, luma::make_unique<float>(pool, SIZE_MAX / 4 + 1));
    THROWN(std::bad_array_new_length, luma::make_unique<page>(SIZE_MAX / 4096 + 1));
    THROWN(luma::out_of_memory, luma::make_unique<float>(pool, SIZE_MAX / 4));
    CHECK(pool.stats().live_blocks == 0);
}

static void the_default_pool_serves_too() {
    const luma::pool_ref pool = luma::pool::default_pool();
    const std::uint64_t before = pool.stats().live_blocks;
    {
        const auto block = luma::make_unique<std::uint32_t>(100);
        CHECK(block.size() == 100);
        CHECK(luma_usable_size(block.get()) == 512);
        CHECK(pool.stats().live_blocks == before + 1);
    }
    CHECK(pool.stats().live_blocks == before);
}

int main() {
    it_owns_a_block_of_elements();
    the_array_spelling_means_the_same();
    over_aligned_elements_are_aligned();
    elements_are_never_touched();
    moves_and_swaps_hand_over();
    released_blocks_are_the_callers_and_can_be_adopted();
    reset_frees_once();
    no_elements_are_no_block();
    sizes_cannot_wrap();
    the_default_pool_serves_too();
}
