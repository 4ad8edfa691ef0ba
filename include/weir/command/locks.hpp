// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_COMMAND_LOCKS_HPP
#define WEIR_COMMAND_LOCKS_HPP

#include "weir/command/permits.hpp"
#include "weir/time.hpp"

#include <cstdint>
#include <string>
#include <string_view>

// A lock is a lease that at most one holder has. The unique keys of queued jobs are not these: they
// live in the job's own record (command/jobs.hpp), so that no lock outlives its job.
namespace weir {

/// The answer to `command::acquire_lock`.
struct lock_grant {
  bool granted = false;
  std::uint64_t fence = 0;  ///< granted: the lease's number; refused: 0
  duration expires_in{};    ///< granted: what is left of the lease; refused: of the other holder's
  std::string holder;       ///< refused: who has it
};

/// The answer to `command::inspect_lock`.
struct lock_info {
  bool held = false;
  std::string holder;
  std::uint64_t fence = 0;
  duration expires_in{};
};

namespace command {

/// Takes the lock `key` for `ttl` if nobody has it. A holder that has it already is given the same
/// one, unchanged.
struct acquire_lock {
  using result = lock_grant;
  static constexpr bool repeatable = true;

  std::string_view key;
  std::string_view holder;
  duration ttl{};
};

/// Makes a held lock last `ttl` from now. Error: `lease_lost` when holder and fence do not name the
/// live lease.
struct renew_lock {
  using result = lease_renewal;
  static constexpr bool repeatable = true;

  std::string_view key;
  std::string_view holder;
  std::uint64_t fence = 0;
  duration ttl{};
};

/// Ends the lease of this holder and fence. With fence 0: whatever this holder has on the key.
struct release_lock {
  using result = lease_release;
  static constexpr bool repeatable = true;

  std::string_view key;
  std::string_view holder;
  std::uint64_t fence = 0;
};

/// Says who holds the lock now.
struct inspect_lock {
  using result = lock_info;
  static constexpr bool repeatable = true;

  std::string_view key;
};

}  // namespace command
}  // namespace weir

#endif
