// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_STORE_SQLITE_JOB_FRONT_HPP
#define WEIR_STORE_SQLITE_JOB_FRONT_HPP

#include "weir/job.hpp"
#include "weir/rule/job_fields.hpp"
#include "weir/rule/jobs.hpp"
#include "weir/store/sqlite/connection.hpp"
#include "weir/time.hpp"

#include <algorithm>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <limits>
#include <optional>
#include <vector>

namespace weir::detail {

namespace sql {

// The order of a queue, level by level: each is one step down the index, whatever stands in it.
inline constexpr char first_head[] =
    "SELECT priority, vesting, id FROM weir_jobs INDEXED BY weir_jobs_order "
    "WHERE queue = ? AND vesting IS NOT NULL ORDER BY priority, vesting, id LIMIT 1";
inline constexpr char next_head[] =
    "SELECT priority, vesting, id FROM weir_jobs INDEXED BY weir_jobs_order "
    "WHERE queue = ? AND priority > ? AND vesting IS NOT NULL "
    "ORDER BY priority, vesting, id LIMIT 1";
inline constexpr char first_of_level[] =
    "SELECT vesting, id FROM weir_jobs INDEXED BY weir_jobs_order "
    "WHERE queue = ? AND priority = ? AND vesting IS NOT NULL ORDER BY vesting, id LIMIT ?";

}  // namespace sql

/// The first jobs of each level of a queue's order, read ahead and kept in step with what changes,
/// so that a dequeue seldom has to look for a job.
class sqlite_job_front {
 public:
  struct place {
    time_point vesting;
    job_id id;
    friend auto operator<=>(place const&, place const&) = default;
  };

  sqlite_job_front(sqlite_connection& db, std::int64_t queue) : db_{&db}, queue_{queue} {
    auto const read_head = [&](sqlite_query&& q) -> std::optional<sqlite_value> {
      if (!q.next()) return std::nullopt;
      try {
        place const first{q.time(1), q.id(2)};
        levels_.push_back({.priority = q.within<std::uint8_t>(0, 0, 255), .jobs = {first}});
      } catch (sqlite_damage const&) {
        if (damaged_) return std::nullopt;  // of these there may be any number
        damaged_.emplace(q.value(2));
      }
      return q.value(0);
    };
    constexpr auto least = std::numeric_limits<std::int64_t>::min();
    auto last = read_head({db, sql::first_head, queue});
    while (last) {
      last = last->type() == SQLITE_NULL ? read_head({db, sql::next_head, queue, least})
                                         : read_head({db, sql::next_head, queue, *last});
    }
  }

  struct some {
    std::uint8_t priority = 0;
    std::vector<job_id> jobs{};
  };
  /// The first of the levels from `priority` on, with up to `most` of its jobs that are visible.
  /// Empty: there is none.
  [[nodiscard]] std::optional<some> visible(unsigned priority, time_point now, std::size_t most) {
    read_on(now);
    auto const at = std::ranges::find_if(
        levels_, [&](auto const& l) { return l.priority >= priority && !l.jobs.empty(); });
    if (at == levels_.end()) return std::nullopt;
    if (at->jobs.size() < most && rule::job_visible(at->jobs.back().vesting, now)) {
      read(*at, most, now);
    }
    some out{.priority = at->priority};
    for (auto const& p : at->jobs) {
      if (out.jobs.size() == most || !rule::job_visible(p.vesting, now)) break;
      out.jobs.push_back(p.id);
    }
    return out;
  }

  /// One that cannot be read counts as visible: the next dequeue is to set it aside.
  [[nodiscard]] std::optional<time_point> min_vesting(time_point now) {
    read_on(now);
    if (damaged_) return now;
    std::optional<time_point> least;
    for (auto const& l : levels_) least = rule::pointer_with(least, l.jobs.front().vesting);
    return least;
  }

  /// The id, whatever that is, of a job that cannot be read. Empty: none was met. As long as there
  /// is one, some of the levels may be unknown.
  [[nodiscard]] std::optional<sqlite_value> const& damaged() const noexcept { return damaged_; }

  void add(std::uint8_t priority, place const& p) {
    auto const at = level_from(priority);
    if (at == levels_.end() || at->priority != priority) {
      levels_.insert(at, {.priority = priority, .jobs = {p}, .whole = true});
    } else if (at->whole || (!at->jobs.empty() && p < at->jobs.back())) {
      at->jobs.insert(std::ranges::upper_bound(at->jobs, p), p);
      if (at->jobs.size() <= most_known) return;
      at->jobs.resize(most_known);
      at->whole = false;
    }
  }

  void remove(std::uint8_t priority, place const& p) noexcept {
    auto const at = level_from(priority);
    if (at == levels_.end() || at->priority != priority) return;
    auto const found = std::ranges::lower_bound(at->jobs, p);
    if (found != at->jobs.end() && *found == p) at->jobs.erase(found);
  }
  /// One that is leased, and whose place is not known.
  void remove(job_id const& id, time_point now) noexcept {
    for (auto& l : levels_) {
      auto const leased = std::ranges::find_if(l.jobs.rbegin(), l.jobs.rend(), [&](auto const& p) {
        return p.id == id || rule::job_visible(p.vesting, now);
      });
      if (leased == l.jobs.rend() || leased->id != id) continue;
      l.jobs.erase(std::next(leased).base());
      return;
    }
  }

 private:
  static constexpr std::size_t most_known = 256;

  struct level {
    std::uint8_t priority = 0;
    std::deque<place> jobs{};  ///< the first ones; none: they are to be read
    bool whole = false;        ///< there are no others
    std::size_t asked = 1;
  };

  [[nodiscard]] std::vector<level>::iterator level_from(std::uint8_t priority) noexcept {
    return std::ranges::lower_bound(levels_, priority, {}, &level::priority);
  }

  void read_on(time_point now) {
    for (auto& l : levels_) {
      if (l.jobs.empty()) read(l, std::min(2 * l.asked, most_known), now);
    }
    std::erase_if(levels_, [](auto const& l) { return l.jobs.empty() && l.whole; });
  }

  /// As far as jobs are visible, and the next one.
  void read(level& l, std::size_t most, time_point now) {
    if (l.whole) return;
    l.asked = most;
    l.jobs.clear();
    std::size_t n = 0;
    bool more = true;
    sqlite_query q{*db_, sql::first_of_level, queue_, l.priority, most};
    while ((more = q.next())) {
      ++n;
      try {
        l.jobs.push_back({q.time(0), q.id(1)});
        if (!rule::job_visible(l.jobs.back().vesting, now)) break;
      } catch (sqlite_damage const&) {
        if (!damaged_) damaged_.emplace(q.value(1));
      }
    }
    l.whole = !more && n < most;
  }

  sqlite_connection* db_;
  std::int64_t queue_;
  std::vector<level> levels_;  // by priority
  std::optional<sqlite_value> damaged_;
};

}  // namespace weir::detail

#endif
