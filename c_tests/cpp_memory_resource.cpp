// luma::memory_resource under the containers and resources of std::pmr.
#include "cpp_check.hpp"

#include <deque>
#include <list>
#include <map>
#include <memory_resource>
#include <string>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

static_assert(!std::is_convertible_v<luma::pool, luma::memory_resource>);

struct alignas(1024) wide {
    int value;
};

static void pmr_containers_live_in_the_pool() {
    luma::pool pool(host_config());
    luma::memory_resource resource(pool);
    CHECK(resource.get_pool() == pool.ref());
    {
        std::pmr::vector<int> numbers(&resource);
        std::pmr::list<double> links(&resource);
        std::pmr::deque<char> letters(&resource);
        std::pmr::map<int, std::pmr::string> names(&resource);
        std::pmr::unordered_map<std::pmr::string, int> index(&resource);
        for (int i = 0; i < 300; ++i) {
            numbers.push_back(i);
            links.push_front(i);
            letters.push_back('x');
            const std::string text = "a name too long for the small buffer, " + std::to_string(i);
            names.emplace(i, text);
            index.emplace(text, i);
        }
        CHECK(numbers[299] == 299);
        CHECK(links.front() == 299.0);
        CHECK(letters.size() == 300);
        CHECK(contains(std::string(names.at(200)), ", 200"));
        CHECK(index.at(names.at(77)) == 77);
        // Nodes and the strings inside them alike.
        CHECK(names.at(5).get_allocator().resource() == &resource);
        CHECK(pool.stats().live_blocks > 1200);
        pool.check();
        names.erase(5);
        numbers.shrink_to_fit();
    }
    CHECK(pool.stats().live_blocks == 0);
    CHECK(pool.stats().alloc_calls == pool.stats().free_calls);
}

static void alignment_is_honoured() {
    luma::pool pool(host_config());
    luma::memory_resource resource(pool);
    for (std::size_t alignment = 1; alignment <= 65536; alignment *= 2) {
        void *block = resource.allocate(100, alignment);
        CHECK(aligned(block, alignment));
        resource.deallocate(block, 100, alignment);
    }
    const std::pmr::vector<wide> vector(10, &resource);
    CHECK(aligned(vector.data(), 1024));
}

static void no_bytes_have_an_address_of_their_own() {
    luma::pool pool(host_config());
    luma::memory_resource resource(pool);
    void *a = resource.allocate(0);
    void *b = resource.allocate(0);
    CHECK(a != nullptr && b != nullptr && a != b);
    resource.deallocate(a, 0);
    resource.deallocate(b, 0);
    CHECK(pool.stats().live_blocks == 0);
}

static void equality_is_the_pools() {
    luma::pool pool(host_config());
    luma::pool other_pool(host_config());
    luma::memory_resource a(pool);
    luma::memory_resource b(pool);
    luma::memory_resource c(other_pool);
    CHECK(a == b && a.is_equal(b));
    CHECK(a != c && !a.is_equal(c));
    CHECK(!a.is_equal(*std::pmr::new_delete_resource()));
    CHECK(!std::pmr::new_delete_resource()->is_equal(a));

    // What equality promises: one frees what the other allocated.
    b.deallocate(a.allocate(10), 10);

    // Between unequal resources a move copies the elements.
    std::pmr::vector<int> from({1, 2, 3}, &a);
    std::pmr::vector<int> to(&c);
    to = std::move(from);
    CHECK(to.size() == 3 && to[2] == 3);
    CHECK(other_pool.stats().live_blocks == 1);
}

static void other_resources_stand_on_it() {
    luma::pool pool(host_config());
    luma::memory_resource resource(pool);
    {
        std::pmr::monotonic_buffer_resource arena(&resource);
        std::pmr::synchronized_pool_resource shared(&resource);
        std::pmr::vector<int> a(1000, 7, &arena);
        std::pmr::vector<int> b(1000, 8, &shared);
        CHECK(a[999] == 7 && b[999] == 8);
    }
    CHECK(pool.stats().live_blocks == 0);
}

static void exhaustion_is_a_bad_alloc() {
    luma::pool pool(host_config(std::uint64_t{1} << 20));
    luma::memory_resource resource(pool);
    std::pmr::vector<int> vector({1, 2, 3}, &resource);
    const auto oom = THROWN(std::bad_alloc, vector.resize(1 << 20));
    static_cast<void>(oom);
    CHECK(vector.size() == 3 && vector[2] == 3);
    CHECK(contains(THROWN(luma::out_of_memory, vector.reserve(1 << 20)).what(), "4194304"));
}

static void memory_the_host_cannot_touch_is_refused() {
    luma::pool simulated(simulated_config());
    const auto refused = THROWN(luma::error, luma::memory_resource(simulated));
    CHECK(refused.status() == LUMA_ERROR_UNSUPPORTED);
    CHECK(contains(refused.what(), "luma::memory_resource"));
    CHECK(contains(refused.what(), "LUMA_BACKEND_HOST"));

    const luma::pool gone = std::move(simulated);
    const auto empty = THROWN(luma::error, luma::memory_resource(simulated));
    CHECK(empty.status() == LUMA_ERROR_INVALID_VALUE);
    CHECK(contains(empty.what(), "moved from"));
}

static void a_wrong_deallocation_changes_nothing() {
    luma::pool pool(host_config());
    luma::memory_resource resource(pool);
    void *block = resource.allocate(100);
    int foreign = 0;
    resource.deallocate(&foreign, sizeof(foreign));
    CHECK(luma_last_status() == LUMA_ERROR_INVALID_POINTER);
    CHECK(pool.stats().live_blocks == 1);
    resource.deallocate(block, 100);
    CHECK(pool.stats().live_blocks == 0);
}

static void threads_share_it() {
    luma::pool pool(host_config());
    luma::memory_resource resource(pool);
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t) {
        threads.emplace_back([&resource, t] {
            for (int round = 0; round < 200; ++round) {
                const std::pmr::vector<int> vector(static_cast<std::size_t>(round) * 10 + 1, t,
                                                   &resource);
                CHECK(vector.front() == t && vector.back() == t);
            }
        });
    }
    for (std::thread &thread : threads) {
        thread.join();
    }
    CHECK(pool.stats().live_blocks == 0);
    CHECK(pool.stats().alloc_calls == 800);
    pool.check();
}

int main() {
    pmr_containers_live_in_the_pool();
    alignment_is_honoured();
    no_bytes_have_an_address_of_their_own();
    equality_is_the_pools();
    other_resources_stand_on_it();
    exhaustion_is_a_bad_alloc();
    memory_the_host_cannot_touch_is_refused();
    a_wrong_deallocation_changes_nothing();
    threads_share_it();
}
