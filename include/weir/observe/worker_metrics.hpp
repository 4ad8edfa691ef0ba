// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_OBSERVE_WORKER_METRICS_HPP
#define WEIR_OBSERVE_WORKER_METRICS_HPP

#include "weir/error.hpp"
#include "weir/observe/metrics_state.hpp"
#include "weir/time.hpp"
#include "weir/worker_event.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

namespace weir::detail {

/// Counts the events of a run of a worker, which copies it, as each observer: so its events come
/// one at a time.
class worker_metrics {
 public:
  worker_metrics(std::shared_ptr<metrics_state> to, worker_observer next)
      : to_{std::move(to)},
        next_{std::move(next)} {}
  worker_metrics(worker_metrics const& other) : to_{other.to_}, next_{other.next_} {}
  worker_metrics& operator=(worker_metrics const&) = delete;
  ~worker_metrics() {
    to_->forgotten.add(running_.value());
    is_away(false);
  }

  void operator()(worker_event const& e) {
    if (auto* const shard = to_->shard()) count(*shard, e);
    if (next_) next_(e);
  }

 private:
  using kind = worker_event_kind;

  void count(metrics_shard& shard, worker_event const& e) {
    switch (e.kind) {
      case kind::started: begin(shard, e); return;
      case kind::starved: to_->starved.add(e.count); return;
      case kind::store_failed:
        to_->store_failures.add();
        if (e.error == errc::store_unavailable) is_away(true);
        return;
      case kind::store_recovered: is_away(false); return;
      case kind::damaged:
      case kind::result_dropped: series(shard, e).events[place(e.kind)].add(e.count); return;
      case kind::queue_snoozed:
        series(shard, e).events[place(e.kind)].add(e.count);
        refuse(shard, e);
        return;
      case kind::snoozed:
        end(shard, e);
        refuse(shard, e);
        return;
      case kind::completed:
      case kind::retried:
      case kind::returned:
      case kind::dead_lettered:
      case kind::lease_lost: end(shard, e); return;
    }
  }
  void begin(metrics_shard& shard, worker_event const& e) {
    auto& s = series(shard, e);
    s.events[place(e.kind)].add();
    s.age.add(e.job->age);
    // One that came back, or was put off, has waited for something else.
    if (e.found_by != look_cause::none && e.job->attempt == 1 && e.job->snoozes == 0) {
      shard.hint_lag[e.found_by == look_cause::hint ? 0 : 1].add(e.job->age);
    }
    running_.add();
    is_away(false);
  }
  void end(metrics_shard& shard, worker_event const& e) {
    auto& s = series(shard, e);
    if (e.kind == kind::completed) is_away(false);
    s.events[place(e.kind)].add(e.count);
    if (e.took < duration::zero()) return;  // its handler had not started
    s.ran.add(e.took);
    running_.add(std::uint64_t{0} - 1);
  }
  void refuse(metrics_shard& shard, worker_event const& e) {
    if (e.refused_by == refusing_policy::none) return;  // no limit did
    series(shard, e).refusals[static_cast<std::size_t>(e.refused_by)].add();
  }
  void is_away(bool now) noexcept {
    if (away_.load(std::memory_order_relaxed) == now) return;
    away_.store(now, std::memory_order_relaxed);
    to_->stores_away.fetch_add(now ? 1U : ~0U, std::memory_order_relaxed);
  }

  [[nodiscard]] job_cells& series(metrics_shard& shard, worker_event const& e) {
    return to_->series_of(shard, e.queue,
                          e.job == nullptr ? std::string_view{} : std::string_view{e.job->kind});
  }
  [[nodiscard]] static std::size_t place(kind k) noexcept { return static_cast<std::size_t>(k); }

  std::shared_ptr<metrics_state> const to_;
  worker_observer next_;
  metric_cell running_;
  std::atomic<bool> away_{false};
};

}  // namespace weir::detail

#endif
