// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_WORKER_CORE_HPP
#define WEIR_WORKER_CORE_HPP

#include "weir/detail/context_gate.hpp"
#include "weir/detail/late_renewals.hpp"
#include "weir/error.hpp"
#include "weir/limits.hpp"
#include "weir/log.hpp"
#include "weir/worker/active_job.hpp"
#include "weir/worker/deference.hpp"
#include "weir/worker/logging.hpp"
#include "weir/worker/question.hpp"
#include "weir/worker/runs.hpp"
#include "weir/worker/turns.hpp"
#include "weir/worker/wakeup.hpp"
#include "weir/worker_event.hpp"

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/async_result.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/deferred.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/strand.hpp>
#include <boost/config.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace weir::detail {

/// What the parts of a running worker share: the store, the clock, the jobs in hand, and how to ask
/// and to tell. All of it is used on one strand.
class worker_core : public std::enable_shared_from_this<worker_core> {
 public:
  explicit worker_core(worker_setup const& s)
      : store{s.store},
        options{s.options},
        clock{s.clock},
        backoff{s.backoff},
        ids{s.ids},
        holder{ids.holder()},
        strand{boost::asio::make_strand(s.executor)},
        bookkeeping{std::make_shared<gated_executor>(strand)},
        changed{std::make_shared<wakeup>(strand)},
        fires_schedules{s.fires_schedules},
        due{s.options.queues},
        gives_way{s.options.poll / 16},
        observer_{s.observer} {}
  worker_core(worker_core const&) = delete;
  worker_core& operator=(worker_core const&) = delete;
  /// Its context may end before handlers that run on others.
  ~worker_core() {
    for (auto const& job : active) job->context.request_stop();
  }

  /// Begins a coroutine, wherever and for whatever it is: each of them by one function, since
  /// Asio's is dear to compile.
  static void begin(boost::asio::any_io_executor const& on, boost::asio::awaitable<void> what,
                    boost::asio::cancellation_slot slot,
                    std::function<void(std::exception_ptr)> then) {
    // Asio brings a cancellation to the coroutine's strand only if the completion has an executor
    // of its own; otherwise the signal acts on the thread that emits it (F56).
    boost::asio::co_spawn(
        on, std::move(what),
        boost::asio::bind_executor(on, boost::asio::bind_cancellation_slot(slot, std::move(then))));
  }
  /// Begins one on the strand.
  void begin(
      boost::asio::awaitable<void> what,
      std::function<void(std::exception_ptr)> then = [](std::exception_ptr const&) {}) {
    begin(strand, std::move(what), {}, std::move(then));
  }

  /// Asks the store, and asks again while the failure is one that may pass and `until` has not
  /// come.
  template <class C>
  boost::asio::awaitable<void> ask(question<C>& what, steady_time until) {
    static_assert(C::repeatable);
    return ask_again(what, until);
  }

  /// Asks once. Nothing is answered inline.
  boost::asio::awaitable<void> ask_once(any_question& what) {
    namespace asio = boost::asio;
    what.asked_at = clock.steady_now();
    if (store.executes_now()) {
      ask_now(what);
      co_await boost::asio::post(asio::deferred);
      co_return;
    }
    auto initiate = [&](auto handler) { what.start(store, strand, std::move(handler)); };
    co_await asio::async_initiate<asio::deferred_t const, void(error_code)>(initiate,
                                                                            asio::deferred);
    heed(what);
  }

  /// Asks once a store that executes at once, and has the answer. Who asks in a loop lets others
  /// get on now and then; when it is asked they note themselves.
  // Inlined by g++ 12, it is warned of for questions that it is never asked.
  BOOST_NOINLINE void ask_now(any_question& what) {
    try {
      what.execute(store);
    } catch (std::bad_alloc const&) {
      what.fail(make_error_code(boost::system::errc::not_enough_memory));
    }
    heed(what);
  }

  /// Backs off from the queue of a command that has failed, unless the error is about its job.
  void heed(any_question& what) {
    auto const ec = what.error;
    if (ec == errc::outcome_unknown) what.in_doubt = true;
    if (!ec) recovered();
    if (!ec || !what.heeded || what.queue.empty() || ec == errc::lease_lost ||
        ec == condition::bad_input)
      return;
    back_off(what.queue);
  }

  boost::asio::awaitable<void> sleep(duration wait) {
    auto const bed = std::make_shared<wakeup>(strand);
    co_await rest(*bed, saturating_add(clock.steady_now(), wait));
  }
  /// Waits until a time, or until the worker has drained and asks for the last time.
  boost::asio::awaitable<void> rest(wakeup& bed, steady_time until) {
    std::erase_if(resting_, [](auto const& one) { return one.expired(); });
    resting_.push_back(bed.weak_from_this());
    return bed.wait_until(clock, until);
  }
  /// The worker has drained: a store that fails is asked once more, and for a second at most.
  void lose_patience() {
    give_up_at = saturating_add(clock.steady_now(), std::chrono::seconds{1});
    for (auto const& one : std::exchange(resting_, {})) {
      if (auto const bed = one.lock()) bed->notify();
    }
  }

  /// How long to leave a store alone that has just failed: by the worker's backoff, never longer
  /// than its poll, and for so long if that throws: it is the user's.
  [[nodiscard]] duration pause_after(std::uint32_t attempt, duration previous) noexcept try {
    duration const shortest = std::chrono::milliseconds{1};
    return std::min(std::max(backoff(attempt, previous, ids.entropy()), shortest), options.poll);
  } catch (...) {
    tell_failure_of("worker: its backoff", std::current_exception());
    return options.poll;
  }

  /// The parts of a dequeue that stay the same when it is asked again.
  struct numbered_dequeue {
    std::uint64_t sequence = 0;  ///< 0: none
    std::uint32_t limit = 0;
  };

  /// A queue whose commands fail. Nothing is claimed of it until `until`, and after that one job at
  /// a time, until it has gone without a failure for a poll interval.
  struct queue_failure {
    steady_time until = steady_time::min();
    duration wait{};
    std::uint32_t failures = 0;
    numbered_dequeue unanswered{};  ///< with unknown outcome
  };

  /// A command of this queue has failed: leaves the queue alone for a while, and no other (F93).
  queue_failure& back_off(std::string_view queue) {
    auto const now = clock.steady_now();
    std::erase_if(failing_, [&](auto const& f) { return is_over(f.second, now); });
    auto& failing = failing_[std::string{queue}];
    if (now >= failing.until) {
      failing.wait = pause_after(failing.failures++, failing.wait);
      failing.until = saturating_add(now, failing.wait);
    }
    return failing;
  }

  /// The failure of this queue, if it has one that is not over.
  [[nodiscard]] queue_failure* failure_of(std::string const& queue) {
    auto const found = failing_.find(queue);
    if (found == failing_.end() || is_over(found->second, clock.steady_now())) return nullptr;
    return &found->second;
  }

  /// When a queue that is due may be claimed from: not later than now, unless it fails, gives only
  /// what is refused, or others go first. `steady_time::max()`: when its job in hand is settled.
  [[nodiscard]] steady_time claimable_at(std::string const& queue) {
    if (failing_.empty() && refusing_.empty() && gives_way.empty()) return steady_time::min();
    auto const* const failing = failure_of(queue);
    if (failing == nullptr) {
      auto const first = gives_way.claimable_at(queue, clock.steady_now());
      auto const found = refusing_.find(queue);
      return found == refusing_.end() ? first : std::max(first, found->second);
    }
    // Of a claim whose answer was lost there may be jobs to run, whatever else runs.
    if (failing->unanswered.sequence != 0) return failing->until;
    auto const of_queue = [&](auto const& job) { return job->queue == queue; };
    return std::ranges::any_of(active, of_queue) ? steady_time::max() : failing->until;
  }

  /// A job's concurrency limit has refused it, and will do so for a while. A queue of which it has
  /// refused a whole claim is claimed from one job at a time, by and by, until one of them can
  /// start: what is behind the refused is found, and they are not all claimed only to wait (F73).
  void refused(active_job const& job) {
    if (job.claim == 0) return;
    if (++refusals_[job.claim] != job.claimed_with) {
      // Of an old claim the others have started: its count would stay.
      if (refusals_.size() > limits::batch) refusals_.erase(refusals_.begin());
      return;
    }
    refusals_.erase(job.claim);
    auto const apart = options.poll / static_cast<duration::rep>(options.quantum);
    refusing_[job.queue] = saturating_add(clock.steady_now(), apart);
  }
  void started(active_job const& job) {
    if (!refusing_.empty() && job.claim != 0) refusing_.erase(job.queue);
  }
  /// A limit has few jobs left that wait for it.
  void refuse_no_more(std::string const& queue) {
    if (refusing_.erase(queue) != 0) changed->notify();
  }
  void forget_refusals() {
    refusals_.clear();
    refusing_.clear();
  }
  [[nodiscard]] bool refuses(std::string const& queue) const { return refusing_.contains(queue); }

  [[nodiscard]] bool is_active(job_id id, std::uint64_t fence) const {
    return std::ranges::any_of(
        active, [&](auto const& one) { return one->job.id == id && one->job.fence == fence; });
  }

  /// The queues with a dequeue whose outcome is unknown. They are asked again although no scan may
  /// find them any more.
  [[nodiscard]] std::map<std::string, steady_time> unanswered() const {
    std::map<std::string, steady_time> queues;
    for (auto const& [queue, failing] : failing_) {
      if (failing.unanswered.sequence != 0) queues.emplace(queue, failing.until);
    }
    return queues;
  }

  /// A holder judges its own lease from before its request was sent, less a margin for clocks that
  /// run apart.
  [[nodiscard]] static steady_time lease_deadline(steady_time asked_at, duration expires_in) {
    return saturating_add(asked_at, expires_in - expires_in / 20);
  }

  void tell(worker_event const& event) noexcept {
    log_worker_event(event, log_state_);
    if (!observer_ || has_ended) return;
    try {
      observer_(event);
    } catch (...) {
      tell_failure_of("worker: its observer", std::current_exception());
    }
  }
  /// How long ago the job's handler started, where somebody is told; negative: it has not started.
  /// Events of a batch share the time that is read for the first of them.
  [[nodiscard]] duration took(active_job const& job, steady_time& now) const noexcept {
    if (!observer_ || job.started_at == steady_time::min()) return duration{-1};
    if (now == steady_time::min()) now = clock.steady_now();
    return saturating_sub(now, job.started_at);
  }
  void tell_failure(error_code ec, std::string_view queue = {}) noexcept {
    worker_event event;
    if (ec == errc::store_unavailable && !away_since_) away_since_ = clock.steady_now();
    event.kind = worker_event_kind::store_failed;
    event.queue = queue;
    event.error = ec;
    tell(event);
  }
  void tell(worker_event_kind kind, active_job const& job, std::string_view reason = {},
            duration delay = {}) noexcept {
    if (kind == worker_event_kind::lease_lost && reason.empty() && !job.renewing) {
      auto const late = text_of_late_renewals(saturating_sub(clock.steady_now(), job.renew_at),
                                              options.lease, "bookkeeping_on");
      tell_of_job(kind, job, late, delay);
    } else {
      tell_of_job(kind, job, reason, delay);
    }
  }

  /// The job was claimed.
  std::shared_ptr<active_job> take_on(std::string const& queue, leased_job&& leased,
                                      steady_time asked_at) {
    auto const expires_in = leased.expires_in;
    auto job = std::make_shared<active_job>(queue, std::move(leased), asked_at);
    job->core = weak_from_this();
    job->context.notes().kept_by(job, &notes_are_wanted, bookkeeping);
    job->deadline = lease_deadline(asked_at, expires_in);
    job->renew_at = saturating_add(asked_at, expires_in / 3);
    job->place = active.size();
    active.push_back(job);
    if (due.bounded()) {
      job->entry = due.of(job->queue);
      due.has(job->entry, 1);
    }
    return job;
  }

  /// How many more jobs may be claimed. A job whose handler has ended has no hand while its outcome
  /// is stored; but no more than so many may be stored at once.
  [[nodiscard]] std::uint32_t free_hands() const noexcept {
    auto const most = options.concurrency + options.prefetch;
    if (finishing >= most) return 0;
    auto const busy = static_cast<std::uint32_t>(active.size() - finishing) + reserved;
    return most - std::min(most, busy);
  }
  /// Jobs that have a hand, and hands that are kept for one that is to start at once.
  [[nodiscard]] std::size_t running() const noexcept {
    return active.size() - waiting.size() - finishing + reserved_to_run;
  }
  /// May another of the jobs that wait start?
  [[nodiscard]] bool may_run_another() const noexcept { return running() < options.concurrency; }
  /// Its handler has ended, and its outcome is to be stored.
  void finish(active_job& job) {
    // Where that takes no round trip the hand is kept: there is nothing to be won.
    if (store.executes_now() || std::exchange(job.finishing, true)) return;
    ++finishing;
    free_a_hand();
  }
  /// For a job that is to come, and to start at once.
  [[nodiscard]] bool reserve_hand() noexcept {
    if (free_hands() == 0 || !may_run_another()) return false;
    ++reserved;
    ++reserved_to_run;
    return true;
  }
  void return_hand() noexcept {
    --reserved;
    --reserved_to_run;
  }

  /// The job's outcome is stored, or it is not this worker's any more.
  void settle(active_job& job) {
    if (std::exchange(job.settled, true)) return;
    if (job.finishing) --finishing;
    job.prepared.reset();
    auto const place = job.place;
    active.back()->place = place;
    std::swap(active[place], active.back());
    if (due.bounded()) due.has_no_more(job.entry, 1);
    active.pop_back();  // and this job with it, if nobody else has it
    job.finishing ? changed->notify() : free_a_hand();
  }

  /// Offers the hand to the lines of limits, and to jobs that were claimed ahead.
  void free_a_hand() {
    if (handless_lines != 0 || !waiting.empty()) hand_is_free();
    changed->notify();
  }

  worker_store const store;
  worker_options const options;
  any_clock const clock;
  any_backoff const backoff;
  id_source ids;
  std::string const holder;
  boost::asio::any_io_executor const strand;
  std::shared_ptr<gated_executor const> const bookkeeping;  ///< the same, for handlers
  std::vector<std::shared_ptr<active_job>> active;          ///< in no order
  std::deque<std::shared_ptr<active_job>> waiting;          ///< of them, those that were prefetched
  std::shared_ptr<wakeup> const changed;  ///< there may be something to do, or the worker stops
  std::size_t finishing = 0;              ///< jobs whose handlers have ended
  std::uint32_t reserved = 0;             ///< hands
  std::uint32_t reserved_to_run = 0;      ///< of them, those of the lines of limits
  std::size_t handless_lines = 0;         ///< lines of limits that wait for a hand
  std::function<void()> hand_is_free;     ///< called when there are such lines, or jobs that wait
  std::function<void(active_job&)> keep_notes;  ///< called when its handler noted something
  std::function<void()> deliver_ended;  ///< called at each renewal: see `handler_run::deliver`
  std::function<void()> drop_lost;      ///< called at each renewal: see `worker_run::drop_lost`
  bool const fires_schedules;           ///< serves queues of schedules, and no others
  turns due;                            ///< the queues that may be claimed from
  deference gives_way;                  ///< in queues with jobs of unknown kinds
  bool has_ended = false;               ///< its observer may be gone: it is told no more
  bool stopping = false;                ///< nothing is claimed or started any more
  steady_time give_up_at = steady_time::max();  ///< stopping: a store that fails is not asked again
                                                ///< from here on

 private:
  /// In the handler's thread, while it runs: what runs it keeps the job. Without memory for it the
  /// next renewal takes along what there is.
  static void notes_are_wanted(void* of) noexcept try {
    auto const job = static_cast<active_job*>(of)->shared_from_this();
    job->context.notes().bookkeeping()->post([job] {
      auto const core = job->core.lock();
      if (core && !job->settled && core->keep_notes) core->keep_notes(*job);
    });
  } catch (...) {
  }

  void tell_of_job(worker_event_kind kind, active_job const& job, std::string_view reason,
                   duration delay) noexcept {
    worker_event event;
    event.kind = kind;
    event.queue = job.queue;
    event.job = &job.job;
    event.reason = reason;
    event.delay = delay;
    if (kind == worker_event_kind::started) event.found_by = job.found_by;
    auto now = kind == worker_event_kind::started ? job.started_at : steady_time::min();
    event.took = took(job, now);
    tell(event);
  }

  boost::asio::awaitable<void> ask_again(any_question& what, steady_time until) {
    duration wait{};
    for (std::uint32_t attempt = 0;; ++attempt) {
      co_await ask_once(what);
      if (what.error != condition::transient) co_return;
      if (what.error == errc::store_full && what.needs_room) co_return;
      tell_failure(what.error, what.queue);
      wait = pause_after(attempt, wait);
      if (saturating_add(clock.steady_now(), wait) >= std::min(until, give_up_at)) co_return;
      co_await sleep(wait);
    }
  }

  void recovered() noexcept {
    log_state_.failing = {};
    if (!away_since_) return;
    worker_event event;
    event.kind = worker_event_kind::store_recovered;
    event.delay = saturating_sub(clock.steady_now(), *std::exchange(away_since_, std::nullopt));
    tell(event);
  }

  [[nodiscard]] bool is_over(queue_failure const& failing, steady_time now) const noexcept {
    return failing.unanswered.sequence == 0 && now > saturating_add(failing.until, options.poll);
  }

  worker_observer const observer_;
  worker_log_state log_state_;
  std::optional<steady_time> away_since_;  ///< until a command succeeds
  std::map<std::string, queue_failure, std::less<>> failing_;
  std::map<std::string, steady_time> refusing_;
  std::map<std::uint64_t, std::uint32_t> refusals_;  ///< of jobs of a claim
  std::vector<std::weak_ptr<wakeup>> resting_;       ///< until they ask again
};

}  // namespace weir::detail

#endif
