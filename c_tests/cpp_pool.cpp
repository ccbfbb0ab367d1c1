// luma::pool and luma::pool_ref: ownership, moves, and every call.
#include "cpp_check.hpp"

#include <cstring>
#include <map>
#include <type_traits>
#include <utility>

static_assert(!std::is_copy_constructible_v<luma::pool>);
static_assert(!std::is_copy_assignable_v<luma::pool>);
static_assert(std::is_nothrow_move_constructible_v<luma::pool>);
static_assert(std::is_nothrow_move_assignable_v<luma::pool>);
static_assert(std::is_nothrow_destructible_v<luma::pool>);
static_assert(std::is_trivially_copyable_v<luma::pool_ref>);
static_assert(std::is_convertible_v<luma::pool &, luma::pool_ref>);
static_assert(std::is_convertible_v<const luma::pool &, luma::pool_ref>);
// A handle of a temporary pool would be dead at once.
static_assert(!std::is_convertible_v<luma::pool, luma::pool_ref>);

// Memory that counts what is held, to see what a pool gives back and when.
struct counted_memory {
    std::map<void *, std::size_t> held;

    static void *alloc(std::size_t bytes, void *user) {
        void *ptr = std::aligned_alloc(4096, (bytes + 4095) / 4096 * 4096);
        if (ptr != nullptr) {
            static_cast<counted_memory *>(user)->held[ptr] = bytes;
        }
        return ptr;
    }

    static void free(void *ptr, std::size_t bytes, void *user) {
        auto &held = static_cast<counted_memory *>(user)->held;
        const auto found = held.find(ptr);
        CHECK(found != held.end() && found->second == bytes);
        held.erase(found);
        std::free(ptr);
    }

    luma::pool_config config() {
        luma::pool_config config;
        config.backend = LUMA_BACKEND_CALLBACKS;
        config.alloc_fn = alloc;
        config.free_fn = free;
        config.user = this;
        return config;
    }
};

static void blocks_are_aligned_and_counted() {
    luma::pool pool(host_config());
    CHECK(pool.is_host_accessible());
    for (const std::size_t alignment : {0U, 1U, 64U, 256U, 512U, 4096U, 65536U}) {
        void *block = pool.alloc(1000, alignment);
        CHECK(aligned(block, alignment < 256 ? 256 : alignment));
        std::memset(block, 0x5a, 1000);
        const luma_stats_t stats = pool.stats();
        CHECK(stats.struct_size == sizeof(stats));
        CHECK(stats.live_blocks == 1);
        CHECK(stats.requested_bytes == 1000);
        CHECK(stats.allocated_bytes >= 1000 && stats.allocated_bytes % 256 == 0);
        CHECK(stats.reserved_bytes >= stats.allocated_bytes);
        pool.check();
        pool.free(block);
    }
    CHECK(pool.stats().live_blocks == 0);
    CHECK(pool.stats().alloc_calls == 7 && pool.stats().free_calls == 7);
}

static void nothing_is_a_null_pointer() {
    luma::pool pool(host_config());
    CHECK(pool.alloc(0) == nullptr);
    pool.free(nullptr);
    CHECK(pool.stats().live_blocks == 0);
    CHECK(pool.stats().alloc_calls == 0 && pool.stats().free_calls == 0);
}

static void the_cache_is_emptied() {
    counted_memory memory;
    luma::pool pool(memory.config());
    pool.free(pool.alloc(std::size_t{3} << 20));
    const std::uint64_t cached = pool.stats().reserved_bytes;
    CHECK(pool.empty_cache() == cached);
    CHECK(pool.empty_cache() == 0);
    CHECK(memory.held.empty());
    const luma_stats_t stats = pool.stats();
    CHECK(stats.reserved_bytes == 0 && stats.segments == 0);
    CHECK(stats.cuda_malloc_calls == stats.cuda_free_calls);
}

static void an_emptied_cache_does_not_report_an_older_failure() {
    luma::pool pool(host_config());
    THROWN(luma::error, pool.alloc(64, 300));
    CHECK(pool.empty_cache() == 0);
}

static void the_limit_holds() {
    luma::pool pool(host_config());
    pool.set_limit(std::uint64_t{4} << 20);
    CHECK(pool.stats().memory_limit == std::uint64_t{4} << 20);
    THROWN(luma::out_of_memory, pool.alloc(std::size_t{5} << 20));
    CHECK(pool.stats().out_of_memory_count == 1);
    pool.set_limit(0);
    pool.free(pool.alloc(std::size_t{5} << 20));
}

static void a_destroyed_pool_gives_live_blocks_back() {
    counted_memory memory;
    {
        luma::pool pool(memory.config());
        CHECK(pool.alloc(1 << 20) != nullptr);
        CHECK(!memory.held.empty());
    }
    CHECK(memory.held.empty());
}

static void moves_hand_the_pool_over() {
    counted_memory first_memory;
    counted_memory second_memory;
    luma::pool first(first_memory.config());
    void *block = first.alloc(100);
    luma_pool_t *handle = first.native_handle();

    luma::pool moved(std::move(first));
    CHECK(moved.native_handle() == handle);
    CHECK(first.native_handle() == nullptr); // moved from: empty, and says so
    const auto empty = THROWN(luma::error, first.alloc(1));
    CHECK(empty.status() == LUMA_ERROR_INVALID_VALUE);
    CHECK(!first.is_host_accessible());
    THROWN(luma::error, first.stats());
    THROWN(luma::error, first.check());
    THROWN(luma::error, first.set_limit(1));

    luma::pool second(second_memory.config());
    CHECK(second.alloc(100) != nullptr);
    second = std::move(moved);
    CHECK(second_memory.held.empty()); // what it had is gone
    CHECK(second.native_handle() == handle);
    CHECK(moved.native_handle() == nullptr);
    second.free(block);

    luma::pool &same = second;
    second = std::move(same);
    CHECK(second.native_handle() == handle);
    second.free(second.alloc(1));

    first = luma::pool(first_memory.config());
    first.free(first.alloc(1));
}

static void a_released_pool_is_the_callers() {
    luma::pool pool(host_config());
    luma_pool_t *handle = pool.release();
    CHECK(pool.native_handle() == nullptr);
    const luma::pool_ref ref(handle);
    ref.free(ref.alloc(1));
    CHECK(luma_pool_destroy(handle) == LUMA_SUCCESS);
}

static void refs_do_not_own() {
    luma::pool pool(host_config());
    void *block = nullptr;
    {
        const luma::pool_ref ref = pool;
        const luma::pool_ref copy = ref;
        CHECK(copy == ref && !(copy != ref));
        block = copy.alloc(10);
    }
    CHECK(pool.stats().live_blocks == 1);
    pool.ref().free(block);

    const luma::pool other(host_config());
    CHECK(other.ref() != pool.ref());
    const auto foreign = THROWN(luma::error, other.free(pool.alloc(10)));
    CHECK(foreign.status() == LUMA_ERROR_INVALID_POINTER);
}

static void the_default_pool_is_the_one_of_the_c_functions() {
    const luma::pool_ref ref = luma::pool::default_pool();
    CHECK(ref == luma::pool_ref::default_pool(0));
    void *block = ref.alloc(10);
    CHECK(luma_usable_size(block) == 256);
    CHECK(luma_free(block) == LUMA_SUCCESS);
    // It is not anybody's to destroy.
    CHECK(luma_pool_destroy(ref.native_handle()) == LUMA_ERROR_INVALID_VALUE);
}

static void memory_that_may_be_a_devices_is_told_apart() {
    counted_memory memory;
    CHECK(!luma::pool(memory.config()).is_host_accessible());
    const luma::pool simulated(simulated_config());
    CHECK(!simulated.is_host_accessible());
    simulated.free(simulated.alloc(1 << 20));
}

static void a_config_starts_at_the_defaults() {
    const luma::pool_config ours;
    const luma_pool_config_t theirs = LUMA_POOL_CONFIG_INIT;
    CHECK(ours.struct_size == theirs.struct_size);
    CHECK(ours.backend == theirs.backend && ours.device == theirs.device);
    CHECK(ours.preset == theirs.preset && ours.growth == theirs.growth);
    CHECK(ours.memory_limit == theirs.memory_limit && ours.capacity == theirs.capacity);
    CHECK(ours.alloc_fn == theirs.alloc_fn && ours.user == theirs.user);
}

int main() {
    blocks_are_aligned_and_counted();
    nothing_is_a_null_pointer();
    the_cache_is_emptied();
    an_emptied_cache_does_not_report_an_older_failure();
    the_limit_holds();
    a_destroyed_pool_gives_live_blocks_back();
    moves_hand_the_pool_over();
    a_released_pool_is_the_callers();
    refs_do_not_own();
    the_default_pool_is_the_one_of_the_c_functions();
    memory_that_may_be_a_devices_is_told_apart();
    a_config_starts_at_the_defaults();
}
