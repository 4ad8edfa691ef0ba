// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_JOB_CONTEXT_HPP
#define WEIR_JOB_CONTEXT_HPP

#include "weir/detail/async_lift.hpp"
#include "weir/detail/config.hpp"
#include "weir/error.hpp"
#include "weir/job.hpp"
#include "weir/job_headers.hpp"
#include "weir/job_progress.hpp"
#include "weir/limits.hpp"
#include "weir/parking.hpp"
#include "weir/time.hpp"
#include "weir/worker/notes.hpp"

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/associated_executor.hpp>
#include <boost/asio/async_result.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/deferred.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/system_executor.hpp>
#include <boost/system/system_error.hpp>

#include <atomic>
#include <cstdint>
#include <exception>
#include <memory>
#include <new>
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
  /// A text for logs; snoozing is not a failure.
  [[nodiscard]] char const* what() const noexcept override { return "snoozed by its handler"; }

 private:
  duration delay_;
};

/// The attempt that a handler runs, as it sees it. It lives as long as the handler runs.
///
/// Thread-safety: all of it may be used in any thread.
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

  /// The headers of the job. A view, good as long as the handler runs.
  [[nodiscard]] job_headers_view headers() const noexcept { return job_headers_view{job_.headers}; }

  /// The last checkpoint that an earlier attempt has stored; empty: there is none.
  [[nodiscard]] std::string_view last_checkpoint() const noexcept { return job_.checkpoint; }

  /// Says how far the handler has come, for those who watch the job (`job::progress`). The worker
  /// stores it with a renewal of the lease, within a second while the store answers; of several
  /// only the last. One that is not stored before the job ends well is dropped.
  ///
  /// @param done  how much is done
  /// @param total how much there is to do; 0: unknown
  /// @param note  for people; cut so that all has at most `limits::progress_size` bytes
  void progress(std::uint64_t done, std::uint64_t total, std::string_view note = {}) {
    notes_.progress(job_progress{done, total, std::string{note}}.text());
  }

  /// Leaves bytes for the next attempt, should this one fail: see `last_checkpoint`. The worker
  /// stores them with a renewal of the lease, as soon as it can, and before it stores the failure
  /// of this attempt; of several checkpoints only the last. It stays with the job until another one
  /// is stored.
  ///
  /// @param bytes 1…`limits::checkpoint_size` of them
  /// Throws `boost::system::system_error`: `invalid_option` (there are none), `payload_too_large`.
  void checkpoint(std::string bytes) {
    if (auto const ec = refusal_of(bytes)) throw boost::system::system_error{ec};
    notes_.checkpoint(std::move(bytes), {});
  }

  /// The same, and waits until it is stored: then the next attempt has it, or a later one, whatever
  /// becomes of this process.
  ///
  /// @param bytes 1…`limits::checkpoint_size` of them
  /// @param token completes with `void(error_code)`; the default is `deferred`, so
  ///        `co_await job.async_checkpoint(…)` works. Called on its associated executor; without
  ///        one, on the strand of the coroutine that asks, or on the bookkeeping's
  /// Errors: `invalid_option` (there are no bytes), `payload_too_large`, both at once and with
  /// nothing handed over; `lease_lost`, and that of a store that refuses it (`store_full`,
  /// `disk_full`): then the next attempt has an earlier one; `operation_aborted`: it was cancelled,
  /// and the bytes are stored all the same, or the worker's execution context had ended before. If
  /// that context ends during the wait, the handler is destroyed.
  template <class Token = boost::asio::deferred_t>
  WEIR_OPERATION auto async_checkpoint(std::string bytes, Token&& token = Token{}) {
    return boost::asio::async_initiate<Token, void(error_code)>(checkpoint_initiation{this}, token,
                                                                std::move(bytes));
  }

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
  /// and will not wait longer. A coroutine handler is cancelled then. A plain function that takes
  /// long should look here, and throw, anything at all: if it returns, its job is completed.
  [[nodiscard]] bool stop_requested() const noexcept {
    return stop_.load(std::memory_order_relaxed);
  }

  /// For the worker: by a clock that outlives it, and what asks that clock.
  void ends_at(steady_time t, void const* clock, steady_time (*now)(void const*)) noexcept {
    ends_at_ = t;
    clock_ = clock;
    now_ = now;
  }
  /// For the worker: what is to be stored.
  [[nodiscard]] detail::handler_notes& notes() noexcept { return notes_; }
  /// For the worker.
  void request_stop() noexcept { stop_.store(true, std::memory_order_relaxed); }

  /// For handlers of weir's own, and for the worker: what comes in the job's place once it has
  /// ended well; null: nothing.
  void succeed(std::shared_ptr<detail::succession const> by) noexcept { after_ = std::move(by); }
  /// For the worker: the same again.
  [[nodiscard]] detail::succession const* after() const noexcept { return after_.get(); }

 private:
  /// Keeps no executor: the operation stands in the handler's frame, which may outlive the
  /// bookkeeping's context, and its strand may not.
  struct checkpoint_initiation {
    using executor_type = boost::asio::any_io_executor;
    [[nodiscard]] executor_type get_executor() const noexcept { return of->notes_.get_executor(); }

    template <class Handler>
    void operator()(Handler&& handler, std::string text) const {
      auto& notes = of->notes_;
      auto const kept = notes.keep();  // the handler may be destroyed here, and what keeps the job
      auto const inside = notes.enter();  // `own` may be of the bookkeeping's context
      // The timer of `cancel_after` has this executor, too, which runs one thing at a time.
      auto const own = boost::asio::get_associated_executor(handler, get_executor());
      auto const op = park<error_code>(
          inside ? notes.executor_inside() : executor_type{boost::asio::system_executor{}},
          boost::asio::bind_executor(own, std::forward<Handler>(handler)));
      try {
        if (!inside) {
          op->resume(boost::asio::error::operation_aborted);
        } else if (auto const ec = refusal_of(text)) {
          op->resume(ec);
        } else {
          notes.checkpoint(std::move(text), [op](error_code stored) { op->resume(stored); });
        }
      } catch (std::bad_alloc const&) {
        op->resume(make_error_code(boost::system::errc::not_enough_memory));
      }
    }

    job_context* of;
  };

  [[nodiscard]] static error_code refusal_of(std::string const& bytes) noexcept {
    if (bytes.empty()) return errc::invalid_option;
    if (bytes.size() > limits::checkpoint_size) return errc::payload_too_large;
    return {};
  }

  std::string_view queue_;
  leased_job const& job_;
  detail::handler_notes notes_;
  std::atomic<bool> stop_{false};
  steady_time ends_at_ = steady_time::max();
  void const* clock_ = nullptr;
  steady_time (*now_)(void const*) = nullptr;
  std::shared_ptr<detail::succession const> after_;
};

}  // namespace weir

#endif
