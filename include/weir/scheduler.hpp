// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_SCHEDULER_HPP
#define WEIR_SCHEDULER_HPP

#include "weir/clock/system.hpp"
#include "weir/concept.hpp"
#include "weir/detail/config.hpp"
#include "weir/error.hpp"
#include "weir/id_source.hpp"
#include "weir/schedule_event.hpp"
#include "weir/scheduler/desk.hpp"
#include "weir/scheduler/firing.hpp"
#include "weir/scheduler/record.hpp"
#include "weir/worker.hpp"
#include "weir/worker/options.hpp"
#include "weir/worker_event.hpp"

#include <memory>
#include <utility>

namespace weir {

/// Fires the schedules of a store: enqueues the jobs of the ticks that have come. Any number of
/// schedulers may run, in any processes, also beside each other; each tick becomes one job. It runs
/// no job itself: those are for workers.
///
///     weir::scheduler scheduler{store};
///     co_await scheduler.async_run();
///
/// It is a worker whose jobs are the schedules. A tick comes within milliseconds of its instant
/// where the store gives hints, within `options.poll` otherwise; if a scheduler dies while it fires
/// a schedule, another goes on when the lease is over (`options.lease`). Whether a tick has come is
/// decided by this host's date. Where that is behind the store's, the schedule waits for it, and is
/// left to others from time to time. Where it is ahead of that of the host that booked the tick, it
/// is left to others for a quarter of an hour at most.
///
/// A host whose time zone database is older than that by which a tick was booked, or has no such
/// zone, leaves the schedule to others and says so in the log; ten minutes after the tick, one with
/// an older database fires it all the same. Ticks that come too late are said in the log, too.
///
/// Thread-safety: set observers before `async_run`; `stop` may be called from any thread.
template <class Store, class Clock = system_clock>
class scheduler {
  static_assert(host_clock<Clock>, "weir::scheduler: this clock does not model weir::host_clock");

 public:
  using store_type = Store;  ///< where the schedules are
  using clock_type = Clock;  ///< how it waits, and what date it is

  /// @param store   where the schedules, and the queues of their jobs are; copied
  /// @param options as a worker's, checked by `async_run`
  ///                (`queues` and `shards` must be empty, otherwise it is `invalid_option`:
  ///                a scheduler fires all schedules)
  /// @param clock   how it waits, and what date it is
  /// @param ids     where its name as a holder, and all that is random, comes from
  explicit scheduler(Store store, worker_options options = {}, Clock clock = Clock{},
                     id_source ids = id_source{})
      : worker_{store, options, clock, default_retry(), ids} {
    auto desk = std::make_shared<detail::schedule_desk>(
        detail::schedule_store::of(std::move(store)),
        [clock = std::move(clock)] { return clock.system_now(); }, std::move(ids));
    worker_.fire_schedules({schedule_kind, detail::place_kind},
                           std::make_shared<detail::schedule_handler>(std::move(desk), audience_));
  }

  /// Sets who is told of what is fired, skipped and missed.
  void on_event(schedule_observer observer) { audience_->set(std::move(observer)); }
  /// Sets who is told of everything else, as a worker's: failures of the store among it.
  void on_worker_event(worker_observer observer) { worker_.on_event(std::move(observer)); }

  /// As `worker::async_run`.
  ///
  /// @param token completes with `void(error_code)`
  template <class Token = typename worker<Store, Clock>::default_token>
  WEIR_OPERATION auto async_run(Token&& token = Token{}) {
    return worker_.async_run(std::forward<Token>(token));
  }

  /// As `worker::stop`.
  void stop() { worker_.stop(); }

 private:
  static default_retry_backoff default_retry() {
    return default_retry_backoff{
        capped_backoff{exponential_backoff{std::chrono::seconds{1}}, std::chrono::minutes{1}}};
  }

  std::shared_ptr<detail::schedule_audience> audience_ =
      std::make_shared<detail::schedule_audience>();
  worker<Store, Clock> worker_;
};

}  // namespace weir

#endif
