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

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
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
    for (auto h = first_head(q); h; h = head_after(q, *h)) {
      // One that cannot be read is to be set aside, by the next dequeue.
      auto const vesting = h->damaged ? now : h->vesting;
      out.min_vesting = rule::pointer_with(out.min_vesting, vesting);
      out.any_visible = out.any_visible || rule::job_visible(vesting, now);
    }
    return out;
  }

  void peek(sqlite_queue const& q, std::uint32_t limit, time_point now, std::vector<job>& out) {
    rule::answer_room room;
    for (auto h = first_head(q); h && out.size() < limit; h = head_after(q, *h)) {
      if (h->damaged) continue;
      for (auto const& id : visible(q, h->priority, now, limit - out.size()).ids) {
        auto r = readable(q, id);
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
      if (leases.next()) s.leased = std::min(leases.count(0), q.waiting);
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
      while (dead.next()) {
        auto const id = dead.anything(1);
        auto const death = dead.type(0) == SQLITE_INTEGER ? dead.integer(0) : 0;
        auto& f = found.emplace_back(static_cast<std::uint64_t>(death), job_id{});
        if (id.size() == sizeof(job_id)) std::memcpy(&f.second, id.data(), id.size());
      }
    }
    rule::answer_room room;
    std::uint64_t last = after;
    for (auto const& [death, id] : found) {
      auto r = readable(q, id);
      if (out.size() == limit || (r && !room.take(r->text_bytes()))) return last;
      if (r) out.push_back(describe(std::move(*r), now));
      last = std::max(last, death);
    }
    return found.size() > limit && last != after ? last : 0;
  }

  /// Has the queue a record under this id, whether or not it can be read?
  [[nodiscard]] bool known(sqlite_queue const& q, job_id const& id, time_point now) {
    try {
      return find(q, id, now).has_value();
    } catch (sqlite_damage const&) {
      return true;
    }
  }

 protected:
  struct head {
    std::uint8_t priority = 0;
    time_point vesting{};
    std::optional<sqlite_value> damaged{};  ///< its id, if it stands there for no sound reason
    std::optional<sqlite_value> level{};    ///< damaged: where it stands
  };

  static bool gone(sqlite_job const& r, time_point now) noexcept {
    return r.has_retention() && rule::record_gone(r.kept_until, now);
  }

  static std::optional<job_state> state_of(std::optional<sqlite_job> const& r,
                                           time_point now) noexcept {
    if (!r) return std::nullopt;
    return r->state(now);
  }

  /// The job, if it can be read.
  std::optional<sqlite_whole_job> readable(sqlite_queue const& q, job_id const& id) {
    try {
      return rows_.read_whole(q.number, id);
    } catch (sqlite_damage const&) {
      return std::nullopt;
    }
  }

  /// The first job of the first level that has any, whatever a level may be.
  std::optional<head> first_head(sqlite_queue const& queue) {
    return read_head({in_.db, sql::first_head, queue.number});
  }

  /// The first job of the next level.
  std::optional<head> head_after(sqlite_queue const& queue, head const& last) {
    if (!last.damaged) return read_head({in_.db, sql::next_head, queue.number, last.priority});
    if (last.level->type() != SQLITE_NULL) {
      return read_head({in_.db, sql::next_head, queue.number, *last.level});
    }
    return read_head(
        {in_.db, sql::next_head, queue.number, std::numeric_limits<std::int64_t>::min()});
  }

  struct page {
    std::vector<job_id> ids{};
    std::optional<sqlite_value> damaged{};  ///< what stands after them and is no id
  };

  page visible(sqlite_queue const& queue, std::uint8_t priority, time_point now, std::size_t most) {
    page out;
    sqlite_query q{in_.db, sql::visible_jobs, queue.number, priority, now, most};
    while (!out.damaged && q.next()) {
      try {
        out.ids.push_back(q.id(0));
      } catch (sqlite_damage const&) {
        out.damaged.emplace(q.value(0));
      }
    }
    return out;
  }

 private:
  static std::optional<head> read_head(sqlite_query&& q) {
    if (!q.next()) return std::nullopt;
    head out;
    try {
      out.priority = q.within<std::uint8_t>(0, 0, 255);
      out.vesting = q.time(1);
    } catch (sqlite_damage const&) {
      out.level.emplace(q.value(0));
      out.damaged.emplace(q.value(2));
    }
    return out;
  }

 protected:
  sqlite_scope& in_;
  sqlite_job_rows rows_;
};

}  // namespace weir::detail

#endif
