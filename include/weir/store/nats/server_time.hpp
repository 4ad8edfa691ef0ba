// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_STORE_NATS_SERVER_TIME_HPP
#define WEIR_STORE_NATS_SERVER_TIME_HPP

#include "weir/time.hpp"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <system_error>

namespace weir::detail {

/// Reads a time as servers write it: `2026-11-21T20:41:51.123456789Z`.
[[nodiscard]] inline std::optional<time_point> nats_time(std::string_view text) noexcept {
  using namespace std::chrono;
  auto const number = [&](std::size_t digits, char until) -> std::optional<int> {
    int value = 0;
    if (text.size() <= digits || (until != 0 && text[digits] != until)) return std::nullopt;
    auto const [end, ec] = std::from_chars(text.data(), text.data() + digits, value);
    if (ec != std::errc{} || end != text.data() + digits || value < 0) return std::nullopt;
    text.remove_prefix(digits + (until != 0 ? 1U : 0U));
    return value;
  };
  auto const y = number(4, '-');
  auto const m = y ? number(2, '-') : y;
  auto const d = m ? number(2, 'T') : m;
  auto const h = d ? number(2, ':') : d;
  auto const min = h ? number(2, ':') : h;
  auto const s = min ? number(2, 0) : min;
  if (!s || *h > 23 || *min > 59 || *s > 60) return std::nullopt;
  auto const date = year{*y} / month{static_cast<unsigned>(*m)} / day{static_cast<unsigned>(*d)};
  if (!date.ok() || *y < 1970 || *y > 2200) return std::nullopt;

  std::int64_t nanos = 0;
  if (text.starts_with('.')) {
    auto const end = text.find_first_not_of("0123456789", 1);
    auto const digits = (end == text.npos ? text.size() : end) - 1;
    constexpr std::size_t most = 9;
    if (digits == 0 || digits > most) return std::nullopt;
    std::from_chars(text.data() + 1, text.data() + 1 + digits, nanos);
    for (auto i = digits; i != most; ++i) nanos *= 10;
    text.remove_prefix(digits + 1);
  }
  if (text != "Z") return std::nullopt;
  return time_point{sys_days{date}} + hours{*h} + minutes{*min} + seconds{*s} + nanoseconds{nanos};
}

/// What time it is at the server, as far as its replies tell: between two bounds.
///
/// A reply that says the time was written after the request left and before it came. So the
/// server's time is known as exactly as the round trip was short, and by the intersection of all of
/// them better than by any. Clocks drift, so the bounds part until the next reply; where they
/// contradict the next reply (the server's clock was set, or another server answers), that counts.
class nats_server_time {
 public:
  /// More than clocks that are not being set differ, and than NTP corrects them by.
  static constexpr std::int64_t drift = 2000;  // one part in so many

  /// With more doubt than this it is worth asking again.
  static constexpr duration vague = std::chrono::milliseconds{10};

  [[nodiscard]] bool known() const noexcept { return known_; }

  void learn(time_point server, steady_time sent, steady_time received) noexcept {
    auto const since_epoch = server.time_since_epoch();
    auto low = since_epoch - received.time_since_epoch();
    auto high = since_epoch - sent.time_since_epoch();
    if (known_) {
      auto const slack = slack_at(received);
      auto const both_low = std::max(low, low_ - slack);
      auto const both_high = std::min(high, high_ + slack);
      if (both_low <= both_high) {
        low = both_low;
        high = both_high;
      }
    }
    low_ = low;
    high_ = high;
    at_ = received;
    known_ = true;
  }

  /// It is not earlier there. Nothing that is over by this is alive.
  [[nodiscard]] time_point earliest(steady_time now) const noexcept {
    return time_point{now.time_since_epoch() + low_ - slack_at(now)};
  }
  /// How much later it may be.
  [[nodiscard]] duration doubt(steady_time now) const noexcept {
    return high_ - low_ + 2 * slack_at(now);
  }

 private:
  [[nodiscard]] duration slack_at(steady_time now) const noexcept {
    return std::max(now - at_, duration::zero()) / drift;
  }

  duration low_{};
  duration high_{};
  steady_time at_{};
  bool known_ = false;
};

}  // namespace weir::detail

#endif
