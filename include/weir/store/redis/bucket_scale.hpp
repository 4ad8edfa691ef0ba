// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_STORE_REDIS_BUCKET_SCALE_HPP
#define WEIR_STORE_REDIS_BUCKET_SCALE_HPP

#include "weir/limits.hpp"
#include "weir/quota.hpp"
#include "weir/rule/bucket_scale.hpp"
#include "weir/rule/buckets.hpp"
#include "weir/time.hpp"

#include <bit>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <optional>
#include <span>
#include <string>

// The rule's units, counted from an epoch, do not fit into the doubles of a script, nor, at one
// tick to the microsecond, into 64 bits. So scripts count a quota's time in two digits:
// microseconds, and units below `gain`, of which a microsecond brings that many. Adding, comparing
// and subtracting these is exact, and that is all that a script does in most cases. Here, units are
// counted from the time of the step.
namespace weir::detail {

/// A number of units as a script has it.
struct redis_units {
  static constexpr std::int64_t never = -(std::int64_t{1} << 52);

  std::int64_t micros = 0;
  std::int64_t rest = 0;

  /// Of no less than 0 units.
  [[nodiscard]] static constexpr redis_units of(std::int64_t units,
                                                rule::bucket_scale const& s) noexcept {
    return {units / s.gain, units % s.gain};
  }

  /// Units after `now`, 0 if it is before; empty: no script has written this.
  [[nodiscard]] constexpr std::optional<std::int64_t> after(
      std::int64_t now, rule::bucket_scale const& s) const noexcept {
    if (rest < 0 || rest >= s.gain) return std::nullopt;
    if (micros < now) return 0;
    constexpr auto most = std::int64_t{1} << 62;
    auto const ahead =
        static_cast<rule::detail::wide>(micros - now) * static_cast<rule::detail::wide>(s.gain) +
        static_cast<rule::detail::wide>(rest);
    if (ahead > static_cast<rule::detail::wide>(most)) return std::nullopt;
    return static_cast<std::int64_t>(ahead);
  }
};

/// How a mark names an arrival: by its rest and as many of the low bits of its microseconds as
/// there is room for. Two arrivals that agree in these are a power of two of microseconds apart.
[[nodiscard]] constexpr std::int64_t redis_mark_period(rule::bucket_scale const& s) noexcept {
  constexpr int bits = 62;
  return std::int64_t{1} << (bits - std::bit_width(static_cast<std::uint64_t>(s.gain)));
}

/// The scale of a quota with a tick of a microsecond. Empty where the bucket takes longer than the
/// rule allows to fill, where a microsecond brings more than it holds, or where the numbers are too
/// large for a script.
[[nodiscard]] constexpr std::optional<rule::bucket_scale> redis_bucket_scale(
    quota const& q) noexcept {
  using rule::bucket_scale;
  using wide = rule::detail::wide;
  constexpr std::uint64_t exact = std::uint64_t{1} << 50;  // with room for sums
  constexpr std::uint64_t tick = 1000;
  auto const period = static_cast<std::uint64_t>(q.period().count());
  auto const common = std::gcd(q.tokens(), period);
  auto const t = q.tokens() / common;
  auto const p = period / common;
  auto const fill = static_cast<wide>(q.capacity()) * p;
  if (q.capacity() > exact || fill > static_cast<wide>(bucket_scale::longest_fill.count()) * t) {
    return std::nullopt;
  }
  auto const unit = std::gcd(p, tick);
  auto const gain = static_cast<wide>(tick / unit) * t;
  constexpr wide most = wide{1} << 62;
  constexpr duration ahead = limits::span + std::chrono::hours{24};
  if (gain > exact || (static_cast<wide>(ahead.count()) * t + fill) / unit >= most) {
    return std::nullopt;
  }

  bucket_scale out;
  auto const price = p / unit;
  out.capacity = q.capacity();
  out.gain = static_cast<std::int64_t>(gain);
  out.price = static_cast<std::int64_t>(price);
  out.tick = static_cast<std::int32_t>(tick);
  out.shift = 63 + static_cast<std::int32_t>(std::bit_width(price - 1));
  out.inverse = static_cast<std::uint64_t>((wide{1} << out.shift) / price) + 1;
  if (out.room() < out.gain) return std::nullopt;
  return out;
}

[[nodiscard]] constexpr std::optional<rule::bucket_scales> redis_bucket_scales(
    std::span<quota const> quotas) noexcept {
  rule::bucket_scales out;
  for (auto const& q : quotas) {
    auto const scale = redis_bucket_scale(q);
    if (!scale) return std::nullopt;
    out.each[out.size++] = *scale;
  }
  return out;
}

/// What a bucket's value begins with, and says of its quotas: by it scripts know whether they were
/// changed, and what a token of them is. Four numbers for each: gain, a token, the capacity; and,
/// so that nothing that follows can be part of it, a bar.
[[nodiscard]] inline std::string redis_quota_text(rule::bucket_scales const& scales) {
  std::string out;
  for (auto const& s : scales.span()) {
    auto const token = redis_units::of(s.price, s);
    for (auto const n : {s.gain, token.micros, token.rest, static_cast<std::int64_t>(s.capacity)}) {
      out.append(std::to_string(n)).append(" ");
    }
  }
  out.append("|");
  return out;
}

}  // namespace weir::detail

#endif
