// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_STORE_SQLITE_QUEUE_ROWS_HPP
#define WEIR_STORE_SQLITE_QUEUE_ROWS_HPP

#include "weir/detail/string_hash.hpp"
#include "weir/limits.hpp"
#include "weir/rule/job_fields.hpp"
#include "weir/rule/shards.hpp"
#include "weir/store/sqlite/connection.hpp"
#include "weir/store/sqlite/scope.hpp"
#include "weir/time.hpp"

#include <boost/unordered/unordered_flat_map.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace weir::detail {

namespace sql {

inline constexpr char read_queue[] =
    "SELECT queue, due, pointer, snoozed, paused, idle, lease_holder, lease_fence, lease_until, "
    "enqueued, completed, cancelled, purged, waiting, dead, kept, keys, deaths, name, shard "
    "FROM weir_queues WHERE shard = ? AND name = ?";
inline constexpr char read_queue_by_number[] =
    "SELECT queue, due, pointer, snoozed, paused, idle, lease_holder, lease_fence, lease_until, "
    "enqueued, completed, cancelled, purged, waiting, dead, kept, keys, deaths, name, shard "
    "FROM weir_queues WHERE queue IS ?";
inline constexpr char count_queue[] =
    "SELECT count(vesting), count(death), count(kept), coalesce(max(death), 0) FROM weir_jobs "
    "WHERE queue = ?";
inline constexpr char count_queue_keys[] = "SELECT count(until) FROM weir_keys WHERE queue = ?";
inline constexpr char insert_queue[] =
    "INSERT INTO weir_queues (shard, name, snoozed, paused, lease_holder, lease_fence, "
    "lease_until, enqueued, completed, cancelled, purged, waiting, dead, kept, keys, deaths) "
    "VALUES (?, ?, ?, 0, x'', 0, ?, 0, 0, 0, 0, 0, 0, 0, 0, 0)";
inline constexpr char update_queue[] =
    "UPDATE weir_queues SET pointer = ?, snoozed = ?, paused = ?, lease_holder = ?, "
    "lease_fence = ?, lease_until = ?, enqueued = ?, completed = ?, cancelled = ?, purged = ?, "
    "waiting = ?, dead = ?, kept = ?, keys = ?, deaths = ? WHERE queue = ?";
inline constexpr char replace_queue[] =
    "INSERT OR REPLACE INTO weir_queues (pointer, snoozed, paused, lease_holder, lease_fence, "
    "lease_until, enqueued, completed, cancelled, purged, waiting, dead, kept, keys, deaths, "
    "queue, shard, name, due, idle) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, "
    "?, ?)";
inline constexpr char update_queue_whole[] =
    "UPDATE weir_queues SET pointer = ?, snoozed = ?, paused = ?, lease_holder = ?, "
    "lease_fence = ?, lease_until = ?, enqueued = ?, completed = ?, cancelled = ?, purged = ?, "
    "waiting = ?, dead = ?, kept = ?, keys = ?, deaths = ?, due = ?, idle = ? WHERE queue = ?";
inline constexpr char delete_queue[] = "DELETE FROM weir_queues WHERE queue = ?";
inline constexpr char end_queue_leases[] =
    "UPDATE weir_queues SET lease_until = ?1 WHERE lease_until > ?1";
inline constexpr char idlest_queues[] =
    "SELECT queue FROM weir_queues INDEXED BY weir_queues_idle WHERE idle IS NOT NULL "
    "ORDER BY idle LIMIT ?";

}  // namespace sql

/// What a queue's row says. What changes often is in no index.
struct sqlite_queue_fields : rule::queue_fields {
  std::uint64_t waiting = 0;  ///< pending or leased
  std::uint64_t dead = 0;
  std::uint64_t kept = 0;  ///< records of completed and cancelled jobs
  std::uint64_t keys = 0;  ///< that are held until_expired

  friend bool operator==(sqlite_queue_fields const&, sqlite_queue_fields const&) = default;
};

struct sqlite_queue : sqlite_queue_fields {
  std::string name;
  std::int64_t number = 0;  ///< by which the rows of its jobs name it
  std::uint32_t shard = 0;
  std::optional<std::int64_t> idle;  ///< jobless since that idling

  /// Has it neither a record nor a key, so that only its counters and holds are left?
  [[nodiscard]] bool jobless() const noexcept {
    return waiting == 0 && dead == 0 && kept == 0 && keys == 0;
  }

  /// The number of the scan that finds it, and where.
  [[nodiscard]] std::uint32_t scan() const noexcept {
    return rule::scan_number(shard, rule::holds_schedules(name));
  }
  [[nodiscard]] std::optional<time_point> due() const noexcept {
    if (paused || !pointer) return std::nullopt;
    return rule::scanned_from(*pointer, snoozed_until);
  }

  bool in_use = false;  ///< since the last flush

  // What the file has. Empty: nothing that can be read.
  std::optional<sqlite_queue_fields> stored;
  std::optional<time_point> stored_due;
  std::optional<std::int64_t> stored_idle;
};

/// The queues' rows. Those that a transaction has to do with are read once, and written once, by
/// `flush`. What was read is kept as long as nobody else changes the file.
class sqlite_queues {
 public:
  explicit sqlite_queues(sqlite_scope& in) noexcept : in_{in} {}

  [[nodiscard]] std::uint32_t shard_of(std::string_view name) const noexcept {
    return rule::shard_of(name, in_.ledger.shards);
  }

  /// Null: there is none by that name. Valid until `forget`, `trim` or `erase`.
  [[nodiscard]] sqlite_queue* find(std::string_view name) {
    if (auto const known = queues_.find(name); known != queues_.end()) return &use(*known->second);
    sqlite_query q{in_.db, sql::read_queue, shard_of(name), name};
    return q.next() ? &keep(read(q)) : nullptr;
  }

  /// Null: there is none, or it has no name that could be asked for.
  [[nodiscard]] sqlite_queue* by_number(std::int64_t number) {
    if (auto const known = numbers_.find(number); known != numbers_.end())
      return &use(*known->second);
    sqlite_query q{in_.db, sql::read_queue_by_number, number};
    if (!q.next() || !has_name(q)) return nullptr;
    return &keep(read(q));
  }
  [[nodiscard]] sqlite_queue* by_number(sqlite_value const& number) {
    if (number.type() != SQLITE_INTEGER) return nullptr;
    return by_number(number.integer());
  }

  sqlite_queue& make(std::string_view name) {
    auto made = std::make_unique<sqlite_queue>();
    made->name = name;
    made->shard = shard_of(name);
    sqlite_run(in_.db, sql::insert_queue, made->shard, name, made->snoozed_until,
               made->lease_expiry);
    made->number = in_.db.last_rowid();
    made->stored = *made;
    auto& q = keep(std::move(made));
    settle(q);
    return q;
  }

  void erase(sqlite_queue& q) {
    erase(q.number);
    if (q.idle) sqlite_decrease(in_.ledger.idle);
    std::erase(used_, &q);
    numbers_.erase(q.number);
    queues_.erase(queues_.find(q.name));
  }

  /// Erases one that `by_number` does not know.
  void erase(std::int64_t number) { sqlite_run(in_.db, sql::delete_queue, number); }

  /// Notes whether the queue has become jobless, or is so no more.
  void settle(sqlite_queue& q) noexcept {
    if (q.jobless() == q.idle.has_value()) return;
    if (q.idle) {
      q.idle.reset();
      sqlite_decrease(in_.ledger.idle);
    } else {
      q.idle = ++in_.ledger.idlings;
      ++in_.ledger.idle;
    }
  }

  /// Puts an idle queue behind all others.
  void refresh(sqlite_queue& q) noexcept { q.idle = ++in_.ledger.idlings; }

  /// Those that have been jobless for the longest, as far as the file knows.
  [[nodiscard]] std::vector<std::int64_t> idlest(int most) {
    std::vector<std::int64_t> out;
    sqlite_query q{in_.db, sql::idlest_queues, most};
    while (q.next()) out.push_back(q.integer(0));
    return out;
  }

  /// Writes what has changed. To be called before weir_queues is asked for anything but a name, and
  /// at the end of the transaction.
  void flush() {
    if (!in_.writes) return;  // nothing has changed but what was mended, which is done again
    for (auto* const q : used_) {
      q->in_use = false;
      if (sqlite_queue_fields const& f = *q; !q->stored) {
        sqlite_run(in_.db, sql::replace_queue, f.pointer, f.snoozed_until, f.paused, f.lease_holder,
                   f.lease_fence, f.lease_expiry, f.enqueued, f.completed, f.cancelled, f.purged,
                   f.waiting, f.dead, f.kept, f.keys, f.deaths, q->number, q->shard, q->name,
                   q->due(), q->idle);
      } else if (q->due() != q->stored_due || q->idle != q->stored_idle) {
        sqlite_run(in_.db, sql::update_queue_whole, f.pointer, f.snoozed_until, f.paused,
                   f.lease_holder, f.lease_fence, f.lease_expiry, f.enqueued, f.completed,
                   f.cancelled, f.purged, f.waiting, f.dead, f.kept, f.keys, f.deaths, q->due(),
                   q->idle, q->number);
      } else if (f != *q->stored) {
        sqlite_run(in_.db, sql::update_queue, f.pointer, f.snoozed_until, f.paused, f.lease_holder,
                   f.lease_fence, f.lease_expiry, f.enqueued, f.completed, f.cancelled, f.purged,
                   f.waiting, f.dead, f.kept, f.keys, f.deaths, q->number);
      }
      q->stored = *q;
      q->stored_due = q->due();
      q->stored_idle = q->idle;
    }
    used_.clear();
  }

  /// Forgets what was read, and what was not flushed.
  void forget() noexcept {
    used_.clear();
    numbers_.clear();
    queues_.clear();
  }

  /// Keeps memory bounded. Not within a step, and only after `flush`.
  void trim() noexcept {
    constexpr std::size_t most = 1024;
    if (queues_.size() > most) forget();
  }

 private:
  bool has_name(sqlite_query const& row) const {
    auto const name = row.anything(18);
    return row.type(18) == SQLITE_BLOB && !name.empty() && name.size() <= limits::key_size &&
           row.type(19) == SQLITE_INTEGER && row.integer(19) == shard_of(name);
  }

  std::unique_ptr<sqlite_queue> read(sqlite_query const& row) {
    auto q = std::make_unique<sqlite_queue>();
    q->number = row.integer(0);
    q->name = row.text(18, 1, limits::key_size);
    try {
      q->stored_due = row.time_or_null(1);
      q->pointer = row.time_or_null(2);
      q->snoozed_until = row.time(3);
      q->paused = row.within<bool>(4, 0, 1);
      if (!row.null(5)) q->stored_idle = q->idle = row.within<std::int64_t>(5, 0, sqlite_most);
      q->lease_holder = row.text(6, 0, limits::holder_size);
      q->lease_fence = row.count(7);
      q->lease_expiry = row.time(8);
      q->enqueued = row.count(9);
      q->completed = row.count(10);
      q->cancelled = row.count(11);
      q->purged = row.count(12);
      q->waiting = row.count(13);
      q->dead = row.count(14);
      q->kept = row.count(15);
      q->keys = row.count(16);
      q->deaths = row.count(17);
      q->stored = *q;
    } catch (sqlite_damage const&) {
      mend(row, *q);
    }
    return q;
  }

  /// Makes a row anew that cannot be read. What there is of jobs and keys is counted; of the rest,
  /// what can be read stays.
  void mend(sqlite_query const& row, sqlite_queue& q) {
    auto const some = [&](int column) -> std::uint64_t {
      if (row.type(column) != SQLITE_INTEGER) return 0;
      return static_cast<std::uint64_t>(
          std::clamp<std::int64_t>(row.integer(column), 0, sqlite_most));
    };
    sqlite_queue_fields made;
    if (row.type(3) == SQLITE_INTEGER) made.snoozed_until = row.time(3);
    made.paused = some(4) != 0;
    made.completed = some(10);
    made.cancelled = some(11);
    made.purged = some(12);
    {
      sqlite_query jobs{in_.db, sql::count_queue, q.number};
      if (jobs.next()) {
        made.waiting = jobs.count(0);
        made.dead = jobs.count(1);
        made.kept = jobs.count(2);
        made.deaths = jobs.type(3) == SQLITE_INTEGER ? jobs.count(3) : some(17);
      }
    }
    {
      sqlite_query keys{in_.db, sql::count_queue_keys, q.number};
      if (keys.next()) made.keys = keys.count(0);
    }
    made.enqueued = made.waiting + made.dead + made.completed + made.cancelled + made.purged;
    if (made.waiting != 0) made.pointer = time_point{};  // early, until a dequeue has seen the jobs
    static_cast<sqlite_queue_fields&>(q) = made;
    q.idle.reset();
    q.stored.reset();
  }

  sqlite_queue& keep(std::unique_ptr<sqlite_queue> q) {
    q->shard = shard_of(q->name);
    auto& kept = *q;
    std::string_view const name = kept.name;
    if (!queues_.emplace(name, std::move(q)).second) throw sqlite_failure{SQLITE_CORRUPT};
    try {
      numbers_.emplace(kept.number, &kept);
    } catch (...) {
      queues_.erase(queues_.find(name));
      throw;
    }
    return use(kept);
  }

  sqlite_queue& use(sqlite_queue& q) {
    if (!q.in_use) used_.push_back(&q);
    q.in_use = true;
    return q;
  }

  sqlite_scope& in_;
  boost::unordered_flat_map<std::string_view, std::unique_ptr<sqlite_queue>, string_hash> queues_;
  boost::unordered_flat_map<std::int64_t, sqlite_queue*> numbers_;
  std::vector<sqlite_queue*> used_;
};

}  // namespace weir::detail

#endif
