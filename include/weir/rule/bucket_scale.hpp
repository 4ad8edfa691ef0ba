// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_RULE_BUCKET_SCALE_HPP
#define WEIR_RULE_BUCKET_SCALE_HPP

#include "weir/detail/int128.hpp"
#include "weir/limits.hpp"
#include "weir/quota.hpp"
#include "weir/time.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <optional>
#include <span>

/// @file
/// Integer nanoseconds per token cannot say 300 million a second (they would grant 333 million),
/// and floating point drifts. So a quota's time is counted in units, of which both a token and a
/// tick of the store's clock are whole numbers. With tokens/period = t/p in lowest terms, a tick of
/// d nanoseconds is `gain` = t·d/g units and a token is `price` = p/g units, where g = gcd(p, d).
/// A tick is a nanosecond in the rule. Redis counts in microseconds, because its scripts have 53
/// bits.
///
/// Every store takes the same quotas (`quota_too_large` otherwise):
///
/// - with d = 1 µs, `gain` is at most 10⁹;
/// - the capacity is at most 10⁹;
/// - the bucket fills within 3,650 days.
///
/// The gain for 1 ns divides that for 1 µs: it is at most 10⁹ < 2³⁰, too. A store's time is within
/// 30 years of its epoch, a reservation at most 10 years ahead, and a full bucket another 10: less
/// than 2⁶¹ nanoseconds in all. So an arrival is below 2⁹¹ units. It is a signed integer of 128
/// bits in the rule, and 96 bits where it is stored. Where 64 bits are enough (`narrow`: up to
/// about three tokens a nanosecond with few digits), a store in memory keeps it in one word.

namespace weir::rule {

/// How far from its epoch a store's time may be. Beyond it, time stands still for buckets.
inline constexpr duration bucket_horizon = std::chrono::hours{24 * 365 * 30};

/// `now`, held within the horizon.
[[nodiscard]] constexpr duration within_horizon(duration now) noexcept {
  constexpr auto most = bucket_horizon.count();
  auto const n = now.count();  // a number, not a reference to one: that would have to be in memory
  return duration{n < -most ? -most : n > most ? most : n};
}

/// A number of units: see above.
using bucket_units = weir::detail::int128;

/// One quota in integers. Made by `bucket_scale::of` only, which sees to it that nothing below can
/// overflow.
struct bucket_scale {
  std::uint64_t capacity = 0;  ///< tokens of a full bucket
  std::int64_t gain = 0;       ///< units that a tick brings
  std::int64_t price = 0;      ///< units of one token
  std::uint64_t inverse = 0;   ///< of the price: see `tokens_in`
  std::int32_t shift = 0;      ///< of the price: see `tokens_in`
  bool narrow = false;         ///< do arrivals fit into 63 bits?

  /// The arrival time of a bucket that was never seen; below every other.
  static constexpr bucket_units never = -(bucket_units{1} << 94);

  /// The same where arrivals fit into 63 bits.
  static constexpr std::int64_t narrow_never = -(std::int64_t{1} << 62);

  /// The longest time in which a bucket may fill.
  static constexpr duration longest_fill = limits::span;

  /// The largest capacity, and the most units that a microsecond may bring.
  static constexpr std::uint64_t most = 1'000'000'000;

  /// Empty if the quota is not one of those that every store takes: see above.
  ///
  /// @param q    a valid quota
  /// @param tick of the clock: a nanosecond or a microsecond. It is how the quota's time is
  ///        counted, and makes no difference to which quotas are taken.
  [[nodiscard]] static constexpr std::optional<bucket_scale> of(quota const& q,
                                                                duration tick = duration{
                                                                    1}) noexcept {
    using wide = weir::detail::uint128;
    constexpr std::uint64_t micro = 1000;
    auto const period = static_cast<std::uint64_t>(q.period().count());
    auto const common = std::gcd(q.tokens(), period);
    auto const t = q.tokens() / common;
    auto const p = period / common;
    auto const fill = static_cast<wide>(q.capacity()) * p;  // in units, were the tick a nanosecond
    if (static_cast<wide>(micro / std::gcd(p, micro)) * t > most || q.capacity() > most ||
        fill > static_cast<wide>(longest_fill.count()) * t) {
      return std::nullopt;
    }
    auto const d = static_cast<std::uint64_t>(tick.count());
    auto const unit = std::gcd(p, d);
    constexpr duration ahead = bucket_horizon + limits::span + std::chrono::hours{24};
    bucket_scale out;
    auto const price = p / unit;
    out.capacity = q.capacity();
    out.gain = static_cast<std::int64_t>(d / unit * t);
    out.price = static_cast<std::int64_t>(price);
    out.narrow = static_cast<wide>(ahead.count()) * t + fill < wide{1} << 62;
    out.shift = 63 + static_cast<std::int32_t>(std::bit_width(price - 1));
    out.inverse = static_cast<std::uint64_t>((wide{1} << out.shift) / price) + 1;
    return out;
  }

  /// The units of a full bucket.
  [[nodiscard]] constexpr bucket_units room() const noexcept { return price_of(capacity); }

  /// The whole tokens in so many units, from 0 to `room()`: `units / price`, multiplied by the
  /// inverse, since a division would cost a check a tenth of its time. Exact for all 63-bit numbers
  /// (Granlund and Montgomery, "Division by invariant integers using multiplication", 1994,
  /// theorem 4.2). Doubled, so that the upper half of the product is all that is shifted.
  [[nodiscard]] constexpr std::uint64_t tokens_in(std::int64_t units) const noexcept {
    using wide = weir::detail::uint128;
    auto const doubled = static_cast<std::uint64_t>(units) * 2;
    return static_cast<std::uint64_t>((static_cast<wide>(doubled) * inverse) >> 64) >> (shift - 63);
  }
  /// The same of more units.
  [[nodiscard]] constexpr std::uint64_t tokens_in(bucket_units units) const noexcept {
    if (auto const few = static_cast<std::int64_t>(units); few == units) return tokens_in(few);
    return static_cast<std::uint64_t>(units / price);
  }

  /// The units of `cost` tokens, of which there must not be more than the capacity.
  [[nodiscard]] constexpr bucket_units price_of(std::uint64_t cost) const noexcept {
    return static_cast<bucket_units>(cost) * price;
  }

  /// The time in units. `now` must be within the horizon, or as far ahead of it as a reservation
  /// may lie.
  [[nodiscard]] constexpr bucket_units units_at(duration now) const noexcept {
    return static_cast<bucket_units>(now.count()) * gain;
  }

  /// The time that brings so many units, rounded up.
  [[nodiscard]] constexpr duration time_of(std::int64_t units) const noexcept {
    if (gain == 1) return duration{units};
    return duration{units / gain + static_cast<std::int64_t>(units % gain > 0)};
  }
  /// The same of more units; at most what a duration holds, since arrivals may have been read from
  /// a damaged record (F97).
  [[nodiscard]] constexpr duration time_of(bucket_units units) const noexcept {
    if (auto const few = static_cast<std::int64_t>(units); few == units) return time_of(few);
    auto const whole = units / gain + static_cast<bucket_units>(units % gain > 0);
    return duration{static_cast<duration::rep>(
        std::clamp<bucket_units>(whole, duration::min().count(), duration::max().count()))};
  }
};

/// The scales of one to four quotas.
struct bucket_scales {
  std::array<bucket_scale, limits::quotas> each{};  ///< by position; the first `size` of them count
  std::size_t size = 0;                             ///< how many quotas there are

  /// Empty if one of the quotas cannot be represented.
  [[nodiscard]] static constexpr std::optional<bucket_scales> of(std::span<quota const> quotas,
                                                                 duration tick = duration{
                                                                     1}) noexcept {
    bucket_scales out;
    for (auto const& q : quotas) {
      auto const scale = bucket_scale::of(q, tick);
      if (!scale) return std::nullopt;
      out.each[out.size++] = *scale;
    }
    return out;
  }

  /// Those that count.
  [[nodiscard]] constexpr std::span<bucket_scale const> span() const noexcept {
    return {each.data(), size};
  }
};

}  // namespace weir::rule

#endif
