// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_RULE_BUCKET_SCALE_HPP
#define WEIR_RULE_BUCKET_SCALE_HPP

#include "weir/limits.hpp"
#include "weir/quota.hpp"
#include "weir/time.hpp"

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
/// and floating point drifts. So a quota's time is counted in units of its own, of which both a
/// token and a tick of the clock are whole numbers: with tokens/period = t/p in lowest terms, a
/// tick of d nanoseconds, where d divides p, is t units, and a token is p/d. The tick is a
/// nanosecond wherever an arrival time then fits into 62 bits for as long as `bucket_horizon`, and
/// otherwise the shortest one for which it does.

namespace weir::rule {

/// How far from its epoch a store's time may be. Beyond it, time stands still for buckets.
inline constexpr duration bucket_horizon = std::chrono::hours{24 * 365 * 30};

/// `now`, held within the horizon.
[[nodiscard]] constexpr duration within_horizon(duration now) noexcept {
  constexpr auto most = bucket_horizon.count();
  auto const n = now.count();  // a number, not a reference to one: that would have to be in memory
  return duration{n < -most ? -most : n > most ? most : n};
}

namespace detail {

__extension__ using wide = unsigned __int128;  // two compilers have it, the language has not

/// The least divisor of `p` that is at least `least` and at most `most`, among those whose only
/// prime factors are 2, 3 and 5, and `p` itself: whatever divides seconds, minutes, hours and days.
/// 0 if there is none.
[[nodiscard]] constexpr std::uint64_t least_divisor(std::uint64_t p, std::uint64_t least,
                                                    std::uint64_t most) noexcept {
  std::uint64_t best = p >= least && p <= most ? p : most + 1;
  for (std::uint64_t twos = 1; twos < best; twos *= 2) {
    for (std::uint64_t threes = twos; threes < best; threes *= 3) {
      for (std::uint64_t fives = threes; fives < best; fives *= 5) {
        if (fives >= least && p % fives == 0) best = fives;
      }
    }
  }
  return best <= most ? best : 0;
}

}  // namespace detail

/// One quota in integers. Made by `bucket_scale::of` only, which sees to it that nothing below can
/// overflow.
struct bucket_scale {
  std::uint64_t capacity = 0;  ///< tokens of a full bucket
  std::int64_t gain = 0;       ///< units that a tick brings
  std::int64_t price = 0;      ///< units of one token
  std::uint64_t inverse = 0;   ///< of the price: see `tokens_in`
  std::int32_t tick = 0;       ///< nanoseconds: time is rounded down to a multiple of it
  std::int32_t shift = 0;      ///< of the price: see `tokens_in`

  /// The arrival time of a bucket that was never seen; below every other.
  static constexpr std::int64_t never = -(std::int64_t{1} << 62);

  /// The coarsest tick: the tolerance of a quota's windows.
  static constexpr duration longest_tick = std::chrono::milliseconds{2};

  /// The longest time in which a bucket may fill.
  static constexpr duration longest_fill = std::chrono::hours{24 * 365 * 100};

  /// Empty if the quota cannot be represented: a bucket that takes longer than `longest_fill` to
  /// fill, a rate above 3.6 tokens a nanosecond, or one whose fraction needs a tick that is longer
  /// than `longest_tick` or brings more than the bucket holds. Every whole number up to 3.6 million
  /// a second, minute, hour or day can be, with a burst of the same size, and up to three a
  /// nanosecond those with few digits; a prime above 8 million a second cannot.
  [[nodiscard]] static constexpr std::optional<bucket_scale> of(quota const& q) noexcept {
    using detail::wide;
    auto const period = static_cast<std::uint64_t>(q.period().count());
    auto const common = std::gcd(q.tokens(), period);
    auto const t = q.tokens() / common;
    auto const p = period / common;
    auto const fill = static_cast<wide>(q.capacity()) * p;  // in units, were the tick a nanosecond
    if (fill > static_cast<wide>(longest_fill.count()) * t) return std::nullopt;

    constexpr wide most = wide{1} << 62;
    constexpr duration ahead = bucket_horizon + limits::span + std::chrono::hours{24};
    auto const least = (static_cast<wide>(ahead.count()) * t + fill + most - 1) / most;
    constexpr auto longest = static_cast<std::uint64_t>(longest_tick.count());
    if (least > longest) return std::nullopt;
    auto const tick = least <= 1
                          ? std::uint64_t{1}
                          : detail::least_divisor(p, static_cast<std::uint64_t>(least), longest);
    if (tick == 0) return std::nullopt;

    bucket_scale out;
    out.capacity = q.capacity();
    out.gain = static_cast<std::int64_t>(t);
    out.price = static_cast<std::int64_t>(p / tick);
    out.tick = static_cast<std::int32_t>(tick);
    out.shift = 63 + static_cast<std::int32_t>(std::bit_width(p / tick - 1));
    out.inverse = static_cast<std::uint64_t>((wide{1} << out.shift) / (p / tick)) + 1;
    if (out.room() < out.gain) return std::nullopt;
    return out;
  }

  /// The units of a full bucket.
  [[nodiscard]] constexpr std::int64_t room() const noexcept { return price_of(capacity); }

  /// The whole tokens in so many units, from 0 to `room()`: `units / price`, multiplied by the
  /// inverse, since a division would cost a check a tenth of its time. Exact for all 63-bit numbers
  /// (Granlund and Montgomery, "Division by invariant integers using multiplication", 1994,
  /// theorem 4.2). Doubled, so that the upper half of the product is all that is shifted.
  [[nodiscard]] constexpr std::uint64_t tokens_in(std::int64_t units) const noexcept {
    using detail::wide;
    auto const doubled = static_cast<std::uint64_t>(units) * 2;
    return static_cast<std::uint64_t>((static_cast<wide>(doubled) * inverse) >> 64) >> (shift - 63);
  }

  /// The units of `cost` tokens, of which there must not be more than the capacity.
  [[nodiscard]] constexpr std::int64_t price_of(std::uint64_t cost) const noexcept {
    return static_cast<std::int64_t>(cost) * price;
  }

  /// The time in units, rounded down: the time of the last tick. `now` must be within the horizon,
  /// or as far ahead of it as a reservation may lie.
  [[nodiscard]] constexpr std::int64_t units_at(duration now) const noexcept {
    if (tick == 1) return now.count() * gain;
    auto const ticks = now.count() / tick - static_cast<std::int64_t>(now.count() % tick < 0);
    return ticks * gain;
  }

  /// The first time at which `units_at` is not below `units`.
  [[nodiscard]] constexpr duration reached(std::int64_t units) const noexcept {
    if (gain == 1) return duration{units * tick};
    auto const ticks = units / gain + static_cast<std::int64_t>(units % gain > 0);
    return duration{ticks * tick};
  }
};

/// The scales of one to four quotas.
struct bucket_scales {
  std::array<bucket_scale, limits::quotas> each{};  ///< by position; the first `size` of them count
  std::size_t size = 0;                             ///< how many quotas there are

  /// Empty if one of the quotas cannot be represented.
  [[nodiscard]] static constexpr std::optional<bucket_scales> of(
      std::span<quota const> quotas) noexcept {
    bucket_scales out;
    for (auto const& q : quotas) {
      auto const scale = bucket_scale::of(q);
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
