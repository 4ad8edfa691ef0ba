// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_QUOTA_HPP
#define WEIR_QUOTA_HPP

#include "weir/time.hpp"

#include <compare>
#include <cstdint>

namespace weir {

/// How fast a bucket refills, and how much it holds: `tokens` per `period`, and at most `capacity`
/// at once.
///
/// A plain value; whether it makes sense is checked when it is used (`errc::invalid_quota`), and
/// whether it is one of those that every store takes, too (`errc::quota_too_large` otherwise).
///
/// All stores take the same quotas, and count them exactly, to the tick of their clock (a
/// nanosecond in memory, a microsecond elsewhere):
///
/// - every whole rate from 1 to 10⁹ tokens per second, minute, hour or day, with every burst up to
///   10⁹ that fills within ten years (3,650 days);
/// - with other periods, every one whose rate is at most 10⁹ tokens in a whole number of
///   microseconds, in lowest terms, with the same bursts.
///
///     constexpr auto q = weir::quota::per_second(100).burst(200);
class quota {
 public:
  /// No quota: `errc::invalid_quota` wherever it is used.
  constexpr quota() = default;

  /// `tokens` in every `period`, with a burst of the same size.
  [[nodiscard]] static constexpr quota per(std::uint64_t tokens, duration period) noexcept {
    return quota{tokens, period, tokens};
  }
  /// `tokens` in every second, with a burst of the same size.
  [[nodiscard]] static constexpr quota per_second(std::uint64_t tokens) noexcept {
    return per(tokens, std::chrono::seconds{1});
  }
  /// `tokens` in every minute, with a burst of the same size.
  [[nodiscard]] static constexpr quota per_minute(std::uint64_t tokens) noexcept {
    return per(tokens, std::chrono::minutes{1});
  }
  /// `tokens` in every hour, with a burst of the same size.
  [[nodiscard]] static constexpr quota per_hour(std::uint64_t tokens) noexcept {
    return per(tokens, std::chrono::hours{1});
  }
  /// `tokens` in every 24 hours, with a burst of the same size.
  [[nodiscard]] static constexpr quota per_day(std::uint64_t tokens) noexcept {
    return per(tokens, std::chrono::hours{24});
  }

  /// The same rate with room for `capacity` tokens.
  [[nodiscard]] constexpr quota burst(std::uint64_t capacity) const noexcept {
    return quota{tokens_, period_, capacity};
  }

  /// How many tokens a period brings.
  [[nodiscard]] constexpr std::uint64_t tokens() const noexcept { return tokens_; }
  /// In what time.
  [[nodiscard]] constexpr duration period() const noexcept { return period_; }
  /// How many tokens the bucket holds.
  [[nodiscard]] constexpr std::uint64_t capacity() const noexcept { return capacity_; }

  /// Are they written alike? 60 a minute is not 1 a second.
  friend constexpr bool operator==(quota const&, quota const&) = default;

 private:
  constexpr quota(std::uint64_t tokens, duration period, std::uint64_t capacity) noexcept
      : tokens_{tokens},
        period_{period},
        capacity_{capacity} {}

  std::uint64_t tokens_ = 0;
  duration period_{};
  std::uint64_t capacity_ = 0;
};

}  // namespace weir

#endif
