// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_DETAIL_RECONNECT_PACE_HPP
#define WEIR_DETAIL_RECONNECT_PACE_HPP

#include "weir/id_source.hpp"
#include "weir/time.hpp"

#include <algorithm>
#include <cstdint>

namespace weir::detail {

/// How long to wait before the next attempt: doubled each time, and half of it random,
/// so that not all clients come back at once.
class reconnect_pace {
 public:
  reconnect_pace(duration least, duration longest) : least_{least}, longest_{longest} {}

  [[nodiscard]] duration next() {
    waited_ = std::clamp(2 * waited_, least_, longest_);
    auto const half = waited_ / 2;
    return half + duration{static_cast<duration::rep>(
                      ids_.entropy() % static_cast<std::uint64_t>(half.count() + 1))};
  }
  /// An attempt was successful.
  void reset() noexcept { waited_ = {}; }

 private:
  duration least_;
  duration longest_;
  id_source ids_;
  duration waited_{};
};

}  // namespace weir::detail

#endif
