// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_TEST_SIMULATION_QUEUE_DEFECTS_HPP
#define WEIR_TEST_SIMULATION_QUEUE_DEFECTS_HPP

#include "driver.hpp"
#include "weir/command/jobs.hpp"

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace weir::testing::simulation {

/// What a store might get wrong about queues.
struct queue_defects {
  explicit queue_defects(int w) : which{w} {}

  template <class Store>
  result<command::enqueue_jobs::result> step(command::enqueue_jobs c, Store& s) {
    std::vector<new_job> jobs{c.jobs.begin(), c.jobs.end()};
    for (auto& j : jobs) {
      if (which == 0) j.delay /= 2;
      if (which == 1) j.strategy = unique_strategy::none;
      if (which == 1) j.unique_key = {};
      if (which == 2 && dead_keys.contains(std::string{j.unique_key})) {
        return command::enqueue_jobs::result(
            jobs.size(),
            enqueued{enqueue_outcome::duplicate, dead_keys[std::string{j.unique_key}]});
      }
    }
    c.jobs = jobs;
    if (which == 3 && ++calls % 16 == 0) {
      return command::enqueue_jobs::result(jobs.size(), enqueued{});
    }
    return s.execute(c);
  }
  template <class Store>
  result<dequeued> step(command::dequeue_jobs c, Store& s) {
    if (which == 4) c.lease /= 2;
    if (which == 17) c.lease *= 3;
    if (which == 5) c.sequence = 0;
    if (which == 16) return second_best(c, s);
    auto a = s.execute(c);
    if (a.has_error()) return a;
    for (auto& j : a.value().jobs) {
      if (which == 4) j.expires_in *= 2;
      if (which == 6) j.fence = 1;
      if (which == 7 && j.attempt > 1) --j.attempt;
      if (which == 2) keys[j.id] = j.unique_key;
    }
    return a;
  }
  template <class Store>
  result<command::complete_jobs::result> step(command::complete_jobs const& c, Store& s) {
    auto a = s.execute(c);
    if (which != 8 || a.has_error()) return a;
    for (std::size_t i = 0; i != c.jobs.size(); ++i) {  // whoever completes it, it is completed
      auto const now = s.execute(command::find_job{.queue = c.queue, .id = c.jobs[i].id});
      if (!now.value() || now.value()->state != job_state::leased) continue;
      auto const item = finished_job{c.jobs[i].id, now.value()->fence, {}};
      static_cast<void>(s.execute(command::complete_jobs{.queue = c.queue, .jobs = {&item, 1}}));
      a.value()[i] = complete_outcome::completed;
    }
    return a;
  }
  template <class Store>
  result<hint> step(command::bury_job const& c, Store& s) {
    auto a = s.execute(c);
    if (which == 2 && a.has_value() && !keys[c.id].empty()) dead_keys[keys[c.id]] = c.id;
    return a;
  }
  template <class Store>
  result<hint> step(command::snooze_job const& c, Store& s) {
    if (which != 9) return s.execute(c);
    auto const a = s.execute(command::requeue_job{
        .queue = c.queue, .id = c.id, .fence = c.fence, .delay = c.delay, .reason = {}});
    if (a.has_error()) return a.error();
    return hint{};
  }
  template <class Store>
  result<started> step(command::start_job const& c, Store& s) {
    auto a = s.execute(c);
    if (which == 10 && a.has_value()) a.value().outcome = start_outcome::started;
    return a;
  }
  template <class Store>
  result<visible_queues> step(command::scan_visible_queues const& c, Store& s) {
    auto a = s.execute(c);
    if (which == 11 && a.has_value()) std::erase(a.value().queues, "tenant 0");
    return a;
  }
  template <class Store>
  result<lease_renewal> step(command::extend_lease const& c, Store& s) {
    auto a = s.execute(c);
    if (which == 12 && a.has_error()) return lease_renewal{c.lease};
    return a;
  }
  template <class Store>
  result<replayed> step(command::replay_dead_letter const& c, Store& s) {
    if (which == 13) return replayed{};
    return s.execute(c);
  }
  template <class Store>
  result<hint> step(command::pause_queue const& c, Store& s) {
    if (which == 14) return hint{};
    return s.execute(c);
  }
  template <class Store>
  result<cancel_outcome> step(command::cancel_job c, Store& s) {
    if (which == 15) c.running = true;
    return s.execute(c);
  }

  template <class Store>
  result<dequeued> second_best(command::dequeue_jobs const& c, Store& s) {
    auto const visible = s.execute(command::peek_jobs{.queue = c.queue, .limit = 2});
    if (visible.has_error() || visible.value().size() < 2) return s.execute(c);
    auto got = s.execute(command::obtain_lease{
        .queue = c.queue, .id = visible.value().back().id, .holder = c.holder, .lease = c.lease});
    if (got.has_error() || !got.value()) return s.execute(c);
    dequeued d;
    d.jobs.push_back(std::move(*got.value()));
    return d;
  }

  int which;
  std::uint64_t calls = 0;
  std::map<job_id, std::string> keys;
  std::map<std::string, job_id> dead_keys;
};

inline constexpr defect known_queue_defects[] = {
    {0, "R4", "jobs vest after half of their delay"},
    {1, "F17", "unique keys are not looked at"},
    {2, "F14", "a dead letter keeps its unique key"},
    {3, "R4", "now and then an acknowledged enqueue is not stored"},
    {4, "F4", "leases end after half of their time"},
    {5, "F54", "a dequeue that is asked again leases more jobs"},
    {6, "F35", "every lease has the same fence"},
    {7, "F36", "an attempt is not counted when claimed"},
    {8, "F34", "a completion after the lease was lost ends its successor's job"},
    {9, "F33", "a snooze counts as a failure"},
    {10, "R2", "two jobs of one run lock start"},
    {11, "F48", "a queue with visible jobs is not found by the scan"},
    {12, "R5", "a lease that is over is extended"},
    {13, "F40", "a replay is acknowledged and not done"},
    {14, "R6", "a pause is acknowledged and not done"},
    {15, "R4", "cancelling ends running jobs, too"},
    {16, "R4", "the second best job is given out first"},
    {17, "F28", "a lease lasts longer than it was asked for"},
};

}  // namespace weir::testing::simulation

#endif
