// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_WORKER_CORE_HPP
#define WEIR_WORKER_CORE_HPP

#include "weir/concept.hpp"
#include "weir/error.hpp"
#include "weir/execute.hpp"
#include "weir/id_source.hpp"
#include "weir/worker/active_job.hpp"
#include "weir/worker/options.hpp"
#include "weir/worker/wakeup.hpp"
#include "weir/worker_event.hpp"

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/deferred.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace weir::detail {

/// What the parts of a running worker share: the store, the clock, the jobs in hand, and how to ask
/// and to tell. All of it is used on one strand.
template <class Store, class Clock, class Backoff>
class worker_core {
 public:
  worker_core(Store s, worker_options const& o, Clock c, Backoff b, id_source i,
              worker_observer tell_them, boost::asio::any_io_executor const& own,
              boost::asio::any_io_executor handlers)
      : store{std::move(s)},
        options{o},
        clock{std::move(c)},
        backoff{std::move(b)},
        ids{std::move(i)},
        holder{ids.holder()},
        strand{boost::asio::make_strand(own)},
        handler_executor{std::move(handlers)},
        changed{strand},
        observer_{std::move(tell_them)} {}
  worker_core(worker_core const&) = delete;
  worker_core& operator=(worker_core const&) = delete;

  /// Asks the store, and asks again while the failure is one that may pass and `until` has not
  /// come: every command that a worker sends this way may be repeated. `asked_at` is set to the
  /// time before the request that was answered.
  template <class Command>
  boost::asio::awaitable<result<typename Command::result>> ask(Command command, steady_time until,
                                                               steady_time* asked_at = nullptr) {
    static_assert(Command::repeatable);
    duration wait{};
    for (std::uint32_t attempt = 0;; ++attempt) {
      if (asked_at != nullptr) *asked_at = clock.steady_now();
      auto [ec, answer] = co_await weir::async_execute(
          store, command, boost::asio::as_tuple(boost::asio::use_awaitable));
      if (!ec) co_return std::move(answer);
      heed(command, ec);
      if (ec != condition::transient) co_return ec;
      tell_failure(ec, queue_of(command));
      wait = pause_after(attempt, wait);
      if (saturating_add(clock.steady_now(), wait) >= std::min(until, give_up_at)) co_return ec;
      co_await sleep(wait);
    }
  }

  /// Asks once.
  template <class Command>
  boost::asio::awaitable<result<typename Command::result>> ask_once(Command command) {
    auto [ec, answer] = co_await weir::async_execute(
        store, command, boost::asio::as_tuple(boost::asio::use_awaitable));
    if (!ec) co_return std::move(answer);
    heed(command, ec);
    co_return ec;
  }

  boost::asio::awaitable<void> sleep(duration wait) {
    co_await clock.async_wait_until(strand, saturating_add(clock.steady_now(), wait),
                                    boost::asio::as_tuple(boost::asio::use_awaitable));
  }

  /// How long to leave a store alone that has just failed: by the worker's backoff, never longer
  /// than its poll.
  [[nodiscard]] duration pause_after(std::uint32_t attempt, duration previous) {
    duration const shortest = std::chrono::milliseconds{1};
    return std::min(std::max(backoff(attempt, previous, ids.entropy()), shortest), options.poll);
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

  /// When the queue may be claimed from: not later than now, unless it fails. `steady_time::max()`:
  /// when its job in hand is settled.
  [[nodiscard]] steady_time claimable_at(std::string const& queue) {
    auto const* const failing = failure_of(queue);
    if (failing == nullptr) return steady_time::min();
    auto const of_queue = [&](auto const& job) { return job->queue == queue; };
    return std::ranges::any_of(active, of_queue) ? steady_time::max() : failing->until;
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
    if (!observer_) return;
    try {
      observer_(event);
    } catch (...) {  // an observer that throws has nobody to tell
    }
  }
  void tell_failure(error_code ec, std::string_view queue = {}) noexcept {
    worker_event event;
    event.kind = worker_event_kind::store_failed;
    event.queue = queue;
    event.error = ec;
    tell(event);
  }
  void tell(worker_event_kind kind, active_job const& job, std::string_view reason = {},
            duration delay = {}) noexcept {
    worker_event event;
    event.kind = kind;
    event.queue = job.queue;
    event.job = &job.job;
    event.reason = reason;
    event.delay = delay;
    tell(event);
  }

  /// The job was claimed.
  void add(std::shared_ptr<active_job> job) {
    job->place = active.size();
    active.push_back(std::move(job));
  }

  /// The job's outcome is stored, or it is not this worker's any more.
  void settle(active_job& job) {
    if (std::exchange(job.settled, true)) return;
    job.prepared.reset();
    auto const place = job.place;
    active.back()->place = place;
    std::swap(active[place], active.back());
    active.pop_back();  // and this job with it, if nobody else has it
    changed.notify();
  }

  Store store;
  worker_options const options;
  Clock clock;
  Backoff backoff;
  id_source ids;
  std::string const holder;
  boost::asio::strand<boost::asio::any_io_executor> strand;
  boost::asio::any_io_executor handler_executor;
  std::vector<std::shared_ptr<active_job>> active;  ///< in no order
  wakeup changed;                                   ///< a job was settled, or the worker is to stop
  bool stopping = false;                            ///< nothing is claimed or started any more
  steady_time give_up_at = steady_time::max();  ///< stopping: a store that fails is not asked again
                                                ///< from here on

 private:
  template <class Command>
  [[nodiscard]] static std::string_view queue_of(Command const& command) noexcept {
    if constexpr (requires { command.queue; }) return command.queue;
    return {};
  }

  /// Backs off from the queue of a command that has failed, unless the error is about its job.
  template <class Command>
  void heed(Command const& command, error_code ec) {
    auto const queue = queue_of(command);
    if (queue.empty() || ec == errc::lease_lost || ec == condition::bad_input) return;
    back_off(queue);
  }

  [[nodiscard]] bool is_over(queue_failure const& failing, steady_time now) const noexcept {
    return failing.unanswered.sequence == 0 && now > saturating_add(failing.until, options.poll);
  }

  worker_observer const observer_;
  std::map<std::string, queue_failure, std::less<>> failing_;
};

}  // namespace weir::detail

#endif
