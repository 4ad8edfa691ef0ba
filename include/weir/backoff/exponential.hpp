// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_BACKOFF_EXPONENTIAL_HPP
#define WEIR_BACKOFF_EXPONENTIAL_HPP

#include "weir/backoff/arithmetic.hpp"
#include "weir/time.hpp"

#include <cstdint>

namespace weir {

/// Longer by the same factor every time: `first · factor^attempt`.
class exponential_backoff {
 public:
  /// @param first  the wait before the first retry, held within [0, `limits::span`]
  /// @param factor one below 1, or not a number, counts as 1
  constexpr explicit exponential_backoff(duration first, double factor = 2) noexcept
      : first_{detail::as_wait(first)},
        factor_{factor > 1 ? factor : 1} {}

  /// The wait before retry `attempt`, from 0; at most `limits::span`.
  [[nodiscard]] constexpr duration operator()(std::uint32_t attempt, duration /*previous*/,
                                              std::uint64_t /*entropy*/) const noexcept {
    return detail::as_wait(static_cast<double>(first_.count()) * detail::power(factor_, attempt));
  }

 private:
  duration first_;
  double factor_;
};

}  // namespace weir

#endif
