// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_RULE_LOCKS_HPP
#define WEIR_RULE_LOCKS_HPP

#include "weir/command/locks.hpp"
#include "weir/error.hpp"
#include "weir/rule/fence.hpp"
#include "weir/time.hpp"

#include <cstdint>
#include <string>
#include <utility>

/// @file
/// What the lock commands do: each function is one command's step on the state of its key, a
/// function of state, command and time alone. The state passed in is the state afterwards; a step
/// that fails or throws leaves it as it was, less what was over by then.
///
/// Time may run backwards between steps. A lease that was over in one step is over for good.

namespace weir::rule {

/// The state of one key: who has it, if anyone.
class lock_state {
 public:
  /// Nobody has it.
  lock_state() = default;

  /// Has anybody the lock, as of the last step?
  [[nodiscard]] bool held() const noexcept { return fence_ != 0; }
  /// Held: by whom.
  [[nodiscard]] std::string const& holder() const noexcept { return holder_; }
  /// Held: the lease's number.
  [[nodiscard]] std::uint64_t fence() const noexcept { return fence_; }
  /// Held: when the lease is over.
  [[nodiscard]] time_point expiry() const noexcept { return expiry_; }

  /// Gives it to a holder, under a fence that is not 0.
  void take(std::string holder, std::uint64_t fence, time_point expiry) noexcept {
    holder_ = std::move(holder);
    fence_ = fence;
    expiry_ = expiry;
  }
  /// Moves the end of the lease.
  void prolong(time_point expiry) noexcept { expiry_ = expiry; }
  /// Takes it from whoever has it.
  void free() noexcept { fence_ = 0; }

 private:
  std::string holder_;
  std::uint64_t fence_ = 0;  // of a lease: never 0
  time_point expiry_{};
};

/// Ends the lease if it is over at `now`. Every step begins with this.
inline void expire(lock_state& lock, time_point now) noexcept {
  if (lock.held() && now >= lock.expiry()) lock.free();
}

namespace detail {

/// Do holder and fence (0: any) name the lease?
[[nodiscard]] inline bool names(lock_state const& lock, std::string_view holder,
                                std::uint64_t fence) noexcept {
  return lock.held() && lock.holder() == holder && (fence == 0 || lock.fence() == fence);
}

}  // namespace detail

/// The step of `acquire_lock`.
///
/// @param lock       the state of the key; afterwards, too
/// @param c          the command, valid
/// @param now        the store's time
/// @param last_fence the last fence of the key, or of any set of keys that it belongs to; advanced
///        by a grant
/// @param room       asked before a lock is taken: is there room for one more? If not, the result
///        is `errc::store_full` and nothing has changed.
template <class Room>
result<lock_grant> apply(lock_state& lock, command::acquire_lock const& c, time_point now,
                         std::uint64_t& last_fence, Room&& room) {
  expire(lock, now);
  lock_grant grant;
  if (lock.held() && lock.holder() != c.holder) {
    grant.expires_in = saturating_sub(lock.expiry(), now);
    grant.holder = lock.holder();
    return grant;
  }
  if (!lock.held()) {
    if (!room()) return make_error_code(errc::store_full);
    auto const fence = next_fence(last_fence, now);
    lock.take(std::string{c.holder}, fence, saturating_add(now, c.ttl));
    last_fence = fence;
  }
  grant.granted = true;
  grant.fence = lock.fence();
  grant.expires_in = saturating_sub(lock.expiry(), now);
  return grant;
}

/// The same, with room for any number of locks.
inline result<lock_grant> apply(lock_state& lock, command::acquire_lock const& c, time_point now,
                                std::uint64_t& last_fence) {
  return apply(lock, c, now, last_fence, [] { return true; });
}

/// The lease lasts `ttl` from now, also where that is less than what was left of it.
inline result<lease_renewal> apply(lock_state& lock, command::renew_lock const& c,
                                   time_point now) noexcept {
  expire(lock, now);
  if (c.fence == 0 || !detail::names(lock, c.holder, c.fence)) {
    return make_error_code(errc::lease_lost);
  }
  lock.prolong(saturating_add(now, c.ttl));
  return lease_renewal{saturating_sub(lock.expiry(), now)};
}

/// The step of `release_lock`; fence 0: whatever the holder has.
inline lease_release apply(lock_state& lock, command::release_lock const& c,
                           time_point now) noexcept {
  expire(lock, now);
  lease_release released;
  if (detail::names(lock, c.holder, c.fence)) {
    lock.free();
    released.freed = true;
  }
  return released;
}

/// The answer to `inspect_lock`.
inline lock_info apply(lock_state& lock, command::inspect_lock const&, time_point now) {
  expire(lock, now);
  lock_info info;
  if (!lock.held()) return info;
  info.held = true;
  info.holder = lock.holder();
  info.fence = lock.fence();
  info.expires_in = saturating_sub(lock.expiry(), now);
  return info;
}

}  // namespace weir::rule

#endif
