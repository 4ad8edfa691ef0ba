// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_WORKER_JOB_RUN_HPP
#define WEIR_WORKER_JOB_RUN_HPP

#include "weir/detail/succession.hpp"
#include "weir/log.hpp"
#include "weir/rule/jobs.hpp"
#include "weir/worker/completer.hpp"
#include "weir/worker/core.hpp"
#include "weir/worker/gate.hpp"
#include "weir/worker/handler_run.hpp"
#include "weir/worker/limit_lines.hpp"

#include <boost/asio/awaitable.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/deferred.hpp>
#include <boost/asio/post.hpp>

#include <algorithm>
#include <chrono>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace weir::detail {

using handler_registry = std::map<std::string, std::shared_ptr<any_handler const>, std::less<>>;

/// Takes one claimed job from its claim to its outcome.
class job_run {
 public:
  job_run(std::shared_ptr<worker_core> core, std::shared_ptr<handler_registry const> handlers,
          std::shared_ptr<handler_run> runs_handlers)
      : core_{std::move(core)},
        handlers_{std::move(handlers)},
        lines_{std::make_shared<limit_lines>(core_)},
        gate_{core_, lines_},
        runner_{std::move(runs_handlers)},
        completer_{std::make_shared<completer>(core_)} {}

  static std::shared_ptr<job_run> make(std::shared_ptr<worker_core> core,
                                       std::shared_ptr<handler_registry const> handlers,
                                       std::shared_ptr<handler_run> runs_handlers) {
    auto made =
        std::make_shared<job_run>(std::move(core), std::move(handlers), std::move(runs_handlers));
    made->runner_->deliver_to([weak = std::weak_ptr<job_run>{made}](auto& ended) {
      if (auto const self = weak.lock()) job_run::ended(self, ended);
    });
    made->core_->deliver_ended = [weak = std::weak_ptr<runner>{made->runner_}] {
      if (auto const run = weak.lock()) run->deliver();
    };
    return made;
  }

  [[nodiscard]] std::shared_ptr<limit_lines> const& lines() const noexcept { return lines_; }

  /// Most jobs pass no limit: nothing is between them and their handler, and no coroutine is begun
  /// for them.
  static void start(std::shared_ptr<job_run> const& self, std::shared_ptr<active_job> const& job) {
    guarded(self, job, [&] {
      if (job->cause != stop_cause::none) {
        spawn(self, job, self->stopped(job));
        return;
      }
      auto const found = self->handlers_->find(job->job.kind);
      if (found == self->handlers_->end()) {
        put_off(self, job);
        return;
      }
      if (!self->core_->gives_way.empty()) self->core_->gives_way.met_known(job->queue);
      job->handler = found->second;
      auto const& traits = job->handler->traits;
      if (job->job.snoozes > traits.max_snoozes) {
        spawn(self, job, self->bury(job, "snoozed too often"));
      } else if (traits.is_gated || needs_start(job->job.strategy)) {
        spawn(self, job, pass_gate(self, job));
      } else {
        launch(self, job);
      }
    });
  }

 private:
  using runner = handler_run;
  using ending = handler_outcome::ending;

  /// Out of memory, or a policy's function threw: the attempt has failed, and its lease ends it if
  /// nothing else can. Its permit is not kept for so long.
  static void fail(std::shared_ptr<job_run> const& self, std::shared_ptr<active_job> const& job,
                   std::exception_ptr const& error) noexcept {
    auto& core = *self->core_;
    try {
      std::rethrow_exception(error);
    } catch (std::exception const& e) {
      core.tell(worker_event_kind::lease_lost, *job, e.what());
    } catch (...) {
      core.tell(worker_event_kind::lease_lost, *job);
    }
    core.settle(*job);
    try {
      if (job->permit) core.begin(self->gate_.leave(job), [self](std::exception_ptr const&) {});
    } catch (std::exception const&) {  // its TTL ends it
    }
  }

  template <class Step>
  static void guarded(std::shared_ptr<job_run> const& self, std::shared_ptr<active_job> const& job,
                      Step step) {
    try {
      step();
    } catch (std::exception const&) {
      fail(self, job, std::current_exception());
    }
  }

  /// A coroutine is destroyed where there is no memory to resume it: its job must not keep its
  /// hand.
  struct coroutine_end {
    coroutine_end(std::shared_ptr<job_run> r, std::shared_ptr<active_job> j) noexcept
        : self{std::move(r)},
          job{std::move(j)} {}
    coroutine_end(coroutine_end const&) = delete;
    coroutine_end& operator=(coroutine_end const&) = delete;
    ~coroutine_end() {
      gate_pass const inside{self->core_->bookkeeping->gate()};
      if (job && !job->settled && inside) {
        fail(self, job, std::make_exception_ptr(std::bad_alloc{}));
      }
    }

    std::shared_ptr<job_run> const self;
    std::shared_ptr<active_job> job;  ///< null: it has ended
  };

  static void spawn(std::shared_ptr<job_run> const& self, std::shared_ptr<active_job> const& job,
                    boost::asio::awaitable<void> what) {
    auto const one = std::make_shared<coroutine_end>(self, job);
    self->core_->begin(std::move(what), [one](std::exception_ptr const& error) {
      auto const of = std::move(one->job);
      if (error) fail(one->self, of, error);
    });
  }

  /// For longer each time: beside a backlog of such jobs this worker comes across each of them
  /// again and again, and others need the time.
  static void put_off(std::shared_ptr<job_run> const& self,
                      std::shared_ptr<active_job> const& job) {
    auto& core = *self->core_;
    auto const each = core.options.unknown_kind_delay;
    auto const times = static_cast<duration::rep>(std::max(job->job.attempt, 1U));
    auto const delay = each > limits::span / times ? limits::span : each * times;
    log_unknown_kind(*job, delay, self->unknown_kinds_);
    core.gives_way.put_off(job->queue, core.clock.steady_now(), delay);
    spawn(self, job, self->requeue(job, "no handler for this kind of job here", delay));
  }

  static boost::asio::awaitable<void> pass_gate(std::shared_ptr<job_run> self,
                                                std::shared_ptr<active_job> job) {
    using verdict = gate_answer::verdict;
    auto decoded = prepare(*job);
    if (decoded.how == ending::undecodable) {
      co_await self->bury(job, std::move(decoded.text));
      co_return;
    }
    if (decoded.how == ending::failed) {
      co_await self->requeue(job, std::move(decoded.text), self->retry_delay(*job));
      co_return;
    }
    auto const answer = co_await self->gate_.pass(job);
    switch (answer.what) {
      case verdict::run: launch(self, job); co_return;
      case verdict::snooze:
        co_await self->snooze(job, answer.delay, answer.text, answer.by);
        co_return;
      case verdict::snooze_queue:
        co_await self->hold_queue(job, answer.delay, answer.by);
        co_return;
      case verdict::line: co_await self->wait_in_line(job, answer.text, answer.by); co_return;
      case verdict::lost:
        co_await self->gate_.leave(job);
        self->give_up_lease(job);
        co_return;
      case verdict::fail:
        co_await self->requeue(job, answer.text, self->retry_delay(*job));
        co_return;
      case verdict::bury: co_await self->bury(job, answer.text); co_return;
    }
  }

  /// Does its handler start, now or after all? If not, the job has a cause to stop.
  [[nodiscard]] bool may_start(active_job& job) const {
    auto const now = core_->clock.steady_now();
    if (now >= job.deadline) job.stop(stop_cause::lease_lost);
    if (now >= job.permit_deadline) job.stop(stop_cause::permit_lost);
    if (core_->stopping) job.stop(stop_cause::shutdown);
    if (job.cause != stop_cause::none) return false;
    job.started_at = now;
    return true;
  }

  static void launch(std::shared_ptr<job_run> const& self, std::shared_ptr<active_job> const& job) {
    if (!self->may_start(*job)) {
      spawn(self, job, self->stopped(job));
      return;
    }
    self->core_->started(*job);
    self->core_->tell(worker_event_kind::started, *job);
    if (job->handler->traits.timeout > duration::zero() || job->job.deadline_in) {
      self->limit_time(job);
    }
    begin_handler(self, job);
  }

  static void begin_handler(std::shared_ptr<job_run> const& self,
                            std::shared_ptr<active_job> const& job) {
    if (runner::start(self->runner_, job)) return;
    tell_log(log::level::error, log::topic::worker,
             "worker: it stops: the execution context of its handlers has ended");
    self->core_->stopping = true;
    self->core_->changed->notify();
    job->end_of_timer.emit(boost::asio::cancellation_type::terminal);
    job->stop(stop_cause::shutdown);
    spawn(self, job, self->stopped(job));
  }

  static void ended(std::shared_ptr<job_run> const& self, std::vector<runner::ended_job>& ended) {
    for (auto& one : ended) {
      if (one.job->settled) continue;  // there was no memory to start it
      guarded(self, one.job, [&] {
        auto const& job = one.job;
        if (job->outcome.how == ending::not_started && self->may_start(*job)) {
          begin_handler(self, job);  // its lease was renewed meanwhile
          return;
        }
        if (job->handler->traits.timeout > duration::zero()) {
          job->times_out_at = steady_time::max();
          job->end_of_timer.emit(boost::asio::cancellation_type::terminal);
        }
        self->core_->finish(*job);
        if (succeeded(job->outcome) && !job->permit && job->context.after() == nullptr) {
          self->complete(job);
        } else {
          spawn(self, job, conclude(self, job));
        }
      });
    }
    completer::flush(self->completer_);
  }

  [[nodiscard]] static bool succeeded(handler_outcome const& outcome) noexcept {
    return outcome.how == ending::done || outcome.how == ending::unstorable;
  }

  void complete(std::shared_ptr<active_job> const& job) {
    auto& outcome = job->outcome;
    if (outcome.how == ending::unstorable) {
      core_->tell(worker_event_kind::result_dropped, *job, outcome.text);
      outcome.text.clear();
    }
    completer_->add(job);
  }

  /// It ends, and others come in its place.
  boost::asio::awaitable<void> relay(std::shared_ptr<active_job> job) {
    auto const& after = *job->context.after();
    auto const next = succession::views(after.next);
    auto const jobs = succession::views(after.jobs);
    question<command::relay_job> end{{.queue = job->queue,
                                      .id = job->job.id,
                                      .fence = job->job.fence,
                                      .stored = job->outcome.text,
                                      .next = next,
                                      .to = after.to,
                                      .jobs = jobs}};
    co_await core_->ask(end, job->deadline);
    if (end.error && end.error != errc::lease_lost && end.error != condition::transient) {
      log_refused_relay(*job, end.error);
      co_await requeue(job, end.error.message(), retry_delay(*job));
      co_return;
    }
    if (!lost(job, end.error)) core_->tell(worker_event_kind::completed, *job);
    core_->settle(*job);
  }

  static boost::asio::awaitable<void> conclude(std::shared_ptr<job_run> self,
                                               std::shared_ptr<active_job> job) {
    auto& outcome = job->outcome;
    auto const cause = job->cause;  // why it ended, whatever comes while its notes are stored
    if (!succeeded(outcome)) {
      bool const kept = co_await self->keep_notes(job);
      if (!kept) {
        co_await self->gate_.leave(job);
        self->give_up_lease(job);
        co_return;
      }
    }
    switch (outcome.how) {
      case ending::done:
      case ending::unstorable:
        co_await self->gate_.leave(job);
        if (job->context.after() != nullptr) {
          co_await self->relay(job);
          co_return;
        }
        // The line of its limit is told of the permit first, and then of the hand, which it may
        // have in its turn only.
        co_await boost::asio::post(boost::asio::deferred);
        self->complete(job);
        completer::flush(self->completer_);
        co_return;
      case ending::gave_up:
      case ending::undecodable: co_await self->bury(job, std::move(outcome.text)); co_return;
      case ending::snoozed: co_await self->snooze(job, outcome.delay, {}); co_return;
      case ending::not_started: co_await self->stopped(job); co_return;
      case ending::failed: break;
    }
    if (cause != stop_cause::none && cause != stop_cause::timeout) {
      co_await self->stopped(job);
      co_return;
    }
    auto reason = cause == stop_cause::timeout ? std::string{"timed out"} : std::move(outcome.text);
    co_await self->requeue(job, std::move(reason), self->retry_delay(*job));
  }

  /// Stores the notes of its handler before its attempt ends, so that the next one finds them
  /// (F104). False: the lease is over before that.
  boost::asio::awaitable<bool> keep_notes(std::shared_ptr<active_job> job) {
    auto& notes = job->context.notes();
    if (job->cause == stop_cause::lease_lost || notes.lost()) co_return false;
    if (!notes.unstored()) co_return true;
    auto const over = std::make_shared<wakeup>(core_->strand);
    auto const told = std::make_shared<bool>(false);
    notes.checkpoint({}, [over, told](error_code) {
      *told = true;
      over->notify();
    });
    // A renewal that hangs is not waited for, no more than by anybody else; but a worker that stops
    // asks once more, too.
    auto const patience = saturating_add(core_->clock.steady_now(), std::chrono::seconds{1});
    while (!*told) {
      auto const now = core_->clock.steady_now();
      auto const until = std::min(job->deadline, std::max(core_->give_up_at, patience));
      if (now >= until) break;
      co_await core_->rest(*over, std::min(until, saturating_add(now, core_->options.poll)));
    }
    if (core_->clock.steady_now() >= job->deadline) co_return false;
    co_return job->cause != stop_cause::lease_lost && !notes.lost();
  }

  /// Tells the handler how much time it has, and to stop at its time-out.
  void limit_time(std::shared_ptr<active_job> const& job) {
    auto const& clock = core_->clock;
    auto ends_at = steady_time::max();
    if (auto const timeout = job->handler->traits.timeout; timeout > duration::zero()) {
      ends_at = saturating_add(clock.steady_now(), timeout);
      job->times_out_at = ends_at;
      start_timer(job, ends_at);
    }
    if (auto const in = job->job.deadline_in) {
      ends_at = std::min(ends_at, saturating_add(job->claimed_at, *in));
    }
    job->context.ends_at(ends_at, &runner_->clock(), [](void const* c) {
      return static_cast<any_clock const*>(c)->steady_now();
    });
  }

  void start_timer(std::shared_ptr<active_job> const& job, steady_time at) {
    // The job is kept until the timer has ended, which then still looks at the signal in it.
    auto expire = [job](error_code ec) {
      if (!ec) job->stop(stop_cause::timeout);
    };
    detail::start_timer(core_->clock, core_->strand, at, job->end_of_timer.slot(),
                        std::move(expire));
  }

  /// A handler was stopped, or never started, for a reason that is not its own: the attempt is
  /// given back.
  boost::asio::awaitable<void> stopped(std::shared_ptr<active_job> job) {
    if (job->cause == stop_cause::lease_lost) {
      co_await gate_.leave(job);
      give_up_lease(job);
      co_return;
    }
    co_await give_back(job);
  }

  void give_up_lease(std::shared_ptr<active_job> const& job) {
    core_->tell(worker_event_kind::lease_lost, *job);
    core_->settle(*job);
  }

  /// Ends the attempt by a command about its job. False: it was not stored.
  template <class Command, class Tell>
  boost::asio::awaitable<bool> end_with(std::shared_ptr<active_job> job, Command command,
                                        Tell tell) {
    co_await gate_.leave(job);
    command.id = job->job.id;
    command.fence = job->job.fence;
    question<Command> end{command};
    co_await core_->ask(end, job->deadline);
    bool const stored = !lost(job, end.error);
    if (stored) tell(*end.answer);
    core_->settle(*job);
    co_return stored;
  }

  boost::asio::awaitable<void> give_back(std::shared_ptr<active_job> job) {
    auto const tell = [&](hint) { core_->tell(worker_event_kind::returned, *job); };
    auto const memo = gate::kept(*job);
    if (job->claim != 0) {
      co_await end_with(job, command::return_job{.queue = job->queue}, tell);
    } else {  // it was brought forward, and is not to wait for its own time again
      co_await end_with(job, command::snooze_job{.queue = job->queue, .memo = memo}, tell);
    }
  }

  boost::asio::awaitable<void> requeue(std::shared_ptr<active_job> job, std::string reason,
                                       duration delay) {
    std::string const kept{rule::kept_reason(reason)};
    auto const tell = [&](requeue_outcome outcome) {
      bool const dead = outcome == requeue_outcome::dead_lettered;
      core_->tell(dead ? worker_event_kind::dead_lettered : worker_event_kind::retried, *job, kept,
                  dead ? duration{} : delay);
    };
    co_await end_with(
        job, command::requeue_job{.queue = job->queue, .delay = delay, .reason = kept}, tell);
  }

  boost::asio::awaitable<void> bury(std::shared_ptr<active_job> job, std::string reason) {
    std::string const kept{rule::kept_reason(reason)};
    auto const tell = [&](hint) { core_->tell(worker_event_kind::dead_lettered, *job, kept); };
    co_await end_with(job, command::bury_job{.queue = job->queue, .reason = kept}, tell);
  }

  boost::asio::awaitable<void> wait_in_line(std::shared_ptr<active_job> job, std::string memo,
                                            refusing_policy by) {
    auto const key = job->prepared->concurrency_key;
    auto const limit = job->prepared->concurrency;
    // One that an enqueue moves to another instant is not to be brought forward.
    bool const joins = !job->handler->traits.is_rescheduled;
    if (co_await snooze(job, lines_->refuse(*job), std::move(memo), by) && joins) {
      limit_lines::join(lines_, key, limit, *job);
    }
  }

  /// @return whether it was stored
  boost::asio::awaitable<bool> snooze(std::shared_ptr<active_job> job, duration delay,
                                      std::string memo,
                                      refusing_policy by = refusing_policy::none) {
    auto const tell = [&](hint) { tell_refusal(worker_event_kind::snoozed, *job, by, delay); };
    co_return co_await end_with(
        job, command::snooze_job{.queue = job->queue, .delay = delay, .memo = memo}, tell);
  }

  /// The refused limit is the whole queue's: the queue waits, and its jobs keep their order.
  boost::asio::awaitable<void> hold_queue(std::shared_ptr<active_job> job, duration delay,
                                          refusing_policy by) {
    // Somebody may have put it off for longer meanwhile.
    question<command::snooze_queue> hold{{.queue = job->queue, .delay = delay, .at_least = true}};
    co_await core_->ask(hold, job->deadline);
    if (hold.error) {
      core_->tell_failure(hold.error);
    } else {
      tell_refusal(worker_event_kind::queue_snoozed, *job, by, delay);
    }
    co_await give_back(job);
  }

  void tell_refusal(worker_event_kind kind, active_job const& job, refusing_policy by,
                    duration delay) {
    worker_event event{.kind = kind, .queue = job.queue, .job = &job.job};
    event.reason = reason_of(by);
    event.delay = delay;
    auto now = steady_time::min();
    event.took = core_->took(job, now);
    event.refused_by = by;
    core_->tell(event);
  }

  bool lost(std::shared_ptr<active_job> const& job, error_code ec) {
    if (!ec) return false;
    core_->tell(worker_event_kind::lease_lost, *job,
                ec == errc::lease_lost ? std::string{} : ec.message());
    return true;
  }

  /// After the failure of this attempt.
  [[nodiscard]] duration retry_delay(active_job const& job) {
    auto const failures = job.job.attempt == 0 ? 0 : job.job.attempt - 1;
    auto const entropy = core_->ids.entropy();
    std::optional<duration> delay;
    try {
      if (job.handler) delay = job.handler->backoff(failures, entropy);
    } catch (...) {  // it is the user's
      tell_failure_of("worker: the backoff of a kind of jobs", std::current_exception());
    }
    try {
      if (!delay) delay = core_->backoff(failures, duration{}, entropy);
    } catch (...) {  // so is this
      tell_failure_of("worker: its backoff", std::current_exception());
    }
    return std::clamp(delay.value_or(core_->options.poll), duration{}, limits::span);
  }

  std::shared_ptr<worker_core> core_;
  std::shared_ptr<handler_registry const> handlers_;
  std::shared_ptr<limit_lines> lines_;
  gate gate_;
  std::shared_ptr<runner> runner_;
  std::shared_ptr<completer> completer_;
  std::vector<std::string> unknown_kinds_;  // of which the log was told
};

}  // namespace weir::detail

#endif
