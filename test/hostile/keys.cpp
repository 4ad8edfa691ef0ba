// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

// Keys that callers chose to make a memory store slow (F91): whichever way they were chosen, they
// cost no more than twice what as many random ones cost. Counted, not timed.

#include "campaign.hpp"
#include "crafted_keys.hpp"

#include <cstddef>
#include <string>
#include <utility>

namespace {

using namespace hostile;

/// Keys of a length that were chosen in one of the ways known here.
key_list chosen_keys(std::size_t n, dice& drawn, std::size_t& size) {
  auto const way = drawn.below(4);
  auto const pairs = 1 + static_cast<int>(drawn.below(6));
  size = way == 0 ? 32 : 16 * static_cast<std::size_t>(pairs);
  if (way == 0) return folding_keys(n, drawn);
  if (way == 1) return cancelling_keys(n, drawn, pairs);
  // Keys that differ in one word, or in a few bits of each.
  key_list keys;
  auto const at = way == 2 ? drawn.below(size / 8) : 0;
  for (std::size_t i = 0; i != n; ++i) {
    std::string key;
    for (std::size_t word = 0; word != size / 8; ++word) {
      auto const varied = way == 2 ? (word == at ? i : 0) : i * (word + 1) << 8 * word;
      append(key, varied);
    }
    keys.push_back(std::move(key));
  }
  return keys;
}

}  // namespace

int main(int argc, char** argv) {
  campaign all{argc, argv};
  for (auto const& use : attacked_uses) {
    all.add(use.name, 3, [&all, use](dice& drawn) {
      auto const n = 1000 + drawn.below(9000);
      std::size_t size = 0;
      auto const keys = chosen_keys(n, drawn, size);
      attacked_store attacked;
      auto const cost = (attacked.*use.of)(keys);
      attacked_store other;
      auto const usual = (other.*use.of)(random_keys(n, drawn, size));
      all.count(std::string{use.name} + ", comparisons", cost);
      all.count(std::string{use.name} + ", comparisons of random ones", usual);
      expect(usual != 0 && cost <= 2 * usual, std::string{use.name} + ": " + std::to_string(cost) +
                                                  " comparisons, and " + std::to_string(usual) +
                                                  " of random keys");
    });
  }
  return all.run();
}
