// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_WORKER_RENEWER_HPP
#define WEIR_WORKER_RENEWER_HPP

#include "weir/command/jobs.hpp"
#include "weir/detail/late_renewals.hpp"
#include "weir/worker/core.hpp"

#include <boost/asio/awaitable.hpp>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/cancellation_signal.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <exception>
#include <memory>
#include <string>
#include <utility>

namespace weir::detail {

/// Keeps the leases of all jobs in hand: one timer for all of them, whatever their number. Each is
/// renewed when a third of it has passed, and again until it succeeds or the lease is over; then
/// its handler is told to stop.
class lease_renewer {
 public:
  explicit lease_renewer(std::shared_ptr<worker_core> core)
      : core_{std::move(core)},
        poke_{std::make_shared<wakeup>(core_->strand)} {}

  /// To be called once.
  static void keep_notes(std::shared_ptr<lease_renewer> const& self) {
    self->core_->keep_notes = [weak = std::weak_ptr<lease_renewer>{self}](active_job& job) {
      auto const renewer = weak.lock();
      if (!renewer) return;
      if (!job.renewing) job.renew_at = std::min(job.renew_at, renewer->notes_at(job));
      renewer->poke_->notify();
    };
  }

  /// Has the store tell of cancelled jobs of this worker. All leases are renewed then, at most once
  /// a second however many jobs are cancelled: the renewal of a cancelled job finds its lease lost.
  /// If the store cannot tell, it is asked again with the next renewal.
  static void await_cancels(std::shared_ptr<lease_renewer> const& self) noexcept try {
    auto told = [weak = std::weak_ptr<lease_renewer>{self}, signal = self->cancel_](error_code ec,
                                                                                    hint) {
      auto const renewer = weak.lock();
      if (!renewer || renewer->stopped_) return;
      renewer->awaits_ = false;
      if (ec) return;
      // Before the renewals are sent, so that a job that is cancelled after its own is told of,
      // too.
      await_cancels(renewer);
      renewer->renew_all();
    };
    self->awaits_ = true;
    auto& core = *self->core_;
    core.store.start(
        command::await_cancel{core.holder},
        boost::asio::bind_cancellation_slot(
            self->cancel_->slot(), boost::asio::bind_executor(core.strand, std::move(told))));
  } catch (...) {
    self->awaits_ = false;
  }

  /// To be called when a job was added. It may have been cancelled before its claim was answered:
  /// if the store told of a cancel since the claim was sent, its lease is renewed, too.
  void watch(active_job& job) {
    if (told_at_ >= job.claimed_at) {
      job.renew_at = std::min(job.renew_at, std::max(all_renewed_at_, core_->clock.steady_now()));
    }
    if (std::min(job.renew_at, job.permit_deadline) < planned_) poke_->notify();
  }

  void stop() {
    stopped_ = true;
    poke_->notify();
    cancel_->emit(boost::asio::cancellation_type::terminal);
  }

  /// Without memory it begins again: leases depend on it.
  static void begin(std::shared_ptr<lease_renewer> const& self) {
    self->core_->begin(run(self), [self](std::exception_ptr const& failed) {
      if (failed && !self->stopped_) begin(self);
    });
  }

 private:
  static boost::asio::awaitable<void> run(std::shared_ptr<lease_renewer> self) {
    while (!self->stopped_) {
      auto const now = self->core_->clock.steady_now();
      auto next = steady_time::max();
      starvation late;
      for (auto const& job : self->core_->active) {
        late.look_at(*job, now, self->core_->options.lease);
        if (now >= job->deadline) {
          job->stop(stop_cause::lease_lost);
          auto& notes = job->context.notes();
          if (notes.waiting()) notes.end(notes.take(), errc::lease_lost);
          // Its handler may end yet, without memory to say so.
          next = std::min(next, saturating_add(now, self->core_->options.lease / 3));
          continue;
        }
        if (now >= job->permit_deadline) {
          job->stop(stop_cause::permit_lost);
        } else {
          next = std::min(next, job->permit_deadline);
        }
        // Its timer has ended without having waited, if the clock had no memory for it.
        if (now >= job->times_out_at) {
          job->stop(stop_cause::timeout);
        } else {
          next = std::min(next, job->times_out_at);
        }
        if (now >= job->renew_at && !job->renewing) {
          log_late_renewals("worker", saturating_sub(now, job->renew_at),
                            self->core_->options.lease, "bookkeeping_on");
          begin_renewal(self, job);
        }
        next =
            std::min(next, job->renewing ? job->deadline : std::min(job->renew_at, job->deadline));
      }
      late.tell(*self->core_);
      // For those that are delivered now, too: planned for none, each claim would wake this again.
      self->planned_ = next;
      if (self->core_->deliver_ended) self->core_->deliver_ended();
      if (self->core_->drop_lost) self->core_->drop_lost();
      co_await self->poke_->wait_until(self->core_->clock, next);
    }
  }

  void renew_all() {
    auto const now = told_at_ = core_->clock.steady_now();
    if (all_renewed_at_ <= now) {
      all_renewed_at_ = std::max(now, saturating_add(all_renewed_at_, progress_pace));
    }
    for (auto const& job : core_->active) {
      job->renew_again = job->renewing;
      if (!job->renewing) job->renew_at = std::min(job->renew_at, all_renewed_at_);
    }
    poke_->notify();
  }

  /// The renewals that are so late that leases are in danger.
  struct starvation {
    std::uint32_t jobs = 0;
    duration longest{};

    void look_at(active_job const& job, steady_time now, duration lease) noexcept {
      auto const late = saturating_sub(now, job.renew_at);
      if (job.renewing || job.cause != stop_cause::none || late <= lease / 2) return;
      ++jobs;
      longest = std::max(longest, late);
    }
    void tell(worker_core& core) const noexcept {
      if (jobs == 0) return;
      auto const text = text_of_late_renewals(longest, core.options.lease, "bookkeeping_on");
      worker_event event;
      event.kind = worker_event_kind::starved;
      event.count = jobs;
      event.reason = text;
      event.delay = longest;
      core.tell(event);
    }
  };

  /// How far apart renewals are that are made for a handler's progress only.
  static constexpr duration progress_pace = std::chrono::seconds{1};

  /// When what its handler noted is to be stored.
  [[nodiscard]] steady_time notes_at(active_job& job) const {
    auto const now = core_->clock.steady_now();
    auto const& notes = job.context.notes();
    if (!notes.waiting()) return steady_time::max();
    return notes.urgent() ? now : std::max(now, saturating_add(job.noted_at, progress_pace));
  }

  /// Renews the lease and stores what its handler noted. A store may refuse that and not a renewal
  /// alone, for which there is room: then the notes are dropped, and the lease is not lost for
  /// them.
  static boost::asio::awaitable<void> extend(std::shared_ptr<lease_renewer> self,
                                             std::shared_ptr<active_job> job, error_code& answer,
                                             duration& left, steady_time& asked_at) {
    auto& core = *self->core_;
    auto& notes = job->context.notes();
    auto taken = notes.take();
    command::extend_lease plain{.queue = job->queue,
                                .id = job->job.id,
                                .fence = job->job.fence,
                                .lease = core.options.lease};
    auto noted = plain;
    noted.progress = taken.progress;
    noted.checkpoint = taken.checkpoint;
    question<command::extend_lease> both{noted};
    both.heeded = taken.empty();
    co_await core.ask_once(both);
    error_code const refused = both.error;
    bool const away = refused == errc::store_unavailable || refused == errc::outcome_unknown;
    if (taken.empty() || !refused || refused == errc::lease_lost || away) {
      answer = refused;
      asked_at = both.asked_at;
      if (!answer) left = both.answer->expires_in;
    } else {
      question<command::extend_lease> alone{plain};
      co_await core.ask_once(alone);
      answer = alone.error;
      asked_at = alone.asked_at;
      if (!answer) {
        left = alone.answer->expires_in;
        core.tell_failure(refused, job->queue);
      }
    }
    if (taken.empty()) co_return;
    bool const again = answer && answer != errc::lease_lost;
    if (again && core.clock.steady_now() < core.give_up_at) {
      notes.put_back(std::move(taken));
      co_return;
    }
    job->noted_at = core.clock.steady_now();
    notes.end(std::move(taken), answer ? answer : refused);
    if (answer == errc::lease_lost && notes.waiting()) notes.end(notes.take(), answer);
  }

  static void begin_renewal(std::shared_ptr<lease_renewer> const& self,
                            std::shared_ptr<active_job> const& job) {
    if (!self->awaits_) await_cancels(self);
    auto ended = [self, job](std::exception_ptr const& failed) {
      if (failed) self->end_renewal(*job, false);  // out of memory
    };
    job->renewing = true;
    try {
      self->core_->begin(renew(self, job), ended);
    } catch (std::exception const&) {
      ended(std::current_exception());
    }
  }

  /// One renewal. Its hanging is no harm: `run` looks at the deadline all the same.
  static boost::asio::awaitable<void> renew(std::shared_ptr<lease_renewer> self,
                                            std::shared_ptr<active_job> job) {
    auto& core = *self->core_;
    auto const lease = core.options.lease;
    bool lost = false;
    bool renewed = false;

    error_code answer;
    duration left{};
    steady_time asked_at{};
    co_await extend(self, job, answer, left, asked_at);
    if (!answer) {
      renewed = true;
      job->deadline = worker_core::lease_deadline(asked_at, left);
    } else if (answer == errc::lease_lost) {
      lost = true;
      job->stop(stop_cause::lease_lost);
    } else {
      core.tell_failure(answer);
    }

    if (!lost && job->permit) {
      // A copy: the job may give its permit up while this is on its way.
      active_permit const permit = *job->permit;
      question<command::renew_permit> keep{
          {.key = permit.key, .holder = permit.holder, .fence = permit.fence, .ttl = lease}};
      co_await core.ask_once(keep);
      bool const given_up = !job->permit;
      if (!keep.error && !given_up) {
        job->permit_deadline = worker_core::lease_deadline(keep.asked_at, keep.answer->expires_in);
      } else if (!given_up) {
        renewed = false;
        if (keep.error == errc::lease_lost) {
          job->stop(stop_cause::permit_lost);
        } else {
          core.tell_failure(keep.error);
        }
      }
    }

    job->note_deadline();
    self->end_renewal(*job, renewed, asked_at);
  }

  /// @param asked_at before it was asked for
  void end_renewal(active_job& job, bool renewed, steady_time asked_at = {}) {
    auto const lease = core_->options.lease;
    job.renewing = false;
    if (std::exchange(job.renew_again, false)) {
      job.renew_at = std::max(core_->clock.steady_now(), all_renewed_at_);
    } else if (renewed) {
      job.failed_renewals = 0;
      job.renew_at = std::min(saturating_add(asked_at, lease / 3), notes_at(job));
    } else {
      // Who waits for a checkpoint does not wait for so long.
      auto const urgent = job.context.notes().urgent();
      auto const pause = core_->pause_after(job.failed_renewals++, {});
      job.renew_at = saturating_add(core_->clock.steady_now(),
                                    urgent ? std::min(lease / 12, pause) : lease / 12);
    }
    poke_->notify();
  }

  std::shared_ptr<worker_core> core_;
  std::shared_ptr<wakeup> poke_;
  std::shared_ptr<boost::asio::cancellation_signal> cancel_ =
      std::make_shared<boost::asio::cancellation_signal>();
  steady_time planned_ = steady_time::max();
  steady_time told_at_ = steady_time::min();         ///< the last time of a cancel
  steady_time all_renewed_at_ = steady_time::min();  ///< the last time for a cancel, or the next
  bool awaits_ = false;                              ///< the store is to tell of a cancel
  bool stopped_ = false;
};

}  // namespace weir::detail

#endif
