// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_WORKER_COMPLETER_HPP
#define WEIR_WORKER_COMPLETER_HPP

#include "weir/detail/string_hash.hpp"
#include "weir/limits.hpp"
#include "weir/worker/core.hpp"

#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/unordered/unordered_flat_map.hpp>

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <memory>
#include <span>
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
    for (;;) {
      auto batch = self->next_batch(queue);
      if (batch.empty()) break;
      auto const asked = request_of(batch);
      command::complete_jobs const request{.queue = queue, .jobs = asked.views};
      auto const outcomes = co_await self->core_->ask(request, asked.until);
      if (refused(outcomes)) {
        auto apart = self->complete_apart(queue, batch, outcomes.error());
        co_await std::move(apart);
      } else {
        self->settle(batch, outcomes);
      }
    }
    self->lines_.erase(queue);
  }

  /// As many of those that wait as one command may have; the rest goes with the next one.
  [[nodiscard]] std::vector<done> next_batch(std::string const& queue) {
    auto& waiting = lines_[queue].waiting;
    std::size_t n = 0;
    for (std::size_t bytes = 0; n != waiting.size() && n != limits::batch; ++n) {
      bytes += waiting[n].stored.size();
      if (bytes > limits::batch_bytes) break;
    }
    auto const end = waiting.begin() + static_cast<std::ptrdiff_t>(n);
    std::vector<done> batch{std::make_move_iterator(waiting.begin()), std::make_move_iterator(end)};
    waiting.erase(waiting.begin(), end);
    return batch;
  }

  /// A view of each, for as long as the command needs it, and asking until the last of the leases
  /// is over.
  struct asked_for {
    std::vector<finished_job> views;
    steady_time until = steady_time::min();
  };
  [[nodiscard]] static asked_for request_of(std::span<done const> batch) {
    asked_for out;
    for (auto const& d : batch) {
      out.views.push_back({.id = d.job->job.id, .fence = d.job->job.fence, .result = d.stored});
      out.until = std::max(out.until, d.job->deadline);
    }
    return out;
  }

  /// Does the store refuse the command because of its size, or for something that is wrong with
  /// one of its jobs?
  template <class Outcomes>
  [[nodiscard]] static bool refused(Outcomes const& outcomes) noexcept {
    return outcomes.has_error() &&
           (outcomes.error() == condition::bad_input || outcomes.error() == errc::store_corrupt);
  }

  /// Completes jobs that were refused together, each half by itself, so that none costs another
  /// anything (F59). One that was refused alone is completed without its result (F62).
  boost::asio::awaitable<void> complete_apart(std::string const& queue, std::span<done> batch,
                                              error_code why) {
    auto first = batch.first(batch.size() / 2);
    if (batch.size() == 1 && !batch.front().stored.empty()) {
      core_->tell(worker_event_kind::result_dropped, *batch.front().job, why.message());
      batch.front().stored.clear();
    } else if (batch.size() == 1) {
      settle(batch, result<command::complete_jobs::result>{why});
      co_return;
    }
    for (auto const half : {first, batch.subspan(first.size())}) {
      if (half.empty()) continue;
      auto const asked = request_of(half);
      command::complete_jobs const request{.queue = queue, .jobs = asked.views};
      auto const outcomes = co_await core_->ask(request, asked.until);
      if (refused(outcomes)) {
        auto apart = complete_apart(queue, half, outcomes.error());
        co_await std::move(apart);
      } else {
        settle(half, outcomes);
      }
    }
  }

  template <class Outcomes>
  void settle(std::span<done> batch, Outcomes const& outcomes) {
    for (std::size_t i = 0; i != batch.size(); ++i) settle(batch[i], outcomes, i);
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
  boost::unordered_flat_map<std::string, queue_line, string_hash> lines_;
  std::vector<std::string> idle_;  ///< queues in which something waits, and nothing is on its way
};

}  // namespace weir::detail

#endif
