// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_COMMAND_LOCKS_HPP
#define WEIR_COMMAND_LOCKS_HPP

#include "weir/command/permits.hpp"
#include "weir/time.hpp"

#include <cstdint>
#include <string>
#include <string_view>

/// @file
/// A lock is a lease that at most one holder has. The unique keys of queued jobs are not these:
/// they live in the job's own record (command/jobs.hpp), so that no lock outlives its job.

namespace weir {

/// The answer to `command::acquire_lock`.
struct lock_grant {
  bool granted = false;     ///< it has the lock after this step; false is an answer, not an error
  std::uint64_t fence = 0;  ///< granted: the lease's number; refused: 0
  duration expires_in{};    ///< granted: what is left of the lease; refused: of the other holder's
  std::string holder;       ///< refused: who has it
};

/// The answer to `command::inspect_lock`.
struct lock_info {
  bool held = false;        ///< somebody has it
  std::string holder;       ///< held: who
  std::uint64_t fence = 0;  ///< held: the number of the lease
  duration expires_in{};    ///< held: what is left of the lease
};

namespace command {

/// Takes the lock `key` for `ttl` if nobody has it. A holder that has it already is given the same
/// one, unchanged.
struct acquire_lock {
  using result = lock_grant;                ///< whether it has the lock, and else who has
  static constexpr bool repeatable = true;  ///< a holder that asks again is given the same lease

  std::string_view key;     ///< what is locked, 1…`limits::key_size` bytes
  std::string_view holder;  ///< who asks, 1…`limits::holder_size` bytes: a new one for each lock
                            ///< that is wanted
  duration ttl{};           ///< how long the lease lives unless it is renewed, (0, `limits::span`]
};

/// Makes a held lock last `ttl` from now. Error: `lease_lost` when holder and fence do not name the
/// live lease.
struct renew_lock {
  using result = lease_renewal;             ///< what is left of it now
  static constexpr bool repeatable = true;  ///< asked again, it counts from then

  std::string_view key;     ///< of the lock
  std::string_view holder;  ///< who has it
  std::uint64_t fence = 0;  ///< its number, from the grant
  duration ttl{};           ///< from this step on, (0, `limits::span`]
};

/// Ends the lease of this holder and fence. With fence 0: whatever this holder has on the key.
struct release_lock {
  using result = lease_release;             ///< what ended in this step
  static constexpr bool repeatable = true;  ///< what is over stays over: a repeat frees nothing,
                                            ///< and says so

  std::string_view key;     ///< of the lock
  std::string_view holder;  ///< who has it
  std::uint64_t fence = 0;  ///< its number, from the grant; 0: whatever the holder has
};

/// Says who holds the lock now.
struct inspect_lock {
  using result = lock_info;                 ///< who has it
  static constexpr bool repeatable = true;  ///< it changes nothing

  std::string_view key;  ///< of the lock
};

}  // namespace command
}  // namespace weir

#endif
