// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_STORE_SQLITE_LEDGER_HPP
#define WEIR_STORE_SQLITE_LEDGER_HPP

#include "weir/limits.hpp"
#include "weir/store/sqlite/connection.hpp"
#include "weir/store/sqlite/host.hpp"
#include "weir/time.hpp"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

namespace weir::detail {

namespace sql {

inline constexpr char read_state[] =
    "SELECT shards, time, fence, epoch, forgotten, permits, locks, buckets, jobs, idle, idlings, "
    "cancels, boot_id, boot_offset FROM weir_state";
inline constexpr char write_state[] =
    "UPDATE weir_state SET time = ?, fence = ?, epoch = ?, forgotten = ?, permits = ?, locks = ?, "
    "buckets = ?, jobs = ?, idle = ?, idlings = ?, cancels = ?";
inline constexpr char write_boot[] = "UPDATE weir_state SET boot_id = ?, boot_offset = ?";

}  // namespace sql

/// What the file says of itself as a whole: its row of weir_state. Within a transaction it is kept
/// here, and is written back with the commit.
struct sqlite_ledger {
  std::uint32_t shards = 1;
  time_point time{};        ///< the latest at which anything was changed, or a little before
  std::uint64_t fence = 0;  ///< the last one: of every key, queue and job
  std::optional<time_point> epoch;
  duration forgotten = duration::min();
  std::uint64_t permits = 0;
  std::uint64_t locks = 0;
  std::uint64_t buckets = 0;
  std::uint64_t jobs = 0;
  std::uint64_t idle = 0;
  std::int64_t idlings = 0;
  std::uint64_t cancels = 0;            ///< of jobs that somebody had a lease of
  std::string boot_id;                  ///< of the latest boot of its host; empty: unknown
  std::optional<duration> boot_offset;  ///< its time less the boot clock; empty: not used yet

  friend bool operator==(sqlite_ledger const&, sqlite_ledger const&) = default;

  [[nodiscard]] static sqlite_ledger read(sqlite_connection& db) {
    sqlite_query q{db, sql::read_state};
    if (!q.next()) throw sqlite_failure{SQLITE_CORRUPT};
    sqlite_ledger out;
    out.shards = q.within<std::uint32_t>(0, 1, 1024);
    out.time = q.time(1);
    out.fence = q.count(2);
    out.epoch = q.time_or_null(3);
    out.forgotten = duration{q.integer(4)};
    out.permits = q.count(5);
    out.locks = q.count(6);
    out.buckets = q.count(7);
    out.jobs = q.count(8);
    out.idle = q.count(9);
    out.idlings = q.within<std::int64_t>(10, 0, sqlite_most);
    out.cancels = q.count(11);
    out.boot_id = q.text(12, 0, limits::key_size);
    if (!q.null(13)) out.boot_offset = duration{q.integer(13)};
    return out;
  }

  void write(sqlite_connection& db) const {
    sqlite_run(db, sql::write_state, time, fence, epoch, forgotten, permits, locks, buckets, jobs,
               idle, idlings, cancels);
  }
};

/// The file's time (F63).
///
/// The first transaction after a boot of the host begins it at the date or at the latest time in
/// the file, whichever is later. From then on it is the boot clock plus an offset, which stands in
/// the file with the boot's id: so all processes of the host have one time, a date that is set
/// changes nothing, and suspend counts. It never runs backwards from the latest time at which
/// anybody changed the file (F52), and may be ahead of the date or behind it, which nobody sees:
/// commands carry durations. A commit that has nothing else to say of the file writes the time only
/// when that has gone on by a `grain`, since it costs a page more: so after a boot it goes on from
/// a grain later.
///
/// If the boot clock is more than a second behind the file, the offset is wrong (it was damaged, or
/// the host was started anew and has no ids), and time begins again. Without ids the leases of
/// before a boot last until they expire, and what the host was off does not count if it has been
/// running for longer than before.
class sqlite_clock {
 public:
  static constexpr duration grain = std::chrono::milliseconds{10};

  sqlite_clock(sqlite_host host) : host_{std::move(host)} {}

  [[nodiscard]] time_point date() const { return std::min(host_.date(), latest); }

  /// Has the file's time begun in this boot?
  [[nodiscard]] bool runs(sqlite_ledger const& l) const {
    constexpr duration slack = std::chrono::seconds{1};  // coarse clocks are a little behind others
    return l.boot_offset && !rebooted(l) && saturating_add(passed(l), slack) >= l.time;
  }

  /// Was the host started since the file's time began?
  [[nodiscard]] bool rebooted(sqlite_ledger const& l) const noexcept {
    return l.boot_offset && !l.boot_id.empty() && !host_.boot_id.empty() &&
           l.boot_id != host_.boot_id;
  }

  /// Begins the file's time in this boot.
  void begin(sqlite_ledger& l) const {
    auto const used_until = l.boot_offset ? saturating_add(l.time, grain) : l.time;
    l.time = std::max(date(), used_until);
    l.boot_id = host_.boot_id;
    l.boot_offset = saturating_sub(l.time, time_point{host_.passing().time_since_epoch()});
  }

  /// Throws `sqlite_failure` if the file says a time that cannot be.
  [[nodiscard]] time_point now(sqlite_ledger const& l) const {
    auto const t = std::max(passed(l), l.time);
    if (t > latest) throw sqlite_failure{SQLITE_CORRUPT};
    return t;
  }

 private:
  /// Leaves room for every lease and every delay.
  static constexpr time_point latest = time_point::max() - 2 * limits::span;

  [[nodiscard]] time_point passed(sqlite_ledger const& l) const {
    return saturating_add(time_point{host_.passing().time_since_epoch()}, *l.boot_offset);
  }

  sqlite_host host_;
};

}  // namespace weir::detail

#endif
