// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_STORE_SQLITE_JOB_KEYS_HPP
#define WEIR_STORE_SQLITE_JOB_KEYS_HPP

#include "weir/job.hpp"
#include "weir/store/sqlite/connection.hpp"
#include "weir/store/sqlite/queue_rows.hpp"
#include "weir/store/sqlite/scope.hpp"
#include "weir/time.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace weir::detail {

namespace sql {

inline constexpr char read_key[] =
    "SELECT owner, until FROM weir_keys WHERE queue = ? AND run = ? AND key = ?";
inline constexpr char write_key[] =
    "INSERT INTO weir_keys (queue, run, key, owner, until) VALUES (?, ?, ?, ?, ?) "
    "ON CONFLICT DO UPDATE SET owner = excluded.owner, until = excluded.until";
inline constexpr char delete_key[] =
    "DELETE FROM weir_keys WHERE queue IS ? AND run IS ? AND key IS ?";
inline constexpr char delete_keys_of_job[] =
    "DELETE FROM weir_keys WHERE queue = ? AND run IN (0, 1) AND key = ? AND owner = ? "
    "AND until IS NULL";
inline constexpr char ended_key[] =
    "SELECT queue, run, key FROM weir_keys INDEXED BY weir_keys_until WHERE until <= ? "
    "ORDER BY until LIMIT 1";
inline constexpr char soonest_key[] =
    "SELECT CAST(until AS INTEGER) FROM weir_keys INDEXED BY weir_keys_until "
    "WHERE until >= -9223372036854775807 AND typeof(until) IN ('integer', 'real') "
    "ORDER BY until LIMIT 1";

}  // namespace sql

/// A unique key that is taken.
struct sqlite_key {
  job_id owner;
  std::optional<time_point> until;  ///< empty: its job's end frees it
};

/// The unique keys of jobs: enqueue keys, and run locks. One that time frees counts as a record of
/// its own, since it may be all that is left of its job (R8).
class sqlite_job_keys {
 public:
  explicit sqlite_job_keys(sqlite_scope& in) noexcept : in_{in} {}

  /// Who has the enqueue key now.
  [[nodiscard]] std::optional<sqlite_key> find(sqlite_queue const& q, std::string_view key,
                                               time_point now) {
    auto found = read(q, enqueue_key, key);
    if (found && found->until && *found->until <= now) found.reset();
    return found;
  }

  /// Gives the enqueue key to a job, whoever had it. `time_point::max()`: until the job's end.
  void hold(sqlite_queue& q, std::string_view key, job_id const& owner, time_point until) {
    let_expire(q, read(q, enqueue_key, key));
    std::optional<time_point> end;
    if (until != time_point::max()) {
      end = until;
      soonest_.add(until);
      ++q.keys;
      ++in_.ledger.jobs;
    }
    sqlite_run(in_.db, sql::write_key, q.number, enqueue_key, key, owner, end);
  }

  /// Frees the enqueue key, if this job has it.
  void free(sqlite_queue& q, std::string_view key, job_id const& owner) {
    auto const found = owned(q, enqueue_key, key, owner);
    if (!found) return;
    let_expire(q, found);
    erase(q, enqueue_key, key);
  }

  /// The job that took the run lock last, which is held as long as that job is leased. A lock that
  /// cannot be read keeps nobody from running.
  [[nodiscard]] std::optional<job_id> runner(sqlite_queue const& q, std::string_view key) {
    try {
      auto const found = read(q, run_lock, key);
      if (found) return found->owner;
    } catch (sqlite_damage const&) {
    }
    return std::nullopt;
  }

  void take_run(sqlite_queue const& q, std::string_view key, job_id const& owner) {
    sqlite_run(in_.db, sql::write_key, q.number, run_lock, key, owner, std::nullopt);
  }

  void free_run(sqlite_queue const& q, std::string_view key, job_id const& owner) {
    if (owned(q, run_lock, key, owner)) erase(q, run_lock, key);
  }

  /// Frees what a job has of this key, but for one that only time frees.
  void free_all(sqlite_queue const& q, std::string_view key, job_id const& owner) {
    sqlite_run(in_.db, sql::delete_keys_of_job, q.number, key, owner);
  }

  /// Removes some of the keys whose time is over. Returns how many there were.
  std::size_t reap(sqlite_queues& queues, time_point now, std::size_t most) {
    std::size_t n = 0;
    while (n != most && soonest_.over(now)) {
      auto const ended = sqlite_first<3>(in_.db, sql::ended_key, now);
      if (!ended) {
        soonest_.learn(in_.db, sql::soonest_key);
        break;
      }
      auto const& [number, run, key] = *ended;
      sqlite_run(in_.db, sql::delete_key, number, run, key);
      if (in_.db.changes() == 0) break;
      ++n;
      sqlite_decrease(in_.ledger.jobs);
      if (auto* const q = queues.by_number(number)) {
        sqlite_decrease(q->keys);
        queues.settle(*q);
      }
    }
    return n;
  }

  /// Forgets what was read.
  void forget() noexcept { soonest_.forget(); }

 private:
  static constexpr int enqueue_key = 0;
  static constexpr int run_lock = 1;

  [[nodiscard]] std::optional<sqlite_key> read(sqlite_queue const& queue, int kind,
                                               std::string_view key) {
    sqlite_query q{in_.db, sql::read_key, queue.number, kind, key};
    if (!q.next()) return std::nullopt;
    sqlite_key out{q.id(0), std::nullopt};
    out.until = q.time_or_null(1);
    return out;
  }

  /// The key, if this job has it. One that cannot be read does not keep its job from ending.
  [[nodiscard]] std::optional<sqlite_key> owned(sqlite_queue const& q, int kind,
                                                std::string_view key, job_id const& owner) {
    try {
      auto found = read(q, kind, key);
      if (found && found->owner != owner) found.reset();
      return found;
    } catch (sqlite_damage const&) {
      return std::nullopt;
    }
  }

  void let_expire(sqlite_queue& q, std::optional<sqlite_key> const& key) noexcept {
    if (!key || !key->until) return;
    sqlite_decrease(q.keys);
    sqlite_decrease(in_.ledger.jobs);
  }

  void erase(sqlite_queue const& q, int kind, std::string_view key) {
    sqlite_run(in_.db, sql::delete_key, q.number, kind, key);
  }

  sqlite_scope& in_;
  sqlite_soonest<time_point> soonest_;
};

}  // namespace weir::detail

#endif
