// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_DECISION_HPP
#define WEIR_DECISION_HPP

#include "weir/limits.hpp"
#include "weir/time.hpp"

#include <array>
#include <cstdint>
#include <limits>

namespace weir {

/// The trace of a granted take, by which it is refunded: each quota's theoretical arrival time in
/// that store's own units. It names the grant only as long as nothing was taken after it.
struct bucket_mark {
  std::array<std::int64_t, limits::quotas> arrival{};  ///< after the take
  std::array<std::int64_t, limits::quotas> before{};   ///< before it: what a full refund restores
  std::array<std::int32_t, limits::quotas> arrival_high{};  ///< the bits of `arrival` above 64
  std::array<std::int32_t, limits::quotas> before_high{};   ///< the bits of `before` above 64
  /// One that no bucket ever has.
  static constexpr bucket_mark none() noexcept {
    constexpr auto no = std::numeric_limits<std::int32_t>::min();
    return {.arrival = {}, .before = {}, .arrival_high = {no, no, no, no}, .before_high = {}};
  }
  /// Do they name the same grant?
  friend constexpr bool operator==(bucket_mark const&, bucket_mark const&) = default;
};

/// The answer to a take: a value, also when it says no.
struct decision {
  bool allowed = false;  ///< may it be done? (`wait` says from when on)
  bool shed = false;  ///< denied because the table is full of spent keys; says nothing about this
                      ///< key
  std::uint8_t binding = 0;  ///< which quota binds, by position: the one with the fewest remaining
                             ///< tokens
  std::uint64_t cost = 0;    ///< what was asked for
  std::uint64_t capacity = 0;   ///< of the quota that binds
  std::uint64_t remaining = 0;  ///< tokens that could be taken right after this step, by every
                                ///< quota
  duration wait{};  ///< allowed: the grant counts from this much later (a reservation); else 0
  duration retry_after{};  ///< denied: the same call would be allowed after exactly this; rounded
                           ///< up. Shed: before this is over there cannot be room
  duration reset_after{};  ///< until every quota is full again if nothing else is taken; rounded up
  bucket_mark mark{};      ///< allowed: for `command::refund`
};

/// How full one quota is.
struct quota_level {
  std::uint64_t capacity = 0;   ///< tokens when it is full
  std::uint64_t remaining = 0;  ///< tokens that could be taken now
  duration reset_after{};       ///< until it is full again if nothing is taken; rounded up
};

/// The answer to a peek: how full the bucket is, and whether a take would be granted, or from when
/// on. Nothing was taken, so there is no mark.
struct bucket_info {
  bool allowed = false;         ///< would it be granted? (`wait` says from when on)
  bool shed = false;            ///< it would not: the table is full of spent keys
  std::uint8_t binding = 0;     ///< which quota has the fewest tokens, by position
  std::uint64_t cost = 0;       ///< what was asked for
  std::uint64_t capacity = 0;   ///< of the quota that binds
  std::uint64_t remaining = 0;  ///< tokens that are there now, by every quota
  duration wait{};              ///< as `decision::wait`
  duration retry_after{};       ///< as `decision::retry_after`
  duration reset_after{};       ///< until every quota is full again if nothing is taken
  std::array<quota_level, limits::quotas> levels{};  ///< of each quota, in their order; all zero
                                                     ///< behind the last one, and when shed

  /// The same as the answer to a take, such as for a client.
  constexpr operator decision() const noexcept {
    return {.allowed = allowed,
            .shed = shed,
            .binding = binding,
            .cost = cost,
            .capacity = capacity,
            .remaining = remaining,
            .wait = wait,
            .retry_after = retry_after,
            .reset_after = reset_after,
            .mark = bucket_mark::none()};
  }
};

/// The answer to a refund.
struct refund_receipt {
  std::uint64_t credited = 0;   ///< tokens that went back
  std::uint64_t forfeited = 0;  ///< tokens that did not, because something was reserved after them
                                ///< or they refilled
};

}  // namespace weir

#endif
