// luma::allocator and luma::pool_allocator under the standard containers.
#include "cpp_check.hpp"

#include <deque>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <type_traits>
#include <unordered_map>
#include <utility>
#include <vector>

template <class T> using pooled = luma::pool_allocator<T>;
template <class T> using pooled_vector = std::vector<T, pooled<T>>;
template <class T> using vector = std::vector<T, luma::allocator<T>>;
using string = std::basic_string<char, std::char_traits<char>, luma::allocator<char>>;
using pooled_string = std::basic_string<char, std::char_traits<char>, pooled<char>>;

using stateless = std::allocator_traits<luma::allocator<int>>;
static_assert(stateless::is_always_equal::value);
static_assert(std::is_empty_v<luma::allocator<int>>);
static_assert(std::is_same_v<stateless::rebind_alloc<char>, luma::allocator<char>>);
static_assert(std::is_nothrow_default_constructible_v<luma::allocator<int>>);
static_assert(sizeof(vector<int>) == sizeof(std::vector<int>));

using bound = std::allocator_traits<pooled<int>>;
static_assert(!bound::is_always_equal::value);
static_assert(!bound::propagate_on_container_copy_assignment::value);
static_assert(bound::propagate_on_container_move_assignment::value);
static_assert(bound::propagate_on_container_swap::value);
static_assert(std::is_same_v<bound::rebind_alloc<char>, pooled<char>>);
static_assert(std::is_nothrow_copy_constructible_v<pooled<int>>);
static_assert(std::is_nothrow_constructible_v<pooled<int>, const pooled<char> &>);
static_assert(!std::is_default_constructible_v<pooled<int>>);
static_assert(!std::is_constructible_v<pooled<int>, luma::pool>); // it would dangle
static_assert(std::is_nothrow_move_assignable_v<pooled_vector<int>>);

struct alignas(512) wide {
    int value = 3;
};

static std::uint64_t default_live_blocks() {
    return luma::pool::default_pool().stats().live_blocks;
}

static void the_default_pool_holds_containers() {
    const std::uint64_t before = default_live_blocks();
    {
        vector<int> numbers;
        std::map<int, string, std::less<int>, luma::allocator<std::pair<const int, string>>> names;
        std::unordered_map<int, int, std::hash<int>, std::equal_to<int>,
                           luma::allocator<std::pair<const int, int>>>
            squares;
        std::list<double, luma::allocator<double>> links;
        std::set<int, std::less<int>, luma::allocator<int>> set;
        std::deque<int, luma::allocator<int>> deque;
        std::vector<bool, luma::allocator<bool>> bits(400, true);
        for (int i = 0; i < 200; ++i) {
            numbers.push_back(i);
            names.emplace(i, string("a string too long for the small buffer"));
            squares[i] = i * i;
            links.push_back(i);
            set.insert(i % 10);
            deque.push_front(i);
            bits[static_cast<std::size_t>(i)] = false;
        }
        CHECK(numbers[199] == 199 && squares[20] == 400 && links.back() == 199.0);
        CHECK(set.size() == 10 && deque.front() == 199 && bits[200] && !bits[199]);
        CHECK(names.at(3).size() == 38);
        CHECK(default_live_blocks() > before + 800);

        vector<int> copy = numbers;
        vector<int> taken = std::move(numbers);
        CHECK(copy == taken && numbers.empty());
        copy.swap(taken);
        const auto shared = std::allocate_shared<std::string>(luma::allocator<int>(), "shared");
        CHECK(*shared == "shared");
    }
    CHECK(default_live_blocks() == before);
    CHECK(luma_check() == LUMA_SUCCESS);
    CHECK(luma::allocator<int>() == luma::allocator<char>());
    CHECK(!(luma::allocator<int>() != luma::allocator<char>()));
}

static void a_pool_holds_containers() {
    luma::pool pool(host_config());
    {
        pooled_vector<int> numbers(pool);
        std::map<int, pooled_string, std::less<int>, pooled<std::pair<const int, pooled_string>>>
            names(pool);
        std::unordered_map<int, int, std::hash<int>, std::equal_to<int>,
                           pooled<std::pair<const int, int>>>
            squares(8, std::hash<int>(), std::equal_to<int>(), pool);
        std::list<double, pooled<double>> links(pool);
        for (int i = 0; i < 200; ++i) {
            numbers.push_back(i);
            names.emplace(i, pooled_string("a string too long for the small buffer", pool));
            squares[i] = i * i;
            links.push_back(i);
        }
        CHECK(numbers[199] == 199 && squares[20] == 400 && links.back() == 199.0);
        CHECK(numbers.get_allocator().get_pool() == pool.ref());
        CHECK(pool.stats().live_blocks > 800);
        pool.check();
        const auto shared = std::allocate_shared<std::string>(pooled<int>(pool), "shared");
        CHECK(*shared == "shared");
    }
    CHECK(pool.stats().live_blocks == 0);
    CHECK(pool.stats().alloc_calls == pool.stats().free_calls);
}

static void over_aligned_elements_are_aligned() {
    luma::pool pool(host_config());
    pooled_vector<wide> bound_vector(pool);
    vector<wide> default_vector;
    for (int i = 0; i < 40; ++i) {
        bound_vector.emplace_back();
        default_vector.emplace_back();
        CHECK(aligned(bound_vector.data(), 512) && aligned(default_vector.data(), 512));
    }
    std::list<wide, pooled<wide>> nodes(3, wide{}, pool);
    for (const wide &node : nodes) {
        CHECK(aligned(&node, 512) && node.value == 3);
    }
}

static void sizes_cannot_wrap() {
    luma::pool pool(host_config());
    pooled<wide> in_pool(pool);
    luma::allocator<int> in_default;
    THROWN(std::bad_array_new_length, in_pool.allocate(SIZE_MAX / 512 + 1));
    THROWN(std::bad_array_new_length, in_default.allocate(SIZE_MAX / 4 + 1));
    THROWN(luma::out_of_memory, in_pool.allocate(SIZE_MAX / 512));
    THROWN(luma::out_of_memory, in_default.allocate(SIZE_MAX / 4));
    CHECK(pool.stats().live_blocks == 0);
    in_pool.deallocate(in_pool.allocate(0), 0);
    in_default.deallocate(in_default.allocate(0), 0);
}

static void exhaustion_leaves_the_container_as_it_was() {
    luma::pool pool(host_config(std::uint64_t{1} << 20));
    pooled_vector<int> numbers(1000, 5, pool);
    THROWN(luma::out_of_memory, numbers.resize(1 << 20));
    CHECK(numbers.size() == 1000 && numbers.back() == 5);
}

static void equality_and_propagation_follow_the_pool() {
    luma::pool pool(host_config());
    luma::pool other(host_config());
    CHECK(pooled<int>(pool) == pooled<char>(pool.ref()));
    CHECK(pooled<int>(pool) != pooled<int>(other));

    const pooled_vector<int> source({1, 2, 3}, pool);
    pooled_vector<int> assigned(other);
    assigned = source; // keeps its own pool
    CHECK(assigned.get_allocator() == pooled<int>(other) && assigned == source);

    const pooled_vector<int> copied(source); // follows the original
    CHECK(copied.get_allocator() == pooled<int>(pool));

    pooled_vector<int> movable({4, 5, 6}, pool);
    const int *data = movable.data();
    assigned = std::move(movable); // takes the pool along, no element is copied
    CHECK(assigned.data() == data && assigned.get_allocator() == pooled<int>(pool));
    CHECK(other.stats().live_blocks == 0);

    pooled_vector<int> elsewhere({7, 8}, other);
    swap(assigned, elsewhere);
    CHECK(elsewhere.data() == data && elsewhere.get_allocator() == pooled<int>(pool));
    CHECK(assigned.get_allocator() == pooled<int>(other) && assigned.size() == 2);

    // To another allocator, by hand: elements are copied.
    const pooled_vector<int> moved(std::move(elsewhere), pooled<int>(other));
    CHECK(moved.data() != data && moved.size() == 3 && moved[0] == 4);
}

static void memory_the_host_cannot_touch_is_refused() {
    luma::pool simulated(simulated_config());
    const auto refused = THROWN(luma::error, pooled<int>(simulated));
    CHECK(refused.status() == LUMA_ERROR_UNSUPPORTED);
    CHECK(contains(refused.what(), "luma::pool_allocator"));
    const luma::pool gone = std::move(simulated);
    CHECK(THROWN(luma::error, pooled<int>(simulated)).status() == LUMA_ERROR_INVALID_VALUE);
}

int main() {
    the_default_pool_holds_containers();
    a_pool_holds_containers();
    over_aligned_elements_are_aligned();
    sizes_cannot_wrap();
    exhaustion_leaves_the_container_as_it_was();
    equality_and_propagation_follow_the_pool();
    memory_the_host_cannot_touch_is_refused();
}
