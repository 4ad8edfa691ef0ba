// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_TIME_HPP
#define WEIR_TIME_HPP

#include "weir/detail/requirements.hpp"

#include <chrono>
#include <limits>

namespace weir {

/// Every span of time in the library: signed, in nanoseconds, up to 292 years either way.
using duration = std::chrono::nanoseconds;

/// An instant by a store's own clock. Only stores and tests hold these; what travels is a
/// `duration`.
using time_point = std::chrono::sys_time<duration>;

/// The time base of `steady_time`: it names a type and reads nothing, for only a Clock policy reads
/// clocks.
struct steady_base {
  using duration = weir::duration;                                    ///< as everywhere
  using rep = duration::rep;                                          ///< of the duration
  using period = duration::period;                                    ///< of the duration
  using time_point = std::chrono::time_point<steady_base, duration>;  ///< `steady_time`
  static constexpr bool is_steady = true;                             ///< it never runs backwards
};

/// An instant by a Clock policy, meaningful in one process only. It goes on while the host is
/// suspended.
using steady_time = steady_base::time_point;

namespace detail {

// Two compilers have an instruction for it. The other form serves the rest.
#if defined(__GNUC__) && !defined(WEIR_NO_INT128)

[[nodiscard]] constexpr bool add_overflows(duration::rep a, duration::rep b,
                                           duration::rep& sum) noexcept {
  return __builtin_add_overflow(a, b, &sum);
}
[[nodiscard]] constexpr bool subtract_overflows(duration::rep a, duration::rep b,
                                                duration::rep& difference) noexcept {
  return __builtin_sub_overflow(a, b, &difference);
}

#else

[[nodiscard]] constexpr bool add_overflows(duration::rep a, duration::rep b,
                                           duration::rep& sum) noexcept {
  using range = std::numeric_limits<duration::rep>;
  if (b >= 0 ? a > range::max() - b : a < range::min() - b) return true;
  sum = a + b;
  return false;
}
[[nodiscard]] constexpr bool subtract_overflows(duration::rep a, duration::rep b,
                                                duration::rep& difference) noexcept {
  using range = std::numeric_limits<duration::rep>;
  if (b < 0 ? a > range::max() + b : a < range::min() + b) return true;
  difference = a - b;
  return false;
}

#endif

}  // namespace detail

/// `t + d`, held at the ends of the range instead of overflowing.
template <class Base>
[[nodiscard]] constexpr std::chrono::time_point<Base, duration> saturating_add(
    std::chrono::time_point<Base, duration> t, duration d) noexcept {
  using point = std::chrono::time_point<Base, duration>;
  duration::rep sum = 0;
  if (detail::add_overflows(t.time_since_epoch().count(), d.count(), sum)) [[unlikely]] {
    return d >= duration::zero() ? point::max() : point::min();
  }
  return point{duration{sum}};
}

/// `a - b`, held at the ends of the range instead of overflowing.
template <class Base>
[[nodiscard]] constexpr duration saturating_sub(
    std::chrono::time_point<Base, duration> a, std::chrono::time_point<Base, duration> b) noexcept {
  auto const right = b.time_since_epoch();
  duration::rep difference = 0;
  if (detail::subtract_overflows(a.time_since_epoch().count(), right.count(), difference))
      [[unlikely]] {
    return right < duration::zero() ? duration::max() : duration::min();
  }
  return duration{difference};
}

}  // namespace weir

#endif
