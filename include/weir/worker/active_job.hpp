// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

#ifndef WEIR_WORKER_ACTIVE_JOB_HPP
#define WEIR_WORKER_ACTIVE_JOB_HPP

#include "weir/detail/context_gate.hpp"
#include "weir/job.hpp"
#include "weir/job_context.hpp"
#include "weir/time.hpp"
#include "weir/worker/handler.hpp"
#include "weir/worker/turns.hpp"
#include "weir/worker_event.hpp"

#include <boost/asio/cancellation_signal.hpp>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

namespace weir::detail {

class worker_core;

/// Why a handler is told to stop before it ends by itself.
enum class stop_cause : std::uint8_t { none, lease_lost, permit_lost, timeout, shutdown };

/// How a handler ended.
struct handler_outcome {
  enum class ending : std::uint8_t {
    done,
    unstorable,  ///< it has succeeded, and there is no result to be kept
    failed,
    gave_up,
    snoozed,
    undecodable,
    not_started,  ///< it was too late, or it was told to stop before
  };

  handler_outcome() = default;
  handler_outcome(ending e, std::string t, duration d = {})
      : how{e},
        text{std::move(t)},
        delay{d} {}

  ending how = ending::done;
  std::string text;  ///< done: the result; otherwise the reason, of `unstorable` too
  duration delay{};
};

/// A permit that a job has, or a place in the line for one.
struct active_permit {
  // g++ 12 destroys an aggregate twice that is made beside `co_await`.
  active_permit(std::string k, std::string h, std::uint64_t f)
      : key{std::move(k)},
        holder{std::move(h)},
        fence{f} {}

  std::string key;
  std::string holder;
  std::uint64_t fence = 0;
};

/// A job between its claim and the moment at which its outcome is stored. Used on the worker's
/// strand, except for what the handler sees, and `prepared` and `outcome`, which are the handler's
/// from its start to its end.
struct active_job : std::enable_shared_from_this<active_job> {
  active_job(std::string q, leased_job&& j, steady_time claimed)
      : queue{std::move(q)},
        job{std::move(j)},
        context{queue, job},
        claimed_at{claimed} {}
  active_job(active_job const&) = delete;
  active_job& operator=(active_job const&) = delete;

  /// Tells the handler to stop. The first cause is the one that counts.
  void stop(stop_cause why) {
    if (cause != stop_cause::none) return;
    cause = why;
    context.request_stop();
    gate_pass const inside{gate};
    if (!inside) return;
    if (auto const signal = cancel.lock()) signal->emit(boost::asio::cancellation_type::terminal);
  }

  /// To be called before its handler is to start, and after each renewal.
  void note_deadline() noexcept {
    starts_before.store(std::min(deadline, permit_deadline), std::memory_order_relaxed);
  }

  std::string const queue;
  leased_job const job;
  job_context context;
  std::weak_ptr<worker_core> core{};  ///< that it is active in
  std::shared_ptr<any_handler const> handler;
  std::unique_ptr<prepared_job> prepared;
  handler_outcome outcome;
  std::weak_ptr<boost::asio::cancellation_signal> cancel{};  ///< of a coroutine that runs
  std::shared_ptr<context_gate> gate{};                      ///< of its context
  boost::asio::cancellation_signal end_of_timer;
  stop_cause cause = stop_cause::none;

  steady_time claimed_at;                         ///< read before the claim was sent
  steady_time started_at = steady_time::min();    ///< its handler; min(): it has not started
  steady_time times_out_at = steady_time::max();  ///< its handler, while that runs
  steady_time deadline{};                         ///< from here on the lease may be over
  steady_time renew_at{};
  std::atomic<steady_time> starts_before{};  ///< its handler, whose thread reads this

  turns::entry entry = 0;          ///< that serves its queue, where that is counted
  std::uint64_t claim = 0;         ///< which of the worker's; 0: it was brought forward
  std::uint32_t claimed_with = 0;  ///< jobs of that claim
  look_cause found_by = look_cause::none;
  bool renewing = false;
  bool renew_again = false;  ///< once that has ended
  bool finishing = false;    ///< its handler has ended, and it has no hand any more
  bool settled = false;

  steady_time noted_at = steady_time::min();  ///< when notes of its handler were last stored, or
                                              ///< refused
  std::uint32_t failed_renewals = 0;          ///< in a row

  std::optional<active_permit> permit;
  steady_time permit_deadline = steady_time::max();  ///< from here on the permit may be over

  std::size_t place = 0;  ///< among the active ones
};

}  // namespace weir::detail

#endif
