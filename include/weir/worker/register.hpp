// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_WORKER_REGISTER_HPP
#define WEIR_WORKER_REGISTER_HPP

#include "weir/registered_worker.hpp"
#include "weir/worker/core.hpp"
#include "weir/worker/job_run.hpp"
#include "weir/worker/record.hpp"

#include <boost/asio/awaitable.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace weir::detail {

/// Keeps the record of a worker in the register: see `registered_worker`.
///
/// A record is a job that vests an hour after the last word of its worker, in a queue that is
/// paused: so it is in no scan, nobody is told of it, and its vesting time says, by the store's
/// clock, when its worker was last heard of. A word is a relay of the job to itself, with another
/// text. Those that have vested are records of workers that have died; each worker now and then
/// removes some.
class worker_register {
 public:
  worker_register(std::shared_ptr<worker_core> core, handler_registry const& handlers)
      : core_{std::move(core)},
        poke_{std::make_shared<wakeup>(core_->strand)},
        ended_{std::make_shared<wakeup>(core_->strand)},
        began_{core_->clock.steady_now()},
        record_{core_->options, core_->holder, handlers},
        id_{core_->ids.job()} {}

  /// Until `leave`.
  static boost::asio::awaitable<void> run(std::shared_ptr<worker_register> self) {
    auto& own = *self;
    for (std::uint32_t beat = 0; !own.leaving_; ++beat) {
      if (!own.is_paused_) co_await own.pause();
      if (own.is_paused_) co_await own.say();
      if (own.is_paused_ && beat % beats_between_tidyings == 0) co_await own.tidy();
      auto const next = saturating_add(own.core_->clock.steady_now(), pace);
      if (!own.leaving_) co_await own.poke_->wait_until(own.core_->clock, next);
    }
    if (!own.there_.empty()) co_await own.replace({});
    own.has_ended_ = true;
    own.ended_->notify();
  }

  /// Says so at once when the worker stops.
  void note_stop() { poke_->notify(); }

  /// Removes the record. Returns when it is gone, or after a second.
  static boost::asio::awaitable<void> leave(std::shared_ptr<worker_register> self) {
    self->leaving_ = true;
    self->poke_->notify();
    auto const until = saturating_add(self->core_->clock.steady_now(), std::chrono::seconds{1});
    while (!self->has_ended_ && self->core_->clock.steady_now() < until) {
      co_await self->ended_->wait_until(self->core_->clock, until);
    }
  }

 private:
  static constexpr duration pace = registered_worker::patience / 3;
  static constexpr std::uint32_t beats_between_tidyings = 60;
  static constexpr std::uint32_t most_to_tidy = 100;
  static constexpr std::size_t most_doubts = 8;

  /// Asks once. @return is it answered?
  boost::asio::awaitable<bool> ask(any_question& what) {
    what.heeded = false;  // it is no queue that jobs are claimed from
    co_await core_->ask_once(what);
    if (what.error) core_->tell_failure(what.error, workers_queue);
    co_return !what.error;
  }

  /// Before the first record, so that no worker ever finds one.
  boost::asio::awaitable<void> pause() {
    question<command::pause_queue> pausing{{.queue = workers_queue}};
    is_paused_ = co_await ask(pausing);
  }

  [[nodiscard]] new_job record_of(std::string const& text) const {
    new_job out;
    out.id = id_;
    out.kind = worker_kind;
    out.payload = text;
    out.delay = worker_record_life;
    return out;
  }

  /// Describes the worker as it is now.
  boost::asio::awaitable<void> say() {
    auto text = record_.with(*core_, saturating_sub(core_->clock.steady_now(), began_));
    if (!there_.empty()) co_await replace(text);
    if (there_.empty()) {
      auto const record = record_of(text);
      question<command::enqueue_jobs> adding{{.queue = workers_queue, .jobs = {&record, 1}}};
      co_await ask(adding);
      there_.push_back(std::move(text));  // whatever came of it: the next word shows it
    }
  }

  /// Puts another record in the place of the one that there is, or none. Where there was none,
  /// `there_` is empty afterwards.
  boost::asio::awaitable<void> replace(std::string text) {
    auto const record = record_of(text);
    std::span<new_job const> const next{&record, text.empty() ? 0U : 1U};
    bool is_there = true;
    for (std::size_t i = 0; i != there_.size() && is_there; ++i) {
      question<command::relay_job> relaying{
          {.queue = workers_queue, .id = id_, .expected = there_[i], .next = next}};
      if (!co_await ask(relaying)) {
        if (relaying.error != errc::outcome_unknown) co_return;
        if (there_.size() == most_doubts) there_.erase(there_.begin());
        there_.push_back(std::move(text));
        co_return;
      }
      auto const outcome = relaying.answer->outcome;
      if (outcome == relay_outcome::relayed) {
        there_.clear();
        if (!text.empty()) there_.push_back(std::move(text));
        co_return;
      }
      is_there = outcome != relay_outcome::not_found;
    }
    // Another record of its own is in its place: it is left to those who tidy.
    if (is_there) id_ = core_->ids.job();
    there_.clear();
  }

  /// Removes records of the dead, up to a hundred.
  boost::asio::awaitable<void> tidy() {
    question<command::peek_jobs> looking{{.queue = workers_queue, .limit = most_to_tidy}};
    if (!co_await ask(looking)) co_return;
    for (auto const& dead : *looking.answer) {
      question<command::relay_job> removing{
          {.queue = workers_queue, .id = dead.id, .expected = dead.payload}};
      if (!co_await ask(removing)) co_return;
    }
  }

  std::shared_ptr<worker_core> core_;
  std::shared_ptr<wakeup> poke_;
  std::shared_ptr<wakeup> ended_;
  steady_time const began_;
  worker_record const record_;
  job_id id_;
  std::vector<std::string> there_;  ///< texts of which the store has one; more than one after
                                    ///< answers that were lost
  bool is_paused_ = false;
  bool leaving_ = false;
  bool has_ended_ = false;
};

}  // namespace weir::detail

#endif
