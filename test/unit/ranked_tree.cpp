// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#include "weir/rule/ranked_tree.hpp"

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <random>
#include <vector>

namespace {

using weir::rule::detail::ranked_links;
using weir::rule::detail::ranked_tree;

struct element {
  explicit element(std::uint64_t k) : key{k} {}

  std::uint64_t key;
  ranked_links<element> links;
};
struct key_of {
  std::uint64_t operator()(element const& e) const noexcept { return e.key; }
};
using tree = ranked_tree<element, &element::links, key_of>;
using elements = std::vector<std::unique_ptr<element>>;  // sorted by key

void check_same(tree const& t, elements const& sorted) {
  element const* at = t.first();
  for (std::size_t k = 0; k < sorted.size(); ++k) {
    element const* const expected = sorted[k].get();
    BOOST_TEST_REQUIRE(at == expected);
    BOOST_TEST_REQUIRE(t.nth(k) == expected);
    BOOST_TEST_REQUIRE(t.rank(*expected) == k);
    BOOST_TEST_REQUIRE(t.find(expected->key) == expected);
    at = t.after(*at);
  }
  BOOST_TEST_REQUIRE(at == nullptr);
  BOOST_TEST_REQUIRE(t.nth(sorted.size()) == nullptr);
}

std::size_t depth(element const* e) {
  return e == nullptr ? 0 : 1 + std::max(depth(e->links.left), depth(e->links.right));
}

// The way down to any of them is at most as long as the tree is deep.
std::size_t depth(tree const& t) {
  element const* root = t.first();
  while (root != nullptr && root->links.up != nullptr) root = root->links.up;
  return depth(root);
}

}  // namespace

BOOST_AUTO_TEST_SUITE(ranked_trees)

BOOST_AUTO_TEST_CASE(an_empty_tree_has_nobody) {
  tree const t;
  check_same(t, {});
  BOOST_TEST(t.find(std::uint64_t{1}) == nullptr);
}

// By histories of insertions and removals, against a sorted array.
BOOST_AUTO_TEST_CASE(every_element_has_its_place) {
  std::mt19937_64 random{1};
  for (std::uint64_t const range : {4U, 40U, 200U}) {
    tree t;
    elements sorted;
    for (int step = 0; step < 400; ++step) {
      auto const key = random() % range;
      auto const at = std::lower_bound(sorted.begin(), sorted.end(), key,
                                       [](auto const& e, std::uint64_t k) { return e->key < k; });
      if (at != sorted.end() && (*at)->key == key) {
        t.erase(**at);
        sorted.erase(at);
        BOOST_TEST_REQUIRE(t.find(key) == nullptr);
      } else {
        t.insert(**sorted.insert(at, std::make_unique<element>(key)));
      }
      check_same(t, sorted);
    }
  }
}

// What comes in order, as permits and tickets do, does not make a list of it.
BOOST_AUTO_TEST_CASE(it_is_not_deep_when_filled_in_order) {
  tree t;
  elements all;
  for (std::uint64_t key = 0; key < 10'000; ++key) {
    t.insert(*all.emplace_back(std::make_unique<element>(key)));
  }
  BOOST_TEST(depth(t) < 60);  // 13 would be perfect
  for (std::size_t k = 0; k < 9'000; ++k) t.erase(*all[k]);
  BOOST_TEST(depth(t) < 45);
}

BOOST_AUTO_TEST_SUITE_END()
