// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_STORE_SQLITE_JOB_READER_HPP
#define WEIR_STORE_SQLITE_JOB_READER_HPP

#include "weir/job.hpp"
#include "weir/rule/jobs.hpp"
#include "weir/store/sqlite/connection.hpp"
#include "weir/store/sqlite/job_rows.hpp"
#include "weir/store/sqlite/queues.hpp"
#include "weir/store/sqlite/scope.hpp"
#include "weir/time.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace weir::detail {

/// What is asked of jobs without changing anything.
class sqlite_job_reader : public sqlite_queue_table {
 public:
  using record = sqlite_job;
  using row = std::optional<sqlite_job>;

  explicit sqlite_job_reader(sqlite_scope& in) noexcept : sqlite_queue_table{in}, rows_{in.db} {}

  [[nodiscard]] row find(queue const& q, job_id const& id, time_point now) {
    auto r = rows_.read(q.number, id);
    if (r && r->gone(now)) r.reset();
    return r;
  }
  [[nodiscard]] std::optional<sqlite_whole_job> find_whole(queue const& q, job_id const& id,
                                                           time_point now) {
    auto r = rows_.read_whole(q.number, id);
    if (r && r->gone(now)) r.reset();
    return r;
  }
  [[nodiscard]] bool known(queue const& q, job_id const& id, time_point now) {
    try {
      return find(q, id, now).has_value();
    } catch (sqlite_damage const&) {
      return true;
    }
  }
  /// One that cannot be read is no matter of the others.
  template <class Job, class F>
  void each(queue const& q, std::span<Job const> jobs, time_point now, F&& f) {
    for (auto const& j : jobs) {
      auto r = intact(q, j.id);
      if (r && r->gone(now)) r.reset();
      f(j, std::move(r));
    }
  }

  /// Rows without a proper id are passed over, and one that cannot be read is an empty row. A job
  /// that its columns show to be in another state is not read.
  template <class F>
  bool each_after(queue const& q, job_id const& id, std::size_t most, job_state state, F&& f) {
    struct looked_at {
      job_id id{};
      bool fits = false;
    };
    std::vector<looked_at> jobs;
    std::size_t found = 0;
    auto const ended = is_terminal(state) ? state : job_state::pending;
    {
      sqlite_query after{in_.db, sql::jobs_after, q.number, id, most + 1};
      while (after.next() && ++found <= most) {
        auto const next = after.anything(0);
        if (next.size() != sizeof(job_id)) continue;
        bool const fits = after.integer(1) == static_cast<std::int64_t>(ended) &&
                          (state != job_state::leased || after.integer(2) != 0);
        std::memcpy(&jobs.emplace_back(job_id{}, fits).id, next.data(), next.size());
      }
    }
    for (auto const& j : jobs) {
      if (!f(j.id, j.fits ? readable(q, j.id) : std::nullopt)) return true;
    }
    return found > most;
  }

  /// A head that cannot be read counts as visible: the next dequeue is to set it aside.
  [[nodiscard]] std::optional<time_point> min_vesting(queue const& q, time_point now) {
    std::optional<time_point> least;
    for (auto h = first_head(q); h; h = head_after(q, *h)) {
      least = rule::pointer_with(least, h->damaged ? now : h->vesting);
    }
    return least;
  }

  template <class F>
  void peek(queue const& q, std::size_t most, time_point now, F&& f) {
    for (auto h = first_head(q); h && most != 0; h = head_after(q, *h)) {
      if (h->damaged) continue;
      for (auto const& id : visible(q, h->priority, now, most).ids) {
        auto r = readable(q, id);
        if (!r) continue;
        if (!f(*r)) return;
        --most;
      }
    }
  }

  template <class F>
  bool each_dead(queue const& q, std::uint64_t after, std::uint64_t most, F&& f) {
    std::vector<std::pair<std::uint64_t, job_id>> found;
    {
      sqlite_query dead{in_.db, sql::dead_jobs, q.number, after, most + 1};
      while (dead.next()) {
        auto const id = dead.anything(1);
        auto const death = dead.type(0) == SQLITE_INTEGER ? dead.integer(0) : 0;
        auto& letter = found.emplace_back(static_cast<std::uint64_t>(death), job_id{});
        if (id.size() == sizeof(job_id)) std::memcpy(&letter.second, id.data(), id.size());
      }
    }
    for (auto const& [death, id] : found) {
      if (!f(death, readable(q, id))) return true;
    }
    return found.size() > most;
  }

  [[nodiscard]] static std::uint64_t waiting(queue const& q) noexcept { return q.waiting; }
  [[nodiscard]] std::uint64_t leased(queue const& q, time_point now) {
    sqlite_query leases{in_.db, sql::count_leased, q.number, now};
    return leases.next() ? std::min(leases.count(0), q.waiting) : 0;
  }
  [[nodiscard]] static std::uint64_t dead(queue const& q) noexcept { return q.dead; }

 protected:
  struct head {
    std::uint8_t priority = 0;
    time_point vesting{};
    std::optional<job_id> id{};             ///< empty: it is none
    std::optional<sqlite_value> damaged{};  ///< its id, if it stands there for no sound reason
    std::optional<sqlite_value> level{};    ///< damaged: where it stands
  };

  /// The job's row, if it can be read.
  row intact(queue const& q, job_id const& id) {
    try {
      return rows_.read(q.number, id);
    } catch (sqlite_damage const&) {
      return std::nullopt;
    }
  }
  /// The same with its texts.
  std::optional<sqlite_whole_job> readable(queue const& q, job_id const& id) {
    try {
      return rows_.read_whole(q.number, id);
    } catch (sqlite_damage const&) {
      return std::nullopt;
    }
  }

  /// The first job of the first level that has any, whatever a level may be.
  std::optional<head> first_head(queue const& of) {
    return read_head({in_.db, sql::first_head, of.number});
  }

  /// The first job of the next level.
  std::optional<head> head_after(queue const& of, head const& last) {
    if (!last.damaged) return read_head({in_.db, sql::next_head, of.number, last.priority});
    if (last.level->type() != SQLITE_NULL) {
      return read_head({in_.db, sql::next_head, of.number, *last.level});
    }
    return read_head({in_.db, sql::next_head, of.number, std::numeric_limits<std::int64_t>::min()});
  }

  struct page {
    std::vector<job_id> ids{};
    std::optional<sqlite_value> damaged{};  ///< what stands after them and is no id
  };

  page visible(queue const& of, std::uint8_t priority, time_point now, std::size_t most) {
    page out;
    sqlite_query q{in_.db, sql::visible_jobs, of.number, priority, now, most};
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
      if (q.type(2) == SQLITE_BLOB && q.anything(2).size() == sizeof(job_id)) out.id = q.id(2);
    } catch (sqlite_damage const&) {
      out.level.emplace(q.value(0));
      out.damaged.emplace(q.value(2));
    }
    return out;
  }

 protected:
  sqlite_job_rows rows_;
};

}  // namespace weir::detail

#endif
