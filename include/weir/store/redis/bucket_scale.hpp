// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_STORE_REDIS_BUCKET_SCALE_HPP
#define WEIR_STORE_REDIS_BUCKET_SCALE_HPP

#include "weir/rule/bucket_scale.hpp"
#include "weir/rule/buckets.hpp"
#include "weir/store/redis/script.hpp"
#include "weir/time.hpp"

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

// The rule's units do not fit into the doubles of a script. So scripts count a quota's time in two
// digits: microseconds, and units below `gain`, of which a microsecond brings that many. Both are
// below 2⁵² (rule/bucket_scale.hpp), so adding, comparing and subtracting these is exact, and that
// is all that a script does in most cases. Here, units are counted from the time of the step.
namespace weir::detail {

/// A tick of the clock of the scripts.
inline constexpr duration redis_tick = std::chrono::microseconds{1};

/// A number of units as a script has it.
struct redis_units {
  std::int64_t micros = 0;
  std::int64_t rest = 0;

  /// Of no less than 0 units.
  [[nodiscard]] static constexpr redis_units of(rule::bucket_units units,
                                                rule::bucket_scale const& s) noexcept {
    return {static_cast<std::int64_t>(units / s.gain), static_cast<std::int64_t>(units % s.gain)};
  }

  /// All of it in units.
  [[nodiscard]] constexpr rule::bucket_units units(rule::bucket_scale const& s) const noexcept {
    return static_cast<rule::bucket_units>(micros) * s.gain + rest;
  }

  /// Units after `now`, 0 if it is before; empty: no script has written this.
  [[nodiscard]] constexpr std::optional<rule::bucket_units> after(
      std::int64_t now, rule::bucket_scale const& s) const noexcept {
    if (rest < 0 || rest >= s.gain || micros < -redis_exact || micros > redis_exact) {
      return std::nullopt;
    }
    if (micros < now) return 0;
    return redis_units{micros - now, rest}.units(s);
  }
};

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
