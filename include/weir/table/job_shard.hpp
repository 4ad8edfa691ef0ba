// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_TABLE_JOB_SHARD_HPP
#define WEIR_TABLE_JOB_SHARD_HPP

#include "weir/command/jobs.hpp"
#include "weir/rule/job_machine.hpp"
#include "weir/rule/jobs.hpp"
#include "weir/table/job_budget.hpp"
#include "weir/table/job_queue.hpp"
#include "weir/table/job_rows.hpp"
#include "weir/table/queue_registry.hpp"
#include "weir/time.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace weir::detail {

/// The jobs of one shard. Executes every command, for one thread at a time. The fence is the
/// shard's and never forgotten.
template <class T>
class basic_job_shard : public rule::job_machine<basic_table_rows<T>> {
  using machine = rule::job_machine<basic_table_rows<T>>;
  using machine::rows_;

 public:
  explicit basic_job_shard(job_allowance allowance, std::size_t remembered = remembered_queues)
      : machine{allowance, remembered} {}

  /// Has some queue of a scan become due, or the first one due earlier, since this was asked last?
  [[nodiscard]] bool take_event(bool schedules) noexcept {
    return rows_.scans.of(schedules).take_event();
  }
  /// The holders whose jobs were cancelled while they ran, since this was asked last.
  [[nodiscard]] bool any_cancelled() const noexcept { return !rows_.cancelled.empty(); }
  [[nodiscard]] std::vector<std::string> take_cancelled() noexcept {
    return std::exchange(rows_.cancelled, {});
  }
  [[nodiscard]] bool any_due(bool schedules, time_point now) const noexcept {
    return rows_.scans.of(schedules).any_due(now);
  }

  // What changes nothing, and so need not be done: the answer at `now`, if it is the same, but for
  // how long things take, until `latest`. Empty: it has to be done.

  [[nodiscard]] std::optional<dequeued> rests(command::dequeue_jobs const& c, time_point now,
                                              time_point latest) {
    dequeued out;
    auto* const q = rows_.find_queue(c.queue);
    if (q == nullptr) return out;
    if (c.sequence != 0) {
      auto const* const holder = q->holders.find(c.holder);
      if (holder != nullptr && holder->sequence != 0) return std::nullopt;  // repeat or forget
    }
    auto const least = q->index.min_vesting();
    out.held = q->held(now);
    bool const gives = !q->held(latest) && least && rule::job_visible(*least, latest);
    if (gives || q->pointer != least || out.held != q->held(latest)) return std::nullopt;
    out.next_in = machine::until(least, now);
    return out;
  }

  [[nodiscard]] std::optional<std::optional<duration>> rests(command::update_queue_pointer const& c,
                                                             time_point now, time_point) {
    auto* const q = rows_.find_queue(c.queue);
    if (q == nullptr) return std::optional<duration>{};
    auto const least = q->index.min_vesting();
    if (q->pointer != least) return std::nullopt;
    return machine::until(least, now);
  }

  [[nodiscard]] std::optional<std::uint32_t> rests(command::gc_stale_pointers const& c, time_point,
                                                   time_point latest) {
    for (auto* const pointers : {&rows_.scans.of_jobs, &rows_.scans.of_schedules}) {
      for (auto it = pointers->begin(); it != pointers->end(); ++it) {
        auto& q = static_cast<memory_queue&>(*it);
        if (!rule::pointer_stale(q.due, true, c.grace, latest)) break;
        if (q.index.empty()) return std::nullopt;
      }
    }
    return 0U;
  }

  /// Is there anything that the next step will forget, because its time is over?
  [[nodiscard]] bool forgets(time_point now) const noexcept {
    auto const& kept = rows_.common.kept;
    auto const& expiring = rows_.common.expiring;
    return (!kept.empty() && kept.begin()->gone(now)) ||
           (!expiring.empty() && expiring.begin()->expiry <= now);
  }

  /// How many of the command's jobs there is no record of.
  [[nodiscard]] std::size_t unknown(command::enqueue_jobs const& c, time_point now) {
    return unknown(c.queue, c.jobs, now);
  }
  [[nodiscard]] std::size_t unknown(command::relay_job const& c, time_point now) {
    return unknown(c.queue, c.next, now) + unknown(c.to, c.jobs, now);
  }

  /// A caller says what time it is, instead of the store's clock: what is live then is not tidied
  /// by steps at other times.
  void told(time_point t) noexcept { rows_.told = t; }

 private:
  friend class job_image;

  [[nodiscard]] std::size_t unknown(std::string_view name, std::span<new_job const> jobs,
                                    time_point now) {
    auto* const q = rows_.find_queue(name);
    if (q == nullptr) return jobs.size();
    return static_cast<std::size_t>(
        std::ranges::count_if(jobs, [&](new_job const& j) { return !rows_.known(*q, j.id, now); }));
  }
};

using job_shard = basic_job_shard<void>;

}  // namespace weir::detail

#endif
