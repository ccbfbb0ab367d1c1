// luma::CachingAllocator: the five methods of luma-cuda 0.3.2's class and what they promise.
#include "cpp_check.hpp"

#include <cstdlib>
#include <type_traits>
#include <vector>

using luma::CachingAllocator;

static_assert(std::is_default_constructible_v<CachingAllocator>);
static_assert(!std::is_copy_constructible_v<CachingAllocator>);
static_assert(!std::is_copy_assignable_v<CachingAllocator>);
static_assert(!std::is_convertible_v<int, CachingAllocator>);
static_assert(std::is_nothrow_destructible_v<CachingAllocator>);
static_assert(std::is_same_v<decltype(&CachingAllocator::alloc),
                             void *(CachingAllocator::*)(std::size_t)>);
static_assert(std::is_same_v<decltype(&CachingAllocator::free), void (CachingAllocator::*)(void *)>);
static_assert(std::is_same_v<decltype(&CachingAllocator::empty_cache), void (CachingAllocator::*)()>);
static_assert(std::is_same_v<decltype(&CachingAllocator::assert_consistency),
                             void (CachingAllocator::*)() const>);

constexpr std::size_t MiB = std::size_t{1} << 20;

static void all_eight_statistics() {
    CachingAllocator allocator;
    const auto empty = allocator.stats();
    CHECK(empty.allocated_bytes == 0 && empty.reserved_bytes == 0 && empty.peak_bytes == 0);
    CHECK(empty.live_blocks == 0 && empty.free_blocks == 0 && empty.segments == 0);
    CHECK(empty.cuda_malloc_calls == 0 && empty.cuda_free_calls == 0);

    // A segment is a multiple of 1 MiB, wrapped as one block and split.
    void *first = allocator.alloc(1000);
    void *second = allocator.alloc(100);
    CHECK(first != second && aligned(first, 256) && aligned(second, 256));
    const auto two = allocator.stats();
    CHECK(two.allocated_bytes == 1024 + 256);
    CHECK(two.peak_bytes == 1024 + 256);
    CHECK(two.reserved_bytes == MiB);
    CHECK(two.live_blocks == 2 && two.free_blocks == 1 && two.segments == 1);
    CHECK(two.cuda_malloc_calls == 1 && two.cuda_free_calls == 0);
    allocator.assert_consistency();

    void *large = allocator.alloc(3 * MiB / 2);
    CHECK(allocator.stats().reserved_bytes == 3 * MiB);
    CHECK(allocator.stats().segments == 2);

    // A freed block is kept and serves the next request of its size.
    allocator.free(first);
    CHECK(allocator.alloc(1000) == first);
    CHECK(allocator.stats().cuda_malloc_calls == 2);

    allocator.free(first);
    allocator.free(second);
    allocator.free(large);
    allocator.assert_consistency();
    const auto freed = allocator.stats();
    CHECK(freed.allocated_bytes == 0 && freed.live_blocks == 0);
    CHECK(freed.reserved_bytes == 3 * MiB && freed.free_blocks == 2);
    CHECK(freed.peak_bytes == 1024 + 256 + 3 * MiB / 2);

    allocator.empty_cache();
    const auto emptied = allocator.stats();
    CHECK(emptied.reserved_bytes == 0 && emptied.segments == 0 && emptied.free_blocks == 0);
    CHECK(emptied.cuda_malloc_calls == 2 && emptied.cuda_free_calls == 2);
    allocator.assert_consistency();
}

static void nothing_and_too_much() {
    CachingAllocator allocator(0);
    CHECK(allocator.alloc(0) == nullptr);
    allocator.free(nullptr);
    const auto oom = THROWN(luma::out_of_memory, allocator.alloc(SIZE_MAX));
    CHECK(oom.what() == last_error());
    THROWN(std::bad_alloc, allocator.alloc(SIZE_MAX - 100));
    allocator.assert_consistency();
}

static void wrong_frees_throw() {
    CachingAllocator allocator;
    char *block = static_cast<char *>(allocator.alloc(1024));
    CHECK(THROWN(luma::error, allocator.free(block + 256)).status() == LUMA_ERROR_INVALID_POINTER);
    allocator.free(block);
    CHECK(THROWN(luma::error, allocator.free(block)).status() == LUMA_ERROR_INVALID_POINTER);
    allocator.assert_consistency();
}

static void it_frees_all_when_destroyed_and_shares_nothing() {
    CachingAllocator outer;
    const std::uint64_t default_blocks = luma::pool::default_pool().stats().live_blocks;
    for (int round = 0; round < 50; ++round) {
        CachingAllocator inner;
        for (int i = 0; i < 20; ++i) {
            CHECK(inner.alloc(MiB) != nullptr);
        }
        CHECK(inner.stats().live_blocks == 20);
    }
    CHECK(outer.stats().live_blocks == 0);
    CHECK(luma::pool::default_pool().stats().live_blocks == default_blocks);
}

static void no_such_device() {
    CHECK(THROWN(luma::error, CachingAllocator(9999)).status() == LUMA_ERROR_NO_DEVICE);
}

int main() {
    // Which memory is used again is looked at, in checked mode too.
    CHECK(setenv("LUMA_QUARANTINE_BLOCKS", "0", 1) == 0);
    all_eight_statistics();
    nothing_and_too_much();
    wrong_frees_throw();
    it_frees_all_when_destroyed_and_shares_nothing();
    no_such_device();
}
