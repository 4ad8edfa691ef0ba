// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_BACKOFF_LINEAR_HPP
#define WEIR_BACKOFF_LINEAR_HPP

#include "weir/backoff/arithmetic.hpp"
#include "weir/time.hpp"

#include <cstdint>

namespace weir {

/// Longer by the same step every time: `first + step · attempt`.
class linear_backoff {
 public:
  /// @param first the wait before the first retry, held within [0, `limits::span`]
  /// @param step  held within [0, `limits::span`]
  constexpr linear_backoff(duration first, duration step) noexcept
      : first_{detail::as_wait(first)},
        step_{detail::as_wait(step)} {}

  /// The wait before retry `attempt`, from 0; at most `limits::span`.
  [[nodiscard]] constexpr duration operator()(std::uint32_t attempt, duration /*previous*/,
                                              std::uint64_t /*entropy*/) const noexcept {
    return detail::add_waits(first_, detail::multiply_wait(step_, attempt));
  }

 private:
  duration first_;
  duration step_;
};

}  // namespace weir

#endif
