// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_HTTP_FIELDS_HPP
#define WEIR_HTTP_FIELDS_HPP

#include "weir/decision.hpp"
#include "weir/detail/int128.hpp"
#include "weir/quota.hpp"
#include "weir/time.hpp"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

/// @file
/// The values of the header fields in which a server tells its clients of their rate limits:
///
///     RateLimit-Policy: "burst";q=200;w=2, "daily";q=10000;w=86400
///     RateLimit: "burst";r=137;t=1
///     Retry-After: 3
///
/// RateLimit and RateLimit-Policy are those of draft-ietf-httpapi-ratelimit-headers-11: Structured
/// Fields (RFC 9651), lists of strings with parameters. Retry-After is RFC 9110's, in seconds.
/// Times are rounded up to whole seconds, so that a client that obeys is never early. Whatever the
/// names are, the values are well-formed.

namespace weir::http {

/// The name of the field with the quotas.
inline constexpr std::string_view ratelimit_policy_field = "RateLimit-Policy";
/// The name of the field with what is left of them.
inline constexpr std::string_view ratelimit_field = "RateLimit";
/// The name of the field of a refusal.
inline constexpr std::string_view retry_after_field = "Retry-After";

/// A quota under the name by which clients know it. The views must live as long as it is used.
struct named_quota {
  std::string_view name;    ///< printable ASCII; other bytes are written as `_`
  quota limit;              ///< as the limiter has it
  std::string_view unit{};  ///< what a token is, such as "content-bytes"; empty: a request
};

namespace detail {

/// The largest Integer of a Structured Field.
inline constexpr std::uint64_t largest_integer = 999'999'999'999'999;

inline void append_integer(std::string& out, std::uint64_t n) {
  out += std::to_string(std::min(n, largest_integer));
}

inline void append_string(std::string& out, std::string_view text) {
  out += '"';
  for (char const c : text) {
    if (c < ' ' || c > '~') {
      out += '_';
    } else {
      if (c == '"' || c == '\\') out += '\\';
      out += c;
    }
  }
  out += '"';
}

[[nodiscard]] constexpr std::uint64_t whole_seconds(duration d) noexcept {
  auto const seconds = std::chrono::ceil<std::chrono::seconds>(std::max(d, duration::zero()));
  return static_cast<std::uint64_t>(seconds.count());
}

/// How long an empty bucket takes to fill: the window in which so many can be used again and again.
[[nodiscard]] inline std::uint64_t window(quota const& q) noexcept {
  using wide = weir::detail::uint128;
  if (q.tokens() == 0 || q.period() <= duration::zero()) return 1;
  auto const whole = static_cast<wide>(q.capacity()) * static_cast<wide>(q.period().count());
  auto const second = static_cast<wide>(q.tokens()) * 1'000'000'000U;
  auto const seconds = whole / second + static_cast<wide>(whole % second != 0);
  return seconds > largest_integer
             ? largest_integer
             : std::max(static_cast<std::uint64_t>(seconds), std::uint64_t{1});
}

}  // namespace detail

/// The value of `RateLimit-Policy`: for each quota its capacity (`q`) and the time in which that
/// refills (`w`).
[[nodiscard]] inline std::string ratelimit_policy(std::span<named_quota const> quotas) {
  std::string out;
  for (auto const& each : quotas) {
    if (!out.empty()) out += ", ";
    detail::append_string(out, each.name);
    out += ";q=";
    detail::append_integer(out, each.limit.capacity());
    if (!each.unit.empty()) {
      out += ";qu=";
      detail::append_string(out, each.unit);
    }
    out += ";w=";
    detail::append_integer(out, detail::window(each.limit));
  }
  return out;
}

/// The value of `RateLimit`: what remains (`r`) of the quota that binds, and until when it must do
/// (`t`): the same time as `Retry-After` after a denial, and until all is there again otherwise.
///
/// @param d    what a take or a peek was answered
/// @param name of the quota that binds: at position `d.binding`
[[nodiscard]] inline std::string ratelimit(decision const& d, std::string_view name) {
  std::string out;
  detail::append_string(out, name);
  out += ";r=";
  detail::append_integer(out, d.remaining);
  out += ";t=";
  detail::append_integer(out, detail::whole_seconds(d.allowed ? d.reset_after : d.retry_after));
  return out;
}

/// The same, with the name looked up among the limiter's quotas, in its order.
[[nodiscard]] inline std::string ratelimit(decision const& d, std::span<named_quota const> quotas) {
  return ratelimit(d, d.binding < quotas.size() ? quotas[d.binding].name : std::string_view{});
}

/// The value of `Retry-After`, at least 1. Empty if the decision is a grant: then the field is not
/// to be sent.
[[nodiscard]] inline std::string retry_after(decision const& d) {
  if (d.allowed) return {};
  return std::to_string(std::max(detail::whole_seconds(d.retry_after), std::uint64_t{1}));
}

}  // namespace weir::http

#endif
