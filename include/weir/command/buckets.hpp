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

/// @file
/// A bucket is a key with one to four quotas, all of which must allow a take. A key that was never
/// seen is full. When a key's quotas are changed, what was spent stays spent: each new quota starts
/// with the old one's missing tokens, by position, rounded up to whole ones and capped at its own
/// capacity.

namespace weir::command {

/// Takes `cost` tokens from every quota of `key`, or from none.
///
/// With `max_wait` > 0 the tokens may lie in the future: the take is granted with `decision::wait`
/// ≤ `max_wait`, and later takes queue behind it. A denial changes nothing.
struct take {
  using result = decision;                   ///< granted or not, and what is left
  static constexpr bool repeatable = false;  ///< asked again, it would take again: an unknown
                                             ///< outcome counts as spent

  std::string_view key;           ///< whose bucket, 1…`limits::key_size` bytes
  std::span<quota const> quotas;  ///< 1…`limits::quotas` of them, all of which must allow it
  std::uint64_t cost = 1;         ///< tokens, 1…the smallest capacity
  duration max_wait{};  ///< how far ahead the tokens may lie, [0, `limits::span`]; 0: now or not at
                        ///< all
};

/// Reads what is there, and whether `take` would be granted; changes nothing.
struct peek_bucket {
  using result = bucket_info;               ///< how full each quota is; would it be granted?
  static constexpr bool repeatable = true;  ///< it changes nothing

  std::string_view key;           ///< whose bucket, 1…`limits::key_size` bytes
  std::span<quota const> quotas;  ///< 1…`limits::quotas` of them, all of which must allow it
  std::uint64_t cost = 1;         ///< tokens, 1…the smallest capacity
  duration max_wait{};  ///< how far ahead the tokens may lie, [0, `limits::span`]; 0: now or not at
                        ///< all
};

/// Gives a granted take back, if nothing was taken after it (its mark still stands).
///
/// `before_instant`: the waiter gives up before its reserved instant: all of it goes back.
/// Otherwise at most the tokens that have not refilled meanwhile; one that has in part goes back
/// whole. The rest is forfeited.
///
/// A grant of which something was credited must not be refunded again: a mark is a time, to which a
/// later take may have come back, and it would be that take's tokens that are credited. So it may
/// be where the quotas were changed meanwhile.
struct refund {
  using result = refund_receipt;             ///< what went back, and what did not
  static constexpr bool repeatable = false;  ///< the mark may have come back meanwhile: see above

  std::string_view key;           ///< whose bucket, 1…`limits::key_size` bytes
  std::span<quota const> quotas;  ///< those of the take
  std::uint64_t cost = 1;         ///< that of the take
  bucket_mark mark{};             ///< its `decision::mark`
  bool before_instant = false;    ///< the reserved instant has not come, and nothing was done under
                                  ///< the grant
};

/// Makes the bucket full, and forgets it.
struct reset_bucket {
  using result = hint;                      ///< nothing but that it was done
  static constexpr bool repeatable = true;  ///< a full bucket stays full

  std::string_view key;  ///< whose bucket, 1…`limits::key_size` bytes
};

/// The answer to `reap_buckets`.
struct reaped {
  std::uint64_t removed = 0;  ///< full buckets that were forgotten
  std::uint64_t kept = 0;     ///< buckets that remain in the store
};

/// Forgets every bucket that is full again: it equals a fresh one. A store whose engine expires
/// keys by itself need not have this.
struct reap_buckets {
  using result = reaped;                    ///< how many it forgot
  static constexpr bool repeatable = true;  ///< it changes nothing that a take could tell
};

}  // namespace weir::command

#endif
