// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_STORE_SQLITE_QUEUES_HPP
#define WEIR_STORE_SQLITE_QUEUES_HPP

#include "weir/command/jobs.hpp"
#include "weir/rule/jobs.hpp"
#include "weir/store/sqlite/connection.hpp"
#include "weir/store/sqlite/queue_rows.hpp"
#include "weir/store/sqlite/scope.hpp"
#include "weir/time.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace weir::detail {

namespace sql {

// What the index has may be anything; what is neither a time nor a name is passed over.
inline constexpr char first_due[] =
    "SELECT due FROM weir_queues INDEXED BY weir_queues_due "
    "WHERE scan = ? AND due IS NOT NULL AND typeof(due) = 'integer' AND typeof(name) = 'blob' "
    "AND length(name) BETWEEN 1 AND 1024 ORDER BY due, name LIMIT 1";
inline constexpr char due_between[] =
    "SELECT name, due FROM weir_queues INDEXED BY weir_queues_due "
    "WHERE scan = ? AND due >= ? AND due < ? AND typeof(due) = 'integer' "
    "AND typeof(name) = 'blob' AND length(name) BETWEEN 1 AND 1024 ORDER BY due, name LIMIT ?";
inline constexpr char stale_queues[] =
    "SELECT queue FROM weir_queues INDEXED BY weir_queues_due "
    "WHERE scan = ? AND due < ? AND waiting = 0 ORDER BY due, name LIMIT ?";
inline constexpr char queues_after[] =
    "SELECT name FROM weir_queues WHERE shard = ? AND name > ? AND typeof(name) = 'blob' "
    "AND length(name) BETWEEN 1 AND 1024 ORDER BY name LIMIT ?";

}  // namespace sql

/// The queues of the file, for `rule::job_machine`, which says what each function is for.
///
/// A queue without jobs keeps its counters, its pause or snooze, its lease, and nothing else. Such
/// queues are remembered up to `max_idle_queues`; beyond it the one that has been jobless for the
/// longest is forgotten with its counters, unless it is held or leased. Where only those are left,
/// holding another one is `store_full`. The fence is the file's and is never forgotten.
class sqlite_queue_table {
 public:
  using queue = sqlite_queue;

  explicit sqlite_queue_table(sqlite_scope& in) noexcept : in_{in}, queues_{in} {}

  [[nodiscard]] queue* find_queue(std::string_view name) { return queues_.find(name); }
  [[nodiscard]] queue& make_queue(std::string_view name) { return queues_.make(name); }
  [[nodiscard]] queue* hold(std::string_view name, time_point now) {
    auto* q = queues_.find(name);
    if (q != nullptr && q->outlasts_jobs(now)) return q;
    while (in_.ledger.idle >= in_.options.max_idle_queues) {
      if (!forget_one(now)) return nullptr;
    }
    q = queues_.find(name);  // it may have been forgotten
    return q != nullptr ? q : &queues_.make(name);
  }

  /// Whoever waits for jobs is told if the step makes the queue due earlier.
  template <class Step>
  auto within(queue& q, time_point now, Step&& step) {
    auto const before = q.due();
    auto answer = step(q);
    auto const due = q.due();
    if (in_.events.queues_watched && due && (!before || *due < *before)) {
      auto const first = first_due(q.scan());
      if (rule::job_visible(*due, now) || !first || *due <= *first) ++in_.events.due[q.scan()];
    }
    queues_.settle(q);
    return answer;
  }
  static void place(queue&, time_point) noexcept {}  // its row says where it is
  static void no_later_than(queue& q, time_point vesting, time_point) noexcept {
    q.pointer = rule::pointer_with(q.pointer, vesting);
  }
  static void set_pointer(queue& q, std::optional<time_point> pointer, time_point) noexcept {
    q.pointer = pointer;
  }

  [[nodiscard]] bool has_shard(std::uint32_t shard) const noexcept {
    return shard < in_.ledger.shards;
  }
  [[nodiscard]] bool together(std::string_view name, std::string_view other) const noexcept {
    return queues_.shard_of(name) == queues_.shard_of(other);
  }
  [[nodiscard]] std::optional<time_point> longest_due(std::uint32_t shard, bool schedules) {
    queues_.flush();
    return first_due(rule::scan_number(shard, schedules));
  }
  template <class F>
  void each_due(std::uint32_t shard, bool schedules, time_point from, time_point to,
                std::size_t most, F&& f) {
    sqlite_query q{in_.db, sql::due_between, rule::scan_number(shard, schedules), from, to, most};
    while (q.next() && f(q.anything(0), q.time(1))) {
    }
  }
  template <class F>
  void each_name(command::list_queues const& c, F&& f) {
    sqlite_query q{in_.db, sql::queues_after, c.shard, c.cursor, std::uint64_t{c.limit} + 1};
    while (q.next() && f(q.anything(0))) {
    }
  }
  std::uint32_t collect_pointers(command::gc_stale_pointers const& c, time_point now) {
    queues_.flush();
    std::vector<std::int64_t> stale;
    auto const before = saturating_add(now, -c.grace);
    for (bool const schedules : {false, true}) {
      sqlite_query q{in_.db, sql::stale_queues, rule::scan_number(c.shard, schedules), before,
                     c.limit - static_cast<std::uint32_t>(stale.size())};
      while (q.next()) stale.push_back(q.integer(0));  // a rowid
    }
    std::uint32_t deleted = 0;
    for (auto const number : stale) {
      auto* const q = queues_.by_number(number);
      auto const due = q == nullptr ? std::nullopt : q->due();
      if (!due || !rule::pointer_stale(*due, q->waiting == 0, c.grace, now)) continue;
      q->pointer.reset();
      ++deleted;
    }
    return deleted;
  }
  [[nodiscard]] std::uint64_t& last_fence() noexcept { return in_.ledger.fence; }

  /// When the first queue of a scan is due, as far as the file knows. Empty: none will be.
  [[nodiscard]] std::optional<time_point> first_due(std::uint32_t scan) {
    sqlite_query q{in_.db, sql::first_due, scan};
    if (!q.next()) return std::nullopt;
    return q.time(0);
  }

  /// Writes what a transaction has changed of its queues.
  void flush() { queues_.flush(); }
  void trim() noexcept { queues_.trim(); }

 protected:
  /// Forgets one of the queues that have been jobless for the longest, if it may.
  bool forget_one(time_point now) {
    constexpr int tries = 8;
    queues_.flush();
    for (auto const number : queues_.idlest(tries)) {
      auto* const q = queues_.by_number(number);
      if (q == nullptr) {
        queues_.erase(number);
        return true;
      }
      if (!q->outlasts_jobs(now)) {
        queues_.erase(*q);
        return true;
      }
      queues_.refresh(*q);
    }
    return false;
  }

  sqlite_scope& in_;
  sqlite_queues queues_;
};

}  // namespace weir::detail

#endif
