// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_WORKER_JOB_RUN_HPP
#define WEIR_WORKER_JOB_RUN_HPP

#include "weir/worker/completer.hpp"
#include "weir/worker/core.hpp"
#include "weir/worker/gate.hpp"

#include <boost/asio/awaitable.hpp>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/system/system_error.hpp>
#include <boost/unordered/unordered_flat_map.hpp>

#include <algorithm>
#include <exception>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <utility>

namespace weir::detail {

using handler_registry = boost::unordered_flat_map<std::string, std::shared_ptr<any_handler const>>;

/// How a handler ended.
struct handler_outcome {
  enum class ending : std::uint8_t { done, failed, gave_up, snoozed };

  handler_outcome() = default;
  handler_outcome(ending e, std::string t, duration d = {})
      : how{e},
        text{std::move(t)},
        delay{d} {}

  ending how = ending::done;
  std::string text;  ///< done: the result; otherwise the reason
  duration delay{};
};

/// Takes one claimed job from its claim to its outcome.
template <class Core>
class job_run {
 public:
  job_run(std::shared_ptr<Core> core, std::shared_ptr<handler_registry const> handlers)
      : core_{std::move(core)},
        handlers_{std::move(handlers)},
        gate_{core_},
        completer_{std::make_shared<completer<Core>>(core_)} {}

  static boost::asio::awaitable<void> run(std::shared_ptr<job_run> self,
                                          std::shared_ptr<active_job> job) {
    try {
      co_await self->take(job);
    } catch (std::exception const& e) {
      // Out of memory, or a policy's function threw: the attempt has failed, and its lease ends it
      // if nothing else can.
      self->core_->tell(worker_event_kind::lease_lost, *job, e.what());
      self->core_->settle(*job);
    }
  }

 private:
  boost::asio::awaitable<void> take(std::shared_ptr<active_job> job) {
    using verdict = gate_answer::verdict;
    auto& core = *core_;

    auto const found = handlers_->find(job->job.kind);
    if (found == handlers_->end()) {
      co_await requeue(job, "no handler for this kind of job here",
                       core.options.unknown_kind_delay);
      co_return;
    }
    std::string reason;
    bool undecodable = false;
    try {
      job->prepared = found->second->prepare(job->job.payload, reason);
      undecodable = job->prepared == nullptr;
    } catch (std::exception const& e) {  // the job type's own functions
      reason = e.what();
    }
    if (undecodable) {
      co_await bury(job, "undecodable payload: " + reason);
      co_return;
    }
    if (!job->prepared) {
      co_await requeue(job, reason, retry_delay(*job));
      co_return;
    }
    if (job->job.snoozes > job->prepared->max_snoozes) {
      co_await bury(job, "snoozed too often");
      co_return;
    }

    auto const answer = co_await gate_.pass(job);
    switch (answer.what) {
      case verdict::run: co_await execute(job); co_return;
      case verdict::snooze: co_await snooze(job, answer.delay, answer.text); co_return;
      case verdict::snooze_queue: co_await hold_queue(job, answer.delay); co_return;
      case verdict::lost: give_up_lease(job); co_return;
      case verdict::fail: co_await requeue(job, answer.text, retry_delay(*job)); co_return;
      case verdict::bury: co_await bury(job, answer.text); co_return;
    }
  }

  boost::asio::awaitable<void> execute(std::shared_ptr<active_job> job) {
    using ending = handler_outcome::ending;
    auto& core = *core_;

    // Much may have happened since the claim: a handler never starts without its lease (F12), or
    // when the worker stops.
    auto const now = core.clock.steady_now();
    if (now >= job->deadline) job->stop(stop_cause::lease_lost);
    if (now >= job->permit_deadline) job->stop(stop_cause::permit_lost);
    if (core.stopping) job->stop(stop_cause::shutdown);
    if (job->cause != stop_cause::none) {
      co_await gate_.leave(job);
      co_await stopped(job);
      co_return;
    }

    core.tell(worker_event_kind::started, *job);
    boost::asio::cancellation_signal end_of_timer;
    if (job->prepared->timeout > duration::zero()) start_timer(job, end_of_timer);
    auto const own_strand = boost::asio::make_strand(core.handler_executor);
    auto outcome = co_await boost::asio::co_spawn(
        own_strand, run_handler(job),
        boost::asio::bind_cancellation_slot(job->cancel.slot(), boost::asio::use_awaitable));
    end_of_timer.emit(boost::asio::cancellation_type::terminal);
    co_await gate_.leave(job);

    switch (outcome.how) {
      case ending::done: completer<Core>::add(completer_, job, std::move(outcome.text)); co_return;
      case ending::gave_up: co_await bury(job, outcome.text); co_return;
      case ending::snoozed: co_await snooze(job, outcome.delay, {}); co_return;
      case ending::failed: break;
    }
    if (job->cause == stop_cause::timeout) {
      co_await requeue(job, "timed out", retry_delay(*job));
    } else if (job->cause != stop_cause::none) {
      co_await stopped(job);
    } else {
      co_await requeue(job, outcome.text, retry_delay(*job));
    }
  }

  /// Runs a handler. Whatever it throws is an outcome.
  static boost::asio::awaitable<handler_outcome> run_handler(std::shared_ptr<active_job> job) {
    using ending = handler_outcome::ending;
    co_await boost::asio::this_coro::reset_cancellation_state(
        boost::asio::enable_total_cancellation());
    try {
      auto stored = co_await job->prepared->run(job->context);
      if (stored.size() > limits::payload_size) {
        co_return handler_outcome{ending::gave_up,
                                  make_error_code(errc::payload_too_large).message()};
      }
      co_return handler_outcome{ending::done, std::move(stored)};
    } catch (give_up const& e) {
      co_return handler_outcome{ending::gave_up, e.what()};
    } catch (snooze_for const& e) {
      auto const delay = std::clamp(e.delay(), duration{}, limits::span);
      co_return handler_outcome{ending::snoozed, e.what(), delay};
    } catch (std::exception const& e) {
      co_return handler_outcome{ending::failed, e.what()};
    } catch (...) {
      co_return handler_outcome{ending::failed, "an exception that is not a std::exception"};
    }
  }

  void start_timer(std::shared_ptr<active_job> const& job, boost::asio::cancellation_signal& end) {
    auto const at = saturating_add(core_->clock.steady_now(), job->prepared->timeout);
    auto expire = [weak = std::weak_ptr<active_job>{job}](error_code ec) {
      if (ec) return;
      if (auto const late = weak.lock()) late->stop(stop_cause::timeout);
    };
    core_->clock.async_wait_until(
        core_->strand, at,
        boost::asio::bind_cancellation_slot(
            end.slot(), boost::asio::bind_executor(core_->strand, std::move(expire))));
  }

  /// A handler was stopped, or never started, for a reason that is not its own: the attempt is
  /// given back.
  boost::asio::awaitable<void> stopped(std::shared_ptr<active_job> job) {
    if (job->cause == stop_cause::lease_lost) {
      give_up_lease(job);
      co_return;
    }
    co_await give_back(job);
  }

  void give_up_lease(std::shared_ptr<active_job> const& job) {
    core_->tell(worker_event_kind::lease_lost, *job);
    core_->settle(*job);
  }

  boost::asio::awaitable<void> give_back(std::shared_ptr<active_job> job) {
    command::return_job const back{.queue = job->queue, .id = job->job.id, .fence = job->job.fence};
    auto const returned = co_await core_->ask(back, job->deadline);
    if (!lost(job, returned)) core_->tell(worker_event_kind::returned, *job);
    core_->settle(*job);
  }

  boost::asio::awaitable<void> requeue(std::shared_ptr<active_job> job, std::string reason,
                                       duration delay) {
    std::string const kept = reason.substr(0, limits::reason_size);
    command::requeue_job const again{.queue = job->queue,
                                     .id = job->job.id,
                                     .fence = job->job.fence,
                                     .delay = delay,
                                     .reason = kept};
    auto const requeued = co_await core_->ask(again, job->deadline);
    if (!lost(job, requeued)) {
      bool const dead = requeued.value() == requeue_outcome::dead_lettered;
      core_->tell(dead ? worker_event_kind::dead_lettered : worker_event_kind::retried, *job, kept,
                  dead ? duration{} : delay);
    }
    core_->settle(*job);
  }

  boost::asio::awaitable<void> bury(std::shared_ptr<active_job> job, std::string reason) {
    std::string const kept = reason.substr(0, limits::reason_size);
    command::bury_job const end{
        .queue = job->queue, .id = job->job.id, .fence = job->job.fence, .reason = kept};
    auto const buried = co_await core_->ask(end, job->deadline);
    if (!lost(job, buried)) core_->tell(worker_event_kind::dead_lettered, *job, kept);
    core_->settle(*job);
  }

  boost::asio::awaitable<void> snooze(std::shared_ptr<active_job> job, duration delay,
                                      std::string memo) {
    command::snooze_job const later{.queue = job->queue,
                                    .id = job->job.id,
                                    .fence = job->job.fence,
                                    .delay = delay,
                                    .memo = memo};
    auto const snoozed = co_await core_->ask(later, job->deadline);
    if (!lost(job, snoozed)) core_->tell(worker_event_kind::snoozed, *job, memo, delay);
    core_->settle(*job);
  }

  /// The refused limit is the whole queue's: the queue waits, and its jobs keep their order.
  boost::asio::awaitable<void> hold_queue(std::shared_ptr<active_job> job, duration delay) {
    command::snooze_queue const hold{.queue = job->queue, .delay = delay};
    auto const held = co_await core_->ask(hold, job->deadline);
    if (held.has_error()) {
      core_->tell_failure(held.error());
    } else {
      core_->tell(worker_event_kind::queue_snoozed, *job, {}, delay);
    }
    co_await give_back(job);
  }

  template <class Answer>
  bool lost(std::shared_ptr<active_job> const& job, Answer const& answer) {
    if (!answer.has_error()) return false;
    core_->tell(worker_event_kind::lease_lost, *job,
                answer.error() == errc::lease_lost ? std::string{} : answer.error().message());
    return true;
  }

  /// After the failure of this attempt.
  [[nodiscard]] duration retry_delay(active_job const& job) {
    auto const failures = job.job.attempt == 0 ? 0 : job.job.attempt - 1;
    auto const entropy = core_->ids.entropy();
    std::optional<duration> own;
    if (job.prepared) own = job.prepared->backoff(failures, entropy);
    auto const delay = own ? *own : core_->backoff(failures, duration{}, entropy);
    return std::clamp(delay, duration{}, limits::span);
  }

  std::shared_ptr<Core> core_;
  std::shared_ptr<handler_registry const> handlers_;
  gate<Core> gate_;
  std::shared_ptr<completer<Core>> completer_;
};

}  // namespace weir::detail

#endif
