// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_DECISION_HPP
#define WEIR_DECISION_HPP

#include "weir/limits.hpp"
#include "weir/time.hpp"

#include <array>
#include <cstdint>

namespace weir {

/// What a granted take left behind, needed to refund it: each quota's theoretical arrival time in
/// that store's own units. It names the grant only as long as nothing was taken after it.
struct bucket_mark {
  std::array<std::int64_t, limits::quotas> arrival{};  ///< after the take
  std::array<std::int64_t, limits::quotas> before{};   ///< before it: what all going back restores
  std::array<std::int32_t, limits::quotas> arrival_high{};  ///< what of `arrival` is above 64 bits
  std::array<std::int32_t, limits::quotas> before_high{};   ///< what of `before` is above 64 bits
  /// Do they name the same grant?
  friend constexpr bool operator==(bucket_mark const&, bucket_mark const&) = default;
};

/// The answer to a take or a peek: a value, also when it says no.
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
                           ///< up
  duration reset_after{};  ///< until every quota is full again if nothing else is taken; rounded up
  bucket_mark mark{};      ///< allowed: for `command::refund`
};

/// The answer to a refund.
struct refund_receipt {
  std::uint64_t credited = 0;   ///< tokens that went back
  std::uint64_t forfeited = 0;  ///< tokens that did not, because something was reserved after them
                                ///< or they refilled
};

}  // namespace weir

#endif
