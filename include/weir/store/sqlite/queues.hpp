// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_STORE_SQLITE_QUEUES_HPP
#define WEIR_STORE_SQLITE_QUEUES_HPP

#include "weir/command/jobs.hpp"
#include "weir/command/locks.hpp"
#include "weir/error.hpp"
#include "weir/rule/bytes.hpp"
#include "weir/rule/fence.hpp"
#include "weir/rule/jobs.hpp"
#include "weir/store/sqlite/connection.hpp"
#include "weir/store/sqlite/job_steps.hpp"
#include "weir/store/sqlite/queue_rows.hpp"
#include "weir/store/sqlite/scope.hpp"
#include "weir/time.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace weir::detail {

namespace sql {

// What the index has may be anything; what is neither a time nor a name is passed over.
inline constexpr char first_due[] =
    "SELECT due FROM weir_queues INDEXED BY weir_queues_due "
    "WHERE shard = ? AND due IS NOT NULL AND typeof(due) = 'integer' AND typeof(name) = 'blob' "
    "AND length(name) BETWEEN 1 AND 1024 ORDER BY due, name LIMIT 1";
inline constexpr char due_between[] =
    "SELECT name, due FROM weir_queues INDEXED BY weir_queues_due "
    "WHERE shard = ? AND due >= ? AND due < ? AND typeof(due) = 'integer' "
    "AND typeof(name) = 'blob' AND length(name) BETWEEN 1 AND 1024 ORDER BY due, name LIMIT ?";
inline constexpr char stale_queues[] =
    "SELECT queue FROM weir_queues INDEXED BY weir_queues_due "
    "WHERE shard = ? AND due < ? AND waiting = 0 ORDER BY due, name LIMIT ?";
inline constexpr char queues_after[] =
    "SELECT name FROM weir_queues WHERE shard = ? AND name > ? AND typeof(name) = 'blob' "
    "AND length(name) BETWEEN 1 AND 1024 ORDER BY name LIMIT ?";

}  // namespace sql

/// The queues of the file, and the commands that concern a queue as a whole, or several.
///
/// A queue without jobs keeps its counters, its pause or snooze, its lease, and nothing else. Such
/// queues are remembered up to `max_idle_queues`; beyond it the one that has been jobless for the
/// longest is forgotten with its counters, unless it is held or leased. Where only those are left,
/// holding another one is `store_full`. The fence is the file's and is never forgotten.
class sqlite_queue_commands {
 public:
  explicit sqlite_queue_commands(sqlite_scope& in) noexcept : in_{in}, queues_{in}, steps_{in} {}

  result<std::optional<duration>> apply(command::min_vesting_time const& c, time_point now) {
    auto const* const q = queues_.find(c.queue);
    return q == nullptr ? std::optional<duration>{} : steps_.read_heads(*q, now).next_in(now);
  }

  result<queue_stats> apply(command::read_queue_stats const& c, time_point now) {
    auto const* const q = queues_.find(c.queue);
    return q == nullptr ? queue_stats{} : steps_.stats(*q, now);
  }

  result<visible_queues> apply(command::scan_visible_queues const& c, time_point now) {
    if (c.shard >= in_.ledger.shards) return errc::invalid_shard;
    queues_.flush();
    visible_queues out;
    auto const first = first_due(c.shard);
    if (!first) return out;
    constexpr auto end = time_point::max();
    if (!rule::job_visible(*first, now)) {
      out.next_in = saturating_sub(*first, now);
      return out;
    }
    auto const start = rule::scan_start(*first, now, c.entropy);
    scan rest{c.limit, out, {}, {}};
    list(c.shard, start, just_after(now), rest);
    list(c.shard, *first, start, rest);
    if (!rest.next) {
      sqlite_query q{in_.db, sql::due_between, c.shard, just_after(now), end, 1};
      if (q.next()) rest.next = q.time(1);
    }
    if (rest.next) out.next_in = saturating_sub(*rest.next, now);
    return out;
  }

  result<std::optional<duration>> apply(command::update_queue_pointer const& c, time_point now) {
    auto* const q = queues_.find(c.queue);
    if (q == nullptr) return std::optional<duration>{};
    auto const before = q->due();
    auto const heads = steps_.read_heads(*q, now);
    q->pointer = heads.min_vesting;
    moved(*q, before, now);
    return heads.next_in(now);
  }

  result<std::uint32_t> apply(command::gc_stale_pointers const& c, time_point now) {
    if (c.shard >= in_.ledger.shards) return errc::invalid_shard;
    queues_.flush();
    std::vector<std::int64_t> stale;
    {
      auto const before = saturating_add(now, -c.grace);
      sqlite_query q{in_.db, sql::stale_queues, c.shard, before, c.limit};
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

  /// Error: `store_full`.
  result<hint> apply(command::snooze_queue const& c, time_point now) {
    bool const ends = c.delay == duration::zero();
    auto* const q = ends ? queues_.find(c.queue) : hold(c.queue, now);
    if (q == nullptr) return ends ? result<hint>{hint{}} : errc::store_full;
    auto const before = q->due();
    q->snoozed_until = ends ? time_point::min() : saturating_add(now, c.delay);
    moved(*q, before, now);
    return hint{};
  }

  /// Error: `store_full`.
  result<hint> apply(command::pause_queue const& c, time_point now) {
    auto* const q = hold(c.queue, now);
    if (q == nullptr) return errc::store_full;
    q->paused = true;
    return hint{};
  }

  result<hint> apply(command::resume_queue const& c, time_point now) {
    auto* const q = queues_.find(c.queue);
    if (q == nullptr) return hint{};
    auto const before = q->due();
    q->paused = false;
    q->snoozed_until = time_point::min();
    moved(*q, before, now);
    return hint{};
  }

  /// Error: `store_full`.
  result<lock_grant> apply(command::obtain_queue_lease const& c, time_point now) {
    auto* const q = hold(c.queue, now);
    if (q == nullptr) return errc::store_full;
    lock_grant out;
    out.granted = now >= q->lease_expiry || q->lease_holder == c.holder;
    if (now >= q->lease_expiry) {
      q->lease_holder = c.holder;
      q->lease_fence = in_.ledger.fence = rule::next_fence(in_.ledger.fence, now);
      q->lease_expiry = saturating_add(now, c.lease);
    }
    out.expires_in = saturating_sub(q->lease_expiry, now);
    if (out.granted) {
      out.fence = q->lease_fence;
    } else {
      out.holder = q->lease_holder;
    }
    return out;
  }

  result<lease_release> apply(command::release_queue_lease const& c, time_point now) {
    lease_release out;
    auto* const q = queues_.find(c.queue);
    out.freed = q != nullptr && now < q->lease_expiry && q->lease_holder == c.holder &&
                (c.fence == 0 || c.fence == q->lease_fence);
    if (out.freed) q->lease_expiry = time_point::min();
    return out;
  }

  result<queue_page> apply(command::list_queues const& c, time_point) {
    if (c.shard >= in_.ledger.shards) return errc::invalid_shard;
    queue_page page;
    rule::answer_room room;
    sqlite_query q{in_.db, sql::queues_after, c.shard, c.cursor, std::uint64_t{c.limit} + 1};
    while (q.next()) {
      if (page.queues.size() == c.limit || !room.take(q.anything(0).size())) {
        page.cursor = page.queues.back();
        break;
      }
      page.queues.emplace_back(q.anything(0));
    }
    return page;
  }

  /// When the first queue of the shard is due. Empty: none will be.
  [[nodiscard]] std::optional<time_point> first_due(std::uint32_t shard) {
    sqlite_query q{in_.db, sql::first_due, shard};
    if (!q.next()) return std::nullopt;
    return q.time(0);
  }

 protected:
  /// Notes that a queue's pointer, pause or snooze has changed since it was `before`.
  void moved(sqlite_queue& q, std::optional<time_point> before, time_point now) {
    auto const due = q.due();
    if (!in_.events.queues_watched || !due || (before && *before <= *due)) return;
    auto const first = first_due(q.shard);
    if (rule::job_visible(*due, now) || !first || *due <= *first) ++in_.events.due[q.shard];
  }

  /// A job of the queue vests at `vesting`.
  void no_later_than(sqlite_queue& q, time_point vesting, time_point now) {
    auto const before = q.due();
    q.pointer = rule::pointer_with(q.pointer, vesting);
    moved(q, before, now);
  }

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
      if (!q->held(now) && now >= q->lease_expiry) {
        queues_.erase(*q);
        return true;
      }
      queues_.refresh(*q);
    }
    return false;
  }

  sqlite_scope& in_;
  sqlite_queues queues_;
  sqlite_job_steps steps_;

 private:
  /// Where a listing that is limited has got to.
  struct scan {
    std::uint32_t limit;
    visible_queues& out;
    rule::answer_room room;
    std::optional<time_point> next;  ///< of the first that it left out
  };

  static time_point just_after(time_point t) noexcept { return saturating_add(t, duration{1}); }

  void list(std::uint32_t shard, time_point from, time_point to, scan& s) {
    if (s.next) return;
    auto const room = std::uint64_t{s.limit} - s.out.queues.size();
    sqlite_query q{in_.db, sql::due_between, shard, from, to, room + 1};
    while (q.next()) {
      if (s.out.queues.size() == s.limit || !s.room.take(q.anything(0).size())) {
        s.next = q.time(1);
        return;
      }
      s.out.queues.emplace_back(q.anything(0));
    }
  }

  /// The queue, made if need be, for something that outlasts its jobs. Null: too many such are
  /// remembered.
  [[nodiscard]] sqlite_queue* hold(std::string_view name, time_point now) {
    if (auto* const q = queues_.find(name)) return q;
    if (in_.ledger.idle >= in_.options.max_idle_queues && !forget_one(now)) return nullptr;
    return &queues_.make(name);
  }
};

}  // namespace weir::detail

#endif
