// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_WORKER_RUN_HPP
#define WEIR_WORKER_RUN_HPP

#include "weir/detail/config.hpp"
#include "weir/detail/task.hpp"
#include "weir/log.hpp"
#include "weir/worker/core.hpp"
#include "weir/worker/job_run.hpp"
#include "weir/worker/lease_renewer.hpp"
#include "weir/worker/runs.hpp"

#include <boost/asio/any_completion_handler.hpp>
#include <boost/asio/associated_cancellation_slot.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/error.hpp>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace weir::detail {

/// One run of a worker, from its start until it has drained.
///
/// A round is what one scan of the pointers found, in random order, or, right after a hint, the
/// queue that the last claims were of, which saves a scan where the guess is right; each queue of
/// it is asked for at most a quantum of jobs, and only for as many as there are free hands, so
/// nothing is claimed that cannot start at once. Every other scan begins at a random instant, so
/// that no number of backlogged queues hides another (F39).
class worker_run {
 public:
  worker_run(std::shared_ptr<worker_core> shared, std::shared_ptr<handler_registry const> handlers)
      : core_{std::move(shared)},
        jobs_{job_run::make(core_, std::move(handlers))},
        renewer_{std::make_shared<lease_renewer>(core_)},
        listeners_(std::max<std::uint32_t>(core_->store.shard_count(), 1)) {
    core_->hand_is_free = [weak = std::weak_ptr<limit_lines>{jobs_->lines()}] {
      if (auto const lines = weak.lock()) lines->offer_hand();
    };
  }

  [[nodiscard]] worker_core& core() const noexcept { return *core_; }

  /// Why it has ended, unless it was stopped.
  [[nodiscard]] error_code problem() const noexcept { return problem_; }

  /// Claim nothing any more, let the handlers finish, then tell them to stop. Safe in any thread.
  static void stop(std::shared_ptr<worker_run> const& self) {
    post_task(self->core_->strand, [self] {
      self->core_->stopping = true;
      self->core_->changed->notify();
    });
  }

  static boost::asio::awaitable<void> run(std::shared_ptr<worker_run> self) {
    namespace asio = boost::asio;
    auto& own = *self;
    own.jobs_->lines()->start_with(
        [weak = std::weak_ptr<worker_run>{self}](std::shared_ptr<active_job> const& job) {
          if (auto const alive = weak.lock()) alive->start(job);
        });
    own.core_->begin(lease_renewer::run(own.renewer_));
    own.next_collection_ = own.core_->clock.steady_now() + own.core_->options.gc_interval;
    while (!own.core_->stopping) {
      if (own.core_->free_hands() == 0) {
        co_await own.core_->changed->wait();
        continue;
      }
      if (own.round_.empty()) {
        co_await own.collect_pointers();
        auto const next = co_await own.scan();
        if (own.round_.empty()) {
          if (!own.core_->stopping) co_await idle(self, next);
        }
        continue;  // hands may have been taken meanwhile
      }
      auto queue = std::move(own.round_.front());
      own.round_.pop_front();
      co_await claim(self, std::move(queue), std::exchange(own.guessed_, false));
    }
    for (auto& listener : own.listeners_) {
      listener.cancel.emit(asio::cancellation_type::terminal);
    }
    // What they have claimed is given back.
    for (auto const& lost : own.core_->unanswered()) co_await claim(self, lost.first, true);
    own.jobs_->lines()->stop();
    co_await own.drain();
    while (!own.jobs_->lines()->empty() || !own.core_->active.empty()) {
      co_await own.core_->changed->wait();
    }
    own.renewer_->stop();
  }

 private:
  void start(std::shared_ptr<active_job> const& job) {
    renewer_->watch(*job);
    job_run::start(jobs_, job);
  }

  /// How often queues that have more get another turn before pointers are looked up again: so a
  /// backlog costs few scans, and a queue that has become due waits for few quanta of it.
  static constexpr std::size_t encores = 4;

  /// Fills the round. Gives the instant before which there will be nothing else, as far as the
  /// store knows.
  boost::asio::awaitable<steady_time> scan() {
    auto& core = *core_;
    auto const shards = std::max<std::uint32_t>(core.store.shard_count(), 1);
    auto next = steady_time::max();
    heard_ = false;  // what was told of is found now
    bool const anywhere = ++scans_ % 2 == 0;
    auto const looks = std::make_shared<std::deque<question<command::scan_visible_queues>>>();
    std::vector<any_question*> all;
    for (std::uint32_t shard = 0; shard != shards; ++shard) {
      all.push_back(&looks->emplace_back(
          command::scan_visible_queues{.shard = shard,
                                       .limit = core.options.scan_limit,
                                       .entropy = anywhere ? core.ids.entropy() | 1U : 0,
                                       .schedules = core.fires_schedules}));
    }
    co_await core.ask_all_once(looks, std::move(all));
    auto const heard_at = core.clock.steady_now();
    error_code refusal;
    for (std::uint32_t shard = 0; shard != shards; ++shard) {
      auto& look = (*looks)[shard];
      auto& in_vain = listeners_[shard].in_vain;
      in_vain = bool{look.error};
      if (look.error) {
        if (!admitted_ && is_for_good(look.error)) {
          refusal = look.error;
        } else {
          core.tell_failure(look.error);
        }
        continue;
      }
      admitted_ = true;
      auto& due = *look.answer;
      if (due.next_in) next = std::min(next, saturating_add(heard_at, *due.next_in));
      for (auto& queue : due.queues) {
        auto const at = core.claimable_at(queue);
        in_vain = in_vain || at > heard_at;
        add(std::move(queue), at, next);
      }
    }
    if (!admitted_ && refusal) give_up(refusal);
    for (auto const& [queue, at] : core.unanswered()) {
      if (std::ranges::find(round_, queue) == round_.end()) add(queue, at, next);
    }
    for (std::size_t i = round_.size(); i > 1; --i) {
      std::swap(round_[i - 1], round_[core.ids.entropy() % i]);
    }
    encores_ = encores * round_.size();
    co_return next;
  }

  /// Will the store refuse this worker whatever it asks, and however often?
  [[nodiscard]] static bool is_for_good(error_code ec) noexcept {
    return ec == condition::bad_input || ec == errc::schema_outdated ||
           ec == errc::schema_too_new || ec == errc::store_foreign || ec == errc::store_evicts ||
           ec == errc::permission_denied;
  }

  void give_up(error_code ec) {
    problem_ = ec;
    core_->stopping = true;
    tell_log(log::level::error, log::topic::worker, "worker: it cannot start: " + ec.message());
  }

  /// To the round, or `next` is not later than when the queue may be claimed from.
  void add(std::string queue, steady_time at, steady_time& next) {
    if (at > core_->clock.steady_now()) {
      next = std::min(next, at);
    } else {
      round_.push_back(std::move(queue));
    }
  }

  /// Whoever was told that there is a job, and found it in the same queue twice, looks there at
  /// once: it starts a round trip earlier than after a scan. A wrong guess costs one claim, and
  /// another is made only where two jobs in a row were one queue's again.
  void guess() {
    if (!std::exchange(heard_, false) || !twice_ || core_->failure_of(last_) != nullptr ||
        core_->refuses(last_)) {
      return;
    }
    round_.push_back(last_);
    guessed_ = true;
  }
  void found_in(std::string const& queue) {
    twice_ = queue == last_;
    last_ = queue;
  }

  /// Claims up to a quantum of one queue's jobs and starts them.
  ///
  /// @param guessed no scan has found the queue
  static boost::asio::awaitable<void> claim(std::shared_ptr<worker_run> self, std::string queue,
                                            bool guessed) {
    auto& core = *self->core_;
    auto* const failing = core.failure_of(queue);
    auto const most = failing != nullptr || core.refuses(queue) ? 1 : core.options.quantum;
    // The number makes the call repeatable: after a lost answer the same leases are given again
    // (F54).
    worker_core::numbered_dequeue asked{};
    if (failing != nullptr) std::swap(asked, failing->unanswered);
    if (asked.sequence == 0) asked = {++self->sequence_, std::min(most, core.free_hands())};
    question<command::dequeue_jobs> dequeue{{.queue = queue,
                                             .holder = core.holder,
                                             .sequence = asked.sequence,
                                             .limit = asked.limit,
                                             .lease = core.options.lease}};
    core.reserved += asked.limit;
    co_await core.ask_once(dequeue);
    core.reserved -= asked.limit;
    if (dequeue.error) {
      core.tell_failure(dequeue.error, queue);
      auto& failed = core.back_off(queue);
      if (dequeue.error == errc::outcome_unknown) failed.unanswered = asked;
      co_return;
    }
    auto const asked_at = dequeue.asked_at;
    auto& answer = *dequeue.answer;
    if (answer.dead_lettered != 0) {
      worker_event event;
      event.kind = worker_event_kind::dead_lettered;
      event.queue = queue;
      event.count = answer.dead_lettered;
      event.reason = "attempts spent, or deadline missed";
      core.tell(event);
    }
    if (answer.damaged != 0) {
      worker_event event;
      event.kind = worker_event_kind::damaged;
      event.queue = queue;
      event.count = answer.damaged;
      event.reason = damaged_record;
      core.tell(event);
    }
    auto const claimed_with = static_cast<std::uint32_t>(answer.jobs.size());
    ++self->claims_;
    for (auto& leased : answer.jobs) {
      // Others have had the hands while the answer was unknown.
      bool const too_many = core.free_hands() == 0;
      auto job = core.take_on(queue, std::move(leased), asked_at);
      job->claim = self->claims_;
      job->claimed_with = claimed_with;
      if (too_many) job->stop(stop_cause::shutdown);
      self->start(job);
    }
    bool const fruitless = answer.jobs.empty() && answer.dead_lettered == 0 && answer.damaged == 0;
    if (answer.more && !fruitless && self->encores_ > 0 && core.failure_of(queue) == nullptr &&
        !core.refuses(queue)) {
      --self->encores_;
      self->round_.push_back(queue);
    }
    self->claimed_ = self->claimed_ || !fruitless;
    if (!answer.jobs.empty()) {
      self->found_in(queue);
    } else if (guessed) {
      self->twice_ = false;
    }
    if (fruitless && !answer.held && !guessed) {
      // The pointer was early: without this the next scan would find it again.
      question<command::update_queue_pointer> update{{.queue = queue}};
      co_await core.ask_once(update);
      if (update.error) {
        core.tell_failure(update.error, queue);
        core.back_off(queue);
      }
    }
  }

  /// Waits until there may be something to do: a hint, a settled job, the next pointer, or the end
  /// of the poll interval.
  static boost::asio::awaitable<void> idle(std::shared_ptr<worker_run> self, steady_time next) {
    auto& core = *self->core_;
    // What looked due and gave nothing is another's: look again soon, but not at once.
    self->fruitless_ = std::exchange(self->claimed_, false) ? 0 : self->fruitless_ + 1;
    auto const now = core.clock.steady_now();
    auto const patience =
        self->fruitless_ == 0 ? duration{} : core.pause_after(self->fruitless_, {}) / 64;
    // Hints come to all at once; polls need not.
    auto const scatter = core.store.has_hints() ? 0 : core.ids.entropy() % 8;
    auto const jitter = core.options.poll / 64 * static_cast<duration::rep>(scatter);
    auto const until = std::min(std::max(next, saturating_add(now, patience)),
                                saturating_add(now, core.options.poll - jitter));
    self->jobs_->lines()->offer_all_hands();
    listen(self);
    co_await core.changed->wait_until(core.clock, until);
    self->guess();
  }

  struct listener {
    boost::asio::cancellation_signal cancel;
    bool armed = false;
    bool in_vain = false;  // a queue is due that fails: a hint would come at once, again and again
  };

  /// Keeps one hint asked for in every shard, where the store gives hints. It stays asked for while
  /// the worker is busy.
  static void listen(std::shared_ptr<worker_run> const& self) {
    auto& core = *self->core_;
    if (!core.store.has_hints()) return;
    for (std::uint32_t shard = 0; shard != self->listeners_.size(); ++shard) {
      auto& at = self->listeners_[shard];
      if (at.in_vain || std::exchange(at.armed, true)) continue;
      auto heard = [weak = std::weak_ptr<worker_run>{self}, shard](error_code ec, hint) {
        auto const run = weak.lock();
        if (!run) return;
        run->listeners_[shard].armed = false;
        if (ec) return;
        run->heard_ = true;
        run->core_->changed->notify();
      };
      core.store.start(
          command::await_jobs{shard, core.fires_schedules},
          boost::asio::bind_cancellation_slot(
              at.cancel.slot(), boost::asio::bind_executor(core.strand, std::move(heard))));
    }
  }

  boost::asio::awaitable<void> collect_pointers() {
    auto& core = *core_;
    if (core.clock.steady_now() < next_collection_) co_return;
    next_collection_ = saturating_add(core.clock.steady_now(), core.options.gc_interval);
    core.forget_refusals();  // of queues that are gone, too
    auto const shards = std::max<std::uint32_t>(core.store.shard_count(), 1);
    for (std::uint32_t shard = 0; shard != shards; ++shard) {
      question<command::gc_stale_pointers> collect{{.shard = shard}};
      co_await core.ask_once(collect);
      if (collect.error) core.tell_failure(collect.error);
      if (!core.fires_schedules) co_await look_for_schedules(shard);
    }
  }

  /// A worker fires no schedules; but it says so if nobody else does.
  boost::asio::awaitable<void> look_for_schedules(std::uint32_t shard) {
    auto& core = *core_;
    question<command::scan_visible_queues> look{{.shard = shard, .limit = 1, .schedules = true}};
    co_await core.ask_once(look);
    if (look.error || look.answer->queues.empty()) co_return;
    auto const queue = look.answer->queues.front();
    question<command::update_queue_pointer> since{{.queue = queue}};  // it may be early
    co_await core.ask_once(since);
    if (!since.error && *since.answer) log_unfired_schedules(queue, -**since.answer);
  }

  /// Lets the handlers finish, as long as the options allow; then tells them to stop, and waits
  /// until they have.
  boost::asio::awaitable<void> drain() {
    auto& core = *core_;
    auto const until = saturating_add(core.clock.steady_now(), core.options.drain);
    while (!core.active.empty() && core.clock.steady_now() < until) {
      co_await core.changed->wait_until(core.clock, until);
    }
    core.give_up_at = saturating_add(core.clock.steady_now(), std::chrono::seconds{1});
    for (auto const& job : core.active) job->stop(stop_cause::shutdown);
    while (!core.active.empty()) co_await core.changed->wait();
  }

  std::shared_ptr<worker_core> core_;
  std::shared_ptr<job_run> jobs_;
  std::shared_ptr<lease_renewer> renewer_;
  std::vector<listener> listeners_;
  std::deque<std::string> round_;
  std::uint64_t sequence_ = 0;
  std::uint64_t claims_ = 0;
  std::uint64_t scans_ = 0;
  std::uint32_t fruitless_ = 0;
  std::size_t encores_ = 0;
  bool claimed_ = false;
  bool heard_ = false;     // there was a hint since it was idle last
  bool admitted_ = false;  // a scan was answered
  error_code problem_{};
  bool guessed_ = false;  // the queue in front of the round was not found by a scan
  bool twice_ = false;    // the last two claims with jobs were of one queue, which is
  std::string last_;
  steady_time next_collection_{};
};

struct worker_runs::state {
  std::shared_ptr<handler_registry> handlers = std::make_shared<handler_registry>();
  std::mutex mutex;  ///< of what follows
  std::vector<std::weak_ptr<worker_run>> runs;

  void stop() {
    std::lock_guard const lock{mutex};
    for (auto const& weak : runs) {
      if (auto const run = weak.lock()) worker_run::stop(run);
    }
  }
  ~state() { stop(); }
};

WEIR_DECL worker_runs::worker_runs() : state_{std::make_shared<state>()} {}

WEIR_DECL void worker_runs::handle(std::string_view kind,
                                   std::shared_ptr<any_handler const> handler) {
  state_->handlers->insert_or_assign(std::string{kind}, std::move(handler));
}

WEIR_DECL void worker_runs::begin(
    worker_setup const& setup, boost::asio::any_io_executor handlers,
    boost::asio::any_completion_handler<void(error_code)> completion) {
  namespace asio = boost::asio;
  if (auto const ec = validate(setup.options)) {
    tell_log(log::level::error, log::topic::worker, "worker: it cannot start: " + ec.message());
    post_completion(setup.executor, std::move(completion), ec);
    return;
  }
  auto const run = std::make_shared<worker_run>(
      std::make_shared<worker_core>(setup, std::move(handlers)), state_->handlers);
  {
    std::lock_guard const lock{state_->mutex};
    std::erase_if(state_->runs, [](auto const& weak) { return weak.expired(); });
    state_->runs.push_back(run);
  }
  auto const cancelled = std::make_shared<std::atomic<bool>>(false);
  if (auto slot = asio::get_associated_cancellation_slot(completion); slot.is_connected()) {
    slot.assign([weak = std::weak_ptr<worker_run>{run}, cancelled](asio::cancellation_type_t type) {
      if (type == asio::cancellation_type::none) return;
      cancelled->store(true);
      if (auto const alive = weak.lock()) worker_run::stop(alive);
    });
  }
  // A function that is kept may be copied, and a completion may not.
  using kept = asio::any_completion_handler<void(error_code)>;
  auto done = [finish = std::make_shared<kept>(std::move(completion)), cancelled, run,
               ex = setup.executor](std::exception_ptr const&) {
    auto ec = run->problem();
    if (cancelled->load()) ec = asio::error::operation_aborted;
    post_completion(ex, std::move(*finish), ec);
  };
  run->core().begin(worker_run::run(run), std::move(done));
}

WEIR_DECL void worker_runs::stop() { state_->stop(); }

}  // namespace weir::detail

#endif
