// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_STORE_MEMORY_LOCKS_HPP
#define WEIR_STORE_MEMORY_LOCKS_HPP

#include "weir/command/locks.hpp"
#include "weir/error.hpp"
#include "weir/rule/locks.hpp"
#include "weir/store/memory/lease_table.hpp"
#include "weir/store/memory/options.hpp"
#include "weir/time.hpp"

#include <cstddef>

namespace weir::detail {

/// One key's lock, as the table keeps it.
class stored_lock {
 public:
  struct deferred {};

  [[nodiscard]] std::size_t size() const noexcept { return state_.held() ? 1 : 0; }
  [[nodiscard]] time_point soonest() const noexcept { return state_.expiry(); }
  void expire(time_point now, deferred&) noexcept { rule::expire(state_, now); }
  void settle(deferred&) noexcept {}

  [[nodiscard]] rule::lock_state& state() noexcept { return state_; }

 private:
  rule::lock_state state_;
};

/// The locks of a memory store. Thread-safe; input is validated by the store; the time comes in,
/// and may run backwards.
template <class>
class basic_memory_locks {
 public:
  explicit basic_memory_locks(memory_options const& options) : locks_{options.max_locks} {}

  /// Commands are executed at such times, too: what is live then is not tidied at others.
  void told(time_point t) noexcept { locks_.told(t); }

  /// Error: `store_full`, and nothing has changed.
  result<lock_grant> apply(command::acquire_lock const& c, time_point now) {
    return locks_.update(c.key, now, [&](stored_lock& lock, auto& scope) {
      return rule::apply(lock.state(), c, now, scope.last_fence(), [&] { return scope.reserve(); });
    });
  }

  /// Error: `lease_lost`.
  result<lease_renewal> apply(command::renew_lock const& c, time_point now) {
    return on_existing<result<lease_renewal>>(c, now, make_error_code(errc::lease_lost));
  }

  result<lease_release> apply(command::release_lock const& c, time_point now) {
    return on_existing<result<lease_release>>(c, now, lease_release{});
  }

  result<lock_info> apply(command::inspect_lock const& c, time_point now) {
    return on_existing<result<lock_info>>(c, now, lock_info{});
  }

 protected:
  /// For tests and benchmarks: what is really in memory.
  [[nodiscard]] lease_table<stored_lock>& locks() noexcept { return locks_; }

 private:
  template <class Result, class Command>
  Result on_existing(Command const& c, time_point now, Result const& absent) {
    return locks_.visit(c.key, now, [&](stored_lock* lock, auto&) -> Result {
      if (lock == nullptr) return absent;
      return rule::apply(lock->state(), c, now);
    });
  }

  lease_table<stored_lock> locks_;
};

using memory_locks = basic_memory_locks<void>;

}  // namespace weir::detail

#endif
