// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_COMMAND_PERMITS_HPP
#define WEIR_COMMAND_PERMITS_HPP

#include "weir/time.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

/// @file
/// A permit is one of `limit` leases on a key. Refused holders may keep a ticket: a place in the
/// key's line, which lapses unless they ask again within their patience.

namespace weir {

/// The answer to `command::acquire_permit`.
struct permit_grant {
  bool granted = false;     ///< it has a permit after this step; false is an answer, not an error
  std::uint64_t fence = 0;  ///< granted: the lease's number, greater than every earlier one of this
                            ///< key
  duration expires_in{};    ///< granted: what is left of the lease
  std::uint32_t in_use = 0;  ///< live permits of the key after this step
  std::uint32_t place = 0;   ///< refused: this holder's place in line, 1 being the next; 0: it has
                             ///< none
  /// Refused: until expiries alone could make it this holder's turn, never too short. If as many
  /// wait before it as the limit has permits: until all on the key is over, later places included.
  duration retry_after{};
};

/// The answer to `command::renew_permit` and `command::renew_lock`.
struct lease_renewal {
  duration expires_in{};  ///< counted from this step
};

/// The answer to `command::release_permit` and `command::release_lock`.
struct lease_release {
  bool freed = false;  ///< a live lease ended in this step; false: it was over already (harmless)
  bool left_line = false;  ///< a place in line was given up
};

/// A hint that asking again may be worth it. It promises nothing, and its absence promises nothing
/// either.
struct hint {};

/// One live permit, as `command::inspect_permits` lists it.
struct permit_info {
  std::string holder;       ///< who has it, as its acquire named it
  std::uint64_t fence = 0;  ///< its number
  duration expires_in{};    ///< what is left of it
};

/// The answer to `command::inspect_permits`.
struct permit_census {
  std::uint32_t in_use = 0;          ///< live permits
  std::uint32_t waiting = 0;         ///< live tickets
  std::vector<permit_info> holders;  ///< by fence, at most as many as asked for
};

namespace command {

/// Takes one of `limit` permits of `key`, or keeps a place in its line.
///
/// Granted while live permits < limit and nobody who waits is overtaken: live permits + live
/// tickets ahead of this holder < limit. A holder that has a live permit already is given the same
/// one again, unchanged. Refused with `patience` > 0, it keeps (or takes, at the end) its place for
/// that long; with `patience` = 0 it keeps none.
struct acquire_permit {
  using result = permit_grant;              ///< whether it has a permit, and else when to ask again
  static constexpr bool repeatable = true;  ///< a holder that asks again is given the same permit,
                                            ///< or keeps its place

  std::string_view key;     ///< what is limited, 1…`limits::key_size` bytes
  std::string_view holder;  ///< who asks, 1…`limits::holder_size` bytes: a new one for each permit
                            ///< that is wanted
  std::uint32_t limit = 1;  ///< permits of the key, 1…`limits::permits`; what this command says
                            ///< decides this step
  duration ttl{};           ///< how long the permit lives unless it is renewed, (0, `limits::span`]
  duration patience{};      ///< how long a refused holder keeps its place unless it asks again, [0,
                            ///< `limits::span`]
};

/// Makes a live permit last `ttl` from now. Error: `lease_lost` when holder and fence do not name a
/// live permit.
struct renew_permit {
  using result = lease_renewal;             ///< what is left of it now
  static constexpr bool repeatable = true;  ///< asked again, it counts from then

  std::string_view key;     ///< of the permit
  std::string_view holder;  ///< who has it
  std::uint64_t fence = 0;  ///< its number, from the grant
  duration ttl{};           ///< from this step on, (0, `limits::span`]
};

/// Ends the permit of this holder and fence. With fence 0: whatever this holder has on the key,
/// permit or ticket.
struct release_permit {
  using result = lease_release;             ///< what ended in this step
  static constexpr bool repeatable = true;  ///< what is over stays over: a repeat frees nothing,
                                            ///< and says so

  std::string_view key;     ///< of the permit, or of the line
  std::string_view holder;  ///< who has it, or waits
  std::uint64_t fence = 0;  ///< its number, from the grant; 0: whatever the holder has
};

/// Completes when this holder, which has a ticket, has reason to ask again. Completes at once if it
/// has one now, or has no ticket. One freed permit wakes one waiter. An optional capability:
/// waiting never depends on it.
struct await_permit {
  using result = hint;                      ///< nothing but that it is time to ask again
  static constexpr bool repeatable = true;  ///< it changes nothing

  std::string_view key;     ///< in whose line the holder waits
  std::string_view holder;  ///< whose ticket it is
};

/// Counts the live permits and tickets of a key and lists up to `limit` holders (0: none).
struct inspect_permits {
  using result = permit_census;             ///< who has the permits, and how many wait
  static constexpr bool repeatable = true;  ///< it changes nothing

  std::string_view key;     ///< whose permits
  std::uint32_t limit = 0;  ///< holders to list, 0…`limits::batch`
};

}  // namespace command
}  // namespace weir

#endif
