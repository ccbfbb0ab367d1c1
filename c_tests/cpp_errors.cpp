// Exceptions: their types, their codes, and that what() is the message of the C interface.
#include "cpp_check.hpp"

#include <new>
#include <stdexcept>
#include <type_traits>

static_assert(std::is_base_of_v<std::runtime_error, luma::error>);
static_assert(std::is_base_of_v<std::bad_alloc, luma::out_of_memory>);
static_assert(std::is_nothrow_copy_constructible_v<luma::error>);
static_assert(std::is_nothrow_copy_constructible_v<luma::out_of_memory>);
static_assert(std::is_nothrow_copy_assignable_v<luma::out_of_memory>);
// Both must reach `catch (const std::exception &)`, so std::exception must be a base only once.
static_assert(std::is_convertible_v<luma::error *, std::exception *>);
static_assert(std::is_convertible_v<luma::out_of_memory *, std::exception *>);

static void out_of_memory_is_a_bad_alloc_with_the_message() {
    luma::pool pool(host_config(std::uint64_t{1} << 20));
    const auto oom = THROWN(luma::out_of_memory, pool.alloc(12345678));
    CHECK(oom.status() == LUMA_ERROR_OUT_OF_MEMORY);
    CHECK(oom.what() == last_error());
    CHECK(contains(oom.what(), "12345678"));

    bool caught = false;
    try {
        static_cast<void>(pool.alloc(12345678));
    } catch (const std::bad_alloc &error) {
        caught = contains(error.what(), "12345678");
    }
    CHECK(caught);

    caught = false;
    try {
        static_cast<void>(pool.alloc(12345678));
    } catch (const std::exception &error) {
        caught = contains(error.what(), "12345678");
    }
    CHECK(caught);
}

static void out_of_memory_leaves_a_report() {
    const auto none = THROWN(luma::error, luma::oom_report());
    CHECK(none.status() == LUMA_ERROR_INVALID_VALUE);
    luma::pool pool(host_config(std::uint64_t{1} << 20));
    THROWN(luma::out_of_memory, pool.alloc(12345678));
    const luma_oom_report_t report = luma::oom_report();
    CHECK(report.requested_bytes == 12345678 && report.action == LUMA_OOM_RAISE_LIMIT);
    CHECK(report.action_bytes == 12345856);
}

static void the_largest_sizes_are_refused() {
    luma::pool pool(host_config());
    for (std::size_t less = 0; less < 600; less += 100) {
        const auto oom = THROWN(luma::out_of_memory, pool.alloc(SIZE_MAX - less));
        CHECK(oom.what() == last_error());
    }
    CHECK(pool.stats().live_blocks == 0);
    pool.check();
}

static void errors_carry_code_and_message() {
    luma::pool pool(host_config());

    const auto alignment = THROWN(luma::error, pool.alloc(64, 300));
    CHECK(alignment.status() == LUMA_ERROR_INVALID_VALUE);
    CHECK(alignment.what() == last_error());
    CHECK(contains(alignment.what(), "300"));

    luma::pool_config unknown;
    unknown.backend = 77;
    const auto backend = THROWN(luma::error, luma::pool(unknown));
    CHECK(backend.status() == LUMA_ERROR_INVALID_VALUE);
    CHECK(backend.what() == last_error());
    CHECK(contains(backend.what(), "77"));

    const auto device = THROWN(luma::error, luma::pool::default_pool(9999));
    CHECK(device.status() == LUMA_ERROR_NO_DEVICE);
    CHECK(device.what() == last_error());

    const auto bad = THROWN(luma::error, pool.free(&pool));
    CHECK(bad.status() == LUMA_ERROR_INVALID_POINTER);
    CHECK(bad.what() == last_error());
}

static void wrong_frees_say_which_case_it_is() {
    luma::pool pool(host_config());
    char *block = static_cast<char *>(pool.alloc(4096));
    const std::string inside = THROWN(luma::error, pool.free(block + 512)).what();
    pool.free(block);
    const std::string twice = THROWN(luma::error, pool.free(block)).what();
    int other = 0;
    const std::string foreign = THROWN(luma::error, pool.free(&other)).what();
    CHECK(!inside.empty() && !twice.empty() && !foreign.empty());
    CHECK(inside != twice && twice != foreign && inside != foreign);
    CHECK(pool.stats().live_blocks == 0);
    CHECK(pool.stats().free_calls == 1);
}

static void what_outlives_later_calls() {
    luma::pool pool(host_config());
    const auto first = THROWN(luma::error, pool.alloc(64, 300));
    const std::string before = first.what();
    THROWN(luma::out_of_memory, pool.alloc(SIZE_MAX));
    pool.free(pool.alloc(1));
    CHECK(before == first.what());
}

int main() {
    out_of_memory_leaves_a_report();
    out_of_memory_is_a_bad_alloc_with_the_message();
    the_largest_sizes_are_refused();
    errors_carry_code_and_message();
    wrong_frees_say_which_case_it_is();
    what_outlives_later_calls();
}
