// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_TAKE_OPTIONS_HPP
#define WEIR_TAKE_OPTIONS_HPP

#include "weir/time.hpp"

#include <cstdint>

namespace weir {

/// What one take may say.
struct take_options {
  std::uint64_t cost = 1;  ///< tokens, 1…the smallest capacity
  duration wait{};  ///< how far ahead they may lie, [0, `limits::span`]; 0: now or not at all
};

/// What one refund may say.
struct refund_options {
  /// The grant was a reservation, its instant has not come, and nothing was done under it: all of
  /// it goes back.
  bool before_instant = false;
};

}  // namespace weir

#endif
