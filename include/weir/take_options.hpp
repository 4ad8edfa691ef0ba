// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_TAKE_OPTIONS_HPP
#define WEIR_TAKE_OPTIONS_HPP

#include "weir/time.hpp"

#include <cstdint>
#include <string_view>

namespace weir {

/// What a take is answered when its store is away (`store_unavailable`), or may have done it or not
/// (`outcome_unknown`): a limit that protects somebody else is often better open, one that protects
/// money closed.
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

/// What one take may say.
struct take_options {
  std::uint64_t cost = 1;  ///< tokens, 1…the smallest capacity
  duration wait{};  ///< how far ahead they may lie, [0, `limits::span`]; 0: now or not at all

  /// What an asynchronous take is answered while the store is away. How long it waits for the store
  /// before that is said by the store's options, or by its handle's `with_patience`.
  weir::while_away while_away = weir::while_away::fail;
};

/// What one refund may say.
struct refund_options {
  /// The grant was a reservation, its instant has not come, and nothing was done under it: all of
  /// it goes back.
  bool before_instant = false;
};

}  // namespace weir

#endif
