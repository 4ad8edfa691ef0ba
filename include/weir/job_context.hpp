// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_JOB_CONTEXT_HPP
#define WEIR_JOB_CONTEXT_HPP

#include "weir/job.hpp"
#include "weir/time.hpp"

#include <atomic>
#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace weir {

namespace detail {
struct succession;
}  // namespace detail

/// Thrown by a handler that knows that its job can never succeed: it is dead-lettered at once, with
/// this reason.
class give_up : public std::exception {
 public:
  /// @param reason kept with the dead letter; cut at `limits::reason_size` bytes
  explicit give_up(std::string reason) : reason_{std::move(reason)} {}
  /// The reason.
  [[nodiscard]] char const* what() const noexcept override { return reason_.c_str(); }

 private:
  std::string reason_;
};

/// Thrown by a handler that wants to be asked again later: the attempt is given back, and does not
/// count as a failure.
class snooze_for : public std::exception {
 public:
  /// @param delay held within [0, `limits::span`]
  explicit snooze_for(duration delay) noexcept : delay_{delay} {}
  /// How long the job is to wait, as it was given.
  [[nodiscard]] duration delay() const noexcept { return delay_; }
  /// That it is no failure.
  [[nodiscard]] char const* what() const noexcept override { return "snoozed by its handler"; }

 private:
  duration delay_;
};

/// What a handler may know about the attempt that it runs. It lives as long as the handler runs.
///
/// Thread-safety: reading it is safe in any thread.
class job_context {
 public:
  /// For the worker: both must outlive it.
  job_context(std::string_view queue, leased_job const& job) noexcept : queue_{queue}, job_{job} {}
  job_context(job_context const&) = delete;
  job_context& operator=(job_context const&) = delete;

  /// The job's, within its queue.
  [[nodiscard]] job_id id() const noexcept { return job_.id; }
  /// The queue that it was claimed from.
  [[nodiscard]] std::string_view queue() const noexcept { return queue_; }
  /// `job_traits<Job>::kind`.
  [[nodiscard]] std::string_view kind() const noexcept { return job_.kind; }
  /// 0 is the most urgent.
  [[nodiscard]] std::uint8_t priority() const noexcept { return job_.priority; }

  /// Which attempt this is, from 1.
  [[nodiscard]] std::uint32_t attempt() const noexcept { return job_.attempt; }
  /// How many attempts there may be.
  [[nodiscard]] std::uint32_t max_attempts() const noexcept { return job_.max_attempts; }
  /// How often it was snoozed before, by limits or by a handler.
  [[nodiscard]] std::uint32_t snoozes() const noexcept { return job_.snoozes; }

  /// Strictly grows from lease to lease: send it along with writes, and let the receiver refuse
  /// lower ones.
  [[nodiscard]] std::uint64_t fence() const noexcept { return job_.fence; }

  /// Since the enqueue, when it was claimed.
  [[nodiscard]] duration age() const noexcept { return job_.age; }
  /// Until its deadline, when it was claimed; empty: it has none.
  [[nodiscard]] std::optional<duration> deadline_in() const noexcept { return job_.deadline_in; }

  /// Time left until the handler's time-out (`job_traits::timeout`) or the job's deadline,
  /// whichever is first; negative: it is over. Empty: there is neither.
  [[nodiscard]] std::optional<duration> time_left() const noexcept {
    if (ends_at_ == steady_time::max()) return std::nullopt;
    return saturating_sub(ends_at_, now_(clock_));
  }

  /// Should the handler stop? True once the lease is lost, the timeout is over, or the worker stops
  /// and will not wait longer. A coroutine handler is cancelled then; a plain function that takes
  /// long may look here.
  [[nodiscard]] bool stop_requested() const noexcept {
    return stop_.load(std::memory_order_relaxed);
  }

  /// For the worker: by a clock that outlives it, and what asks that clock.
  void ends_at(steady_time t, void const* clock, steady_time (*now)(void const*)) noexcept {
    ends_at_ = t;
    clock_ = clock;
    now_ = now;
  }
  /// For the worker.
  void request_stop() noexcept { stop_.store(true, std::memory_order_relaxed); }

  /// For handlers of weir's own, and for the worker: what comes in the job's place once it has
  /// ended well; null: nothing.
  void succeed(std::shared_ptr<detail::succession const> by) noexcept { after_ = std::move(by); }
  /// For the worker: the same again.
  [[nodiscard]] detail::succession const* after() const noexcept { return after_.get(); }

 private:
  std::string_view queue_;
  leased_job const& job_;
  std::atomic<bool> stop_{false};
  steady_time ends_at_ = steady_time::max();
  void const* clock_ = nullptr;
  steady_time (*now_)(void const*) = nullptr;
  std::shared_ptr<detail::succession const> after_;
};

}  // namespace weir

#endif
