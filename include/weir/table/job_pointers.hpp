// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_TABLE_JOB_POINTERS_HPP
#define WEIR_TABLE_JOB_POINTERS_HPP

#include "weir/rule/job_fields.hpp"
#include "weir/rule/jobs.hpp"
#include "weir/rule/shards.hpp"
#include "weir/time.hpp"

#include <boost/intrusive/set.hpp>

#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace weir::detail {

/// What a scan knows of a queue.
struct scanned_queue : boost::intrusive::set_base_hook<boost::intrusive::optimize_size<true>>,
                       rule::queue_fields {
  explicit scanned_queue(std::string_view n) : schedules{rule::holds_schedules(n)}, name{n} {}

  time_point due{};      ///< where it stands in its scan, while it does
  bool const schedules;  ///< it is in the scan of those
  std::string const name;
};

/// One scan of a shard: the pointers of its queues, the longest due first. Paused queues are not
/// among them; snoozed ones stand where their snooze ends.
template <class>
class basic_job_pointers {
  struct by_due {
    bool operator()(scanned_queue const& a, scanned_queue const& b) const noexcept {
      return a.due != b.due ? a.due < b.due : a.name < b.name;
    }
  };
  struct later_than {
    bool operator()(scanned_queue const& q, time_point t) const noexcept { return q.due < t; }
    bool operator()(time_point t, scanned_queue const& q) const noexcept { return t < q.due; }
  };
  using pointers = boost::intrusive::set<scanned_queue, boost::intrusive::compare<by_due>,
                                         boost::intrusive::constant_time_size<false>>;

 public:
  using iterator = pointers::iterator;

  [[nodiscard]] iterator begin() noexcept { return pointers_.begin(); }
  [[nodiscard]] iterator end() noexcept { return pointers_.end(); }
  /// The longest due of those that are due at `t` or later.
  [[nodiscard]] iterator from(time_point t) noexcept {
    return pointers_.lower_bound(t, later_than{});
  }
  void clear() noexcept { pointers_.clear(); }

  [[nodiscard]] bool any_due(time_point now) const noexcept {
    return !pointers_.empty() && rule::job_visible(pointers_.begin()->due, now);
  }

  /// A job of the queue vests at `vesting`.
  void no_later_than(scanned_queue& q, time_point vesting, time_point now) noexcept {
    if (q.pointer && *q.pointer <= vesting) return;
    set(q, rule::pointer_with(q.pointer, vesting), now);
  }

  /// Gives the queue another pointer, or none. Its min vesting time must have been read in the same
  /// step.
  void set(scanned_queue& q, std::optional<time_point> pointer, time_point now) noexcept {
    q.pointer = pointer;
    place(q, now);
  }

  /// Puts the queue where its pointer, its pause and its snooze say.
  void place(scanned_queue& q, time_point now) noexcept {
    bool const was_in = q.is_linked();
    auto const was_due = q.due;
    if (q.paused || !q.pointer) {
      if (was_in) pointers_.erase(pointers_.iterator_to(q));
      return;
    }
    auto const due = rule::scanned_from(*q.pointer, q.snoozed_until);
    if (was_in && due == was_due) return;
    q.due = due;
    if (!was_in) {
      insert(pointers_.begin(), q);
    } else if (auto const at = pointers_.iterator_to(q); !stands_right(at)) {
      insert(pointers_.erase(at), q);
    }
    bool const earlier = !was_in || due < was_due;
    if (earlier && (rule::job_visible(due, now) || &*pointers_.begin() == &q)) event_ = true;
  }

  /// Has some queue become due, or the first one due earlier, since this was asked last?
  [[nodiscard]] bool take_event() noexcept { return std::exchange(event_, false); }

 private:
  /// One whose job has got a lease mostly stands behind all others: without a way through all of
  /// them.
  void insert(iterator hint, scanned_queue& q) noexcept {
    bool const last = !pointers_.empty() && by_due{}(*pointers_.rbegin(), q);
    pointers_.insert(last ? pointers_.end() : hint, q);
  }

  /// Is it between its neighbours? With few queues it mostly is, and need not be moved.
  [[nodiscard]] bool stands_right(iterator at) noexcept {
    auto const next = std::next(at);
    return (next == pointers_.end() || by_due{}(*at, *next)) &&
           (at == pointers_.begin() || by_due{}(*std::prev(at), *at));
  }

  pointers pointers_;
  bool event_ = false;
};

using job_pointers = basic_job_pointers<void>;

/// Both scans of a shard.
struct job_scans {
  job_pointers of_jobs;
  job_pointers of_schedules;

  [[nodiscard]] job_pointers& of(bool schedules) noexcept {
    return schedules ? of_schedules : of_jobs;
  }
  [[nodiscard]] job_pointers const& of(bool schedules) const noexcept {
    return schedules ? of_schedules : of_jobs;
  }
  [[nodiscard]] job_pointers& of(scanned_queue const& q) noexcept { return of(q.schedules); }
};

}  // namespace weir::detail

#endif
