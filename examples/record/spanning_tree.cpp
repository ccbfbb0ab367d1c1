// The lightest spanning tree of a random graph, found in two ways that must agree. Every list lies in
// luma's default pool through std::pmr, and grows as vectors do. Its calls can be recorded with
// LUMA_TRACE (see docs/traces.md).
#include <luma.hpp>

#include <cstdint>
#include <cstdio>
#include <exception>
#include <functional>
#include <memory_resource>
#include <queue>
#include <tuple>
#include <utility>
#include <vector>

namespace {

struct arc {
    int to;
    std::uint64_t weight;
};

using arcs = std::pmr::vector<arc>;
using graph = std::pmr::vector<arcs>;

// The same numbers in every run, in the upper bits.
std::uint64_t draw(std::uint64_t bound) {
    static std::uint64_t state = 1;
    state = state * 6364136223846793005U + 1442695040888963407U;
    return (state >> 33) % bound;
}

// A ring, so that all hangs together, and chords. No two weights are the same: the low bits number
// the edges.
graph random_graph(int nodes, int chords, std::pmr::memory_resource *memory) {
    graph edges(static_cast<std::size_t>(nodes), memory);
    for (int i = 0; i < nodes + chords; ++i) {
        const int from = i < nodes ? i : static_cast<int>(draw(static_cast<std::uint64_t>(nodes)));
        const int to = i < nodes ? (i + 1) % nodes
                                 : static_cast<int>(draw(static_cast<std::uint64_t>(nodes)));
        const std::uint64_t weight = (draw(1000000) << 16) | static_cast<std::uint64_t>(i);
        edges[static_cast<std::size_t>(from)].push_back({to, weight});
        edges[static_cast<std::size_t>(to)].push_back({from, weight});
    }
    return edges;
}

// Prim: one tree that takes in the nearest node outside.
std::uint64_t by_growing(const graph &edges, std::pmr::memory_resource *memory) {
    using candidate = std::pair<std::uint64_t, int>;
    std::priority_queue<candidate, std::pmr::vector<candidate>, std::greater<>> nearest(memory);
    std::pmr::vector<char> taken(edges.size(), 0, memory);
    std::uint64_t total = 0;
    nearest.emplace(0, 0);
    while (!nearest.empty()) {
        const auto [weight, node] = nearest.top();
        nearest.pop();
        const auto place = static_cast<std::size_t>(node);
        if (std::exchange(taken[place], char{1}) != 0) {
            continue;
        }
        total += weight;
        for (const arc &out : edges[place]) {
            if (taken[static_cast<std::size_t>(out.to)] == 0) {
                nearest.emplace(out.weight, out.to);
            }
        }
    }
    return total;
}

// Boruvka: every tree takes its lightest edge to another, until one tree is left.
std::uint64_t by_merging(const graph &edges, std::pmr::memory_resource *memory) {
    std::pmr::vector<std::size_t> tree_of(memory);
    std::pmr::vector<std::pmr::vector<int>> members(edges.size(), memory);
    for (std::size_t node = 0; node < edges.size(); ++node) {
        tree_of.push_back(node);
        members[node].push_back(static_cast<int>(node));
    }
    std::uint64_t total = 0;
    for (bool merged = true; merged;) {
        // The lightest edge out of each tree: weight, and the node that it leads to.
        std::pmr::vector<std::tuple<std::size_t, std::uint64_t, int>> lightest(memory);
        for (std::size_t tree = 0; tree < members.size(); ++tree) {
            arc best{-1, UINT64_MAX};
            for (const int node : members[tree]) {
                for (const arc &out : edges[static_cast<std::size_t>(node)]) {
                    if (tree_of[static_cast<std::size_t>(out.to)] != tree && out.weight < best.weight) {
                        best = out;
                    }
                }
            }
            if (best.to >= 0) {
                lightest.emplace_back(static_cast<std::size_t>(members[tree].front()), best.weight,
                                      best.to);
            }
        }
        merged = false;
        for (const auto &[node, weight, other] : lightest) {
            std::size_t into = tree_of[node];
            std::size_t from = tree_of[static_cast<std::size_t>(other)];
            if (into == from) {
                continue; // The other tree chose the same edge.
            }
            if (members[into].size() < members[from].size()) {
                std::swap(into, from);
            }
            for (const int moved : members[from]) {
                tree_of[static_cast<std::size_t>(moved)] = into;
                members[into].push_back(moved);
            }
            std::pmr::vector<int>(memory).swap(members[from]);
            total += weight;
            merged = true;
        }
    }
    return total;
}

} // namespace

int main() {
    try {
        luma::memory_resource memory(luma::pool_ref::default_pool());
        for (const int nodes : {30, 60, 100}) {
            const graph edges = random_graph(nodes, nodes * nodes, &memory);
            const std::uint64_t grown = by_growing(edges, &memory);
            const std::uint64_t merged = by_merging(edges, &memory);
            std::printf("%d nodes: the tree weighs %llu\n", nodes,
                        static_cast<unsigned long long>(grown >> 16));
            if (grown != merged) {
                std::fprintf(stderr, "spanning_tree: %d nodes: two trees of different weights\n", nodes);
                return 1;
            }
        }
    } catch (const std::exception &error) {
        std::fprintf(stderr, "spanning_tree: %s\n", error.what());
        return 1;
    }
}
