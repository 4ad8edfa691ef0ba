// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_TESTING_LEASES_HPP
#define WEIR_TESTING_LEASES_HPP

#include "weir/testing/dice.hpp"

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace weir::testing {

/// Which fence a generated command names. It is said so and not by number, so that a history still
/// means something when some of its commands are left out.
enum class which_lease : std::uint8_t {
  latest,     ///< the holder's own last one
  by_holder,  ///< 0: whatever the holder has
  first,      ///< the first that this holder ever had: mostly over for long
  others,     ///< somebody else's last one
};

[[nodiscard]] inline which_lease any_lease(dice& d) noexcept {
  constexpr which_lease some[] = {
      which_lease::latest,    which_lease::latest,    which_lease::latest, which_lease::latest,
      which_lease::by_holder, which_lease::by_holder, which_lease::first,  which_lease::others};
  return d.pick(some);
}

/// A fence that no store has given out: far above a store's microseconds.
inline constexpr std::uint64_t nobodys_fence = std::uint64_t{1} << 62U;

/// The fences that were given out, by key.
class lease_book {
 public:
  void add(std::string const& key, std::string const& holder, std::uint64_t fence) {
    auto& all = by_key_[key];
    if (all.empty() || all.back().second != fence) all.emplace_back(holder, fence);
  }

  /// 0 for `by_holder`; `nobodys_fence` where there is no such lease.
  [[nodiscard]] std::uint64_t pick(std::string const& key, std::string const& holder,
                                   which_lease which) const {
    if (which == which_lease::by_holder) return 0;
    auto const found = by_key_.find(key);
    if (found == by_key_.end()) return nobodys_fence;
    auto picked = nobodys_fence;
    for (auto const& [whose, fence] : found->second) {
      if ((whose == holder) == (which == which_lease::others)) continue;
      picked = fence;
      if (which == which_lease::first) break;
    }
    return picked;
  }

 private:
  std::map<std::string, std::vector<std::pair<std::string, std::uint64_t>>> by_key_;
};

}  // namespace weir::testing

#endif
