// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_STORE_SQLITE_JOB_READER_HPP
#define WEIR_STORE_SQLITE_JOB_READER_HPP

#include "weir/job.hpp"
#include "weir/rule/jobs.hpp"
#include "weir/store/sqlite/connection.hpp"
#include "weir/store/sqlite/job_front.hpp"
#include "weir/store/sqlite/job_rows.hpp"
#include "weir/store/sqlite/queues.hpp"
#include "weir/store/sqlite/scope.hpp"
#include "weir/time.hpp"

#include <boost/unordered/unordered_flat_map.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
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

  [[nodiscard]] std::optional<time_point> min_vesting(queue const& q, time_point now) {
    return front_of(q).min_vesting(now);
  }

  template <class F>
  void peek(queue const& q, std::size_t most, time_point now, F&& f) {
    unsigned level = 0;
    while (auto const found = front_of(q).visible(level, now, most)) {
      for (auto const& id : found->jobs) {
        auto r = readable(q, id);
        if (!r) continue;
        if (!f(*r) || --most == 0) return;
      }
      level = found->priority + 1U;
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

  /// Valid until the front of another queue is asked for.
  sqlite_job_front& front_of(queue const& q) {
    constexpr std::size_t most = 16;
    auto const known = fronts_.find(q.number);
    if (known != fronts_.end()) return known->second;
    if (fronts_.size() >= most) fronts_.clear();
    return fronts_.try_emplace(q.number, in_.db, q.number).first->second;
  }
  /// Null: nobody has looked at it.
  sqlite_job_front* known_front_of(queue const& q) noexcept {
    auto const known = fronts_.find(q.number);
    return known == fronts_.end() ? nullptr : &known->second;
  }

  sqlite_job_rows rows_;
  // By the queue's number. They are true as long as nobody else writes.
  boost::unordered_flat_map<std::int64_t, sqlite_job_front> fronts_;
};

}  // namespace weir::detail

#endif
