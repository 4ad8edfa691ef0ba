// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_STORE_SQLITE_JOB_READER_HPP
#define WEIR_STORE_SQLITE_JOB_READER_HPP

#include "weir/command/jobs.hpp"
#include "weir/job.hpp"
#include "weir/rule/bytes.hpp"
#include "weir/rule/jobs.hpp"
#include "weir/store/sqlite/connection.hpp"
#include "weir/store/sqlite/job_rows.hpp"
#include "weir/store/sqlite/queue_rows.hpp"
#include "weir/store/sqlite/scope.hpp"
#include "weir/time.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

namespace weir::detail {

/// What is asked of jobs without changing anything.
class sqlite_job_reader {
 public:
  explicit sqlite_job_reader(sqlite_scope& in) noexcept : in_{in}, rows_{in.db} {}

  /// The job's row. One whose retention is over is none, whether or not it was reaped yet.
  [[nodiscard]] std::optional<sqlite_job> find(sqlite_queue const& q, job_id const& id,
                                               time_point now) {
    auto r = rows_.read(q.number, id);
    if (r && gone(*r, now)) r.reset();
    return r;
  }

  /// The job, if this fence names its live lease.
  [[nodiscard]] std::optional<sqlite_job> leased(sqlite_queue const& q, job_id const& id,
                                                 std::uint64_t fence, time_point now) {
    auto r = find(q, id, now);
    if (r && !rule::has_job_lease(r->state(now), r->fence, fence)) r.reset();
    return r;
  }

  [[nodiscard]] std::optional<job> look(sqlite_queue const& q, job_id const& id, time_point now) {
    auto r = rows_.read_whole(q.number, id);
    if (!r || gone(*r, now)) return std::nullopt;
    return describe(std::move(*r), now);
  }

  /// The least of the heads, and whether any job is visible.
  struct heads {
    std::optional<time_point> min_vesting;
    bool any_visible = false;

    [[nodiscard]] std::optional<duration> next_in(time_point now) const noexcept {
      if (!min_vesting) return std::nullopt;
      return saturating_sub(*min_vesting, now);
    }
  };

  [[nodiscard]] heads read_heads(sqlite_queue const& q, time_point now) {
    heads out;
    if (q.waiting == 0) return out;
    for (auto h = head_after(q, -1); h; h = head_after(q, h->priority)) {
      out.min_vesting = rule::pointer_with(out.min_vesting, h->vesting);
      out.any_visible = out.any_visible || rule::job_visible(h->vesting, now);
    }
    return out;
  }

  void peek(sqlite_queue const& q, std::uint32_t limit, time_point now, std::vector<job>& out) {
    rule::answer_room room;
    for (auto h = head_after(q, -1); h && out.size() < limit; h = head_after(q, h->priority)) {
      for (auto const& id : visible(q, h->priority, now, limit - out.size())) {
        auto r = rows_.read_whole(q.number, id);
        if (!r) continue;
        if (!room.take(r->text_bytes())) return;
        out.push_back(describe(std::move(*r), now));
      }
    }
  }

  [[nodiscard]] queue_stats stats(sqlite_queue const& q, time_point now) {
    queue_stats s;
    s.enqueued = q.enqueued;
    {
      sqlite_query leases{in_.db, sql::count_leased, q.number, now};
      if (leases.next()) s.leased = leases.as<std::uint64_t>(0);
    }
    s.pending = q.waiting - s.leased;
    s.completed = q.completed;
    s.dead = q.dead;
    s.cancelled = q.cancelled;
    s.purged = q.purged;
    s.paused = q.paused;
    s.next_in = read_heads(q, now).next_in(now);
    return s;
  }

  /// Dead letters that died after number `after`; the number of the last one, 0: there are no more.
  std::uint64_t dead_letters(sqlite_queue const& q, std::uint64_t after, std::uint32_t limit,
                             time_point now, std::vector<job>& out) {
    std::vector<std::pair<std::uint64_t, job_id>> found;
    {
      sqlite_query dead{in_.db, sql::dead_jobs, q.number, after, std::uint64_t{limit} + 1};
      while (dead.next()) found.emplace_back(dead.as<std::uint64_t>(0), dead.id(1));
    }
    rule::answer_room room;
    std::uint64_t last = after;
    for (auto const& [death, id] : found) {
      auto r = rows_.read_whole(q.number, id);
      if (out.size() == limit || (r && !room.take(r->text_bytes()))) return last;
      if (r) out.push_back(describe(std::move(*r), now));
      last = death;
    }
    return 0;
  }

 protected:
  struct head {
    std::uint8_t priority;
    time_point vesting;
  };

  static bool gone(sqlite_job const& r, time_point now) noexcept {
    return r.has_retention() && rule::record_gone(r.kept_until, now);
  }

  static std::optional<job_state> state_of(std::optional<sqlite_job> const& r,
                                           time_point now) noexcept {
    if (!r) return std::nullopt;
    return r->state(now);
  }

  /// The first job of the next level that has any.
  std::optional<head> head_after(sqlite_queue const& queue, int priority) {
    sqlite_query q{in_.db, sql::next_head, queue.number, priority};
    if (!q.next()) return std::nullopt;
    return head{q.as<std::uint8_t>(0), q.time(1)};
  }

  std::vector<job_id> visible(sqlite_queue const& queue, std::uint8_t priority, time_point now,
                              std::size_t most) {
    std::vector<job_id> out;
    sqlite_query q{in_.db, sql::visible_jobs, queue.number, priority, now, most};
    while (q.next()) out.push_back(q.id(0));
    return out;
  }

  sqlite_scope& in_;
  sqlite_job_rows rows_;
};

}  // namespace weir::detail

#endif
