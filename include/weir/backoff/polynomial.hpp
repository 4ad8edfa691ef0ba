// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_BACKOFF_POLYNOMIAL_HPP
#define WEIR_BACKOFF_POLYNOMIAL_HPP

#include "weir/backoff/arithmetic.hpp"
#include "weir/time.hpp"

#include <cstdint>

namespace weir {

/// Longer by a power of the attempt, with its own jitter: `first + unit · attempt^power + random ·
/// (attempt + 1)`.
///
/// The defaults are Sidekiq's curve: 15 s + attempt^4 s + (0…10 s) · (attempt + 1), which makes 25
/// attempts in about 17 days.
class polynomial_backoff {
 public:
  /// @param first  the wait before the first retry, less jitter; held within [0, `limits::span`]
  /// @param unit   what the power is multiplied by; held within [0, `limits::span`]
  /// @param power  0 makes it constant but for the jitter
  /// @param jitter the most that is added to the first wait; held within [0, `limits::span`]
  constexpr explicit polynomial_backoff(duration first = std::chrono::seconds{15},
                                        duration unit = std::chrono::seconds{1},
                                        std::uint32_t power = 4,
                                        duration jitter = std::chrono::seconds{10}) noexcept
      : first_{detail::as_wait(first)},
        unit_{detail::as_wait(unit)},
        jitter_{detail::as_wait(jitter)},
        power_{power} {}

  /// The wait before retry `attempt`, from 0, drawn by `entropy`; at most `limits::span`.
  [[nodiscard]] constexpr duration operator()(std::uint32_t attempt, duration /*previous*/,
                                              std::uint64_t entropy) const noexcept {
    duration const grown = detail::as_wait(static_cast<double>(unit_.count()) *
                                           detail::power(static_cast<double>(attempt), power_));
    duration const spread = detail::multiply_wait(jitter_, std::uint64_t{attempt} + 1);
    return detail::add_waits(detail::add_waits(first_, grown), detail::part_of(spread, entropy));
  }

 private:
  duration first_;
  duration unit_;
  duration jitter_;
  std::uint32_t power_;
};

}  // namespace weir

#endif
