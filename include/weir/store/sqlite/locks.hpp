// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_STORE_SQLITE_LOCKS_HPP
#define WEIR_STORE_SQLITE_LOCKS_HPP

#include "weir/command/locks.hpp"
#include "weir/error.hpp"
#include "weir/limits.hpp"
#include "weir/rule/locks.hpp"
#include "weir/store/sqlite/connection.hpp"
#include "weir/store/sqlite/scope.hpp"
#include "weir/time.hpp"

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace weir::detail {

namespace sql {

inline constexpr char read_lock[] = "SELECT holder, fence, until FROM weir_locks WHERE key = ?";
inline constexpr char insert_lock[] =
    "INSERT INTO weir_locks (key, holder, fence, until) VALUES (?, ?, ?, ?)";
inline constexpr char update_lock[] =
    "UPDATE weir_locks SET holder = ?, fence = ?, until = ? WHERE key = ?";
inline constexpr char delete_lock[] = "DELETE FROM weir_locks WHERE key IS ?";
inline constexpr char ended_lock[] =
    "SELECT key FROM weir_locks INDEXED BY weir_locks_until WHERE until <= ? "
    "ORDER BY until LIMIT 1";
inline constexpr char soonest_lock[] =
    "SELECT CAST(until AS INTEGER) FROM weir_locks INDEXED BY weir_locks_until "
    "WHERE until >= -9223372036854775807 AND typeof(until) IN ('integer', 'real') "
    "ORDER BY until LIMIT 1";
inline constexpr char delete_locks[] = "DELETE FROM weir_locks";

}  // namespace sql

/// The locks in the file: a row for each that is held. The rule decides on it.
class sqlite_locks {
 public:
  explicit sqlite_locks(sqlite_scope& in) noexcept : in_{in} {}

  /// Error: `store_full`, and nothing has changed.
  result<lock_grant> apply(command::acquire_lock const& c, time_point now) {
    return act(c, now, [&](rule::lock_state& lock, bool stored) {
      auto const room_for = [&] { return stored || room(now); };
      return rule::apply(lock, c, now, in_.ledger.fence, room_for);
    });
  }

  /// Error: `lease_lost`.
  result<lease_renewal> apply(command::renew_lock const& c, time_point now) {
    return act(c, now, [&](rule::lock_state& lock, bool) { return rule::apply(lock, c, now); });
  }

  result<lease_release> apply(command::release_lock const& c, time_point now) {
    return act(c, now, [&](rule::lock_state& lock, bool) { return rule::apply(lock, c, now); });
  }

  result<lock_info> apply(command::inspect_lock const& c, time_point now) {
    auto lock = read(c.key);
    return rule::apply(lock, c, now);
  }

  /// Removes some of what is over. Returns how many there were.
  std::size_t reap(time_point now, std::size_t most) {
    std::size_t n = 0;
    while (n != most && soonest_.over(now)) {
      auto const ended = sqlite_first<1>(in_.db, sql::ended_lock, now);
      if (!ended) soonest_.learn(in_.db, sql::soonest_lock);
      if (!ended || !erase((*ended)[0])) break;
      ++n;
    }
    return n;
  }

  /// Forgets what was read.
  void forget() noexcept { soonest_.forget(); }

  /// Ends every lock.
  void end_all() {
    sqlite_run(in_.db, sql::delete_locks);
    in_.ledger.locks = 0;
  }

 private:
  template <class C, class Step>
  result<typename C::result> act(C const& c, time_point now, Step&& step) {
    auto lock = read(c.key);
    bool const stored = lock.held();
    auto const fence = lock.fence();
    auto const until = lock.expiry();
    rule::expire(lock, now);
    result<typename C::result> answer = step(lock, stored);
    if (lock.held()) soonest_.add(lock.expiry());
    if (!lock.held()) {
      if (stored) erase(c.key);
    } else if (!stored) {
      sqlite_run(in_.db, sql::insert_lock, c.key, lock.holder(), lock.fence(), lock.expiry());
      ++in_.ledger.locks;
    } else if (lock.fence() != fence || lock.expiry() != until) {
      sqlite_run(in_.db, sql::update_lock, lock.holder(), lock.fence(), lock.expiry(), c.key);
    }
    return answer;
  }

  [[nodiscard]] rule::lock_state read(std::string_view key) {
    rule::lock_state lock;
    sqlite_query q{in_.db, sql::read_lock, key};
    if (q.next()) {
      lock.take(q.text(0, 1, limits::holder_size), q.within<std::uint64_t>(1, 1, sqlite_most),
                q.time(2));
    }
    return lock;
  }

  template <class Key>
  bool erase(Key const& key) {
    sqlite_run(in_.db, sql::delete_lock, key);
    auto const n = static_cast<std::uint64_t>(in_.db.changes());
    sqlite_decrease(in_.ledger.locks, n);
    return n != 0;
  }

  [[nodiscard]] bool room(time_point now) {
    constexpr std::size_t page = 1000;
    while (in_.ledger.locks >= in_.options.max_locks) {
      if (reap(now, page) == 0) return false;
    }
    return true;
  }

  sqlite_scope& in_;
  sqlite_soonest<time_point> soonest_;
};

}  // namespace weir::detail

#endif
