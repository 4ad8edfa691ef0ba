// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_TAKE_OPTIONS_HPP
#define WEIR_TAKE_OPTIONS_HPP

#include "weir/time.hpp"

#include <cstdint>
#include <string_view>

namespace weir {

/// The answer to a take while its store is away: where it fails with `store_unavailable`, or with
/// `outcome_unknown` since it may have been done. A limit that protects somebody else is often
/// better open, one that protects money closed.
enum class while_away : std::uint8_t {
  fail,   ///< the error
  allow,  ///< a grant that nobody counted; refunding it does nothing
  deny,   ///< a refusal, with a `retry_after` of a second
};

/// Its name in English, as it stands above.
[[nodiscard]] constexpr std::string_view to_string(while_away w) noexcept {
  switch (w) {
    case while_away::fail: return "fail";
    case while_away::allow: return "allow";
    case while_away::deny: return "deny";
  }
  return "?";
}

/// Options of one take.
struct take_options {
  std::uint64_t cost = 1;  ///< tokens, 1…the smallest capacity
  duration wait{};  ///< how far ahead they may lie, [0, `limits::span`]; 0: now or not at all

  /// The answer to an asynchronous take while the store is away. The store's options, or its
  /// handle's `with_patience`, say how long it waits for the store before.
  weir::while_away while_away = weir::while_away::fail;
};

/// Options of one refund.
struct refund_options {
  /// The grant was a reservation, its instant has not come, and nothing was done under it: all of
  /// it goes back.
  bool before_instant = false;
};

}  // namespace weir

#endif
