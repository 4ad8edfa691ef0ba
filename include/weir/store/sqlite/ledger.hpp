// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_STORE_SQLITE_LEDGER_HPP
#define WEIR_STORE_SQLITE_LEDGER_HPP

#include "weir/store/sqlite/connection.hpp"
#include "weir/time.hpp"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <optional>
#include <utility>

namespace weir::detail {

namespace sql {

inline constexpr char read_state[] =
    "SELECT shards, time, fence, epoch, forgotten, permits, locks, buckets, jobs, idle, idlings "
    "FROM weir_state";
inline constexpr char write_state[] =
    "UPDATE weir_state SET time = ?, fence = ?, epoch = ?, forgotten = ?, permits = ?, locks = ?, "
    "buckets = ?, jobs = ?, idle = ?, idlings = ?";

}  // namespace sql

/// What the file says of itself as a whole: its row of weir_state. Within a transaction it is kept
/// here, and is written back with the commit.
struct sqlite_ledger {
  std::uint32_t shards = 1;
  time_point time{};        ///< the latest at which anything was changed
  std::uint64_t fence = 0;  ///< the last one: of every key, queue and job
  std::optional<time_point> epoch;
  duration forgotten = duration::min();
  std::uint64_t permits = 0;
  std::uint64_t locks = 0;
  std::uint64_t buckets = 0;
  std::uint64_t jobs = 0;
  std::uint64_t idle = 0;
  std::int64_t idlings = 0;

  friend bool operator==(sqlite_ledger const&, sqlite_ledger const&) = default;

  [[nodiscard]] static sqlite_ledger read(sqlite_connection& db) {
    sqlite_query q{db, sql::read_state};
    if (!q.next()) throw sqlite_failure{SQLITE_CORRUPT};
    sqlite_ledger out;
    out.shards = q.as<std::uint32_t>(0);
    out.time = q.time(1);
    out.fence = q.as<std::uint64_t>(2);
    if (!q.null(3)) out.epoch = q.time(3);
    out.forgotten = duration{q.integer(4)};
    out.permits = q.as<std::uint64_t>(5);
    out.locks = q.as<std::uint64_t>(6);
    out.buckets = q.as<std::uint64_t>(7);
    out.jobs = q.as<std::uint64_t>(8);
    out.idle = q.as<std::uint64_t>(9);
    out.idlings = q.integer(10);
    return out;
  }

  void write(sqlite_connection& db) const {
    sqlite_run(db, sql::write_state, time, fence, epoch, forgotten, permits, locks, buckets, jobs,
               idle, idlings);
  }
};

/// The file's time, as one process sees it: the date when it began, and what has passed by a steady
/// clock since, but never before the latest time at which anybody changed the file.
///
/// So the file's time never runs backwards, whichever process writes (F52). Nor does it stand still
/// after the date was set back, as it would if the date were merely held at that latest time: a
/// process whose time is behind moves it forward once and goes on from there. It may then be ahead
/// of the date, which nobody sees: commands carry durations.
class sqlite_clock {
 public:
  /// @param passing the date at construction plus what has passed since
  explicit sqlite_clock(std::function<time_point()> passing) : passing_{std::move(passing)} {}

  /// @param latest the latest time in the file
  [[nodiscard]] time_point now(time_point latest) {
    auto const t = saturating_add(passing_(), ahead_);
    if (t >= latest) return t;
    ahead_ += saturating_sub(latest, t);
    return latest;
  }

 private:
  std::function<time_point()> passing_;
  duration ahead_{};
};

/// Makes a `sqlite_clock` of a clock policy.
template <class Clock>
[[nodiscard]] sqlite_clock make_sqlite_clock(Clock const& clock) {
  return sqlite_clock{[clock, born = clock.system_now(), started = clock.steady_now()] {
    return saturating_add(born, clock.steady_now() - started);
  }};
}

}  // namespace weir::detail

#endif
