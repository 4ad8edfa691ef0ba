// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_OBSERVE_PROMETHEUS_HPP
#define WEIR_OBSERVE_PROMETHEUS_HPP

#include "weir/command/list.hpp"
#include "weir/detail/config.hpp"
#include "weir/error.hpp"
#include "weir/observe/collection.hpp"
#include "weir/observe/metric_writer.hpp"
#include "weir/observe/metrics_options.hpp"
#include "weir/observe/metrics_shard.hpp"
#include "weir/observe/metrics_state.hpp"
#include "weir/observe/metrics_text.hpp"
#include "weir/observe/observed.hpp"
#include "weir/observe/worker_metrics.hpp"
#include "weir/schedule_event.hpp"
#include "weir/time.hpp"
#include "weir/worker_event.hpp"

#include <boost/asio/async_result.hpp>
#include <boost/asio/deferred.hpp>
#include <boost/system/system_error.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace weir {

/// Counts what weir does, for Prometheus or what else reads its format.
///
///     weir::prometheus_metrics metrics;
///     weir::observed store{weir::redis_store{…}, metrics};  // every command
///     worker.on_event(metrics.watch_worker());              // every job
///     scheduler.on_event(metrics.watch_scheduler());        // every tick
///     co_await metrics.async_collect(store);                // queues, now and then
///     reply(metrics.text(), weir::prometheus_metrics::text_type);
///
/// docs/operations.md has the metrics, and alerts made of them. Labels are printable ASCII, and the
/// number of series is bounded (`metrics_options::most_series`), whatever queues and kinds there
/// are.
///
/// A handle: copies count together. Thread-safe.
class prometheus_metrics {
 public:
  /// The content type of `text`.
  static constexpr std::string_view text_type = "text/plain; version=0.0.4; charset=utf-8";
  /// The content type of `openmetrics`.
  static constexpr std::string_view openmetrics_type =
      "application/openmetrics-text; version=1.0.0; charset=utf-8";

  /// @param options what is counted by
  /// Throws `boost::system::system_error` (`invalid_option`) for options outside their ranges.
  explicit prometheus_metrics(metrics_options options = {}) {
    if (auto const ec = validate(options)) throw boost::system::system_error{ec};
    state_ = std::make_shared<detail::metrics_state>(std::move(options));
  }

  /// Is this command to be timed, if the store executes it in the calling thread? Of those one in
  /// 16 is, the first of a thread among them: two readings of the clock cost more than all else
  /// that is counted of it.
  template <class C>
    requires(detail::every_command::place_of<C>() < detail::every_command::size)
  [[nodiscard]] bool times(C const&) const noexcept {
    auto* const shard = state_->shard();
    if (shard == nullptr) return false;
    return shard->commands[detail::every_command::place_of<C>()].asked_in_place++ % 16 == 0;
  }

  /// Counts a command: what `observed` calls.
  template <class C>
    requires(detail::every_command::place_of<C>() < detail::every_command::size)
  void executed([[maybe_unused]] C const& c, error_code ec,
                [[maybe_unused]] typename C::result const& answer, duration took) const noexcept {
    auto* const shard = state_->shard();
    if (shard == nullptr) return;
    auto& cells = shard->commands[detail::every_command::place_of<C>()];
    cells.endings[static_cast<std::size_t>(detail::ending_of(ec))].add();
    if (took >= duration::zero()) cells.took.add(took);
    if (ec) return;
    if constexpr (std::is_same_v<C, command::acquire_permit>) {
      shard->permits[answer.granted ? 1 : 0].add();
    } else if constexpr (std::is_same_v<C, command::acquire_lock>) {
      shard->locks[answer.granted ? 1 : 0].add();
    } else if constexpr (std::is_same_v<C, command::take>) {
      shard->takes[answer.allowed ? 1 : answer.shed ? 2 : 0].add();
    } else if constexpr (std::is_same_v<C, command::enqueue_jobs>) {
      count_enqueues(*shard, c.queue, std::span{answer.data(), answer.size()});
    } else if constexpr (std::is_same_v<C, command::relay_job>) {
      std::span const all{answer.jobs.data(), answer.jobs.size()};
      if (all.empty()) return;
      count_enqueues(*shard, c.to, all.first(c.jobs.size()));
      count_enqueues(*shard, c.queue, all.subspan(c.jobs.size()));
    } else if constexpr (std::is_same_v<C, command::dequeue_jobs>) {
      if (answer.jobs.empty()) return;
      count(*shard, c.queue,
            [&](detail::queue_cells& queue) { queue.claimed.add(answer.jobs.size()); });
    }
  }

  /// Counts the events of a worker: to be given to `worker::on_event`, one for each worker.
  ///
  /// @param next is told of each event after it was counted; may be empty
  [[nodiscard]] worker_observer watch_worker(worker_observer next = {}) const {
    return detail::worker_metrics{state_, std::move(next)};
  }

  /// Counts the ticks of schedules: to be given to `scheduler::on_event`.
  ///
  /// @param next is told of each event after it was counted; may be empty
  [[nodiscard]] schedule_observer watch_scheduler(schedule_observer next = {}) const {
    return [to = state_, next = std::move(next)](schedule_event const& e) {
      to->note_firing(e);
      if (next) next(e);
    };
  }

  /// Reads the counts of a store's queues: one command for each, so every 15 s rather than every
  /// second. What was read before stands until all of it is there.
  ///
  /// @param store a `job_store`
  /// @param token completes with `void(error_code, hint)`
  /// @param most  how many queues are looked at; the others are counted in `weir_queues_left_out`
  /// Errors: the store's; `operation_aborted`. Then nothing is changed.
  template <class Store, class Token = boost::asio::deferred_t>
  WEIR_OPERATION auto async_collect(Store store, Token&& token = Token{},
                                    std::uint32_t most = 1000) const {
    return boost::asio::async_initiate<Token, void(error_code, hint)>(
        detail::collection{detail::counted_store::of(std::move(store)), state_}, token, most);
  }

  /// Reads who has the permits of these limits: one command for each. What was read before stands
  /// until all of it is there.
  ///
  /// @param limiter a `weir::limiter`, whatever its own limit is
  /// @param names   keys of limits, which are their labels, too; a worker's limits are known by
  ///                their `concurrency_key`
  /// @param token   completes with `void(error_code, hint)`
  /// Errors: those of `limiter::async_inspect`; `operation_aborted`. Then nothing is changed.
  template <class Limiter, class Token = boost::asio::deferred_t>
  WEIR_OPERATION auto async_collect_limits(Limiter limiter, std::vector<std::string> names,
                                           Token&& token = Token{}) const {
    return boost::asio::async_initiate<Token, void(error_code, hint)>(
        detail::limit_collection::of(std::move(limiter), state_), token, std::move(names));
  }

  /// Notes who has the permits of a limit that was read otherwise: the answer of
  /// `limiter::async_inspect`.
  ///
  /// @param name   of the limit, as a label
  /// @param census what was read
  void set_limit(std::string_view name, permit_census const& census) const {
    state_->note_limit(name, {census.in_use, census.waiting});
  }

  /// Everything, in Prometheus' text format 0.0.4.
  [[nodiscard]] std::string text() const { return write(false); }
  /// Everything, as OpenMetrics 1.0.
  [[nodiscard]] std::string openmetrics() const { return write(true); }

 private:
  void count_enqueues(detail::metrics_shard& shard, std::string_view queue,
                      std::span<enqueued const> jobs) const noexcept {
    if (jobs.empty()) return;
    count(shard, queue, [&](detail::queue_cells& to) {
      for (auto const& one : jobs) to.enqueued[static_cast<std::size_t>(one.outcome)].add();
    });
  }
  template <class Count>
  void count(detail::metrics_shard& shard, std::string_view queue, Count&& add) const noexcept {
    try {
      add(state_->series_of(shard, queue));
    } catch (...) {  // no memory for a series: this one is not counted
    }
  }

  [[nodiscard]] std::string write(bool open) const {
    detail::metric_writer to{open};
    auto const total = state_->total();
    detail::write_commands(to, *total);
    detail::write_jobs(to, *total);
    detail::write_workers(to, *total, *state_);
    detail::write_schedules(to, *state_);
    detail::write_gauges(to, *state_);
    return std::move(to).take();
  }

  std::shared_ptr<detail::metrics_state> state_;
};

}  // namespace weir

#endif
