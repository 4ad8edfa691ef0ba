// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_RULE_FENCE_HPP
#define WEIR_RULE_FENCE_HPP

#include "weir/time.hpp"

#include <algorithm>
#include <cstdint>

namespace weir::rule {

/// The fence after `last`: it grows by at least one, and never falls behind the store's
/// microseconds, so that it also grows across a restart, a deletion, and the fail-over to a replica
/// that has not seen the last one (R5, F47). The greatest number stays: after a damaged record,
/// none may be less (F97).
[[nodiscard]] constexpr std::uint64_t next_fence(std::uint64_t last, time_point now) noexcept {
  auto const micros = std::chrono::floor<std::chrono::microseconds>(now).time_since_epoch().count();
  auto const next = last + static_cast<std::uint64_t>(last != std::uint64_t(-1));
  return std::max(next, micros > 0 ? static_cast<std::uint64_t>(micros) : 0);
}

}  // namespace weir::rule

#endif
