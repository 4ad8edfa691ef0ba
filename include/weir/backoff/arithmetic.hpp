// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_BACKOFF_ARITHMETIC_HPP
#define WEIR_BACKOFF_ARITHMETIC_HPP

#include "weir/limits.hpp"
#include "weir/time.hpp"

#include <algorithm>
#include <cstdint>

// What the backoffs share: arithmetic on waits that stays within [0, limits::span], whatever it is
// given.
namespace weir::detail {

/// The nearest wait that there is.
[[nodiscard]] constexpr duration as_wait(duration d) noexcept {
  return std::clamp(d, duration::zero(), limits::span);
}

/// The same of nanoseconds ≥ 0, which may be fractional and far too many.
[[nodiscard]] constexpr duration as_wait(double nanoseconds) noexcept {
  if (nanoseconds >= static_cast<double>(limits::span.count())) return limits::span;
  return duration{static_cast<duration::rep>(nanoseconds)};
}

/// `a + b` of two waits.
[[nodiscard]] constexpr duration add_waits(duration a, duration b) noexcept {
  return std::min(a + b, limits::span);
}

/// `n` times a wait.
[[nodiscard]] constexpr duration multiply_wait(duration d, std::uint64_t n) noexcept {
  if (d == duration::zero() || n == 0) return duration::zero();
  auto const most = static_cast<std::uint64_t>(limits::span / d);
  return n > most ? limits::span : d * static_cast<duration::rep>(n);
}

/// `x` ≥ 0 to the power of `n`, or 10^100 where that is less: far above any wait, and no overflow,
/// which a constant expression may not have. (`std::pow` is not constexpr.)
[[nodiscard]] constexpr double power(double x, std::uint32_t n) noexcept {
  constexpr double most = 1e100;
  x = std::min(x, most);
  double product = 1;
  for (; n != 0; n >>= 1U) {
    if (n & 1U) product = std::min(product * x, most);
    x = std::min(x * x, most);
  }
  return product;
}

/// An even draw from [0, d].
[[nodiscard]] constexpr duration part_of(duration d, std::uint64_t entropy) noexcept {
  double const unit = static_cast<double>(entropy >> 11U) * 0x1p-53;  // [0, 1), as fine as a double
                                                                      // is
  return std::min(d, as_wait(static_cast<double>(d.count()) * unit));
}

}  // namespace weir::detail

#endif
