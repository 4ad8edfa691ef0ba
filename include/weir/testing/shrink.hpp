// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_TESTING_SHRINK_HPP
#define WEIR_TESTING_SHRINK_HPP

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

namespace weir::testing {

/// Makes a failing sequence shorter as long as it goes on failing.
///
/// @param fails    `bool(std::vector<Op> const&)`: does this sequence fail? It must be so for
/// `ops`.
/// @param simpler  `std::vector<Op>(Op const&)`: simpler operations to try in one's place
/// @param attempts how often `fails` may be asked
/// @returns a sequence that fails, from which, if the attempts sufficed, no operation can be left
/// out
///
/// Source: the delta debugging algorithm ddmin (Zeller, Hildebrandt: Simplifying and Isolating
/// Failure-Inducing Input, 2002), without its test of subsets: histories fail by their end, so
/// complements are what succeeds.
template <class Op, class Fails, class Simpler>
[[nodiscard]] std::vector<Op> shrink(std::vector<Op> ops, Fails&& fails, Simpler&& simpler,
                                     std::size_t attempts) {
  auto const try_instead = [&](std::vector<Op>& candidate) {
    if (attempts == 0) return false;
    --attempts;
    if (!fails(std::as_const(candidate))) return false;
    ops = std::move(candidate);
    return true;
  };

  for (auto chunk = std::max<std::size_t>(ops.size() / 2, 1); !ops.empty() && attempts > 0;) {
    bool any = false;
    for (std::size_t end = ops.size(); end > 0;) {  // from the back: what a failure needs comes
                                                    // first
      auto const begin = end - std::min(chunk, end);
      std::vector<Op> candidate;
      candidate.reserve(ops.size());
      auto const at = [&](std::size_t i) { return ops.begin() + static_cast<std::ptrdiff_t>(i); };
      candidate.insert(candidate.end(), ops.begin(), at(begin));
      candidate.insert(candidate.end(), at(end), ops.end());
      if (try_instead(candidate)) any = true;
      end = begin;
    }
    if (chunk == 1 && !any) break;
    if (!any) chunk = std::max<std::size_t>(chunk / 2, 1);
    chunk = std::min(chunk, std::max<std::size_t>(ops.size(), 1));
  }

  for (std::size_t i = 0; i < ops.size(); ++i) {
    for (bool again = true; again && attempts > 0;) {
      again = false;
      for (auto const& op : simpler(std::as_const(ops[i]))) {
        auto candidate = ops;
        candidate[i] = op;
        if (try_instead(candidate)) {
          again = true;
          break;
        }
      }
    }
  }
  return ops;
}

}  // namespace weir::testing

#endif
