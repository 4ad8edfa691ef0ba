// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_WORKER_RUNS_HPP
#define WEIR_WORKER_RUNS_HPP

#include "weir/command/buckets.hpp"
#include "weir/command/jobs.hpp"
#include "weir/command/permits.hpp"
#include "weir/detail/erased.hpp"
#include "weir/error.hpp"
#include "weir/id_source.hpp"
#include "weir/worker/handler.hpp"
#include "weir/worker/middleware.hpp"
#include "weir/worker/options.hpp"
#include "weir/worker_event.hpp"

#include <boost/asio/any_completion_handler.hpp>
#include <boost/asio/any_io_executor.hpp>

#include <memory>
#include <string_view>
#include <vector>

// The seam of the worker: in front of it are its policies' types and its jobs' types, behind it all
// that it does.
namespace weir::detail {

/// A store as a worker uses it.
using worker_store =
    any_store<command::scan_visible_queues, command::min_vesting_time, command::dequeue_jobs,
              command::obtain_lease, command::update_queue_pointer, command::gc_stale_pointers,
              command::start_job, command::extend_lease, command::complete_jobs, command::relay_job,
              command::requeue_job, command::snooze_job, command::return_job, command::bury_job,
              command::snooze_queue, command::enqueue_jobs, command::pause_queue,
              command::peek_jobs, command::acquire_permit, command::renew_permit,
              command::release_permit, command::take, command::await_jobs, command::await_permit,
              command::await_cancel>;

/// What each run of a worker begins with.
struct worker_setup {
  worker_store store;
  worker_options options;
  any_clock clock;
  any_backoff backoff;
  id_source ids;
  boost::asio::any_io_executor executor;  ///< of the bookkeeping
  worker_observer observer{};
  std::vector<middleware> around{};
  bool fires_schedules = false;  ///< serves queues of schedules, and no others
};

/// The handlers of a worker, and its runs in progress.
class worker_runs {
 public:
  worker_runs();

  void handle(std::string_view kind, std::shared_ptr<any_handler const> handler);

  /// `worker::async_run`.
  ///
  /// @param handlers where handlers run
  void begin(worker_setup const& setup, boost::asio::any_io_executor handlers,
             boost::asio::any_completion_handler<void(error_code)> completion);

  /// Ends the runs in progress.
  void stop();

 private:
  struct state;
  std::shared_ptr<state> state_;
};

}  // namespace weir::detail

#endif
