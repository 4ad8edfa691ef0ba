// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_WORKER_RENEWER_HPP
#define WEIR_WORKER_RENEWER_HPP

#include "weir/detail/late_renewals.hpp"
#include "weir/worker/core.hpp"

#include <boost/asio/awaitable.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>
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

  /// To be called when a job was added.
  void watch(active_job const& job) {
    if (std::min(job.renew_at, job.permit_deadline) < planned_) poke_->notify();
  }

  void stop() {
    stopped_ = true;
    poke_->notify();
  }

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
          continue;
        }
        if (now >= job->permit_deadline) {
          job->stop(stop_cause::permit_lost);
        } else {
          next = std::min(next, job->permit_deadline);
        }
        if (now >= job->renew_at && !job->renewing) {
          log_late_renewals("worker", saturating_sub(now, job->renew_at),
                            self->core_->options.lease, "bookkeeping_on");
          job->renewing = true;
          self->core_->begin(renew(self, job));
        }
        next =
            std::min(next, job->renewing ? job->deadline : std::min(job->renew_at, job->deadline));
      }
      late.tell(*self->core_);
      self->planned_ = next;
      co_await self->poke_->wait_until(self->core_->clock, next);
    }
  }

 private:
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

  /// What a renewal took along is stored, or not.
  void end_notes(active_job& job, handler_notes::load taken, error_code ec) const {
    auto& notes = job.context.notes();
    // A store without room for them has room for a renewal alone.
    bool const again = ec == condition::transient && ec != errc::store_full &&
                       core_->clock.steady_now() < core_->give_up_at;
    if (again) return notes.put_back(std::move(taken));
    if (!ec) job.noted_at = core_->clock.steady_now();
    notes.end(std::move(taken), ec);
    if (ec == errc::lease_lost && notes.waiting()) notes.end(notes.take(), ec);
  }

  /// One renewal. Its hanging is no harm: `run` looks at the deadline all the same.
  static boost::asio::awaitable<void> renew(std::shared_ptr<lease_renewer> self,
                                            std::shared_ptr<active_job> job) {
    auto& core = *self->core_;
    auto const lease = core.options.lease;
    bool lost = false;
    bool renewed = false;

    auto notes = job->context.notes().take();
    bool const noted =
        !notes.progress.empty() || !notes.checkpoint.empty() || !notes.waiters.empty();
    question<command::extend_lease> extend{{.queue = job->queue,
                                            .id = job->job.id,
                                            .fence = job->job.fence,
                                            .lease = lease,
                                            .progress = notes.progress,
                                            .checkpoint = notes.checkpoint}};
    co_await core.ask_once(extend);
    if (noted) self->end_notes(*job, std::move(notes), extend.error);
    if (!extend.error) {
      renewed = true;
      job->deadline = worker_core::lease_deadline(extend.asked_at, extend.answer->expires_in);
    } else if (extend.error == errc::lease_lost) {
      lost = true;
      job->stop(stop_cause::lease_lost);
    } else {
      core.tell_failure(extend.error);
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

    job->renewing = false;
    auto const soon = core.clock.steady_now() + lease / 12;
    job->renew_at = renewed ? std::min(extend.asked_at + lease / 3, self->notes_at(*job)) : soon;
    self->poke_->notify();
  }

  std::shared_ptr<worker_core> core_;
  std::shared_ptr<wakeup> poke_;
  steady_time planned_ = steady_time::max();
  bool stopped_ = false;
};

}  // namespace weir::detail

#endif
