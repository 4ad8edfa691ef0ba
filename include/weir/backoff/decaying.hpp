// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_BACKOFF_DECAYING_HPP
#define WEIR_BACKOFF_DECAYING_HPP

#include "weir/backoff/arithmetic.hpp"
#include "weir/time.hpp"

#include <algorithm>
#include <cstdint>

namespace weir {

/// Shorter every time: `floor + amplitude · e^(−rate · attempt)`, but never below `least`.
///
/// For waiting in line, where the longer somebody has waited, the likelier it is their turn. The
/// defaults begin at 1 s and are 0.5 s from the twelfth attempt on.
class decaying_backoff {
 public:
  /// @param floor     where the curve tends to; held within [0, `limits::span`]
  /// @param amplitude by how much the first wait is longer; held within [0, `limits::span`]
  /// @param rate      how fast it falls, per attempt; held within [0, 64], not a number counts as 0
  /// @param least     no wait is shorter; held within [0, `limits::span`]
  constexpr explicit decaying_backoff(duration floor = std::chrono::milliseconds{400},
                                      duration amplitude = std::chrono::milliseconds{600},
                                      double rate = 0.17,
                                      duration least = std::chrono::milliseconds{500}) noexcept
      : floor_{detail::as_wait(floor)},
        amplitude_{detail::as_wait(amplitude)},
        least_{detail::as_wait(least)},
        ratio_{inverse_exp(rate > 0 ? std::min(rate, 64.0) : 0)} {}

  /// The wait before retry `attempt`, from 0.
  [[nodiscard]] constexpr duration operator()(std::uint32_t attempt, duration /*previous*/,
                                              std::uint64_t /*entropy*/) const noexcept {
    double const left = static_cast<double>(amplitude_.count()) * detail::power(ratio_, attempt);
    return std::max(least_, detail::add_waits(floor_, detail::as_wait(left)));
  }

 private:
  // e^−x for x in [0, 64], as `std::exp` is not constexpr: the series for x/256, then eight
  // squarings.
  static constexpr double inverse_exp(double x) noexcept {
    double const small = x / 256;
    double sum = 1;
    double term = 1;
    for (int n = 1; n <= 16; ++n) {
      term *= small / n;
      sum += term;
    }
    return 1 / detail::power(sum, 256);
  }

  duration floor_;
  duration amplitude_;
  duration least_;
  double ratio_;
};

}  // namespace weir

#endif
