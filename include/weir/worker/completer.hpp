// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_WORKER_COMPLETER_HPP
#define WEIR_WORKER_COMPLETER_HPP

#include "weir/detail/spawn.hpp"
#include "weir/limits.hpp"
#include "weir/worker/core.hpp"

#include <boost/asio/awaitable.hpp>
#include <boost/config.hpp>

#include <algorithm>
#include <cstddef>
#include <exception>
#include <functional>
#include <iterator>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace weir::detail {

/// Stores the results of jobs that ended well. What ends while a command is on its way travels
/// together in the next one, so batches grow with the load and a single job never waits for
/// company.
class completer {
 public:
  explicit completer(std::shared_ptr<worker_core> core) : core_{std::move(core)} {}

  /// Its outcome's text is to be stored at the next `flush`.
  void add(std::shared_ptr<active_job> const& job) {
    (core_->store.executes_now() ? at_once_ : line_of(job->queue).waiting).push_back(job);
  }

  /// Stores what was added.
  static void flush(std::shared_ptr<completer> const& self) {
    self->store_now();
    for (auto const& queue : std::exchange(self->idle_, {})) {
      try {
        self->core_->begin(store(self, queue));
      } catch (...) {
        self->give_up(queue, std::current_exception());
      }
    }
  }

 private:
  using request = question<command::complete_jobs>;
  using outcome_list = result<command::complete_jobs::result>;

  using done = std::shared_ptr<active_job>;
  struct queue_line {
    std::vector<done> waiting;
    std::shared_ptr<std::vector<done>> batch{};  ///< on its way
    bool busy = false;
  };
  /// The line of the queue, which is begun at the next `flush` if it is new.
  queue_line& line_of(std::string const& queue) {
    auto& line = lines_[queue];
    if (!line.busy) idle_.push_back(queue);
    line.busy = true;
    return line;
  }

  /// Without a line and a coroutine, where the store executes at once: one command for those of a
  /// queue. Those that are not stored get into their queue's line.
  void store_now() {
    auto all = std::exchange(at_once_, {});
    // Those of a queue are to stand together, whatever ended between them.
    auto const in_order = [](done const& a, done const& b) { return a->queue < b->queue; };
    if (!std::ranges::is_sorted(all, in_order)) std::ranges::sort(all, in_order);
    for (std::span<done> rest{all}; !rest.empty();) {
      auto const& queue = rest.front()->queue;
      auto const others =
          std::ranges::find_if(rest, [&](auto const& d) { return d->queue != queue; });
      auto const batch =
          rest.first(fitting(rest.first(static_cast<std::size_t>(others - rest.begin()))));
      rest = rest.subspan(batch.size());
      try {
        if (!stored_now(queue, batch)) {
          auto& waiting = line_of(queue).waiting;
          waiting.insert(waiting.end(), batch.begin(), batch.end());
        }
      } catch (...) {
        give_up(batch, std::current_exception());
      }
    }
    all.clear();
    if (at_once_.empty()) at_once_.swap(all);
  }

  /// False: they are not stored. They are not asked for while others of their queue wait for it.
  [[nodiscard]] bool stored_now(std::string const& queue, std::span<done> batch) {
    if (lines_.contains(queue)) return false;
    auto const asked = request_of(batch);
    request complete{{.queue = queue, .jobs = asked.views}};
    core_->ask_now(complete);
    if (!complete.error) settle(batch, complete.answer);
    if (complete.error == condition::transient) core_->tell_failure(complete.error, queue);
    return !complete.error;
  }

  // Inlined by g++ 12 at -O3 in two translation units, it cannot be linked.
  BOOST_NOINLINE static boost::asio::awaitable<void> store(std::shared_ptr<completer> self,
                                                           std::string queue) {
    try {
      for (;;) {
        auto const batch = next_batch(self->lines_[queue]);
        if (batch->empty()) break;
        auto const asked = request_of(*batch);
        request complete{{.queue = queue, .jobs = asked.views}};
        co_await self->core_->ask(complete, asked.until);
        if (refused(complete.error)) {
          auto apart = self->complete_apart(queue, *batch, complete.error);
          co_await std::move(apart);
        } else {
          self->settle(*batch, complete.answer);
        }
      }
      self->lines_.erase(queue);
    } catch (...) {
      self->give_up(queue, std::current_exception());
    }
  }

  /// How many of them one command may have; the rest goes with the next one.
  [[nodiscard]] static std::size_t fitting(std::span<done const> waiting) {
    std::size_t n = 0;
    for (std::size_t bytes = 0; n != waiting.size() && n != limits::batch; ++n) {
      bytes += waiting[n]->outcome.text.size();
      if (n != 0 && bytes > limits::batch_bytes) break;
    }
    return n;
  }
  [[nodiscard]] static std::shared_ptr<std::vector<done>> next_batch(queue_line& line) {
    auto& waiting = line.waiting;
    auto const end = waiting.begin() + static_cast<std::ptrdiff_t>(fitting(waiting));
    line.batch = std::make_shared<std::vector<done>>(std::make_move_iterator(waiting.begin()),
                                                     std::make_move_iterator(end));
    waiting.erase(waiting.begin(), end);
    return line.batch;
  }

  /// There was no memory to go on with: what was done is not stored, and their leases end.
  void give_up(std::string const& queue, std::exception_ptr const& why) {
    auto const line = std::move(lines_[queue]);
    lines_.erase(queue);
    if (line.batch) give_up(*line.batch, why);
    give_up(line.waiting, why);
  }
  void give_up(std::span<done const> all, std::exception_ptr const& why) {
    auto const reason = reason_of(why);
    for (auto const& d : all) {
      if (d->settled) continue;
      core_->tell(worker_event_kind::lease_lost, *d, reason);
      core_->settle(*d);
    }
  }

  /// Empty without memory for it.
  [[nodiscard]] static std::string reason_of(std::exception_ptr const& why) noexcept try {
    return error_of(why).message();
  } catch (...) {
    return {};
  }

  /// A view of each, for as long as the command needs it, and asking until the last of the leases
  /// is over.
  struct asked_for {
    std::vector<finished_job> views;
    steady_time until = steady_time::min();
  };
  [[nodiscard]] static asked_for request_of(std::span<done const> batch) {
    asked_for out;
    out.views.reserve(batch.size());
    for (auto const& d : batch) {
      out.views.push_back({.id = d->job.id, .fence = d->job.fence, .result = d->outcome.text});
      out.until = std::max(out.until, d->deadline);
    }
    return out;
  }

  /// Does the store refuse the command because of its size, or for something that is wrong with
  /// one of its jobs?
  [[nodiscard]] static bool refused(error_code ec) noexcept {
    return ec == condition::bad_input || ec == errc::store_corrupt;
  }

  /// Completes jobs that were refused together, each half by itself, so that none costs another
  /// anything (F59). One that was refused alone is completed without its result (F62).
  boost::asio::awaitable<void> complete_apart(std::string const& queue, std::span<done> batch,
                                              error_code why) {
    auto first = batch.first(batch.size() / 2);
    if (batch.size() == 1 && !batch.front()->outcome.text.empty()) {
      core_->tell(worker_event_kind::result_dropped, *batch.front(), why.message());
      batch.front()->outcome.text.clear();
    } else if (batch.size() == 1) {
      settle(batch, outcome_list{why});
      co_return;
    }
    for (auto const half : {first, batch.subspan(first.size())}) {
      if (half.empty()) continue;
      auto const asked = request_of(half);
      request complete{{.queue = queue, .jobs = asked.views}};
      co_await core_->ask(complete, asked.until);
      if (refused(complete.error)) {
        auto apart = complete_apart(queue, half, complete.error);
        co_await std::move(apart);
      } else {
        settle(half, complete.answer);
      }
    }
  }

  void settle(std::span<done> batch, outcome_list const& outcomes) {
    auto now = steady_time::min();
    for (std::size_t i = 0; i != batch.size(); ++i) settle(*batch[i], outcomes, i, now);
  }

  void settle(active_job& job, outcome_list const& outcomes, std::size_t i, steady_time& now) {
    auto& core = *core_;
    if (outcomes.has_error()) {
      core.tell(worker_event_kind::lease_lost, job, outcomes.error().message());
    } else if (outcomes.value()[i] == complete_outcome::lease_lost) {
      core.tell(worker_event_kind::lease_lost, job);
    } else {
      if (outcomes.value()[i] == complete_outcome::completed_without_result) {
        core.tell(worker_event_kind::result_dropped, job, result_had_no_room);
        job.outcome.text.clear();
      }
      worker_event event;
      event.kind = worker_event_kind::completed;
      event.queue = job.queue;
      event.job = &job.job;
      event.result = job.outcome.text;
      event.took = core.took(job, now);
      core.tell(event);
    }
    core.settle(job);
  }

  std::shared_ptr<worker_core> core_;
  std::map<std::string, queue_line, std::less<>> lines_;
  std::vector<done> at_once_;      ///< kept for its memory
  std::vector<std::string> idle_;  ///< queues in which something waits, and nothing is on its way
};

}  // namespace weir::detail

#endif
