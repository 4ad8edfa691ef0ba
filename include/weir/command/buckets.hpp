// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_COMMAND_BUCKETS_HPP
#define WEIR_COMMAND_BUCKETS_HPP

#include "weir/command/permits.hpp"
#include "weir/decision.hpp"
#include "weir/quota.hpp"
#include "weir/time.hpp"

#include <cstdint>
#include <span>
#include <string_view>

// A bucket is a key with one to four quotas, all of which must allow a take. A key that was never
// seen is full. When a key's quotas are changed, what was spent stays spent: each new quota starts
// with the old one's missing tokens, by position, capped at its own capacity.
namespace weir::command {

/// Takes `cost` tokens from every quota of `key`, or from none.
///
/// With `max_wait` > 0 the tokens may lie in the future: the take is granted with `decision::wait`
/// ≤ `max_wait`, and later takes queue behind it. A denial changes nothing.
struct take {
  using result = decision;
  static constexpr bool repeatable = false;  // asked again, it would take again: an unknown outcome
                                             // counts as spent

  std::string_view key;
  std::span<quota const> quotas;
  std::uint64_t cost = 1;
  duration max_wait{};
};

/// What `take` would answer, changing nothing.
struct peek_bucket {
  using result = decision;
  static constexpr bool repeatable = true;

  std::string_view key;
  std::span<quota const> quotas;
  std::uint64_t cost = 1;
  duration max_wait{};
};

/// Gives a granted take back, if nothing was taken after it (its mark still stands).
///
/// `before_instant`: the waiter gives up before its reserved instant: all of it goes back.
/// Otherwise whole tokens, at most those that have not refilled meanwhile. The rest is forfeited.
///
/// A grant of which something was credited must not be refunded again: a mark is a time, to which a
/// later take may have come back, and it would be that take's tokens that are credited.
struct refund {
  using result = refund_receipt;
  static constexpr bool repeatable = false;

  std::string_view key;
  std::span<quota const> quotas;
  std::uint64_t cost = 1;
  bucket_mark mark{};
  bool before_instant = false;
};

/// Makes the bucket full, and forgets it.
struct reset_bucket {
  using result = hint;
  static constexpr bool repeatable = true;

  std::string_view key;
};

/// The answer to `reap_buckets`.
struct reaped {
  std::uint64_t removed = 0;  ///< full buckets that were forgotten
  std::uint64_t kept = 0;     ///< buckets that remain in the store
};

/// Forgets every bucket that is full again: it equals a fresh one. A store whose engine expires
/// keys by itself need not have this.
struct reap_buckets {
  using result = reaped;
  static constexpr bool repeatable = true;
};

}  // namespace weir::command

#endif
