// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_OBSERVE_METRICS_TEXT_HPP
#define WEIR_OBSERVE_METRICS_TEXT_HPP

#include "weir/command/jobs.hpp"
#include "weir/observe/metric_writer.hpp"
#include "weir/observe/metrics_shard.hpp"
#include "weir/observe/metrics_state.hpp"
#include "weir/observe/series.hpp"
#include "weir/worker_event.hpp"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>

// Each family of metrics, as text.
namespace weir::detail {

inline void write_commands(metric_writer& to, metrics_shard const& total) {
  auto const names = every_command::names();
  auto const& commands = total.commands;
  auto const asked = [&](std::size_t i) {
    return std::ranges::any_of(commands[i].endings, [](auto const& n) { return n.value() != 0; });
  };
  to.family("weir_commands_total", "counter", "Commands of stores, by what became of them.");
  for (std::size_t i = 0; i != names.size(); ++i) {
    for (std::size_t e = 0; asked(i) && e != command_ending_names.size(); ++e) {
      to.sample({{"command", names[i]}, {"result", command_ending_names[e]}},
                commands[i].endings[e]);
    }
  }
  to.family("weir_command_duration_seconds", "histogram", "From asking a store to its answer.");
  for (std::size_t i = 0; i != names.size(); ++i) {
    if (asked(i)) to.sample({{"command", names[i]}}, commands[i].took);
  }
  to.family("weir_permits_total", "counter", "Asked-for permits of concurrency limits.");
  to.sample({{"result", "granted"}}, total.permits[1]);
  to.sample({{"result", "refused"}}, total.permits[0]);
  to.family("weir_locks_total", "counter", "Asked-for locks.");
  to.sample({{"result", "granted"}}, total.locks[1]);
  to.sample({{"result", "refused"}}, total.locks[0]);
  to.family("weir_takes_total", "counter", "Takes of rate limits.");
  to.sample({{"result", "allowed"}}, total.takes[1]);
  to.sample({{"result", "denied"}}, total.takes[0]);
  to.sample({{"result", "shed"}}, total.takes[2]);
}

[[nodiscard]] inline bool is_of_jobs(worker_event_kind k) noexcept {
  return k != worker_event_kind::starved && k != worker_event_kind::store_failed &&
         k != worker_event_kind::store_recovered;
}

inline void write_jobs(metric_writer& to, metrics_shard const& total) {
  to.family("weir_jobs_enqueued_total", "counter", "Jobs that were to be enqueued.");
  for (auto const& [key, cells] : total.queues.all()) {
    for (std::size_t o = 0; o != cells.enqueued.size(); ++o) {
      if (cells.enqueued[o].value() == 0) continue;
      to.sample({{"queue", key.first}, {"outcome", to_string(static_cast<enqueue_outcome>(o))}},
                cells.enqueued[o]);
    }
  }
  to.family("weir_jobs_claimed_total", "counter", "Jobs that were claimed.");
  for (auto const& [key, cells] : total.queues.all()) {
    to.sample({{"queue", key.first}}, cells.claimed);
  }
  auto const each = [&](auto const& write_one) {
    for (auto const& [key, cells] : total.jobs.all()) write_one(key.first, key.second, cells);
  };
  to.family("weir_job_events_total", "counter", "What workers did with jobs.");
  each([&](auto const& queue, auto const& kind, auto const& cells) {
    for (std::size_t k = 0; k != cells.events.size(); ++k) {
      auto const event = static_cast<worker_event_kind>(k);
      if (is_of_jobs(event)) {
        to.sample({{"queue", queue}, {"kind", kind}, {"event", to_string(event)}}, cells.events[k]);
      }
    }
  });
  to.family("weir_job_refusals_total", "counter",
            "Jobs that a policy of theirs did not let start.");
  each([&](auto const& queue, auto const& kind, auto const& cells) {
    for (std::size_t p = 1; p != cells.refusals.size(); ++p) {
      if (cells.refusals[p].value() == 0) continue;
      to.sample(
          {{"queue", queue}, {"kind", kind}, {"by", to_string(static_cast<refusing_policy>(p))}},
          cells.refusals[p]);
    }
  });
  to.family("weir_job_duration_seconds", "histogram",
            "From the start of a handler until its outcome is stored.");
  each([&](auto const& queue, auto const& kind, auto const& cells) {
    to.sample({{"queue", queue}, {"kind", kind}}, cells.ran);
  });
  to.family("weir_job_age_seconds", "histogram", "From the enqueue of a job to its claim.");
  each([&](auto const& queue, auto const& kind, auto const& cells) {
    to.sample({{"queue", queue}, {"kind", kind}}, cells.age);
  });
}

inline void write_workers(metric_writer& to, metrics_shard const& total,
                          metrics_state const& state) {
  std::uint64_t begun = 0;
  std::uint64_t over = state.forgotten.value();
  for (auto const& [key, cells] : total.jobs.all()) {
    begun += cells.events[static_cast<std::size_t>(worker_event_kind::started)].value();
    over += cells.ran.count();
  }
  to.family("weir_jobs_running", "gauge", "Jobs in the hands of the workers here.");
  to.sample({}, begun - std::min(begun, over));  // threads are read one after the other
  to.family("weir_hint_lag_seconds", "histogram",
            "From the enqueue of a job until a worker that waited had it: told, or by its poll.");
  for (auto const by : {look_cause::hint, look_cause::poll}) {
    to.sample({{"by", to_string(by)}}, total.hint_lag[by == look_cause::hint ? 0 : 1]);
  }
  to.family("weir_leases_starved_total", "counter",
            "Leases whose renewal was late by more than half a lease.");
  to.sample({}, state.starved);
  to.family("weir_store_failures_total", "counter", "Commands of workers that failed.");
  to.sample({}, state.store_failures);
  to.family("weir_workers_without_store", "gauge", "Workers here whose store cannot be reached.");
  to.sample({}, state.stores_away.load(std::memory_order_relaxed));
}

inline void write_schedules(metric_writer& to, metrics_state const& state) {
  std::lock_guard const lock{state.mutex};
  to.family("weir_schedule_ticks_total", "counter", "Ticks of schedules, by what became of them.");
  for (auto const& [name, s] : state.schedules) {
    to.sample({{"schedule", name}, {"outcome", "fired"}}, s.fired);
    to.sample({{"schedule", name}, {"outcome", "missed"}}, s.missed);
    to.sample({{"schedule", name}, {"outcome", "skipped"}}, s.skipped);
  }
  to.family("weir_schedule_lateness_seconds", "histogram",
            "From a tick, and its jitter, until its job is enqueued: the last one of each firing.");
  for (auto const& [name, s] : state.schedules) to.sample({{"schedule", name}}, s.lateness);
  to.family("weir_schedule_unserved_total", "counter",
            "Firings that skipped a tick because nobody claims the job of one before it.");
  for (auto const& [name, s] : state.schedules) to.sample({{"schedule", name}}, s.unserved);
}

inline void write_gauges(metric_writer& to, metrics_state const& state) {
  std::lock_guard const lock{state.mutex};
  using gauges = metrics_state::queue_gauges;
  constexpr std::pair<std::string_view, std::uint64_t gauges::*> states[] = {
      {"pending", &gauges::pending},
      {"leased", &gauges::leased},
      {"completed", &gauges::completed},
      {"dead", &gauges::dead},
      {"cancelled", &gauges::cancelled}};
  to.family("weir_queue_jobs", "gauge", "Jobs by their state, as they were read last.");
  for (auto const& [queue, g] : state.queues) {
    for (auto const& [name, member] : states) {
      to.sample({{"queue", queue}, {"state", name}}, g.*member);
    }
  }
  to.family("weir_queue_oldest_due_seconds", "gauge",
            "For how long the job that is due the longest has waited; 0: none is due.");
  for (auto const& [queue, g] : state.queues) {
    to.sample({{"queue", queue}}, std::chrono::duration<double>(g.oldest_due).count());
  }
  to.family("weir_queues_paused", "gauge", "Queues that are paused.");
  for (auto const& [queue, g] : state.queues) to.sample({{"queue", queue}}, g.paused);
  to.family("weir_queues_left_out", "gauge", "Queues beyond those that are looked at.");
  to.sample({}, state.queues_left_out);
  to.family("weir_limit_permits_in_use", "gauge", "Live permits, as they were read last.");
  for (auto const& [name, g] : state.limits) to.sample({{"limit", name}}, g.in_use);
  to.family("weir_limit_waiting", "gauge", "Who waits for a permit, as it was read last.");
  for (auto const& [name, g] : state.limits) to.sample({{"limit", name}}, g.waiting);
  to.family("weir_limits_left_out_total", "counter",
            "How often a limit beyond those with a series was to be noted.");
  to.sample({}, state.limits_left_out);
}

}  // namespace weir::detail

#endif
