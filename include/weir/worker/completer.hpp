// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_WORKER_COMPLETER_HPP
#define WEIR_WORKER_COMPLETER_HPP

#include "weir/worker/core.hpp"

#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/unordered/unordered_flat_map.hpp>

#include <algorithm>
#include <cstddef>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace weir::detail {

/// Stores the results of jobs that ended well. What ends while a command is on its way travels
/// together in the next one, so batches grow with the load and a single job never waits for
/// company.
template <class Core>
class completer {
 public:
  explicit completer(std::shared_ptr<Core> core) : core_{std::move(core)} {}

  /// To be stored at the next `flush`.
  void add(std::shared_ptr<active_job> job, std::string stored) {
    auto& line = lines_[job->queue];
    if (!std::exchange(line.busy, true)) idle_.push_back(job->queue);
    line.waiting.push_back({std::move(job), std::move(stored)});
  }

  /// Stores what was added.
  static void flush(std::shared_ptr<completer> const& self) {
    for (auto& queue : std::exchange(self->idle_, {})) {
      boost::asio::co_spawn(self->core_->strand, store(self, std::move(queue)),
                            boost::asio::detached);
    }
  }

 private:
  struct done {
    std::shared_ptr<active_job> job;
    std::string stored;
  };
  struct queue_line {
    std::vector<done> waiting;
    bool busy = false;
  };

  static boost::asio::awaitable<void> store(std::shared_ptr<completer> self, std::string queue) {
    auto& core = *self->core_;
    for (;;) {
      std::vector<done> batch;
      batch.swap(self->lines_[queue].waiting);
      if (batch.empty()) break;
      if (batch.size() > limits::batch) {  // the rest goes with the next one
        auto& rest = self->lines_[queue].waiting;
        rest.assign(std::make_move_iterator(batch.begin() + limits::batch),
                    std::make_move_iterator(batch.end()));
        batch.resize(limits::batch);
      }

      // A view of each, for as long as the command needs it, and asking until the last of the
      // leases is over.
      std::vector<finished_job> views;
      auto until = steady_time::min();
      for (auto const& d : batch) {
        views.push_back({.id = d.job->job.id, .fence = d.job->job.fence, .result = d.stored});
        until = std::max(until, d.job->deadline);
      }
      command::complete_jobs const complete{.queue = queue, .jobs = views};
      auto const outcomes = co_await core.ask(complete, until);
      for (std::size_t i = 0; i != batch.size(); ++i) self->settle(batch[i], outcomes, i);
    }
    self->lines_.erase(queue);
  }

  template <class Outcomes>
  void settle(done& d, Outcomes const& outcomes, std::size_t i) {
    auto& core = *core_;
    if (outcomes.has_error()) {
      core.tell(worker_event_kind::lease_lost, *d.job, outcomes.error().message());
    } else if (outcomes.value()[i] == complete_outcome::lease_lost) {
      core.tell(worker_event_kind::lease_lost, *d.job);
    } else {
      worker_event event;
      event.kind = worker_event_kind::completed;
      event.queue = d.job->queue;
      event.job = &d.job->job;
      event.result = d.stored;
      core.tell(event);
    }
    core.settle(*d.job);
  }

  std::shared_ptr<Core> core_;
  boost::unordered_flat_map<std::string, queue_line> lines_;
  std::vector<std::string> idle_;  ///< queues in which something waits, and nothing is on its way
};

}  // namespace weir::detail

#endif
