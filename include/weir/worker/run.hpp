// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_WORKER_RUN_HPP
#define WEIR_WORKER_RUN_HPP

#include "weir/detail/config.hpp"
#include "weir/detail/spawn.hpp"
#include "weir/detail/task.hpp"
#include "weir/log.hpp"
#include "weir/parking.hpp"
#include "weir/posting.hpp"
#include "weir/worker/claims.hpp"
#include "weir/worker/contention.hpp"
#include "weir/worker/core.hpp"
#include "weir/worker/job_run.hpp"
#include "weir/worker/lease_renewer.hpp"
#include "weir/worker/lookout.hpp"
#include "weir/worker/register.hpp"
#include "weir/worker/runs.hpp"

#include <boost/asio/any_completion_handler.hpp>
#include <boost/asio/associated_cancellation_slot.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/deferred.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/post.hpp>
#include <boost/system/errc.hpp>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
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
/// A round is what one look found, or, right after a hint, the queue that the last claims were of,
/// which saves a look where the guess is right. Each queue of it is asked for at most a quantum of
/// jobs, and only for as many as there are free hands, so nothing is claimed that cannot start at
/// once. Where a claim has a round trip, those of several queues are under way at the same time and
/// share the free hands; a new look waits until one of them is answered.
class worker_run {
 public:
  worker_run(std::shared_ptr<worker_core> shared, std::shared_ptr<handler_registry const> handlers,
             std::shared_ptr<handler_run> runner)
      : core_{std::move(shared)},
        register_{core_->options.name.empty()
                      ? nullptr
                      : std::make_shared<worker_register>(core_, *handlers)},
        jobs_{job_run::make(core_, std::move(handlers), std::move(runner))},
        renewer_{std::make_shared<lease_renewer>(core_)},
        claims_{*core_},
        lookout_{std::make_shared<lookout>(core_, claims_, contention_)} {}

  [[nodiscard]] worker_core& core() const noexcept { return *core_; }

  /// Why it has ended, unless it was stopped.
  [[nodiscard]] error_code problem() const noexcept { return lookout_->problem(); }

  /// Claim nothing any more, let the handlers finish, then tell them to stop. Safe in any thread.
  /// Without memory to say so it is noticed at the next look.
  static void stop(std::shared_ptr<worker_run> const& self) noexcept {
    self->told_to_stop_ = true;
    try {
      post_task(self->core_->strand, [self] {
        self->core_->stopping = true;
        self->core_->changed->notify();
      });
    } catch (std::exception const&) {
    }
  }

  static boost::asio::awaitable<void> run(std::shared_ptr<worker_run> self) {
    auto& own = *self;
    auto& core = *own.core_;
    own.give_hands(self);
    lease_renewer::keep_notes(own.renewer_);
    lease_renewer::begin(own.renewer_);
    lease_renewer::await_cancels(own.renewer_);
    if (own.register_) worker_register::begin(own.register_);
    own.next_collection_ = core.clock.steady_now() + core.options.gc_interval;
    while (!core.stopping && !own.told_to_stop_) {
      if (!own.claims_.empty()) own.claims_.let_go_of_slow_ones();
      if (core.free_hands() == 0) {
        if (own.claims_.empty()) own.lookout_->pass_on();
        co_await own.wait_for_change();
        continue;
      }
      if (own.contention_.gives_up()) {
        core.due.clear();
        own.steps_aside_ = true;
      }
      if (auto turn = own.next_turn()) {
        auto plan = own.plan(std::move(*turn));
        if (core.store.executes_now()) {
          kept_hands hands{core, std::move(plan)};
          co_await claim(self, hands);
        } else {
          begin_claim(self, std::move(plan));
        }
        continue;
      }
      if (own.waits_for_claims()) {
        co_await own.wait_for_change();
        continue;
      }
      if (std::exchange(own.steps_aside_, false)) co_await own.step_aside();
      // Claimed jobs start first: a store that executes at once leaves them no pause to do so.
      if (own.claimed_ && core.store.executes_now())
        co_await boost::asio::post(boost::asio::deferred);
      co_await own.collect_pointers(self);
      auto const next = co_await own.look();
      if (!core.due.any() && !core.stopping) co_await own.idle(next);
    }
    core.stopping = true;
    own.lookout_->stop();
    if (own.register_) own.register_->note_stop();
    while (!own.claims_.empty()) co_await core.changed->wait();
    // Jobs of unanswered claims are given back.
    for (auto const& lost : core.unanswered()) {
      kept_hands hands{core, own.plan({std::string{lost.first}, core.due.of(lost.first)})};
      co_await claim(self, hands);
    }
    for (auto const& job : std::exchange(core.waiting, {})) {
      job->stop(stop_cause::shutdown);
      job_run::start(own.jobs_, job);
    }
    own.jobs_->lines()->stop();
    co_await own.drain();
    while (!own.jobs_->lines()->empty() || !core.active.empty()) co_await core.changed->wait();
    own.renewer_->stop();
    if (own.register_) co_await worker_register::leave(own.register_);
    core.has_ended = true;
  }

  /// It cannot go on, for want of memory or because of a policy that threw: leases are renewed no
  /// more, and what runs may lose them.
  void give_up() {
    core_->stopping = true;
    lookout_->stop();
    jobs_->lines()->stop();
    renewer_->stop();
    if (register_) register_->quit();
    for (auto const& job : core_->active) job->stop(stop_cause::shutdown);
    core_->has_ended = true;
  }

 private:
  /// Connects the parts: a hand that is free goes to a line of a limit or to a job that was claimed
  /// ahead, and a job that a line brings forward is started.
  void give_hands(std::shared_ptr<worker_run> const& self) {
    auto const weak = std::weak_ptr<worker_run>{self};
    core_->hand_is_free = [weak] {
      auto const run = weak.lock();
      if (!run) return;
      auto& core = *run->core_;
      if (core.handless_lines != 0) run->jobs_->lines()->offer_hand();
      if (core.waiting.empty() || !core.may_run_another()) return;
      post_task(core.strand, [run] { run->start_waiting(); });
    };
    core_->drop_lost = [weak] {
      if (auto const run = weak.lock()) run->drop_lost();
    };
    jobs_->lines()->start_with([weak](std::shared_ptr<active_job> const& job) {
      if (auto const run = weak.lock()) run->start(job);
    });
  }
  void start_waiting() {
    auto& core = *core_;
    while (!core.waiting.empty() && core.may_run_another() && !core.stopping) {
      auto const job = std::move(core.waiting.front());
      core.waiting.pop_front();
      job_run::start(jobs_, job);
    }
  }
  /// A job that was claimed ahead, and has lost its lease, does not wait for a hand.
  void drop_lost() {
    auto& waiting = core_->waiting;
    auto const is_lost = [](auto const& job) { return job->cause != stop_cause::none; };
    for (auto at = waiting.begin();
         (at = std::ranges::find_if(waiting, is_lost)) != waiting.end();) {
      auto const job = std::move(*at);
      waiting.erase(at);
      job_run::start(jobs_, job);
    }
  }
  void start(std::shared_ptr<active_job> const& job) {
    renewer_->watch(*job);
    job_run::start(jobs_, job);
  }
  void start_or_keep(std::shared_ptr<active_job> const& job) {
    auto& core = *core_;
    if (job->cause != stop_cause::none ||
        (core.waiting.empty() && core.running() <= core.options.concurrency)) {
      start(job);
    } else {
      renewer_->watch(*job);
      core.waiting.push_back(job);
    }
  }

  /// How many turns queues that have more get, each, before pointers are looked up again: so a
  /// backlog costs few looks, and a queue that has become due waits for few quanta of it.
  static constexpr std::size_t encores = 5;

  /// A round lasts no longer than a poll interval, and has one turn at least.
  [[nodiscard]] std::optional<turns::turn> next_turn() {
    if (encores_ == 0) return std::nullopt;
    auto const now = core_->clock.steady_now();
    if (now >= round_ends_) return std::nullopt;
    auto const since =
        core_->store.executes_now() ? steady_time::max() : saturating_add(now, -claims_.patience());
    auto turn = core_->due.next(since);
    if (turn && round_ends_ == steady_time::max()) {
      round_ends_ = saturating_add(now, core_->options.poll);
    }
    return turn;
  }
  /// Claims that are under way may find more; looks are for what they do not.
  [[nodiscard]] bool waits_for_claims() const {
    return encores_ != 0 && !claims_.empty() && !lookout_->heard() &&
           core_->clock.steady_now() < next_look_;
  }
  /// No longer than until a claim is too slow to be waited for.
  boost::asio::awaitable<void> wait_for_change() {
    auto& core = *core_;
    if (claims_.empty()) return core.changed->wait();
    auto const now = core.clock.steady_now();
    auto const until = saturating_add(now, claims_.patience());
    return core.changed->wait_until(core.clock,
                                    next_look_ > now ? std::min(until, next_look_) : until);
  }

  boost::asio::awaitable<void> collect_pointers(std::shared_ptr<worker_run> self) {
    auto& core = *core_;
    if (collects_ || core.clock.steady_now() < next_collection_) co_return;
    next_collection_ = saturating_add(core.clock.steady_now(), core.options.gc_interval);
    core.forget_refusals();  // of queues that are gone, too
    auto collecting = lookout_->collect_pointers();
    if (core.store.executes_now()) {
      co_await std::move(collecting);
      co_return;
    }
    // It may take long, and jobs do not wait for it.
    collects_ = true;
    core.begin(std::move(collecting),
               [self](std::exception_ptr const&) { self->collects_ = false; });
  }

  boost::asio::awaitable<steady_time> look() {
    auto& core = *core_;
    next_look_ = saturating_add(core.clock.steady_now(), core.options.poll);
    contention_.looks();
    auto const next = co_await lookout_->look();
    encores_ = encores * std::max<std::size_t>(core.due.size(), 1);
    round_ends_ = steady_time::max();
    if (auto const ec = lookout_->problem()) {
      core.stopping = true;
      tell_log(log::level::error, log::topic::worker, "worker: it cannot start: " + ec.message());
    }
    co_return next;
  }

  /// After a hint, claims from the queue that the last two jobs were of, without a look: its job
  /// starts a round trip earlier. A wrong guess costs one claim, and another is made only where two
  /// jobs in a row were one queue's again.
  void guess() {
    if (!lookout_->heard() || !claims_.empty()) return;
    lookout_->forget_hint();
    auto& due = core_->due;
    if (!twice_ || due.size() != 0 || core_->failure_of(last_) != nullptr ||
        core_->claimable_at(last_) != steady_time::min() || due.room_of(due.of(last_)) == 0) {
      return;
    }
    due.add(std::string{last_}, due.of(last_));
    round_ends_ = steady_time::max();
    guessed_ = true;
  }
  void found_in(std::string const& queue) {
    twice_ = queue == last_;
    last_ = queue;
  }

  /// How many jobs are to be claimed of a queue.
  [[nodiscard]] claim_plan plan(turns::turn&& turn) {
    auto& core = *core_;
    auto& queue = turn.queue;
    auto* const failing = core.failure_of(queue);
    auto most = core.options.quantum;
    if (!core.store.executes_now()) {
      // Those after it are claimed from at the same time.
      auto const others = static_cast<std::uint32_t>(core.due.size());
      auto const share = std::max(core.free_hands() / (others + 1), 1U);
      most = claims_.is_deep(queue) ? std::max(most, share) : share;
    }
    if (failing != nullptr || core.refuses(queue) || core.gives_way.expects_unknown(queue)) {
      most = 1;
    }
    // The number makes the call repeatable: after a lost answer the same leases are given again
    // (F54).
    worker_core::numbered_dequeue asked{};
    if (failing != nullptr) std::swap(asked, failing->unanswered);
    bool const again = asked.sequence != 0;
    if (!again) {
      asked = {++sequence_, std::min({most, core.free_hands(), core.due.room_of(turn.by)})};
    }
    bool const guessed = std::exchange(guessed_, false);
    return {std::move(queue), turn.by, asked, again, guessed};
  }

  /// Claims beside others.
  static void begin_claim(std::shared_ptr<worker_run> const& self, claim_plan&& plan) {
    auto const hands = std::make_shared<kept_hands>(*self->core_, std::move(plan));
    self->claims_.begin(hands);
    auto ended = [self, hands](std::exception_ptr const& failed) {
      auto const& queue = hands->plan.queue;
      self->claims_.end(queue);
      self->next_look_ = steady_time::min();
      if (failed) {
        self->core_->tell_failure(make_error_code(boost::system::errc::not_enough_memory), queue);
      }
      self->core_->changed->notify();
    };
    self->core_->begin(claim(self, *hands), std::move(ended));
  }

  /// Claims of one queue's jobs and starts them.
  static boost::asio::awaitable<void> claim(std::shared_ptr<worker_run> self, kept_hands& hands) {
    auto& core = *self->core_;
    auto const& plan = hands.plan;
    auto const& queue = plan.queue;
    question<command::dequeue_jobs> dequeue{{.queue = queue,
                                             .holder = core.holder,
                                             .sequence = plan.asked.sequence,
                                             .limit = plan.asked.limit,
                                             .lease = core.options.lease}};
    if (core.store.executes_now()) {
      dequeue.asked_at = core.clock.steady_now();
      core.ask_now(dequeue);
      // Claims that take no hand have no other bound.
      bool const takes_none = dequeue.error || dequeue.answer->jobs.empty();
      if (takes_none) co_await boost::asio::post(boost::asio::deferred);
    } else {
      co_await core.ask_once(dequeue);
    }
    if (dequeue.error) {
      hands.end(0);
      core.tell_failure(dequeue.error, queue);
      auto& failed = core.back_off(queue);
      // Some may have been claimed also where memory has ended before the answer was whole.
      bool const may_have = dequeue.error == errc::outcome_unknown ||
                            dequeue.error == boost::system::errc::not_enough_memory;
      if (may_have || plan.again) failed.unanswered = plan.asked;
      co_return;
    }
    auto& answer = *dequeue.answer;
    hands.end(answer.jobs.size());
    if (answer.dead_lettered != 0 || answer.damaged != 0) self->tell_of_ended(queue, answer);
    auto const claimed_with = static_cast<std::uint32_t>(answer.jobs.size());
    ++self->claims_made_;
    bool const prefetches = core.options.prefetch != 0;
    auto const found_by =
        answer.jobs.empty() ? look_cause::none : std::exchange(self->found_by_, look_cause::none);
    for (auto& leased : answer.jobs) {
      // Others may have had the hands, if the answer was late or unknown.
      bool const too_many = core.has_ended || core.free_hands() == 0 ||
                            (core.due.bounded() && core.due.room_of(plan.by) == 0);
      auto job = core.take_on(queue, std::move(leased), dequeue.asked_at);
      job->claim = self->claims_made_;
      job->claimed_with = claimed_with;
      job->found_by = found_by;
      if (too_many) job->stop(stop_cause::shutdown);
      if (prefetches) {
        self->start_or_keep(job);
      } else {
        self->start(job);
      }
    }
    bool const fruitless = answer.jobs.empty() && answer.dead_lettered == 0 && answer.damaged == 0;
    self->claimed_ = self->claimed_ || !fruitless;
    if (!answer.jobs.empty()) {
      self->found_in(queue);
    } else if (plan.guessed) {
      self->twice_ = false;
    }
    if (answer.held || !fruitless) self->lookout_->note_held(queue, answer.held);
    if (!answer.more) core.gives_way.emptied(queue);
    bool const lost = fruitless && !answer.held && !plan.guessed;
    if (!lost) {
      self->contention_.won();
    } else if (self->contention_.lost(queue)) {
      // The pointer is early: without this each look would find it.
      question<command::update_queue_pointer> update{{.queue = queue}};
      co_await core.ask_once(update);
      if (update.error) {
        core.tell_failure(update.error, queue);
        core.back_off(queue);
      }
    }
    if (!core.store.executes_now()) self->claims_.note_depth(queue, answer.more);
    if (answer.more && !fruitless && core.failure_of(queue) == nullptr && !core.refuses(queue) &&
        core.claimable_at(queue) <= core.clock.steady_now()) {
      if (self->encores_ != 0) --self->encores_;
      core.due.add(std::string{queue}, plan.by);
    }
  }

  /// How long those are left alone who are at work on what is due: longer each time that nothing
  /// was got since the last.
  [[nodiscard]] duration patience() {
    fruitless_ = std::exchange(claimed_, false) ? 0 : fruitless_ + 1;
    return fruitless_ == 0 ? duration{} : core_->pause_after(fruitless_, {}) / 64;
  }
  boost::asio::awaitable<void> step_aside() {
    auto& core = *core_;
    auto const pause = patience();
    if (pause == duration{}) co_return;
    co_await core.changed->wait_until(core.clock, saturating_add(core.clock.steady_now(), pause));
  }

  void tell_of_ended(std::string const& queue, dequeued const& answer) {
    worker_event event;
    event.queue = queue;
    if (answer.dead_lettered != 0) {
      event.kind = worker_event_kind::dead_lettered;
      event.count = answer.dead_lettered;
      event.reason = "attempts spent, or deadline missed";
      core_->tell(event);
    }
    if (answer.damaged != 0) {
      event.kind = worker_event_kind::damaged;
      event.count = answer.damaged;
      event.reason = damaged_record;
      core_->tell(event);
    }
  }

  /// Waits until there may be something to do: a hint, a settled job, the next pointer, or the end
  /// of the poll interval.
  boost::asio::awaitable<void> idle(steady_time next) {
    auto& core = *core_;
    auto const now = core.clock.steady_now();
    // Hints come to all at once; polls need not.
    auto const scatter = core.store.has_hints() ? 0 : core.ids.entropy() % 8;
    auto const jitter = core.options.poll / 64 * static_cast<duration::rep>(scatter);
    auto until = saturating_add(now, core.options.poll - jitter);
    if (lookout_->others_are_due()) {
      until = std::min(until, saturating_add(now, core.options.poll / 10));
    }
    if (claims_.empty()) {
      // A queue that looked due and gave nothing is served by another worker: look again soon, but
      // not at once.
      until = std::min(until, std::max(next, saturating_add(now, patience())));
    } else if (next > now) {
      until = std::min(until, next);
    }
    jobs_->lines()->offer_all_hands();
    lookout_->listen();
    co_await core.changed->wait_until(core.clock, until);
    auto const woke = core.clock.steady_now();
    bool const polls = woke >= until && woke < next;
    found_by_ = lookout_->heard() ? look_cause::hint : polls ? look_cause::poll : look_cause::none;
    guess();
  }

  /// Lets the handlers finish, as long as the options allow; then tells them to stop, and waits
  /// until they have.
  boost::asio::awaitable<void> drain() {
    auto& core = *core_;
    auto const until = saturating_add(core.clock.steady_now(), core.options.drain);
    while (!core.active.empty() && core.clock.steady_now() < until) {
      co_await core.changed->wait_until(core.clock, until);
    }
    core.lose_patience();
    for (auto const& job : core.active) job->stop(stop_cause::shutdown);
    while (!core.active.empty()) co_await core.changed->wait();
  }

  std::shared_ptr<worker_core> core_;
  std::shared_ptr<worker_register> register_;  ///< null: it does not stand there
  std::shared_ptr<job_run> jobs_;
  std::shared_ptr<lease_renewer> renewer_;
  claims_under_way claims_;
  contention contention_;
  std::shared_ptr<lookout> lookout_;
  std::uint64_t sequence_ = 0;
  std::uint64_t claims_made_ = 0;
  std::uint32_t fruitless_ = 0;
  std::size_t encores_ = 1;                     ///< 0: there is a look before the next turn
  steady_time next_look_ = steady_time::min();  ///< while claims are under way, not before
  steady_time round_ends_ = steady_time::max();
  bool claimed_ = false;
  bool steps_aside_ = false;  ///< the round was given up
  bool guessed_ = false;      ///< the queue in front of the round was not found by a look
  look_cause found_by_ = look_cause::none;  ///< until a claim has found something
  bool twice_ = false;  ///< the last two claims with jobs were of one queue, which is
  std::string last_;
  steady_time next_collection_{};
  bool collects_ = false;
  std::atomic<bool> told_to_stop_ = false;
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
  auto refusal = validate(setup.options);
  auto const missing = [&](std::uint32_t shard) { return shard >= setup.store.shard_count(); };
  if (!refusal && setup.fires_schedules && !setup.options.shards.empty()) {
    refusal = explained(errc::invalid_option, "worker_options::shards of a scheduler");
  }
  if (!refusal && std::ranges::any_of(setup.options.shards, missing)) {
    refusal = explained(errc::invalid_shard, "worker_options::shards");
  }
  if (!refusal && setup.fires_schedules && !setup.options.queues.empty()) {
    refusal = explained(errc::invalid_option, "worker_options::queues of a scheduler");
  }
  if (refusal) {
    tell_log(log::level::error, log::topic::worker,
             "worker: it cannot start: " + refusal.message());
    post_completion(setup.executor, std::move(completion), refusal);
    return;
  }
  auto core = std::make_shared<worker_core>(setup);
  auto runner = std::make_shared<handler_run>(setup, handlers, core->bookkeeping);
  auto const run =
      std::make_shared<worker_run>(std::move(core), state_->handlers, std::move(runner));
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
  // Parked, so that it is work of its own executor, and dies with either context.
  auto const finish =
      park<error_code>(setup.executor, asio::bind_cancellation_slot(asio::cancellation_slot{},
                                                                    std::move(completion)));
  auto done = [finish, cancelled, run](std::exception_ptr const& failed) {
    if (failed) run->give_up();
    auto ec = failed ? error_of(failed) : run->problem();
    if (cancelled->load()) ec = asio::error::operation_aborted;
    finish->resume(ec);
  };
  run->core().begin(worker_run::run(run), std::move(done));
}

WEIR_DECL void worker_runs::stop() { state_->stop(); }

}  // namespace weir::detail

#endif
