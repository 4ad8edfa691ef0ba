// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_WORKER_REGISTER_HPP
#define WEIR_WORKER_REGISTER_HPP

#include "weir/registered_worker.hpp"
#include "weir/worker/core.hpp"
#include "weir/worker/job_run.hpp"
#include "weir/worker/record.hpp"

#include <boost/asio/awaitable.hpp>
#include <boost/system/errc.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
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
        left_{std::make_shared<wakeup>(core_->strand)},
        began_{core_->clock.steady_now()},
        record_{core_->options, core_->holder, handlers},
        id_{core_->ids.job()} {}

  /// Until it leaves.
  static void begin(std::shared_ptr<worker_register> const& self) {
    self->core_->begin(run(self), [self](std::exception_ptr const& failed) {
      if (failed) self->tell(make_error_code(boost::system::errc::not_enough_memory));
      self->has_left_ = true;
      self->left_->notify();
    });
  }

  /// Says so at once when the worker stops.
  void note_stop() { poke_->notify(); }
  /// Ends it where it is: its record lapses.
  void quit() {
    leaving_ = true;
    poke_->notify();
  }

  /// Removes the record. Returns when it is gone, or after a second.
  static boost::asio::awaitable<void> leave(std::shared_ptr<worker_register> self) {
    self->leaving_ = true;
    self->poke_->notify();
    auto const until = saturating_add(self->core_->clock.steady_now(), std::chrono::seconds{1});
    while (!self->has_left_ && self->core_->clock.steady_now() < until) {
      co_await self->left_->wait_until(self->core_->clock, until);
    }
  }

 private:
  static constexpr duration pace = registered_worker::patience / 3;
  static constexpr std::uint32_t beats_between_tidyings = 60;
  static constexpr std::uint32_t most_to_tidy = 100;
  static constexpr std::size_t most_doubts = 8;

  static boost::asio::awaitable<void> run(std::shared_ptr<worker_register> self) {
    auto& own = *self;
    for (std::uint32_t beat = 0; !own.leaving_; ++beat) {
      co_await own.say();
      if (beat % beats_between_tidyings == 0) co_await own.tidy();
      auto const next = saturating_add(own.core_->clock.steady_now(), pace);
      if (!own.leaving_) co_await own.poke_->wait_until(own.core_->clock, next);
    }
    if (!own.there_.empty()) co_await own.replace({});
  }

  void tell(error_code ec) noexcept { core_->tell_failure(ec, workers_queue); }

  /// Asks once. @return is it answered?
  boost::asio::awaitable<bool> ask(any_question& what) {
    what.heeded = false;  // it is no queue that jobs are claimed from
    co_await core_->ask_once(what);
    if (what.error) tell(what.error);
    co_return !what.error;
  }

  /// So that nobody claims records. It is said now and then, since a store may have lost it.
  boost::asio::awaitable<bool> pause() {
    question<command::pause_queue> pausing{{.queue = workers_queue}};
    co_return co_await ask(pausing);
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
    // With so many doubts no other text is added to them.
    if (there_.size() == most_doubts) text = there_.back();
    if (!there_.empty()) co_await replace(text);
    if (!there_.empty() || !co_await pause()) co_return;
    auto const record = record_of(text);
    question<command::enqueue_jobs> adding{{.queue = workers_queue, .jobs = {&record, 1}}};
    co_await ask(adding);
    there_.push_back(std::move(text));  // whatever came of it: the next word shows it
  }

  /// Puts another record in the place of the one that there is, or none. Where there was none,
  /// `there_` is empty afterwards. An answer that is lost is no reason to ask no further: of all
  /// that may be there one is, and what is replaced already is not replaced again.
  boost::asio::awaitable<void> replace(std::string text) {
    auto const record = record_of(text);
    std::span<new_job const> const next{&record, text.empty() ? 0U : 1U};
    bool is_there = true;
    bool is_known = true;
    auto const maybe = there_;
    for (auto at = maybe.rbegin(); at != maybe.rend() && is_there; ++at) {
      question<command::relay_job> relaying{
          {.queue = workers_queue, .id = id_, .expected = *at, .next = next}};
      if (!co_await ask(relaying)) {
        if (relaying.error != errc::outcome_unknown) co_return;
        if (is_known && !text.empty() && text != there_.back()) there_.push_back(text);
        is_known = false;
        continue;
      }
      auto const outcome = relaying.answer->outcome;
      if (outcome == relay_outcome::relayed) {
        there_.clear();
        if (!text.empty()) there_.push_back(std::move(text));
        co_return;
      }
      is_there = outcome != relay_outcome::not_found;
    }
    if (!is_known) co_return;
    // Another record of its own is in its place: it is left to those who tidy.
    if (is_there) id_ = core_->ids.job();
    there_.clear();
  }

  /// Removes records of the dead, up to a hundred, and sees to it that the queue is as it should
  /// be: paused, and with a pointer that is not behind all others'.
  boost::asio::awaitable<void> tidy() {
    question<command::peek_jobs> looking{{.queue = workers_queue, .limit = most_to_tidy}};
    if (!co_await pause() || !co_await ask(looking)) co_return;
    for (auto const& dead : *looking.answer) {
      if (leaving_) co_return;
      question<command::relay_job> removing{
          {.queue = workers_queue, .id = dead.id, .expected = dead.payload}};
      if (!co_await ask(removing)) co_return;
    }
    question<command::update_queue_pointer> moving{{.queue = workers_queue}};
    co_await ask(moving);
  }

  std::shared_ptr<worker_core> core_;
  std::shared_ptr<wakeup> poke_;
  std::shared_ptr<wakeup> left_;
  steady_time const began_;
  worker_record const record_;
  job_id id_;
  std::vector<std::string> there_;  ///< texts of which the store has one; more than one after
                                    ///< answers that were lost
  bool leaving_ = false;
  bool has_left_ = false;
};

}  // namespace weir::detail

#endif
